"""What critics hold against an answer: a few lines that name only what is wrong or missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.view.member import beginning, label_of, names, peers
from bot.view.message import LINE, Block, Columns, Heading, Line, Pairs, Prose
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
    def has_none(self) -> bool:
        """Whether somebody reviewed it and nobody objects."""
        return bool(self.clear) and not (self.objections or self.undivided)

    @property
    def gravest(self) -> tuple[str, ReviewPoint] | None:
        """The gravest objection, and who raised it."""
        firsts = [(critic, points[0]) for critic, points in self.objections]
        return min(firsts, key=lambda each: weight(each[1]), default=None)


def heard(view: RunView, seat: Seat) -> Heard:
    """Return what the others' reviews of this round hold against a member's answer."""
    label, short, named = label_of(view, seat), names(view), _by_label(view)
    against: list[tuple[str, tuple[ReviewPoint, ...]]] = []
    clear: list[str] = []
    undivided: list[str] = []
    for review in peers(view, seat):
        about = [each for each in _about(review, label, named) if each.kind == "objection"]
        critic, points = short[review.model], sorted(about[:MOST_POINTS], key=weight)
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
    """Return the objections to an answer but the gravest, which the digest has, and all replies."""
    rows = tuple(_rows(view, seat, said))
    blocks: list[Block] = [Pairs(rows, together=True)] if rows else []
    if said.undivided:
        blocks.append(Line(wording.undivided(said.undivided)))
    others = seat.correction.peer_critiques if seat.correction else ""
    if others and not (said.clear or said.objections or said.undivided):  # another program's words
        blocks.append(Prose(beginning(others)))
    if blocks:
        yield Heading(wording.OBJECTIONS, 3)
        yield from blocks


def reviewed(view: RunView, seat: Seat, *, forms_only: bool = False) -> Iterator[Block]:
    """Return the reviews of an answer alone; `forms_only`: without prose that nobody replies to."""
    label, replies, short = label_of(view, seat), heard(view, seat).replies, names(view)
    for review in peers(view, seat):
        critic = short[review.model]
        if forms_only and not (is_form(review) or any(by == critic for by, _ in replies)):
            continue
        yield Heading(wording.review_by(critic), 3)
        lists: dict[str, list[str]] = {wording.STRENGTHS: [], wording.FAULTS: []}
        for point in sorted(_about(review, label, _by_label(view)), key=weight):
            kind = wording.FAULTS if point.kind == "objection" else wording.STRENGTHS
            reply = replies.get((critic, point.text))
            answered = f"{short[seat.name]}: {_reply(seat, reply, reply.reason)}" if reply else ""
            lists[kind].append(wording.point(said(point), point.quote, answered))
        if filled := tuple((title, tuple(items)) for title, items in lists.items() if items):
            yield Columns(filled)
        elif label and review.objects_to(label) is False:
            yield Line(wording.NO_OBJECTIONS)
        else:
            yield Prose(_named(review.ranking, _by_label(view)))
        if scores := review.scores.get(label or ""):
            yield Line(wording.scored(scores))
        if review.truncated:
            yield Line(wording.REVIEW_CUT_OFF)
    for critic, error in replies:
        if critic == short[seat.name]:
            yield Line(f"{critic}: {wording.found_itself(error)}")


def _rows(view: RunView, seat: Seat, held: Heard) -> Iterator[tuple[str, str]]:
    """Yield each critic's objections, each with the reply to it; without a reply they share a row."""
    author = names(view)[seat.name]
    for critic, points in held.objections:
        is_first = held.gravest == (critic, points[0])
        if is_first and (reply := held.replies.get((critic, points[0].text))):
            yield author, wording.to_gravest(critic, _reply(seat, reply, clip(reply.reason, REASON)))
        shown = fitting(points[is_first:])
        replies = [held.replies.get((critic, each.text)) for each in shown]
        if shown and not any(replies):
            yield critic, summary(shown)
            continue
        for point, reply in zip(shown, replies, strict=True):
            yield critic, clip(said(point), SUMMARY)
            if reply:
                yield author, _reply(seat, reply, clip(reply.reason, REASON))
    for critic, error in held.replies:
        if critic == author:
            yield author, wording.found_itself(clip(error, REASON))


def _reply(seat: Seat, reply: ObjectionReply, reason: str) -> str:
    made = seat.correction
    is_kept = made is not None and made.corrected_response == made.original_response
    return wording.reply(reason, holds=reply.holds, is_kept=is_kept)


def is_form(review: Stage2Result) -> bool:
    """Return whether it is a JSON ballot, whose points are all that it says: one that names no label."""
    return review.objects_to("") is False


def weight(point: ReviewPoint) -> int:
    """Return how grave an objection is, 0 the gravest; one without a grade is a medium one.

    Lighter than all others is one that quotes words that aren't there.
    """
    return len(GRADES) if point.found is False else GRADES.index(point.severity or "medium")


def _about(review: Stage2Result, label: str | None, named: Mapping[str, str]) -> Iterator[ReviewPoint]:
    for point in review.points or ():
        if point.label == label:
            yield point.model_copy(update={"text": _named(point.text, named)})


def _by_label(view: RunView) -> dict[str, str]:
    """Return each label's member: readers know the members by their names."""
    short = names(view)
    return {label: short.get(name, name) for label, name in view.labels.items()}


def _named(text: str, named: Mapping[str, str]) -> str:
    for label, name in named.items():
        text = text.replace(label, name)
    return text


def fitting(points: Sequence[ReviewPoint], limit: int = SUMMARY) -> list[ReviewPoint]:
    """Return the gravest of these, and as many others as fit beside it, each whole."""
    shown, others, room = [*points[:1]], points[1:], limit - sum(len(said(each)) for each in points[:1])
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
