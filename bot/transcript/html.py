"""A conversation as one HTML file that needs nothing else: no network, and no script to be read.

Its words are those of the card and the thread, from the same view and messages as everywhere.
It adds what only a page can show: a tab per member, what each correction changed word by
word, and small charts.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from markupsafe import Markup

from bot.transcript import prose
from bot.transcript.markdown import NO_ANSWER, answered, begun, question, questions
from bot.view import message as m
from bot.view.run import RunView, Seat
from bot.view.thread import record, score_of
from bot.view.wording import figures
from bot.view.wording.card import agreement
from bot.view.wording.doors import program
from council.consultation import HIGHEST
from council.document.changes import words_changed
from council.document.conversation import Conversation
from council.text import clip, language_tag
from council.usage import total

if TYPE_CHECKING:
    from jinja2 import Template

NAMED_BY_ID = ("discord", "slack")
"""Where a document's `user` is a number to people."""
UNDER = 1
"""The level of heading above a message's own headings: the title's."""
PART = 3
"""The level of heading that begins a part of a message."""
PAGE_LANGUAGE = "en"


def to_html(conversation: Conversation) -> str:
    """Return the whole conversation as a page.

    Long answers take a tenth of a second or more: don't call it on an event loop.
    """
    turns = questions(conversation)
    exchanges = [
        _exchange(asked, view, number, of_several=len(turns) > 1)
        for number, (asked, view) in enumerate(turns, 1)
    ]
    style, script = map(_asset, ("style.css", "script.js"))
    return _template("page.html").render(
        title=m.printable(conversation.title),
        spoken=_spoken(conversation.title),
        facts=[*_facts(conversation, [view for _, view in turns if view])],
        exchanges=exchanges,
        style=style,
        script=script,
        # A policy that lets only this style and this script through.
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'",
    )


@cache
def _template(name: str) -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("bot.transcript", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)


def _macro(name: str, *given: object) -> Markup:
    return getattr(_template("blocks.html").module, name)(*given)


@cache
def _asset(name: str) -> Markup:
    return Markup((files("bot.transcript") / "page" / name).read_text("utf-8"))  # noqa: S704 - ours


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _facts(conversation: Conversation, views: list[RunView]) -> Iterator[tuple[str, str]]:
    if source := conversation.source:
        by = None if source.platform in NAMED_BY_ID else source.user
        by = program(source.program) if source.program is not None else by
        where = {"terminal": "in the terminal", "discord": "on Discord", "slack": "on Slack"}
        place = where.get(source.platform, f"on {source.platform}")
        yield "Asked", f"{place} by {by}" if by else place
    yield "Started", begun(conversation)
    seated = dict.fromkeys(seat.short for view in views for seat in view.seats)
    if seated:
        yield "Members", ", ".join(seated)
    alike = dict.fromkeys(
        agreement(view.round.ranking.agreement_word) for view in views if view.round.ranking
    )
    if said := ", then ".join(filter(None, alike)):
        yield "Ranking", said
    if spent := [view.usage for view in views if view.usage]:
        free = all(view.profile.demonstration or view.profile.example for view in views)
        yield "Cost", figures.NO_COST if free else figures.money(total(spent))
        yield "Tokens", figures.tokens(total(spent))
    yield "Conversation", conversation.id


def _exchange(
    asked: tuple[m.Block, ...], view: RunView | None, number: int, *, of_several: bool
) -> dict[str, object]:
    """Return what the page shows of one question and its answer; its `panels` are a tab per member."""
    this = f"question-{number}"
    sections = {each.key: each.blocks for each in record(view)} if view else {}
    common = [(key, html(said, under=UNDER)) for key, said in sections.items() if key.count(":") < 2]
    said = html(answered(view), under=UNDER + 1) if view else html([m.Line(NO_ANSWER)], under=UNDER)
    return {
        "id": this,
        "heading": question(number, of_several=of_several),
        "question": html(asked, under=UNDER + 1),
        "answer": said,
        "sections": [shown for key, shown in common if not key.startswith("reviews")],
        "reviews": [shown for key, shown in common if key.startswith("reviews")],
        "charts": [*drawings(view)] if view else [],
        "panels": [
            {
                "id": f"{this}-member-{place}",
                "name": seat.short,
                "standing": figures.rank(seat.rank) if seat.rank else "",
                "passages": rounds,
            }
            for place, seat in enumerate(view.ranked if view else (), 1)
            if (rounds := [*_rounds(seat, sections)])
        ],
    }


