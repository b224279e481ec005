"""Keeps at what `storage.work` lists: one loop for each kind, and each platform.

What is listed is on record before, so a process that dies leaves it to the next start. Of processes that
share it, one at a time does it, key beside key, each one in order; on a platform one request at a time
and after everything that waits to be shown.
"""

import asyncio
import itertools
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import structlog

from bot.errors import Revoked, Unreachable, VenueError
from council.tasks import TaskGroup, first_of
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


def retracting(retract: Retract) -> Do:
    """Return what deletes messages this way."""

    async def do(one: Work) -> Sequence[Statement]:
        try:
            await retract(one)
        except (Unreachable, Revoked):
            raise
        except VenueError as error:
            raise Refused(str(error)) from error
        return ()

    return do


class WorkLoop:
    """Does what is listed, everywhere that is open; `locks` let one process do it."""

    def __init__(
        self,
        work: WorkList,
        locks: Locks | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._work = work
        self._locks = locks
        self.sleep = sleep
        self._wakes: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._tasks: defaultdict[str, list[asyncio.Task[None]]] = defaultdict(list)

    def open(self, does: Mapping[Kind, Do], platform: str = "") -> None:
        """Do what is listed of these kinds, first what an earlier process has left."""
        self._tasks[platform].append(asyncio.create_task(self._hold(does, platform)))

    async def close(self, platform: str = "") -> None:
        """Do nothing more on a platform; the next start does."""
        tasks = self._tasks.pop(platform, [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def settled(self, platform: str, forgetting: str, seconds: float) -> Left:
        """Begin with what was just listed; return what is left of it, at the latest after some time."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while True:
            self._wakes[platform].set()
            left = await self._work.left(forgetting)
            if not left.waiting or clock() >= until:
                return left
            await asyncio.sleep(TICK_SECONDS)

    async def _hold(self, does: Mapping[Kind, Do], platform: str) -> None:
        name = f"{next(iter(does))}-{platform}"
        while True:
            try:
                if self._locks is None:
                    await self._keep_looking(does, platform)
                else:
                    async with self._locks.acquire(name, wait=math.inf):
                        # Without its database, another process may soon do it, and this one must not.
                        looking = partial(self._keep_looking, does, platform)
                        await first_of(self._locks.until_unsure, looking)
            except (OSError, StorageError):  # whatever is listed stays listed
                log.exception("work_interrupted", connection=name)
            await asyncio.sleep(FIRST_WAIT)

    async def _keep_looking(self, does: Mapping[Kind, Do], platform: str) -> None:
        """Go through every key with work that is due, several side by side."""
        under_way: dict[tuple[Kind, str], asyncio.Task[None]] = {}
        wake = self._wakes[platform]
        await self._work.again(platform)
        async with TaskGroup() as group:
            while True:
                under_way = {one: task for one, task in under_way.items() if not task.done()}
                for kind, key in await self._work.keys(*does, platform=platform):
                    if (kind, key) not in under_way:
                        keeping = self._keep_at(kind, does[kind], platform, key)
                        under_way[kind, key] = group.create_task(keeping)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await wake.wait()
                wake.clear()

    async def _keep_at(self, kind: Kind, do: Do, platform: str, key: str) -> None:
        for attempts in itertools.count():
            try:
                await self._work.carry_out(kind, do, key, platform)
            except (Unreachable, Revoked, StorageError) as error:
                wait = min(FIRST_WAIT * 2**attempts, LONGEST_WAIT)
                log.warning("work_stalled", connection=platform or kind, reason=error, again_in=wait)
                await self.sleep(wait)
            else:
                return
