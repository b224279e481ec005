"""Slack's messages: our lines as plain and rich text, without mentions; Markdown in its own blocks.

At the end are buttons, whose clicks arrive under their ids, and the forms that these open. A form
carries its run and its place in its metadata, so that any process can read it.

Sources: https://docs.slack.dev/reference/block-kit/blocks, https://docs.slack.dev/surfaces/modals,
https://docs.slack.dev/messaging/formatting-message-text, slackapi/bolt-js#2509 for the whole message.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from textwrap import wrap
from typing import Self

import orjson

from bot.actions import Action
from bot.errors import Refusal
from bot.render.changes import changed
from bot.render.dialect import (
    beginnings,
    blocks,
    coded,
    drawn_table,
    grid_of,
    height,
    listed,
    plain_text,
)
from bot.render.parsing import beginning
from bot.render.splitting import Block as SplitBlock
from bot.render.splitting import Measure, leading
from bot.service.commands import Given
from bot.service.delivery.chat import Button, Part
from bot.service.dispatcher import LONGEST_REASON, LONGEST_TEXT, Form, ReasonForm
from bot.slack.client import Json
from bot.slack.markdown import CODE_WIDTH, DIALECT, MarkdownPiece, has_room, pieces
from bot.view import message as m
from bot.view.wording import commands as following
from bot.view.wording import figures
from bot.view.wording.card import IN_THREAD
from bot.view.wording.commands import NOT_HERE
from bot.view.wording.figures import ANSWER_IT, UNHELPFUL
from bot.view.wording.past import THERE
from bot.view.wording.thread import IN_TRANSCRIPT
from council.text import clip

MARKDOWN = 11_000
MESSAGE = 12_500
STORED = 44  # of 45; one is left for a card's buttons
BOUNDED_PIECE = 3_000  # of prose in a bounded message: what has no room is left out piece by piece
QUESTION, HEIGHT = 1_500, 5_500  # some 1,500 pixels of a card
HEADER = 150
PLAIN = 2_900
TEXT = 3_900
FIELD = 2_000  # in a section, which shows its fields in two columns
SMALL = 3  # headings from this level on are bold lines
BULLET = "\u2022"
NOTHING = "\u2013"
WHEN = "{date_short_pretty} at {time}"


@dataclass(frozen=True, slots=True)
class CardBlocks:
    """The card's blocks and its text for notifications; `cut` if its prose continues elsewhere."""

    blocks: list[Json]
    text: str
    cut: bool


@dataclass(frozen=True, slots=True)
class _Size:
    """What limits count: all characters, those of Markdown, stored blocks, tables; how high it is."""

    characters: int = 0
    markdown: int = 0
    stored: int = 0
    tables: int = 0
    height: int = 0

    def __add__(self, other: "_Size") -> "_Size":
        return _Size(
            self.characters + other.characters,
            self.markdown + other.markdown,
            self.stored + other.stored,
            self.tables + other.tables,
            self.height + other.height,
        )

    @property
    def fits(self) -> bool:
        return (
            self.characters <= MESSAGE
            and self.markdown <= MARKDOWN
            and self.stored <= STORED
            and self.tables <= 1
        )


@dataclass(frozen=True, slots=True)
class _Element:
    """A block with its size; one that `leads` stays with what follows it."""

    block: Json
    size: _Size
    leads: bool = False


def pages(message: m.Message, most: int | None = None, rest: str = "") -> list[list[Json]]:
    """Return the blocks of each Slack message that one of our messages becomes, at most `most`.

    If there are more, the last one ends by saying where the `rest` is. A bounded message is one.
    """
    limit = MARKDOWN
    if message.bounded:
        most, rest, limit = 1, IN_TRANSCRIPT, BOUNDED_PIECE
    cut: list[list[_Element]] = [[]]
    for element in _elements(message.blocks, limit):
        page = cut[-1]
        if page and not _total([*page, element]).fits:
            led = leading(page, lambda each: each.leads)
            led = led if _total([*led, element]).fits else []
            cut[-1] = page[: len(page) - len(led)]
            cut.append(led)
        cut[-1].append(element)
    if most and len(cut) > most:
        cut = [*cut[: most - 1], _ended(cut[most - 1], m.Line(rest))]
    return [[element.block for element in page] for page in cut if page]


def _ended(page: list[_Element], said: m.Line) -> list[_Element]:
    """Return a page that ends with a line, without the blocks that it leaves no room for."""
    end = [*_elements([said])]
    while not _total([*page, *end]).fits or page[-1].leads:
        page = page[:-1]
    return [*page, *end]


