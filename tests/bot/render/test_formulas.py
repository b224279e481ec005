"""Formulas: readable on every surface, or as they were written; never hostile, never money."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it.token import Token
from rich.console import Console

from bot.discord.text import DIALECT as DISCORD
from bot.discord.text import units
from bot.render.dialect import ChatDialect, blocks, plain_text
from bot.render.formulas import DEEPEST, LONGEST
from bot.render.markdown import contain
from bot.render.parsing import parse_blocks, parse_inline
from bot.render.splitting import split
from bot.render.tex import readable
from bot.slack.markdown import DIALECT as SLACK
from bot.terminal.venue import prose
from tests.bot.shown import text, written
from tests.fragments import made_of
from tests.pairs import data, rows

REVIEWED = json.loads((Path(__file__).parent / "formulas.json").read_text("utf-8"))
"""Sentences such as models write, each with what a reader sees; every one was compared by eye."""
TEX = [
    *("\\frac", "\\sqrt", "\\sum", "\\alpha", "\\text{a b}", "\\left(", "\\right)", "\\mathbf", "\\hat", "\\\\"),
    *("{", "}", "[", "]", "^", "_", "'", "x", "1", "23", "+", "-", "=", "<", ",", ".", " ", "&", "%", "$", "~"),
    *("\\begin{aligned}", "\\end{aligned}", "\\href{javascript:a}{b}", "\\unknown", "\\binom", "\\,", "(", ")", "/"),
]  # fmt: skip
FRAGMENTS = made_of([*TEX, "\\(", "\\)", "\\[", "\\]", "$$", "\n", "**", "word ", "- ", "> ", "`"], 40)


def formulas(markdown: str) -> list[str]:
    tokens, env = parse_blocks(markdown)
    found: list[Token] = []
    for token in tokens:
        found += parse_inline(token.content, env) if token.type == "inline" else []
    return [
        token.markup
        for token in found
        if token.type in ("formula", "code_inline") and token.markup[0] in "\\$"
    ]


def terminal(markdown: str) -> str:
    console = Console(width=300, file=None, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(prose(markdown, 2))
    return "\n".join(line.strip() for line in capture.get().strip().split("\n"))


@rows("each", REVIEWED, ids=lambda each: each["markdown"])
def test_a_formula_is_readable_in_chat_and_terminal(each: dict[str, str]) -> None:
    """The same signs on Discord, on Slack and in the terminal; the export keeps the source."""
    markdown, shown = each["markdown"], each["shown"]
    assert plain_text(markdown) == shown
    assert text(written(markdown, DISCORD)) == shown
    assert text(written(markdown, SLACK)) == shown
    assert terminal(markdown) == shown
    assert contain(markdown) == markdown


@rows(("formula", "shown"), data(__file__, "what_is_one_part_stays_one"))
def test_what_is_one_part_stays_one(formula: str, shown: str) -> None:
    """Parentheses and spaces are where a line of text needs them."""
    assert readable(formula) == shown


@rows("formula", data(__file__, "what_would_lose_something_keeps_its_source"))
def test_what_would_lose_something_keeps_its_source(formula: str) -> None:
    """As code, the delimiters and backslashes included, on both platforms."""
    assert readable(formula) is None
    source, shown = rf"So \({formula}\) holds.", rf"So `\({formula}\)` holds."
    assert written(source, DISCORD) == shown
    assert written(source, SLACK).replace("&lt;", "<").replace("&amp;", "&") == shown


@rows("markdown", data(__file__, "money_and_escaped_brackets_are_no_formulas"))
def test_money_and_escaped_brackets_are_no_formulas(markdown: str) -> None:
    """Neither is code."""
    assert formulas(markdown) == []


@rows(
    ("markdown", "shown"),
    [
        ("It takes $O(n \\log n)$.", "It takes O(n log n)."),
        ("$x$, ($y_i$) and $a = b$", "x, (yᵢ) and a = b"),
        ("$1.5\\times$ as fast, $10\\%$ less than $x^2$", "1.5 × as fast, 10% less than x²"),
        ("$n+1$ of $i<n$ for $5 or $10", "n + 1 of i < n for $5 or $10"),
    ],
)
def test_single_dollars_are_read_where_they_can_be_nothing_else(markdown: str, shown: str) -> None:
    """Inside is a sign of TeX, a letter, or letters and operators; outside no letter and no digit."""
    assert written(markdown, SLACK) == shown


def test_a_formula_on_its_own_lines_or_in_an_environment_is_one() -> None:
    """Its lines may begin like other blocks, also in a list, in a quote, and right below a paragraph."""
    lines = "\\[\nx = 1\n- 2\n# 3\n\\]"
    assert formulas(lines) == [lines]
    assert formulas(f"So:\n{lines}\nEnd.") == [lines]
    assert formulas("> \\[\n> x\n> = 1\n> \\]") == ["\\[\nx\n= 1\n\\]"]
    assert formulas("- a\n  $$\n  x\n  = 1\n  $$") == ["$$\nx\n= 1\n$$"]
    assert written("So:\n$$\nx\n= 1\n$$\nEnd.", DISCORD) == "So:\n\nx = 1\n\nEnd."
    lines = "\\begin{align*}\na &= b \\\\\n- c &= d\n\\end{align*}"
    assert formulas(f"So:\n{lines}\nEnd.") == [lines]
    assert written(f"So:\n{lines}\nEnd.", DISCORD) == "So:\n\na = b\n\u2212c = d\n\nEnd."
    matrix = r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}"
    assert formulas(f"See {matrix}.") == [matrix]
    assert text(written(f"See {matrix}.", SLACK)) == f"See {matrix}."
    for other in (r"\begin{document} x = 1 \end{document}", r"\begin{align} x = 1", f"`{matrix}`"):
        assert formulas(other) == []


def test_a_formula_that_is_too_long_or_too_deep_is_its_source() -> None:
    """So is one after as many as a text may have."""
    long = rf"\({'x+' * (LONGEST // 2)}x^2\)"
    deep = rf"\({'{' * (DEEPEST + 1)}x{'}' * (DEEPEST + 1)}\)"
    for source in (long, deep):
        assert formulas(source) == []
        assert text(written(source, SLACK)) == source
    many = " ".join(rf"\(x_{{{number}}}\)" for number in range(500))
    assert 100 <= len(formulas(many)) < 200
    assert plain_text(many).endswith(r"\(x_{499}\)")


def test_a_formula_is_not_cut() -> None:
    """It begins a new line or part; one that has no room is cut like other text."""
    formula = r"\(a + b + c + d = e\)"
    assert split(blocks(f"{'word ' * 4}{formula}", DISCORD), 30, units) == [
        "word word word word",
        "a + b + c + d = e",
    ]
    assert split(blocks(formula, DISCORD), 12, units) == ["a + b + c", "\\+ d = e"]


def test_html_beside_and_in_formulas() -> None:
    """In a table of code a break takes a second line, in Slack's tables a space; a comparison stays, a tag is escaped."""
    assert written("a<br>b<BR />c <b>", DISCORD) == "a\nb\nc \\<b>"
    assert written("a<br/>b", SLACK) == "a  \nb"
    assert written("<br>\n\nx<br>", SLACK) == "x"
    table = "| a | b |\n|---|---|\n| one<br>two | c |"
    assert written(table, DISCORD) == "```\na    b\n---  -\none  c\ntwo\n```"
    assert written(table, SLACK) == "| a | b |\n| --- | --- |\n| one two | c |"
    assert contain(table) == table
    assert contain(r"\(a<b\)") == r"\(a<b\)"
    assert contain(r"\(a<b>c\)") == r"\(a\<b>c\)"
    assert contain("\\[\n<div\n= 1\n\\]") == "\\[\n\\<div\n= 1\n\\]"


