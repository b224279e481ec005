"""The parts of a formula as text: where parentheses and spaces are needed to read it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.render.tex_source import UnreadableError

TokenKind = Literal[
    "start", "sign", "number", "name", "big", "fraction", "parenthesis", "unary", "binary", "relation",
    "open", "close", "comma", "space", "gap", "line",
]  # fmt: skip
"""A `space` was only in the source; a `gap` is seen."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A sign or a composed part. After a `loose` one, a sign needs a space to stay apart."""

    text: str
    kind: TokenKind = "sign"
    loose: bool = False


GAP = Atom(" ", "gap")
_START = Atom("", "start")
_KINDS: tuple[tuple[str, TokenKind], ...] = (
    ("=<>≤≥≠≈≡∼≃≅≐∝∈∉∋⊂⊆⊃⊇⊢⊨→←↔⇒⇐⇔↦⟶⟵⟹⟸⟺⟷≪≫≺≻≼≽≲≳⩽⩾≦≧⊊⊋≜≍∤⇌∴∵", "relation"),
    ("+−±∓·×÷*∗∘∧∨∪∩∖⊕⊗⊖⊙/", "binary"),
    ("∑∏∫∬∭∮⋃⋂⋀⋁", "big"),
    ("([{⌊⌈⟨", "open"),
    (")]}⌋⌉⟩", "close"),
    (",;", "comma"),
)
_UNARY = ("+", "−", "±", "∓")
_BEFORE_UNARY = ("start", "unary", "binary", "relation", "open", "comma", "name")
_BAR = "|"
_FACTORS = ("sign", "number", "name", "big", "fraction")
_SUPERSCRIPTS = dict(zip("0123456789ni\u2218\u2032", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ\u00b0\u2032", strict=True)) | {"": ""}
_SUBSCRIPTS = dict(zip("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)) | {
    "": ""
}
_LIMITS = ("inf", "lim", "max", "min", "sup")
_ROOTS = {"": "√", "3": "∛", "4": "∜"}


def kind_of(sign: str) -> TokenKind:
    """Return what a sign is for the spaces around it."""
    for signs, kind in _KINDS:
        if sign in signs:
            return kind
    return "sign"


def significant(atoms: Iterable[Atom]) -> list[Atom]:
    """Return atoms without blanks."""
    return [atom for atom in atoms if atom.kind not in ("space", "gap")]


def in_parentheses(atoms: Sequence[Atom]) -> Atom:
    """Return a group as one atom."""
    return Atom(f"({written(atoms, compact=True)})" if atoms else "")


def fraction(top: Sequence[Atom], bottom: Sequence[Atom]) -> Atom:
    """Return a fraction in one line: `a/b`, `(a+b)/(2c)`."""
    above, below = written(top, compact=True), written(bottom, compact=True)
    if not above or not below:
        raise UnreadableError
    above = above if _is_product(top) else f"({above})"
    below = below if _is_one(bottom) else f"({below})"
    return Atom(f"{above}/{below}", "fraction")


def root(content: Sequence[Atom], degree: Sequence[Atom] = ()) -> Atom:
    """Return a root of degree 2, 3 or 4."""
    sign = _ROOTS.get(written(degree, compact=True))
    text = written(content, compact=True)
    if not sign or not text:
        raise UnreadableError
    return Atom(f"{sign}{text}", loose=True) if len(text) == 1 else Atom(f"{sign}({text})")


def scripted(base: Atom, below: str, above: str, primes: str) -> Atom:
    """Return a base with its scripts: `x₁²`, `x_(ij)^k`."""
    if base.text in _LIMITS:
        base = replace(base, kind="big")
    if base.kind == "fraction" or base.text.startswith((*_ROOTS.values(),)):
        base = Atom(f"({base.text})")
    if below in _SUBSCRIPTS and above in _SUPERSCRIPTS:
        return replace(base, text=f"{base.text}{primes}{_SUBSCRIPTS[below]}{_SUPERSCRIPTS[above]}")
    scripts = f"{_script('_', below)}{_script('^', above)}"
    return replace(base, text=f"{base.text}{primes}{scripts}", loose=not scripts.endswith(")"))


def _script(mark: str, text: str) -> str:
    if not text:
        return ""
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"


def _is_product(atoms: Sequence[Atom]) -> bool:
    """Return whether a numerator needs no parentheses."""
    depth = 0
    for number, atom in enumerate(significant(atoms)):
        depth += (atom.kind == "open") - (atom.kind == "close")
        is_sign = number == 0 and atom.text in _UNARY
        is_factor = atom.kind in ("sign", "number", "close") and not _has_words(atom)
        if depth == 0 and not is_sign and not is_factor:
            return False
    return depth == 0 and not any(atom.kind == "gap" for atom in atoms)


def _is_one(atoms: Sequence[Atom]) -> bool:
    """Return whether a denominator needs no parentheses: a sign, a differential, or what has its own."""
    match significant(atoms):
        case [Atom(kind="sign" | "number") as atom]:
            return not _has_words(atom)
        case [Atom("d" | "∂"), Atom(kind="sign")]:
            return True
        case [Atom("(", "open"), *inside, Atom(kind="close")]:
            return not any(atom.kind in ("open", "close") for atom in inside)
        case _:
            return False


def _has_words(atom: Atom) -> bool:
    return " " in atom.text and atom.text[0] != "("


def written(atoms: Iterable[Atom], *, compact: bool = False) -> str:
    """Return atoms as text, with the spaces that a reader needs.

    Raises:
        UnreadableError: it would be read as something else.
    """
    parts: list[str] = []
    before, gap, bars = _START, "", 0
    each = [*atoms]
    for number, atom in enumerate(each, 1):
        if atom.kind == "line":
            raise UnreadableError
        if atom.kind in ("space", "gap"):
            gap = "gap" if "gap" in (gap, atom.kind) else "space"
            continue
        shown = _beside(
            before, atom, next(iter(significant(each[number : number + 3])), _START), is_in_bars=bars > 0
        )
        if atom.text == _BAR:
            bars += (shown.kind == "open") - (shown.kind == "close")
        parts += (_space(before, shown, gap, compact=compact), shown.text)
        before, gap = shown, ""
    return "".join(parts)


def _beside(before: Atom, atom: Atom, after: Atom, *, is_in_bars: bool) -> Atom:
    """Return an atom as it is written between its neighbours."""
    if atom.text == _BAR and atom.kind == "sign":
        opens = before.kind in (*_BEFORE_UNARY, "big")
        return replace(atom, kind="open" if opens else "close" if is_in_bars else "sign")
    if atom.kind == "fraction":
        if before.kind == "number" and atom.text[0].isdigit():
            raise UnreadableError  # a mixed number, or a product
        if _touches(before, "close") or _touches(after, "open"):
            return Atom(f"({atom.text})", "parenthesis" if before.kind == "name" else "sign")
    return replace(atom, kind="unary") if atom.text in _UNARY and before.kind in _BEFORE_UNARY else atom


def _touches(neighbour: Atom, bracket: str) -> bool:
    """Return whether a fraction would be read together with its neighbour."""
    if neighbour.kind == "big":
        return bracket == "open"
    return neighbour.kind in (*_FACTORS, bracket) or neighbour.text in ("/", "÷")


def _space(before: Atom, atom: Atom, gap: str, *, compact: bool) -> str:
    """Return what separates two neighbours: a space or nothing."""
    kinds = (before.kind, atom.kind)
    closed = before.kind in ("start", "open", "unary") or atom.kind in ("close", "comma")
    if before.kind == "start" or "/" in (before.text, atom.text):
        return ""
    if gap == "gap" or "mod" in (before.text, atom.text):
        return " "
    if closed or (atom.kind == "relation" and before.kind in ("binary", "relation") and not gap):
        return ""
    if any(kind in ("binary", "relation") for kind in kinds) or before.kind == "comma":
        return "" if compact else " "
    return " " if _is_apart(before, atom, gap) else ""


def _is_apart(before: Atom, atom: Atom, gap: str) -> bool:
    kinds = (before.kind, atom.kind)
    if before.kind == "name" and atom.kind in ("open", "parenthesis"):
        return False
    if any(kind in ("name", "big") for kind in kinds) or kinds == ("number", "number"):
        return True
    if before.loose and (atom.text[:1].isalnum() or atom.text[:1] == "("):
        return True
    return gap != "" and before.kind in (*_FACTORS, "close") and atom.kind in _FACTORS
