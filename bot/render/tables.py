"""Tables for platforms without tables: columns as code, or a list if they are too wide."""

from collections.abc import Iterator

from rich.cells import cell_len

from bot.render.dialect import Cell, Dialect, Grid, words
from bot.render.splitting import Block, Lines, Nest, Text, Word
from bot.view.message import Table

_GAP = "  "
_BETWEEN = (Word(" "), Word("\u00b7"), Word(" "))


def grid(table: Table, dialect: Dialect) -> Grid:
    """Return one of our tables as a grid."""

    def cells(row: tuple[str, ...]) -> tuple[Cell, ...]:
        return tuple(Cell(words(text, dialect), text) for text in row)

    return Grid(cells(table.header), tuple(map(cells, table.rows)))


def drawn(table: Grid, dialect: Dialect, width: int) -> Block:
    """Return a table as aligned code of at most `width` columns, otherwise as a list of its rows."""
    rows = [[cell.plain for cell in row] for row in (table.header, *table.rows)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= width:
        return _aligned(rows, widths, dialect)
    if not table.rows:
        return Text(tuple(_names(table.header)))
    return Nest(tuple(_item(table.header, row) for row in table.rows), loose=False)


def _aligned(rows: list[list[str]], widths: list[int], dialect: Dialect) -> Lines:
    rows.insert(1, ["-" * width for width in widths])
    lines = [
        _GAP.join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    fence = dialect.fence("\n".join(line.rstrip() for line in lines), "")
    header, rule, *body = fence.lines
    return Lines(tuple(body), (*fence.head, header, rule), fence.foot)


def _names(header: tuple[Cell, ...]) -> Iterator[Word]:
    for number, cell in enumerate(header):
        yield from _BETWEEN if number else ()
        yield from (Word(word.text, ("**",)) for word in cell.words)


def _item(header: tuple[Cell, ...], row: tuple[Cell, ...]) -> Nest:
    content: list[Word] = []
    for name, cell in zip(header, row, strict=True):
        content += _BETWEEN if content else ()
        if name.plain:
            content += (
                *(Word(word.text, ("**",)) for word in name.words),
                Word(":", ("**",)),
                Word(" "),
            )
        content += cell.words
    return Nest((Text(tuple(content)),), "- ", "  ", loose=False)
