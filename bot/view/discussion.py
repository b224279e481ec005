"""The human thread that was read with a question, as transcripts show it."""

from bot.view.message import Block, Heading, Pairs
from bot.view.wording import card as wording
from council.brief import Discussion
from council.text.characters import clip

LONGEST = 2_000
"""How much of one message is shown."""


def discussion(read: Discussion | None) -> tuple[Block, ...]:
    """Return what people wrote before a question, with their names; nothing if nothing was read."""
    if read is None or not read.messages:
        return ()
    said = tuple((each.name, clip(" ".join(each.text.split()), LONGEST)) for each in read.messages)
    return (Heading(wording.THREAD, 3), Pairs(said))
