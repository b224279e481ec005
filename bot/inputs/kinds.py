"""What a file is, known by its content and never by its name, and its text in whatever charset.

A charset is named, certain from the bytes, or a guess.
"""

import codecs
import re
from contextlib import suppress
from typing import Literal

from bot.view.wording import inputs as wording
from bot.view.wording.figures import count

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
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office file of before 2007; send it as PDF"),
    (rb"(?s:.{4})ftyp(?:hei|hev|mif1|msf1)", wording.other_picture("HEIC")),
    (rb"\xff\x0a|\0\0\0\x0cJXL ", wording.other_picture("JPEG XL")),
    (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", wording.other_picture("JPEG 2000")),
    (rb"8BPS\0", wording.other_picture("Photoshop's format")),
)
"""Files that nothing here reads, by their first bytes, and what to do about them."""
_MARKUP = re.compile(
    r"<\s*(?:!doctype|html|head|body|meta|title|script|div|p|article|main)\b", re.IGNORECASE
)
_BYTE_ORDER = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # its mark begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LABEL = re.compile(
    r"(?i)(?:^|<meta\s|<\?xml\s)[^>]{0,300}?(?:charset|encoding)\s*=[\s\"']*([\w.:-]{1,40})"
)
_HEAD = 4_096
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "utf-16": "utf-16-le",
}
"""What browsers read by a wider charset (https://encoding.spec.whatwg.org), in the names of Python."""
_CHARSETS = r"utf-8|utf-16-..|cp\d{3,4}|iso8859-\d+|koi8-.|mac-\w+|big5hkscs|euc_jp|gb18030|iso2022_jp"
"""Of Python's other codecs some are no charsets, and the time of some grows with a text's square."""
_LIKE_ASCII = {"iso2022_jp": b"\x1b", "utf-16-le": b"\0", "utf-16-be": b"\0"}
"""Charsets whose bytes may be UTF-8 as well, and a byte that tells them from it."""
_SAMPLE = 20_000
_PIECE = 2**16
_SCRIPTS = (
    ("EUC-KR", "cp949", rb"[\xa1-\xa3\xb0-\xc8][\xa1-\xfe]"),
    ("Shift_JIS", "cp932", rb"[\x81-\x83\x88-\x97][\x40-\xfc]"),
    ("GB18030", "gb18030", rb"[\xa1\xa3\xb0-\xd7][\xa1-\xfe]"),
    ("EUC-JP", "euc_jp", rb"[\xa1\xa3-\xa5\xb0-\xcf][\xa1-\xfe]"),
    ("Big5", "big5hkscs", rb"[\xa1-\xc6][\x40-\x7e\xa1-\xfe]"),
    ("windows-1251", "cp1251", rb"[\xe0-\xff]"),
    ("windows-1253", "cp1253", rb"[\xdc-\xfe]"),
    ("KOI8-R", "koi8-r", rb"[\xc0-\xdf]"),
)
"""Charsets, and what is frequent in them: syllables, ideographs of the first level, small letters."""
_STRAY = (
    rb"[\x81\x83\x8d\x8f\x90\x98\x9d\x9f\xd0\xde\xf0\xfd-\xff]|[\xc2\xc3\xe2\xe3\xef](?![A-Za-z])"
    rb"|(?<!\d)\x80(?! ?\d)"
)
"""Bytes that hardly a text in Windows-1252 has: noise, and characters of UTF-8 that were cut in two."""
_ODD = [*map(chr, (*range(8), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F, 0xFFFD))]
_MOST_ODD = 1 / 20


def kind_of(content: bytes, media: str = "") -> Kind | None:
    """Return how a file is read, `media` being its `Content-Type`; `None` where nothing here reads it.

    Word, PowerPoint and Excel files are ZIP archives that begin with a list of their content types or
    with one of the parts that it names.
    """
    if b"%PDF-" in content[:PDF_HEADER]:
        return "pdf"
    if _PICTURE.match(content):
        return "picture"
    if content.startswith(b"PK\x03\x04"):
        parts = (b"word/", b"ppt/", b"xl/")
        is_office = b"[Content_Types].xml" in content and any(part in content for part in parts)
        return "office" if is_office else None
    if any(re.match(sign, content) for sign, _ in _OTHERS):
        return None
    return "text" if text_of(content, media) else None


