"""The queue that processes on one database share: a run waits here until a worker may take it.

When its turn comes it becomes a job. What a crash leaves between two steps is found by `sweep`.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from bot.errors import Refusal
from bot.service.admission.limits import Limits
from bot.service.claimed_runs import LOOK_SECONDS, Claims
from bot.service.delivery.venue import Venue
from bot.service.run_tasks import REDELIVERY_DAYS, RunCounts, RunTasks, VenueOf
from bot.service.runs.runs import Runs
from bot.service.work import wait_after
from bot.view.wording import commands, failures
from council.cancel import Stop
from council.document.conversation import Source
from council.errors import RunStopped
from council.events import RunAdmitted, RunQueued
from storage.errors import StorageError
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from storage.processes.coordination import Bounds, Coordination
from storage.processes.jobs import Jobs

log = structlog.get_logger()

POLL_SECONDS = 1.0
"""Between two looks at a waiting run's place."""


@dataclass(slots=True, kw_only=True)
class SharedQueue:
    """The queue and the jobs of all processes; `worker` is this one's name."""

    coordination: Coordination
    jobs: Jobs
    claims: Claims
    journal: Journal
    runs: Runs
    limits: Limits
    worker: str
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    is_shared: bool = True
    _is_ending: bool = False
    _waiting: dict[str, int | None] = field(default_factory=dict[str, int | None])
    _looked: float = -math.inf
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _undelivered: set[str] = field(default_factory=set[str])
    _asked: int = 0
    _answered: int = 0
    _admitting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def bounds(self) -> Bounds:
        """How many questions may wait."""
        return Bounds(
            runs_per_channel=self.limits.runs_per_channel,
            runs_per_user=self.limits.runs_per_user,
            waiting_per_channel=self.limits.waiting_per_channel,
            waiting_per_user=self.limits.waiting_per_user,
            cooldown=self.limits.cooldown,
        )

    async def hand_over(self, tasks: RunTasks, run: RunRow, venue: Venue) -> None:
        """Post a run's card, then leave the run to a worker; show its place until one has it."""
        with structlog.contextvars.bound_contextvars(run=run.id):
            self.claims.add(run, Stop())  # once a worker has it, nothing more is shown from here
            try:
                presenter = await tasks.present(run, venue)
                presenter.observe(RunAdmitted(0.0))
                if await tasks.post_card(run, presenter):
                    await self.make_ready(run.id)
                    async for position in self.positions(run.id):
                        presenter.observe(RunQueued(position))
                        await presenter.show_place()
                else:  # nobody would see the answer, so nothing is spent; the asker was told why
                    await self.runs.endings.fail(run, presenter.observe, RunStopped(), "stopped")
                    await self.runs.endings.deliver(run, "shown")
                    await self.leave(run.id)
            except StorageError:
                log.exception("run_left_to_a_sweep")
            finally:
                self.claims.remove(run.id)
                tasks.leave(run)

    async def make_ready(self, run_id: str) -> None:
        """Queue a run, now that its card is there."""
        await self.coordination.ready(run_id)
        await self.admit()

    async def retry(self, tasks: RunTasks, run: RunRow, venue_of: VenueOf, by: Source) -> str:
        """Queue a run without an answer again; return what happens. Raises `Refusal`."""
        del tasks, venue_of  # a worker carries it out
        try:
            if await self._is_live(run.id):
                raise Refusal(commands.IN_PROGRESS)
            if await self.runs.recorder.reopen(run, by, self.bounds) is None:
                raise Refusal(commands.ANSWERED)
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error
        try:
            await self.make_ready(run.id)
        except StorageError as error:  # it is reopened: a sweep lets it in
            log.warning("run_left_to_a_sweep", run=run.id, reason=error)
        return commands.RESUMING

    async def stop(self, tasks: RunTasks, run_id: str) -> str:
        """Record a press of Stop, which the run's worker will find; return what happens.

        A run that still waits gets a worker whatever the limits say: it has only to end. Raises
        `Refusal`.
        """
        del tasks
        try:
            run = await self.journal.get(run_id)
            if run is None or run.is_over:
                raise Refusal(commands.OVER)
            await self.journal.press_stop(run_id)
        except StorageError as error:
            raise Refusal(failures.explain(error, run_id)) from error
        try:
            if await self.coordination.prioritize(run_id):
                await self.jobs.defer(run_id)
        except StorageError as error:  # the press is on record: it counts when the run has its turn
            log.warning("run_left_to_a_sweep", run=run_id, reason=error)
        return commands.ENDING if run.stops else commands.STOPPING

    async def end(self, tasks: RunTasks, run_ids: Sequence[str], within: float) -> None:
        """End these runs, wherever they are, and wait until they are over or so many seconds are."""
        del tasks
        try:
            async with asyncio.timeout(within):
                await self._halt(run_ids)
                while await self.coordination.present(run_ids):
                    await self.sleep(LOOK_SECONDS)
        except (TimeoutError, StorageError) as error:  # with their rows goes all that they could write
            log.warning("runs_not_halted", reason=error)

    async def is_first(self, click: str) -> bool:
        """Return whether no process has seen a click before."""
        try:
            return await self.coordination.first(click)
        except StorageError as error:
            log.warning("click_unknown", reason=error)
            return True

    @asynccontextmanager
    async def turn(self, run: RunRow, stop: Stop, moved: Callable[[int], None]) -> AsyncGenerator[None]:
        """Hold a run's turn, which it has got; one that is cut off keeps it, to be continued.

        Even one that was stopped has to leave it.
        """
        del stop, moved
        try:
            yield
        except Exception:
            await self.leave(run.id)
            raise
        await self.leave(run.id)

    async def leave(self, run_id: str) -> None:
        """End a run's turn."""
        try:
            await self.coordination.leave(run_id, self.worker)
            await self.admit()
        except StorageError as error:  # the next sweep does it
            log.warning("turn_not_ended", run=run_id, reason=error)

    async def admit(self) -> None:
        """Make jobs of the runs whose turn has come.

        Whoever waits for another's call shares the next one: each takes its turn among the
        transactions that write, and a connection that questions need.
        """
        self._asked = mine = self._asked + 1
        async with self._admitting:
            if self._answered >= mine:
                return
            asked, limits = self._asked, self.limits
            for run_id in await self.coordination.admit(limits.runs_per_channel, limits.runs_per_user):
                await self.jobs.defer(run_id)
            self._answered = asked

    async def positions(self, run_id: str) -> AsyncGenerator[int]:
        """Yield a run's place in the queue whenever it changes, 1 being next, until a worker has it."""
        last = 0
        self._waiting[run_id] = 0
        try:
            while not self._is_ending:
                await self.sleep(POLL_SECONDS)
                try:
                    await self._look_at_places()
                except StorageError:  # the place last shown stays
                    continue
                place = self._waiting[run_id]
                if place is None:
                    return
                if place != last:
                    last = place
                    yield last
        finally:
            del self._waiting[run_id]

    async def _look_at_places(self) -> None:
        """Look at the places of all runs that are shown as waiting here, unless that was just done."""
        async with self._looking:
            if self.clock() - self._looked < POLL_SECONDS / 2:
                return
            asked = {*self._waiting}
            found = await self.coordination.positions(asked)
            self._waiting |= {run_id: found.get(run_id) for run_id in asked & self._waiting.keys()}
            self._looked = self.clock()

    async def _halt(self, run_ids: Sequence[str]) -> None:
        found = await self.coordination.watch(run_ids)
        claimed = [run_id for run_id, now in found.items() if now.state in ("claimed", "halted")]
        for run_id in found.keys() - claimed:
            await self.coordination.leave(run_id, self.worker)
        await self.coordination.halt(claimed)

    async def _is_live(self, run_id: str) -> bool:
        """Return whether a run waits, or is carried out or shown."""
        return bool(await self.coordination.present([run_id])) or run_id in await self.jobs.live(
            now=True
        )

    def counts(self, tasks: RunTasks) -> RunCounts:
        """Count the runs that this process carries out or shows, and whose place it shows."""
        del tasks
        return RunCounts(self.claims.count, len(self._waiting), len(self._undelivered))

    def delivered(self, run_id: str) -> None:
        """Note that a run needs no further showing by this process."""
        self._undelivered.discard(run_id)

    async def try_later(self, run_id: str, attempts: int) -> None:
        """Queue a run whose asker couldn't be told, to be shown again."""
        wait = wait_after(attempts)
        log.warning("run_not_shown", run=run_id, attempts=attempts + 1, again_in=wait)
        await self.jobs.defer(run_id, after=wait, attempts=attempts + 1)
        self._undelivered.add(run_id)

    async def sweep(self) -> None:
        """Make jobs of the runs that should have one and don't: what crashed between two steps."""
        since = self.runs.recorder.ago(days=REDELIVERY_DAYS)
        found = *await self.coordination.due(since), *await self.coordination.started()
        # Looked up last: others may have just made some, and a second job takes the run away.
        live = await self.jobs.live()
        for run_id in found:
            if run_id not in live:
                log.info("run_taken_up_again", run=run_id)
                await self.jobs.defer(run_id)
        await self.admit()
        await self.coordination.tidy()

    def close(self) -> None:
        """Show nobody's place any more."""
        self._is_ending = True
