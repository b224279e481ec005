"""The record of a run: every round's ranking, and each member's answers with the whole reviews of them.

Transcripts and files show all of it; the thread below the card is a digest (`bot.view.thread`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bot.view.card import correction
from bot.view.consultants import moved as consultation_moved
from bot.view.member import full_name, label_of, names, peers, score_of, standing, text
from bot.view.message import Block, Heading, Line, Message, Prose, Table
from bot.view.objections import is_form, reviewed
from bot.view.ranking import counted_votes, explained, missing, places, ranked, scores, votes
from bot.view.state import Failed, RunView, Seat
from bot.view.wording import figures, worth
from bot.view.wording import thread as wording
from bot.view.wording.card import rounds
from council.document.results import IterationState, JudgeReport, RunDepth, Stage1Result

SectionKind = Literal["judge", "ranking", "member", "reviews", "rounds"]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the record: what it is, of which round, of whom, and its text."""

    kind: SectionKind
    message: Message
    round: int = 1
    member: str | None = None


def record(view: RunView) -> Iterator[Section]:
    """Yield everything the members of a run that is over said, round by round.

    Each round has its ranking, then every member's answers and what the reviewers' forms say of them. A
    review in prose is of all answers: those come at the end.
    """
    if view.depth and view.depth.judge:
        yield Section("judge", Message("judge", tuple(_judged(view.depth, view.depth.judge))))
    for each in (*view.earlier, view):
        yield from _round_of(each)
    told = view.iteration if view.conversation_id else None
    if told and told.max_rounds > 1:
        yield Section("rounds", Message("rounds", tuple(_moves(view, told))), view.number)


def _round_of(view: RunView) -> Iterator[Section]:
    if view.stage("stage2").progress not in ("done", "skipped"):
        return
    if view.stage("stage2").progress == "done":
        yield Section("ranking", Message("ranking", tuple(_ranking(view))), view.number)
    for seat in ranked(view):
        if seat.answer:
            member = Message("member", tuple(_member(view, seat, seat.answer)))
            yield Section("member", member, view.number, seat.name)
            if said := tuple(_reviews(view, seat)):
                yield Section("reviews", Message("reviews", said), view.number, seat.name)
    if said := tuple(_prose_reviews(view)):
        yield Section("reviews", Message("reviews", said), view.number)


def _judged(depth: RunDepth, report: JudgeReport) -> Iterator[Block]:
    """Yield what the judge said of the first answers, and what is known of it afterwards."""
    yield Heading(worth.JUDGED)
    yield Line(worth.verdict(report))
    for point in report.points:
        yield Line(worth.point(point))
    if said := worth.known_since(depth):
        yield Line(said)


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


def _reviews(view: RunView, seat: Seat) -> Iterator[Block]:
    """Return what filled-in forms say of a member's answer; without any review, what it was handed."""
    handed = seat.correction.peer_critiques if seat.correction and not peers(view, seat) else ""
    blocks = (Prose(handed),) if handed else tuple(reviewed(view, seat, forms_only=True))
    if not blocks:
        return
    yield Heading(f"{wording.reviews_of(names(view)[seat.name])}{wording.of_round(view.number)}")
    if (label := label_of(view, seat)) and not handed:
        yield Line(wording.label(label))
    yield from blocks


def _prose_reviews(view: RunView) -> Iterator[Block]:
    """Return a round's reviews in prose, each whole, and whose answer each of their labels is."""
    short = names(view)
    said = [seat.review for seat in view.seats if seat.review and not is_form(seat.review)]
    if not said:
        return
    yield Heading(f"{wording.REVIEWS}{wording.of_round(view.number)}")
    if view.labels:
        labels = ((label, short.get(name, name)) for label, name in view.labels.items())
        yield Line(wording.labels(labels))
    for review in said:
        yield Heading(wording.review_by(short[review.model]), 3)
        yield Prose(review.ranking)
        if review.truncated:
            yield Line(wording.REVIEW_CUT_OFF)
