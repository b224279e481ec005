"""Files that belong to a question: text of fair size, or a sentence on what to do."""

from bot.commands import UsageError
from council.brief import Attachment

LARGEST_FILE = 200_000


def text_file(name: str, content: bytes) -> Attachment:
    """Read a file's content. Raises `UsageError` where it isn't a text of fair size."""
    if len(content) > LARGEST_FILE:
        raise too_large(name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UsageError(f"{name} is not text. Attach plain text in UTF-8, such as .md, .txt or .csv.")
    return Attachment(name=name, text=text)


def too_large(name: str) -> UsageError:
    """Say that a file is larger than a prompt should hold."""
    return UsageError(f"{name} is larger than {LARGEST_FILE // 1000} kB. Attach the part that matters.")
