"""The audit finds the loss that was planted, and intervals have their textbooks' values."""

from random import Random

import pytest

from council.worth.depth import is_drawn
from council.worth.intervals import exact_share, mean_difference
from tests.council.scripted import ScriptedCouncil
from tests.council.worth.test_depth import AFTER, AGREED, DIFFERENT, JUDGE, auto
from tests.pairs import rows

RUNS = 300
SHARE = 0.1


@rows("loss", [0.02, 0.3])
def test_the_interval_covers_a_planted_loss(loss: float) -> None:
    """For at least 90 of the seeds 0 to 99, with the runs that their own seeds draw for the audit."""
    covered = audited = 0
    for seed in range(100):
        team = Random(seed)  # noqa: S311 - a test draws the same each time
        drawn = [team.random() < loss for _ in range(RUNS) if is_drawn(team.getrandbits(53), SHARE)]
        low, high = exact_share(sum(drawn), len(drawn))
        covered += low <= loss <= high
        audited += len(drawn)
    assert covered >= 90
    assert audited == pytest.approx(100 * RUNS * SHARE, rel=0.1)


async def test_what_the_pipeline_audits_is_what_the_seeds_draw() -> None:
    """And what it says of each is what was planted; what it doesn't audit, it doesn't judge again."""
    for seed in range(40):
        planted = seed % 3 == 0
        scripted = ScriptedCouncil(
            script={"stage1": "Shard.", JUDGE: AGREED, AFTER: DIFFERENT if planted else AGREED}
        )
        depth = (await scripted.run(auto(depth_audit=SHARE * 3), seed=seed)).message.depth
        assert depth is not None
        drawn = is_drawn(seed, SHARE * 3)
        assert (depth.audited, depth.ran) == (drawn, "full" if drawn else "quick")
        assert depth.changed is (planted if drawn else None)


@rows(
    ("hits", "of", "low", "high"),
    [
        # R: binom.test(x, n)$conf.int
        (0, 10, 0.0, 0.3084971),
        (1, 20, 0.001265089, 0.2487328),
        (5, 10, 0.1870860, 0.8129140),
        (10, 10, 0.6915029, 1.0),
        (15, 100, 0.08645439, 0.2353075),
        (682, 925, 0.7076683, 0.7654066),  # Mendel's peas, in R's own example
    ],
)
def test_the_exact_interval_of_a_share_is_that_of_r(hits: int, of: int, low: float, high: float) -> None:
    """`binom.test` of R gives the same bounds."""
    assert exact_share(hits, of) == pytest.approx((low, high), abs=2e-7)


def test_the_bootstrap_is_seeded_and_covers_the_mean() -> None:
    """Of a hundred samples, about 95 intervals contain the mean that they were drawn with."""
    mean, covered = 0.2, 0
    for seed in range(100):
        source = Random(f"sample {seed}")  # noqa: S311 - a test draws the same each time
        drawn = [source.gauss(mean, 1.0) for _ in range(20)]
        low, high = mean_difference(drawn, seed, resamples=400)
        assert (low, high) == mean_difference(drawn, seed, resamples=400)
        covered += low <= mean <= high
    assert 90 <= covered <= 99
