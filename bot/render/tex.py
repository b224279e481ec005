r"""TeX formulas as text that people read: `\frac{a+b}{c}` is `(a+b)/c`, `x_1^2` is `x₁²`.

pylatexenc reads TeX; `_COMMANDS`, `_SIGNS` and its own table of signs say how each command is written.
What can't be written so without losing something (matrices, cases, unknown commands) isn't written at
all. Parts of fractions and scripts are in parentheses if they have more than one sign, and compact;
elsewhere there is one space around each operator.
"""

# pyright: reportMissingTypeStubs=false
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import groupby, takewhile
from typing import Any, Literal, NamedTuple
from unicodedata import lookup, name

from pylatexenc import latex2text, latexwalker, macrospec

_Node = Any
"""A node of pylatexenc's, which annotates nothing."""
_walker: Any = latexwalker
_spec: Any = macrospec
_known: Any = latex2text.get_default_latex_context_db()

TokenKind = Literal[
    "start", "sign", "number", "name", "big", "fraction", "parenthesis", "unary", "binary", "relation",
    "open", "close", "comma", "space", "gap", "line",
]  # fmt: skip
"""A `space` was only in the source; a `gap` is seen."""


class _UnreadableError(Exception):
    """There is no faithful way to write a formula as text."""


class _Atom(NamedTuple):
    """A sign or a composed part. After a `loose` one, a sign needs a space to stay apart."""

    text: str
    kind: TokenKind = "sign"
    loose: bool = False


