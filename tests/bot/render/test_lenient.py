"""Headings, rules, tables and HTML as models write them, on both platforms."""

from bot.discord.text import DIALECT as DISCORD
from bot.slack.markdown import DIALECT as SLACK
from tests.bot.shown import written
from tests.pairs import data, rows


@rows(("markdown", "shown"), data(__file__, "headings_and_rules"))
def test_headings_and_rules(markdown: str, shown: str) -> None:
    """A heading needs no space below level 1, and a rule no blank line above it."""
    assert written(markdown, DISCORD) == shown


@rows(
    ("rows", "shown"),
    [
        ("| `a || b` | or |", "| `a \\|\\| b` | or |"),
        ("| `x|y` | `z` |\n| a \\| b | c |", "| `x\\|y` | `z` |\n| a \\| b | c |"),
        ("| 1 | 2 | 3 | 4 |", "| 1 | 2 \\| 3 \\| 4 |"),
        (" 1 | `2|3`", "| 1 | `2\\|3` |"),
        ("| ` | ` |", "| \\` | \\` |"),
        ("| 1 |", "| 1 |  |"),
    ],
)
def test_no_cell_is_lost(rows: str, shown: str) -> None:
    """A pipe in code divides none; what is too much stays in the last cell."""
    assert written(f"| a | b |\n|---|---|\n{rows}", SLACK) == f"| a | b |\n| --- | --- |\n{shown}"


def test_a_table_ends_where_its_pipes_end() -> None:
    """What follows is read as it is, also with more pipes than the table has, in a quote and a list."""
    nested = "1. x\n\n    | a | b |\n    |---|---|\n    | `x|y` | z |\n    end"
    assert written(nested, SLACK).endswith("   ```\n   a    b\n   ---  -\n   x|y  z\n   ```\n\n   end")
    table = "| a |\n| --- |\n| 1 |"
    assert written(f"{table}\nafter", SLACK) == f"{table}\n\nafter"
    assert written(f"{table}\n# b | c | d", SLACK) == f"{table}\n\n# b \\| c \\| d"
    assert written("> | a |\n> |---|\n> | `1|2` |\n> end", DISCORD).endswith("> 1|2\n> ```\n> \n> end")


@rows(("markdown", "shown"), data(__file__, "tags_that_models_write_are_read"))
def test_tags_that_models_write_are_read(markdown: str, shown: str) -> None:
    """Marks, code, raised and lowered signs; what chat can't show loses its tags alone."""
    assert written(markdown, DISCORD) == shown


@rows(
    "text",
    [
        "use a <b> tag, and </b> after it",
        "List<String> and <T>",
        "<b></b> <b> </b>",
        '<b class="x">y</b>',
        "the <details> element",
        f"<b>{'x' * 2_000}</b>",
        "`<b>x</b>`",
        "wrap it in a <div> and a <span>\nnow",
        "List<span>, <spanner>x</spanner>",
        "<!-- no end",
        "`<!-- x -->`",
        "```\n<!-- x -->\n\n-->\n```",
        "see [!NOTE](https://x.example)",
    ],
)
def test_a_tag_that_somebody_writes_about_is_text(text: str) -> None:
    """Alone, empty, with attributes, too far from its end, or in code."""
    assert written(text, SLACK).replace("&lt;", "<") == text
