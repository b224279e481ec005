"""The runs of several processes on one database: each waits in it until a worker may take it.

When its turn comes it becomes a job, and a worker claims it. What a crash leaves between two steps is
found by `sweep`. A process may be stopped, or cut off from the database, for so long that others take it
for dead. So before anything of a claimed run is posted, the claim is looked at, unless that was just
done; and when the database is away for longer than others wait, every claimed run is left.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn
from weakref import WeakValueDictionary

import structlog
from typing_extensions import override

from bot.errors import Refusal, Unreachable
from bot.service.delivery.venue import Venue
from bot.service.limits import Durability, Limits
from bot.service.run_tasks import HALT_SECONDS, RunCounts, RunTasks, Together, VenueOf
from bot.service.runs import Runs
from bot.view.wording import commands, failures
from bot.view.wording.commands import NOTHING_SENT
from council.document.conversation import Source
from council.errors import RunStopped
from council.events import RunAdmitted, RunQueued
from council.tasks import Stop, beside
from storage.errors import StorageError
from storage.journal.rows import RunRow
from storage.processes.coordination import Bounds, Coordination
from storage.processes.locks import Locks
from storage.work import DAYS

if TYPE_CHECKING:
    from storage.postgres.jobs import Jobs

log = structlog.get_logger()

POLL_SECONDS = 1.0
"""Between two looks at a waiting run's place."""
LOOK_SECONDS = 0.5
"""Between two looks at what became of the claimed runs: so late does a run hear of a press of Stop."""
FRESH_SECONDS = 1.5
"""How long a look counts."""
HEARTBEAT_SHARE = 0.8
"""Which part of the time after which others take over a claim lasts without the database."""


@dataclass(slots=True, eq=False)
class _Claim:
    epoch: int
    stop: Stop
    stops: int
    task: asyncio.Task[object]
    is_lost: bool = False


