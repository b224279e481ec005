r"""TeX formulas as text that people read: `\frac{a+b}{c}` is `(a+b)/c`, `x_1^2` is `x₁²`.

What can't be written so without losing something (matrices, cases, unknown commands) isn't written at
all. Parts of fractions and scripts are in parentheses if they have more than one sign, and compact;
elsewhere there is one space around each operator.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import groupby
from unicodedata import lookup, name

from bot.render import tex_source as tex
from bot.render.tex_source import Environment, Group, Item, TexCommand, UnreadableError
from bot.render.tex_text import (
    GAP,
    Atom,
    TokenKind,
    fraction,
    in_parentheses,
    kind_of,
    root,
    scripted,
    significant,
    written,
)

_SCRIPTS, _DIGITS, _MINUS = "^_'", "0123456789", "\u2212"
_NO_BASES = ("binary", "relation", "open", "comma", "gap", "line")
_KINDS: dict[str, TokenKind] = {
    "bmod": "binary", "mid": "relation", "parallel": "relation", "perp": "relation", "lvert": "open",
    "lVert": "open", "rvert": "close", "rVert": "close",
}  # fmt: skip
"""The commands whose kind their sign doesn't tell."""
_NAMES = (
    "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "coth", "csc", "deg", "det", "dim", "exp",
    "gcd", "hom", "inf", "ker", "lg", "lim", "ln", "log", "max", "min", "Pr", "sec", "sin", "sinh",
    "sup", "tan", "tanh",
)  # fmt: skip
_GAPS = (",", ";", ":", " ", ">", "quad", "qquad", "thinspace", "enspace")
_NOTHING = (
    "!", "displaystyle", "textstyle", "limits", "nolimits", "nonumber", "notag", "big", "Big", "bigg",
    "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "Biggl", "Biggr",
)  # fmt: skip
_ALIGNED = (
    "aligned", "align", "align*", "gathered", "gather", "gather*", "split", "equation", "equation*",
)  # fmt: skip


@lru_cache(maxsize=1024)
def readable(formula: str) -> str | None:
    """Return a formula (without delimiters) as lines of text, if that loses nothing."""
    try:
        groups = groupby(_Reader(tex.parse(formula)).read(), lambda atom: atom.kind == "line")
        lines = [written(line) for is_end, line in groups if not is_end]
    except (UnreadableError, RecursionError):
        return None
    return "\n".join(filter(None, lines)) or None


class _Reader:
    """Reads the items of one group, from left to right."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._at = 0

    def read(self) -> list[Atom]:
        """Return all atoms."""
        atoms: list[Atom] = []
        while self._at < len(self._items):
            if self._is_at(_SCRIPTS):
                while atoms and atoms[-1].kind == "space":
                    atoms.pop()
                has_base = atoms and atoms[-1].kind not in _NO_BASES
                atoms.append(self._scripted(atoms.pop() if has_base else Atom("")))
            else:
                atoms += self._next(begins=not significant(atoms))
        return atoms

    def _next(self, *, begins: bool = False, is_base: bool = True) -> list[Atom]:
        """Return the next item's atoms; a group that is the base of a script is one."""
        item = self._items[self._at]
        self._at += 1
        match item:
            case str():
                return [self._character(item)]
            case TexCommand("left" | "right" | "middle" as side):
                return [self._delimiter(side)]
            case TexCommand():
                return _command(item)
            case Group(items):
                atoms = _Reader(items).read()
                is_one = is_base and self._is_at(_SCRIPTS) and len(atoms) != 1
                return [in_parentheses(atoms)] if is_one else atoms
            case Environment(environment, items) if environment in _ALIGNED and begins:
                return _Reader([each for each in items if each != "&"]).read()
            case _:
                raise UnreadableError

    def _character(self, character: str) -> Atom:
        match character:
            case " ":
                return Atom(" ", "space")
            case "~":
                return GAP
            case "-":
                return Atom(_MINUS, "binary")
            case ":" if self._is_at("="):
                self._at += 1
                return Atom(":=", "relation")
            case "$" | "#" | "&" | "\\" | "%":
                raise UnreadableError
            case _ if character in _DIGITS:
                return Atom(character + "".join(self._digits()), "number")
            case _:
                return Atom(character, kind_of(character))

    def _digits(self) -> Iterator[str]:
        """Yield the rest of a number, with its point or commas."""
        while self._is_at(_DIGITS) or (self._is_at(".,") and self._is_at(_DIGITS, 1)):
            yield str(self._items[self._at])
            self._at += 1

    def _delimiter(self, side: str) -> Atom:
        self._skip_spaces()
        [*atoms] = self._next()
        if len(atoms) != 1 or atoms[0].text == ".":
            raise UnreadableError  # what the other side ends would be unclear
        kinds: dict[str, TokenKind] = {"left": "open", "right": "close", "middle": "relation"}
        return replace(atoms[0], kind=kinds[side])

    def _scripted(self, base: Atom) -> Atom:
        """Return a base with the scripts that follow it."""
        below = above = primes = ""
        while self._is_at(_SCRIPTS):
            mark = self._items[self._at]
            self._at += 1
            if mark == "'":
                primes += "\u2032"
                continue
            said = written(self._script(), compact=True)
            if said in (*_DIGITS, _MINUS) and self._is_at(_DIGITS):
                raise UnreadableError  # `x^10` is the first power for TeX, and another for its author
            if not said or (below if mark == "_" else above):
                raise UnreadableError
            below, above = (said, above) if mark == "_" else (below, said)
        return scripted(base, below, above, primes)

    def _script(self) -> list[Atom]:
        self._skip_spaces()
        if self._is_at(_DIGITS):
            self._at += 1  # of a number, TeX takes the first digit
            return [Atom(str(self._items[self._at - 1]), "number")]
        if self._is_at(_SCRIPTS):
            raise UnreadableError
        return self._next(is_base=False)

    def _is_at(self, signs: str, further: int = 0) -> bool:
        at = self._at + further
        item = self._items[at] if at < len(self._items) else None
        return isinstance(item, str) and item in signs

    def _skip_spaces(self) -> None:
        while self._is_at(" "):
            self._at += 1
        if self._at == len(self._items):
            raise UnreadableError


