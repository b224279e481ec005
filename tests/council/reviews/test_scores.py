"""Scores: read in reviews as JSON or in the rows that are asked for, and weighed into a matrix."""

from hypothesis import given
from hypothesis import strategies as st

from council.criteria import EvaluationCriteria
from council.document.results import ScoredAnswer
from council.reviews.ballots import read_scores, scores_of, scores_text
from council.reviews.ranking import score
from tests.pairs import data, rows

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


def test_nobody_scores_their_own_answer_and_what_nobody_scored_has_no_weight() -> None:
    """Not even with two answers; what isn't scored fails no must-have."""
    matrix = score(
        {"ann": {A: {"Cost": 10}, B: {"Cost": 2}}, "bob": {A: {"Cost": 4}, B: {"Cost": 10}}},
        {A: "ann", B: "bob"},
        CRITERIA,
    )
    assert {answer.label: answer.total for answer in matrix.answers} == {A: 4.0, B: 2.0}
    assert [answer.votes for answer in matrix.answers] == [1, 1]
    matrix = score({"ann": {B: {"Cost": 8}}, "bob": {}}, THREE, CRITERIA)
    assert matrix.ballots == 1
    assert [(answer.label, answer.total, answer.failed) for answer in matrix.answers] == [
        (B, 8.0, []),
        (A, None, []),
        (C, None, []),
    ]


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


BOTH_LABELS = ("Response A", "Response B")
NAMES = ("Cost", "Time to market")
BOTH = {"Response A": {"Cost": 7, "Time to market": 4}, "Response B": {"Cost": 9, "Time to market": 10}}
ROWS = "Response A: Cost 7, Time to market 4\nResponse B: Cost 9, Time to market 10"
RANKING = "FINAL RANKING:\n1. Response B\n2. Response A"


@rows("text", data(__file__, "scores_are_read"))
def test_scores_are_read(text: str) -> None:
    """In the rows that are asked for; the last block, and an answer's first score in it."""
    assert read_scores(text, BOTH_LABELS, NAMES) == BOTH


@rows("text", data(__file__, "nothing_is_guessed"))
def test_nothing_is_guessed(text: str) -> None:
    """Prose, quotations, code, unknown names and numbers out of range give no score."""
    assert read_scores(text, BOTH_LABELS, NAMES) == {}


def test_an_unreadable_line_does_not_affect_the_others() -> None:
    """The scores on the other lines count; without criteria, none."""
    text = "SCORES:\nResponse A: Cost 7, Time to market good\nResponse B: Cost 12, Time to market 10"
    assert read_scores(text, BOTH_LABELS, NAMES) == {
        "Response A": {"Cost": 7},
        "Response B": {"Time to market": 10},
    }
    assert read_scores(f"SCORES:\n{ROWS}", BOTH_LABELS, ()) == {}


@rows(
    ("given", "read"),
    [
        ({"Cost": 7, "Time to market": 4}, {"Cost": 7, "Time to market": 4}),
        ({"cost": 7, "time_to_market": 4}, {"Cost": 7, "Time to market": 4}),
        ({"Cost": 0, "Time to market": 11}, {}),
        ({"Cost": "7", "Time to market": True}, {}),
        ({"Cost": 7, "Beauty": 9}, {"Cost": 7}),
        ([7, 4], {}),
        (None, {}),
    ],
)
def test_json_scores_are_whole_numbers_of_known_criteria(given: object, read: dict[str, int]) -> None:
    """A name may be written in another way, a number not."""
    assert scores_of(given, NAMES) == read


@given(st.text(), st.sampled_from(["", "SCORES:\n", "SCORES:\nResponse A: "]))
def test_any_text_can_be_read(text: str, before: str) -> None:
    """Only known labels and criteria come out, and only whole numbers from 1 to 10."""
    for label, scores in read_scores(before + text, BOTH_LABELS, NAMES).items():
        assert label in BOTH_LABELS
        assert scores.keys() <= {*NAMES}
        assert all(1 <= score <= 10 for score in scores.values())


MANY_LABELS = tuple(f"Response {letter}" for letter in "ABCDEF")
MANY_CRITERIA = (*NAMES, "R&D", "Cost of change", "5 years' support", "Ops.")


@given(
    st.dictionaries(
        st.sampled_from(MANY_LABELS),
        st.dictionaries(st.sampled_from(MANY_CRITERIA), st.integers(1, 10), min_size=1),
        min_size=1,
    )
)
def test_written_scores_are_read_back(scores: dict[str, dict[str, int]]) -> None:
    """The form that reviewers are asked for; one criterion's name may begin with another's."""
    text = "\n".join(scores_text(scores))
    assert read_scores(text, MANY_LABELS, MANY_CRITERIA) == scores
