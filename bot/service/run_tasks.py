"""The tasks of this process: one for each run that it carries out or shows, and others beside them.

When a run has its turn is the queue's to say: `local_queue` for a process that has its runs to itself,
`shared_queue` for those that share a database.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from bot.errors import Refusal
from bot.service.admission.limits import Durability, Limits
from bot.service.claimed_runs import Claims
from bot.service.delivery.venue import Venue
from bot.service.resuming import Resuming, Stops, Together, VenueOf
from bot.service.showing import Showing
from bot.view.wording import commands
from council.cancel import Stop
from council.document.conversation import Source
from storage.journal.rows import Delivery, RunRow
from storage.processes.coordination import Bounds

HALT_SECONDS = 10.0

HandOver = Callable[["RunTasks", RunRow, Venue], Coroutine[Any, Any, None]]
"""Posts a new run's card, and has the run carried out."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs have their turn, wait for it, or have an asker who couldn't be told yet."""

    running: int
    queued: int
    undelivered: int


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

    async def retry(self, tasks: "RunTasks", run: RunRow, venue_of: VenueOf, by: Source) -> str:
        """Repeat a run without an answer on its card; return what happens. Raises `Refusal`."""
        ...

    async def stop(self, tasks: "RunTasks", run_id: str) -> str:
        """End a run's members' calls or, at a second press, its chairman's; return what happens.

        Raises `Refusal`.
        """
        ...

    async def end(self, tasks: "RunTasks", run_ids: Sequence[str], within: float) -> None:
        """End these runs, and wait until they are over or so many seconds are."""
        ...

    async def is_first(self, click: str) -> bool:
        """Return whether no process has seen a click before; a platform may deliver it to several."""
        ...

    def counts(self, tasks: "RunTasks") -> RunCounts:
        """Count this process's runs."""
        ...

    def close(self) -> None:
        """Show nobody's place any more."""
        ...


class RunTasks:
    """Begins runs, continues them and stops them, until `drain` ends them.

    Where several processes share the `queue`, `begin` only posts a run's card, and `take_up` carries out
    one that this process has claimed.
    """

    def __init__(
        self,
        showing: Showing,
        queue: RunQueue,
        durability: Durability,
        *,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self.showing = showing
        self._runs = showing.runs
        self._queue = queue
        self._durability = durability
        self._shown: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_draining = False
        self.stops = Stops()
        self.resuming = Resuming(
            showing.runs,
            showing.journal,
            self.stops,
            self._restart,
            within=durability.resume_within,
            sleep=sleep,
            is_shared=queue.is_shared,
        )

    def begin(self, run: RunRow, venue: Venue) -> None:
        """Carry out a run and show it, in a task of its own."""
        if run.id not in self._shown:  # a workspace that is opened again may have found it first
            self._shown.add(run.id)
            hand_over = self._queue.hand_over
            work = hand_over(self, run, venue) if hand_over else self.see_through(run, venue)
            self.spawn(work)

    async def see_through(self, run: RunRow, venue: Venue, resumed: Together | None = None) -> None:
        """Carry out a run and show it; what couldn't be shown is shown again later."""
        with self._under_way(run) as stop:
            delivery = await self.showing.see_through(run, venue, stop, resumed)
        self.resuming.shown(run, venue, delivery, is_last=self.is_draining)

    async def take_up(self, run: RunRow, venue: Venue, claims: Claims) -> Delivery | None:
        """Carry out a run that this process has claimed, and show it; return how that ended."""
        if run.epoch > 1:
            run = await self.resuming.unless_too_old(run)
        with self._under_way(run) as stop:
            claims.add(run, stop)
            return await self.showing.see_through(run, venue, stop, Together(1))

    async def reopen(self, run: RunRow, venue: Venue, payer: Source) -> None:
        """Reopen a run without an answer and carry it out on its card.

        Whoever asks for it, at `payer`, pays for it. Raises `Refusal` if it has an answer, too many
        questions wait, or a budget hasn't enough left.
        """
        self._shown.add(run.id)  # how it failed may not be shown once more meanwhile
        reopened: RunRow | None = None
        try:
            with self.showing.backlog.admitted(run.entry_key, run.origin):
                reopened = await self._runs.recorder.reopen(run, payer)
                if reopened is None:
                    raise Refusal(commands.ANSWERED)
                self.spawn(self.see_through(reopened, venue, Together(1)))
        finally:
            if reopened is None:
                self._shown.discard(run.id)

    def leave(self, run: RunRow) -> None:
        """Show a run no more: somebody else does."""
        self._runs.acknowledgements.settle(run.entry_key)
        self._shown.discard(run.id)

    def _restart(self, run: RunRow, venue: Venue, resumed: Together) -> None:
        if run.id not in self._shown:
            if not run.is_over:
                self.showing.backlog.count(run.entry_key, run.origin)
            self._shown.add(run.id)
            self.spawn(self.see_through(run, venue, resumed))

    @contextmanager
    def _under_way(self, run: RunRow) -> Generator[Stop]:
        """Yield what stops a run while it is carried out and shown."""
        self._shown.add(run.id)
        try:
            yield self.stops.of(run)
        finally:
            self.showing.backlog.release(run.entry_key)
            self.stops.pop(run.id, None)
            self._shown.discard(run.id)

    def __contains__(self, run_id: str) -> bool:
        """Return whether a run is being carried out or shown here."""
        return run_id in self._shown

    def run_counts(self) -> RunCounts:
        """Count this process's runs."""
        return self._queue.counts(self)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something in the background, referenced until it is done and awaited by `drain`."""
        # The event loop keeps no strong reference to its tasks.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait until every run is over and shown."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def drain(self, seconds: float | None = None) -> None:
        """Take nothing new, and give running work some time to end; the next start resumes the rest."""
        self.is_draining = True
        self._queue.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._durability.drain_seconds if seconds is None else seconds):
                await self.settled()
        await self.resuming.close()
        left = [*self._tasks]
        for task in left:
            task.cancel()
        for background in (self._runs.costs.warnings, self._runs.endings.operators):
            if background:
                await background.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def halt(self, run_ids: Sequence[str]) -> None:
        """End these runs, and wait until they are over or their time is up."""
        await self._queue.end(self, run_ids, HALT_SECONDS)