def _command(command: TexCommand) -> list[Atom]:
    """Return the atoms of a command, whether it composes its arguments or is a sign without any."""
    if len(command.arguments) < tex.ARGUMENTS.get(command.name, "").count("{"):
        raise UnreadableError
    if command.arguments:
        return _composed(command.name, command.arguments)
    match command.name:
        case "\\":
            return [Atom("\n", "line")]
        case named if named in _GAPS:
            return [GAP]
        case named if named in _NOTHING:
            return []
        case named if named in _NAMES:
            return [Atom(named, "name")]
        case named:
            return [_signed(named)]


def _composed(command: str, arguments: Sequence[Sequence[Item]]) -> list[Atom]:
    if command in tex.WORDS or (command in tex.UPRIGHT and not set(_SCRIPTS) & {*arguments[0]}):
        return _words(command, arguments[-1])
    *_, last = read = [_Reader(each).read() for each in arguments]
    match command:
        case _ if command in tex.FRACTIONS:
            return [fraction(*read)]
        case _ if command in tex.BINOMIALS:
            top, bottom = (written(each, compact=True) for each in read)
            return [Atom(f"({top} choose {bottom})")]
        case _ if command in tex.ALPHABETS:
            return [_in_alphabet(each, tex.ALPHABETS[command]) for each in significant(last)]
        case _ if command in tex.ACCENTS:
            return [_accented(last, tex.ACCENTS[command])]
        case "sqrt":
            return [root(last, *read[:-1])]
        case "mathit" | "mathrm" | "mathsf" | "mathtt" | "boxed":
            return last
        case "pmod":
            return [GAP, Atom(f"(mod {written(last, compact=True)})")]
        case _:
            raise UnreadableError


def _signed(command: str) -> Atom:
    sign = tex.sign(command)
    if sign is None:
        raise UnreadableError
    return Atom(sign, _KINDS.get(command) or ("name" if len(sign) > 1 else kind_of(sign)))


def _words(command: str, items: Sequence[Item]) -> list[Atom]:
    """Return words; a space at their ends counts."""
    text = "".join(map(_letter, items))
    if not text.strip():
        return [GAP]
    words = Atom(" ".join(text.split()), "name" if command == "operatorname" else "sign")
    return [*[GAP] * text[0].isspace(), words, *[GAP] * text[-1].isspace()]


def _letter(item: Item) -> str:
    match item:
        case str():
            return " " if item == "~" else item
        case TexCommand("%" | "$" | "#" | "&" | "_" | " " as sign):
            return sign
        case TexCommand(","):
            return " "
        case _:
            raise UnreadableError


def _in_alphabet(atom: Atom, styles: tuple[str, ...]) -> Atom:
    return replace(atom, text="".join(_styled(each, styles) for each in atom.text))


@cache
def _styled(character: str, styles: tuple[str, ...]) -> str:
    """Return a letter or digit in a mathematical alphabet of Unicode."""
    match name(character, "").split():
        case ["DIGIT", digit]:
            named = f"DIGIT {digit}"
        case ["LATIN" | "GREEK", size, "LETTER", letter]:
            named = f"{size} {letter}"
        case _:
            raise UnreadableError
    for full in (
        each for style in styles for each in (f"MATHEMATICAL {style} {named}", f"{style} {named}")
    ):
        try:
            return lookup(full)
        except KeyError:
            continue
    raise UnreadableError


def _accented(atoms: list[Atom], accent: str) -> Atom:
    match atoms:
        case [Atom(text, "sign")] if len(text) == 1 and text.isalpha():
            return Atom(f"{text}{accent}")
        case _:
            raise UnreadableError