def _rounds(seat: Seat, sections: Mapping[str, tuple[m.Block, ...]]) -> Iterator[dict[str, object]]:
    previous: Seat | None = None
    for each in seat.view.every_round:
        held, which = each.seat(seat.name), f"{each.number}:{seat.name}"
        if held and (said := sections.get(f"member:{which}")):
            reviews = html(sections.get(f"reviews:{which}", ()), under=UNDER + 1)
            shown = _answers(said, each.number, held, previous)
            yield {"round": each.number, "answers": shown, "reviews": reviews}
        previous = held


def _answers(said: tuple[m.Block, ...], number: int, seat: Seat, previous: Seat | None) -> Markup:
    """Return a member's texts, with its correction's changes marked in both.

    The text before is above the one after, in every round.
    """
    before, after = _texts(seat, previous)
    at = next((at for at, block in enumerate(said) if block == after), None)
    if before is None or after is None or before == after or at is None:
        return html(said, under=UNDER)
    marked_before, marked_after = prose.correction(before.markdown, after.markdown, UNDER + PART)
    if before not in said:
        heading = max(place for place in range(at) if isinstance(said[place], m.Heading))
        earlier = "Original response" if number == 1 else f"Response of round {number - 1}"
        said = (*said[:heading], m.Heading(earlier, PART), before, *said[heading:])
    removed, added = words_changed(before.markdown, after.markdown)
    counted = Markup("{0}").format("Only the formatting changed, not the words.")
    if removed or added:
        counted = Markup("{0} <del>removed</del> above, {1} <ins>added</ins> here.").format(
            figures.count(removed, "word"), figures.count(added, "word")
        )
    facts = Markup('<p class="facts">{0}</p>\n').format(counted)
    written = {before.markdown: marked_before, after.markdown: facts + marked_after}
    return html(said, under=UNDER, written=written)


def _texts(seat: Seat, previous: Seat | None) -> tuple[m.Prose | None, m.Prose | None]:
    if seat.correction is None:
        return None, None
    earlier = (previous and previous.correction) or seat.answer
    if seat.correction.consultation and earlier and earlier.consultation:
        forms = earlier.consultation, seat.correction.consultation
        before, after = (each.response.detailed for each in forms)
    else:
        before, after = seat.correction.original_response, seat.correction.corrected_response
    return m.Prose(before), m.Prose(after)


def html(
    blocks: Iterable[m.Block], *, under: int, written: Mapping[str, Markup] = MappingProxyType({})
) -> Markup:
    """Return blocks as HTML, below a heading of level `under`.

    `written` has the HTML of texts that are shown in their own way.
    """
    return Markup("\n").join(_written(blocks, under, written))


def _written(blocks: Iterable[m.Block], under: int, written: Mapping[str, Markup]) -> Iterator[Markup]:
    level, caption, in_part = under + 1, "", False
    for block in blocks:
        match block:
            case m.Title(text) | m.Heading(text):
                depth = block.level if isinstance(block, m.Heading) else 1
                level, caption = under + depth, text
                if in_part:
                    yield Markup("</section>")
                in_part = depth >= PART
                if in_part:
                    slug = "-".join(text.lower().split())
                    yield Markup('<section class="part {0}">').format(slug)
                yield Markup("<h{0}>{1}</h{0}>").format(level, _name(text))
            case (
                m.Line(text) | m.Entry(text) | m.Footer(text)
            ):  # a transcript has no list of what was found
                facts = Markup(' class="facts"') if isinstance(block, m.Footer) else ""
                yield Markup("<p{0}>{1}</p>").format(facts, _name(text))
            case m.Pairs(rows):
                yield _macro("pairs", rows)
            case m.Table(header, rows):
                yield _macro("table", header, rows, caption)
            case m.Columns(columns):
                yield _macro("columns", columns)
            case m.Prose(markdown) | m.Quote(markdown):
                tag = "blockquote" if isinstance(block, m.Quote) else "div"
                yield Markup('<{0} class="prose" dir="auto"{1}>{2}</{0}>').format(
                    tag, _spoken(markdown), written.get(markdown) or prose.html(markdown, level)
                )
            case m.Diff():
                pass  # the page marks what changed in a way of its own
    if in_part:
        yield Markup("</section>")


