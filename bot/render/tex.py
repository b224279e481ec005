r"""TeX formulas as text that people read: `\frac{a+b}{c}` is `(a+b)/c`, `x_1^2` is `x₁²`.

What can't be written so without losing something (matrices, cases, unknown commands) isn't written at all.
Parts of fractions and scripts are in parentheses if they have more than one sign, and compact; elsewhere
there is one space around each operator.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from typing import Any, Literal
from unicodedata import lookup, name

from pylatexenc.latex2text import get_default_latex_context_db
from pylatexenc.latexwalker import (
    LatexCharsNode,
    LatexEnvironmentNode,
    LatexGroupNode,
    LatexMacroNode,
    LatexSpecialsNode,
    LatexWalker,
    LatexWalkerError,
)
from pylatexenc.macrospec import EnvironmentSpec, LatexContextDb, MacroSpec, SpecialsSpec

Kind = Literal[
    "start", "sign", "number", "name", "big", "fraction", "parenthesis", "unary", "binary", "relation", "open",
    "close", "comma", "space", "gap", "line",
]  # fmt: skip


class _UnreadableError(Exception):
    """There is no faithful way to write a formula as text."""


@dataclass(frozen=True, slots=True)
class _Atom:
    """A sign or a composed part. After a `loose` end, a sign needs a space to stay apart."""

    text: str
    kind: Kind = "sign"
    loose: bool = False


_SCRIPTS, _DIGITS = "^_'", "0123456789"
_START = _Atom("", "start")
_FACTORS = ("sign", "number", "name", "big", "fraction")
_BEFORE_UNARY = ("start", "unary", "binary", "relation", "open", "comma", "name")

_SUPERSCRIPTS = dict(zip("0123456789ni\u2218\u2032", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ\u00b0\u2032", strict=True))
_SUBSCRIPTS = dict(zip("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_RELATIONS = frozenset("=<>≤≥≠≈≡∼≃≅≐∝∈∉∋⊂⊆⊃⊇⊢⊨→←↔⇒⇐⇔↦⟶⟵⟹⟸⟺≪≫≺≻∣")
_BINARY = frozenset("+−±∓·×÷*∗∘∧∨∪∩∖⊕⊗⊖⊙")
_UNARY = frozenset("+−±∓")
_BIG = frozenset("∑∏∫∬∭∮⋃⋂")
_OPEN, _CLOSE = frozenset("([⌊⌈⟨"), frozenset(")]⌋⌉⟩")
_ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "bar": "\u0304", "overline": "\u0305", "vec": "\u20d7",
    "dot": "\u0307", "ddot": "\u0308", "tilde": "\u0303", "widetilde": "\u0303",
}  # fmt: skip
_NAMES = frozenset(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim ln log max min"
    " Pr sec sin sinh sup tan tanh".split()
)
_LIMITS = frozenset(("inf", "lim", "max", "min", "sup"))
_SIGNS = {
    "mid": "|", "implies": "⟹", "iff": "⟺", "setminus": "∖", "degree": "°", "lvert": "|", "rvert": "|",
    "|": "‖", "Vert": "‖", "vert": "|", "lVert": "‖", "rVert": "‖", "{": "{", "}": "}", "lbrace": "{",
    "rbrace": "}", "prime": "\u2032", "dots": "…", "dotsc": "…", "dotsb": "⋯", "cdots": "⋯", "ldots": "…",
    "%": "%", "$": "$", "#": "#", "&": "&", "_": "_", "gets": "←", "land": "∧", "lor": "∨", "lnot": "¬",
    "lt": "<", "gt": ">", "ne": "≠", "le": "≤", "ge": "≥", "varnothing": "∅", "ell": "ℓ", "hbar": "ℏ",
    "colon": ":", "bmod": "mod", "Re": "Re", "Im": "Im", "top": "⊤", "bot": "⊥", "emptyset": "∅",
}  # fmt: skip
_GAPS = frozenset((",", ";", ":", " ", ">", "quad", "qquad", "thinspace", "enspace"))
_NOTHING = frozenset(
    "! displaystyle textstyle limits nolimits nonumber notag big Big bigg Bigg bigl bigr Bigl Bigr biggl"
    " biggr Biggl Biggr".split()
)
_UPRIGHT = frozenset(("text", "mathrm", "textrm", "textnormal", "mbox", "operatorname", "mathsf", "rm"))
_FRACTIONS = frozenset(("frac", "dfrac", "tfrac", "cfrac"))
_ALIGNED = frozenset(
    "aligned align align* gathered gather gather* split equation equation*".split()
)
_ARGUMENTS = {
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac", "binom", "dbinom", "tbinom"), "{{"),
    **dict.fromkeys((*_UPRIGHT - {"rm"}, *_ACCENTS, "mathbf", "boldsymbol", "bm", "mathbb"), "{"),
    **dict.fromkeys(("mathcal", "mathit", "boxed", "pmod"), "{"),
    "sqrt": "[{",
    "\\": "*[",
}
_ROOTS = {"3": "∛", "4": "∜"}
_ALPHABETS: dict[str, tuple[str, ...]] = {
    "mathbf": ("BOLD",),
    "boldsymbol": ("BOLD ITALIC", "BOLD"),
    "bm": ("BOLD ITALIC", "BOLD"),
    "mathbb": ("DOUBLE-STRUCK",),
    "mathcal": ("SCRIPT",),
}


@lru_cache(maxsize=1024)
def readable(formula: str) -> str | None:
    """Return a formula (without delimiters) as lines of text, or nothing if that would lose something."""
    try:
        walker = LatexWalker(formula, latex_context=_context(), tolerant_parsing=False)
        atoms = _Reader(walker.get_latex_nodes()[0]).read()
        groups = groupby(atoms, lambda atom: atom.kind == "line")
        lines = [_written([*line]) for is_end, line in groups if not is_end]
    except (_UnreadableError, LatexWalkerError, RecursionError):
        return None
    return "\n".join(filter(None, lines)) or None


@cache
def _context() -> Any:  # noqa: ANN401 - pylatexenc has no types
    """Return the commands that take arguments; all others are signs."""
    context = LatexContextDb()
    context.add_context_category(
        "formulas",
        macros=[MacroSpec(name, args_parser=spec) for name, spec in _ARGUMENTS.items()],
        specials=[SpecialsSpec("&"), SpecialsSpec("~")],
    )
    context.set_unknown_macro_spec(MacroSpec(""))
    context.set_unknown_environment_spec(EnvironmentSpec(""))
    return context


@cache
def _sign(command: str) -> str | None:
    """Return the sign that a command stands for."""
    if command in _SIGNS:
        return _SIGNS[command]
    spec = get_default_latex_context_db().get_macro_spec(command)
    sign = getattr(spec, "simplify_repl", None)
    return sign if isinstance(sign, str) and len(sign) == 1 and not sign.isascii() else None


def _kind(sign: str) -> Kind:
    kinds: tuple[tuple[frozenset[str], Kind], ...] = (
        (_RELATIONS, "relation"), (_BINARY, "binary"), (_BIG, "big"), (_OPEN, "open"), (_CLOSE, "close"),
    )  # fmt: skip
    return next((kind for signs, kind in kinds if sign in signs), "sign")


class _Reader:
    """Reads the nodes of one group, from left to right."""

    def __init__(self, nodes: Iterable[Any]) -> None:
        self._items = [*_flat(nodes)]
        self._at = 0

    def read(self) -> list[_Atom]:
        atoms: list[_Atom] = []
        while self._at < len(self._items):
            if self._is_at(_SCRIPTS):
                while atoms and atoms[-1].kind == "space":
                    atoms.pop()
                has_base = atoms and atoms[-1].kind not in ("binary", "relation", "open", "comma", "line")
                atoms.append(self._scripted(atoms.pop() if has_base else _Atom("")))
            else:
                atoms += self._next(atoms)
        return atoms

    def _next(self, before: Sequence[_Atom] = (), *, is_base: bool = True) -> list[_Atom]:
        """Return the next item's atoms; a group that is the base of a script is one."""
        item = self._items[self._at]
        self._at += 1
        if isinstance(item, str):
            return [self._character(item)]
        if isinstance(item, LatexMacroNode):
            return self._command(item)
        if isinstance(item, LatexGroupNode) and item.delimiters == ("{", "}"):
            atoms = _Reader(item.nodelist).read()
            return [_grouped(atoms)] if is_base and self._is_at(_SCRIPTS) and len(atoms) != 1 else atoms
        is_aligned = isinstance(item, LatexEnvironmentNode) and item.environmentname in _ALIGNED
        if is_aligned and not _significant(before):
            return _Reader(_unaligned(item.nodelist)).read()
        if isinstance(item, LatexSpecialsNode) and item.specials_chars == "~":
            return [_Atom(" ", "gap")]
        raise _UnreadableError

    def _character(self, character: str) -> _Atom:
        if character.isspace():
            return _Atom(" ", "space")
        if character in _DIGITS:
            return _Atom(character + "".join(self._digits()), "number")
        if character in ",;":
            return _Atom(character, "comma")
        if character in "$#&\\%":
            raise _UnreadableError
        sign = "\u2212" if character == "-" else character
        return _Atom(sign, "binary" if sign == "/" else _kind(sign))

    def _digits(self) -> Iterator[str]:
        """Yield the rest of a number, with its point or commas."""
        while self._at < len(self._items):
            if not self._is_at(_DIGITS) and not (self._is_at(".,") and self._is_at(_DIGITS, 1)):
                return
            yield self._items[self._at]
            self._at += 1

    def _command(self, node: Any) -> list[_Atom]:  # noqa: ANN401, C901 - a case for each kind
        command: str = node.macroname
        arguments = [
            _Reader(_nodes(each)) for each in (node.nodeargd.argnlist if node.nodeargd else ()) if each
        ]
        if len(arguments) < _ARGUMENTS.get(command, "").count("{"):
            raise _UnreadableError  # a command that is another's argument has none of its own
        match command:
            case _ if command in _FRACTIONS:
                top, bottom = (each.read() for each in arguments)
                return [_fraction(top, bottom)]
            case "sqrt":
                return [_root([each.read() for each in arguments])]
            case "binom" | "dbinom" | "tbinom":
                top, bottom = (_written(each.read(), compact=True) for each in arguments)
                return [_Atom(f"({top} choose {bottom})")]
            case _ if command in _UPRIGHT and arguments:
                return _upright(command, _nodes(node.nodeargd.argnlist[0]))
            case _ if command in _ALPHABETS:
                return [_in_alphabet(each, _ALPHABETS[command]) for each in _significant(arguments[0].read())]
            case _ if command in _ACCENTS:
                return [_accented(arguments[0].read(), _ACCENTS[command])]
            case "mathit" | "boxed":
                return arguments[0].read()
            case "pmod":
                modulus = _written(arguments[0].read(), compact=True)
                return [_Atom(" ", "gap"), _Atom(f"(mod {modulus})")]
            case "\\" if not arguments:
                return [_Atom("\n", "line")]
            case "left" | "right" | "middle":
                return [self._delimiter(command)]
            case _ if command in _GAPS:
                return [_Atom(" ", "gap")]
            case _ if command in _NOTHING:
                return []
            case _ if command in _NAMES:
                return [_Atom(command, "name")]
            case _:
                return [_signed(command)]

    def _delimiter(self, side: str) -> _Atom:
        self._skip_spaces()
        [atom] = self._next()
        if atom.text == ".":
            raise _UnreadableError  # what the other side ends would be unclear
        kinds: dict[str, Kind] = {"left": "open", "right": "close"}
        return replace(atom, kind=kinds.get(side, "relation"))

    def _scripted(self, base: _Atom) -> _Atom:
        """Return a base with the scripts that follow it."""
        below = above = ""
        primes = ""
        while self._is_at(_SCRIPTS):
            mark: str = self._items[self._at]
            self._at += 1
            if mark == "'":
                primes += "\u2032"
                continue
            said = _written(self._script(), compact=True)
            if not said or (below if mark == "_" else above):
                raise _UnreadableError
            below, above = (said, above) if mark == "_" else (below, said)
        if base.text in _LIMITS:
            base = replace(base, kind="big")
        if base.kind == "fraction" or base.text.startswith(("√", "∛", "∜")):
            base = _Atom(f"({base.text})")
        small = (_SUBSCRIPTS.get(below, "") or not below, _SUPERSCRIPTS.get(above, "") or not above)
        if all(small):
            scripts = f"{_SUBSCRIPTS.get(below, '')}{_SUPERSCRIPTS.get(above, '')}"
            return replace(base, text=f"{base.text}{primes}{scripts}")
        scripts = f"{_script('_', below)}{_script('^', above)}"
        return replace(base, text=f"{base.text}{primes}{scripts}", loose=not scripts.endswith(")"))

    def _script(self) -> list[_Atom]:
        self._skip_spaces()
        if self._is_at(_DIGITS):
            self._at += 1  # of a number, TeX takes the first digit
            return [_Atom(self._items[self._at - 1], "number")]
        if self._is_at(_SCRIPTS):
            raise _UnreadableError
        return self._next(is_base=False)

    def _is_at(self, signs: str, further: int = 0) -> bool:
        at = self._at + further
        return at < len(self._items) and isinstance(self._items[at], str) and self._items[at] in signs

    def _skip_spaces(self) -> None:
        while self._is_at(" "):
            self._at += 1
        if self._at == len(self._items):
            raise _UnreadableError


