"""Arms compared by the rule that was written first: scores, paired differences, flips, and how sure.

An arm that never ran is invalid, not zero. Differences are paired by question and resampled with the
evaluation's seed; below three questions nothing is compared, and below ten nothing is decided.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Literal

from council.evaluation.arms import ArmAnswer, ItemAnswers, Missing
from council.evaluation.checkers import checker_of, is_right
from council.evaluation.items import EvalItem
from council.worth.intervals import Interval, exact_share, mean_difference

MOST_MISSING = 0.05
"""The share of an arm's questions that may have no result."""
LEAST_COMPARED = 3
LEAST_DECIDED = 10
Decision = Literal["better", "worse", "within_margin", "undecided"]
Scores = Mapping[str, Mapping[str, float]]
"""By arm and question: from 0 to 1, only where there is one."""


@dataclass(frozen=True, slots=True)
class Against:
    """An arm's difference from the baseline over the questions that both have a score for."""

    difference: float
    interval: Interval
    decision: Decision
    pairs: int


@dataclass(frozen=True, slots=True)
class Invalid:
    """Why an arm can't be compared: so many of its questions have no result, mostly for this cause."""

    missing: int
    of: int
    cause: Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    """One arm's figures: over `n` scored questions, cost, tokens and seconds in all.

    `length_controlled` is what of the difference from the baseline is left where both answers are
    equally long. `words` is an answer's mean length. `truncated` and `absent` count questions: with a
    reply cut off by its limit, and with a member that didn't answer.
    """

    name: str
    n: int
    score: float | None
    interval: Interval | None
    against: Against | None
    length_controlled: float | None
    words: float
    cost: float | None
    tokens: int
    seconds: float
    truncated: int
    absent: int
    missing: int
    invalid: Invalid | None


@dataclass(frozen=True, slots=True)
class Flips:
    """What members' corrections did to their answers: put right, spoilt, or nobody can say."""

    wrong_to_right: int = 0
    right_to_wrong: int = 0
    unjudged: int = 0


def checked(items: Sequence[EvalItem], answers: Sequence[ItemAnswers]) -> dict[str, dict[str, float]]:
    """Return the scores that checkers give, by arm and question."""
    by_id = {item.id: item for item in items}
    found: dict[str, dict[str, float]] = {}
    for answered in answers:
        item = by_id[answered.id]
        for arm, answer in answered.arms.items():
            scores = found.setdefault(arm, {})
            if answer.missing is None and answer.text is not None:
                verdict = is_right(item, answer.text)
                if verdict is not None:
                    scores[item.id] = float(verdict)
    return found


@dataclass(frozen=True, slots=True)
class CheckedCorrection:
    """A member's correction in the full council, both answers checked."""

    member: str
    item: EvalItem
    was_right: bool
    is_right: bool


def checked_corrections(
    items: Sequence[EvalItem], answers: Sequence[ItemAnswers]
) -> Iterator[CheckedCorrection]:
    """Yield every correction of the full council whose question has a checker, kept answers included."""
    by_id = {item.id: item for item in items}
    for answered in answers:
        item = by_id[answered.id]
        for each in answered.corrections:
            before, after = is_right(item, each.before), is_right(item, each.after)
            if before is not None and after is not None:
                yield CheckedCorrection(each.member, item, before, after)


def flips(items: Sequence[EvalItem], answers: Sequence[ItemAnswers]) -> Flips:
    """Count what the full council's corrections did, by the checkers."""
    judged = {item.id for item in items if checker_of(item) == "judge"}
    checked = [*checked_corrections(items, answers)]
    return Flips(
        wrong_to_right=sum(each.is_right and not each.was_right for each in checked),
        right_to_wrong=sum(each.was_right and not each.is_right for each in checked),
        unjudged=sum(
            each.changed
            for answered in answers
            if answered.id in judged
            for each in answered.corrections
        ),
    )


def compare_arms(
    names: Sequence[str],
    answers: Sequence[ItemAnswers],
    scores: Scores,
    *,
    baseline: str,
    margin: float,
    seed: int,
) -> list[ArmFigures]:
    """Return the figures of every arm, each but the baseline compared with it."""
    invalid = {name: _invalid(name, answers, scores) for name in names}
    found: list[ArmFigures] = []
    for name in names:
        given = [answered.arms[name] for answered in answers if name in answered.arms]
        own = [] if invalid[name] else [*scores.get(name, {}).values()]
        compared = baseline in names and name != baseline and not (invalid[name] or invalid[baseline])
        pairs = _pairs(name, baseline, answers, scores) if compared else []
        texts = [answer.text for answer in given if answer.text is not None]
        found.append(
            ArmFigures(
                name=name,
                n=len(own),
                score=fmean(own) if own else None,
                interval=_interval(own, seed),
                against=_against([difference for difference, _ in pairs], margin, seed),
                length_controlled=length_controlled(pairs),
                words=fmean(len(text.split()) for text in texts) if texts else 0.0,
                cost=_sum([answer.cost for answer in given]),
                tokens=sum(answer.tokens for answer in given),
                seconds=round(sum(answer.seconds for answer in given), 3),
                truncated=sum(answer.truncated for answer in given),
                absent=sum(answer.absent > 0 for answer in given),
                missing=sum(answer.missing is not None for answer in given),
                invalid=invalid[name],
            )
        )
    return found


