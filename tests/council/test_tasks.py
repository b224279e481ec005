"""Calls end with a cause, a typed error leaves a group as it is, and long texts leave the loop free."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest

from council.errors import CouncilError, Failure, ModelError, NoAnswers
from council.tasks import AT_ONCE, Cancellation, TaskGroup, first_of, offload, offload_slowly
from tests.pairs import rows

REFUSED = NoAnswers({"a": Failure(cause="key")})


async def forever() -> str:
    await asyncio.Event().wait()
    return "late"


async def at_once() -> str:
    """Return at once."""
    return "here"


async def test_a_call_is_ended_with_the_cause_and_none_starts_afterwards() -> None:
    """As a failure of one attempt, or of none."""
    cancellation = Cancellation()
    call = asyncio.create_task(cancellation.guard(forever()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cancellation.cancel("straggler")
    with pytest.raises(ModelError) as caught:
        await call
    assert caught.value.failure.cause == "straggler"
    assert caught.value.failure.attempts == 1
    cancellation = Cancellation()
    cancellation.cancel("stopped")
    with pytest.raises(ModelError) as caught:
        await cancellation.guard(at_once())
    assert caught.value.failure.attempts == 0
    closed = Cancellation()
    closed.expire("stage_deadline", after=0.001)
    closed.close()
    await asyncio.sleep(0.003)
    assert closed.cause is None  # a stage that is over can't run out of time


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


async def fail(error: Exception) -> None:
    """Fail, after another task had its turn."""
    await asyncio.sleep(0)
    raise error


async def together(*work: Coroutine[object, object, object]) -> None:
    """Run these at once, and await the first of them inside the group."""
    async with TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        await tasks[0]


async def test_a_typed_error_of_a_task_is_raised_itself_but_hides_no_other() -> None:
    """`except CouncilError` catches it, and the other tasks are cancelled; the log shows everything that happened."""
    over = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    with pytest.raises(CouncilError) as caught:
        await together(wait(), fail(REFUSED))
    assert caught.value is REFUSED
    assert over.is_set()
    with pytest.raises(ExceptionGroup) as caught:
        await together(fail(REFUSED), fail(ValueError("a bug")))
    assert REFUSED in caught.value.exceptions


@rows("depth", [0, 1, 2])
async def test_one_of_several_errors_or_one_of_an_inner_group_is_raised_itself(depth: int) -> None:
    """Whoever waits for a failed task raises its error again."""

    async def inner(depth: int) -> None:
        if depth == 0:
            await fail(REFUSED)
        async with asyncio.TaskGroup() as group:
            group.create_task(inner(depth - 1))

    with pytest.raises(NoAnswers) as caught:
        await together(inner(depth), fail(REFUSED))
    assert caught.value is REFUSED


async def cancelled_within(
    block: Callable[[TaskGroup], Awaitable[object]], begun: asyncio.Event
) -> None:
    """Cancel a task in a group's block once it has begun; check that it still hears that in its handler."""
    handled: list[BaseException] = []

    async def work() -> None:
        try:
            async with TaskGroup() as group:
                await block(group)
        except ExceptionGroup as error:
            handled.append(error)
        await asyncio.sleep(60)

    working = asyncio.create_task(work())
    await begun.wait()
    working.cancel()
    done, _ = await asyncio.wait({working}, timeout=5)
    assert done
    assert working.cancelled()
    assert len(handled) == 1


async def test_a_cancellation_is_heard_though_a_task_fails_with_it() -> None:
    """Whoever handles the failure is cancelled at the next wait, and doesn't carry on for ever."""
    begun = asyncio.Event()

    async def fails_at_its_end() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("the session is closed")

    async def block(group: TaskGroup) -> None:
        group.create_task(fails_at_its_end())
        await asyncio.sleep(60)

    await cancelled_within(block, begun)


async def test_a_cancellation_is_heard_while_a_failed_group_still_waits_for_a_task() -> None:
    """What began to end the group was its own error; the cancellation came later."""
    ending = asyncio.Event()

    async def takes_its_time() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ending.set()
            await asyncio.sleep(0.005)

    async def block(group: TaskGroup) -> None:
        group.create_task(takes_its_time())
        await asyncio.sleep(0)
        raise RuntimeError("the card crashed")

    await cancelled_within(block, ending)


async def test_a_group_that_failed_by_itself_cancels_nobody() -> None:
    """Whoever handles the failure carries on."""

    async def work() -> str:
        with suppress(CouncilError):
            await together(fail(REFUSED), asyncio.sleep(60))
        await asyncio.sleep(0.001)
        return "carried on"

    working = asyncio.create_task(work())
    assert await working == "carried on"
    assert working.cancelling() == 0


async def test_the_first_of_several_ends_the_others() -> None:
    """Its result, or its error, is the result; the others have ended by then."""
    ended: list[str] = []

    async def wait(name: str, seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
        finally:
            ended.append(name)
        return name

    async def refuse() -> str:
        raise REFUSED

    assert await first_of(partial(wait, "late", 60), partial(wait, "soon", 0)) == "soon"
    assert sorted(ended) == ["late", "soon"]
    with pytest.raises(CouncilError):
        await first_of(partial(wait, "late", 60), refuse)
    assert ended.count("late") == 2


async def test_short_texts_are_worked_on_at_once_and_long_ones_in_a_thread() -> None:
    """A thread would cost more than it saves; the result is the same."""
    assert await offload(AT_ONCE, threading.get_ident) == threading.get_ident()
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
    monkeypatch.setattr("council.tasks.time", clock)
    monkeypatch.setattr("council.tasks._LAST", {"took": 0.0, "ended": 0.0})
    threads = {await offload_slowly(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    assert rests == [0.0, 2.0, 1.0]
