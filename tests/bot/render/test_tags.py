"""The HTML that models write within a line, on both platforms and in the transcript."""

import pytest

from bot.discord.text import DIALECT as DISCORD
from bot.slack.markdown import DIALECT as SLACK
from tests.bot.shown import written


@pytest.mark.parametrize(
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
        ("<!--\n# TODO\n\n- more\n-->\n\nhi", "hi"),
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
def test_what_models_write_is_read(markdown: str, shown: str) -> None:
    """Marks, code, raised and lowered signs; what chat can't show loses its tags alone."""
    assert written(markdown, DISCORD) == shown


@pytest.mark.parametrize(
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