def decide(interval: Interval, margin: float, pairs: int) -> Decision:
    """Return what an interval says of a difference, by the margin that doesn't matter."""
    if pairs < LEAST_DECIDED:
        return "undecided"
    if -margin <= interval.low and interval.high <= margin:
        return "within_margin"
    if interval.low > 0:
        return "better"
    return "worse" if interval.high < 0 else "undecided"


def length_controlled(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the mean difference that is left where both answers are equally long.

    `pairs` are a difference in score and one in words. It is the intercept of a regression on the
    difference in length, damped by tanh as in length-controlled AlpacaEval (arXiv 2404.04475). `None`
    below ten pairs.
    """
    if len(pairs) < LEAST_DECIDED:
        return None
    spread = pstdev(length for _, length in pairs)
    mean = fmean(difference for difference, _ in pairs)
    if not spread:
        return mean
    x = [math.tanh(length / spread) for _, length in pairs]
    mean_x = fmean(x)
    square = sum((each - mean_x) ** 2 for each in x)
    if not square:
        return mean
    slope = sum((each - mean_x) * (pair[0] - mean) for each, pair in zip(x, pairs, strict=True)) / square
    return max(-1.0, min(1.0, mean - slope * mean_x))


def detectable(figures: Sequence[ArmFigures]) -> float | None:
    """Return the half-width of the widest compared interval: a smaller difference can't be seen."""
    widths = [
        (each.against.interval.high - each.against.interval.low) / 2 for each in figures if each.against
    ]
    return max(widths, default=None)


def kappa(labels: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of pairs of verdicts, a judge's and a person's; `None` without any.

    Where both say the same of everything it is 1, though chance would do as well.
    """
    if not labels:
        return None
    size = len(labels)
    agreed = sum(one == other for one, other in labels) / size
    firsts, seconds = Counter(one for one, _ in labels), Counter(other for _, other in labels)
    by_chance = sum(firsts[label] * seconds[label] for label in firsts) / size**2
    return 1.0 if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)


def _invalid(name: str, answers: Sequence[ItemAnswers], scores: Scores) -> Invalid | None:
    causes: list[Missing] = [
        cause for each in answers if (cause := _cause(each.arms.get(name))) is not None
    ]
    of, missing = len(answers), len(causes)
    if scores.get(name) and missing <= MOST_MISSING * of:
        return None
    if not causes:  # all of it answered, and none of it scored
        return Invalid(of, of, "not_judged")
    return Invalid(missing, of, max(causes, key=causes.count))


def _cause(answer: ArmAnswer | None) -> Missing | None:
    if answer is None:
        return "no_answer"
    return answer.missing or (None if answer.text is not None else "no_answer")


def _interval(scores: Sequence[float], seed: int) -> Interval | None:
    if not scores:
        return None
    if all(score in (0.0, 1.0) for score in scores):
        return exact_share(round(sum(scores)), len(scores))
    return _resampled(scores, seed, 0.0)


def _against(differences: Sequence[float], margin: float, seed: int) -> Against | None:
    if len(differences) < LEAST_COMPARED:
        return None
    interval = _resampled(differences, seed, -1.0)
    pairs = len(differences)
    return Against(fmean(differences), interval, decide(interval, margin, pairs), pairs)


def _resampled(values: Sequence[float], seed: int, lowest: float) -> Interval:
    """Return the bootstrap interval of a mean; where all values are alike, what else may be out there.

    Resampling alike values finds nothing else, as if there were nothing: then it is the share of other
    values that so many questions can't rule out.
    """
    if len({*values}) > 1:
        low, high = mean_difference(values, seed)
    else:
        [only], other = {*values}, exact_share(0, len(values)).high
        low, high = only - other * (only - lowest), only + other * (1 - only)
    return Interval(max(lowest, low), min(1.0, high))


def _pairs(
    name: str, baseline: str, answers: Sequence[ItemAnswers], scores: Scores
) -> list[tuple[float, float]]:
    """Return for each question that both have a score for: the differences in score and in words."""
    own, other = scores.get(name, {}), scores.get(baseline, {})
    return [
        (own[answered.id] - other[answered.id], _words(answered, name) - _words(answered, baseline))
        for answered in answers
        if answered.id in own and answered.id in other
    ]


def _words(answered: ItemAnswers, name: str) -> int:
    return len((answered.arms[name].text or "").split())


def _sum(costs: Sequence[float | None]) -> float | None:
    return None if None in costs else sum(cost for cost in costs if cost is not None)
