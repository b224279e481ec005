"""Slack's `markdown` blocks: standard Markdown in which nothing is a mention.

An angle bracket that could begin a mention is written as an entity. In code, where an entity might show
as written, a zero-width joiner follows the bracket. Slack stores one `markdown` block as several blocks
and accepts one table per message, so both are counted here.

Source: https://docs.slack.dev/reference/block-kit/blocks/markdown-block
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bot.render.dialect import (
    LINE,
    ChatDialect,
    Grid,
    code_span,
    drawn_table,
    in_one_line,
    longest_ticks,
)
from bot.render.splitting import Block, LineBlock, Measure, Text, join, leading, split, written

STORED = 30  # blocks per piece, which leaves room for ours beside it
TABLE_ROWS, TABLE_COLUMNS, TABLE_CHARACTERS = 100, 20, 8_000
CODE_WIDTH = 80
RULE = "---"

_MARKUP = re.compile(r"[\\*`~|\[\]]|(?<![^\W_])_|_(?![^\W_])")
_BRACKET = re.compile(r"<(?=\S)")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_MENTION = re.compile(r"<(?=[@#][A-Z0-9]|!(?:channel|here|everyone|subteam|date)\b)")
_PIPE = re.compile(r"(?<!\\)\|")
_ESCAPE = r"\\\g<0>"
_JOINER = "\u2060"
_TICKS = re.compile("`{9}(?=`)")  # a fence is longer than the runs it holds, and every part repeats it


@dataclass(frozen=True, slots=True)
class MarkdownPiece:
    """The text of one `markdown` block, and how many blocks and tables Slack makes of it."""

    text: str
    stored: int
    tables: int


def pieces(content: Iterable[Block], limit: int, measure: Measure = len) -> Iterator[MarkdownPiece]:
    """Return the texts of `markdown` blocks of at most `limit` characters each."""
    for run in _runs(content, limit, measure):
        stored, grids = _stored(run), sum(isinstance(block, _Table) for block in run)
        yield from (MarkdownPiece(text, stored, grids) for text in split(run, limit, measure))


def _runs(content: Iterable[Block], limit: int, measure: Measure) -> Iterator[list[Block]]:
    """Group blocks by about `limit` characters, with few enough stored blocks and one table."""
    run: list[Block] = []
    used = stored = 0
    tabled = False
    for block in content:
        length = measure("".join(f"{line}\n" for line in (*written(block), "")))
        if run and (used + length > limit or stored >= STORED):
            led = leading(run, _leads)
            yield run[: len(run) - len(led)]
            run, used, stored, tabled = led, 0, len(led), False
        here = block.instead if isinstance(block, _Table) and (tabled or length > limit) else block
        stored += _is_alone(here) or not run or _is_alone(run[-1])
        tabled = tabled or isinstance(here, _Table)
        used += length
        run.append(here)
    if run:
        yield run


def _leads(block: Block) -> bool:
    return isinstance(block, Text) and block.leads


def _stored(run: Sequence[Block]) -> int:
    """Count the blocks that Slack stores: one per heading, rule and table, and one per run of others."""
    alone = [*map(_is_alone, run)]
    return sum(this or before for this, before in zip(alone, [True, *alone], strict=False))


def _is_alone(block: Block) -> bool:
    heading = isinstance(block, Text) and block.start != ""
    return (
        heading or isinstance(block, _Table) or (isinstance(block, LineBlock) and block.lines == (RULE,))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table(LineBlock):
    """A table, with the code to show instead beside another table."""

    instead: Block


class _Slack:
    """Standard Markdown in which nothing is a mention."""

    line_break = "  \n"
    nests_quotes = True

    def text(self, text: str) -> str:
        return _BRACKET.sub("&lt;", _ENTITY.sub("&amp;", _MARKUP.sub(_ESCAPE, text)))

    def code(self, code: str) -> str:
        return code_span(_inert(code))

    def fence(self, code: str, language: str) -> LineBlock:
        code = _TICKS.sub(rf"\g<0>{_JOINER}", _inert(code))
        ticks = "`" * max(3, longest_ticks(code) + 1)
        return LineBlock(tuple(code.split("\n")), (f"{ticks}{language}",), (ticks,))

    def url(self, url: str) -> str:
        shown = self.text(url)
        return url if shown == url else f"[{shown}]{self.target(url)}"

    def target(self, url: str) -> str:
        return f"({url.replace('(', '%28').replace(')', '%29')})"

    def table(self, grid: Grid) -> Block:
        instead = drawn_table(grid, self, CODE_WIDTH)
        header, *rows = (
            f"| {' | '.join(_PIPE.sub(_ESCAPE, join(in_one_line(cell.words))) for cell in row)} |"
            for row in (grid.header, *grid.rows)
        )
        if grid.nested or not has_room([len(row) for row in (header, *rows)], len(grid.header)):
            return instead
        head = (header, f"|{' --- |' * len(grid.header)}")
        return _Table(tuple(rows), head, instead=instead)

    def rule(self, *, nested: bool) -> str:
        return LINE if nested else RULE


def has_room(rows: Sequence[int], columns: int) -> bool:
    return len(rows) <= TABLE_ROWS and columns <= TABLE_COLUMNS and sum(rows) <= TABLE_CHARACTERS


def _inert(code: str) -> str:
    return _MENTION.sub(f"<{_JOINER}", code)


DIALECT: ChatDialect = _Slack()
