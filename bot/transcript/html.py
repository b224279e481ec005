"""A conversation as one HTML file that needs nothing else: no network, and no script to be read.

Its words are those of the card and the thread, from the same view and messages as everywhere.
It adds what only a page can show: a tab per member, what each correction changed word by
word, and small charts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from bot.transcript import blocks, charts, diff
from bot.transcript.charts import Moved, RankRow, Sure
from bot.transcript.template import Drawing, asset, environment, policy
from bot.transcript.turns import ShownTurn, begun, turns
from bot.view.member import moved, names
from bot.view.message import Block, Heading, Line, Message, Prose, printable
from bot.view.ranking import counted_votes, ranked
from bot.view.record import SectionKind, record
from bot.view.state import RunView, Seat
from bot.view.wording import figures
from bot.view.wording import transcript as wording
from bot.view.wording.card import agreement
from bot.view.wording.doors import program
from council.document.changes import words_changed
from council.document.conversation import Conversation
from council.usage import total

NAMED_BY_ID = ("discord", "slack")
"""Where a document's `user` is a number to people."""
UNDER = 1
"""The level of heading above a message's own headings: the title's."""


Sections = Mapping[tuple[SectionKind, int, str | None], Message]
"""The record of a run, by kind, round and member."""


@dataclass(frozen=True, slots=True)
class ShownRound:
    """One member's text in one round, with its correction's changes, and what its peers said."""

    round: int
    answers: Markup
    reviews: Markup


@dataclass(frozen=True, slots=True)
class Panel:
    """One member's tab, round after round."""

    id: str
    name: str
    standing: str
    passages: tuple[ShownRound, ...]


@dataclass(frozen=True, slots=True)
class ExchangePage:
    """One question with the council's answer."""

    id: str
    heading: str
    question: Markup
    answer: Markup
    sections: tuple[Markup, ...] = ()
    reviews: tuple[Markup, ...] = ()
    charts: tuple[Drawing, ...] = ()
    panels: tuple[Panel, ...] = ()


def to_html(conversation: Conversation) -> str:
    """Return the whole conversation as a page.

    Long answers take a tenth of a second or more: don't call it on an event loop.
    """
    all_turns = turns(conversation)
    exchanges = [_exchange(turn, number, len(all_turns) > 1) for number, turn in enumerate(all_turns, 1)]
    style, script = asset("style.css"), asset("script.js")
    return (
        environment()
        .get_template("page.html")
        .render(
            title=printable(conversation.title),
            spoken=blocks.spoken(conversation.title),
            facts=[*_facts(conversation, [turn.view for turn in all_turns if turn.view])],
            exchanges=exchanges,
            style=style,
            script=script,
            policy=policy(style, script),
        )
    )


def _facts(conversation: Conversation, views: list[RunView]) -> Iterator[tuple[str, str]]:
    """Return the facts that a reader wants first."""
    if source := conversation.source:
        by = None if source.platform in NAMED_BY_ID else source.user
        by = program(source.program) if source.program is not None else by
        yield wording.ASKED, wording.place(source.platform, by)
    yield wording.BEGUN, begun(conversation)
    seated = dict.fromkeys(name for view in views for name in _seated(view))
    if seated:
        yield wording.MEMBERS, ", ".join(seated)
    alike = dict.fromkeys(agreement(view.ranking.agreement_word) for view in views if view.ranking)
    if said := ", then ".join(filter(None, alike)):
        yield wording.RANKING, said
    if spent := [view.usage for view in views if view.usage]:
        free = all(view.demonstration or view.example for view in views)
        yield wording.COST, figures.NO_COST if free else figures.money(total(spent))
        yield wording.TOKENS, figures.tokens(total(spent))
    yield wording.CONVERSATION, conversation.id


def _seated(view: RunView) -> list[str]:
    short = names(view)
    return [short[seat.name] for seat in view.seats]


def _exchange(turn: ShownTurn, number: int, numbered: bool) -> ExchangePage:
    heading = wording.question(number, of_several=numbered)
    question = blocks.html(turn.asked, under=UNDER + 1)
    view = turn.view
    if view is None:
        nothing = blocks.html([Line(wording.NO_ANSWER)], under=UNDER)
        return ExchangePage(f"question-{number}", heading, question, nothing)
    sections: Sections = {(each.kind, each.round, each.member): each.message for each in record(view)}
    whole = [
        (kind, blocks.html(each.blocks, under=UNDER))
        for (kind, _, member), each in sections.items()
        if member is None
    ]
    panels = [
        panel
        for place, seat in enumerate(ranked(view), 1)
        if (panel := _panel(view, seat, sections, f"question-{number}-member-{place}"))
    ]
    return ExchangePage(
        f"question-{number}",
        heading,
        question,
        blocks.html(turn.answered(view), under=UNDER + 1),
        tuple(shown for kind, shown in whole if kind != "reviews"),
        tuple(shown for kind, shown in whole if kind == "reviews"),
        tuple(_charts(view)),
        tuple(panels),
    )


