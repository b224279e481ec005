"""Where programs' runs wait: behind their own process's, and behind those of others with the same data.

`council run` and several `council mcp` may work from one folder or database. People go first: a
program's run begins once the channel's runs, whoever carries them out, leave it a place.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import structlog
from typing_extensions import override

from bot.errors import OverLimit
from bot.service.admission.limits import Limits
from bot.service.local_queue import LocalQueue
from bot.view.wording import commands
from council.cancel import Stop
from council.document.conversation import Source, timestamp
from storage.errors import StorageError
from storage.journal.journal import Journal
from storage.journal.rows import OpenRun, RunRow

log = structlog.get_logger()

STALE = timedelta(minutes=15)
"""A run that was accepted longer ago holds nobody up: its process may have died."""
LOOK_SECONDS = 1.0


class ProgramQueue(LocalQueue):
    """The queue of a process that serves programs; others may have runs of the same channels."""

    def __init__(
        self,
        limits: Limits,
        journal: Journal,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        super().__init__(limits, journal)
        self._runs = journal
        self._now = now
        self._sleep = sleep
        self._begun: set[str] = set()

    @override
    @asynccontextmanager
    async def turn(self, run: RunRow, stop: Stop, moved: Callable[[int], None]) -> AsyncGenerator[None]:
        async with super().turn(run, stop, moved):
            while stop.members.cause is None and not await self._has_place(run):
                await self._sleep(LOOK_SECONDS)
            self._begun.add(run.id)
            try:
                yield
            finally:
                self._begun.discard(run.id)

    async def check(self, here: Source) -> None:
        """Raise `OverLimit` if too many questions of a program or in its channel aren't answered yet."""
        found = await self._open(here)
        limits = self.limits
        if _of(found, here.program) >= limits.waiting_per_user + limits.runs_per_user:
            raise OverLimit(commands.too_many_of_person(limits.waiting_per_user))
        if sum(run.is_here for run in found) >= limits.waiting_per_channel + limits.runs_per_channel:
            raise OverLimit(commands.too_many_of_channel(limits.waiting_per_channel))

    async def _has_place(self, run: RunRow) -> bool:
        try:
            found = await self._open(run.origin)
        except StorageError as error:  # the run finds out by itself
            log.warning("runs_not_counted", run=run.id, reason=error)
            return True
        begun = [
            each for each in found if each.id != run.id and (each.has_begun or each.id in self._begun)
        ]
        return (
            sum(each.is_here for each in begun) < self.limits.runs_per_channel
            and _of(begun, run.origin.program) < self.limits.runs_per_user
        )

    async def _open(self, here: Source) -> list[OpenRun]:
        return await self._runs.open_runs(here, timestamp(self._now() - STALE))


def _of(runs: list[OpenRun], program: str | None) -> int:
    return sum(run.program == program for run in runs)
