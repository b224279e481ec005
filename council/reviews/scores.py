"""Makes one weighted matrix of the reviewers' scores, with the answers that fail a must-have."""

from collections.abc import Mapping, Sequence

from council.criteria import EvaluationCriteria
from council.document.results import ScoredAnswer, ScoringMatrix
from council.reviews.score_text import Scored

FAILS_BELOW = 4


def score(
    reviews: Mapping[str, Scored],
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
    return ScoringMatrix(
        answers=sorted(answers, key=_standing), ballots=sum(map(bool, reviews.values()))
    )


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


def _standing(answer: ScoredAnswer) -> tuple[bool, bool, float, str]:
    return answer.is_disqualified, answer.total is None, -(answer.total or 0.0), answer.label
