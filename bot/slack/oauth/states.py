"""What ties an installation to the browser that began it: signed by this process, and stored nowhere.

A page that a stranger opens a thousand times so takes no room from whoever wants to install the app.
"""

import os
from collections.abc import Callable
from logging import Logger

from cryptography.fernet import Fernet, InvalidToken
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore

from bot.slack.listeners import quiet_logger

STATE_SECONDS = 600
MOST_USED = 10_000
"""How many used states are remembered: of more within ten minutes, the oldest could be used once more,
in the same browser, and with a code that Slack takes only once."""


class States(AsyncOAuthStateStore):
    """Makes states; each is good once, for ten minutes, until the process ends."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._key = Fernet(Fernet.generate_key())
        self._used: dict[bytes, float] = {}

    @property
    def logger(self) -> Logger:
        """Where the SDK would log."""
        return quiet_logger()

    async def async_issue(self, *args: object, **kwargs: object) -> str:
        """Return a new state."""
        del args, kwargs  # part of the interface
        # Without the padding, which an address would have to quote.
        return self._key.encrypt_at_time(os.urandom(16), int(self._now())).decode().rstrip("=")

    async def async_consume(self, state: str) -> bool:
        """Return whether a state is one of ours that nobody has used; nobody can use it again."""
        now = self._now()
        padded = state + "=" * (-len(state) % 4)
        try:
            # What it contains: the same state can be written in several ways.
            name = self._key.decrypt_at_time(padded, STATE_SECONDS, int(now))
        except (InvalidToken, ValueError):
            return False
        if name in self._used:
            return False
        while self._used and (
            len(self._used) >= MOST_USED or next(iter(self._used.values())) < now - STATE_SECONDS
        ):
            del self._used[next(iter(self._used))]
        self._used[name] = now
        return True
