"""TeX as a tree: pylatexenc's nodes, without what no formula has."""

# pyright: reportMissingTypeStubs=false
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pylatexenc import latex2text, latexwalker, macrospec

# pylatexenc annotates nothing.
_walker: Any = latexwalker
_spec: Any = macrospec
_symbols: Any = latex2text


class UnreadableError(Exception):
    """There is no faithful way to write a formula as text."""


@dataclass(frozen=True, slots=True)
class TexCommand:
    """A command with its arguments; one that is itself an argument has none."""

    name: str
    arguments: "tuple[tuple[Item, ...], ...]" = ()


@dataclass(frozen=True, slots=True)
class Group:
    """What is in braces."""

    items: "tuple[Item, ...]"


@dataclass(frozen=True, slots=True)
class Environment:
    """What is between `begin` and `end`."""

    name: str
    items: "tuple[Item, ...]"


Item = str | TexCommand | Group | Environment
"""A string is one character."""

ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "bar": "\u0304", "overline": "\u0305", "vec": "\u20d7",
    "dot": "\u0307", "ddot": "\u0308", "tilde": "\u0303", "widetilde": "\u0303",
}  # fmt: skip
FRACTIONS = ("frac", "dfrac", "tfrac", "cfrac")
BINOMIALS = ("binom", "dbinom", "tbinom")
WORDS = ("text", "textrm", "textnormal", "textbf", "textit", "mbox", "operatorname")
UPRIGHT = ("mathrm", "mathsf", "mathtt")
ALPHABETS = {
    "mathbf": ("BOLD",),
    "boldsymbol": ("BOLD ITALIC", "BOLD"),
    "bm": ("BOLD ITALIC", "BOLD"),
    "mathbb": ("DOUBLE-STRUCK",),
    "mathcal": ("SCRIPT",),
    "mathfrak": ("FRAKTUR", "BLACK-LETTER"),
}
ARGUMENTS = {
    **dict.fromkeys((*FRACTIONS, *BINOMIALS), "{{"),
    **dict.fromkeys((*WORDS, *UPRIGHT, *ACCENTS, *ALPHABETS, "mathit", "boxed", "pmod"), "{"),
    "operatorname": "*{",
    "sqrt": "[{",
    "\\": "*[",
}
"""The commands that take arguments; all others are signs."""
_SIGNS = {
    "mid": "|", "implies": "⟹", "iff": "⟺", "setminus": "∖", "degree": "°", "lvert": "|", "rvert": "|",
    "|": "‖", "Vert": "‖", "vert": "|", "lVert": "‖", "rVert": "‖", "{": "{", "}": "}", "lbrace": "{",
    "rbrace": "}", "prime": "\u2032", "dots": "…", "dotsc": "…", "dotsb": "⋯", "cdots": "⋯",
    "ldots": "…", "%": "%", "$": "$", "#": "#", "&": "&", "_": "_", "gets": "←", "land": "∧",
    "lor": "∨", "lnot": "¬", "lt": "<", "gt": ">", "ne": "≠", "le": "≤", "ge": "≥",
    "varnothing": "∅", "ell": "ℓ", "hbar": "ℏ", "triangle": "△",
    "colon": ":", "bmod": "mod", "Re": "Re", "Im": "Im", "top": "⊤", "bot": "⊥", "emptyset": "∅",
}  # fmt: skip


def parse(formula: str) -> tuple[Item, ...]:
    """Return a formula's items.

    Raises:
        UnreadableError: it is malformed, or has comments or formulas in it.
    """
    try:
        walker = _walker.LatexWalker(formula, latex_context=_context(), tolerant_parsing=False)
        return (*_items(walker.get_latex_nodes()[0]),)
    except (latexwalker.LatexWalkerError, RecursionError) as error:
        raise UnreadableError from error


@cache
def sign(command: str) -> str | None:
    """Return the character that is printed for a command without arguments; `None` if it isn't known."""
    if command in _SIGNS:
        return _SIGNS[command]
    table: Any = _symbol_table()
    found = getattr(table.get_macro_spec(command), "simplify_repl", None)
    return found if isinstance(found, str) and len(found) == 1 and not found.isascii() else None


@cache
def _symbol_table() -> macrospec.LatexContextDb:
    return _symbols.get_default_latex_context_db()


@cache
def _context() -> macrospec.LatexContextDb:
    context = _spec.LatexContextDb()
    context.add_context_category(
        "formulas",
        macros=[_spec.MacroSpec(name, args_parser=each) for name, each in ARGUMENTS.items()],
        specials=[_spec.SpecialsSpec("&"), _spec.SpecialsSpec("~")],
    )
    context.set_unknown_macro_spec(_spec.MacroSpec(""))
    context.set_unknown_environment_spec(_spec.EnvironmentSpec(""))
    return context


def _items(nodes: Iterable[Any]) -> Iterator[Item]:
    for node in nodes:
        match node:
            case _walker.LatexCharsNode():
                yield from (" " if each.isspace() else each for each in node.chars)
            case _walker.LatexSpecialsNode():
                yield node.specials_chars
            case _walker.LatexMacroNode():
                given = node.nodeargd.argnlist if node.nodeargd else ()
                yield TexCommand(node.macroname, (*_arguments(each for each in given if each),))
            case _walker.LatexGroupNode() if node.delimiters == ("{", "}"):
                items = (*_items(node.nodelist),)
                yield "," if items == (",",) else Group(items)  # `1{,}000`
            case _walker.LatexEnvironmentNode():
                yield Environment(node.environmentname, (*_items(node.nodelist),))
            case _:
                raise UnreadableError


def _arguments(nodes: Iterable[Any]) -> Iterator[tuple[Item, ...]]:
    for node in nodes:
        is_group = isinstance(node, _walker.LatexGroupNode)
        yield (*_items(node.nodelist if is_group else [node]),)
