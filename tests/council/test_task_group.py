"""Task groups: a typed error leaves them as it is."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial

import pytest

from council.errors import CouncilError, Failure, NoAnswers
from council.task_group import TaskGroup, first_of

REFUSED = NoAnswers({"a": Failure(cause="key")})


async def fail(error: Exception) -> None:
    """Fail, after another task had its turn."""
    await asyncio.sleep(0)
    raise error


async def together(*work: Coroutine[object, object, object]) -> None:
    """Run these at once, and await the first of them inside the group."""
    async with TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        await tasks[0]


async def test_a_typed_error_of_a_task_is_raised_itself() -> None:
    """`except CouncilError` catches it; the other tasks are cancelled."""
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


@pytest.mark.parametrize("depth", [0, 1, 2])
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


async def test_an_unexpected_error_is_not_hidden_by_a_typed_one() -> None:
    """The log shows everything that happened."""
    with pytest.raises(ExceptionGroup) as caught:
        await together(fail(REFUSED), fail(ValueError("a bug")))
    assert REFUSED in caught.value.exceptions


async def test_without_an_error_nothing_is_raised() -> None:
    """The results are returned."""
    async with TaskGroup() as group:
        task = group.create_task(asyncio.sleep(0, "done"))
    assert task.result() == "done"


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