def _spoken(text: str) -> Markup:
    tag = language_tag(text)
    return Markup(' lang="{0}"').format(tag) if tag not in (None, PAGE_LANGUAGE) else Markup("")


def _name(text: str) -> Markup:
    # Names and titles are other people's: a change of writing direction ends with them.
    return Markup("<bdi>{0}</bdi>").format(text)


# The shapes of a chart; the page's own style colours them.
FRAME = Markup('<svg viewBox="0 0 {0} {1:g}" role="img" aria-label="{2}">{3}</svg>')
TEXT = Markup('<text x="{0:g}" y="{1:g}" class="{2}">{3}</text>')
LINE = Markup('<line x1="{0:g}" y1="{1:g}" x2="{2:g}" y2="{3:g}" class="{4}"/>')
CIRCLE = Markup('<circle cx="{0:g}" cy="{1:g}" r="{2:g}" class="{3}"/>')
RECT = Markup('<rect x="{0:g}" y="{1:g}" width="{2:g}" height="{3:g}" class="{4}"/>')

Standing = tuple[str, Sequence[tuple[str, int]], float | None]
"""Whose answer it is, its votes (the reviewer's letter and the position, 1 is best), their mean."""

WIDTH = 360
_ROW = 56
_BASE = 32  # from a row's top to its axis
_RADIUS = 9.0
_CROWD = 120.0  # the most room for votes at one place
_LONGEST_LABEL = 46
_BAR = 12

_TRIANGLE = Markup('<path d="M{0:g} {1:g}L{2:g} {3:g}H{4:g}Z" class="mean"/>')


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with what it shows."""

    caption: str
    drawing: Markup
    note: str


def drawings(view: RunView) -> Iterator[Chart]:
    """Yield each round's votes, how many words corrections moved, and how sure consultants are."""
    several = view.number > 1
    for each in view.every_round:
        if each.round.ranking and each.round.ranking.ballots:
            which = f", round {each.number}" if several else ""
            title = f"Where each reviewer put each answer{which}"
            note = "A circle is a vote, with its reviewer\u2019s letter; the triangle is the mean."
            yield Chart(title, _positions([*_standings(each)]), f"{note} 1, on the left, is best.")
    answered = [seat for seat in view.ranked if seat.answer]
    if any(any(seat.moved) for seat in answered):
        note = "Words removed to the left, words added to the right."
        whose = "member\u2019s corrections" if several else "correction"
        yield Chart(f"How much each {whose} changed", _moves(answered), note)
    scores = ((seat.short, score_of(seat.answer), score_of(seat.correction)) for seat in view.ranked)
    if sure := [each for each in scores if any(each[1:])]:
        note = "Its own rating from 1 to 10: the ring before its peers\u2019 critiques, the dot after."
        yield Chart("How sure each member was", _confidences(sure), note)


def _standings(view: RunView) -> Iterator[Standing]:
    letters = {name: label.removeprefix("Response ") for label, name in view.round.labels.items()}
    for place in view.round.ranking.places if view.round.ranking else ():
        votes = sorted(
            (letters.get(reviewer) or view.name(reviewer), ballot.index(place.label) + 1)
            for reviewer, ballot in view.votes.items()
            if place.label in ballot
        )
        yield view.name(place.model), votes, place.mean_position


