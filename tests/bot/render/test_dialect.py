"""Somebody's Markdown in each platform's dialect, by exact text."""

import pytest
from hypothesis import example, given

from bot.discord.text import DIALECT as DISCORD
from bot.render.dialect import (
    ChatDialect,
    blocks,
    code_span,
    drawn_table,
    grid_of,
    plain_text,
    words,
)  # fmt: skip
from bot.render.splitting import Text, split
from bot.slack.markdown import DIALECT as SLACK
from bot.view.message import Line, Table
from tests.bot.shown import text as shown
from tests.bot.shown import written
from tests.fragments import made_of
from tests.pairs import data, rows


@rows(("markdown", "discord", "slack"), data(__file__, "markdown_is_written_again"))
def test_markdown_is_written_again(markdown: str, discord: str, slack: str) -> None:
    """Each construct has one form; signs that aren't markup are shown as text."""
    assert written(markdown, DISCORD) == discord
    assert written(markdown, SLACK) == slack


@rows(
    ("markdown", "discord", "slack"),
    data(__file__, "a_link_shows_its_target_unless_its_text_names_it"),
)  # fmt: skip
def test_a_link_shows_its_target_unless_its_text_names_it(
    markdown: str, discord: str, slack: str
) -> None:
    """A text that looks like another address, an invitation, and other schemes than the web's show their target."""
    assert written(markdown, DISCORD) == discord
    assert written(markdown, SLACK) == slack


def test_long_code_can_be_cut() -> None:
    """A line of code as long as a paragraph is cut at its spaces, and stays code."""
    code = "word " * 30 + "end"
    parts = split(blocks(f"`{code}`", SLACK), 60, len)
    assert all(part.startswith("`word") and part.endswith("`") for part in parts)
    assert " ".join(shown(part).strip() for part in parts) == code
    assert written(f"``{code} ` tick``", SLACK) == f"{code} \\` tick"


@rows(
    ("code", "span"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("a``b", "`a``b`"), (" a ", "`  a  `")],
)
def test_code_is_fenced_with_enough_backticks(code: str, span: str) -> None:
    """It reads as the same code."""
    assert code_span(code) == span
    assert shown(span) == code


def test_deep_nesting_is_shown_as_code_and_headings_end() -> None:
    """The parser would drop deeper text; without a level left, headings are bold lines."""
    *_, deepest, end = written(f"{'>' * 29}deep `x`\n\nEnd.", SLACK).split("\n\n")
    assert deepest == "\n".join("> " * 24 + line for line in ("```", ">>>>>deep `x`", "```"))
    assert end == "End."
    assert written("# A\n\n## B", DISCORD, 2) == "### A\n\n**B**"


def test_neighbours_make_no_mention_and_plain_text_has_no_markup() -> None:
    """An `@` before a link's text that is shown without the link stays alone; plain text has one line per block."""
    assert written("!![a](https://x.y/z)", DISCORD) == "!\u200b[a](<https://x.y/z>)"
    assert written("\\![a](https://x.y/z)", SLACK) == "!\u200b[a](https://x.y/z)"
    assert written("@[everyone](/x)", DISCORD) == "@\u200beveryone (/x)"
    assert written("@![everyone](/x)", DISCORD) == "@\u200beveryone (/x)"
    markdown = "# A\n\n**b** [c](https://d.e) `f`\n\n- g\n- h\n\n```sh\ni\n```"
    assert plain_text(markdown) == "A\nb c f\ng\nh\ni"


@pytest.mark.parametrize("dialect", [DISCORD, SLACK])
@given(text=made_of([*"`*_[]<>#+-.!|~&\\()=:1aé ", "```", "&amp;", "1. ", "<b>", "](x)", "@", "||"], 20))
@example(text="<+@1>")
def test_a_line_of_ours_shows_as_it_is(dialect: ChatDialect, text: str) -> None:
    """A reader sees exactly that text, whatever it is."""
    line = Line(text).text
    assert "".join(map(shown, split([Text(words(line, dialect))], 100_000, len))) == line


def drawn(table: Table, width: int) -> str:
    return "".join(split([drawn_table(grid_of(table, DISCORD), DISCORD, width)], 2_000, len))


def test_a_table_is_aligned_code_or_a_list_by_its_width() -> None:
    """Wide letters count as two columns; of a list, the columns' names are above it, once, and what a row is about is bold."""
    table = Table(("Rank", "Member"), (("1st", "\u6f22\u5b57"), ("2nd", "a|b")))
    assert drawn(table, 12) == "```\nRank  Member\n----  ------\n1st   \u6f22\u5b57\n2nd   a|b\n```"
    table = Table(("Rank", "", "Why"), (("1st", "gpt_5*", "good"), ("2nd", "b", "")))
    assert drawn(table, 11) == (
        "**Rank** \u00b7  \u00b7 **Why**\n- **1st** \u00b7 gpt_5\\* \u00b7 good\n- **2nd** \u00b7 b \u00b7 "
    )
    table = Table(("Rank", "Member"), ())
    assert drawn(table, 12) == "```\nRank  Member\n----  ------\n```"
    assert drawn(table, 5) == "**Rank** \u00b7 **Member**"


def test_a_long_table_repeats_its_head() -> None:
    """Every part says what its columns are."""
    table = Table(("No", "Name"), tuple((str(number), "x" * 8) for number in range(10, 20)))
    parts = split([drawn_table(grid_of(table, DISCORD), DISCORD, 60)], 85, len)
    assert len(parts) == 3
    assert all(part.startswith("```\nNo  Name\n--  --------\n1") for part in parts)
    assert all(part.endswith("\n```") for part in parts)


@rows(
    ("cell", "shown"),
    [
        ("[docs](https://x.example/d)", "[docs](<https://x.example/d>)"),
        ("![plan](https://x.example/p.png)", "[plan](<https://x.example/p.png>)"),
        ("[**a** `b`](https://x.example)", "[**a** `b`](<https://x.example>)"),
        ("[Ada](mailto:ada@x.example)", "Ada (mailto:ada@x.example)"),
        ("[x.example](https://y.example)", "x.example (<https://y.example>)"),
        ("[d][1]", "[d](<https://z.example>)"),
    ],
)
def test_a_table_with_links_is_a_list(cell: str, shown: str) -> None:
    """Code would hide where they lead; what shows its address is code."""
    table = f"| No | Where |\n|---|---|\n| 1 | {cell} |\n\n[1]: https://z.example"
    assert written(table, DISCORD) == f"**No** \u00b7 **Where**\n- **1** \u00b7 {shown}"
    assert shown not in written(table.replace(cell, "https://x.example"), DISCORD)
    assert written(table.replace(cell, "<https://x.example>"), DISCORD).startswith("```\nNo  Where")
