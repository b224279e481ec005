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
RESAMPLES = 2_000


class Interval(NamedTuple):
    """The bounds of an interval."""

    low: float
    high: float


def exact_share(hits: int, of: int) -> Interval:
    """Return the Clopper-Pearson interval of a share, such as 1 of 20: 0.001 to 0.249.

    It covers the true share at least as often as it says, however few were counted.
    """
    alpha = (1 - CONFIDENCE) / 2
    low = 0.0 if hits == 0 else _rising(lambda share: _at_least(hits, of, share), alpha)
    high = 1.0 if hits == of else 1 - _rising(lambda share: _at_least(of - hits, of, share), alpha)
    return Interval(low, high)


def mean_difference(differences: Sequence[float], seed: int, *, resamples: int = RESAMPLES) -> Interval:
    """Return the bootstrap interval of the mean of paired differences; the same for the same seed."""
    draw, size = Random(seed).choices, len(differences)  # noqa: S311 - the same interval for the same seed
    means = sorted(fmean(draw(differences, k=size)) for _ in range(resamples))
    alpha, normal, free = 0.0, NormalDist(), size - 1
    if free:  # resampled means spread less than Student's t, so another quantile is taken
        z = normal.inv_cdf((1 - CONFIDENCE) / 2)
        # Student's quantile as a series in 1 / free (Abramowitz and Stegun 26.7.5).
        t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        alpha = normal.cdf(math.sqrt(size / free) * t)
    return Interval(_quantile(means, alpha), _quantile(means, 1 - alpha))


def _at_least(hits: int, of: int, share: float) -> float:
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
    for _ in range(60):  # one more wouldn't change a double
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return (low + high) / 2


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile, between the two nearest where it falls between them."""
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