_GAP, _START = _Atom(" ", "gap"), _Atom("", "start")
_SIGNS = {
    "mid": "|", "implies": "⟹", "iff": "⟺", "degree": "°", "lvert": "|", "rvert": "|", "|": "‖",
    "vert": "|", "Vert": "‖", "lVert": "‖", "rVert": "‖", "{": "{", "}": "}", "lbrace": "{",
    "rbrace": "}", "prime": "\u2032", "dotsb": "⋯", "%": "%", "$": "$", "#": "#", "&": "&", "_": "_",
    "gets": "←", "land": "∧", "lor": "∨", "lt": "<", "gt": ">", "ne": "≠", "hbar": "ℏ",
    "triangle": "△", "colon": ":", "bot": "⊥", "bmod": "mod", "Re": "Re", "Im": "Im",
}  # fmt: skip
"""The commands whose sign pylatexenc doesn't know, or writes differently."""
_NAMES = (
    "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "coth", "csc", "deg", "det", "dim", "exp",
    "gcd", "hom", "inf", "ker", "lg", "lim", "ln", "log", "max", "min", "Pr", "sec", "sin", "sinh",
    "sup", "tan", "tanh",
)  # fmt: skip
_GAPS = (",", ";", ":", " ", ">", "quad", "qquad", "thinspace", "enspace")
_NOTHING = (
    "!", "displaystyle", "textstyle", "limits", "nolimits", "nonumber", "notag",
    *(f"{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r")),
)  # fmt: skip
_ALIGNED = (
    "aligned", "align", "align*", "gathered", "gather", "gather*", "split", "equation", "equation*",
)  # fmt: skip
_KINDS: dict[TokenKind, str] = {
    "relation": "=<>≤≥≠≈≡∼≃≅≐∝∈∉∋⊂⊆⊃⊇⊢⊨→←↔⇒⇐⇔↦⟶⟵⟹⟸⟺⟷≪≫≺≻≼≽≲≳⩽⩾≦≧⊊⊋≜≍∤⇌∴∵",
    "binary": "+−±∓·×÷*∗∘∧∨∪∩∖⊕⊗⊖⊙/",
    "big": "∑∏∫∬∭∮⋃⋂⋀⋁",
    "open": "([{⌊⌈⟨",
    "close": ")]}⌋⌉⟩",
    "comma": ",;",
}
_KIND_OF: dict[str, TokenKind] = {sign: kind for kind, signs in _KINDS.items() for sign in signs}
_KIND_OF_NAMED: dict[str, TokenKind] = {
    "bmod": "binary", "mid": "relation", "parallel": "relation", "perp": "relation", "lvert": "open",
    "lVert": "open", "rvert": "close", "rVert": "close", "Re": "name", "Im": "name",
}  # fmt: skip
"""The commands whose kind their sign doesn't tell."""
_SIDES: dict[str, TokenKind] = {"left": "open", "right": "close", "middle": "relation"}
_UNARY = "+−±∓"
_BEFORE_UNARY = ("start", "unary", "binary", "relation", "open", "comma", "name")
_NO_BASES = ("binary", "relation", "open", "comma", "gap", "line")
_FACTORS = ("sign", "number", "name", "big", "fraction")
_SUPERSCRIPTS = dict(zip("0123456789ni\u2218\u2032", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ\u00b0\u2032", strict=True)) | {"": ""}
_SUBSCRIPTS = {
    "": "",
    **dict(zip("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)),
}
_LIMITS = ("inf", "lim", "max", "min", "sup")
_ROOTS = {"": "√", "3": "∛", "4": "∜"}
_TOKEN = re.compile(r"[0-9]+(?:[.,][0-9]+)*|:=|.", re.DOTALL)
_TWO_DIGITS = re.compile(r"[\^_]\s*[-0-9][0-9]")
"""`x^10` is the first power for TeX, and another for its author."""
_UNBRACED = re.compile(r"(?<=[\^_])\s*(\\(?:(?:d?frac|d?binom)\{[^{}]*\}|[a-z]+)\{[^{}]*\})")
"""A command with its arguments as a script: pylatexenc reads only its name there."""


@lru_cache(maxsize=1024)
def readable(formula: str) -> str | None:
    """Return a formula (without delimiters) as lines of text, if that loses nothing."""
    if _TWO_DIGITS.search(formula):
        return None
    try:
        source = _UNBRACED.sub(_braced, formula.replace("{,}", ","))  # `1{,}000`
        walker = _walker.LatexWalker(source, latex_context=_context(), tolerant_parsing=False)
        groups = groupby(_read(walker.get_latex_nodes()[0]), lambda atom: atom.kind == "line")
        lines = [_written(line) for is_end, line in groups if not is_end]
    except (_UnreadableError, RecursionError, latexwalker.LatexWalkerError):
        return None
    return "\n".join(filter(None, lines)) or None


def _braced(script: re.Match[str]) -> str:
    command = re.match(r"\\[a-z]+", script[1])
    return f"{{{script[1]}}}" if command and command[0][1:] in _COMMANDS else script[0]


@cache
def _context() -> macrospec.LatexContextDb:
    script = _spec.MacroStandardArgsParser("{")
    context = _spec.LatexContextDb()
    context.add_context_category(
        "formulas",
        macros=[_spec.MacroSpec(each, args_parser=spec) for each, (spec, _) in _COMMANDS.items()],
        specials=[
            *(_spec.SpecialsSpec(mark, args_parser=script) for mark in "^_"),
            *(_spec.SpecialsSpec(mark) for mark in "&~'"),
        ],
    )
    context.set_unknown_macro_spec(_spec.MacroSpec(""))
    context.set_unknown_environment_spec(_spec.EnvironmentSpec(""))
    return context


def _read(nodes: Sequence[_Node]) -> list[_Atom]:
    """Return the atoms of a formula or of one group in it."""
    atoms: list[_Atom] = []
    for at, node in enumerate(nodes):
        if not _is_script(node):
            is_base = at + 1 < len(nodes) and _is_script(nodes[at + 1])
            atoms += _of(node, is_base=is_base, begins=not _significant(atoms))
        elif not at or not _is_script(nodes[at - 1]):
            while atoms and atoms[-1].kind == "space":
                atoms.pop()
            has_base = atoms and atoms[-1].kind not in _NO_BASES
            base = atoms.pop() if has_base else _Atom("")
            atoms.append(_scripted(base, takewhile(_is_script, nodes[at:])))
    return atoms


def _is_script(node: _Node) -> bool:
    return isinstance(node, _walker.LatexSpecialsNode) and node.specials_chars in "^_'"


def _of(node: _Node, *, is_base: bool, begins: bool) -> list[_Atom]:
    """Return a node's atoms; a group that is the base of a script is one."""
    match node:
        case _walker.LatexCharsNode():
            return [_character(each[0]) for each in _TOKEN.finditer(node.chars)]
        case _walker.LatexSpecialsNode(specials_chars="~"):
            return [_GAP]
        case _walker.LatexMacroNode():
            return _command(node.macroname, [each for each in _arguments(node) if each])
        case _walker.LatexGroupNode(delimiters=("{", "}")):
            atoms = _read(node.nodelist)
            if not is_base or len(atoms) == 1:
                return atoms
            return [_Atom(f"({_written(atoms, compact=True)})" if atoms else "")]
        case _walker.LatexEnvironmentNode() if begins and node.environmentname in _ALIGNED:
            return _read([each for each in node.nodelist if getattr(each, "specials_chars", "") != "&"])
        case _:
            raise _UnreadableError


def _arguments(node: _Node) -> Sequence[_Node]:
    return node.nodeargd.argnlist if node.nodeargd else ()


def _character(character: str) -> _Atom:
    if character.isspace():
        return _Atom(" ", "space")
    if character in "$#&\\%":
        raise _UnreadableError
    if character == "-":
        return _Atom("−", "binary")
    if character[0] in "0123456789":
        return _Atom(character, "number")
    return _Atom(character, _KIND_OF.get(character[-1], "sign"))


def _command(command: str, arguments: Sequence[_Node]) -> list[_Atom]:
    """Return the atoms of a command, whether it composes its arguments or is a sign without any."""
    if command in _COMMANDS:
        spec, compose = _COMMANDS[command]
        if len(arguments) < spec.count("{"):
            raise _UnreadableError
        return compose(*arguments)
    if command in _GAPS:
        return [_GAP]
    if command in _NOTHING:
        return []
    if command in _NAMES:
        return [_Atom(command, "name")]
    sign = _SIGNS.get(command) or getattr(_known.get_macro_spec(command), "simplify_repl", None)
    if not isinstance(sign, str) or (command not in _SIGNS and (len(sign) > 1 or sign.isascii())):
        raise _UnreadableError
    return [_Atom(sign, _KIND_OF_NAMED.get(command) or _KIND_OF.get(sign, "sign"))]


def _argument(node: _Node) -> list[_Atom]:
    return _read(node.nodelist if isinstance(node, _walker.LatexGroupNode) else [node])


def _compact(node: _Node) -> str:
    return _written(_argument(node), compact=True)


def _binomial(above: _Node, below: _Node) -> list[_Atom]:
    return [_Atom(f"({_compact(above)} choose {_compact(below)})")]


def _modulo(node: _Node) -> list[_Atom]:
    return [_GAP, _Atom(f"(mod {_compact(node)})")]


def _words(node: _Node, kind: TokenKind = "sign") -> list[_Atom]:
    """Return words; a space at their ends counts."""
    source = node.latex_verbatim()
    inner = source[1:-1] if isinstance(node, _walker.LatexGroupNode) else source
    text = re.sub(r"\\([%$#&_ ]|,)", lambda sign: sign[1].replace(",", " "), inner.replace("~", " "))
    if set("\\{}") & {*text} or "$" in re.sub(r"\\\$", "", inner):
        raise _UnreadableError
    if not text.strip():
        return [_GAP]
    words = _Atom(" ".join(text.split()), kind)
    return [*[_GAP] * text[0].isspace(), words, *[_GAP] * text[-1].isspace()]


def _upright(node: _Node) -> list[_Atom]:
    return _argument(node) if {*"^_'"} & {*node.latex_verbatim()} else _words(node)


def _delimiter(kind: TokenKind, node: _Node) -> list[_Atom]:
    atoms = _argument(node)
    if len(atoms) != 1 or atoms[0].text == ".":
        raise _UnreadableError  # what the other side ends would be unclear
    return [atoms[0]._replace(kind=kind)]


def _fraction(over: _Node, under: _Node) -> list[_Atom]:
    """Return a fraction in one line: `a/b`, `(a+b)/(2c)`."""
    above, below = _compact(over), _compact(under)
    if not above or not below:
        raise _UnreadableError
    above = above if _is_product(_argument(over)) else f"({above})"
    below = below if _is_one(_significant(_argument(under))) else f"({below})"
    return [_Atom(f"{above}/{below}", "fraction")]


def _root(*nodes: _Node) -> list[_Atom]:
    sign, text = _ROOTS.get("".join(map(_compact, nodes[:-1]))), _compact(nodes[-1])
    if not sign or not text:
        raise _UnreadableError
    return [_Atom(f"{sign}{text}", loose=True) if len(text) == 1 else _Atom(f"{sign}({text})")]


def _accented(accent: str, node: _Node) -> list[_Atom]:
    match _argument(node):
        case [_Atom(text, "sign")] if len(text) == 1 and text.isalpha():
            return [_Atom(f"{text}{accent}")]
        case _:
            raise _UnreadableError


def _in_alphabet(styles: Sequence[str], node: _Node) -> list[_Atom]:
    atoms = _significant(_argument(node))
    return [atom._replace(text="".join(_styled(each, styles) for each in atom.text)) for atom in atoms]


def _styled(character: str, styles: Sequence[str]) -> str:
    named = re.sub("LATIN |GREEK |LETTER ", "", name(character, ""))
    for full in (
        each for style in styles for each in (f"MATHEMATICAL {style} {named}", f"{style} {named}")
    ):
        with suppress(KeyError):
            return lookup(full)
    raise _UnreadableError


def _scripted(base: _Atom, scripts: Iterable[_Node]) -> _Atom:
    """Return a base with its scripts: `x₁²`, `x_(ij)^k`."""
    said = {"_": "", "^": "", "'": ""}
    for node in scripts:
        mark, arguments = node.specials_chars, _arguments(node)
        if mark != "'" and (said[mark] or not arguments or _is_script(arguments[0])):
            raise _UnreadableError
        if not (script := "\u2032" if mark == "'" else _compact(arguments[0])):
            raise _UnreadableError
        said[mark] += script
    below, above, primes = said.values()
    if base.text in _LIMITS:
        base = base._replace(kind="big")
    if base.kind == "fraction" or base.text.startswith((*_ROOTS.values(),)):
        base = _Atom(f"({base.text})")
    if below in _SUBSCRIPTS and above in _SUPERSCRIPTS:
        return base._replace(text=f"{base.text}{primes}{_SUBSCRIPTS[below]}{_SUPERSCRIPTS[above]}")
    parts = (
        f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"
        for mark, text in (("_", below), ("^", above))
        if text
    )
    text = f"{base.text}{primes}{''.join(parts)}"
    return base._replace(text=text, loose=not text.endswith(")"))


_COMMANDS: dict[str, tuple[str, Callable[..., list[_Atom]]]] = {
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac"), ("{{", _fraction)),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), ("{{", _binomial)),
    **dict.fromkeys(("text", "textrm", "textnormal", "textbf", "textit", "mbox"), ("{", _words)),
    **dict.fromkeys(("mathrm", "mathsf", "mathtt"), ("{", _upright)),
    **dict.fromkeys(("mathit", "boxed"), ("{", _argument)),
    **{
        each: ("{", partial(_accented, accent))
        for accent, names in (
            *(("\u0302", "hat widehat"), ("\u0304", "bar"), ("\u0305", "overline"), ("\u20d7", "vec")),
            *(("\u0307", "dot"), ("\u0308", "ddot"), ("\u0303", "tilde widetilde")),
        )
        for each in names.split()
    },
    **{
        each: ("{", partial(_in_alphabet, styles))
        for each, *styles in (
            ("mathbf", "BOLD"), ("boldsymbol", "BOLD ITALIC", "BOLD"), ("bm", "BOLD ITALIC", "BOLD"),
            ("mathbb", "DOUBLE-STRUCK"), ("mathcal", "SCRIPT"), ("mathfrak", "FRAKTUR", "BLACK-LETTER"),
        )
    },
    **{each: ("{", partial(_delimiter, kind)) for each, kind in _SIDES.items()},
    "operatorname": ("*{", lambda *nodes: _words(nodes[-1], "name")),
    "pmod": ("{", _modulo),
    "sqrt": ("[{", _root),
    "\\": ("*[", lambda *_: [_Atom("\n", "line")]),
}  # fmt: skip
"""The commands that take arguments, as pylatexenc specifies them, and how each is written."""


def _significant(atoms: Iterable[_Atom]) -> list[_Atom]:
    return [atom for atom in atoms if atom.kind not in ("space", "gap")]


def _is_product(atoms: Sequence[_Atom]) -> bool:
    depth = 0
    for number, atom in enumerate(_significant(atoms)):
        depth += (atom.kind == "open") - (atom.kind == "close")
        is_sign = number == 0 and atom.text in _UNARY
        is_factor = atom.kind in ("sign", "number", "close") and not _has_words(atom)
        if depth == 0 and not is_sign and not is_factor:
            return False
    return depth == 0 and not any(atom.kind == "gap" for atom in atoms)


def _is_one(atoms: Sequence[_Atom]) -> bool:
    """Return whether a denominator needs no parentheses: a sign, a differential, or what has its own."""
    match atoms:
        case [_Atom(_, "sign" | "number") as atom]:
            return not _has_words(atom)
        case [_Atom("d" | "∂"), _Atom(_, "sign")]:
            return True
        case [_Atom("(", "open"), *inside, _Atom(_, "close")]:
            return not any(atom.kind in ("open", "close") for atom in inside)
        case _:
            return False


def _has_words(atom: _Atom) -> bool:
    return " " in atom.text and atom.text[0] != "("


def _written(atoms: Iterable[_Atom], *, compact: bool = False) -> str:
    """Return atoms as text, with the spaces that a reader needs."""
    parts: list[str] = []
    before, gap, bars = _START, "", 0
    each = [*atoms]
    for number, atom in enumerate(each, 1):
        if atom.kind == "line":
            raise _UnreadableError
        if atom.kind in ("space", "gap"):
            gap = "gap" if "gap" in (gap, atom.kind) else "space"
            continue
        after = next(iter(_significant(each[number : number + 3])), _START)
        shown = _beside(before, atom, after, is_in_bars=bars > 0)
        if atom.text == "|":
            bars += (shown.kind == "open") - (shown.kind == "close")
        parts += (_space(before, shown, gap, compact=compact), shown.text)
        before, gap = shown, ""
    return "".join(parts)


def _beside(before: _Atom, atom: _Atom, after: _Atom, *, is_in_bars: bool) -> _Atom:
    """Return an atom as it is written between its neighbours."""

    def touches(neighbour: _Atom, bracket: str) -> bool:
        """Return whether a fraction would be read together with its neighbour."""
        if neighbour.kind == "big":
            return bracket == "open"
        return neighbour.kind in (*_FACTORS, bracket) or neighbour.text in ("/", "÷")

    if atom.text == "|" and atom.kind == "sign":
        opens = before.kind in (*_BEFORE_UNARY, "big")
        return atom._replace(kind="open" if opens else "close" if is_in_bars else "sign")
    if atom.kind == "fraction":
        if before.kind == "number" and atom.text[0].isdigit():
            raise _UnreadableError  # a mixed number, or a product
        if touches(before, "close") or touches(after, "open"):
            return _Atom(f"({atom.text})", "parenthesis" if before.kind == "name" else "sign")
    is_unary = atom.kind == "binary" and atom.text in _UNARY and before.kind in _BEFORE_UNARY
    return atom._replace(kind="unary") if is_unary else atom


def _space(before: _Atom, atom: _Atom, gap: str, *, compact: bool) -> str:
    """Return what separates two neighbours: a space or nothing."""
    kinds = (before.kind, atom.kind)
    if before.kind == "start" or "/" in (before.text, atom.text):
        return ""
    if gap == "gap" or "mod" in (before.text, atom.text):
        return " "
    if before.kind in ("open", "unary") or atom.kind in ("close", "comma"):
        return ""
    if atom.kind == "relation" and before.kind in ("binary", "relation") and not gap:
        return ""
    if any(kind in ("binary", "relation") for kind in kinds) or before.kind == "comma":
        return "" if compact else " "
    if before.kind == "name" and atom.kind in ("open", "parenthesis"):
        return ""
    if any(kind in ("name", "big") for kind in kinds) or kinds == ("number", "number"):
        return " "
    if before.loose and (atom.text[:1].isalnum() or atom.text[:1] == "("):
        return " "
    is_apart = gap != "" and before.kind in (*_FACTORS, "close") and atom.kind in _FACTORS
    return " " if is_apart else ""