def _flat(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, LatexCharsNode):
            yield from (" " if each.isspace() else each for each in node.chars)
        elif isinstance(node, LatexGroupNode) and node.latex_verbatim() == "{,}":
            yield ","  # of thousands
        else:
            yield node


def _nodes(argument: Any) -> list[Any]:  # noqa: ANN401 - pylatexenc has no types
    return argument.nodelist if isinstance(argument, LatexGroupNode) else [argument]


def _unaligned(nodes: Iterable[Any]) -> list[Any]:
    return [node for node in nodes if getattr(node, "specials_chars", "") != "&"]


def _signed(command: str) -> _Atom:
    sign = _sign(command)
    if sign is None:
        raise _UnreadableError
    if sign in ("{", "}"):
        return _Atom(sign, "open" if sign == "{" else "close")
    if sign.isalpha() and len(sign) > 1:
        return _Atom(sign, "binary" if sign == "mod" else "name")
    return _Atom(sign, "relation" if command == "mid" else _kind(sign))


def _upright(command: str, nodes: Sequence[Any]) -> list[_Atom]:
    """Return words; a space at their ends counts."""
    text = "".join(map(_word, nodes))
    if not text.strip():
        return [_Atom(" ", "gap")]
    kind: Kind = "name" if command == "operatorname" else "sign"
    gap = _Atom(" ", "gap")
    before, after = text[0].isspace(), text[-1].isspace()
    return [*[gap] * before, _Atom(" ".join(text.split()), kind), *[gap] * after]


