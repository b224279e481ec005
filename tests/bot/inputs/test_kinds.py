"""What a file is by its content, whatever its name says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.inputs.kinds import Kind, is_old_office, kind_of, text_of
from tests.bot.inputs.pdfs import lines, pdf
from tests.bot.inputs.pictures import animated, plain


@pytest.mark.parametrize(
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


def test_old_office_files_are_known() -> None:
    """They are named as such."""
    assert is_old_office(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_text_is_read_by_its_mark(encoding: str) -> None:
    """PowerShell's `>` writes UTF-16; line ends stay as they are."""
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    content = f"{mark}Größe: 3 TB 🚀\r\n".encode(encoding)
    assert text_of(content) == "Größe: 3 TB 🚀\r\n"


@pytest.mark.parametrize(
    "content",
    [
        "Größe".encode("cp1252"),
        "Größe".encode("utf-16-le"),
        b"\xff\xfeo",
        b"\xff\xfe\x00\xd8\x41\x00",
        b"\xfe\xff\x00\x00",
    ],
)
def test_nothing_is_guessed(content: bytes) -> None:
    """Without a mark, in half a character, or with a NUL it is no text."""
    assert text_of(content) is None


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_text_survives_its_encoding(text: str) -> None:
    """In each form that has a mark."""
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert text_of(text.encode(encoding)) == text
