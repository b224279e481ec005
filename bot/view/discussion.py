"""The human thread and the files that were read with a question, as transcripts show them."""

from bot.view.message import Block, Heading, Line, Pairs
from bot.view.wording import card as wording
from bot.view.wording import inputs
from council.brief import Discussion
from council.events import FilesRead
from council.text import clip

LONGEST = 2_000
"""How much of one message is shown."""


def files(read: FilesRead | None) -> tuple[Block, ...]:
    """Return what was read of a question's files and links, and what wasn't; nothing without any."""
    return tuple(map(Line, inputs.files_read(read.files, read.links))) if read else ()


def discussion(read: Discussion | None) -> tuple[Block, ...]:
    """Return what people wrote before a question, with their names; nothing if nothing was read."""
    if read is None or not read.messages:
        return ()
    said = tuple((each.name, clip(" ".join(each.text.split()), LONGEST)) for each in read.messages)
    return (Heading(wording.THREAD, 3), Pairs(said))