class Claims:
    """The runs that this process works on; `stalled_seconds` is when others take it for dead."""

    def __init__(
        self,
        coordination: Coordination,
        stalled_seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._coordination = coordination
        self._lease = HEARTBEAT_SHARE * stalled_seconds
        self._clock = clock
        self._sleep = sleep
        self._claims: dict[str, _Claim] = {}
        self._looked = clock()
        self._looking = asyncio.Lock()

    @property
    def count(self) -> int:
        return len(self._claims)

    def add(self, run: RunRow, stop: Stop) -> None:
        """Note that the current task works on a run: posts its card, or carries it out once claimed."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in tasks
        if not self._claims:
            self._looked = self._clock()
        self._claims[run.id] = _Claim(run.epoch, stop, run.stops, task)

    def lose(self, run_id: str) -> None:
        """End what is done here for a run that another process has claimed."""
        if claim := self._claims.get(run_id):
            self._lose(claim)

    async def end(self, run_id: str) -> None:
        """End what this process itself still does for a run, as after it was stopped for a while."""
        if claim := self._claims.get(run_id):
            self._lose(claim)
            await asyncio.wait({claim.task})

    def remove(self, run_id: str) -> bool:
        """Forget a run; return whether it was this process's to the end."""
        claim = self._claims.pop(run_id, None)
        return claim is not None and not claim.is_lost

    async def may_send(self, run_id: str) -> None:
        """Return where a request of a run may be sent; of one that is another's now, none ever may.

        Raises `Unreachable` where that can't be known.
        """
        claim = self._claims.get(run_id)
        if claim is None:
            return
        if self._clock() - self._looked > FRESH_SECONDS:
            try:
                await self.look()
            except StorageError as error:
                raise Unreachable(NOTHING_SENT) from error
        if claim.is_lost:
            await asyncio.Event().wait()  # its task is being cancelled

    async def wait_for_claim(self, run_id: str) -> None:
        """Return where a call of a run may be made; of one that is another's now, none ever may."""
        while True:
            try:
                await self.may_send(run_id)
            except Unreachable:  # nobody knows
                await self._sleep(LOOK_SECONDS)
            else:
                return

    async def watch(self) -> None:
        """Look at the claimed runs until cancelled."""
        while True:
            await self._sleep(LOOK_SECONDS)
            try:
                await self.look()
            except StorageError as error:
                if self._claims and self._clock() - self._looked > self._lease:
                    log.warning("claims_given_up", runs=len(self._claims), reason=error)
                    for claim in [*self._claims.values()]:
                        self._lose(claim)

    async def look(self) -> None:
        """Look what became of the claimed runs. Raises `StorageError`."""
        async with self._looking:
            began = self._clock()
            if not self._claims:
                self._looked = began
                return
            claims = {**self._claims}
            watched = await self._coordination.watch(list(claims))
            self._looked = began
            for run_id, claim in claims.items():
                if self._claims.get(run_id) is not claim:  # ended meanwhile, perhaps claimed once more
                    continue
                now = watched.get(run_id)
                if now is None or now.state == "halted":  # forgotten, or about to be
                    claim.stop.everything.cancel("stopped")
                elif now.epoch != claim.epoch:
                    if (
                        claim.epoch
                    ):  # a run whose card alone was posted here goes to a worker as it should
                        log.warning("run_claimed_by_another", run=run_id)
                    self._lose(claim)
                else:
                    for _ in range(now.stops - claim.stops):
                        claim.stop.press()
                    claim.stops = max(claim.stops, now.stops)

    def _lose(self, claim: _Claim) -> None:
        if not claim.is_lost:
            claim.is_lost = True
            claim.task.cancel()


AGAIN_SECONDS = 60.0
"""How long a run waits that this process can't show: another may be configured for its platform."""
MOST_DRAIN = 0.5
"""Which part of the time after which others take over its runs a worker may take to end them."""


class SharedTasks(RunTasks):
    """The runs of one of several processes on a database, whose name there is `worker`.

    `venues` returns the place of a run by its platform, for the runs that it takes up.
    """

    is_shared = True

    def __init__(
        self,
        runs: Runs,
        limits: Limits,
        durability: Durability,
        *,
        coordination: Coordination,
        jobs: "Jobs",
        claims: Claims,
        worker: str,
        locks: Locks | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        super().__init__(runs, limits, durability, locks=locks, clock=clock, sleep=sleep)
        self.coordination = coordination
        self.jobs = jobs
        self.claims = claims
        self.worker = worker
        self.venues: dict[str, VenueOf] = {}
        self._taking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._waiting: dict[str, int | None] = {}
        self._looked = -math.inf
        self._looking = asyncio.Lock()
        self._asked = self._answered = 0
        self._admitting = asyncio.Lock()

    @property
    @override
    def bounds(self) -> Bounds:
        limits = self.limits
        return Bounds(limits.waiting_per_channel, limits.waiting_per_user, limits.cooldown)

    @override
    async def see_through(self, run: RunRow, venue: Venue, resumed: Together | None = None) -> None:
        """Post a run's card, then leave the run to a worker; show its place until one has it."""
        del resumed
        with structlog.contextvars.bound_contextvars(run=run.id):
            self.claims.add(run, Stop())  # once a worker has it, nothing more is shown from here
            try:
                presenter = await self.present(run, venue)
                presenter.observe(RunAdmitted(0.0))
                if await self.post_card(run, presenter):
                    await self.make_ready(run.id)
                    async for position in self.positions(run.id):
                        presenter.observe(RunQueued(position))
                        await presenter.show_place()
                else:  # nobody would see the answer, so nothing is spent; the asker was told why
                    await self.runs.fail(run, presenter.observe, RunStopped(), "stopped")
                    await self.runs.deliver(run, "shown")
                    await self.leave(run.id)
            except StorageError:
                log.exception("run_left_to_a_sweep")
            finally:
                self.claims.remove(run.id)
                self.runs.acknowledgements.settle(run.entry_key)
                self.shown.discard(run.id)

    async def make_ready(self, run_id: str) -> None:
        await self.coordination.ready(run_id)
        await self.admit()

    @override
    async def retry(self, run: RunRow, venue_of: VenueOf, payer: Source) -> str:
        """Queue a run without an answer again; return what happens. Raises `Refusal`."""
        del venue_of  # a worker carries it out
        try:
            waits = await self.coordination.present([run.id])
            if waits or run.id in await self.jobs.live(now=True):
                raise Refusal(commands.IN_PROGRESS)
            if await self.runs.recorder.reopen(run, payer, self.bounds) is None:
                raise Refusal(commands.ANSWERED)
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error
        try:
            await self.make_ready(run.id)
        except StorageError as error:  # it is reopened: a sweep lets it in
            log.warning("run_left_to_a_sweep", run=run.id, reason=error)
        return commands.RESUMING

    @override
    async def stop(self, run_id: str) -> str:
        """Record a press of Stop, which the run's worker will find; return what happens.

        A run that still waits gets a worker whatever the limits say: it has only to end. Raises
        `Refusal`.
        """
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

    @override
    async def halt(self, run_ids: Sequence[str]) -> None:
        try:
            async with asyncio.timeout(HALT_SECONDS):
                found = await self.coordination.watch(run_ids)
                claimed = [run_id for run_id, now in found.items() if now.state in ("claimed", "halted")]
                for run_id in found.keys() - claimed:
                    await self.coordination.leave(run_id, self.worker)
                await self.coordination.halt(claimed)
                while await self.coordination.present(run_ids):
                    await self._sleep(LOOK_SECONDS)
        except (TimeoutError, StorageError) as error:  # with their rows goes all that they could write
            log.warning("runs_not_halted", reason=error)

    @override
    async def is_first(self, click: str) -> bool:
        try:
            return await self.coordination.first(click)
        except StorageError as error:
            log.warning("click_unknown", reason=error)
            return True

    @override
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
        try:
            await self.coordination.leave(run_id, self.worker)
            await self.admit()
        except StorageError as error:  # the next sweep does it
            log.warning("turn_not_ended", run=run_id, reason=error)

    async def admit(self) -> None:
        """Make jobs of the runs whose turn has come.

        Who waits for another's call shares the next one: each takes its turn among the
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
            while not self.is_draining:
                await self._sleep(POLL_SECONDS)
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
            if self._clock() - self._looked < POLL_SECONDS / 2:
                return
            asked = {*self._waiting}
            found = await self.coordination.positions(asked)
            self._waiting |= {run_id: found.get(run_id) for run_id in asked & self._waiting.keys()}
            self._looked = self._clock()

    @override
    def run_counts(self) -> RunCounts:
        return RunCounts(self.claims.count, len(self._waiting), len(self.undelivered_ids))

    @override
    async def undelivered(self, platform: str) -> list[RunRow]:
        return []

    async def sweep(self) -> None:
        """Make jobs of the runs that should have one and don't: what crashed between two steps."""
        since = self.runs.recorder.ago(days=DAYS)
        found = *await self.coordination.due(since), *await self.coordination.started()
        # Looked up last: others may have just made some, and a second job takes the run away.
        live = await self.jobs.live()
        for run_id in found:
            if run_id not in live:
                log.info("run_taken_up_again", run=run_id)
                await self.jobs.defer(run_id)
        await self.admit()
        await self.coordination.tidy()

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[Callable[[], Awaitable[NoReturn]]]:
        """Take up runs while entered; yields what waits until that fails, and raises why."""
        stalled, drain = self.durability.stalled_seconds, self.durability.drain_seconds
        work = self.jobs.work(
            self.take_up,
            self.sweep,
            name=self.worker,
            runs=self.limits.runs,
            stalled_seconds=stalled,
            # A worker that ends sends no heartbeats: others would take its runs away meanwhile.
            drain_seconds=min(drain, MOST_DRAIN * stalled),
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(beside(self.claims.watch()))
            failed = await stack.enter_async_context(work)
            for platform in self.venues:
                delivering = self.delivering(self._show_again)
                self.work.open({"deliver": delivering}, platform)
                stack.push_async_callback(self.work.close, platform)
            yield failed

    async def _show_again(self, run_id: str) -> None:
        if not await self.coordination.present([run_id]):  # or else it was continued meanwhile
            await self.take_up(run_id)

    async def take_up(self, run_id: str) -> None:
        """Claim a run, carry it out and show it; what can't be shown is tried again later."""
        await self.claims.end(run_id)
        # One at a time: the journal and the claims know a run by its id alone.
        async with self._taking.setdefault(run_id, asyncio.Lock()):
            lost = partial(self.claims.lose, run_id)
            try:
                run = await self.journal.claim(run_id, self.worker, lost)
            except StorageError as error:  # a sweep finds it
                log.warning("run_not_claimed", run=run_id, reason=error)
                return
            if run is None:  # forgotten
                return
            try:
                await self._see_claimed(run)
            finally:
                self.journal.unclaim(run_id)

    async def _see_claimed(self, run: RunRow) -> None:
        if run.delivery == "shown":
            await self.leave(run.id)
            return
        venue_of = self.venues.get(run.origin.platform)
        venue = venue_of(run) if venue_of else None
        if venue is None:
            log.error("run_of_another_place", run=run.id)
            # It is left to another worker, for as long as an interrupted run may continue.
            if self.runs.recorder.age(run) <= self.within:
                await self.jobs.defer(run.id, after=AGAIN_SECONDS)
                return
            if not run.is_over:
                await self.runs.give_up(run)
            await self.leave(run.id)
            return
        try:
            if run.epoch > 1:
                run = await self.unless_too_old(run)
            with self.under_way(run) as stop:
                self.claims.add(run, stop)
                delivery = await self.see(run, venue, stop, Together(1))
        except asyncio.CancelledError:
            if self.claims.remove(run.id):  # the process ends: others continue it
                with suppress(StorageError):
                    await asyncio.shield(self.jobs.defer(run.id))
            raise
        if self.claims.remove(run.id):
            await self.leave_for_later(run, delivery)
