"""One ranking of the ballots, with where they agree and where they don't, and one matrix of scores."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from council.criteria import EvaluationCriteria
from council.document.results import (
    AggregateRanking,
    Agreement,
    RankedAnswer,
    ScoredAnswer,
    ScoringMatrix,
)

STRONG_FROM = 0.6
SPLIT_BELOW = 0.2


def counted(
    ballots: Mapping[str, Sequence[str]], label_to_model: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return the ballots that count, reviewer name -> labels, best first, as they count.

    A vote for oneself is left out and the rest of the ballot closes up. With only two answers nothing
    would be left, so ballots count whole. A ballot with fewer than two labels left doesn't count.
    """
    whole = len(label_to_model) == 2
    votes = {
        reviewer: [label for label in ballot if whole or label_to_model.get(label) != reviewer]
        for reviewer, ballot in ballots.items()
    }
    return {reviewer: ballot for reviewer, ballot in votes.items() if len(ballot) >= 2}


def aggregate(
    ballots: Mapping[str, Sequence[str]], label_to_model: Mapping[str, str]
) -> AggregateRanking:
    """Rank the answers by their mean position over all counted ballots, 1 being best.

    `ballots`: reviewer name -> labels, best first, `[]` where the ballot couldn't be read. Pairwise wins
    decide between equal means; answers that are still equal share a rank and are sorted by label.
    Answers that no counted ballot names come last.
    """
    votes = counted(ballots, label_to_model)
    positions = [{label: place for place, label in enumerate(each, 1)} for each in votes.values()]
    places = [_place(label, model, positions) for label, model in label_to_model.items()]
    agreement = _agreement(positions)
    return AggregateRanking(
        places=sorted(places, key=_standing),
        agreement=agreement,
        agreement_word=_word(agreement),
        ballots=len(votes),
        uncounted=[reviewer for reviewer in ballots if reviewer not in votes],
    )


def disagreements(votes: Mapping[str, Sequence[str]], label_to_model: Mapping[str, str]) -> list[str]:
    """Return a line for each answer that the reviewers disagree on, with who placed it where.

    They disagree if its places are two or more apart, or if one reviewer puts it first and another
    last. `votes` are the counted ballots; lines are sorted by label.
    """
    lines: list[str] = []
    for label in sorted(label_to_model):
        places = sorted(
            (ballot.index(label) + 1, len(ballot), reviewer)
            for reviewer, ballot in votes.items()
            if label in ballot
        )
        if not places:
            continue
        first = any(place == 1 for place, _, _ in places)
        last = any(place == of for place, of, _ in places)
        if places[-1][0] - places[0][0] >= 2 or (first and last):
            said = ", ".join(f"{place} of {of} by {reviewer}" for place, of, reviewer in places)
            lines.append(f"{label} ({label_to_model[label]}) is placed {said}")
    return lines


def _place(label: str, model: str, positions: Sequence[Mapping[str, int]]) -> RankedAnswer:
    own = [ballot[label] for ballot in positions if label in ballot]
    wins = 0
    for other in {other for ballot in positions for other in ballot} - {label}:
        both = [ballot for ballot in positions if {label, other} <= ballot.keys()]
        wins += sum(ballot[label] < ballot[other] for ballot in both) * 2 > len(both)
    return RankedAnswer(
        label=label,
        model=model,
        mean_position=sum(own) / len(own) if own else None,
        votes=len(own),
        wins=wins,
    )


def _standing(place: RankedAnswer) -> tuple[bool, float, int, str]:
    return place.mean_position is None, place.mean_position or 0.0, -place.wins, place.label


def _agreement(positions: Sequence[Mapping[str, int]]) -> float | None:
    pairs = combinations(positions, 2)
    taus = [tau for one, other in pairs if (tau := _kendall_tau(one, other)) is not None]
    # Fractions, so that a mean of exactly 0.6 is strong on every machine.
    return float(sum(taus, Fraction()) / len(taus)) if taus else None


def _kendall_tau(one: Mapping[str, int], other: Mapping[str, int]) -> Fraction | None:
    shared = one.keys() & other.keys()
    pairs = list(combinations(shared, 2))
    if not pairs:
        return None
    alike = sum((one[a] < one[b]) == (other[a] < other[b]) for a, b in pairs)
    return Fraction(2 * alike - len(pairs), len(pairs))


def _word(agreement: float | None) -> Agreement | None:
    if agreement is None:
        return None
    if agreement >= STRONG_FROM:
        return "strong"
    return "split" if agreement < SPLIT_BELOW else "mixed"


# Scores -------------------------------------------------------------------------------------------

FAILS_BELOW = 4


def score(
    reviews: Mapping[str, Mapping[str, Mapping[str, int]]],
    label_to_model: Mapping[str, str],
    criteria: EvaluationCriteria,
) -> ScoringMatrix:
    """Return every answer's mean scores, weighted; the best first, the disqualified last.

    `reviews`: reviewer name -> label -> criterion -> 1 to 10. A score for oneself never counts, not
    even with two answers. `total` is the weighted mean of the criteria that somebody scored. An answer
    fails a must-have if most of its reviewers score it below 4; no score is no failure.
    """
    answers = [
        _weighed(
            label,
            model,
            [given.get(label, {}) for reviewer, given in reviews.items() if reviewer != model],
            criteria,
        )
        for label, model in label_to_model.items()
    ]
    answers.sort(
        key=lambda each: (each.is_disqualified, each.total is None, -(each.total or 0.0), each.label)
    )
    return ScoringMatrix(answers=answers, ballots=sum(map(bool, reviews.values())))


def _weighed(
    label: str, model: str, given: Sequence[Mapping[str, int]], criteria: EvaluationCriteria
) -> ScoredAnswer:
    means: dict[str, float] = {}
    failed: list[str] = []
    for criterion in criteria.criteria:
        scores = [each[criterion.name] for each in given if criterion.name in each]
        if scores:
            means[criterion.name] = sum(scores) / len(scores)
        low = sum(score < FAILS_BELOW for score in scores)
        if criterion.must_have and low * 2 > len(given):
            failed.append(criterion.name)
    weights = {each.name: each.weight for each in criteria.criteria if each.name in means}
    total = sum(means[name] * weight for name, weight in weights.items())
    return ScoredAnswer(
        label=label,
        model=model,
        means=means,
        total=total / sum(weights.values()) if weights else None,
        votes=sum(map(bool, given)),
        failed=failed,
    )
