"""Files that belong to a question: text of fair size, or a sentence on what to do."""

from collections.abc import Iterable

from bot.service.commands import UsageError
from council.brief import Attachment

LARGEST_FILE = 200_000


class NotTaken(UsageError):
    """A file that isn't taken; the message says what to do, `named` is the file with the reason."""

    def __init__(self, message: str, name: str, why: str) -> None:
        super().__init__(message)
        self.named = f"{name} ({why})"


def text_file(name: str, content: bytes) -> Attachment:
    """Read a file's content. Raises `NotTaken` where it isn't a text of fair size."""
    if len(content) > LARGEST_FILE:
        raise too_large(name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise not_text(name)
    return Attachment(name=name, text=text)


def too_large(name: str) -> NotTaken:
    """Say that a file is larger than a prompt should hold."""
    most = f"{LARGEST_FILE // 1000} kB"
    said = f"{name} is larger than {most}. Attach the part that matters."
    return NotTaken(said, name, f"larger than {most}")


def not_text(name: str) -> NotTaken:
    """Say that a file holds something else than text."""
    said = f"{name} is not text. Attach plain text in UTF-8, such as .md, .txt or .csv."
    return NotTaken(said, name, "not text")


def not_given(name: str, platform: str) -> NotTaken:
    """Say that a platform kept a file to itself."""
    said = f"{platform} did not hand over {name}. Try again."
    return NotTaken(said, name, f"{platform} didn't give it")


def sorted_out(files: Iterable[Attachment | NotTaken]) -> tuple[tuple[Attachment, ...], str | None]:
    """Give the files that were taken, and a sentence about those that were left out."""
    looked_at = [*files]
    taken = tuple(file for file in looked_at if isinstance(file, Attachment))
    left_out = ", ".join(file.named for file in looked_at if isinstance(file, NotTaken))
    return taken, f"Left out: {left_out}." if left_out else None
