"""Files that belong to a question: a few texts of limited size, or a sentence on what to do."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bot.errors import NotTaken
from bot.view.message import printable
from bot.view.wording import commands as wording
from council.brief import Attachment
from council.text.characters import clip
from council.text.encodings import decoded

MOST_FILES = 10
LARGEST_FILE = 200_000
LARGEST_TOGETHER = 400_000
"""Bytes of all the files of a question, about 100,000 tokens."""
LONGEST_NAME = 100

T = TypeVar("T")


def text_file(name: str, content: bytes) -> Attachment:
    """Read a file's content. Raises `NotTaken` if it isn't a text of limited size."""
    name = one_line(name)
    if len(content) > LARGEST_FILE:
        raise too_large(name)
    try:
        text = decoded(content)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise not_text(name)
    return Attachment(name=name, text=text)


def admitted(
    files: Sequence[T],
    *,
    name: Callable[[T], str],
    size: Callable[[T], int],
    beside: Sequence[Attachment] = (),
) -> list[T | NotTaken]:
    """Return each file, or why it is left out, by the sizes in bytes from the platform.

    Only what is returned is fetched, and no more of it than that size: the first `MOST_FILES` that
    are no larger than `LARGEST_FILE` each and `LARGEST_TOGETHER` in all, including those `beside`.
    """
    room = LARGEST_TOGETHER - sum(len(file.text.encode()) for file in beside)
    taken = len(beside)
    result: list[T | NotTaken] = []
    for file in files:
        if size(file) > LARGEST_FILE:
            result.append(too_large(one_line(name(file))))
        elif taken >= MOST_FILES:
            result.append(too_many(one_line(name(file))))
        elif size(file) > room:
            result.append(too_large_together(one_line(name(file))))
        else:
            taken += 1
            room -= size(file)
            result.append(file)
    return result


def one_line(name: str) -> str:
    """Return a file's name as it is shown: one line of limited length without control characters."""
    return clip(" ".join(printable(name).split()), LONGEST_NAME)


def too_large(name: str) -> NotTaken:
    """Return the refusal of a file that is too large for a prompt."""
    return NotTaken(name, *wording.too_large(name, LARGEST_FILE // 1000))


def too_many(name: str) -> NotTaken:
    """Return the refusal of a file beyond the limit of files."""
    return NotTaken(name, *wording.too_many(name, MOST_FILES))


def too_large_together(name: str) -> NotTaken:
    """Return the refusal of a file that makes a question's files too large together."""
    return NotTaken(name, *wording.too_large_together(name, LARGEST_TOGETHER // 1000))


def not_text(name: str) -> NotTaken:
    """Return the refusal of a file that isn't text."""
    return NotTaken(name, *wording.not_text(name))


def not_given(name: str, platform: str) -> NotTaken:
    """Return the refusal of a file that a platform didn't provide."""
    return NotTaken(name, *wording.not_given(name, platform))


def sorted_out(files: Iterable[Attachment | NotTaken]) -> tuple[tuple[Attachment, ...], str | None]:
    """Return the accepted files, and a sentence about those that were left out."""
    looked_at = [*files]
    taken = tuple(file for file in looked_at if isinstance(file, Attachment))
    reasons: dict[str, list[str]] = {}
    for file in looked_at:
        if isinstance(file, NotTaken):
            reasons.setdefault(file.why, []).append(file.name)
    return taken, wording.left_out(reasons.items()) or None
