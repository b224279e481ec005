"""What is tried in every run, and what only in `make soak`."""

import asyncio
from collections.abc import Awaitable
from inspect import signature
from typing import cast

import pytest

from tests.pairs import pairs, rows


def test_every_value_is_tried_in_every_run() -> None:
    """And every pair in one of them."""
    made = pairs("abc", [1, 2, 3, 4, 5])
    always = [each.values for each in made if not each.marks]
    assert {value for values in always for value in values} == {*"abc", 1, 2, 3, 4, 5}
    assert len(always) == 5
    assert {each.values for each in made} == {(one, other) for one in "abc" for other in range(1, 6)}


async def test_each_row_is_played_and_those_that_fail_are_named() -> None:
    """Whether the test waits for something or not; and its fixtures are what is left of its parameters."""

    @rows("number", [1, 2, 3])
    def odd(number: int, tmp_path: object) -> None:
        assert number % 2, tmp_path

    @rows(("number", "name"), [(1, "one"), (2, "two")], ids=["first", "second"])
    async def odd_in_time(number: int, name: str) -> None:
        assert number % 2, await asyncio.sleep(0, name)

    assert [*signature(odd).parameters] == ["tmp_path"]
    with pytest.raises(ExceptionGroup, match="1 of 3 rows") as caught:
        odd(tmp_path="")
    assert caught.value.exceptions[0].__notes__ == ["in the row (2,)"]
    with pytest.raises(ExceptionGroup) as caught:
        await cast("Awaitable[None]", odd_in_time())
    assert caught.value.exceptions[0].__notes__ == ["in the row 'second'"]
