"""Arms of an evaluation: what each asks and answers, and how they compare, over models of known quality."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from council.evaluation import (
    ArmAnswer,
    ArmFigures,
    Correction,
    Missing,
    compare_arms,
    decide,
    final,
    flips,
    majority,
    read_arms,
)
from council.usage import Usage
from council.worth.intervals import Interval
from tests.council.known import CHAIR, KnownModels, answering, numbered
from tests.council.scripted import profile
from tests.pairs import rows

QUALITY = {"big/one": 0.6, "small/one": 0.4, "tiny/one": 0.2, CHAIR: 0.85}
USED = Usage(prompt_tokens=6, completion_tokens=4, cost=0.5)


def figures(
    scores: Mapping[str, Sequence[float | None]], *, missing: Missing = "no_review", seed: int = 1
) -> dict[str, ArmFigures]:
    """Compare arms with `best`; `None` is a question without a result."""
    size = len(scores["best"])
    answers = {
        f"q{number}": {
            arm: ArmAnswer(None, USED, 2.0, missing)
            if given[number] is None
            else ArmAnswer("42", USED, 2.0)
            for arm, given in scores.items()
        }
        for number in range(size)
    }
    known = {
        arm: {f"q{number}": score for number, score in enumerate(given) if score is not None}
        for arm, given in scores.items()
    }
    found = compare_arms([*scores], answers, known, baseline="best", margin=0.05, seed=seed)
    return {each.name: each for each in found}


@pytest.mark.parametrize("evaluations", [20, pytest.param(100, marks=pytest.mark.soak)])
def test_the_known_order_is_recovered(evaluations: int) -> None:
    """With intervals of the difference and of the score that cover the truth in at least nine of ten."""
    truth = {"weak": 0.25, "best": 0.6, "full": 0.85}
    ordered = covered = scored = 0
    for seed in range(evaluations):
        draw = Random(seed).random  # noqa: S311 - chance that a seed repeats
        found = figures(
            {name: [float(draw() < share) for _ in range(50)] for name, share in truth.items()},
            seed=seed,
        )
        full, against = found["full"].interval, found["full"].against
        assert full is not None
        assert against is not None
        scores = [found[name].score or 0 for name in truth]
        ordered += scores == sorted(scores)
        covered += against.interval.low <= truth["full"] - truth["best"] <= against.interval.high
        scored += full.low <= truth["full"] <= full.high
    assert min(ordered, covered, scored) >= 0.9 * evaluations


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
async def test_a_whole_evaluation_finds_what_is_known(seed: int) -> None:
    """The best member by its pilot, a chairman better than it, and corrections that mend and spoil."""
    working = answering(models := KnownModels(QUALITY, seed=seed, mends=0.3, spoils=0.1), seed=seed)
    items, names = numbered(40), ["best", "self_consistency", "stage1", "second_look", "full"]

    def is_right(text: str | None, item: str) -> bool:
        return text is not None and final(text) == item.removeprefix("q")

    points = dict.fromkeys(list(QUALITY)[:3], 0)
    for item in items[:20]:
        for name, texts in (await working.pilot(item)).items():
            points[name] += sum(is_right(text, item.id) for text in texts)
    best = max(points, key=lambda name: points[name])
    given = {item.id: await working.answer(item, names, best) for item in items}
    answers = {id_: arms for id_, (arms, _) in given.items()}
    scores = {
        name: {id_: float(is_right(arms[name].text, id_)) for id_, arms in answers.items()}
        for name in names
    }
    found = {
        each.name: each
        for each in compare_arms(names, answers, scores, baseline="best", margin=0.05, seed=seed)
    }
    against = found["stage1"].against
    assert best == "big/one"
    assert all(each.invalid is None for each in found.values())
    assert against is not None
    assert against.interval.low <= QUALITY[CHAIR] - QUALITY[best] <= against.interval.high
    counted = flips(
        (each, is_right(each.before, id_), is_right(each.after, id_))
        for id_, (_, corrections) in given.items()
        for each in corrections
    )
    mended, spoilt = (
        sum(each[key] for each in counted.values()) for key in ("wrong_to_right", "right_to_wrong")
    )
    assert mended / (3 * 40 * 0.6) == pytest.approx(0.3, abs=0.15)
    assert spoilt / (3 * 40 * 0.4) == pytest.approx(0.1, abs=0.12)
    assert [*counted] == list(QUALITY)[:3]
    assert models.calls["stage2"] == 3 * 40  # reviews are shared, and the second look has none


async def test_arms_are_named_or_the_usual_ones_and_share_their_calls() -> None:
    """Each member answers once, corrects once with reviews and once without; the chairman answers thrice."""
    working = answering(models := KnownModels(QUALITY, seed=4, mends=0.5, spoils=0.5))
    [item] = numbered(1)
    arms, _ = await working.answer(item, ["best", "stage1", "second_look", "full"], "big/one")
    assert models.calls == {"stage1": 3, "stage2": 3, "stage2_5": 6, "stage3": 3}
    assert arms["second_look"].used.tokens == 15 * (3 + 3 + 1)
    assert {name: arm.missing for name, arm in arms.items()} == dict.fromkeys(arms)
    again = models.calls.copy()
    await working.answer(item, ["quick", "second_look", "full_without_2_5"], "big/one")
    assert models.calls - again == {"stage3": 1}
    council = profile("a", "b")
    assert read_arms(None, council)[0] == "best"
    assert "second_look" in read_arms(None, council)
    assert read_arms("members, full,full", council) == ("member:a", "member:b", "full")
    for wrong in ("fuller", " ,"):
        with pytest.raises(ValueError, match="There is no arm"):
            read_arms(wrong, council)


@rows(
    ("broken", "missing"),
    [
        ("stage1", dict.fromkeys(("best", "second_look", "full_without_2_5", "full"), "no_answer")),
        ("stage2", {"full_without_2_5": "no_review", "full": "no_review"}),
        ("stage2_5", {"second_look": "no_correction", "full": "no_correction"}),
        ("stage3", dict.fromkeys(("second_look", "full_without_2_5", "full"), "no_chairman")),
    ],
)
async def test_what_makes_an_arm_must_have_happened(broken: str, missing: Mapping[str, Missing]) -> None:
    """A council that answers although a stage failed isn't the arm that is named for it."""
    models = KnownModels(QUALITY, broken=frozenset({broken}))
    [item] = numbered(1)
    arms, _ = await answering(models).answer(
        item, ["best", "second_look", "full_without_2_5", "full"], "big/one"
    )
    assert {name: arm.missing for name, arm in arms.items() if arm.missing} == missing


