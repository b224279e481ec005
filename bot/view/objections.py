"""What critics hold against an answer: a few lines that name only what is wrong or missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.view.member import beginning, label_of, names, peers
from bot.view.message import LINE, Block, Heading, Line, Pairs, Prose
from bot.view.state import RunView, Seat
from bot.view.wording import thread as wording
from council.document.results import GRADES, ObjectionReply, ReviewPoint, Stage2Result
from council.text import clip

SUMMARY = 2 * LINE
"""How much is shown of what a critic says about an answer: two lines."""
REASON = SUMMARY - 30
"""How much is shown of a reply's reason, with what is before it in two lines."""
MOST_POINTS = 50
"""How many points of a review about an answer are chosen from."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What critics said about an answer, and what its author replied.

    `objections`: each critic's, the gravest first, and below all others those that quote what the answer
    doesn't say. Those in `clear` have none; of those in `undivided`, nobody can tell. `replies` are by
    critic and objection.
    """

    objections: tuple[tuple[str, tuple[ReviewPoint, ...]], ...]
    clear: tuple[str, ...]
    undivided: tuple[str, ...]
    replies: Mapping[tuple[str, str], ObjectionReply]

    @property
    def gravest(self) -> tuple[str, ReviewPoint] | None:
        """The gravest objection, and who raised it."""
        firsts = [(critic, points[0]) for critic, points in self.objections]
        return min(firsts, key=lambda each: weight(each[1]), default=None)


def heard(view: RunView, seat: Seat) -> Heard:
    """Return what the others' reviews of this round hold against a member's answer."""
    label, short = label_of(view, seat), names(view)
    # Readers know the members by their names, and not by their labels.
    named = {each: short.get(name, name) for each, name in view.labels.items()}
    against: list[tuple[str, tuple[ReviewPoint, ...]]] = []
    clear: list[str] = []
    undivided: list[str] = []
    for review in peers(view, seat):
        critic, points = short[review.model], [*_against(review, label, named)]
        if not points:
            (clear if label and review.objects_to(label) is False else undivided).append(critic)
        kinds = ([each for each in points if (each.found is False) == isnt] for isnt in (False, True))
        against += ((critic, tuple(kind)) for kind in kinds if kind)
    against.sort(key=lambda each: each[1][0].found is False)
    said = (seat.correction.replies if seat.correction else None) or ()
    replies = {
        (short.get(each.critic, each.critic), _named(each.objection, named)): each.model_copy(
            update={"reason": _named(each.reason, named)}
        )
        for each in said
    }
    return Heard(tuple(against), tuple(clear), tuple(undivided), replies)


def objections(view: RunView, seat: Seat, said: Heard) -> Iterator[Block]:
    """Return what each critic holds against this answer, with the replies, and who holds nothing."""
    rows = tuple(_rows(view, seat, said))
    if not (rows or said.clear or said.undivided):
        if seat.correction and seat.correction.peer_critiques:  # another program's words
            yield Heading(wording.OBJECTIONS, 3)
            yield Prose(beginning(seat.correction.peer_critiques))
        return
    yield Heading(wording.OBJECTIONS, 3)
    if rows:
        yield Pairs(rows, together=True)
    if said.clear:
        yield Line(wording.clear(said.clear))
    if said.undivided:
        yield Line(wording.undivided(said.undivided))


def replied(view: RunView, seat: Seat) -> Iterator[Block]:
    """Return all objections to a member's answer with its replies, whole; nothing without a reply."""
    said = heard(view, seat)
    if said.replies:
        yield Heading(wording.OBJECTIONS, 3)
        yield Pairs(tuple(_rows(view, seat, said, whole=True)), together=True)


def _rows(view: RunView, seat: Seat, held: Heard, *, whole: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each critic's objections, each with the reply to it; without a reply they share a row."""
    author = names(view)[seat.name]
    for critic, points in held.objections:
        shown = points if whole else fitting(points)
        replies = [held.replies.get((critic, each.text)) for each in shown]
        if not any(replies):
            yield critic, summary(shown)
            continue
        for point, reply in zip(shown, replies, strict=True):
            yield critic, said(point) if whole else clip(said(point), SUMMARY)
            if reply:
                yield author, _reply(seat, reply, whole=whole)
    for critic, error in held.replies:
        if critic == author:
            yield author, wording.found_itself(error if whole else clip(error, REASON))


def _reply(seat: Seat, reply: ObjectionReply, *, whole: bool) -> str:
    made, reason = seat.correction, reply.reason if whole else clip(reply.reason, REASON)
    is_kept = made is not None and made.corrected_response == made.original_response
    return wording.reply(reason, holds=reply.holds, is_kept=is_kept)


def weight(point: ReviewPoint) -> int:
    """Return how grave an objection is, 0 the gravest; one without a grade is a medium one.

    Lighter than all others is one that quotes words that aren't there.
    """
    return len(GRADES) if point.found is False else GRADES.index(point.severity or "medium")


def _against(review: Stage2Result, label: str | None, named: Mapping[str, str]) -> Iterator[ReviewPoint]:
    about = [each for each in review.points or () if each.label == label and each.kind == "objection"]
    for point in sorted(about[:MOST_POINTS], key=weight):
        yield point.model_copy(update={"text": _named(point.text, named)})


def _named(text: str, named: Mapping[str, str]) -> str:
    for label, name in named.items():
        text = text.replace(label, name)
    return text


def fitting(points: Sequence[ReviewPoint], limit: int = SUMMARY) -> list[ReviewPoint]:
    """Return the gravest objection, and as many others as fit beside it, each whole."""
    first, *others = points
    shown, room = [first], limit - len(said(first))
    for other in others:
        if len(said(other)) < room:
            shown.append(other)
            room -= len(said(other)) + 1
    return shown


def summary(points: Sequence[ReviewPoint], limit: int = SUMMARY) -> str:
    """Return as many objections as fit, the gravest first and shortened if it must be."""
    return clip(" ".join(map(said, fitting(points, limit))), limit)


def said(point: ReviewPoint) -> str:
    """Return an objection as a sentence, with its grade."""
    end = "" if point.text.endswith(wording.SENTENCE_ENDS) else "."
    text = wording.graded(point.severity, f"{point.text}{end}")
    return f"({wording.NOT_FOUND}) {text}" if point.found is False else text
