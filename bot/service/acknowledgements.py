"""Lets new questions be acknowledged before more is done for those already acknowledged.

A platform waits three seconds for an acknowledgement, and a process has one interpreter: where many
people ask at once, calls, cards and threads of the running councils would delay the questions behind.

Slack is acknowledged once a question is written down (`bot/slack/listeners.py`), Discord by the card
itself; what takes longer there is deferred (`bot/discord/replies.py`).
"""

import asyncio
from contextlib import suppress

LONGEST_DELAY = 1.0
"""How many seconds anything else waits at most, however many questions arrive."""
DUE_SECONDS = 3.0
"""How long an acknowledgement counts as due; later, no platform takes it."""
LOOKUP_SECONDS = 1.5
"""How long what Slack is asked for about a question may take: who asks, and the files, all at once."""
ACCEPT_SECONDS = 1.0
"""How long a question may then wait to be written down. A write that has begun by then is waited for."""


class Acknowledgements:
    """The questions that have arrived and aren't acknowledged yet, each by its entry key.

    Times are in seconds.
    """

    def __init__(
        self, longest_delay: float | None = LONGEST_DELAY, due_seconds: float = DUE_SECONDS
    ) -> None:
        self._longest_delay = longest_delay
        self._due_seconds = due_seconds
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._none_due = asyncio.Event()
        self._none_due.set()

    def expect(self, entry_key: str) -> None:
        """Hold everything else back until this question is acknowledged, or too old for it."""
        self.settle(entry_key)
        loop = asyncio.get_running_loop()
        self._due[entry_key] = loop.call_later(self._due_seconds, self.settle, entry_key)
        self._none_due.clear()

    def settle(self, entry_key: str) -> None:
        """Note that a question is acknowledged, or refused."""
        if timer := self._due.pop(entry_key, None):
            timer.cancel()
        if not self._due:
            self._none_due.set()

    async def acknowledged(self) -> None:
        """Wait until no acknowledgement is due, or for the longest delay."""
        if self._due:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._longest_delay):
                    await self._none_due.wait()
