"""Labels hide who wrote what, and reading orders treat every answer alike."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

import pytest

from council.reviews.labels import label_answers, reading_orders
from council.reviews.ranking import aggregate
from tests.pairs import rows

NAMES = [f"maker/model-{number}" for number in range(8)]


def test_labels_every_answer_and_tells_nothing_about_seats() -> None:
    """From Response A on; a seed gives the same, many seeds give each about equally often, and more than 26 are refused."""
    labels = label_answers(NAMES[:3], seed=7)
    assert list(labels) == ["Response A", "Response B", "Response C"]
    assert sorted(labels.values()) == NAMES[:3]
    assert label_answers(NAMES, 3) == label_answers(NAMES, 3)
    assert reading_orders(NAMES, 3) == reading_orders(NAMES, 3)
    firsts = Counter(label_answers(NAMES[:4], seed)["Response A"] for seed in range(2_000))
    assert all(400 < firsts[name] < 600 for name in NAMES[:4])
    assert len(label_answers([f"m{i}" for i in range(26)], 0)) == 26
    with pytest.raises(ValueError, match="zip"):
        label_answers([f"m{i}" for i in range(27)], 0)


def test_labels_and_reading_orders_are_independent() -> None:
    """Members don't read the answers in the order of their labels."""
    firsts: Counter[str] = Counter()
    for seed in range(400):
        label_of = {name: label for label, name in label_answers(NAMES[:4], seed).items()}
        order = reading_orders(NAMES[:4], seed)
        firsts[label_of[order[NAMES[0]][0]]] += 1
    assert len(firsts) == 4
    assert max(firsts.values()) < 200


@rows("size", range(2, 9))
def test_every_answer_is_in_each_position_equally_often(size: int) -> None:
    """Whoever reads, each answer is read in each position once."""
    orders = reading_orders(NAMES[:size], seed=size)
    assert sorted(orders) == NAMES[:size]
    seen = Counter((at, name) for order in orders.values() for at, name in enumerate(order))
    positions = size if size == 2 else size - 1
    assert seen == {(at, name): 1 for at in range(positions) for name in NAMES[:size]}


@rows("size", range(3, 9))
def test_nobody_reads_its_own(size: int) -> None:
    """With three or more answers every reviewer reads all but its own."""
    for reviewer, order in reading_orders(NAMES[:size], seed=1).items():
        assert sorted([reviewer, *order]) == NAMES[:size]


def test_own_answer_comes_last() -> None:
    """With two, both are read by both."""
    for reviewer, order in reading_orders(NAMES[:2], 1).items():
        assert sorted(order) == NAMES[:2]
        assert order[-1] == reviewer


# Judges who like what they read first ----------------------------------------------------------

COUNCIL = NAMES[:5]
QUALITY = dict(zip(COUNCIL, [0.0, 0.25, 0.5, 0.75, 1.0], strict=True))
RUNS = 300
"""Seeded, so each run of the tests sees the same judges."""


def mean_positions(orders: Mapping[str, Sequence[str]], bias: float, seed: int) -> dict[str, float]:
    """Have every reviewer rank by quality, noise, and a bonus for early answers."""
    rng = random.Random(seed)  # noqa: S311 - simulated judges
    labels = label_answers(COUNCIL, seed)
    label_of = {name: label for label, name in labels.items()}
    ballots: dict[str, list[str]] = {}
    for reviewer, order in orders.items():
        score = {name: QUALITY[name] + rng.gauss(0, 0.2) - bias * at for at, name in enumerate(order)}
        ballots[reviewer] = [label_of[name] for name in sorted(order, key=score.__getitem__)[::-1]]
    places = aggregate(ballots, labels).places
    return {place.model: place.mean_position or 0.0 for place in places}


def fixed_orders() -> dict[str, list[str]]:
    """Show everybody the answers in the order of the seats, its own left out: worst first here."""
    return {reviewer: [name for name in COUNCIL if name != reviewer] for reviewer in COUNCIL}


def test_circle_evens_out_position_bias() -> None:
    """Under judges who favour early answers, the best answer wins far more often on the circle."""
    wins: Counter[str] = Counter()
    gap: dict[str, list[float]] = {"fixed": [], "circle": [], "unbiased": []}
    for seed in range(RUNS):
        found = {
            "fixed": mean_positions(fixed_orders(), 0.4, seed),
            "circle": mean_positions(reading_orders(COUNCIL, seed), 0.4, seed),
            "unbiased": mean_positions(reading_orders(COUNCIL, seed), 0.0, seed),
        }
        for how, positions in found.items():
            wins[how] += min(positions, key=positions.__getitem__) == COUNCIL[-1]
            gap[how].append(positions[COUNCIL[0]] - positions[COUNCIL[-1]])
    assert wins["fixed"] < 0.1 * RUNS
    assert wins["circle"] > 0.5 * RUNS
    # How far the best answer is above the worst: turned round by the fixed order.
    assert fmean(gap["fixed"]) < 0
    assert fmean(gap["circle"]) > 0.4 * fmean(gap["unbiased"])
