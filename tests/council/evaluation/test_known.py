"""Models of known quality, through the real pipeline: what is known is found again."""

import asyncio
from collections.abc import Sequence

import pytest

from council.evaluation import arms
from council.evaluation.comparison import ArmFigures, Flips, checked, compare_arms, flips
from council.evaluation.pilot import pilot_item, piloted
from tests.council.evaluation.known import CHAIR, KnownModels, answering, numbered
from tests.council.scripted import profile

QUALITY = {"big/one": 0.6, "small/one": 0.4, "tiny/one": 0.2, CHAIR: 0.85}
QUESTIONS = 40


async def evaluate(seed: int, names: Sequence[str]) -> tuple[str, dict[str, ArmFigures], Flips]:
    """Return the best member by the pilot, every arm's figures, and the flips."""
    models = KnownModels(QUALITY, seed=seed, mends=0.3, spoils=0.1)
    working = answering(models, seed=seed)
    items = numbered(QUESTIONS)
    members = [member.name for member in working.profile.members]
    best = piloted(members, [await pilot_item(working, item) for item in items[:20]]).best
    answers = [await working.answer(item, names, best) for item in items]
    found = compare_arms(
        names, answers, checked(items, answers), baseline=arms.BEST, margin=0.05, seed=seed
    )
    return best, {each.name: each for each in found}, flips(items, answers)


async def proved(seeds: int) -> tuple[int, int, int]:
    """Return in how many evaluations the order, the difference and the score were the true ones."""
    ordered = covered = scored = 0
    for seed in range(seeds):
        names = [*arms.default_arms(profile(*list(QUALITY)[:3]))[:4], arms.STAGE1]
        best, found, _ = await evaluate(seed, names)
        scores = [found[f"member:{name}"].score or 0 for name in list(QUALITY)[:3]]
        full, against = found[arms.STAGE1], found[arms.STAGE1].against
        assert against is not None
        assert full.interval is not None
        truth = QUALITY[CHAIR] - QUALITY[best]
        ordered += best == "big/one" and scores == sorted(scores, reverse=True)
        covered += against.interval.low <= truth <= against.interval.high
        scored += full.interval.low <= QUALITY[CHAIR] <= full.interval.high
    return ordered, covered, scored


@pytest.mark.soak
def test_the_known_order_is_recovered_in_a_hundred_evaluations() -> None:
    """With intervals that cover the truth in at least ninety of them."""
    ordered, covered, scored = asyncio.run(proved(100))
    print(f"of 100: order {ordered}, difference covered {covered}, score covered {scored}")  # noqa: T201
    assert min(ordered, covered, scored) >= 90


async def test_corrections_flip_as_often_as_the_models_do() -> None:
    """Over forty questions of three members each: they mend 30 % of the wrong and spoil 10 %."""
    _, found, counted = await evaluate(1, [arms.BEST, arms.FULL])
    wrong = round(sum(1 - QUALITY[name] for name in list(QUALITY)[:3]) * QUESTIONS)
    right = 3 * QUESTIONS - wrong
    assert counted.wrong_to_right / wrong == pytest.approx(0.3, abs=0.12)
    assert counted.right_to_wrong / right == pytest.approx(0.1, abs=0.1)
    assert found[arms.FULL].invalid is None


async def test_self_consistency_spends_what_the_council_spent() -> None:
    """As many samples as fit into the council's tokens, its first answer among them."""
    models = KnownModels(QUALITY)
    working = answering(models)
    [item] = numbered(1)
    given = await working.answer(item, [arms.FULL, arms.SELF_CONSISTENCY], "big/one")
    full, sampled = given.arms[arms.FULL], given.arms[arms.SELF_CONSISTENCY]
    assert (full.tokens, sampled.tokens) == (150, 150)
    assert models.calls["stage1"] == 3 + 9


async def test_auto_asks_the_judge_and_counts_it() -> None:
    """Where the answers agree, reviews are skipped: the arm costs what it would alone."""
    council = profile("big/one", "small/one", judge_model="judge/one")
    models = KnownModels({"big/one": 1.0, "small/one": 1.0, CHAIR: 1.0, "judge/one": 1.0})
    working = answering(models, council)
    [item] = numbered(1)
    given = await working.answer(item, [arms.STAGE1, arms.AUTO], "big/one")
    assert given.arms[arms.AUTO].tokens == given.arms[arms.STAGE1].tokens + 15
    assert given.arms[arms.AUTO].missing is None
    assert models.calls["stage2"] == 0