def page_kind(text: str, media: str) -> Kind:
    is_plain = "html" not in media and media.startswith("text/")
    return "page" if not is_plain and _MARKUP.search(text[:PDF_HEADER]) else "text"


def why_unread(content: bytes) -> str:
    known = (why for sign, why in _OTHERS if re.match(sign, content))
    return next(known, "neither text, PDF nor a picture")


def text_of(content: bytes, media: str = "") -> tuple[str, str | None] | None:
    """Return a file's text, and in a few words what was guessed or replaced; `None` if it is no text.

    `media` is the `Content-Type` that came with it.
    """
    text, charset, is_whole = _decoded(content, media)
    odd = text.count("\0") if is_whole else sum(map(text.count, _ODD))
    if odd > max(len(text) * _MOST_ODD, len(text) > 7):
        return None
    lost = text.count("\0") + (0 if is_whole else text.count("\ufffd"))
    said = (
        f"read as {charset}" if charset else "",
        f"{count(lost, 'unreadable byte')} replaced" if lost else "",
    )
    return text.replace("\0", "\ufffd"), "; ".join(filter(None, said)) or None


def _decoded(content: bytes, media: str) -> tuple[str, str | None, bool]:
    """Return a text, its charset if that is a guess, and whether every byte is known to be text."""
    for mark, codec in _BYTE_ORDER:
        if content.startswith(mark):
            text = _replaced(content[len(mark) :], codec)
            return text, None, "\ufffd" not in text
    head = content[:_HEAD]
    labels = _LABEL.findall(media) + _LABEL.findall(head.decode("latin-1"))
    named = [*filter(None, map(_codec, labels))]
    # Many servers name one charset for all their pages; a text of any length isn't UTF-8 by accident.
    order = [codec for codec in named if _LIKE_ASCII.get(codec, b"\xff\xff") in head]
    order += ["utf-8", *(codec for codec in named if codec not in _LIKE_ASCII)]
    for codec in order:
        with suppress(UnicodeDecodeError):
            return content.decode(codec), None, True
    for codec in order:
        text = _replaced(content, codec)
        if text.count("\ufffd") * 2 <= _foreign(text):
            return text, None, False
    charset, codec = _guess(content)
    return _replaced(content, codec), charset, False


def _replaced(content: bytes, codec: str) -> str:
    """Decode with what isn't text replaced; in pieces, for nothing else runs while one is decoded."""
    pieces = (content[at : at + _PIECE] for at in range(0, len(content), _PIECE))
    return "".join(codecs.iterdecode(pieces, codec, "replace"))


def _codec(label: str) -> str | None:
    bare = re.sub(r"^x-|_", "", label.lower())
    for name in (label, {"windows-31j": "cp932", "windows-874": "cp874"}.get(bare, bare)):
        with suppress(LookupError):
            codec = codecs.lookup(name).name
            codec = _READ_AS.get(codec, codec)
            return codec if re.fullmatch(_CHARSETS, codec) else None
    return None


def _foreign(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _guess(content: bytes) -> tuple[str | None, str]:
    """Return the charset that bytes which aren't UTF-8 are most likely in, for people and as a codec."""
    first = re.search(rb"[\x80-\xff]", content)
    start = max(0, first.start() - 2) if first else 0
    sample = content[start : start + _SAMPLE]

    def share(codec: str, frequent: bytes) -> float:
        try:
            text = codecs.getincrementaldecoder(codec)().decode(sample, len(sample) < _SAMPLE)
        except UnicodeDecodeError:
            return 0.0
        return min(1.0, len(re.findall(frequent, sample)) / max(1, _foreign(text)))

    runs = [*map(len, re.findall(rb"[\x80-\xff]+", sample))]
    # Accented letters are single ones among others; the words of another script have no others.
    if sum(run for run in runs if run > 2) * 2 >= sum(runs):
        charset, codec, frequent = max(_SCRIPTS, key=lambda row: share(*row[1:]))
        if share(codec, frequent) > 0.75:
            return charset, codec
    is_rare = sum(runs) <= max(1, len(content) * _MOST_ODD)
    is_noise = is_rare and len(re.findall(_STRAY, sample)) * 2 >= sum(runs)
    # Western letters are mostly ASCII; what isn't is another script, or nothing.
    if is_noise or sum(runs) * 2 > len(sample):
        return None, "utf-8"
    return "Windows-1252", "cp1252"