@given(made_of(TEX, 24))
@example(r"\sqrt" * 400)
@example("x^{" * 49)
@example(r"\frac" * 300)
def test_any_tex_is_readable_or_not(formula: str) -> None:
    """Nothing is raised, and what is readable has no command left."""
    shown = readable(formula)
    assert shown is None or not re.search(r"\\[a-z]", shown)


# A formula, and the letters, digits and signs that a reader must find, in this order.
LEAVES = [
    *((each, each) for each in "abcxyzABC"), *((each, each) for each in ("0", "1", "2", "10", "3.5")),
    (r"\alpha ", "α"), (r"\infty ", "∞"), (r"\text{if so}", "ifso"), (r"\mathrm{kg}", "kg"), (r"\$", "$"),
    (r"^{\circ}", "∘"), (r"^\circ ", "∘"), ("_{max}", "max"), ("'", "′"), (r"\sin ", "sin"),
    *((each, each) for each in ("+", "=", "<", "|", "(", ")", ",", "!")), ("-", "−"),
    (r"\times ", "×"), (r"\le ", "≤"), (r"\in ", "∈"), (r"\sum ", "∑"), (r"\mid ", "|"), (r"\perp ", "⊥"),
    *((each, "") for each in (" ", r"\,", r"\quad ", r"\displaystyle ", "{}", r"\!")),
]  # fmt: skip
AROUND = [
    *(
        "{{{}}}",
        r"\frac{{{}}}2",
        r"\sqrt{{{}}}",
        r"\sqrt[3]{{{}}}",
        "x^{{{}}}",
        "x_{{{}}}",
        r"\boxed{{{}}}",
    ),
    *(
        r"\left({}\right)",
        r"\mathbf{{{}}}",
        r"\operatorname*{{{}}}",
        r"\binom{{{}}}n",
        r"\overline{{{}}}",
    ),
]
SIGNS_AROUND = [*("{}", "{}2", "√{}", "∛{}", "x{}", "x{}", "{}", "({})", "{}", "{}", "{}choosen", "{}")]


