"""Work on long texts leaves the event loop free."""

import threading
from types import SimpleNamespace

import pytest

from council.offload import AT_ONCE, in_turn, offload


async def test_short_texts_are_worked_on_at_once() -> None:
    """A thread would cost more than it saves."""
    assert await offload(AT_ONCE, threading.get_ident) == threading.get_ident()


async def test_long_texts_are_worked_on_in_a_thread() -> None:
    """With the same result."""
    assert await offload(AT_ONCE + 1, threading.get_ident) != threading.get_ident()
    assert await offload(AT_ONCE + 1, str.upper, "long") == "LONG"


async def test_what_comes_after_an_answer_rests_as_long_as_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two pieces the loop has the interpreter for itself, whoever asks for them."""
    rests: list[float] = []
    times = iter((10.0, 10.0, 13.0, 14.0, 16.0, 17.0))  # before, at its beginning, at its end; twice
    clock = SimpleNamespace(monotonic=lambda: next(times), sleep=rests.append)
    monkeypatch.setattr("council.offload.time", clock)
    monkeypatch.setattr("council.offload._PACED._rested", 0.0)
    first, second = await in_turn(threading.get_ident), await in_turn(threading.get_ident)
    assert first == second != threading.get_ident()
    assert rests == [0.0, 2.0]
