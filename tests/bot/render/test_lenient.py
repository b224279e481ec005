"""Headings, rules, tables and HTML as models write them, on both platforms."""

from bot.discord.text import DIALECT as DISCORD
from bot.slack.markdown import DIALECT as SLACK
from tests.bot.shown import written
from tests.pairs import rows

RULE = "\u2500" * 10


@rows(
    ("markdown", "shown"),
    [
        ("##Heading\ntext", "## Heading\n\ntext"),
        ("###\u6807\u9898", "### \u6807\u9898"),
        ("a\n##**B** c ##\nd", "a\n\n## **B** c\n\nd"),
        ("#hashtag", "#hashtag"),
        ("##[group]", "##\\[group\\]"),
        ("    ##x", "```\n##x\n```"),
        ("##Closed##", "## Closed"),
        ("> ##Quoted\n\n- ###x", "> **Quoted**\n\n- **x**"),
        ("~~~\n##x\n> ~~~\n##y\n~~~~\n##z", "```\n##x\n> ~~~\n##y\n```\n\n## z"),
        ("> ```\n> ##x\n##y", "> ```\n> ##x\n> ```\n\n## y"),
        ("| a |\n|---|\n| 1 |\nTitle\n---\nb", "```\na\n-\n1\n```\n\n## Title\n\nb"),
        (
            "1. a\n\n    ```\n    a | b\n    --- | ---\n    It is.\n    ---\n    ##x\n    ```\n    ##y",
            "1. a\n\n   ```\n   a | b\n   --- | ---\n   It is.\n   ---\n   ##x\n   ```\n\n   **y**",
        ),
        ("- a\n\n      ##x\n\n      It is.\n      ---", "- a\n\n  ```\n  ##x\n\n  It is.\n  ---\n  ```"),
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


@rows(
    ("markdown", "shown"),
    [
        ("<b>a *b*</b> <EM>c</EM> <del>d</del>", "**a *b*** *c* ~~d~~"),
        ("H<sub>2</sub>O, 10<sup>-12</sup>, x<sup>n</sup>", "H₂O, 10⁻¹², x^n"),
        ("4<sup>th</sup>, v<sub>max</sub>", "4th, v\\_(max)"),
        ("<kbd>Ctrl</kbd>+<code>a < b</code>", "`Ctrl`+`a < b`"),
        ("<u>under</u> <mark>m</mark>", "under m"),
        ("[<b>l</b>](https://x.y)", "[**l**](<https://x.y>)"),
        ("<b>*x</b>*", "**\\*x**\\*"),
        ("<details><summary>More</summary>it</details>", "**More**\nit"),
        ("<details open>\n<summary>More</summary>\n\nit\n\n</details>", "**More**\n\nit"),
        ("it</details>\nb", "it\nb"),
        ("a<!-- x --> b", "a b"),
        ("A\n<!-- x -->\nB <!-- y --> C", "A\nB  C"),
        ("<!-- a --> t <!-- b -->u", "t u"),
        ("<!--\n# Later\n\n- more\n-->\n\nhi", "hi"),
        ("> <!-- a\n>\n> c -->\n> b", "> b"),
        ('<span style="color: red">red *x*</span> y', "red *x* y"),
        ('<font color="red">**a**</font> <SPAN>b</SPAN>', "**a** b"),
        ('<div align="center">\n\n# T\n\n</div>\n\nb', "# T\n\nb"),
        ('<div align="center">\n  <b>Hi</b>\n</div>', "**Hi**"),
        ('<p align="center">a</p>\n<center>b</center>', "a\nb"),
        ("> [!NOTE]\n> a\n> b", "> **Note**\n> a\n> b"),
        ("> [!warning]- Careful *now*", "> **Warning** Careful *now*"),
        ("> [!TIP]\n>\n> - a", "> **Tip**\n> \n> - a"),
        ("> [!IMPORTANT]", "> **Important**"),
    ],
)
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
