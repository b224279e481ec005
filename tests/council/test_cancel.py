"""A cancellation ends calls with a cause, and keeps replies that came in time."""

import asyncio

import pytest

from council.cancel import Cancellation, Stop
from council.errors import ModelError


async def forever() -> str:
    """Never return."""
    await asyncio.Event().wait()
    return "late"


async def at_once() -> str:
    """Return at once."""
    return "here"


async def test_a_call_that_returns_keeps_its_result() -> None:
    """Nothing else happens."""
    assert await Cancellation().guard(at_once()) == "here"


async def test_a_call_in_flight_is_ended_with_the_cause() -> None:
    """As a failure of one attempt."""
    cancellation = Cancellation()
    call = asyncio.create_task(cancellation.guard(forever()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cancellation.cancel("straggler")
    with pytest.raises(ModelError) as caught:
        await call
    assert caught.value.failure.cause == "straggler"
    assert caught.value.failure.attempts == 1


async def test_no_call_starts_after_the_cancellation() -> None:
    """It wasn't attempted at all."""
    cancellation = Cancellation()
    cancellation.cancel("stopped")
    with pytest.raises(ModelError) as caught:
        await cancellation.guard(at_once())
    assert caught.value.failure.attempts == 0


async def test_the_first_cause_stays() -> None:
    """Whatever comes after it."""
    cancellation = Cancellation()
    cancellation.cancel("stopped")
    cancellation.cancel("straggler")
    assert cancellation.cause == "stopped"


async def test_cancelling_an_outer_scope_cancels_the_inner_one() -> None:
    """Even one that is created afterwards; never the other way round."""
    outer = Cancellation()
    before = Cancellation(outer)
    before_alone = Cancellation(outer)
    before_alone.cancel("stage_deadline")
    assert outer.cause is None
    outer.cancel("stopped")
    assert (before.cause, Cancellation(outer).cause) == ("stopped", "stopped")
    assert before_alone.cause == "stage_deadline"


async def test_a_closed_scope_has_no_timers() -> None:
    """A stage that is over can't run out of time."""
    cancellation = Cancellation()
    cancellation.expire("stage_deadline", after=0.001)
    cancellation.close()
    await asyncio.sleep(0.003)
    assert cancellation.cause is None


async def test_cancelling_the_waiter_cancels_the_call() -> None:
    """Nothing is left running."""
    ended = asyncio.Event()

    async def call() -> None:
        try:
            await forever()
        finally:
            ended.set()

    guarded = asyncio.create_task(Cancellation().guard(call()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    guarded.cancel()
    with pytest.raises(asyncio.CancelledError):
        await guarded
    assert ended.is_set()


async def test_a_second_press_ends_everything() -> None:
    """The first one ends only the members' calls."""
    stop = Stop()
    stop.press()
    assert stop.pressed
    assert stop.everything.cause is None
    stop.press()
    assert stop.everything.cause == "stopped"