def _positions(standings: Sequence[Standing]) -> Markup:
    """Draw a row per answer: every vote at its position, and a mark at their mean."""
    crowd = max((len(letters) for _, votes, _ in standings for _, letters in _places(votes)), default=1)
    apart = min(2 * _RADIUS + 1, _CROWD / crowd)
    margin = apart * (crowd - 1) / 2 + _RADIUS + 2
    last = max((place for _, votes, _ in standings for _, place in votes), default=1)
    step = (WIDTH - 2 * margin) / max(last - 1, 1)

    def across(place: float) -> float:
        return margin + (place - 1) * step

    def marks() -> Iterator[Markup]:
        for number, (name, votes, mean) in enumerate(standings):
            axis = number * _ROW + _BASE
            yield _label(name, number)
            yield LINE.format(across(1), axis, across(last), axis, "axis")
            for place, letters in _places(votes):
                for nth, letter in enumerate(letters):
                    x = across(place) + (nth - (len(letters) - 1) / 2) * apart
                    yield CIRCLE.format(x, axis, _RADIUS, "vote")
                    yield TEXT.format(x, axis + 3.5, "letter", letter)
            if mean is not None:
                x, y = across(mean), axis + _RADIUS + 1
                yield _TRIANGLE.format(x, y, x - 5, y + 8, x + 5)
        for place in range(1, last + 1):
            yield TEXT.format(across(place), len(standings) * _ROW + 10, "tick", place)

    said = (
        f"{name}: {', '.join(f'{place} by {letter}' for letter, place in votes) or 'no vote'}, "
        f"mean {figures.position(mean)}"
        for name, votes, mean in standings
    )
    return _drawn(len(standings) * _ROW + 16, said, marks())


def _places(votes: Sequence[tuple[str, int]]) -> list[tuple[int, list[str]]]:
    ordered = sorted(votes, key=lambda vote: vote[1])
    return [
        (place, [letter for letter, _ in group])
        for place, group in groupby(ordered, lambda vote: vote[1])
    ]


def _moves(seats: Sequence[Seat]) -> Markup:
    """Draw a row per member: words removed to the left, words added to the right."""
    most = max((max(seat.moved) for seat in seats), default=0) or 1
    middle, room = WIDTH / 2, WIDTH / 2 - 44

    def marks() -> Iterator[Markup]:
        for number, seat in enumerate(seats):
            removed, added = seat.moved
            top = number * _ROW + _BASE - _BAR / 2
            left, right = (count / most * room for count in (removed, added))
            yield _label(seat.short, number)
            if removed:
                yield RECT.format(middle - left, top, left, _BAR, "removed")
                yield TEXT.format(middle - left - 6, top + 10, "left", f"\u2212{removed}")
            if added:
                yield RECT.format(middle, top, right, _BAR, "added")
                yield TEXT.format(middle + right + 6, top + 10, "right", f"+{added}")
            if not removed and not added:
                yield TEXT.format(middle + 6, top + 10, "right", "no change")
            yield LINE.format(middle, top - 5, middle, top + _BAR + 5, "axis")

    moved = ((seat.short, *seat.moved) for seat in seats)
    said = (f"{name}: {figures.count(away, 'word')} removed, {new:,} added" for name, away, new in moved)
    return _drawn(len(seats) * _ROW, said, marks())


def _confidences(sure: Sequence[tuple[str, int | None, int | None]]) -> Markup:
    """Draw a row per member: how sure it was of its answer and of its corrected one, from 1 to 10."""
    room = WIDTH - 40

    def across(score: int) -> float:
        return 10 + (score - 1) * room / (HIGHEST - 1)

    def marks() -> Iterator[Markup]:
        for number, (name, before, after) in enumerate(sure):
            axis = number * _ROW + _BASE
            yield _label(name, number)
            yield LINE.format(across(1), axis, across(HIGHEST), axis, "axis")
            if before is not None and after is not None:
                yield LINE.format(across(before), axis, across(after), axis, "change")
            if before is not None:
                yield CIRCLE.format(across(before), axis, 7, "before")
            if after is not None:
                yield CIRCLE.format(across(after), axis, 5, "after")
        for score in (1, 5, HIGHEST):
            yield TEXT.format(across(score), len(sure) * _ROW + 10, "tick", score)

    none = "no score"
    said = (f"{name}: {first or none} before, {last or none} after" for name, first, last in sure)
    return _drawn(len(sure) * _ROW + 16, said, marks())


def _label(name: str, row: int) -> Markup:
    return TEXT.format(0, row * _ROW + 12, "name", clip(name, _LONGEST_LABEL))


def _drawn(height: float, said: Iterable[str], marks: Iterator[Markup]) -> Markup:
    return FRAME.format(WIDTH, height, "; ".join(said), Markup("\n").join(marks))