async def test_self_consistency_spends_what_the_council_spent() -> None:
    """As many samples as fit into the council's tokens, its first answer among them; none for prose."""
    working = answering(models := KnownModels(QUALITY))
    [item] = numbered(1)
    arms, _ = await working.answer(item, ["full", "self_consistency"], "big/one")
    assert (arms["full"].used.tokens, arms["self_consistency"].used.tokens) == (150, 150)
    assert models.calls["stage1"] == 3 + 9
    prose, _ = await working.answer(item._replace(is_judged=True), ["self_consistency"], "big/one")
    assert prose["self_consistency"].missing == "no_majority"
    assert models.calls["stage1"] == 3 + 9


async def test_auto_asks_the_judge_and_counts_it() -> None:
    """Where the answers agree, reviews are skipped: the arm costs what it would alone."""
    council = profile("big/one", "small/one", judge_model="judge/one")
    models = KnownModels({"big/one": 1.0, "small/one": 1.0, CHAIR: 1.0, "judge/one": 1.0})
    [item] = numbered(1)
    arms, _ = await answering(models, council).answer(item, ["stage1", "auto"], "big/one")
    assert arms["auto"].used.tokens == arms["stage1"].used.tokens + 15
    assert arms["auto"].missing is None
    assert models.calls["stage2"] == 0


