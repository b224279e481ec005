"""The thread below the card: a digest that explains in a minute why the answer is what it is.

First the whole in short: the ranking, and for each member the gravest objection and what it changed.
Then a message per member, best first: its critics' other objections, its replies, what changed, and
its corrected response. What it leaves out is behind *Open* (`opened`) and in the transcript
(`bot.view.record`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.view.member import beginning, corrected, final_text, moved, names, share, standing, text
from bot.view.message import Block, Diff, Heading, Line, Message, Pairs, Prose
from bot.view.objections import SUMMARY, Heard, heard, objections, reviewed, summary
from bot.view.passages import Passage, gravest, passages
from bot.view.ranking import explained, missing, ranked, scores
from bot.view.state import Failed, RunView, Seat
from bot.view.wording import figures
from bot.view.wording import thread as wording
from council.document.results import Stage1Result
from council.text import clip

SENTENCE = SUMMARY - 25
"""How much the digest shows of a changed sentence: two lines, with what is before it."""
PASSAGE = 240
"""How much of a changed sentence is shown, before and after."""


PartKind = Literal["answer", "digest", "member"]


@dataclass(frozen=True, slots=True)
class ThreadPart:
    """A message of the thread: its kind, its text, and the seat of the member it is about."""

    kind: PartKind
    message: Message
    seat: int = 0


@dataclass(frozen=True, slots=True)
class _Member:
    """A member that answered, what its critics said, and the change they would look at first."""

    seat: Seat
    answer: Stage1Result
    said: Heard
    passage: Passage | None


def thread(view: RunView) -> tuple[ThreadPart, ...]:
    """Return the digest, if reviews were made, and each member's message, in their order."""
    answered = [(seat, seat.answer) for seat in ranked(view) if seat.answer]
    if len(answered) < 2:  # one alone has no peers, and its answer is the card's
        return ()
    members = [_member(view, seat, answer) for seat, answer in answered]
    messages: list[ThreadPart] = []
    if view.stage("stage2").progress == "done":
        messages.append(ThreadPart("digest", Message("ranking", tuple(_digest(view, members)))))
    for member in members:
        blocks = tuple(_in_full(view, member))
        message = Message(f"member:{member.seat.name}", blocks, bounded=True)
        messages.append(ThreadPart("member", message, view.seats.index(member.seat)))
    return tuple(messages)


def opened(view: RunView, number: int) -> Message:
    """Return all of one member: its changes, its whole response, the original, and reviews of it."""
    seat = view.seats[number] if number < len(view.seats) else None
    if seat is None or seat.answer is None:
        return Message("open", (Line(wording.NO_ANSWER),))
    return Message("open", tuple(_opened(view, seat, seat.answer)))


def _opened(view: RunView, seat: Seat, answer: Stage1Result) -> Iterator[Block]:
    yield Heading(names(view)[seat.name])
    yield standing(view, seat, answer)
    if any(moved(seat, answer)):
        yield Heading(wording.CHANGES, 3)
        yield Line(wording.MARKED)
        yield Diff(answer.response, final_text(seat, answer))
    yield from corrected(view, seat, answer)
    if seat.has_changed:
        yield Heading(wording.ORIGINAL, 3)
        yield from text(view, answer.response, answer)
    yield from reviewed(view, seat)


def _member(view: RunView, seat: Seat, answer: Stage1Result) -> _Member:
    said = heard(view, seat)
    points = [point for _, points in said.objections for point in points]
    changed = passages(answer.response, final_text(seat, answer))
    return _Member(seat, answer, said, gravest(changed, points))


def _digest(view: RunView, members: Sequence[_Member]) -> Iterator[Block]:
    yield Heading(f"{wording.RANKING}{wording.of_round(view.number)}")
    if view.is_undecided:
        yield Line(wording.UNDECIDED)
    elif view.ranking and view.ranking.ballots:
        yield Line(" ".join((wording.BESIDE_NAMES, *(line.text for line in explained(view)))))
    else:
        yield Line(wording.NOT_RANKED)
    yield from missing(view)
    none = all(each.said.has_none for each in members)
    if none:
        yield Line(wording.NO_OBJECTIONS)
    for member in members:
        yield Pairs(tuple(_in_short(view, member, none_at_all=none)), together=True)
    yield from scores(view)


def _in_short(view: RunView, member: _Member, *, none_at_all: bool) -> Iterator[tuple[str, str]]:
    """Return a member's rank, the gravest objection to its answer, and what it changed, a line each."""
    seat, said = member.seat, member.said
    name = names(view)[seat.name]
    rank = view.rank(seat.name)
    stands = wording.average(figures.position(rank.mean_position)) if rank else wording.NO_RANK
    verdicts = [each.holds for (critic, _), each in said.replies.items() if critic != name]
    if verdicts:
        stands = f"{stands}; {wording.replied(len(verdicts), sum(verdicts))}"
    yield f"{figures.rank(rank)} {name}" if rank else name, stands
    if found := said.gravest:
        critic, point = found
        reply = said.replies.get((critic, point.text))
        by = wording.objection_by(critic, holds=reply.holds if reply else None)
        yield by, summary([point], SUMMARY - len(by))
    elif said.undivided:
        yield wording.OBJECTION, wording.NOT_TOLD
    elif said.clear and not none_at_all:
        yield wording.OBJECTION, wording.NOBODY
    if seat.correction:
        yield wording.CHANGED, _correction(member)


def _correction(member: _Member) -> str:
    seat, answer, passage = member.seat, member.answer, member.passage
    if isinstance(seat.correcting, Failed):
        is_stopped = seat.correcting.failure.cause == "stopped"
        return wording.STOPPED if is_stopped else wording.FAILED
    if not any(moved(seat, answer)):
        return wording.KEPT_IN_SHORT
    much = wording.much(share(seat, answer))
    if passage is None:
        return much
    if not passage.after:
        return wording.dropped(much, clip(passage.before, SENTENCE))
    sentence = clip(passage.after, SENTENCE)
    return wording.now(much, sentence) if passage.before else wording.added(much, sentence)


def _in_full(view: RunView, member: _Member) -> Iterator[Block]:
    seat, answer = member.seat, member.answer
    yield Heading(names(view)[seat.name])
    yield standing(view, seat, answer)
    yield from objections(view, seat, member.said)
    if seat.has_changed and (passage := member.passage):
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