def _word(node: Any) -> str:  # noqa: ANN401 - pylatexenc has no types
    match node:
        case LatexCharsNode():
            return node.chars
        case LatexMacroNode() if node.macroname in ("%", "$", "#", "&", "_", " ", ","):
            return node.macroname if node.macroname != "," else " "
        case LatexSpecialsNode() if node.specials_chars in ("~", "&"):
            return " " if node.specials_chars == "~" else "&"
        case _:
            raise _UnreadableError


def _in_alphabet(atom: _Atom, styles: tuple[str, ...]) -> _Atom:
    return replace(atom, text="".join(_styled(each, styles) for each in atom.text))


@cache
def _styled(character: str, styles: tuple[str, ...]) -> str:
    """Return a letter or digit in a mathematical alphabet of Unicode."""
    parts = name(character, "").split()
    match parts:
        case ["DIGIT", digit]:
            named = f"DIGIT {digit}"
        case ["LATIN" | "GREEK", size, "LETTER", letter]:
            named = f"{size} {letter}"
        case _:
            raise _UnreadableError
    for style in styles:
        for full in (f"MATHEMATICAL {style} {named}", f"{style} {named}"):
            try:
                return lookup(full)
            except KeyError:
                continue
    raise _UnreadableError


def _accented(atoms: list[_Atom], accent: str) -> _Atom:
    match atoms:
        case [_Atom(text, "sign")] if len(text) == 1 and text.isalpha():
            return _Atom(f"{text}{accent}")
        case _:
            raise _UnreadableError