def card(message: m.Message, continues: str = IN_THREAD) -> CardBlocks:
    """Return the card; if its prose is cut, `continues` says where the rest is."""
    body, after = _parted(message.blocks)
    end = [*_elements(after)]
    more = _rich([_run(continues, "italic")])
    ours = _elements((block for block in body if not isinstance(block, m.Prose)), is_card=True)
    besides = _total([*ours, *end, more]).height
    room = max(HEIGHT - besides, PLAIN // 2)
    shown: list[_Element] = []
    begun = [*beginnings(body, HEIGHT)]
    cut = begun != [*body]
    for element in _elements(begun, room, is_card=True):
        so_far = _total([*shown, element, more, *end])
        if not so_far.fits or so_far.height > besides + room:
            cut = True
            break
        shown.append(element)
    shown += [more] if cut else []
    return CardBlocks([element.block for element in (*shown, *end)], fallback(message), cut)


def _parted(content: Sequence[m.Block]) -> tuple[Sequence[m.Block], Sequence[m.Block]]:
    """Separate what follows a card's last prose: it is shown even if the prose is cut."""
    footer = len(content) - sum(isinstance(block, m.Footer) for block in content)
    ends = [number for number, block in enumerate(content, 1) if isinstance(block, m.Prose)]
    at = ends[-1] if ends else footer
    return content[:at], content[at:]


def fallback(message: m.Message) -> str:
    """Return the text for notifications and search: the message without markup, or its beginning."""
    said = clip("\n".join(filter(None, map(_said, message.blocks))), TEXT)
    if len(_escaped(said)) > TEXT:
        said = clip(said, TEXT // len("&amp;"))
    return _escaped(said)


def _said(block: m.Block) -> str:
    match block:
        case m.Pairs(rows):
            return "\n".join(
                _listed(rows) if block.listed else (f"{name}: {said}" for name, said in rows)
            )
        case m.Table(header, rows):
            return "\n".join(", ".join(row) for row in (header, *rows))
        case m.Columns(columns):
            return "\n".join("\n".join((title, *items)) for title, items in columns)
        case m.Prose(markdown) | m.Quote(markdown) | m.Diff(after=markdown):
            return _plain_beginning(beginning(markdown, TEXT))
        case m.Entry():
            found = "".join(text for text, _ in block.excerpt)
            at = figures.when(block.at) if block.at else ""
            return "\n".join(filter(None, (block.text, at, block.said, found)))
        case _:
            return block.text


_plain_beginning = lru_cache(maxsize=512)(plain_text)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _total(elements: Iterable[_Element]) -> _Size:
    return sum((element.size for element in elements), _Size())


def _elements(
    content: Iterable[m.Block], limit: int = MARKDOWN, *, is_card: bool = False
) -> Iterator[_Element]:
    """Return Slack's blocks; on a card, a long question is cut."""
    level, is_first = 0, True
    for block in content:
        if isinstance(block, m.Title | m.Heading):
            level = block.level if isinstance(block, m.Heading) else 1
        match block:
            case m.Title(text) | m.Heading(text) if text:
                yield _heading(text, level)
            case m.Line(text) if text:
                for line in _lines(text):
                    bold = _rich([_run(line, "bold")]) if block.strong else None
                    yield bold or _plain("section", {"text": _text(line)}, line)
            case m.Footer(text) if text:
                yield from map(_small, _lines(text))
            case m.Pairs():
                yield from _rows(block)
            case m.Entry():
                yield _entry(block)
            case m.Table():
                yield from _table(block, limit, may_be_block=is_first)
                is_first = False  # a message takes one; further ones are code
            case m.Columns(columns):
                yield from _columns(columns, limit)
            case m.Prose(markdown):
                measure = height if is_card else len
                yield from _prose(blocks(markdown, DIALECT, level), limit, measure)
            case m.Diff(before, after):
                yield from _prose(changed(before, after, DIALECT), limit)
            case m.Quote(markdown) if markdown and is_card:
                yield _markdown(_question(beginning(markdown, QUESTION), len(markdown), level))
            case m.Quote(markdown) if markdown:
                yield from _prose(blocks(markdown, DIALECT, level, quoted=True), limit)
            case _:
                pass


def _lines(text: str) -> list[str]:
    return [text] if len(text) <= PLAIN else wrap(text, PLAIN, break_on_hyphens=False)


def _text(text: str) -> Json:
    return {"type": "plain_text", "text": text, "emoji": False}


def _small(text: str) -> _Element:
    return _plain("context", {"elements": [_text(text)]}, text)


def _listed(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"{BULLET} {name}: {said}" for name, said in rows)


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Join lines to texts as long as a block may be."""
    text = ""
    for line in chain.from_iterable(map(_lines, lines)):
        if text and len(text) + len(line) >= PLAIN:
            yield text
            text = ""
        text = f"{text}\n{line}" if text else line
    if text:
        yield text


def _plain(kind: str, content: Json, *texts: str, leads: bool = False) -> _Element:
    size = _Size(sum(map(len, texts)), stored=1, height=height("".join((*texts, "\n"))))
    return _Element({"type": kind, **content}, size, leads)


def _heading(text: str, level: int) -> _Element:
    if level < SMALL and len(text) <= HEADER:
        return _plain("header", {"text": _text(text)}, text, leads=True)
    return _rich([_run(line, "bold") for line in _lines(text)], leads=True)


def _run(text: str, style: str | None = None) -> Json:
    return {"type": "text", "text": text, **({"style": {style: True}} if style else {})}


def _rich(runs: list[Json], *, leads: bool = False) -> _Element:
    section = {"type": "rich_text_section", "elements": runs}
    return _plain("rich_text", {"elements": [section]}, *(run["text"] for run in runs), leads=leads)


def _rows(block: m.Pairs) -> Iterator[_Element]:
    if block.listed:
        return map(_small, _joined(_listed(block.rows)))
    together = [(row,) for row in block.rows] if block.are_paragraphs else [block.rows]
    return chain.from_iterable(_pairs(each, block.together) for each in together)


def _pairs(rows: Iterable[tuple[str, str]], may_have_code: bool) -> Iterator[_Element]:
    runs: list[Json] = []
    for name, said in rows:
        row = [_run(line, "bold") for line in _lines(name)]
        for line in _lines(f": {said}"):
            parts = coded(line) if may_have_code else [(line, False)]
            row += [_run(part, "code" if is_code else None) for part, is_code in parts]
        if runs and sum(len(run["text"]) for run in (*runs, *row)) >= PLAIN:
            yield _rich(runs)
            runs = []
        if runs:
            runs += [_run("")] if "style" in runs[-1] else []
            runs[-1]["text"] += "\n"
        runs += row
    if runs:
        yield _rich(runs)


def _columns(columns: tuple[tuple[str, tuple[str, ...]], ...], limit: int) -> Iterator[_Element]:
    fields = ["\n".join((title, *(f"{BULLET} {item}" for item in items))) for title, items in columns]
    if len(fields) > 1 and max(map(len, fields)) <= FIELD and "`" not in "".join(fields):
        yield _plain("section", {"fields": [*map(_text, fields)]}, *fields)
        return
    for title, items in columns:
        yield _heading(title, SMALL)
        yield from _prose([listed(items, DIALECT)], limit)


def _entry(entry: m.Entry) -> _Element:
    runs = [_run(entry.text, "bold")]
    facts: list[Json] = []
    if at := entry.at:
        stamp, fallback = int(at.timestamp()), figures.when(at)
        facts.append({"type": "date", "timestamp": stamp, "format": WHEN, "fallback": fallback})
    facts += [_run(entry.said)] if entry.said else []
    facts += [{"type": "link", "url": entry.url, "text": THERE}] if entry.url else []
    for number, fact in enumerate(facts):
        runs += [_run(" \u00b7 " if number else "\n"), fact]
    for number, (text, marked) in enumerate(part for part in entry.excerpt if part[0]):
        runs += [] if number else [_run("\n")]
        runs.append(_run(text, "bold" if marked else None))
    said = (run.get("text") or run["fallback"] for run in runs)
    section = {"type": "rich_text_section", "elements": runs}
    return _plain("rich_text", {"elements": [section]}, *said)


def _table(table: m.Table, limit: int, *, may_be_block: bool) -> Iterator[_Element]:
    rows = (table.header, *table.rows)
    lengths = [sum(map(len, row)) for row in rows]
    if not may_be_block or not has_room(lengths, len(table.header)):
        yield from _prose([drawn_table(grid_of(table, DIALECT), DIALECT, CODE_WIDTH)], limit)
        return
    cells = [[{"type": "raw_text", "text": cell or NOTHING} for cell in row] for row in rows]
    yield _Element({"type": "table", "rows": cells}, _Size(sum(lengths), stored=1, tables=1))


def _prose(content: Iterable[SplitBlock], limit: int, measure: Measure = len) -> Iterator[_Element]:
    return map(_markdown, pieces(content, limit, measure))


def _markdown(piece: MarkdownPiece) -> _Element:
    count = len(piece.text)
    size = _Size(count, count, piece.stored, piece.tables, height(f"{piece.text}\n"))
    return _Element({"type": "markdown", "text": piece.text}, size)


def clear_cache() -> None:
    _question.cache_clear()
    _plain_beginning.cache_clear()


@lru_cache(maxsize=1024)
def _question(begun: str, length: int, level: int) -> MarkdownPiece:
    """Return a question's beginning; every edit of a running card shows it again."""
    cut = pieces(blocks(begun, DIALECT, level, quoted=True), QUESTION)
    first, *rest = [*islice(cut, 2)] or [MarkdownPiece("> ", 1, 0)]
    if rest or len(begun) < length:
        return replace(first, text=f"{first.text}\n> \u2026")
    return first


def blocks_with_buttons(part: Part) -> list[Json]:
    return [*part.blocks, *buttons_of(part.buttons)]


def buttons_of(buttons: Iterable[Button]) -> list[Json]:
    """Return the block of a run's buttons; none without buttons."""
    # Slack takes no two buttons with the same id: one for each member has its seat.
    ids = ((f"{each.action}_{each.seat}" if each.name else each.action, each) for each in buttons)
    return actions((action_id(own), each.value, each.label) for own, each in ids)


def actions(buttons: Iterable[tuple[str, str, str]]) -> list[Json]:
    """Return the block of buttons below a message, each by its id, value and label; none without any."""
    elements = [
        {
            "type": "button",
            "action_id": id_,
            "value": value,
            "text": {"type": "plain_text", "text": label, "emoji": False},
        }
        for id_, value, label in buttons
    ]
    return [{"type": "actions", "elements": elements}] if elements else []


def action_id(action: str) -> str:
    return f"council_{action}"


WHY, FOLLOW_UP = "council_why", "council_follow_up"
_REASON, _TEXT, _PROFILE = "reason", "text", "profile"
FIRST = {WHY: _REASON, FOLLOW_UP: _TEXT}
"""The field of each form below which an error is shown."""


_MOST_OPTIONS = 100


@dataclass(frozen=True, slots=True)
class OpenedModal:
    """What a form is about: a run, and where its button was pressed."""

    run_id: str
    channel: str
    thread: str | None = None

    @classmethod
    def read(cls, view: Json) -> Self:
        """Read a submitted form's metadata. Raises `Refusal` for what isn't ours."""
        try:
            about: Json = orjson.loads(str(view["private_metadata"]))
            return cls(str(about["run_id"]), str(about["channel"]), about.get("thread"))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise Refusal(NOT_HERE) from error

    @property
    def metadata(self) -> str:
        return orjson.dumps(self).decode()


def modal(form: Form | ReasonForm, about: OpenedModal) -> Json:
    return _why(about) if isinstance(form, ReasonForm) else _follow_up(form, about)


def _why(about: OpenedModal) -> Json:
    reason = {
        "type": "input",
        "block_id": _REASON,
        "optional": True,
        "label": _text(following.WHY_LABEL),
        "hint": _text(following.WHY_HINT),
        "element": {
            "type": "plain_text_input",
            "action_id": _REASON,
            "multiline": True,
            "max_length": LONGEST_REASON,
        },
    }
    return _form(WHY, UNHELPFUL, following.SEND, about, reason)


def _follow_up(form: Form, about: OpenedModal) -> Json:
    text = {
        "type": "input",
        "block_id": _TEXT,
        "label": _text(following.FORM_ANSWER if form.answers else following.FORM_QUESTION),
        "hint": _text(following.ANSWER_HINT if form.answers else following.QUESTION_HINT),
        "element": {
            "type": "plain_text_input",
            "action_id": _TEXT,
            "multiline": True,
            "max_length": LONGEST_TEXT,
            **({"initial_value": form.text} if form.text else {}),
        },
    }
    title = ANSWER_IT if form.answers else following.TITLE
    return _form(FOLLOW_UP, title, following.FORM_SEND, about, text, *_profiles(form))


def _profiles(form: Form) -> Iterator[Json]:
    if not form.profiles:
        return
    offered = sorted(form.profiles, key=lambda name: name != form.profile)[:_MOST_OPTIONS]
    options = [{"text": _text(name[:75]), "value": name[:150]} for name in offered]
    chosen = {"initial_option": options[0]} if form.profile else {}
    select = {"type": "static_select", "action_id": _PROFILE, "options": options, **chosen}
    yield {
        "type": "input",
        "block_id": _PROFILE,
        "optional": True,
        "label": _text(following.FORM_PROFILE),
        "hint": _text(following.PROFILE_HINT),
        "element": select,
    }


def submitted(view: Json) -> tuple[Action, Given]:
    """Return what a submitted form does, and what was written into it."""
    if view["callback_id"] == WHY:
        return "reason", {"reason": _value(view, _REASON)}
    return "question", {"text": _value(view, _TEXT), "profile": _value(view, _PROFILE)}


def _form(callback_id: str, title: str, submit: str, about: OpenedModal, *blocks: Json) -> Json:
    return {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": about.metadata,
        "title": _text(title),
        "submit": _text(submit),
        "close": _text(following.CANCEL),
        "blocks": [*blocks],
    }


def _value(view: Json, name: str) -> str:
    given: Json = view.get("state", {}).get("values", {}).get(name, {}).get(name, {})
    chosen: Json = given.get("selected_option") or {}
    return str(chosen.get("value") or given.get("value") or "")
