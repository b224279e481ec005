"""What a file is, told by its content and never by its name."""

import re
from typing import Literal

from bot.inputs.charsets import text_of
from bot.view.wording import inputs as wording

Extractable = Literal["pdf", "picture", "office", "page"]
"""What is read in a process of its own; a `page` is what a web address returned as HTML."""
Kind = Literal["text"] | Extractable
"""How a file is read."""

PDF_HEADER = 1_024
"""Bytes in which `%PDF-` may begin (ISO 32000-2, annex C and readers' practice)."""
_PICTURE = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP|BM.{4}\0{4}|II[*+]\0|MM\0[*+]"
    rb"|.{4}ftyp(?:.{4}){0,8}?avi[fs]",
    re.DOTALL,
)
"""Pictures that Pillow reads; AVIF names itself among several brands (ISO 14496-12)."""
_OTHERS = (
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", wording.OLD_OFFICE),
    (rb"(?s:.{4})ftyp(?:hei|hev|mif1|msf1)", wording.other_picture("HEIC")),
    (rb"\xff\x0a|\0\0\0\x0cJXL ", wording.other_picture("JPEG XL")),
    (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", wording.other_picture("JPEG 2000")),
    (rb"8BPS\0", wording.other_picture("Photoshop's format")),
)
"""Files that nothing here reads, by their first bytes, and what to do about them."""
_MARKUP = re.compile(
    r"<\s*(?:!doctype|html|head|body|meta|title|script|div|p|article|main)\b", re.IGNORECASE
)
_ZIP = b"PK\x03\x04"
_OFFICE_PARTS = (b"word/", b"ppt/", b"xl/")


def kind_of(content: bytes, media: str = "") -> Kind | None:
    """Return how a file is read, `media` being its `Content-Type`; `None` where nothing here reads it.

    Word, PowerPoint and Excel files are ZIP archives that begin with a list of their content types or
    with one of the parts that it names.
    """
    if b"%PDF-" in content[:PDF_HEADER]:
        return "pdf"
    if _PICTURE.match(content):
        return "picture"
    if content.startswith(_ZIP):
        is_office = b"[Content_Types].xml" in content and any(one in content for one in _OFFICE_PARTS)
        return "office" if is_office else None
    if any(re.match(sign, content) for sign, _ in _OTHERS):
        return None
    return "text" if text_of(content, media) else None


def page_kind(text: str, media: str) -> Kind:
    """Return whether what a web address returned as text is a page or plain text."""
    is_plain = "html" not in media and media.startswith("text/")
    return "page" if not is_plain and _MARKUP.search(text[:PDF_HEADER]) else "text"


def why_unread(content: bytes) -> str:
    """Return why nothing here reads a file, in a few words for people."""
    return next((why for sign, why in _OTHERS if re.match(sign, content)), wording.UNKNOWN_KIND)
