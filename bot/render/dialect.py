"""Rewrites Markdown in a platform's dialect, as blocks that can be cut.

Every word passes through the dialect's `text` or `code`. Whatever the parser doesn't read as markup
shows as text, even if the platform would make a mention, HTML or a spoiler of it. The output has one
form for each thing: no link references, underlined headings or indented code.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, dropwhile, takewhile, zip_longest
from typing import Protocol
from unicodedata import east_asian_width

from markdown_it.token import Token
from rich.cells import cell_len

from bot.render import parsing
from bot.render.lenient import needs_a_letter
from bot.render.splitting import Block, LineBlock, Nest, Text, Word, join, shared_marks
from bot.view import message as m

DEEPEST_HEADING = 3
APART = "\u200b"
LINE = "\u2500" * 10
_LINE_END = 50
_GAP = "  "
_BETWEEN = (Word(" "), Word("\u00b7"), Word(" "))

_LONG_CODE = 100
_SHORT = 40  # every part has room for at least this much
_SPACE, _SPACE_OR_BREAK = re.compile(r"([ \t]+)"), re.compile(r"([ \t]+|\n)")
_LANGUAGE = re.compile(r"[\w+#.-]{1,24}$")
_TICKS = re.compile("`+")
# Code in a line of text, also where the line was cut inside it.
_CODE = re.compile(r"(?<!`)`([^`\n]+?)(?:`(?!`)|(?=\u2026\W?$))")
# Elsewhere `__` means underlined, and `_` doesn't close before a letter.
_MARKS = {"strong_open": "**", "em_open": "*", "s_open": "~~"}

# Texts up to this length are remembered, so that a card's edits don't read again what hasn't changed.
_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell, with and without its markup, which may hide an address."""

    words: tuple[Word, ...]
    plain: str
    hides: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; a `nested` one is in a list or quote."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    nested: bool = False


class ChatDialect(Protocol):
    """How a platform writes what the parser reads."""

    line_break: str
    nests_quotes: bool

    def text(self, text: str) -> str:
        """Return text that shows as it is."""
        ...

    def code(self, code: str) -> str:
        """Return code within a line."""
        ...

    def fence(self, code: str, language: str) -> LineBlock:
        """Return lines of code."""
        ...

    def url(self, url: str) -> str:
        """Return an address that shows as it is."""
        ...

    def target(self, url: str) -> str:
        """Return what follows a link's bracketed text."""
        ...

    def table(self, grid: Grid) -> Block:
        """Return a table, or the closest thing the platform has."""
        ...

    def rule(self, *, nested: bool) -> str:
        """Return a horizontal rule."""
        ...


def blocks(
    markdown: str, dialect: ChatDialect, under: int = 0, *, quoted: bool = False
) -> tuple[Block, ...]:
    """Return the blocks of somebody's Markdown, its headings below level `under`.

    In a quote there are no headings.
    """
    if len(markdown) <= _REMEMBERED:
        return _remembered(markdown, dialect, under, quoted)
    return _read(markdown, dialect, under, quoted)


def _read(markdown: str, dialect: ChatDialect, under: int, quoted: bool) -> tuple[Block, ...]:
    tokens, env = parsing.parse_blocks(markdown)
    read = tuple(_Reader(dialect, under, env).read(iter(tokens), 1 if quoted else 0))
    return (Nest(read, "> ", "> "),) if quoted else read


_remembered = lru_cache(maxsize=32)(_read)
clear_cache = _remembered.cache_clear
"""Clear the cache of parsed texts."""


def beginnings(content: Iterable[m.Block], length: int) -> Iterator[m.Block]:
    """Return the blocks to parse for a card, up to a prose block that is too long for it."""
    for block in content:
        begun = (
            m.Prose(parsing.beginning(block.markdown, length)) if isinstance(block, m.Prose) else block
        )
        yield begun
        if begun != block:
            return


