"""The record of a run: every round's ranking, and each member's answers with the whole reviews of them.

Transcripts and files show all of it; the thread below the card is a digest (`bot.view.thread`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bot.view.card import correction
from bot.view.consultants import moved as consultation_moved
from bot.view.member import full_name, label_of, names, peers, score_of, standing, text
from bot.view.message import Block, Heading, Line, Message, Prose, Table
from bot.view.objections import replied
from bot.view.ranking import counted_votes, explained, missing, places, ranked, scores, votes
from bot.view.state import Answered, Failed, RunView, Seat
from bot.view.wording import figures, worth
from bot.view.wording import thread as wording
from bot.view.wording.card import rounds
from council.document.conversation import peer_critiques
from council.document.results import IterationState, JudgeReport, RunDepth, Stage1Result, Stage2Result

SectionKind = Literal["judge", "ranking", "member", "reviews", "rounds"]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the record: what it is, of which round, of whom, and its text."""

    kind: SectionKind
    message: Message
    round: int = 1
    member: str | None = None


def record(view: RunView, *, reviews_once: bool = False) -> Iterator[Section]:
    """Yield everything the members of a run said, round by round, if it is final.

    Each round has its ranking, then every member's answers and the reviews of them. A review is of all
    answers: with `reviews_once`, whole reviews aren't repeated for each of them, but come at the end.
    """
    if view.depth and view.depth.judge:
        yield Section("judge", Message("judge", tuple(_judged(view.depth, view.depth.judge))))
    for each in (*view.earlier, view):
        yield from _round_of(each, reviews_once=reviews_once)
    told = view.iteration if view.conversation_id else None
    if told and told.max_rounds > 1:
        yield Section("rounds", Message("rounds", tuple(_moves(view, told))), view.number)


def _round_of(view: RunView, *, reviews_once: bool) -> Iterator[Section]:
    if view.stage("stage2").progress not in ("done", "skipped"):
        return
    if view.stage("stage2").progress == "done":
        yield Section("ranking", Message("ranking", tuple(_ranking(view))), view.number)
    for seat in ranked(view):
        if seat.answer and _is_final(view, seat):
            member = Message("member", tuple(_member(view, seat, seat.answer)))
            yield Section("member", member, view.number, seat.name)
            whole = reviews_once and _handed(view, seat) is None
            if not whole and (said := reviews(view, seat)):
                yield Section("reviews", Message("reviews", said), view.number, seat.name)
    if reviews_once and (said := tuple(_whole_reviews(view))):
        yield Section("reviews", Message("reviews", said), view.number)


def _judged(depth: RunDepth, report: JudgeReport) -> Iterator[Block]:
    """Yield what the judge said of the first answers, and what is known of it afterwards."""
    yield Heading(worth.JUDGED)
    yield Line(worth.verdict(report))
    for point in report.points:
        yield Line(worth.point(point))
    if said := worth.known_since(depth):
        yield Line(said)


def _is_final(view: RunView, seat: Seat) -> bool:
    corrected = isinstance(seat.correcting, Answered | Failed)
    return corrected or view.stage("stage2_5").progress in ("done", "skipped")


def _ranking(view: RunView) -> Iterator[Block]:
    yield Heading(f"{wording.RANKING}{wording.of_round(view.number)}")
    if view.ranking is None:
        yield Line(wording.RESULT_LOST)
        yield votes(view)
    elif not view.ranking.ballots:
        yield Line(wording.NOT_RANKED)
    elif view.is_undecided:
        yield Line(wording.UNDECIDED)
    else:
        yield _table(view)
        yield from explained(view)
    yield from missing(view)
    yield from scores(view)


def _table(view: RunView) -> Table:
    short = names(view)
    ballots = counted_votes(view)
    rows = (
        (
            rank,
            place.label.removeprefix("Response "),
            short.get(place.model, place.model),
            figures.position(place.mean_position),
            *(
                _vote(ballot, place.label, own=reviewer == place.model)
                for reviewer, ballot in ballots.items()
            ),
        )
        for rank, place in places(view)
    )
    reviewers = (wording.by(short.get(reviewer, reviewer)) for reviewer in ballots)
    return Table((*wording.RECORD_HEADER, *reviewers), tuple(rows))


def _vote(ballot: list[str], label: str, *, own: bool) -> str:
    if label in ballot:
        return str(ballot.index(label) + 1)
    return wording.OWN if own else wording.NONE


def _moves(view: RunView, iteration: IterationState) -> Iterator[Block]:
    """Return how each answer changed from round to round, and why the rounds ended."""
    yield Heading(wording.ROUNDS)
    yield Line(wording.sentence(rounds(iteration)))
    held = (*view.earlier, view)[: len(iteration.rounds)]
    seats = [seat for seat in view.seats if seat.answer]
    if held and seats:
        short = names(view)
        moves = {seat.name: tuple(_move(each.seat(seat.name)) for each in held) for seat in seats}
        yield Table(
            (wording.MEMBER, *(wording.round_head(each.number) for each in held)),
            tuple((short[seat.name], *moves[seat.name]) for seat in seats),
        )


def _move(seat: Seat | None) -> str:
    return correction(seat) if seat and seat.correction else wording.NONE


def _member(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[Block]:
    yield Heading(f"{full_name(seat)}{wording.of_round(view.number)}")
    yield standing(view, seat, answer)
    if view.number == 1:
        yield Heading(wording.ORIGINAL, 3)
        yield from text(view, answer.response, answer)
    yield from replied(view, seat)
    if seat.correction and not isinstance(seat.correcting, Failed):
        yield Heading(wording.CORRECTED, 3)
        if seat.has_changed:
            yield from text(view, seat.correction.corrected_response, seat.correction, answer)
        else:
            yield Line(wording.SAME)
            if seat.correction.consultation:
                yield from consultation_moved(
                    seat.correction.consultation, names(view), score_of(answer)
                )


def reviews(view: RunView, seat: Seat) -> tuple[Block, ...]:
    """Return the whole reviews of a member's answer in this round; nothing if there are none."""
    return tuple(_reviews(view, seat))


def _reviews(view: RunView, seat: Seat) -> Iterator[Block]:
    reviewed, handed = peers(view, seat), _handed(view, seat)
    if not reviewed and not handed:
        return
    yield Heading(f"{wording.reviews_of(names(view)[seat.name])}{wording.of_round(view.number)}")
    if label := label_of(view, seat):
        yield Line(wording.label(label))
    if handed:
        yield Prose(handed)
        return
    yield from _each(view, reviewed)


def _handed(view: RunView, seat: Seat) -> str | None:
    """Return what a member was given to read about its answer, if that wasn't the whole reviews."""
    handed = seat.correction.peer_critiques if seat.correction else ""
    return handed if handed and handed != peer_critiques(seat.name, peers(view, seat)) else None


def _whole_reviews(view: RunView) -> Iterator[Block]:
    """Return all reviews of a round, and whose answer each of their labels is."""
    reviewed = [seat.review for seat in view.seats if seat.review]
    if not reviewed:
        return
    yield Heading(f"{wording.REVIEWS}{wording.of_round(view.number)}")
    short = names(view)
    if view.labels:
        labels = ((label, short.get(name, name)) for label, name in view.labels.items())
        yield Line(wording.labels(labels))
    yield from _each(view, reviewed)


def _each(view: RunView, reviewed: Iterable[Stage2Result]) -> Iterator[Block]:
    short = names(view)
    for review in reviewed:
        yield Heading(wording.review_by(short[review.model]), 3)
        yield Prose(review.ranking)
        if review.truncated:
            yield Line(wording.REVIEW_CUT_OFF)
