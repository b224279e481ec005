"""Intervals have their textbooks' values, and cover what they say they cover."""

from random import Random

import pytest

from council.worth.intervals import (
    exact_share,
    mean_difference,
    net_change,
    wilson_share,
)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        # R: prop.test(x, n, correct = FALSE)$conf.int; the last two are Newcombe's examples (1998)
        (0, 10, 0.0, 0.2775328),
        (5, 10, 0.2365931, 0.7634069),
        (81, 263, 0.2553, 0.3662),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_of_a_share(hits: int, of: int, low: float, high: float) -> None:
    """Newcombe's tables have the same bounds."""
    assert wilson_share(hits, of) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("count", [(0, 0), (3, 2), (-1, 4)])
def test_what_is_no_share_is_refused(count: tuple[int, int]) -> None:
    """Nothing is made up for no cases at all."""
    for interval in (exact_share, wilson_share):
        with pytest.raises(ValueError, match="is no share"):
            interval(*count)
    with pytest.raises(ValueError, match="no difference"):
        mean_difference([], seed=1)


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


def test_a_change_is_judged_by_what_changed() -> None:
    """Five spoilt of thirty may be chance, six may not (the exact sign test's p is 0.06 and 0.03)."""
    assert net_change(0, 5, 30).high > 0
    assert net_change(0, 6, 30).high < 0
    assert net_change(6, 0, 30).low > 0
    low, high = net_change(2, 2, 30)
    assert low == pytest.approx(-high)
    assert net_change(0, 0, 30) == (0.0, 0.0)