def height(text: str) -> int:
    """Return about how high a text is, in columns: a line has some 80, and its end leaves some empty."""
    wide = 0 if text.isascii() else sum(map("FW".count, map(east_asian_width, text)))
    return len(text) + wide + _LINE_END * text.count("\n")


def words(text: str, dialect: ChatDialect, marks: tuple[str, ...] = ()) -> tuple[Word, ...]:
    """Return the words of plain text."""
    return tuple(_plain_words(text, dialect, marks))


def plain_text(markdown: str, *skipped: str) -> str:
    tokens, env = parsing.parse_blocks(markdown)
    lines, inside = list[str](), 0
    for token in tokens:
        if token.type.split("_")[0] in skipped:
            inside += token.nesting
        elif token.content and not inside:
            text = token.content.rstrip("\n")
            lines.append(_plain(parsing.parse_inline(text, env)) if token.type == "inline" else text)
    return "\n".join(lines)


def coded(text: str) -> Iterator[tuple[str, bool]]:
    """Return the parts of a line of text, and whether each is code: what is between two backticks."""
    return ((part, bool(number % 2)) for number, part in enumerate(_CODE.split(text)) if part)


def with_code(text: str, dialect: ChatDialect) -> Iterator[Word]:
    """Return the words of a line of text in which code shows as code, and nothing else as markup."""
    for part, is_code in coded(text):
        plain = _plain_words(part, dialect, ())
        yield from (Word(dialect.code(part), (), (*plain,)),) if is_code else plain


def listed(items: Iterable[str], dialect: ChatDialect) -> Nest:
    entries = (Nest((Text((*with_code(item, dialect),)),), "- ", "  ", loose=False) for item in items)
    return Nest(tuple(entries), loose=False)


def heading(content: Sequence[Word], level: int, *, nested: bool = False) -> Text:
    if level <= DEEPEST_HEADING and not nested:
        return Text(tuple(content), f"{'#' * level} ", leads=True)
    bold = (each if "**" in each.marks else replace(each, marks=("**", *each.marks)) for each in content)
    return Text((*bold,), leads=True)


def code_span(code: str) -> str:
    if "`" not in code and not (code[:1] == code[-1:] == " "):
        return f"`{code}`"
    runs = {len(run) for run in _TICKS.findall(code)}
    ticks = "`" * next(count for count in range(1, len(runs) + 2) if count not in runs)
    pad = " " if code.startswith("`") or code.endswith("`") or code[:1] == code[-1:] == " " else ""
    return f"{ticks}{pad}{code}{pad}{ticks}"


def longest_ticks(code: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, _TICKS.findall(code)), default=0) if "`" in code else 0


def _plain_words(
    text: str, dialect: ChatDialect, marks: tuple[str, ...], between: re.Pattern[str] = _SPACE
) -> Iterator[Word]:
    if text == " ":
        yield Word(text, marks)
        return
    end = 0
    for begin, url in parsing.find(text):
        yield from _spaced(dialect.text(text[end:begin]), marks, between)
        yield _address(url, dialect, marks)
        end = begin + len(url)
    yield from _spaced(dialect.text(text[end:]), marks, between)


def _spaced(text: str, marks: tuple[str, ...], between: re.Pattern[str] = _SPACE) -> Iterator[Word]:
    return (Word(word, marks) for word in between.split(text) if word)