def _panel(view: RunView, seat: Seat, sections: Sections, panel_id: str) -> Panel | None:
    held = [(each, each.seat(seat.name)) for each in _rounds(view)]
    before = [None, *(told for _, told in held)]
    passages = tuple(
        passage
        for (each, told), previous in zip(held, before, strict=False)
        if (passage := _passage(each, told, previous, sections))
    )
    if not passages:
        return None
    rank = view.rank(seat.name)
    return Panel(panel_id, names(view)[seat.name], figures.rank(rank) if rank else "", passages)


def _rounds(view: RunView) -> tuple[RunView, ...]:
    return (*view.earlier, view)


def _passage(
    view: RunView, seat: Seat | None, previous: Seat | None, sections: Sections
) -> ShownRound | None:
    if seat is None:
        return None
    said = sections.get(("member", view.number, seat.name))
    reviews = sections.get(("reviews", view.number, seat.name))
    if said is None:
        return None
    return ShownRound(
        view.number,
        _answers(said.blocks, view.number, seat, previous),
        blocks.html(reviews.blocks, under=UNDER + 1) if reviews else Markup(""),
    )


def _answers(said: tuple[Block, ...], number: int, seat: Seat, previous: Seat | None) -> Markup:
    """Return a member's texts, with its correction's changes marked in both.

    The text before is above the one after, in every round.
    """
    before, after = _texts(seat, previous)
    at = next((at for at, block in enumerate(said) if block == after), None)
    if before is None or after is None or before == after or at is None:
        return blocks.html(said, under=UNDER)
    marked_before, marked_after = diff.correction(before.markdown, after.markdown, UNDER + blocks.PART)
    if before not in said:
        heading = max(place for place in range(at) if isinstance(said[place], Heading))
        said = (*said[:heading], Heading(wording.before(number), blocks.PART), before, *said[heading:])
    counted = _counted(*words_changed(before.markdown, after.markdown))
    facts = Markup('<p class="facts">{0}</p>\n').format(counted)
    written = {before.markdown: marked_before, after.markdown: facts + marked_after}
    return blocks.html(said, under=UNDER, written=written)


def _counted(removed: int, added: int) -> Markup:
    if not removed and not added:
        return Markup("{0}").format(wording.ONLY_FORM)
    return Markup("{0} <del>{1}</del> {2}, {3} <ins>{4}</ins> {5}.").format(
        *(wording.words(removed), wording.REMOVED, wording.ABOVE),
        *(wording.words(added), wording.ADDED, wording.HERE),
    )


def _texts(seat: Seat, previous: Seat | None) -> tuple[Prose | None, Prose | None]:
    """Return a member's text before its correction and after; of a consultation, its long part."""
    if seat.correction is None:
        return None, None
    earlier = (previous and previous.correction) or seat.answer
    if seat.correction.consultation and earlier and earlier.consultation:
        forms = earlier.consultation, seat.correction.consultation
        before, after = (each.response.detailed for each in forms)
    else:
        before, after = seat.correction.original_response, seat.correction.corrected_response
    return Prose(before), Prose(after)


def _charts(view: RunView) -> Iterator[Drawing]:
    for each in _rounds(view):
        if each.ranking and each.ranking.ballots:
            yield Drawing(
                wording.votes(each.number if view.earlier else None),
                charts.positions([*_standings(each)]),
                wording.VOTES_NOTE,
            )
    short = names(view)
    changed = [
        Moved(short[seat.name], *moved(seat, seat.answer)) for seat in ranked(view) if seat.answer
    ]
    if any(each.removed or each.added for each in changed):
        several = bool(view.earlier)
        yield Drawing(wording.moves(several=several), charts.moves(changed), wording.MOVES_NOTE)
    if sure := [*_sure(view)]:
        yield Drawing(wording.SURE, charts.confidences(sure), wording.SURE_NOTE)


def _sure(view: RunView) -> Iterator[Sure]:
    short = names(view)
    for seat in ranked(view):
        scores = [
            given.consultation.confidence.score if given and given.consultation else None
            for given in (seat.answer, seat.correction)
        ]
        if any(scores):
            yield Sure(short[seat.name], *scores)


def _standings(view: RunView) -> Iterator[RankRow]:
    short = names(view)
    letters = {name: label.removeprefix("Response ") for label, name in view.labels.items()}
    cast = counted_votes(view)
    for place in view.ranking.places if view.ranking else ():
        votes = sorted(
            (letters.get(reviewer, short.get(reviewer, reviewer)), ballot.index(place.label) + 1)
            for reviewer, ballot in cast.items()
            if place.label in ballot
        )
        yield RankRow(short.get(place.model, place.model), tuple(votes), place.mean_position)