def _grouped(atoms: list[_Atom]) -> _Atom:
    return _Atom(f"({_written(atoms, compact=True)})" if atoms else "")


def _fraction(top: list[_Atom], bottom: list[_Atom]) -> _Atom:
    above, below = _written(top, compact=True), _written(bottom, compact=True)
    if not above or not below:
        raise _UnreadableError
    above = above if _is_product(top) else f"({above})"
    below = below if _is_one(bottom) else f"({below})"
    return _Atom(f"{above}/{below}", "fraction")


def _is_product(atoms: Sequence[_Atom]) -> bool:
    """Return whether a numerator needs no parentheses."""
    depth = 0
    for number, atom in enumerate(_significant(atoms)):
        depth += (atom.kind == "open") - (atom.kind == "close")
        is_sign = number == 0 and atom.text in _UNARY
        if depth == 0 and not is_sign and (
            atom.kind not in ("sign", "number", "close") or (" " in atom.text and atom.text[0] != "(")
        ):
            return False
    return depth == 0 and not any(atom.kind == "gap" for atom in atoms)


def _is_one(atoms: Sequence[_Atom]) -> bool:
    """Return whether a denominator needs no parentheses: a sign, a differential, or what has its own."""
    match _significant(atoms):
        case [_Atom(text, "sign" | "number")]:
            return " " not in text or text[0] == "("
        case [_Atom("d" | "∂"), _Atom(kind="sign")]:
            return True
        case [_Atom("(", "open"), *inside, _Atom(kind="close")]:
            return not any(atom.kind in ("open", "close") for atom in inside)
        case _:
            return False


