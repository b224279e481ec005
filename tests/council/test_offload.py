"""Work on long texts leaves the event loop free."""

import threading
from types import SimpleNamespace

import pytest

from council.offload import AT_ONCE, offload, offload_slowly


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
    busy = iter((0.0, 3.0, 3.0, 4.0, 4.0, 5.0))  # CPU at the beginning and at the end of each piece
    times = iter((10.0, 13.0, 14.0, 17.0, 2.0, 3.0))  # the last one after the clock was set back
    clock = SimpleNamespace(
        thread_time=lambda: next(busy), perf_counter=lambda: next(times), sleep=rests.append
    )
    monkeypatch.setattr("council.offload.time", clock)
    monkeypatch.setattr("council.offload._LAST", {"took": 0.0, "ended": 0.0})
    threads = {await offload_slowly(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    assert rests == [0.0, 2.0, 1.0]
