"""Values to parametrize a test with, of which some are for `make soak` alone."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest


def pairs(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """Return each value of one with each of the other, enough of them for every value to come up.

    The rest, which only combine what has come up, are for `make soak`.
    """
    always = {(turn % len(one), turn % len(other)) for turn in range(max(len(one), len(other)))}
    return [
        pytest.param(
            value,
            partner,
            marks=() if (first, second) in always else (pytest.mark.soak,),
            id=f"{_name(value)}-{_name(partner)}",
        )
        for first, value in enumerate(one)
        for second, partner in enumerate(other)
    ]


def every_other(values: Sequence[Any], name: Callable[[Any], str]) -> list[Any]:
    """Return values that one piece of code treats alike, every second one for `make soak`."""
    return [
        pytest.param(value, marks=(pytest.mark.soak,) if number % 2 else (), id=name(value))
        for number, value in enumerate(values)
    ]


def _name(value: object) -> str:
    return str(value)[:40].splitlines()[0]
