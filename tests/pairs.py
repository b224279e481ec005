"""Values to parametrize a test with, of which some are for `make soak` alone; and rows of one quick test."""

import tomllib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from inspect import isawaitable, iscoroutinefunction, signature
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., Awaitable[None] | None]


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


def data(file: str, name: str) -> list[Any]:
    """Return the rows of this name in the TOML file beside a test's; what belongs to one row is a list."""
    return tomllib.loads(Path(file).with_suffix(".toml").read_text("utf-8"))[name]


def _name(value: object) -> str:
    return str(value)[:40].splitlines()[0]


def rows(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Iterable[Any] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Play a quick test with each row, as `parametrize` does, but as one item, which says of each row that fails what it is.

    An item takes each of the four processes some milliseconds, however quick it is.
    """
    keys = [each.strip() for each in names.split(",")] if isinstance(names, str) else [*names]
    found = [(row,) if len(keys) == 1 else tuple(row) for row in values]
    said = [*(map(ids, *zip(*found, strict=True)) if callable(ids) else ids or found)]

    def decorate(test: Test) -> Test:
        async def play(own: Sequence[Any], given: Mapping[str, Any]) -> None:
            faults: list[Exception] = []
            for row, name in zip(found, said, strict=True):
                try:
                    ended = test(*own, **given, **dict(zip(keys, row, strict=True)))
                    if isawaitable(ended):
                        await ended
                except Exception as error:  # noqa: BLE001 - whatever is wrong with a row is told of it
                    error.add_note(f"in the row {name!r}"[:1000])
                    faults.append(error)
            if faults:
                raise ExceptionGroup(f"{len(faults)} of {len(found)} rows", faults)

        async def waiting(*own: Any, **given: Any) -> None:
            await play(own, given)

        def quick(*own: Any, **given: Any) -> None:
            with suppress(StopIteration):
                play(own, given).send(None)

        played = waiting if iscoroutinefunction(test) else quick
        kept = [each for each in signature(test).parameters.values() if each.name not in keys]
        played.__name__, played.__doc__, played.__module__ = test.__name__, test.__doc__, test.__module__
        played.__qualname__ = test.__qualname__
        played.__signature__ = signature(test).replace(parameters=kept)
        return played

    return decorate
