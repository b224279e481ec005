"""Intervals have their textbooks' values, and cover what they say they cover."""

from random import Random

import pytest

from council.worth.intervals import exact_share, mean_difference
from tests.pairs import rows


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
