"""Keeps at what `storage.work` lists: one loop for each kind, and each platform.

What is listed is on record before, so a process that dies leaves it to the next start. Of processes that
share it, one at a time does it, key beside key, each one in order; on a platform one request at a time
and after everything that waits to be shown.
"""

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import structlog

from bot.errors import Revoked, Unreachable, VenueError
from council.task_group import TaskGroup, first_of
from storage.database import Statement
from storage.errors import StorageError
from storage.processes.locks import Locks
from storage.work import Do, Kind, Left, Refused, Work, WorkList

log = structlog.get_logger()

FIRST_WAIT, LONGEST_WAIT = 60.0, 15 * 60.0
"""Until what couldn't be done is tried again, in seconds; it doubles up to the second."""
LOOK_SECONDS = 30.0
"""Between two looks at what another process has listed."""
TICK_SECONDS = 0.1

Retract = Callable[[Work], Awaitable[None]]
"""Deletes a message; returns once it isn't there any more. Raises `VenueError`."""


def wait_after(attempts: int) -> float:
    """Return how many seconds to wait after so many attempts in vain, the first one aside."""
    return min(FIRST_WAIT * 2**attempts, LONGEST_WAIT)


class WorkLoop:
    """Does what is listed of every kind that is open; `locks` let one process do it."""

    def __init__(self, work: WorkList, locks: Locks | None = None) -> None:
        self._work = work
        self._locks = locks
        self._wakes: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def retract(self, platform: str, retract: Retract) -> None:
        """Delete messages on a platform this way, those first that an earlier process has left."""

        async def do(one: Work) -> Sequence[Statement]:
            try:
                await retract(one)
            except (Unreachable, Revoked):
                raise
            except VenueError as error:
                raise Refused(str(error)) from error
            return ()

        self.open("retract", do, platform)

    def open(self, kind: Kind, do: Do, platform: str = "") -> None:
        """Do what is listed of a kind this way."""
        self._wakes[platform or kind] = asyncio.Event()
        self._tasks[platform or kind] = asyncio.create_task(self._hold(kind, do, platform))

    async def close(self, name: str) -> None:
        """Do nothing more of a kind, or on a platform; the next start does."""
        self._wakes.pop(name, None)
        if task := self._tasks.pop(name, None):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def settled(self, platform: str, forgetting: str, seconds: float) -> Left:
        """Begin with what was just listed; return what is left of it, at the latest after some time."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while True:
            if wake := self._wakes.get(platform):
                wake.set()
            left = await self._work.left(forgetting)
            if not left.waiting or clock() >= until:
                return left
            await asyncio.sleep(TICK_SECONDS)

    async def _hold(self, kind: Kind, do: Do, platform: str) -> None:
        while True:
            try:
                if self._locks is None:
                    await self._keep_looking(kind, do, platform)
                else:
                    async with self._locks.acquire(f"{kind}-{platform}", wait=math.inf):
                        # Without its database, another process may soon do it, and this one must not.
                        looking = partial(self._keep_looking, kind, do, platform)
                        await first_of(self._locks.until_unsure, looking)
            except (OSError, StorageError):  # whatever is listed stays listed
                log.exception("work_interrupted", connection=platform or kind)
            await asyncio.sleep(FIRST_WAIT)

    async def _keep_looking(self, kind: Kind, do: Do, platform: str) -> None:
        """Go through every key with work that is due, several side by side."""
        under_way: dict[str, asyncio.Task[None]] = {}
        await self._work.again(kind, platform)
        async with TaskGroup() as group:
            while True:
                for key in await self._work.keys(kind, platform):
                    if key not in under_way or under_way[key].done():
                        under_way[key] = group.create_task(self._keep_at(kind, do, platform, key))
                if wake := self._wakes.get(platform or kind):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_SECONDS):
                            await wake.wait()
                    wake.clear()

    async def _keep_at(self, kind: Kind, do: Do, platform: str, key: str) -> None:
        for attempts in itertools.count():
            try:
                await self._work.carry_out(kind, do, key, platform)
            except (Unreachable, Revoked, StorageError) as error:
                wait = wait_after(attempts)
                log.warning("work_stalled", connection=platform or kind, reason=error, again_in=wait)
                await asyncio.sleep(wait)
            else:
                return
