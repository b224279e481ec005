"""What a correction changed, marked in both texts as they are read."""

import re

import pytest
from hypothesis import given

from bot.transcript.prose import correction, html
from tests.bot.render.bombs import EACH, bomb
from tests.bot.render.long_answer import answer
from tests.fragments import made_of
from tests.pairs import data, rows

FRAGMENTS = [
    "move ", "the ", "jobs", " ", "\n", "\n\n", ", ", ".", "- ", "1. ", "**", "`", "~~", "> ", "# ", "<b>", "&",
    "| a | b |\n| - | - |\n| 1 | 2 |\n", "```\nx = 1\n```\n", "[a](https://b.c)", "https://d.e ", "![p](https://f.g)",
    "\\\n", "日本",
]  # fmt: skip
TEXTS = made_of(FRAGMENTS, 30)
SHORTER = 6_000


def marked(before: str, after: str) -> tuple[str, str]:
    return correction(before, after, 3)


def without_marks(page: str) -> str:
    return re.sub("</?(del|ins)>", "", page)


def unchanged(page: str) -> list[str]:
    """Return the words that both texts are said to have, without our brackets around addresses."""
    return (
        re.sub("<(del|ins)>.*?</\\1>|<[^>]*>", "", page, flags=re.DOTALL)
        .replace("(", "")
        .replace(")", "")
        .split()
    )


@rows(
    ("before", "after", "first", "second"),
    data(__file__, "words_are_marked_where_they_are_read"),
    ids=["paragraph", "list", "code", "address", "form alone", "HTML"],
)  # fmt: skip
def test_words_are_marked_where_they_are_read(before: str, after: str, first: str, second: str) -> None:
    """Within paragraphs, lists, code and what a link shows; a change of form alone isn't marked."""
    assert marked(before, after) == (first, second)


def test_a_cell_is_marked_in_its_table_and_a_list_keeps_its_words() -> None:
    """The rest of a row stays unmarked, and a new row is all new; only what is new in a list is marked."""
    table = "| way | cost |\n| - | -: |\n| cron | 1 |\n"
    first, second = marked(table, table.replace("| 1 |", "| 2 |") + "| Temporal | 9 |\n")
    assert '<td>cron</td>\n<td class="right"><del>1</del></td>' in first
    assert '<td>cron</td>\n<td class="right"><ins>2</ins></td>' in second
    assert '<td><ins>Temporal</ins></td>\n<td class="right"><ins>9</ins></td>' in second
    first, second = marked(
        "Pin versions. Test nightly.", "- Pin versions.\n- Test nightly, and alert.\n"
    )
    assert "del" not in first
    assert second.count("<ins>") == 1
    assert "<ins>, and alert</ins>" in second


@given(TEXTS, TEXTS)
def test_marks_are_all_that_a_diff_adds(before: str, after: str) -> None:
    """Otherwise both texts are as without a diff; unmarked text is in both."""
    first, second = marked(before, after)
    assert without_marks(first) == html(before, 3)
    assert without_marks(second) == html(after, 3)
    assert "".join(unchanged(first)) == "".join(unchanged(second))


@pytest.mark.parametrize("kind", EACH)
def test_a_text_made_to_be_slow_is_marked(kind: str) -> None:
    """The work is limited as without a diff, and only the marks make the page longer."""
    text = bomb(kind, SHORTER)
    first, second = marked(text, f"New. {text[len(text) // 2 :]}")
    assert without_marks(first) == html(text, 3)
    assert len(first) + len(second) <= 2 * (60 * len(text) + 10_000)


def test_a_long_answer_is_marked_whole() -> None:
    """With every construct that answers contain."""
    before = answer(12_000)
    after = before.replace("the ", "a ").replace("is", "was")
    first, second = marked(before, after)
    assert first.count("<del>") == second.count("<ins>") > 20
