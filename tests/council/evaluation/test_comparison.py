"""Arms compared: by the rule, with intervals, and nothing called zero that never ran."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from council.evaluation.arms import ArmAnswer, Correction, ItemAnswers
from council.evaluation.comparison import (
    ArmFigures,
    Flips,
    checked,
    compare_arms,
    decide,
    flips,
    kappa,
    length_controlled,
)
from council.worth.intervals import Interval
from tests.council.evaluation.known import numbered

RIGHT, WRONG = 1.0, 0.0


def answered(scores: Mapping[str, Sequence[float | None]]) -> list[ItemAnswers]:
    """Return answers to numbered questions: right, wrong, or none at all, by arm."""
    size = len(next(iter(scores.values())))

    def answer(number: int, score: float | None) -> ArmAnswer:
        if score is None:
            return ArmAnswer(None, 10, 0.5, 2.0, missing="no_review")
        return ArmAnswer(f"Answer: {number if score else 999}", 10, 0.5, 2.0)

    return [
        ItemAnswers(
            f"q{number}", {arm: answer(number, given[number - 1]) for arm, given in scores.items()}
        )
        for number in range(1, size + 1)
    ]


def figures(scores: Mapping[str, Sequence[float | None]], margin: float = 0.05) -> dict[str, ArmFigures]:
    """Compare arms with `best`."""
    answers = answered(scores)
    items = numbered(len(answers))
    found = compare_arms(
        [*scores], answers, checked(items, answers), baseline="best", margin=margin, seed=1
    )
    return {each.name: each for each in found}


def test_an_arm_that_never_ran_is_invalid_and_never_compared() -> None:
    """More than one in twenty without a result: its score isn't 0, it has none."""
    found = figures({"best": [RIGHT] * 20, "full": [None, None, *[RIGHT] * 18], "pick": [None] * 20})
    full, pick = found["full"], found["pick"]
    assert full.invalid is not None
    assert pick.invalid is not None
    assert (full.invalid.missing, full.invalid.of, full.invalid.cause) == (2, 20, "no_review")
    assert (full.score, full.interval, full.against, full.tokens, full.cost) == (
        None,
        None,
        None,
        200,
        10,
    )
    assert (pick.score, pick.invalid.missing) == (None, 20)
    assert found["best"].score == 1


def test_one_missing_result_in_twenty_is_left_out() -> None:
    """The pairs are those that both answered."""
    full = figures({"best": [RIGHT] * 20, "full": [None, *[WRONG] * 19]})["full"]
    assert (full.n, full.score, full.missing, full.invalid) == (19, 0, 1, None)
    assert full.against is not None
    assert (full.against.pairs, full.against.decision) == (19, "worse")


def test_without_a_valid_baseline_nothing_is_compared() -> None:
    """The others' scores stay."""
    found = figures({"best": [None] * 20, "full": [RIGHT] * 20})
    assert (found["full"].score, found["full"].against) == (1, None)


@pytest.mark.parametrize(
    ("interval", "pairs", "decision"),
    [
        ((0.01, 0.2), 20, "better"),
        ((-0.2, -0.01), 20, "worse"),
        ((-0.04, 0.05), 20, "within_margin"),
        ((0.01, 0.04), 20, "within_margin"),
        ((-0.1, 0.2), 20, "undecided"),
        ((0.1, 0.9), 9, "undecided"),
    ],
)
def test_the_interval_decides(interval: tuple[float, float], pairs: int, decision: str) -> None:
    """A difference within the margin doesn't matter, even a certain one; below ten nothing is decided."""
    assert decide(Interval(*interval), 0.05, pairs) == decision


def test_alike_answers_prove_no_equality() -> None:
    """Twenty of twenty alike leave room for what they didn't show; resampling them finds nothing."""
    full = figures({"best": [RIGHT, WRONG] * 10, "full": [RIGHT, WRONG] * 10})["full"]
    assert full.against is not None
    assert full.against.difference == 0
    assert full.against.interval.high == pytest.approx(0.168, abs=0.001)
    assert full.against.decision == "undecided"


def test_two_questions_are_no_comparison() -> None:
    """From three on they are counted."""
    two = figures({"best": [WRONG] * 2, "full": [RIGHT] * 2})["full"]
    three = figures({"best": [WRONG] * 3, "full": [RIGHT] * 3})["full"]
    assert two.against is None
    assert three.against is not None
    assert three.against.decision == "undecided"


def test_known_qualities_are_found_again() -> None:
    """The interval covers the true difference about as often as it says, and the order is the true one."""
    covered = ordered = 0
    for seed in range(40):
        draw = Random(seed)  # noqa: S311 - chance that a seed repeats
        truth = {"best": 0.4, "full": 0.65}
        scores = {arm: [float(draw.random() < share) for _ in range(60)] for arm, share in truth.items()}
        found = figures(scores)
        against = found["full"].against
        assert against is not None
        covered += against.interval.low <= 0.25 <= against.interval.high
        ordered += (found["full"].score or 0) > (found["best"].score or 0)
    assert covered >= 36
    assert ordered >= 38


def test_flips_are_counted_both_ways() -> None:
    """By the checkers; a text that changed to say the same is no flip."""
    items = numbered(1)
    corrections = [
        Correction("a", "Answer: 999", "Answer: 1"),
        Correction("b", "Answer: 1", "Answer: 999"),
        Correction("c", "Answer: 1", "It is certain.\nAnswer: 1"),
        Correction("d", "Answer: 999", "Answer: 999"),
        Correction("e", "Answer: 1", "Answer: 998"),
    ]
    assert flips(items, [ItemAnswers("q1", {}, corrections)]) == Flips(1, 2, 0)


def test_a_bias_for_length_is_taken_out() -> None:
    """A judge that always prefers the longer answer sees a difference that isn't there."""
    draw = Random(3)  # noqa: S311 - chance that a seed repeats
    lengths = [draw.gauss(40, 60) for _ in range(200)]
    by_length = [(1.0 if length > 0 else -1.0, length) for length in lengths]
    fair = [(1.0 if draw.random() < 0.75 else -1.0, length) for length in lengths]
    raw = sum(difference for difference, _ in by_length) / len(by_length)
    controlled, unchanged = length_controlled(by_length), length_controlled(fair)
    assert raw > 0.4
    assert controlled is not None
    assert unchanged is not None
    assert abs(controlled) < 0.12
    assert unchanged == pytest.approx(0.5, abs=0.15)
    assert length_controlled(fair[:9]) is None


def test_kappa_is_agreement_beyond_chance() -> None:
    """Cohen 1960: 0.6 observed where 0.5 is chance is 0.2."""
    half = [("arm", "arm")] * 3 + [("baseline", "baseline")] * 3 + [("arm", "baseline")] * 2
    half += [("baseline", "arm")] * 2
    assert kappa(half) == pytest.approx(0.2)
    assert kappa([("arm", "arm")] * 5) == 1
    assert kappa([]) is None
