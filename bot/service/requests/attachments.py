"""Files that come with a question, as a platform names them: which of them are fetched."""

from collections.abc import Iterable

from bot.inputs.limits import DOCUMENT_BYTES
from bot.view.message import printable
from bot.view.wording import inputs as wording
from council.brief import SentFile
from council.text import clip

MOST_FILES = 10
LARGEST_TOGETHER = 2 * DOCUMENT_BYTES
"""Bytes of all the files of a question."""
LONGEST_NAME = 100


def admitted(files: Iterable[SentFile], beside: int = 0) -> tuple[SentFile, ...]:
    """Return files, those over a limit with the reason why they aren't fetched.

    Fetched are the first `MOST_FILES`, with those `beside`, that are no larger than `DOCUMENT_BYTES`
    each and `LARGEST_TOGETHER` in all, by the sizes that the platform states.
    """
    room, taken = LARGEST_TOGETHER, beside
    result: list[SentFile] = []
    for file in files:
        why = file.why
        if why is None and file.size > DOCUMENT_BYTES:
            why = wording.too_large(DOCUMENT_BYTES)
        elif why is None and taken >= MOST_FILES:
            why = wording.too_many(MOST_FILES, "files")
        elif why is None and file.size > room:
            why = wording.too_large_together(LARGEST_TOGETHER)
        if why is None:
            taken += 1
            room -= file.size
        result.append(file.model_copy(update={"name": one_line(file.name), "why": why}))
    return tuple(result)


def one_line(name: str) -> str:
    """Return a file's name as it is shown: one line of limited length without control characters."""
    return clip(" ".join(printable(name).split()), LONGEST_NAME)
