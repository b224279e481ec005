"""What a file is, told by its content and never by its name."""

import re
from typing import Literal

from council.text.encodings import decoded

Extractable = Literal["pdf", "picture", "office", "page"]
"""What is read in a process of its own; a `page` is what a web address returned as HTML."""
Kind = Literal["text"] | Extractable
"""How a file is read."""

PDF_HEADER = 1_024
"""Bytes in which `%PDF-` may begin (ISO 32000-2, annex C and readers' practice)."""
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_MARKUP = re.compile(
    rb"<\s*(?:!doctype|html|head|body|meta|title|script|div|p|article|main)\b", re.IGNORECASE
)
_ZIP = b"PK\x03\x04"
_OFFICE_PARTS = (b"word/", b"ppt/", b"xl/")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def kind_of(content: bytes) -> Kind | None:
    """Return how a file is read; `None` where nothing here reads it.

    Word, PowerPoint and Excel files are ZIP archives that begin with a list of their content types or
    with one of the parts that it names.
    """
    if b"%PDF-" in content[:PDF_HEADER]:
        return "pdf"
    if content.startswith(_PICTURES) or (content[:4] == b"RIFF" and content[8:12] == b"WEBP"):
        return "picture"
    if content.startswith(_ZIP):
        is_office = b"[Content_Types].xml" in content and any(one in content for one in _OFFICE_PARTS)
        return "office" if is_office else None
    return "text" if text_of(content) is not None else None


def page_kind(content: bytes) -> Kind:
    """Return whether a text that a web address returned is a page or plain text."""
    return "page" if _MARKUP.search(content[:PDF_HEADER]) else "text"


def is_old_office(content: bytes) -> bool:
    """Return whether a file is an Office file of before 2007, which nothing here reads."""
    return content.startswith(_OLD_OFFICE)


def text_of(content: bytes) -> str | None:
    """Return a file's text; `None` where it isn't text in a known encoding."""
    try:
        text = decoded(content)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