def held(shown: str) -> str:
    """Return what a text says, without the parentheses, marks and spaces that its form needs."""
    signs = shown.replace("°", "∘").translate(dict.fromkeys(map(ord, " ()^_/\n\u0305")))
    return normalize("NFKC", signs.replace("−", "-").replace("′", "'"))


@st.composite
def composed(draw: st.DrawFn) -> tuple[str, str]:
    formula = said = ""
    for number in draw(st.binary(min_size=1, max_size=16)):
        if number < 220:
            leaf, sign = LEAVES[number % len(LEAVES)]
            formula, said = formula + leaf, said + sign
        else:
            around = number % len(AROUND)
            formula, said = AROUND[around].format(formula), SIGNS_AROUND[around].format(said)
    return formula, said


@given(composed())
@example((r"20\,^{\circ}\text{if so}", "20∘ifso"))
@example((r"\operatorname*{max}_{max}x", "maxmaxx"))
def test_what_is_readable_says_all_that_the_formula_says(formula: tuple[str, str]) -> None:
    """Each letter, digit and operator is there, no less often and no more; lower scripts come first."""
    source, said = formula
    shown = readable(source)
    assert shown is None or sorted(held(shown)) == sorted(held(said))


@pytest.mark.parametrize(("dialect", "measure"), [(DISCORD, units), (SLACK, len)])
@given(markdown=FRAGMENTS)
def test_formulas_lose_nothing_when_they_are_cut(
    dialect: ChatDialect, measure: Callable[[str], int], markdown: str
) -> None:
    """The parts together have the signs of the whole, and each one fits."""
    parts = split(blocks(markdown, dialect), 120, measure)
    assert all(0 < measure(part) <= 120 for part in parts)
    letters = ["".join(filter(str.isalnum, text(part))) for part in parts]
    assert "".join(letters) == "".join(filter(str.isalnum, text(written(markdown, dialect))))
