"""The pilot: every member answers some questions three times, and the best single member is fixed.

Its replies aren't used again: whoever was lucky in it gains nothing from that later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from council.evaluation.answering import Answering
from council.evaluation.checkers import checker_of, is_right
from council.evaluation.items import EvalItem


@dataclass(frozen=True, slots=True)
class Piloted:
    """What the pilot found.

    `best` is the best single member; `shares` is each member's share of right answers, or of answers
    that the judge called the best; `saturated` are the questions that the best member answered right
    each time.
    """

    best: str
    shares: Mapping[str, float]
    saturated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PilotedItem:
    """One question of the pilot: each member's points, from 0 to 1, and who was right each time."""

    id: str
    points: Mapping[str, float]
    always_right: frozenset[str]


async def pilot_item(answering: Answering, item: EvalItem) -> PilotedItem:
    """Ask every member three times, and score the answers."""
    texts = await answering.pilot(item)
    if checker_of(item) == "judge":
        return PilotedItem(item.id, await _judged(answering, item, texts), frozenset())
    right = {
        name: [text is not None and bool(is_right(item, text)) for text in given]
        for name, given in texts.items()
    }
    return PilotedItem(
        item.id,
        {name: sum(verdicts) / len(verdicts) for name, verdicts in right.items()},
        frozenset(name for name, verdicts in right.items() if all(verdicts)),
    )


async def _judged(
    answering: Answering, item: EvalItem, texts: Mapping[str, Sequence[str | None]]
) -> Mapping[str, float]:
    first = {name: given[0] for name, given in texts.items()}
    answered = [(name, text) for name, text in first.items() if text is not None]
    chosen = await answering.best_of(item, [text for _, text in answered]) if answered else None
    winner = None if chosen is None else answered[chosen][0]
    return {name: float(name == winner) for name in texts}


def by_rank(members: Sequence[str], first: Sequence[str | None]) -> Piloted:
    """Without a pilot, choose the member whose answer the council ranked first most often."""
    ranked = [name for name in first if name is not None]
    return Piloted(max(members, key=ranked.count), {}, ())


def piloted(members: Sequence[str], items: Sequence[PilotedItem]) -> Piloted:
    """Choose the member with the most points; of equal ones, the first in seating order."""
    points = {name: sum(item.points.get(name, 0.0) for item in items) for name in members}
    best = max(members, key=lambda name: points[name])
    saturated = tuple(item.id for item in items if best in item.always_right)
    shares = {name: points[name] / len(items) for name in members} if items else {}
    return Piloted(best, shares, saturated)
