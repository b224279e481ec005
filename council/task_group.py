"""Tasks that belong together, whose typed errors stay what they are."""

import asyncio
from collections.abc import Iterator
from types import TracebackType

from council.errors import CouncilError


class TaskGroup(asyncio.TaskGroup):
    """An `asyncio.TaskGroup` that raises a task's `CouncilError` itself, not within an `ExceptionGroup`.

    Whoever waits for the group can then write `except CouncilError` as if there were no group. If
    anything unexpected was raised as well, the group's error is raised as it is.
    """

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for every task."""
        try:
            await super().__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            typed = [each for each in _leaves(group) if isinstance(each, CouncilError)]
            if len(typed) < len([*_leaves(group)]):
                raise
            raise typed[0] from group


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)  # pyright: ignore[reportUnknownArgumentType] - its type is lost in the check
        else:
            yield each
