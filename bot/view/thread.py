"""The thread below the card: a digest that explains in a minute why the answer is what it is.

First the whole in short: the ranking, and for each member the gravest objection and what it changed.
Then a message per member, best first: its critics' objections, what changed, and its corrected
response. All of it is final when the last round's corrections are over. What it leaves out
is behind its buttons (`bot.view.details`) and in the transcript (`bot.view.record`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bot.view.member import beginning, corrected, final_text, moved, names, share, standing
from bot.view.message import Block, Heading, Line, Message, Pairs, Prose
from bot.view.objections import SUMMARY, Heard, heard, objections, summary
from bot.view.passages import Passage, gravest, passages
from bot.view.ranking import explained, missing, ranked, scores
from bot.view.state import Failed, RunView, Seat
from bot.view.wording import figures
from bot.view.wording import thread as wording
from council.document.conversation import Stage1Result, Stage2_5Result
from council.text.characters import clip

SENTENCE = SUMMARY - 25
"""How much the digest shows of a changed sentence: two lines, with what is before it."""
PASSAGE = 240
"""How much of a changed sentence is shown, before and after."""


@dataclass(frozen=True, slots=True)
class ThreadPart:
    """A message of the thread: its kind, its text, and the seat of the member it is about."""

    kind: Literal["ranking", "member"]
    message: Message
    seat: int | None = None


def thread(view: RunView) -> tuple[ThreadPart, ...]:
    """Return the thread's messages in the order in which they are posted; none before all are final.

    Once returned, a message never changes.
    """
    answered = [(seat, seat.answer) for seat in ranked(view) if seat.answer]
    if not is_final(view) or len(answered) < 2:  # one alone has no peers, and its answer is the card's
        return ()
    messages: list[ThreadPart] = []
    if view.stage("stage2").progress == "done":
        messages.append(ThreadPart("ranking", Message("ranking", tuple(_ranking(view)))))
    for seat, answer in answered:
        blocks = tuple(_member(view, seat, answer))
        message = Message(f"member:{seat.name}", blocks, bounded=True)
        messages.append(ThreadPart("member", message, view.seats.index(seat)))
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
        yield Line(" ".join((wording.BESIDE_NAMES, *(line.text for line in explained(view)))))
    else:
        yield Line(wording.NOT_RANKED)
    yield from missing(view)
    for seat in ranked(view):
        if seat.answer:
            yield Pairs(tuple(_in_short(view, seat, seat.answer)), together=True)
    yield from scores(view)


def _in_short(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[tuple[str, str]]:
    """Return a member's rank, the gravest objection to its answer, and what it changed, a line each."""
    name, said = names(view)[seat.name], heard(view, seat)
    if rank := view.rank(seat.name):
        yield f"{figures.rank(rank)} {name}", wording.average(figures.position(rank.mean_position))
    else:
        yield name, wording.NO_RANK
    if found := said.gravest:
        critic, point = found
        by = wording.objection_by(critic)
        yield by, summary([point], SUMMARY - len(by))
    elif said.undivided:
        yield wording.OBJECTION, wording.NOT_TOLD
    elif said.clear:
        yield wording.OBJECTION, wording.NOBODY
    if seat.correction:
        yield wording.CHANGED, _correction(seat, seat.correction, answer, said)


def _correction(seat: Seat, correction: Stage2_5Result, answer: Stage1Result, said: Heard) -> str:
    if isinstance(seat.correcting, Failed):
        is_stopped = seat.correcting.failure.cause == "stopped"
        return wording.STOPPED if is_stopped else wording.FAILED
    if not any(moved(seat, answer)):
        reason = " ".join((correction.kept_because or "").split())
        return wording.kept_in_short(clip(reason, SUMMARY)) if reason else wording.KEPT_IN_SHORT
    much, passage = wording.much(share(seat, answer)), _passage(seat, answer, said)
    if passage is None:
        return much
    if not passage.after:
        return wording.dropped(much, clip(passage.before, SENTENCE))
    sentence = clip(passage.after, SENTENCE)
    return wording.now(much, sentence) if passage.before else wording.added(much, sentence)


def _passage(seat: Seat, answer: Stage1Result, said: Heard) -> Passage | None:
    points = [point for _, points in said.objections for point in points]
    return gravest(passages(answer.response, final_text(seat, answer)), points)


def _member(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[Block]:
    said = heard(view, seat)
    yield Heading(names(view)[seat.name])
    yield standing(view, seat, answer, exact=False)
    yield from objections(seat, said)
    if seat.has_changed and (passage := _passage(seat, answer, said)):
        yield Heading(wording.WHAT_CHANGED, 3)
        rows = ((wording.BEFORE, passage.before), (wording.NOW, passage.after))
        shown = tuple((name, clip(text, PASSAGE)) for name, text in rows if text)
        yield Pairs(shown, together=True)
    whole = tuple(corrected(view, seat, answer))
    final = final_text(seat, answer)
    begun = beginning(final)
    if view.thread == "full" or begun == final or Prose(final) not in whole:
        yield from whole
    else:
        name = wording.CORRECTED if seat.has_changed else wording.RESPONSE
        yield Heading(wording.begins(name), 3)
        yield Prose(begun)
