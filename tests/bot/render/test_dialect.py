"""Somebody's Markdown in each platform's dialect, by exact text."""

import pytest
from hypothesis import example, given

from bot.discord.text import DIALECT as DISCORD
from bot.render.dialect import ChatDialect, blocks, code_span, plain_text, words
from bot.render.splitting import Text, split
from bot.slack.markdown import DIALECT as SLACK
from bot.view.message import Line
from tests.bot.shown import text as shown
from tests.bot.shown import written
from tests.fragments import made_of


@pytest.mark.parametrize(
    ("markdown", "discord", "slack"),
    [
        ("One\ntwo  \nthree", "One\ntwo\nthree", "One\ntwo  \nthree"),
        ("__a__ *b* _c_ ~~d~~ `e`", "**a** *b* *c* ~~d~~ `e`", "**a** *b* *c* ~~d~~ `e`"),
        ("**a **b** c**", "**a b c**", "**a b c**"),
        ("A\nb\n===", "# A b", "# A b"),
        ("# A #", "# A", "# A"),
        ("#### A", "**A**", "**A**"),
        ("    code\n     more", "```\ncode\n more\n```", "```\ncode\n more\n```"),
        ("~~~ sh x=1\nls\n~~~", "```sh\nls\n```", "```sh\nls\n```"),
        ("```\nopen", "```\nopen\n```", "```\nopen\n```"),
        ("```\n```", "```\n\n```", "```\n\n```"),
        ("* a\n* b\n  1) c", "- a\n- b\n  1. c", "- a\n- b\n  1. c"),
        ("- a\n\n  b\n- c", "- a\n\n  b\n\n- c", "- a\n\n  b\n\n- c"),
        ("7. a\n7. b", "7. a\n8. b", "7. a\n8. b"),
        ("> a\nlazy\n\n> b", "> a\n> lazy\n\n> b", "> a\n> lazy\n\n> b"),
        ("> a\n> > b", "> a\n> \n> b", "> a\n> \n> > b"),
        ("> # A\n\n- ## B", "> **A**\n\n- **B**", "> **A**\n\n- **B**"),
        (
            "a\n\n***\nb",
            "a\n\n\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\n\nb",
            "a\n\n---\n\nb",
        ),
        ("a <x>c</x> <!d>", "a \\<x>c\\</x> \\<!d>", "a &lt;x>c&lt;/x> &lt;!d>"),
        ("1 < 2 & 3 &amp; &lt;", "1 \\< 2 & 3 & \\<", "1 < 2 & 3 & <"),
        (
            "&amp;lt; [x] a|b snake_case",
            "\\&lt; \\[x\\] a\\|b snake_case",
            "&amp;lt; \\[x\\] a\\|b snake_case",
        ),
        ("||spoiler|| -# small", "\\|\\|spoiler\\|\\| -# small", "\\|\\|spoiler\\|\\| -# small"),
        ("-# small", "\\-# small", "\\-# small"),
        ("\\# a\n\\- b\n1\\. c", "\\# a\n\\- b\n1\\. c", "\\# a\n\\- b\n1\\. c"),
    ],
)
def test_markdown_is_written_again(markdown: str, discord: str, slack: str) -> None:
    """Each construct has one form; signs that aren't markup are shown as text."""
    assert written(markdown, DISCORD) == discord
    assert written(markdown, SLACK) == slack


