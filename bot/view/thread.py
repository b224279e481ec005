"""The thread below the card: a digest that explains in a minute why the answer is what it is.

First the ranking, then a message per member, best first: what its peers said about its answer, and its
corrected response. All of it is final when the last round's corrections are over. What it leaves out
is behind its buttons (`bot.view.details`) and in the transcript (`bot.view.record`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.view.card import names
from bot.view.member import final_text, full_name, label_of, moved, peers, standing, text
from bot.view.message import Block, Heading, Line, Message, Pairs, Prose, Table
from bot.view.ranking import explained, missing, places, ranked, scores
from bot.view.state import Failed, RunView, Seat
from bot.view.wording import figures
from bot.view.wording import thread as wording
from council.document.conversation import Stage1Result, peer_critiques
from council.document.results import GRADES, ReviewPoint
from council.text.characters import clip

SUMMARY = 280
"""How much is shown of what a review says about an answer: about two lines."""
MOST_POINTS = 50
"""How many points of a review about an answer are chosen from."""


@dataclass(frozen=True, slots=True)
class ThreadMessage:
    """A message of the thread: its kind, its text, and the seat of the member it is about."""

    kind: Literal["ranking", "member"]
    message: Message
    seat: int | None = None


def thread(view: RunView) -> tuple[ThreadMessage, ...]:
    """Return the thread's messages in the order in which they are posted; none before all are final.

    Once returned, a message never changes.
    """
    answered = [(seat, seat.answer) for seat in ranked(view) if seat.answer]
    if not is_final(view) or len(answered) < 2:  # one alone has no peers, and its answer is the card's
        return ()
    messages: list[ThreadMessage] = []
    if view.stage("stage2").progress == "done":
        messages.append(ThreadMessage("ranking", Message("ranking", tuple(_ranking(view)))))
    for seat, answer in answered:
        blocks = tuple(_member(view, seat, answer))
        message = Message(f"member:{seat.name}", blocks, bounded=True)
        messages.append(ThreadMessage("member", message, view.seats.index(seat)))
    return tuple(messages)


def is_final(view: RunView) -> bool:
    """Return whether no further review or correction can come."""
    if view.is_over or view.stage("stage3").progress != "waiting":
        return True
    return view.number >= view.rounds and view.stage("stage2_5").progress in ("done", "skipped")


def _ranking(view: RunView) -> Iterator[Block]:
    yield Heading(f"{wording.RANKING}{wording.of_round(view.number)}")
    if view.is_undecided:
        yield Line(wording.UNDECIDED)
    elif view.ranking and view.ranking.ballots:
        yield _table(view)
        yield from explained(view)
    else:
        yield Line(wording.NOT_RANKED)
    yield from missing(view)
    yield from scores(view)


def _table(view: RunView) -> Table:
    short = names(view)
    rows = (
        (
            rank,
            short.get(place.model, place.model),
            figures.position(place.mean_position),
            _changed(seat),
        )
        for rank, place in places(view)
        if (seat := view.seat(place.model))
    )
    return Table(wording.RANKING_HEADER, tuple(rows))


def _changed(seat: Seat) -> str:
    if isinstance(seat.correcting, Failed) or not seat.answer:
        return wording.NONE
    removed, added = moved(seat, seat.answer)
    return wording.changed_cell(removed, added) if removed or added else "0"


def _member(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[Block]:
    yield Heading(full_name(seat))
    yield standing(view, seat, answer)
    if remarks := tuple(_remarks(view, seat)):
        yield Heading(wording.PEERS, 3)
        yield from remarks
    yield Heading(wording.CORRECTED if seat.has_changed else wording.RESPONSE, 3)
    correction = seat.correction
    is_new = correction and (seat.has_changed or correction.consultation)
    result = correction if correction and is_new else answer
    yield from text(view, final_text(seat, answer), result, answer)


def _remarks(view: RunView, seat: Seat) -> Iterator[Block]:
    """Return what each reviewer said about this answer."""
    reviews = peers(view, seat)
    handed = seat.correction.peer_critiques if seat.correction else ""
    if handed and handed != peer_critiques(seat.name, reviews):
        yield Prose(handed)  # points that were picked out of the reviews, or another program's words
        return
    label, short = label_of(view, seat), names(view)
    # Readers know the members by their names, and not by their labels.
    named = {each: short.get(name, name) for each, name in view.labels.items()}
    rows: list[tuple[str, str]] = []
    for review in reviews:
        about = [point for point in review.points or () if point.label == label]
        grade = next((grade for grade in GRADES if any(grade == each.severity for each in about)), None)
        if about:
            said = wording.remark(grade, summary(about))
            rows.append((short[review.model], _in_names(said, named)))
        elif label is None or review.objects_to(label) is None:
            rows.append((short[review.model], wording.UNDIVIDED))
    if rows:
        yield Pairs(tuple(rows))


def _in_names(remark: str, named: Mapping[str, str]) -> str:
    for label, name in named.items():
        remark = remark.replace(label, name)
    return remark


def summary(points: Sequence[ReviewPoint], limit: int = SUMMARY) -> str:
    """Return the gravest points that fit, in their order; an ellipsis replaces the rest."""
    chosen: list[ReviewPoint] = []
    by_weight = sorted(points[:MOST_POINTS], key=_weight)
    for point in by_weight:
        kept = [each for each in points if each is point or each in chosen]
        if len(_written(kept)) <= limit - 2:
            chosen = kept
    if not chosen:
        return clip(_written(by_weight[:1]), limit - 2)
    return _written(chosen) if len(chosen) == len(points) else f"{_written(chosen)} \u2026"


def _weight(point: ReviewPoint) -> tuple[int, bool]:
    grade = GRADES.index(point.severity) if point.severity else len(GRADES)
    return grade, point.kind == "strength"


def _written(points: Sequence[ReviewPoint]) -> str:
    """Return points as one paragraph; sentences from the middle of prose need no title."""
    text, above = "", None
    for point in points:
        title = None if point.source == "sentence" else point.kind
        if text and not text.endswith(wording.SENTENCE_ENDS):
            text += "." if title != above or title is None else ";"
        said = wording.titled(title, point.text) if title != above and title else point.text
        text, above = f"{text} {said}".lstrip(), title
    return text
