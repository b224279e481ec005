"""The result of an evaluation in words."""

from dataclasses import replace
from typing import Any

from bot.evaluation.summary import table
from bot.view.wording import evaluation as wording
from council.evaluation.comparison import Against, ArmFigures, Flips, Invalid, decide
from council.worth.intervals import Interval
from tests.bot.evaluation.sample import sample
from tests.council.evaluation.known import numbered


async def test_the_table_has_a_row_for_each_arm() -> None:
    """And below it what came out, in sentences; few questions are counted, not divided."""
    many, few = table(await sample(12)), table(await sample(4, items=numbered(4)))
    rows = many.splitlines()
    assert rows[0].split() == ["arm", "score", "against", "best", "cost", "tokens", "seconds", "words"]
    assert [row.split()[0] for row in rows[1:11]][-3:] == ["stage1", "full_without_2_5", "full"]
    assert "12 questions can't show a difference below about" in rows[-1]
    assert "%" not in few
    assert few.endswith("4 questions can't show a difference; from ten on one can be decided.")


def figures(name: str, difference: float = 0.0, pairs: int = 40) -> ArmFigures:
    """Return the figures of an arm that differs from the baseline by so much."""
    interval = Interval(difference - 0.1, difference + 0.1)
    return ArmFigures(
        name=name,
        n=pairs,
        score=0.5,
        interval=Interval(0.4, 0.6),
        against=Against(difference, interval, decide(interval, 0.05, pairs), pairs),
        length_controlled=None,
        words=10,
        cost=None,
        tokens=1_000,
        seconds=10,
        truncated=0,
        absent=0,
        missing=0,
        invalid=None,
    )


def said(*arms: ArmFigures, flips: Flips | None = None, questions: int = 40, **more: object) -> str:
    """Return what a result says."""
    given: dict[str, Any] = {"kappa": None, "judged_by_member": False, "stopped_for": None, **more}
    return "\n".join(wording.says(arms, flips or Flips(), questions=questions, baseline="best", **given))


def test_what_stage_2_5_spoils_comes_first() -> None:
    """Where it spoils more than it mends; otherwise it is told as it is."""
    assert said(figures("full", 0.02), flips=Flips(1, 4, 2)) == (
        "Stage 2.5 spoils more than it mends: it put 1 wrong answer right and spoilt 4 right ones; "
        "2 more changed, and nobody can say which way.\n"
        "full against best: +2 (\u22128 to +12), undecided.\n"
        "40 questions can't show a difference below about 10 points, nor what other questions would give."
    )
    assert said(figures("full", 0.2), flips=Flips(4, 1)).splitlines()[:2] == [
        "Stage 2.5 put 4 wrong answers right and spoilt 1 right one.",
        "full against best: +20 (+10 to +30), better.",
    ]


def test_what_limits_a_result_is_said() -> None:
    """Arms that never ran, a judge that can't be trusted, a stop, too few questions."""
    never = replace(figures("pick"), score=None, against=None, invalid=Invalid(9, 9, "no_ranking"))
    assert said(
        never,
        figures("full", 0.2, 9),
        questions=9,
        kappa=0.41,
        judged_by_member=True,
        stopped_for="max_cost",
    ) == (
        "Stage 2.5 put 0 wrong answers right and spoilt 0 right ones.\n"
        "full against best: +1.8 of 9.\n"
        "pick is invalid: 9 of 9 questions have no ranking.\n"
        "Judge not trusted: its verdicts agree with the hand labels by a kappa of 0.41.\n"
        "The judge is a member's model and judged its own answers.\n"
        "The evaluation was stopped, so these are the questions that it reached.\n"
        "9 questions can't show a difference; from ten on one can be decided."
    )


def test_progress_says_what_is_left() -> None:
    """Time and money, as far as they are known."""
    assert wording.progress(0, 80, None, None) == "0 of 80"
    assert wording.progress(12, 80, 340.0, None) == "12 of 80, about 5 min 40 s left"
    assert wording.progress(12, 80, 340.0, 0.25) == "12 of 80, about 5 min 40 s left, about $0.25 more"
    assert wording.progress(80, 80, 0.0, 0.0) == "80 of 80"
