"""The files of a question: how many, how large, and what people read about the rest."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import NotTaken
from bot.service.requests.attachments import (
    LARGEST_FILE,
    LARGEST_TOGETHER,
    MOST_FILES,
    admitted,
    sorted_out,
    text_file,
)
from council.brief import Attachment
from council.text.encodings import decoded


@dataclass(frozen=True, slots=True)
class File:
    """A file as a platform announces it."""

    name: str
    size: int = 1


def looked_at(*files: File) -> list[File | NotTaken]:
    """Choose among files."""
    return admitted(files, name=lambda file: file.name, size=lambda file: file.size)


def left_out(*files: File) -> str | None:
    """Return which of these files are left out."""
    return sorted_out(
        file if isinstance(file, NotTaken) else Attachment(name=file.name, text="")
        for file in looked_at(*files)
    )[1]


def test_the_first_files_are_taken_and_the_rest_is_counted() -> None:
    """Hundreds of names wouldn't be readable."""
    files = [File(f"{number}.md") for number in range(400)]
    taken = [file for file in looked_at(*files) if isinstance(file, File)]
    assert taken == files[:MOST_FILES]
    assert left_out(*files) == ("Left out: 10.md, 11.md, 12.md and 387 more (only 10 files are read).")


def test_files_are_limited_together() -> None:
    """A smaller one after it still fits."""
    half = LARGEST_TOGETHER // 2
    files = (File("a", half), File("b", half - 10), File("c", half), File("d", 10), File("e"))
    taken = [file for file in looked_at(*files) if isinstance(file, File)]
    assert [file.name for file in taken] == ["a", "b", "d"]
    assert left_out(*files) == "Left out: c and e (the files together exceed 400 kB)."


def test_a_file_that_is_too_large_does_not_count() -> None:
    """Neither toward the number nor toward the size."""
    files = (File("huge.log", LARGEST_FILE + 1), *(File(str(number)) for number in range(10)))
    assert left_out(*files) == "Left out: huge.log (larger than 200 kB)."


def test_a_name_is_one_short_line_without_control_characters() -> None:
    """It is shown, and it is in prompts."""
    hostile = f"a\x1b[2J\r\n\u2028b\x9b{'c' * 300}.md"
    assert text_file(hostile, b"text").name == f"a[2J b{'c' * 93}\u2026"
    with pytest.raises(NotTaken, match=r"^a\[2J bc+\u2026 is not text\. Attach") as refused:
        text_file(hostile, b"\0")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_text_is_read_by_its_mark(encoding: str) -> None:
    """PowerShell's `>` writes UTF-16; line ends stay as they are."""
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    content = f"{mark}Größe: 3 TB 🚀\r\n".encode(encoding)
    assert text_file("plan.txt", content).text == "Größe: 3 TB 🚀\r\n"


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
    with pytest.raises(NotTaken, match="is not text"):
        text_file("plan.txt", content)


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_text_survives_its_encoding(text: str) -> None:
    """In each form that has a mark."""
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert decoded(text.encode(encoding)) == text
