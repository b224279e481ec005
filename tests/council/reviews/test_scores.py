"""The scoring matrix: weights, own scores left out, must-haves."""

from council.criteria import EvaluationCriteria
from council.document.results import ScoredAnswer
from council.reviews.ranking import score
from tests.pairs import rows

CRITERIA = EvaluationCriteria.model_validate("Cost:3, Security!")
A, B, C = "Response A", "Response B", "Response C"
THREE = {A: "ann", B: "bob", C: "cyd"}


def test_means_are_weighed_and_the_best_comes_first() -> None:
    """A weight of 3 counts three times."""
    matrix = score(
        {
            "ann": {B: {"Cost": 8, "Security": 4}, C: {"Cost": 6, "Security": 9}},
            "bob": {A: {"Cost": 5, "Security": 5}, C: {"Cost": 7, "Security": 10}},
            "cyd": {A: {"Cost": 6, "Security": 7}, B: {"Cost": 9, "Security": 6}},
        },
        THREE,
        CRITERIA,
    )
    assert matrix.ballots == 3
    assert [(answer.label, answer.total) for answer in matrix.answers] == [
        (B, (8.5 * 3 + 5.0) / 4),
        (C, (6.5 * 3 + 9.5) / 4),
        (A, (5.5 * 3 + 6.0) / 4),
    ]
    assert matrix.answers[0] == ScoredAnswer(
        label=B, model="bob", means={"Cost": 8.5, "Security": 5.0}, total=7.625, votes=2
    )


def test_nobody_scores_their_own_answer() -> None:
    """Not even with two answers."""
    matrix = score(
        {"ann": {A: {"Cost": 10}, B: {"Cost": 2}}, "bob": {A: {"Cost": 4}, B: {"Cost": 10}}},
        {A: "ann", B: "bob"},
        CRITERIA,
    )
    assert {answer.label: answer.total for answer in matrix.answers} == {A: 4.0, B: 2.0}
    assert [answer.votes for answer in matrix.answers] == [1, 1]


def test_an_answer_that_most_find_failing_a_must_have_is_disqualified_and_last() -> None:
    """It has scores below 4 by more than half of its reviewers; one of two isn't enough."""
    matrix = score(
        {
            "ann": {B: {"Cost": 10, "Security": 3}, C: {"Cost": 1, "Security": 3}},
            "bob": {A: {"Cost": 1, "Security": 4}, C: {"Cost": 1, "Security": 10}},
            "cyd": {A: {"Cost": 1, "Security": 4}, B: {"Cost": 10, "Security": 1}},
        },
        THREE,
        CRITERIA,
    )
    assert [(answer.label, answer.failed) for answer in matrix.answers] == [
        (C, []),
        (A, []),
        (B, ["Security"]),
    ]
    assert matrix.answers[-1].is_disqualified


@rows(("low", "failed"), [(1, []), (2, ["Security"]), (3, ["Security"])])
def test_a_reviewer_without_a_score_counts_against_a_majority(low: int, failed: list[str]) -> None:
    """No score is no failure, and an author isn't one of its reviewers."""
    given = {
        "ann": {B: {"Cost": 9}},
        "bob": {B: {"Security": 1}},
        "cyd": {},
        "dan": {C: {"Security": 1}},
    }
    lows = {reviewer: {B: {"Security": 3}} for reviewer in ["ann", "cyd", "dan"][:low]}
    matrix = score(given | lows, {**THREE, "Response D": "dan"}, CRITERIA)
    assert {answer.label: answer.failed for answer in matrix.answers}[B] == failed


def test_what_nobody_scored_has_no_weight() -> None:
    """This holds for criteria and answers; what isn't scored fails no must-have."""
    matrix = score({"ann": {B: {"Cost": 8}}, "bob": {}}, THREE, CRITERIA)
    assert matrix.ballots == 1
    assert [(answer.label, answer.total, answer.failed) for answer in matrix.answers] == [
        (B, 8.0, []),
        (A, None, []),
        (C, None, []),
    ]
