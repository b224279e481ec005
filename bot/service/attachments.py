"""Files that belong to a question: a few texts of fair size, or a sentence on what to do."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bot.service.commands import UsageError
from bot.view.message import printable
from bot.view.words import listing
from council.brief import Attachment

MOST_FILES = 10
LARGEST_FILE = 200_000
LARGEST_TOGETHER = 400_000
"""Bytes of all the files of a question, about 100,000 tokens."""
LONGEST_NAME = 100
NAMED = 3
"""How many files are named where several are left out for the same reason."""

T = TypeVar("T")


class NotTaken(UsageError):
    """A file isn't taken; the message says what to do, `why` says it in a few words."""

    def __init__(self, message: str, name: str, why: str) -> None:
        super().__init__(message)
        self.name = name
        self.why = why


def text_file(name: str, content: bytes) -> Attachment:
    """Read a file's content. Raises `NotTaken` where it isn't a text of fair size."""
    name = one_line(name)
    if len(content) > LARGEST_FILE:
        raise too_large(name)
    try:
        text = content.decode("utf-8-sig")
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
    """Return each file, or why it is left out, by the sizes in bytes that the platform tells.

    Only what is returned is fetched, and no more of it than that size: the first `MOST_FILES` that
    are no larger than `LARGEST_FILE` each and `LARGEST_TOGETHER` in all, those `beside` counted in.
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
    """Return a file's name as it is shown: one line of fair length without control characters."""
    shown = " ".join(printable(name).split())
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1]}\u2026"


def too_large(name: str) -> NotTaken:
    """Say that a file is larger than a prompt should hold."""
    most = f"{LARGEST_FILE // 1000} kB"
    said = f"{name} is larger than {most}. Attach the part that matters."
    return NotTaken(said, name, f"larger than {most}")


def too_many(name: str) -> NotTaken:
    """Say that a question has more files than are read."""
    said = f"Only {MOST_FILES} files are read with a question, so {name} was left out."
    return NotTaken(said, name, f"only {MOST_FILES} files are read")


def too_large_together(name: str) -> NotTaken:
    """Say that a question's files hold more than a prompt should."""
    most = f"{LARGEST_TOGETHER // 1000} kB"
    said = f"With {name} the files are larger than {most} together. Attach the parts that matter."
    return NotTaken(said, name, f"the files are larger than {most} together")


def not_text(name: str) -> NotTaken:
    """Say that a file holds something else than text."""
    said = f"{name} is not text. Attach plain text in UTF-8, such as .md, .txt or .csv."
    return NotTaken(said, name, "not text")


def not_given(name: str, platform: str) -> NotTaken:
    """Say that a platform kept a file to itself."""
    said = f"{platform} did not hand over {name}. Try again."
    return NotTaken(said, name, f"{platform} didn't give it")


def sorted_out(files: Iterable[Attachment | NotTaken]) -> tuple[tuple[Attachment, ...], str | None]:
    """Return the files that were taken, and a sentence about those that were left out."""
    looked_at = [*files]
    taken = tuple(file for file in looked_at if isinstance(file, Attachment))
    reasons: dict[str, list[str]] = {}
    for file in looked_at:
        if isinstance(file, NotTaken):
            reasons.setdefault(file.why, []).append(file.name)
    left_out = ", ".join(f"{_named(names)} ({why})" for why, names in reasons.items())
    return taken, f"Left out: {left_out}." if left_out else None


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    shown = [*names[:NAMED], *([f"{more:,} more"] if more > 0 else [])]
    return listing(shown)