def test_an_arm_that_never_ran_is_invalid_and_never_compared() -> None:
    """More than one in twenty without a result: its score isn't 0, it has none. A call without a price makes the sum unknown."""
    found = figures({"best": [1.0] * 20, "full": [None, None, *[1.0] * 18], "stage1": [None] * 20})
    for name, missing in (("full", 2), ("stage1", 20)):
        arm = found[name]
        assert arm.invalid == (missing, 20, "no_review")
        assert (arm.n, arm.score, arm.interval, arm.against) == (0, None, None, None)
        assert (arm.tokens, arm.cost, arm.seconds) == (200, 10.0, 40.0)
    one = figures({"best": [1.0] * 20, "full": [None, *[1.0] * 19]})["full"]
    assert (one.invalid, one.n) == (None, 19)
    found = figures({"best": [None] * 12, "full": [1.0] * 12}, missing="no_answer")
    assert found["full"].against is None
    assert found["full"].score == 1
    unpriced = ArmAnswer("1", Usage(prompt_tokens=1, unpriced=1), 1.0)
    answers = {"a": {"best": unpriced}, "b": {"best": ArmAnswer("1", USED, 1.0)}}
    [best] = compare_arms(
        ["best"], answers, {"best": {"a": 1.0, "b": 1.0}}, baseline="best", margin=0.05, seed=1
    )
    assert (best.cost, best.tokens) == (None, 11)
    found = figures({"best": [1.0, 0.0] * 10, "full": [1.0, 0.0] * 10})["full"].against
    assert found is not None
    assert (found.difference, found.decision) == (0, "undecided")
    assert found.interval.low < 0 < found.interval.high


@rows(("count", "pairs"), [(2, None), (3, 3), (9, 9)])
def test_few_questions_compare_nothing_or_decide_nothing(count: int, pairs: int | None) -> None:
    against = figures({"best": [0.0] * count, "full": [1.0] * count})["full"].against
    assert (against and against.pairs) == pairs
    assert against is None or against.decision == "undecided"


@rows(
    ("low", "high", "decision"),
    [
        (-0.04, 0.05, "within_margin"),
        (0.01, 0.3, "better"),
        (-0.3, -0.01, "worse"),
        (-0.1, 0.2, "undecided"),
    ],
)
def test_the_margin_decides(low: float, high: float, decision: str) -> None:
    assert decide(Interval(low, high), 0.05, 10) == decision
    assert decide(Interval(low, high), 0.05, 9) == "undecided"


def test_flips_are_counted_both_ways_and_by_member() -> None:
    """What nobody can score is changed, never called better."""
    same, other = Correction("a", "x", "x"), Correction("b", "x", "y")
    counted = flips(
        [(other, 0.0, 1.0), (other, 1.0, 0.0), (other, None, None), (same, None, None), (same, 1, 1)]
    )
    assert counted == {
        "b": {"wrong_to_right": 1, "right_to_wrong": 1, "unjudged": 1},
        "a": {"wrong_to_right": 0, "right_to_wrong": 0, "unjudged": 0},
    }


@rows(
    ("texts", "chosen"),
    [
        (["ANSWER: 7", "It is so.\n**Answer: 8.**", "answer: 8"], 1),
        (["1,234", "no\n1234", "5"], 0),
        (["", " ", "3"], 2),
        (["ANSWER: 12 %", "ANSWER: 12%", "ANSWER: 13 %"], 0),
        (["", ""], 0),
        (["\n" * 100_000, "ANSWER: 1"], 1),
    ],
)
def test_the_majority_is_counted_by_final_lines(texts: list[str], chosen: int) -> None:
    assert majority(texts) == chosen
