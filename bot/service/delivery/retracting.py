"""Deletes the bot's own messages about what was forgotten: listed by `storage.journal.retractions`.

What is to be deleted is on record before, so a process that dies leaves it to the next start. Each
forgetting is gone through in order, one request at a time and after everything that waits to be shown;
what the platform refuses is tried again every hour, and once refused after seven days named in the log.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from bot.errors import Revoked, Unreachable, VenueError
from council.document.conversation import timestamp
from council.task_group import TaskGroup, first_of
from storage.errors import StorageError
from storage.journal.retractions import Retraction, Retractions, Unretracted
from storage.processes.locks import Locks

log = structlog.get_logger()

AGAIN_SECONDS = 3600.0
"""Until what was refused is tried again."""
STALLED_SECONDS = 60.0
"""Until a platform that can't be reached is asked again; its outbox has tried for long by then."""
LOOK_SECONDS = 30.0
"""Between two looks at what another process has listed."""
TICK_SECONDS = 0.1
DAYS = 7
"""After how long a message that can't be deleted is tried for the last time."""
MOST_REFUSED = 3
"""After how many refusals in a row the rest of a channel is left for an hour."""

NAMED = 20
"""How many messages a line of the log names."""

Retract = Callable[[Retraction], Awaitable[None]]
"""Deletes a message; returns once it isn't there any more. Raises `VenueError`."""


class Retracting:
    """Deletes what is listed, on every platform that is open; `locks` let one process do it."""

    def __init__(
        self,
        retractions: Retractions,
        locks: Locks | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._retractions = retractions
        self._locks = locks
        self._now = now
        self._clock = clock
        self._sleep = sleep
        self._wakes: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def open(self, platform: str, retract: Retract) -> None:
        """Delete messages on a platform this way, those first that an earlier process has left."""
        self._wakes[platform] = asyncio.Event()
        self._tasks[platform] = asyncio.create_task(self._work(platform, retract))

    async def close(self, platform: str) -> None:
        """Delete nothing more there; the next start does."""
        self._wakes.pop(platform, None)
        if task := self._tasks.pop(platform, None):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def settled(self, platform: str, forgetting: str, seconds: float) -> Unretracted:
        """Begin with what was just listed; return what is left of it, at the latest after some time."""
        until = self._clock() + seconds
        while True:
            if wake := self._wakes.get(platform):
                wake.set()
            left = await self._retractions.left(forgetting)
            if not left.waiting or self._clock() >= until:
                return left
            await self._sleep(TICK_SECONDS)

    async def _work(self, platform: str, retract: Retract) -> None:
        while True:
            try:
                if self._locks is None:
                    await self._keep_looking(platform, retract)
                else:
                    name = f"retracting-{platform}"
                    async with self._locks.acquire(name, wait=math.inf):
                        # Without its database, another process may soon do it, and this one must not.
                        looking = partial(self._keep_looking, platform, retract)
                        await first_of(self._locks.until_unsure, looking)
            except (OSError, StorageError):  # whatever is listed stays listed
                log.exception("retracting_interrupted", connection=platform)
            await self._sleep(STALLED_SECONDS)

    async def _keep_looking(self, platform: str, retract: Retract) -> None:
        """Go through every forgetting with messages left, several side by side."""
        tried = -math.inf
        under_way: dict[str, asyncio.Task[None]] = {}
        async with TaskGroup() as group:
            while True:
                if again := self._clock() - tried >= AGAIN_SECONDS:
                    tried = self._clock()
                for forgetting in await self._retractions.due(platform, again=again):
                    if forgetting not in under_way or under_way[forgetting].done():
                        work = self._go_through(platform, forgetting, retract, again=again)
                        under_way[forgetting] = group.create_task(work)
                await self._woken(platform)

    async def _woken(self, platform: str) -> None:
        wake = self._wakes.get(platform)
        if wake is None:
            return
        waiting = asyncio.create_task(wake.wait())
        looking = asyncio.ensure_future(self._sleep(LOOK_SECONDS))
        try:
            await asyncio.wait({waiting, looking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (waiting, looking):
                one.cancel()
        wake.clear()

    async def _go_through(
        self, platform: str, forgetting: str, retract: Retract, *, again: bool
    ) -> None:
        after, refused, closed = 0, Counter[str](), set[str]()
        before = timestamp(self._now() - timedelta(days=DAYS))
        while batch := await self._retractions.batch(platform, forgetting, after, again=again):
            given_up: dict[str, list[Retraction]] = {}
            for one in batch:
                is_old = one.since < before
                if one.channel in closed and not is_old:
                    after = one.number
                    continue
                try:
                    await retract(one)
                except (Unreachable, Revoked) as error:
                    log.warning("retracting_stalled", connection=platform, reason=error)
                    await self._sleep(STALLED_SECONDS)
                    break  # from this one on
                except VenueError as error:
                    if is_old:  # it has been tried, even if no process ran for those days
                        given_up.setdefault(one.channel, []).append(one)
                    else:
                        refused[one.channel] += 1
                        await self._retractions.refuse(one, str(error))
                        if refused[one.channel] >= MOST_REFUSED:
                            closed.add(one.channel)
                            await self._retractions.refuse_channel(forgetting, one, str(error))
                else:
                    refused.pop(one.channel, None)
                    await self._retractions.done(one)
                after = one.number
            await self._give_up(given_up)

    async def _give_up(self, refused: Mapping[str, Sequence[Retraction]]) -> None:
        """Name in the log what couldn't be deleted for days, by channel, and take it off the list."""
        for channel, ones in refused.items():
            for first in range(0, len(ones), NAMED):
                named = [one.message for one in ones[first : first + NAMED]]
                log.warning("messages_not_deleted", channel=channel, messages=named)
            await self._retractions.done(*ones)
