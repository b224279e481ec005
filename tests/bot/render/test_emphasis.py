"""Emphasis as people mean it: what CommonMark leaves as asterisks is bold, and code stays code."""

import json
import re
from html import unescape
from pathlib import Path

from hypothesis import example, given
from markdown_it import MarkdownIt

from bot.discord.text import DIALECT as DISCORD
from bot.render.lenient import read_leniently
from bot.slack.markdown import DIALECT as SLACK
from bot.transcript.prose import html
from tests.bot.shown import HIDDEN, written
from tests.fragments import made_of
from tests.pairs import data, rows

COMMONMARK = json.loads((Path(__file__).parent / "commonmark_emphasis.json").read_text("utf-8"))
CONCERNED = (352, 354, 380)
"""CommonMark's examples in which a mark is between a letter and punctuation and means emphasis."""
READER = MarkdownIt("commonmark").enable("strikethrough")
MEANT = read_leniently(MarkdownIt("commonmark").enable("strikethrough"))

# What Discord's client reads, in the order in which it tries its rules.
# Source: its desktop client, as in https://github.com/jeremy-rifkin/dismark.
DISCORDS = (
    (re.compile(r"\\([^0-9A-Za-z\s])"), r"{}"),
    (re.compile(r"(`+)([\s\S]*?[^`])\1(?!`)"), "<code>{}</code>"),
    (re.compile(r"\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*)"), "<strong>{}</strong>"),
    (
        re.compile(r"\*(?=\S)((?:\*\*|\\[\s\S]|\s+(?:\\[\s\S]|[^\s*\\]|\*\*)|[^\s*\\])+?)\*(?!\*)"),
        "<em>{}</em>",
    ),
    (re.compile(r"~~((?:\\[\s\S]|[^\\])+?)~~(?!_)"), "<s>{}</s>"),
)

PIECES = [
    *("**", "*", "~~", "__", "_", "`x`", " ", "a", "word", "9", "必", "重要", "é"),
    *(":", ".", "%", "(", ")", "「", "」", "！", "、", "。", '"', "“", "”", "$", "-", "✅"),
]


def on_discord(text: str) -> str:
    """Return what Discord shows of its Markdown, as HTML."""
    shown, at = "", 0
    while at < len(text):
        for number, (rule, form) in enumerate(DISCORDS):
            if found := rule.match(text, at):
                inner = found[2] if number == 1 else found[1] if not number else on_discord(found[1])
                shown, at = shown + form.format(inner), found.end()
                break
        else:
            shown, at = shown + text[at], at + 1
    return shown


def on_slack(text: str) -> str:
    """Return what a reader by CommonMark shows, as HTML."""
    return unescape(READER.renderInline(text))


def on_page(markdown: str) -> str:
    return unescape(str(html(markdown, 3)).strip().removeprefix("<p>").removesuffix("</p>"))


@rows(("markdown", "shown"), data(__file__, "what_is_meant_is_bold_everywhere"))
def test_what_is_meant_is_bold_everywhere(markdown: str, shown: str) -> None:
    """On Slack, whose parser knows CommonMark's rule, on Discord, and in the transcript."""
    nested = {"<em><strong>Both:</strong></em>x": "<strong><em>Both:</em></strong>x"}
    assert on_page(markdown) == shown
    assert on_slack(written(markdown, SLACK)).translate(HIDDEN) == shown
    assert on_discord(written(markdown, DISCORD)).translate(HIDDEN) in (shown, nested.get(shown))


def test_a_letter_of_no_width_is_only_where_it_is_needed_and_names_of_python_are_text() -> None:
    """It is inside the mark, because a parser by CommonMark looks there; other words between two underscores are bold."""
    assert written("**Status:**OK", SLACK) == "**Status:\u200b**OK"
    assert written("これは**「重要」**です", SLACK) == "これは**\u200b「重要」\u200b**です"
    assert written("**Status:** OK, **(a)**.", SLACK) == "**Status:** OK, **(a)**."
    names = "__init__, obj.__dict__ and __name__ == '__main__'"
    assert MEANT.renderInline(names) == names
    assert MEANT.renderInline("**__init__**") == "<strong>__init__</strong>"
    assert MEANT.renderInline("__important__") == "<strong>important</strong>"
    assert MEANT.renderInline("__init__x") == READER.renderInline("__init__x")


@rows("text", data(__file__, "what_could_be_code_is_left_to_commonmark"))
def test_what_could_be_code_is_left_to_commonmark(text: str) -> None:
    """Powers, arguments and names aren't emphasis, nor is what CommonMark nests."""
    assert MEANT.renderInline(text) == READER.renderInline(text)


def test_commonmarks_examples_stay() -> None:
    """Except those in which a mark is between a letter and punctuation."""
    for each in COMMONMARK["examples"]:
        assert READER.render(each["markdown"]) == each["html"]
        is_same = MEANT.render(each["markdown"]) == each["html"]
        assert is_same == (each["example"] not in CONCERNED), each


@given(made_of(PIECES, 14))
@example("**重要！**必ず")
def test_no_platform_shows_marks_that_were_read(markdown: str) -> None:
    """What a parser by CommonMark reads of Slack's text is what was meant: same words, same emphasis."""
    line = f"x {' '.join(markdown.split())}"  # it begins no block
    assert emphasized(on_slack(written(line, SLACK))) == emphasized(unescape(MEANT.renderInline(line)))


def emphasized(shown: str) -> list[tuple[str, frozenset[str]]]:
    """Return the letters with the emphasis on each; nested emphasis of one kind counts once."""
    found: list[tuple[str, frozenset[str]]] = []
    open_: list[str] = []
    for part in re.split(r"(</?\w+>)", shown):
        if part.startswith("</"):
            open_.remove(part[2:-1])
        elif re.fullmatch(r"<\w+>", part):
            open_.append(part[1:-1])
        else:
            found += [(each, frozenset(open_)) for each in part if each.isalnum()]
    return found
