"""Formulas in the transcript: MathML rebuilt from a list, whatever the formula says."""

import re

import pytest
from hypothesis import given
from markupsafe import Markup

from bot.transcript.diff import correction
from bot.transcript.mathml import mathml
from bot.transcript.prose import html
from tests.fragments import made_of

HOSTILE = [
    *("\\text{<script>alert(1)</script>}", "\\href{javascript:a}{b}", "\\style{color:red}{z}", "\\class{a}{b}"),
    *("\\unicode{x3c}", "\\rule{99em}{99em}", "\\hspace{999em}", "\\color{red}", "\\verb|<b>|", "\\phantom{x}"),
    *("\\frac", "\\sqrt", "\\left(", "\\right)", "\\overbrace", "\\sum", "\\limits", "\\genfrac", "\\tag{1}"),
    *("\\begin{matrix}", "\\end{matrix}", "\\begin{cases}", "\\end{cases}", "\\hline", "\\root", "\\of", "\\over"),
    *("{", "}", "[", "]", "^", "_", "&", "\\\\", "%", "$", "'", "x", "1", "<", ">", '"', "\\newcommand{\\a}{xx}"),
]  # fmt: skip
HARMLESS = re.compile(
    r"(?:<(?:/?m[a-z]+|/?none)(?: (?!on|href|style|class|src)[a-z]+=\"[\w.\- ]*\")*>|[^<>])*"
)


def test_a_formula_is_mathml() -> None:
    """Between dollars or square brackets it has a line of its own."""
    assert mathml(r"\frac{a}{b}", displayed=False) == Markup(
        '<math display="inline"><mrow><mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac></mrow></math>'
    )
    assert str(html(r"$$x<1$$", 3)) == (
        '<p><math display="block"><mrow><mi>x</mi><mo>&lt;</mo><mn>1</mn></mrow></math></p>\n'
    )


def test_names_and_bars_have_their_spaces() -> None:
    """Browsers would show `nlogn` and `|x |`."""
    assert '<mo lspace="0.17em" rspace="0.17em">log</mo>' in str(mathml(r"n \log n", displayed=False))
    assert '<mo lspace="0.17em" rspace="0.17em">arg</mo>' in str(mathml(r"\arg z", displayed=False))
    assert '<mo stretchy="false" lspace="0em" rspace="0em">|</mo>' in str(mathml("|x|", displayed=False))
    assert "<mtext>log</mtext>" in str(mathml(r"\text{log}", displayed=False))


def test_matrices_and_aligned_lines_are_tables() -> None:
    """The converter doesn't know `aligned`, which models write most."""
    for source in (
        r"\begin{pmatrix} 1 & 2 \end{pmatrix}",
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
    ):
        assert "<mtable" in str(mathml(source, displayed=True))


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        (r"\text{<script>}", "<mtext>&lt;script&gt;</mtext>"),
        (r"\text{&lt;b&gt;}", "<mtext>&lt;b&gt;</mtext>"),
        (r"\href{javascript:a}{b}", "<mrow><mrow><mi>b</mi></mrow></mrow>"),
        (r"\style{color:red}{z}", "<mrow><mrow><mi>z</mi></mrow></mrow>"),
        (r"\hspace{999em}", "<mrow><mspace></mspace></mrow>"),
    ],
)
def test_nothing_of_a_formula_is_taken_as_it_is(formula: str, shown: str) -> None:
    """Text is escaped; addresses, styles and huge sizes are left out."""
    assert shown in str(mathml(formula, displayed=False))


@pytest.mark.parametrize(
    "formula",
    [
        r"\cancel{x}",
        r"\sout{x}",
        r"\newcommand{\a}{\b\b}\a",
        r"\def\a{x}\a",
        r"\unknown{x}",
        r"\frac",
        "{",
        "x^",
    ],
)
def test_what_cannot_be_converted_is_its_source(formula: str) -> None:
    """Definitions could multiply without end; commands without meaning would look like text.

    What is struck out would look as if it weren't: browsers draw no `menclose`.
    """
    assert mathml(formula, displayed=False) is None
    assert str(html(rf"\(1={formula}\)", 3)) == f"<p>\\(1={formula}\\)</p>\n"


def test_a_formula_that_changed_is_marked_as_a_whole() -> None:
    """The words around it are compared as before."""
    before, after = correction(r"So \(x = 1\) holds.", r"So \(x = 2\) holds.", 3)
    assert "So <del><math" in str(before)
    assert "</math></ins> holds." in str(after)
    assert "<ins>" not in str(correction(r"\(x\)", r"\(x\) too", 3)[0])


@given(made_of(HOSTILE, 16))
def test_hostile_formulas_do_nothing(formula: str) -> None:
    """There are only MathML's own elements, without handlers, addresses or styles."""
    shown = mathml(formula, displayed=True)
    assert shown is None or HARMLESS.fullmatch(shown)
