"""Tasks that belong together: a group whose typed errors stay what they are; the first of several."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar, cast

from council.errors import CouncilError

T = TypeVar("T")


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
