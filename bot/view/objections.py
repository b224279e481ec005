"""What critics hold against an answer: a few lines that name only what is wrong or missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.view.member import beginning, label_of, names, peers
from bot.view.message import LINE, Block, Heading, Line, Pairs, Prose
from bot.view.state import RunView, Seat
from bot.view.wording import thread as wording
from council.document.results import GRADES, ReviewPoint, Stage2Result
from council.text import clip

SUMMARY = 2 * LINE
"""How much is shown of what a critic says about an answer: two lines."""
MOST_POINTS = 50
"""How many points of a review about an answer are chosen from."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What critics said about an answer.

    `objections`: each critic's, the gravest first. Those in `clear` have none; of those in `undivided`,
    nobody can tell.
    """

    objections: tuple[tuple[str, tuple[ReviewPoint, ...]], ...]
    clear: tuple[str, ...]
    undivided: tuple[str, ...]

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
        critic, points = short[review.model], tuple(_against(review, label, named))
        if points:
            against.append((critic, points))
        else:
            (clear if label and review.objects_to(label) is False else undivided).append(critic)
    return Heard(tuple(against), tuple(clear), tuple(undivided))


def objections(seat: Seat, said: Heard) -> Iterator[Block]:
    """Return what each critic holds against this answer, in a line, and who holds nothing."""
    if not (said.objections or said.clear or said.undivided):
        if seat.correction and seat.correction.peer_critiques:  # another program's words
            yield Heading(wording.OBJECTIONS, 3)
            yield Prose(beginning(seat.correction.peer_critiques))
        return
    yield Heading(wording.OBJECTIONS, 3)
    if said.objections:
        by_critic = tuple((critic, summary(points)) for critic, points in said.objections)
        yield Pairs(by_critic, together=True)
    if said.clear:
        yield Line(wording.clear(said.clear))
    if said.undivided:
        yield Line(wording.undivided(said.undivided))


def weight(point: ReviewPoint) -> int:
    """Return how grave an objection is, 0 the gravest; one without a grade is a medium one."""
    return GRADES.index(point.severity or "medium")


def _against(review: Stage2Result, label: str | None, named: Mapping[str, str]) -> Iterator[ReviewPoint]:
    about = [each for each in review.points or () if each.label == label and each.kind == "objection"]
    for point in sorted(about[:MOST_POINTS], key=weight):
        text = point.text
        for each, name in named.items():
            text = text.replace(each, name)
        yield point.model_copy(update={"text": text})


def summary(points: Sequence[ReviewPoint], limit: int = SUMMARY) -> str:
    """Return the gravest objection, and as many others as fit beside it, each whole."""
    first, *others = map(said, points)
    text = clip(first, limit)
    for other in others:
        if len(text) + 1 + len(other) <= limit:
            text = f"{text} {other}"
    return text


def said(point: ReviewPoint) -> str:
    """Return an objection as a sentence, with its grade."""
    end = "" if point.text.endswith(wording.SENTENCE_ENDS) else "."
    return wording.graded(point.severity, f"{point.text}{end}")
