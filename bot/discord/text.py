"""Discord's dialect: its own Markdown, in embeds.

Other people's text pings nobody, even if a message is sent without `allowed_mentions`: anything that
would be a mention, an emoji, a time or a command shows its brackets. Code is inert by itself.

Sources: https://discord.com/developers/docs/reference#message-formatting,
https://discord.com/developers/docs/resources/message#embed-object-embed-limits
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from bot.render.changes import changed
from bot.render.dialect import (
    APART,
    DEEPEST_HEADING,
    LINE,
    ChatDialect,
    Grid,
    beginnings,
    blocks,
    code_span,
    drawn_table,
    grid_of,
    heading,
    height,
    listed,
    longest_ticks,
    with_code,
)
from bot.render.dialect import words as plain
from bot.render.parsing import beginning
from bot.render.splitting import Block as SplitBlock
from bot.render.splitting import LineBlock, Text, Word
from bot.render.splitting import parts as cut_one_by_one
from bot.view import message as m
from bot.view.wording.card import IN_THREAD
from bot.view.wording.past import THERE
from bot.view.wording.thread import IN_TRANSCRIPT
from council.text import clip

TITLE, DESCRIPTION, FOOTER, EMBED = 256, 4096, 2048, 6000
EMBEDS, SHARED = 2, 2900  # for a long text: embeds per message, and each one's share of the 6,000
BOUNDED = 2
BELOW_PROSE = 1500
TABLE_WIDTH = 55  # columns of code that an embed shows
QUESTION, HEIGHT = 1000, 4500  # some 1,500 pixels of a card

_MORE = " \u2026"
_MARKUP = re.compile(r"[\\*`~|\[\]<]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_PING = re.compile(r"@(?=everyone|here)|(?<=<)@(?=[!&]?\d)")


@dataclass(frozen=True, slots=True)
class CardText:
    """The text of one embed; `cut` if its prose continues elsewhere. The title may be empty."""

    title: str
    description: str
    footer: str
    cut: bool


def units(text: str) -> int:
    """Return a text's length in UTF-16 units, Discord's strictest count."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def pages(message: m.Message) -> list[list[str]]:
    """Return the embeds' descriptions for each Discord message that one of ours becomes.

    A bounded message takes at most two and says if its text is cut.
    """
    written = [*_written(message.blocks)]
    first, *rest = [*islice(cut_one_by_one(written, DESCRIPTION, units), 2)] or [""]
    if not rest:
        return [[first]] if first else []
    most = BOUNDED * EMBEDS if message.bounded else None
    texts = [*islice(cut_one_by_one(written, SHARED, units), most and most + 1)]
    if most and len(texts) > most:
        texts = [*texts[: most - 1], f"{texts[most - 1]}\n\n*{IN_TRANSCRIPT}*"]
    return [texts[start : start + EMBEDS] for start in range(0, len(texts), EMBEDS)]


