"""Headings, rules and tables as models write them, on both platforms."""

import pytest

from bot.discord.text import DIALECT as DISCORD
from bot.slack.markdown import DIALECT as SLACK
from tests.bot.shown import written

RULE = "\u2500" * 10


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("##Heading\ntext", "## Heading\n\ntext"),
        ("###\u6807\u9898", "### \u6807\u9898"),
        ("a\n##**B** c ##\nd", "a\n\n## **B** c\n\nd"),
        ("#hashtag", "#hashtag"),
        ("##[group]", "##\\[group\\]"),
        ("    ##x", "```\n##x\n```"),
        ("Short title\n---\nb", "## Short title\n\nb"),
        ("It is a sentence.\n---\nb", f"It is a sentence.\n\n{RULE}\n\nb"),
        ("two\nlines\n---\nb", f"two\nlines\n\n{RULE}\n\nb"),
        (f"{'long ' * 17}\n---", f"{('long ' * 17).strip()}\n\n{RULE}"),
        ("It is a sentence.\n===", "# It is a sentence."),
    ],
)
def test_headings_and_rules(markdown: str, shown: str) -> None:
    """A heading needs no space below level 1, and a rule no blank line above it."""
    assert written(markdown, DISCORD) == shown


@pytest.mark.parametrize(
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
    """What follows is read as it is, also with more pipes than the table has, and in a quote."""
    table = "| a |\n| --- |\n| 1 |"
    assert written(f"{table}\nafter", SLACK) == f"{table}\n\nafter"
    assert written(f"{table}\n# b | c | d", SLACK) == f"{table}\n\n# b \\| c \\| d"
    assert written("> | a |\n> |---|\n> | `1|2` |\n> end", DISCORD).endswith("> 1|2\n> ```\n> \n> end")
