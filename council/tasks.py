"""Calls that end with a cause, tasks that belong together, and long texts read beside the loop."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, TypeVarTuple, cast

from council.errors import Cause, CouncilError, Failure, ModelError

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

AT_ONCE = 2_400
"""Characters whose slowest reader, that of critique points, takes the loop for two milliseconds."""

# More threads wouldn't finish sooner: they share one interpreter with the loop, which would have
# to wait for its turn.
_READER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reader")
_PACED = ThreadPoolExecutor(max_workers=1, thread_name_prefix="paced")
_LAST = {"took": 0.0, "ended": 0.0}


class Cancellation:
    """Guards calls: once cancelled, it ends those in flight and starts no others.

    The first cause counts. A cancellation made `within` others is cancelled with any of them.
    """

    def __init__(self, *within: "Cancellation") -> None:
        self.cause: Cause | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._linked: list[Callable[[Cause], None]] = []
        self._timers: list[asyncio.TimerHandle] = []
        for each in within:
            each.link(self.cancel)

    def link(self, cancel: Callable[[Cause], None]) -> None:
        """Pass this cancellation's cause on to `cancel`, at once if there already is one."""
        self._linked.append(cancel)
        if self.cause is not None:
            cancel(self.cause)

    def expire(self, cause: Cause, after: float) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(after, self.cancel, cause))

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def cancel(self, cause: Cause) -> None:
        """End every guarded call at once."""
        if self.cause is not None:
            return
        self.cause = cause
        for call in self._calls:
            call.cancel()
        for cancel in self._linked:
            cancel(cause)

    async def guard(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call and return its result.

        Raises `ModelError` with the cancellation's cause if that ended the call. A call that returned
        before it could be ended keeps its result.
        """
        if self.cause is not None:
            call.close()
            raise ModelError(Failure(cause=self.cause, attempts=0))
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        try:
            await asyncio.wait({task})
        finally:
            self._calls.discard(task)
            if not task.done():  # we are being cancelled ourselves: cancel the call, too
                task.cancel()
                await asyncio.wait({task})
                if not task.cancelled():
                    task.exception()  # read it, or asyncio logs it as never retrieved
        if task.cancelled() and self.cause is not None:
            raise ModelError(Failure(cause=self.cause))
        return task.result()


class Stop:
    """The Stop button: one press ends the members' calls, a second one the chairman's too."""

    def __init__(self) -> None:
        self.everything = Cancellation()
        self.members = Cancellation(self.everything)

    @property
    def pressed(self) -> bool:
        return self.members.cause == "stopped"

    def press(self) -> None:
        """End the members' calls; if they are ended already, everything."""
        if self.members.cause is None:
            self.members.cancel("stopped")
        else:
            self.everything.cancel("stopped")


async def first_of(*works: Callable[[], Awaitable[T]]) -> T:
    """Return what the first of several works returns, and cancel the others. Raises what it raises."""
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def beside(*works: Coroutine[object, object, object]) -> AsyncGenerator[None]:
    """Do what has no end of its own while entered; it has ended when this is left."""
    tasks = {asyncio.create_task(work) for work in works}
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class TaskGroup(asyncio.TaskGroup):
    """An `asyncio.TaskGroup` that raises a task's `CouncilError` itself, not within an `ExceptionGroup`.

    A waiting task can then write `except CouncilError` as if there were no group. If anything unexpected
    was raised as well, the group's error is raised as it is. A task that handles either
    is cancelled at the next wait if it was cancelled meanwhile, as Python does itself since 3.13.
    """

    _cancelled_before = 0

    async def __aenter__(self) -> Self:
        self._cancelled_before = _running().cancelling()
        return await super().__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        had_cancelled = self._has_cancelled
        try:
            await super().__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            if sys.version_info < (3, 13):
                self._cancel_again(had_cancelled)
            typed = [each for each in _leaves(group) if isinstance(each, CouncilError)]
            if len(typed) < len([*_leaves(group)]):
                raise
            raise typed[0] from group

    @property
    def _has_cancelled(self) -> bool:
        return self._parent_cancel_requested  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - asyncio's own

    def _cancel_again(self, had_cancelled: bool) -> None:
        """Cancel the waiting task again: the group's error has hidden its cancellation."""
        waiting = _running()
        if self._has_cancelled and not had_cancelled:  # by the group itself, while it waited
            waiting.uncancel()
        if waiting.cancelling() > self._cancelled_before:
            waiting.uncancel()
            waiting.cancel()


def _running() -> asyncio.Task[object]:
    return cast("asyncio.Task[object]", asyncio.current_task())


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)  # pyright: ignore[reportUnknownArgumentType] - its type is lost in the check
        else:
            yield each


async def offload_slowly(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Do work on a whole run's texts that comes after its answer, such as a transcript, when it is due.

    It is done in one thread, which rests after each piece for as long as that computed. Without the
    rests, a hundred answers that come together would make each other late by seconds: a thread that
    computes holds up the loop whenever that has waited for anything.
    """

    def after_rest() -> T:
        rested = time.perf_counter() - _LAST["ended"]
        time.sleep(max(0.0, _LAST["took"] - max(0.0, rested)))
        began = time.thread_time()
        try:
            return work(*arguments)
        finally:
            _LAST.update(took=time.thread_time() - began, ended=time.perf_counter())

    return await asyncio.get_running_loop().run_in_executor(_PACED, after_rest)


async def offload(characters: int, work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Do some work on texts of this many characters: directly, or in a thread if they are long."""
    if characters <= AT_ONCE:
        return work(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_READER, partial(work, *arguments))
