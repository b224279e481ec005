"""The files of a question: which of them are fetched, and why the rest isn't."""

from bot.inputs.limits import DOCUMENT_BYTES
from bot.service.inputs import LARGEST_TOGETHER, MOST_FILES, admitted
from council.brief import SentFile


def sent(name: str, size: int = 1) -> SentFile:
    return SentFile(name=name, size=size)


def reasons(*files: SentFile) -> list[str | None]:
    """Return why each file isn't fetched."""
    return [file.why for file in admitted(files)]


def test_the_first_files_are_taken() -> None:
    """Hundreds of names are nobody's question."""
    said = reasons(*(sent(f"{number}.md") for number in range(400)))
    assert said == [None] * MOST_FILES + ["only 10 files are read"] * 390


def test_files_are_limited_together() -> None:
    """A smaller one after it still fits."""
    half = LARGEST_TOGETHER // 2
    files = (sent("a", half), sent("b", half - 10), sent("c", half), sent("d", 10), sent("e"))
    assert reasons(*files) == [
        None,
        None,
        "the files together exceed 40 MB",
        None,
        "the files together exceed 40 MB",
    ]


def test_a_file_that_is_too_large_does_not_count() -> None:
    """Neither toward the number nor toward the size."""
    files = (sent("huge.log", DOCUMENT_BYTES + 1), *(sent(str(number)) for number in range(10)))
    assert reasons(*files) == ["larger than 20 MB", *[None] * 10]


def test_a_name_is_one_short_line_without_control_characters() -> None:
    """It is shown, and it is in prompts."""
    hostile = f"a\x1b[2J\r\n\u2028b\x9b{'c' * 300}.md"
    [file] = admitted([sent(hostile)])
    assert file.name == f"a[2J b{'c' * 93}\u2026"