def card(message: m.Message, continues: str = IN_THREAD) -> CardText:
    """Return the card, whose prose `continues` elsewhere if it is too long or too high."""
    body: Sequence[m.Block] = [block for block in message.blocks if not isinstance(block, m.Footer)]
    title = ""
    if body and isinstance(body[0], m.Title | m.Heading):
        title = DIALECT.text(body[0].text)
        if units(title) <= TITLE:
            body = body[1:]
        else:
            title = ""  # it is in the description, in full
    said = " ".join(block.text for block in message.blocks if isinstance(block, m.Footer))
    footer = clip(said, FOOTER // 2)
    body, after = _parted(body)
    ended = cut_one_by_one([*_written(after, level=1)], BELOW_PROSE - units(_MORE), units)
    below, *more = [*islice(ended, 2)] or [""]
    below = f"\n\n{below}{_MORE if more else ''}" if below else ""
    room = min(DESCRIPTION, EMBED - units(title) - units(footer)) - units(below)
    shown = [*beginnings(body, DESCRIPTION)]
    written = [*_written(shown, level=1, is_card=True)]
    high = HEIGHT - height(f"{title}\n{below}\n{footer}") if continues else EMBED * HEIGHT
    first, *rest = [*islice(cut_one_by_one(written, room, units), 2)] or [""]
    if not rest and shown == body and height(first) <= high:
        return CardText(title, f"{first}{below}", footer, cut=False)
    end = f"\n\n*{continues}*"
    cuts = ((room, units), (max(high, 2 * BELOW_PROSE), height))
    begun = min((next(cut_one_by_one(written, most - by(end), by), "") for most, by in cuts), key=len)
    return CardText(title, f"{begun}{end}{below}", footer, cut=True)


def _parted(body: Sequence[m.Block]) -> tuple[Sequence[m.Block], Sequence[m.Block]]:
    """Separate what follows a card's last prose: it is shown even if the prose is cut."""
    ends = [number for number, block in enumerate(body, 1) if isinstance(block, m.Prose)]
    return (body[: ends[-1]], body[ends[-1] :]) if ends else (body, [])


def _written(
    content: Iterable[m.Block], *, level: int = 0, is_card: bool = False
) -> Iterator[SplitBlock]:
    """Return blocks in Discord's Markdown; on a card, a long question is cut."""
    for block in content:
        if isinstance(block, m.Title | m.Heading):
            level = block.level if isinstance(block, m.Heading) else 1
        if isinstance(block, m.Quote) and is_card:
            yield from _question(beginning(block.markdown, QUESTION), len(block.markdown))
        else:
            yield from _block(block, level)


def _block(block: m.Block, level: int) -> Iterator[SplitBlock]:
    match block:
        case m.Title(text) | m.Heading(text):
            # Discord sets a heading apart by itself; an empty line above it makes that twice as much.
            yield replace(heading(plain(text, DIALECT), level), near=level == DEEPEST_HEADING)
        case m.Line(text, strong) if text:
            yield Text(plain(text, DIALECT, ("**",) if strong else ()))
        case m.Footer(text) if text:
            yield Text(plain(text, DIALECT), "-# ")
        case m.Pairs(rows) if rows:
            if block.listed:
                yield listed((f"{name}: {said}" for name, said in rows), DIALECT)
            else:
                together = [(row,) for row in rows] if block.are_paragraphs else [rows]
                yield from (Text(tuple(_pairs(each, block.together))) for each in together)
        case m.Entry():
            yield Text(tuple(_entry(block)))
        case m.Table():
            yield DIALECT.table(grid_of(block, DIALECT))
        case m.Columns(columns):
            for title, items in columns:
                yield heading(plain(title, DIALECT), DEEPEST_HEADING + 1)
                yield listed(items, DIALECT)
        case m.Prose(markdown):
            yield from blocks(markdown, DIALECT, level)
        case m.Quote(markdown) if markdown:
            yield from blocks(markdown, DIALECT, level, quoted=True)
        case m.Diff(before, after):
            yield from changed(before, after, DIALECT)
        case _:
            pass


@lru_cache(maxsize=1024)
def _question(begun: str, length: int) -> tuple[SplitBlock, ...]:
    """Return a question's beginning; every edit of a running card shows it again."""
    if not begun:
        return ()
    written = blocks(begun, DIALECT, quoted=True)
    first, *rest = [*islice(cut_one_by_one(written, QUESTION, units), 2)] or [""]
    lines = first.split("\n")
    return (LineBlock((*lines, "> \u2026") if rest or len(begun) < length else tuple(lines)),)


clear_cache = _question.cache_clear
"""Clear the cache of rendered questions."""


def _pairs(rows: Iterable[tuple[str, str]], may_have_code: bool) -> Iterator[Word]:
    for number, (name, said) in enumerate(rows):
        if number:
            yield Word("\n")
        yield from plain(name, DIALECT, ("**",))
        yield from (with_code if may_have_code else plain)(f": {said}", DIALECT)


def _entry(entry: m.Entry) -> Iterator[Word]:
    yield from plain(entry.text, DIALECT, ("**",))
    facts = [[Word(f"<t:{int(entry.at.timestamp())}:R>")]] if entry.at else []
    facts += [[*plain(entry.said, DIALECT)]] if entry.said else []
    facts += [[Word(f"[{THERE}]{DIALECT.target(entry.url)}")]] if entry.url else []
    for number, fact in enumerate(facts):
        yield Word(" \u00b7 " if number else "\n")
        yield from fact
    for number, (text, marked) in enumerate(entry.excerpt):
        if not number:
            yield Word("\n")
        yield from plain(text, DIALECT, ("**",) if marked else ())


class _Discord:
    """Discord's Markdown: line breaks count, fences have three backticks, quotes don't nest."""

    line_break = "\n"
    nests_quotes = False

    def text(self, text: str) -> str:
        return _PING.sub(f"@{APART}", _MARKUP.sub(r"\\\g<0>", text))

    def code(self, code: str) -> str:
        return code_span(_without_fence(code) if longest_ticks(code) > 1 else code)

    def fence(self, code: str, language: str) -> LineBlock:
        return LineBlock(tuple(_without_fence(code).split("\n")), (f"```{language}",), ("```",))

    def url(self, url: str) -> str:
        return f"<{_PING.sub('%40', url)}>"

    def target(self, url: str) -> str:
        return f"(<{_PING.sub('%40', url)}>)"

    def table(self, grid: Grid) -> SplitBlock:
        return drawn_table(grid, self, TABLE_WIDTH)

    def rule(self, *, nested: bool) -> str:
        del nested
        return LINE


def _without_fence(code: str) -> str:
    return code.replace("``", f"`{APART}`").replace("``", f"`{APART}`")


DIALECT: ChatDialect = _Discord()
