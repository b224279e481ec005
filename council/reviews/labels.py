"""Anonymous labels for a review, and the order in which each member reads the others."""

import random
from collections.abc import Sequence
from string import ascii_uppercase


def label_answers(names: Sequence[str], seed: int, number: int = 1) -> dict[str, str]:
    """Return an anonymous label for each member's answer: label -> member name.

    Every round draws new labels, so that nobody is recognized by an earlier letter.

    Raises `ValueError` for more members than there are letters.
    """
    shuffled = _shuffled(names, _drawn("labels", seed, number))
    letters = ascii_uppercase[: len(shuffled)]
    return {f"Response {letter}": name for letter, name in zip(letters, shuffled, strict=True)}


def reading_orders(names: Sequence[str], seed: int, number: int = 1) -> dict[str, list[str]]:
    """Return whose answers each member reads, in order: reviewer name -> names.

    The members form a shuffled circle, and each starts reading at its neighbour, so every answer
    appears in every position equally often. With three or more answers nobody reads its own
    (recusal). With two, everybody reads all, its own last.
    """
    circle = _shuffled(names, _drawn("circle", seed, number))
    recused = len(circle) >= 3
    return {
        name: circle[seat + 1 :] + circle[: seat if recused else seat + 1]
        for seat, name in enumerate(circle)
    }


def _drawn(what: str, seed: int, number: int) -> str:
    return f"{what} {seed}" if number == 1 else f"{what} {seed} round {number}"


def _shuffled(names: Sequence[str], seed: str) -> list[str]:
    # Labels and circle are drawn separately: with one shuffle everybody would read in alphabetical
    # order, and a bias for early letters would add to one for early places.
    rng = random.Random(seed)  # noqa: S311 - a replayed run must draw the same seats; nothing is secret
    return rng.sample(names, len(names))