def _root(arguments: list[list[_Atom]]) -> _Atom:
    sign = "√"
    if len(arguments) > 1:
        sign = _ROOTS.get(_written(arguments[0], compact=True), "")
    content = _written(arguments[-1], compact=True)
    if not sign or not content:
        raise _UnreadableError
    return _Atom(f"{sign}{content}", loose=True) if len(content) == 1 else _Atom(f"{sign}({content})")


def _script(mark: str, text: str) -> str:
    if not text:
        return ""
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"


def _significant(atoms: Iterable[_Atom]) -> list[_Atom]:
    return [atom for atom in atoms if atom.kind not in ("space", "gap")]


def _written(atoms: Iterable[_Atom], *, compact: bool = False) -> str:
    """Return atoms as text, with the spaces that a reader needs."""
    parts: list[str] = []
    before, gap = _START, ""
    each = [*atoms]
    for number, atom in enumerate(each):
        if atom.kind == "line":
            raise _UnreadableError
        if atom.kind in ("space", "gap"):
            gap = "gap" if "gap" in (gap, atom.kind) else "space"
            continue
        after = next((other for other in each[number + 1 :] if other.kind not in ("space", "gap")), _START)
        if atom.kind == "fraction" and (_touches(before, "close") or _touches(after, "open")):
            atom = _Atom(f"({atom.text})", "parenthesis" if before.kind == "name" else "sign")  # noqa: PLW2901
        if atom.text in _UNARY and before.kind in _BEFORE_UNARY:
            atom = replace(atom, kind="unary")  # noqa: PLW2901
        parts += (_space(before, atom, gap, compact=compact), atom.text)
        before, gap = atom, ""
    return "".join(parts)


def _touches(neighbour: _Atom, bracket: str) -> bool:
    """Return whether a fraction would be read together with its neighbour."""
    if neighbour.kind == "big":
        return bracket == "open"
    return neighbour.kind in (*_FACTORS, bracket) or neighbour.text in ("/", "÷")


def _space(before: _Atom, atom: _Atom, gap: str, *, compact: bool) -> str:
    """Return what separates two neighbours: a space or nothing."""
    kinds = (before.kind, atom.kind)
    wide = "" if compact else " "
    if before is _START:
        return ""
    if gap == "gap" or "mod" in (before.text, atom.text):
        return " "
    if "/" in (before.text, atom.text) or before.kind in ("open", "unary") or atom.kind in ("close", "comma"):
        return ""
    if any(kind in ("binary", "relation") for kind in kinds) or before.kind == "comma":
        return wide
    if before.kind == "name" and atom.kind in ("open", "parenthesis"):
        return ""
    if any(kind in ("name", "big") for kind in kinds) or kinds == ("number", "number"):
        return " "
    if before.loose and (atom.text[0].isalnum() or atom.text[0] == "("):
        return " "
    return " " if gap and before.kind in (*_FACTORS, "close") and atom.kind in _FACTORS else ""
