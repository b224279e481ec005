"""Where runs wait for their turn, and what is asked of those that wait or have it.

`LocalQueue` is that of a process which has its runs to itself, `shared_queue.SharedQueue` the one that
processes on one database share.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from bot.errors import Refusal
from bot.service.admission.limits import Limits, channel_of, user_of
from bot.service.admission.queue import Queue, Ticket
from bot.service.delivery.venue import Venue
from bot.service.resuming import Resuming, Stops, VenueOf
from bot.service.showing import Showing
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


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs have their turn, wait for it, or have an asker who couldn't be told yet."""

    running: int
    queued: int
    undelivered: int


class Tasks(Protocol):
    """What carries out runs in this process: `bot.service.run_tasks.RunTasks`."""

    showing: Showing
    stops: Stops
    resuming: Resuming

    def __contains__(self, run_id: str) -> bool:
        """Return whether a run is being carried out or shown here."""
        ...

    def leave(self, run: RunRow) -> None:
        """Show a run no more: somebody else does."""
        ...

    async def reopen(self, run: RunRow, venue: Venue, payer: Source) -> None:
        """Reopen a run without an answer and carry it out. Raises `Refusal`."""
        ...


HandOver = Callable[[Tasks, RunRow, Venue], Coroutine[Any, Any, None]]
"""Posts a new run's card, and has the run carried out."""


class RunQueue(Protocol):
    """Runs in the order in which they have their turn; `limits` are this process's.

    `is_shared` says that other processes may have a run. `bounds` are checked where runs are recorded,
    where processes share the queue.
    """

    limits: Limits
    is_shared: bool

    @property
    def bounds(self) -> Bounds | None:
        """How many questions may wait."""
        ...

    @property
    def hand_over(self) -> HandOver | None:
        """What has a new run carried out, where that may be another process."""
        ...

    def turn(
        self, run: RunRow, stop: Stop, moved: Callable[[int], None]
    ) -> AbstractAsyncContextManager[None]:
        """Wait for a run's turn and hold it; `moved` hears its position, 1 being next.

        One that is stopped while it waits ends without a turn.
        """
        ...

    async def retry(self, tasks: Tasks, run: RunRow, venue_of: VenueOf, by: Source) -> str:
        """Repeat a run without an answer on its card; return what happens. Raises `Refusal`."""
        ...

    async def stop(self, tasks: Tasks, run_id: str) -> str:
        """End a run's members' calls or, at a second press, its chairman's; return what happens.

        Raises `Refusal`.
        """
        ...

    async def end(self, tasks: Tasks, run_ids: Sequence[str], within: float) -> None:
        """End these runs, and wait until they are over or so many seconds are."""
        ...

    async def is_first(self, click: str) -> bool:
        """Return whether no process has seen a click before; a platform may deliver it to several."""
        ...

    def counts(self, tasks: Tasks) -> RunCounts:
        """Count this process's runs."""
        ...

    def close(self) -> None:
        """Show nobody's place any more."""
        ...


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

    async def retry(self, tasks: Tasks, run: RunRow, venue_of: VenueOf, by: Source) -> str:
        """Repeat a run without an answer on its card; return what happens. Raises `Refusal`."""
        if run.id in tasks:  # reopened now, it would be overwritten by its ending
            raise Refusal(commands.IN_PROGRESS)
        venue = venue_of(run)
        if venue is None:
            raise Refusal(commands.ANSWERED)
        await tasks.reopen(run, venue, by)
        return commands.RESUMING

    async def stop(self, tasks: Tasks, run_id: str) -> str:
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

    async def end(self, tasks: Tasks, run_ids: Sequence[str], within: float) -> None:
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

    def counts(self, tasks: Tasks) -> RunCounts:
        """Count this process's runs."""
        return RunCounts(self._queue.running, self._queue.waiting, tasks.resuming.undelivered_count)

    def close(self) -> None:
        """Do nothing: whoever waits here is interrupted with the process."""
