"""Posts a run's messages on Slack: each once, or twice where the response to the first was lost.

Slack can't recognise a repeated message, and hardly ever lets the bot read a channel's: what may be
there is counted in the message's receipt. A mention has a way of its own, in `bot.slack.mentions`.
"""

from collections.abc import Awaitable, Callable

import structlog

from bot.service.delivery.outbox import Repeat, Urgency
from bot.service.delivery.receipts import Receipt
from bot.service.delivery.venue import Part
from bot.slack.card import blocks_with_buttons
from bot.slack.workspace import Workspace

log = structlog.get_logger()

Draw = Callable[[], Awaitable[Part]]
"""Draws what is posted when its turn has come."""
Find = Callable[[], Awaitable[str]]
"""Returns the id of a message that may be there; empty if it isn't found."""


class Posting:
    """Posts one run's messages, and knows which of them may be there; `run` names it in the outbox."""

    def __init__(self, workspace: Workspace, run: str) -> None:
        self._workspace = workspace
        self._run = run

    async def is_over(self, receipt: Receipt) -> bool:
        """Return whether something may be there twice: from then on, it counts as posted."""
        if not receipt.is_spent:
            return False
        log.warning("post_unsure", key=receipt.key)
        await receipt("")
        return True

    async def post(
        self,
        part: Part | Draw,
        receipt: Receipt,
        urgency: Urgency,
        channel: str,
        thread: str | None = None,
        *,
        find: Find | None = None,
    ) -> str:
        """Post a message into a thread, or into the channel; return its id. Raises `VenueError`.

        With `find`, a refusal is believed at once, and one that may be there is looked for first.
        """

        async def request() -> str:
            if find and receipt.times and (message := await find()):
                await receipt(message)
                return message
            shown = part if isinstance(part, Part) else await part()
            blocks = blocks_with_buttons(shown) or None
            async with receipt.begun():
                message = await self._workspace.say(channel, thread, shown.text, blocks)
            await receipt(message)
            return message

        return await self._workspace.outbox.send(
            self._workspace.posts(channel),
            request,
            run=self._run,
            urgency=urgency,
            believes_at_once=find is not None,
            repeat=repeat(receipt),
        )


def repeat(receipt: Receipt) -> Repeat:
    """Return whether one more post may follow the next one."""
    return Repeat.NEVER if receipt.times else Repeat.ONCE
