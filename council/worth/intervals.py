"""How sure a figure is: intervals for shares, and for differences between two ways to answer.

Every interval is two-sided. The share's are exact (Clopper and Pearson, Biometrika 1934) or Wilson's
(JASA 1927); differences of paired scores are resampled (seeded percentile bootstrap, expanded for small
samples as in Hesterberg, The American Statistician 2015).
"""

import math
from collections.abc import Callable, Sequence
from random import Random
from statistics import NormalDist, fmean
from typing import NamedTuple

CONFIDENCE = 0.95
HALVINGS = 60
"""Bisections of a probability: one more wouldn't change a double."""
RESAMPLES = 2_000


class Interval(NamedTuple):
    """The bounds of an interval."""

    low: float
    high: float


def exact_share(hits: int, of: int, confidence: float = CONFIDENCE) -> Interval:
    """Return the Clopper-Pearson interval of a share, such as 1 of 20: 0.001 to 0.249.

    It covers the true share at least as often as it says, however few were counted. Raises `ValueError`
    if nothing was counted, or more hits than there were cases.
    """
    _check(hits, of)
    alpha = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _rising(lambda share: _at_least(hits, of, share), alpha)
    high = 1.0 if hits == of else 1 - _rising(lambda share: _at_least(of - hits, of, share), alpha)
    return Interval(low, high)


def mean_difference(
    differences: Sequence[float],
    seed: int,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the bootstrap interval of the mean of paired differences; the same for the same seed.

    Raises `ValueError` without differences.
    """
    if not differences:
        raise ValueError("there is no difference to resample")
    draw, size = Random(seed).choices, len(differences)  # noqa: S311 - the same interval for the same seed
    means = sorted(fmean(draw(differences, k=size)) for _ in range(resamples))
    alpha = _expanded((1 - confidence) / 2, size)
    return Interval(_quantile(means, alpha), _quantile(means, 1 - alpha))


def _check(hits: int, of: int) -> None:
    if of < 1 or not 0 <= hits <= of:
        raise ValueError(f"{hits} of {of} is no share")


def _expanded(alpha: float, size: int) -> float:
    """Return the quantile to take instead of `alpha`: resampled means spread less than Student's t."""
    if size < 2:
        return 0.0
    normal, free = NormalDist(), size - 1
    z = normal.inv_cdf(alpha)
    # Student's quantile as a series in 1 / free (Abramowitz and Stegun 26.7.5).
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return normal.cdf(math.sqrt(size / free) * t)


def _at_least(hits: int, of: int, share: float) -> float:
    """Return the probability of so many hits or more: the binomial's upper tail."""
    if share <= 0 or share >= 1:
        return float(share >= 1)
    yes, no, size = math.log(share), math.log1p(-share), math.lgamma(of + 1)
    return math.fsum(
        math.exp(size - math.lgamma(k + 1) - math.lgamma(of - k + 1) + k * yes + (of - k) * no)
        for k in range(hits, of + 1)
    )


def _rising(function: Callable[[float], float], value: float) -> float:
    """Return where a function that rises from 0 to 1 between 0 and 1 reaches a value."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return (low + high) / 2


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile, between the two nearest where it falls between them."""
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
