"""What a file is by its content, whatever its name says."""

from hypothesis import given
from hypothesis import strategies as st

from bot.inputs.kinds import Kind, kind_of, text_of, why_unread
from tests.bot.inputs.pdfs import lines, pdf
from tests.bot.inputs.pictures import animated, plain
from tests.pairs import rows


@rows(
    ("content", "kind"),
    [
        (b"Hello", "text"),
        (b"", "text"),
        (pdf([lines("Hello")]), "pdf"),
        (b"junk before\n" + pdf([lines("Hello")]), "pdf"),
        (plain(60, 40), "picture"),
        (plain(60, 40, form="JPEG"), "picture"),
        (plain(60, 40, form="WEBP"), "picture"),
        (animated(), "picture"),
        (plain(60, 40, form="TIFF"), "picture"),
        (b"MM\0*\0\0\0\x08", "picture"),
        (plain(60, 40, form="BMP"), "picture"),
        (plain(60, 40, form="AVIF"), "picture"),
        (b"\0\0\0\x20ftypmif1\0\0\0\0mif1avif", "picture"),
        (b"BMW and others", "text"),
        (b"II and III", "text"),
        (b"MM is no mark", "text"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"PK\x03\x04 [Content_Types].xml word/document.xml", "office"),
        (b"PK\x03\x04 notes.txt", None),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", None),
        (b"a\0b", None),
    ],
)
def test_a_kind_is_told_by_content(content: bytes, kind: Kind | None) -> None:
    """A PDF whose bytes happen to be text is a PDF."""
    assert kind_of(content) == kind


def test_a_pdf_of_text_alone_is_no_text() -> None:
    """Its bytes are."""
    content = pdf([lines("Hello")])
    assert text_of(content) is not None
    assert kind_of(content) == "pdf"


@rows(
    ("content", "why"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "an Office file of before 2007; send it as PDF"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "a picture in HEIC; send it as JPEG or PNG"),
        (b"\0\0\0\x18ftyphevc\0\0\0\0", "a picture in HEIC; send it as JPEG or PNG"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "a picture in HEIC; send it as JPEG or PNG"),
        (b"\xff\x0a\xfa\x7f\x01", "a picture in JPEG XL; send it as JPEG or PNG"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "a picture in JPEG XL; send it as JPEG or PNG"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "a picture in JPEG 2000; send it as JPEG or PNG"),
        (b"8BPS\0\x01", "a picture in Photoshop's format; send it as JPEG or PNG"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0", "neither text, PDF nor a picture"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "neither text, PDF nor a picture"),
        (bytes(range(256)), "neither text, PDF nor a picture"),
    ],
)
def test_what_nothing_reads_is_named(content: bytes, why: str) -> None:
    """With what to send in its place, where that is known."""
    assert kind_of(content) is None
    assert why_unread(content) == why


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_text_survives_its_encoding(text: str) -> None:
    """In each form that has a mark."""
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert text_of(text.encode(encoding)) == (text, None)