class _Reader:
    def __init__(self, dialect: ChatDialect, under: int, env: parsing.Env) -> None:
        self._dialect = dialect
        self._under = under
        self._env = env

    def read(self, tokens: Iterator[Token], depth: int = 0, quotes: int = 0) -> Iterator[Block]:
        """Return blocks until their container closes."""
        for token in tokens:
            match token.type:
                case "paragraph_open":
                    content = self._inline(next(tokens))
                    next(tokens)
                    if content:
                        yield Text(content, leads=content[-1].text.endswith((":", "\uff1a")))
                case "heading_open":
                    content = in_one_line(self._inline(next(tokens)))
                    next(tokens)
                    yield heading(content, int(token.tag[1:]) + self._under, nested=depth > 0)
                case "fence" | "code_block":
                    yield self._code(token)
                case "blockquote_open":
                    prefix = "" if quotes and not self._dialect.nests_quotes else "> "
                    yield Nest(tuple(self.read(tokens, depth + 1, quotes + 1)), prefix, prefix)
                case "bullet_list_open" | "ordered_list_open":
                    yield self._list(token, tokens, depth, quotes)
                case "table_open":
                    yield self._table(tokens, depth)
                case "hr":
                    yield LineBlock((self._dialect.rule(nested=depth > 0),))
                case _:
                    return

    def _code(self, token: Token) -> LineBlock:
        name = token.info.split(maxsplit=1)[:1]
        language = name[0] if name and _LANGUAGE.match(name[0]) else ""
        return self._dialect.fence(token.content.removesuffix("\n"), language)

    def _list(self, opening: Token, tokens: Iterator[Token], depth: int, quotes: int) -> Nest:
        number = int(opening.attrGet("start") or 1) if opening.type.startswith("o") else None
        items: list[Nest] = []
        loose = False
        for token in tokens:
            if token.type != "list_item_open":
                break
            marker = "- " if number is None else f"{number + len(items)}. "
            inside = [*takewhile(lambda each, level=token.level: each.level > level, tokens)]
            # A blank line separates its paragraphs: not those of a list in it.
            is_loose = any(
                each.type == "paragraph_open" and not each.hidden and each.level == token.level + 1
                for each in inside
            )
            content = tuple(self.read(iter(inside), depth + 1, quotes))
            loose = loose or is_loose
            items.append(Nest(content, marker, " " * len(marker), loose=is_loose))
        return Nest(tuple(items), loose=loose)

    def _table(self, tokens: Iterator[Token], depth: int) -> Block:
        rows: list[list[Cell]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                children = parsing.parse_inline(token.content, self._env) if token.content else []
                plain = _plain(children, "\n").strip()
                hides = any(_target(child) not in plain for child in children)
                rows[-1].append(Cell(self._trimmed(children), plain, hides))
            elif token.type == "table_close":
                break
        return self._dialect.table(Grid(tuple(rows[0]), tuple(map(tuple, rows[1:])), depth > 0))

    def _inline(self, token: Token) -> tuple[Word, ...]:
        return self._trimmed(parsing.parse_inline(token.content, self._env))

    def _trimmed(self, tokens: Iterable[Token]) -> tuple[Word, ...]:
        """Return words without line breaks at either end."""
        words = [*legible(self._words(tokens, ()))]
        while words and words[-1].text.endswith("\n"):
            words.pop()
        return tuple(dropwhile(lambda word: word.text.endswith("\n"), words))

    def _words(self, tokens: Iterable[Token], marks: tuple[str, ...]) -> Iterator[Word]:
        """Return words, each with the marks around it."""
        rest = iter(tokens)
        # A stack, because emphasis may be nested deeper than Python's calls.
        opened: list[tuple[str, ...]] = []
        before: Word | None = None
        for token in rest:
            if token.type in _MARKS:
                mark = _MARKS[token.type]
                opened.append(marks)
                marks = marks if mark in marks else (*marks, mark)
            elif token.nesting < 0:
                marks = opened.pop()
            for word in self._of(token, rest, marks):
                if before and _would_join(before.text, word.text):
                    yield Word(APART, min(before.marks, word.marks, key=len))
                yield word
                before = word

    def _of(self, token: Token, rest: Iterator[Token], marks: tuple[str, ...]) -> Iterator[Word]:
        match token.type:
            case "text" | "text_special":  # a single special isn't joined
                yield from _plain_words(token.content, self._dialect, marks, _SPACE_OR_BREAK)
            case "bare_url":
                yield _address(token.content, self._dialect, marks)
            case "formula":
                yield from self._formula(token.content, marks)
            case "softbreak":
                yield Word("\n", marks)
            case "hardbreak":
                yield Word(self._dialect.line_break, marks)
            case "code_inline":
                yield from self._code_words(token.content, marks)
            case "link_open":
                alone = token.markup == "autolink"
                yield from self._link(parsing.label_of(rest), _target(token), marks, alone=alone)
            case "image":
                yield from self._link(token.children or [], _target(token), marks)
            case _:
                pass

    def _formula(self, formula: str, marks: tuple[str, ...]) -> Iterator[Word]:
        """Return a formula, of which no line is cut unless it has no room."""
        for number, line in enumerate(formula.split("\n")):
            if number:
                yield Word(self._dialect.line_break, marks)
            words = (*_plain_words(line.strip(), self._dialect, marks),)
            whole = "".join(word.text for word in words)
            yield from (Word(whole, marks, words),) if len(words) > 1 else words

    def _code_words(self, code: str, marks: tuple[str, ...]) -> Iterator[Word]:
        if len(code) <= _LONG_CODE:
            instead: tuple[Word, ...] = ()
            if len(code) > _SHORT:
                instead = (Word(APART, marks), *_plain_words(code, self._dialect, marks))
            yield Word(self._dialect.code(code), marks, instead)
        elif "`" in code:
            yield from _plain_words(code, self._dialect, marks)
        else:
            # Long code may be cut at its spaces.
            inner, inner_marks = self._dialect.code(code).strip("`"), (*marks, "`")
            yield from (Word(word, inner_marks) for word in _SPACE.split(inner) if word)

    def _link(
        self, content: Iterable[Token], target: str, marks: tuple[str, ...], *, alone: bool = False
    ) -> Iterator[Word]:
        """Return a link; one that is `alone` has no text except its address."""
        label = [*_label(content)]
        shown = _plain(label).strip()
        web = parsing.WEB.match(target)
        if web and (alone or not shown or parsing.same(shown, target)):
            yield _address(target, self._dialect, marks)
        elif web and parsing.is_honest(shown, target):
            text = join(legible(self._words(label, ()))).replace("\n", " ")
            link = f"[{text}]{self._dialect.target(target)}"
            instead = self._unlinked(label, target, marks) if len(link) > _SHORT else ()
            yield Word(link, marks, (Word(APART, marks), *instead) if instead else ())
        else:
            hidden = target if target not in ("", shown, f"mailto:{shown}") else ""
            yield from self._unlinked(label, hidden, marks)

    def _unlinked(self, label: list[Token], target: str, marks: tuple[str, ...]) -> tuple[Word, ...]:
        said = (*self._words(label, marks),)
        if not target:
            return said
        leads = _plain_words(target, self._dialect, marks)
        return (*said, Word(" ", marks), Word("(", marks), *leads, Word(")", marks))


def legible(words: Iterable[Word]) -> Iterator[Word]:
    """Add letters of no width where a platform would otherwise show marks instead of reading them.

    They are between two runs of marks that touch, and between a mark and punctuation inside it, unless a
    space or ASCII punctuation is outside.
    """
    before = Word(" ")
    for word in words:
        shared = shared_marks(before.marks, word.marks)
        closes, opens = len(before.marks) > shared, len(word.marks) > shared
        if closes:
            outside = APART if opens else word.text[0]
            yield from reversed([*_letters(before, before.text[-1], outside, shared)])
        if closes and opens:
            yield Word(APART, before.marks[:shared])
        if opens:
            outside = APART if closes else before.text[-1]
            yield from _letters(word, word.text[0], outside, shared)
        yield word
        before = word


def _letters(word: Word, inside: str, outside: str, shared: int) -> Iterator[Word]:
    """Yield the letters that the marks of a word need on one side, from the outermost."""
    marks = word.marks
    if marks[-1] == "`":
        marks, inside = marks[:-1], "`"
    for depth in range(shared + 1, len(marks)):
        if marks[depth][0] != marks[depth - 1][0] and needs_a_letter(outside, marks[depth][0]):
            yield Word(APART, marks[:depth])
    if len(marks) > shared and not inside.isspace() and needs_a_letter(outside, inside):
        yield Word(APART, marks)


def in_one_line(words: Iterable[Word]) -> list[Word]:
    """Return words with spaces in place of line breaks."""
    return [Word(" ", word.marks) if word.text.endswith("\n") else word for word in words]


def _address(url: str, dialect: ChatDialect, marks: tuple[str, ...]) -> Word:
    """Return an address; one that is too long for a part becomes text."""
    instead = (*_spaced(dialect.text(url), marks),) if len(url) > _SHORT else ()
    return Word(dialect.url(url), marks, instead)


def _would_join(before: str, after: str) -> bool:
    """Return whether two harmless neighbours could form a mention or a picture."""
    match before[-1:]:
        case "!":
            return after.startswith("[")
        case "@" | "<":
            return not after.isspace()
        case _:
            return False


def _target(token: Token) -> str:
    return str(token.attrGet("href") or token.attrGet("src") or "")


def _label(tokens: Iterable[Token]) -> Iterator[Token]:
    """Return a link's label, with each picture replaced by its text."""
    for token in tokens:
        if token.type == "image":
            yield from _label(token.children or ())
        elif token.type not in ("link_open", "link_close"):
            yield token


def _plain(tokens: Iterable[Token], line_break: str = " ") -> str:
    breaks = {"softbreak": " ", "hardbreak": line_break}
    return "".join(breaks.get(each.type, each.content) for each in tokens if each.nesting == 0)


def grid_of(table: m.Table, dialect: ChatDialect) -> Grid:
    """Return one of our tables as a grid."""

    def cells(row: tuple[str, ...]) -> tuple[Cell, ...]:
        return tuple(Cell(words(text, dialect), text) for text in row)

    return Grid(cells(table.header), tuple(map(cells, table.rows)))


def drawn_table(table: Grid, dialect: ChatDialect, width: int) -> Block:
    """Return a table as aligned code of at most `width` columns; a wider one, or of links, as a list."""
    rows = [[cell.plain.split("\n") for cell in row] for row in (table.header, *table.rows)]
    widths = [
        max(cell_len(line) for cell in column for line in cell) for column in zip(*rows, strict=True)
    ]
    hides = any(cell.hides for row in (table.header, *table.rows) for cell in row)
    if not hides and sum(widths) + len(_GAP) * (len(widths) - 1) <= width:
        return _aligned(rows, widths, dialect)
    if not table.rows:
        return Text(tuple(_names(table.header)))
    # The first column says what a line is about; the names of the others are above, once.
    lines = (Nest((Text(tuple(_line(row))),), "- ", "  ", loose=False) for row in table.rows)
    return Nest((Text(tuple(_names(table.header))), *lines), loose=False)


def _aligned(rows: list[list[list[str]]], widths: list[int], dialect: ChatDialect) -> LineBlock:
    """Return rows, each with as many lines as its highest cell, below the header and a rule."""
    head, *body = ([_joined(line, widths) for line in zip_longest(*row, fillvalue="")] for row in rows)
    rule = _GAP.join("-" * width for width in widths)
    fence = dialect.fence("\n".join((*head, rule, *chain(*body))), "")
    end = len(head) + 1
    return LineBlock(fence.lines[end:], (*fence.head, *fence.lines[:end]), fence.foot)


def _joined(cells: Iterable[str], widths: Iterable[int]) -> str:
    padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True))
    return _GAP.join(padded).rstrip()


def _names(header: tuple[Cell, ...]) -> Iterator[Word]:
    for number, cell in enumerate(header):
        yield from _BETWEEN if number else ()
        yield from (Word(word.text, ("**",)) for word in in_one_line(cell.words))


def _line(row: tuple[Cell, ...]) -> Iterator[Word]:
    for number, cell in enumerate(row):
        yield from _BETWEEN if number else ()
        for word in cell.words:
            inner = tuple(mark for mark in word.marks if mark != "**")
            yield word if number else replace(word, marks=("**", *inner))