@pytest.mark.parametrize(
    ("markdown", "discord", "slack"),
    [
        ("[a](https://x.y/z)", "[a](<https://x.y/z>)", "[a](https://x.y/z)"),
        ("[a](https://x.y/(z))", "[a](<https://x.y/(z)>)", "[a](https://x.y/%28z%29)"),
        ("[a]\n\n[a]: https://x.y 't'", "[a](<https://x.y>)", "[a](https://x.y)"),
        ("![a **b**](https://x.y/z.png)", "[a **b**](<https://x.y/z.png>)", "[a **b**](https://x.y/z.png)"),
        ("[![a](https://x.y)](https://z.w)", "[a](<https://z.w>)", "[a](https://z.w)"),
        ("<https://x.y> https://z.w/_a_b.", "<https://x.y> <https://z.w/_a_b>.", "https://x.y [https://z.w/\\_a_b](https://z.w/_a_b)."),
        ("**https://x.y**, _https://z.w_", "**<https://x.y>**, *<https://z.w>*", "**https://x.y**, *https://z.w*"),
        ("(see https://x.y/a_(b))", "(see <https://x.y/a_(b)>)", "(see [https://x.y/a\\_(b)](https://x.y/a_%28b%29))"),
        ("[x.y](https://x.y/)", "<https://x.y/>", "https://x.y/"),
        ("[docs.x.org](https://docs.x.org/a)", "[docs.x.org](<https://docs.x.org/a>)", "[docs.x.org](https://docs.x.org/a)"),
        ("[https://good.com](https://e.vil)", "<https://good.com> (<https://e.vil>)", "https://good.com (https://e.vil)"),
        ("[at good.com](https://good.com.e.vil)", "at good.com (<https://good.com.e.vil>)", "at good.com (https://good.com.e.vil)"),
        ("[good.com](https://good.com@e.vil)", "good.com (<https://good.com@e.vil>)", "good.com (https://good.com@e.vil)"),
        ("[free](https://discord.gg/x)", "free (<https://discord.gg/x>)", "free (https://discord.gg/x)"),
        ("[a](#b) [c](mailto:d@e.f)", "a (#b) c (mailto:d@e.f)", "a (#b) c (mailto:d@e.f)"),
        ("<d@e.f> <id:customize>", "d@e.f id:customize", "d@e.f id:customize"),
        ("[a]() [](https://x.y)", "a <https://x.y>", "a https://x.y"),
        ("[a](http://[b:])", "a (http://\\[b:\\])", "a (http://\\[b:\\])"),
        ("[<https://a.b>\\[a](http://x.y/b)", "<https://a.b>\\[a (<http://x.y/b>)", "https://a.b\\[a (http://x.y/b)"),
        ("[<https://a.b> c](https://a.b/d)", "<https://a.b> c (<https://a.b/d>)", "https://a.b c (https://a.b/d)"),
        ("[a](http://[b)", "[a](<http://%5Bb>)", "[a](http://%5Bb)"),
    ],
)  # fmt: skip
def test_a_link_shows_its_target_unless_its_text_names_it(
    markdown: str, discord: str, slack: str
) -> None:
    """A text that looks like another address, an invitation, and other schemes than the web's show their target."""
    assert written(markdown, DISCORD) == discord
    assert written(markdown, SLACK) == slack


def test_headings_are_below_the_level_above() -> None:
    """Without a level left, they are bold lines."""
    assert written("# A\n\n## B", DISCORD, 2) == "### A\n\n**B**"


def test_long_code_can_be_cut() -> None:
    """A line of code as long as a paragraph is cut at its spaces, and stays code."""
    code = "word " * 30 + "end"
    parts = split(blocks(f"`{code}`", SLACK), 60, len)
    assert all(part.startswith("`word") and part.endswith("`") for part in parts)
    assert " ".join(shown(part).strip() for part in parts) == code
    assert written(f"``{code} ` tick``", SLACK) == f"{code} \\` tick"


@pytest.mark.parametrize(
    ("code", "span"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("a``b", "`a``b`"), (" a ", "`  a  `")],
)
def test_code_is_fenced_with_enough_backticks(code: str, span: str) -> None:
    """It reads as the same code."""
    assert code_span(code) == span
    assert shown(span) == code


def test_deep_nesting_is_shown_as_code() -> None:
    """The parser would drop deeper text."""
    *_, deepest, end = written(f"{'>' * 29}deep `x`\n\nEnd.", SLACK).split("\n\n")
    assert deepest == "\n".join("> " * 24 + line for line in ("```", ">>>>>deep `x`", "```"))
    assert end == "End."


def test_neighbours_make_no_mention_and_no_picture() -> None:
    """An `@` before a link's text that is shown without the link stays alone; a `!` makes no picture."""
    assert written("!![a](https://x.y/z)", DISCORD) == "!\u200b[a](<https://x.y/z>)"
    assert written("\\![a](https://x.y/z)", SLACK) == "!\u200b[a](https://x.y/z)"
    assert written("@[everyone](/x)", DISCORD) == "@\u200beveryone (/x)"
    assert written("@![everyone](/x)", DISCORD) == "@\u200beveryone (/x)"


@pytest.mark.parametrize("dialect", [DISCORD, SLACK])
@given(text=made_of([*"`*_[]<>#+-.!|~&\\()=:1aé ", "```", "&amp;", "1. ", "<b>", "](x)", "@", "||"], 20))
@example(text="<+@1>")
def test_a_line_of_ours_shows_as_it_is(dialect: ChatDialect, text: str) -> None:
    """A reader sees exactly that text, whatever it is."""
    line = Line(text).text
    assert "".join(map(shown, split([Text(words(line, dialect))], 100_000, len))) == line


def test_plain_text_has_no_markup() -> None:
    """It has one line per block, for places without rendering."""
    markdown = "# A\n\n**b** [c](https://d.e) `f`\n\n- g\n- h\n\n```sh\ni\n```"
    assert plain_text(markdown) == "A\nb c f\ng\nh\ni"
