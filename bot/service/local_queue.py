"""The queue of a process that has its runs to itself; `shared_queue` is that of several processes."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import structlog

from bot.errors import Refusal
from bot.service.admission.limits import Limits, channel_of, user_of
from bot.service.admission.queue import Queue, Ticket
from bot.service.run_tasks import HandOver, RunCounts, RunTasks, VenueOf
from bot.view.wording import commands
from council.cancel import Stop
from council.document.conversation import Source
from council.errors import ModelError
from storage.errors import StorageError
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from storage.processes.coordination import Bounds

log = structlog.get_logger()

LOOK_SECONDS = 0.05
"""Between two looks whether runs that were ended are over."""


class LocalQueue:
    """The queue of a process that has its runs to itself."""

    bounds: Bounds | None = None
    hand_over: HandOver | None = None
    is_shared = False

    def __init__(self, limits: Limits, journal: Journal) -> None:
        self.limits = limits
        self._journal = journal
        self._queue = Queue(limits)

    @asynccontextmanager
    async def turn(self, run: RunRow, stop: Stop, moved: Callable[[int], None]) -> AsyncGenerator[None]:
        """Wait for a run's turn and hold it."""
        ticket = Ticket(channel_of(run.origin), user_of(run.origin), run.conversation_id)
        async with AsyncExitStack() as stack:
            turn = stack.enter_async_context(self._queue.turn(ticket, moved))
            with suppress(ModelError):  # stopped while it waited: it ends without a turn
                await stop.members.guard(turn)
            yield

    async def retry(self, tasks: RunTasks, run: RunRow, venue_of: VenueOf, by: Source) -> str:
        """Repeat a run without an answer on its card; return what happens. Raises `Refusal`."""
        if run.id in tasks:  # reopened now, it would be overwritten by its ending
            raise Refusal(commands.IN_PROGRESS)
        venue = venue_of(run)
        if venue is None:
            raise Refusal(commands.ANSWERED)
        await tasks.reopen(run, venue, by)
        return commands.RESUMING

    async def stop(self, tasks: RunTasks, run_id: str) -> str:
        """End a run's members' calls or, at a second press, its chairman's; return what happens."""
        stop = tasks.stops.get(run_id)
        if stop is None:
            raise Refusal(commands.OVER)
        again = stop.pressed
        stop.press()
        try:
            await self._journal.press_stop(run_id)
        except StorageError:  # it is stopped in any case; only a restart now would forget it
            log.exception("stop_not_recorded", run=run_id)
        return commands.ENDING if again else commands.STOPPING

    async def end(self, tasks: RunTasks, run_ids: Sequence[str], within: float) -> None:
        """End these runs, and wait until they are over or so many seconds are."""
        for run_id in run_ids:
            if stop := tasks.stops.get(run_id):
                stop.everything.cancel("stopped")
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while any(run_id in tasks for run_id in run_ids):  # noqa: ASYNC110 - it is soon over
                    await asyncio.sleep(LOOK_SECONDS)

    async def is_first(self, click: str) -> bool:
        """Return that no other process has seen a click."""
        del click
        return True

    def counts(self, tasks: RunTasks) -> RunCounts:
        """Count this process's runs."""
        return RunCounts(self._queue.running, self._queue.waiting, tasks.undelivered_count)

    def close(self) -> None:
        """Do nothing: whoever waits here is interrupted with the process."""
