"""Tables for platforms without tables: columns as code, or a list if they are too wide."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, zip_longest

from rich.cells import cell_len

from bot.render.dialect import Cell, ChatDialect, Grid, in_one_line, words
from bot.render.splitting import Block, LineBlock, Nest, Text, Word
from bot.view.message import Table

_GAP = "  "
_BETWEEN = (Word(" "), Word("\u00b7"), Word(" "))


def grid(table: Table, dialect: ChatDialect) -> Grid:
    """Return one of our tables as a grid."""

    def cells(row: tuple[str, ...]) -> tuple[Cell, ...]:
        return tuple(Cell(words(text, dialect), text) for text in row)

    return Grid(cells(table.header), tuple(map(cells, table.rows)))


def drawn(table: Grid, dialect: ChatDialect, width: int) -> Block:
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
