"""Slack's `markdown` blocks: counted as Slack stores them, with one table each, without mentions."""

import pytest
from hypothesis import given

from bot.render.dialect import blocks
from bot.slack.markdown import DIALECT, MarkdownPiece, pieces
from tests.fragments import made_of
from tests.pairs import data, rows
from tests.slack_server.blocks import checked
from tests.slack_server.rules import Refused, Rules

TABLE = "| a | b |\n| - | - |\n| 1 | 2 |\n\n"


def cut(markdown: str, limit: int = 11_000) -> list[MarkdownPiece]:
    return [*pieces(blocks(markdown, DIALECT), limit)]


@rows(("text", "written"), data(__file__, "what_means_something_to_slack_shows_as_text"))
def test_what_means_something_to_slack_shows_as_text(text: str, written: str) -> None:
    """In text, brackets become entities; code keeps its brackets, with a joiner in a mention."""
    assert cut(text) == [MarkdownPiece(written, 1, 0)]


@pytest.mark.parametrize(
    "table",
    [
        "| a |\n|-|\n" + "| b |\n" * 100,
        "| a " * 21 + "|\n" + "|-" * 21 + "|\n",
        f"| a |\n|-|\n| {'word ' * 2_000} |\n",
        f"- x\n\n  {TABLE}",
    ],
)
def test_a_table_that_slack_refuses_is_written_as_code(table: str) -> None:
    """Too many rows or columns, too long, or within a list."""
    assert all(piece.tables == 0 and "| --- |" not in piece.text for piece in cut(table))


@given(
    made_of(["## A\n\n", "---\n\n", TABLE, "text\n\n", "- a\n", "> q\n\n", "```\nx\n```\n\n", "\n"], 80)
)
def test_blocks_are_counted_as_slack_stores_them(markdown: str) -> None:
    """Each piece is accepted, and has exactly the number of blocks it states."""
    for piece in cut(markdown):
        message = [{"type": "markdown", "text": piece.text}]
        checked(message + [{"type": "divider"}] * (50 - piece.stored), Rules())
        with pytest.raises(Refused):
            checked(message + [{"type": "divider"}] * (51 - piece.stored), Rules())


def test_a_piece_does_not_end_with_a_heading() -> None:
    """A heading at the end moves to the next piece."""
    first, second = cut("## A\n\ntext\n\n" * 20)
    assert first.stored == 30
    assert first.text.endswith("text")
    assert second.text.startswith("## A")
    text = "word " * 10
    assert [piece.text[:4] for piece in cut(f"{text}\n\n## A\n\n{text}", 70)] == ["word", "## A"]
