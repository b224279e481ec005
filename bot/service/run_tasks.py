"""One life of a run in this process: begun or resumed, carried out, and shown to the end of both.

This is a process that has its runs to itself; `shared_tasks` is one of several on a database.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from bot.errors import Refusal, Unreachable
from bot.service.delivery.venue import Venue
from bot.service.limits import Durability, Limits, entry_of
from bot.service.presenter import Presenter
from bot.service.runs import Runs, Sources
from bot.service.turns import Backlog, Queue
from bot.service.waits import until_written
from bot.service.work import FIRST_WAIT, WorkLoop
from bot.view.run import RunView
from bot.view.wording import commands
from council.document.conversation import Source
from council.errors import ModelError
from council.events import RunAdmitted, RunQueued
from council.tasks import Stop, TaskGroup
from storage.database import Statement
from storage.errors import RunSuperseded, StorageError
from storage.index.statistics import Typical
from storage.journal.rows import Delivery, RunRow
from storage.processes.coordination import Bounds
from storage.processes.locks import Locks
from storage.work import DAYS, Do, Work

log = structlog.get_logger()

HALT_SECONDS = 10.0
CATCH_UP_SECONDS = 3.0
"""How long resumed runs may take to catch up before their cards are edited."""

Together = asyncio.Barrier
"""Where resumed runs wait for each other: calls first, then cards."""
VenueOf = Callable[[RunRow], Venue | None]
"""Returns the place where a run is shown; `None` where that isn't this bot's."""
Behind = Callable[[RunRow, Stop], AbstractAsyncContextManager[None]]
"""Waits, once a run has its turn here, until others leave it a place, and holds that."""
LOOK_SECONDS = 0.05
"""Between two looks whether runs that were ended are over."""
POSITION_SECONDS = 1.0
"""Between two changes of a waiting run's place on its card: each departure moves many up."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs have their turn, wait for it, or have an asker who couldn't be notified yet."""

    running: int
    queued: int
    undelivered: int


class RunTasks:
    """Begins runs, continues them and stops them, until `drain` ends them.

    Runs that were interrupted longer than `within` seconds ago are closed, to be retried by hand.
    `backlog` counts runs until their turn; `typical` holds what an answer took lately where a new run
    was asked, for its card. `is_shared` says that other processes may have a run; where they do,
    `bounds` are checked as runs are recorded. `clock` is in seconds.
    """

    is_shared = False

    def __init__(
        self,
        runs: Runs,
        limits: Limits | None = None,
        durability: Durability | None = None,
        *,
        locks: Locks | None = None,
        behind: Behind | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.runs = runs
        self.journal = runs.costs.journal
        self.limits = limits or Limits()
        self.durability = durability or Durability()
        self.work = WorkLoop(self.journal.work, locks, sleep)
        self._clock = clock
        self._sleep = sleep
        self.within = self.durability.resume_within
        self.backlog = Backlog(self.limits, clock)
        self.typical: dict[str, asyncio.Task[Typical | None]] = {}
        self.stops: dict[str, Stop] = {}
        self.is_draining = False
        self._queue = Queue(self.limits)
        self._behind = behind
        self._moved: dict[str, Callable[[], None]] = {}
        self._presenters: dict[str, Presenter] = {}
        self.shown: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.undelivered_ids: set[str] = set()
        self._just_tried: set[str] = set()

    @property
    def bounds(self) -> Bounds | None:
        """How many questions may wait, where that is checked as they are recorded."""
        return None

    def begin(self, run: RunRow, venue: Venue) -> None:
        if run.id not in self.shown:  # a workspace that is opened again may have found it first
            self.shown.add(run.id)
            self.spawn(self.see_through(run, venue))

    async def see_through(self, run: RunRow, venue: Venue, resumed: Together | None = None) -> None:
        """Carry out a run and show it; what couldn't be shown is shown again later."""
        with self.under_way(run) as stop:
            delivery = await self.see(run, venue, stop, resumed)
        if not self.is_draining:
            await self.leave_for_later(run, delivery)

    async def leave_for_later(self, run: RunRow, delivery: Delivery | None) -> None:
        """List a run that wasn't shown to its end, to be shown again; the channel's history keeps it."""
        self.undelivered_ids.discard(run.id)
        if delivery == "shown" or self._is_old(run) or run.origin.program is not None:
            return
        if delivery == "untold":
            self.undelivered_ids.add(run.id)
        log.warning("run_not_shown", run=run.id)
        self._just_tried.add(run.id)
        try:
            listed = partial(self.journal.work.add_once, "deliver", run.id, run.id, run.origin)
            await until_written(listed, lambda _: None)
        except StorageError:
            log.exception("run_left_to_the_next_start", run=run.id)

    async def show_again(self, venue_of: VenueOf, run_id: str) -> None:
        run = await self.journal.get(run_id)
        if run and run.delivery != "shown" and run.id not in self and (venue := venue_of(run)):
            if not run.is_over:
                self.backlog.count(run.entry_key, run.origin)
            await self.see_through(run, venue, Together(1))

    def delivering(self, show: Callable[[str], Coroutine[Any, Any, None]]) -> Do:
        """Return what shows runs that couldn't be shown before, each by its id."""

        async def do(one: Work) -> Sequence[Statement]:
            if one.item in self._just_tried:
                await self._sleep(FIRST_WAIT)
            if one.item not in self and not self.is_draining:
                await asyncio.wait({self.spawn(show(one.item))})
            self._just_tried.discard(one.item)
            run = await self.journal.get(one.item)
            if run and run.delivery != "shown" and run.id not in self and not self._is_old(run):
                raise Unreachable(f"run {run.id} isn't shown to its end")
            self.undelivered_ids.discard(one.item)  # forgotten, or shown after a Retry
            return ()

        return do

    def _is_old(self, run: RunRow) -> bool:
        return self.runs.recorder.age(run) > timedelta(days=DAYS).total_seconds()

    async def see(
        self, run: RunRow, venue: Venue, stop: Stop, resumed: Together | None = None
    ) -> Delivery | None:
        """Carry out a run and show it; return how the showing ended, `None` if it was cut off.

        A run that is `resumed` has a card already, and waits there for the others.
        """
        delivery: Delivery | None = None
        with structlog.contextvars.bound_contextvars(run=run.id):
            try:
                presenter = await self.present(run, venue, is_new=resumed is None)
                self._presenters[run.id] = presenter
                async with TaskGroup() as group:
                    group.create_task(self._carry_out(run, venue, presenter, stop))
                    delivery = await self._show(run, presenter, stop, resumed)
                if delivery:
                    await self.runs.deliver(run, delivery)
            except StorageError:
                log.exception("run_left_to_the_next_start")
            finally:
                self._presenters.pop(run.id, None)
        return delivery

    async def present(self, run: RunRow, venue: Venue, *, is_new: bool = True) -> Presenter:
        """Return what shows a run."""
        looking = self.typical.pop(run.id, None)
        view = RunView(
            run.brief.question,
            run.brief.profile,
            asker=run.brief.asker,
            started=self._clock(),
            typical=await looking if looking else None,
            estimated=self.runs.costs.estimate(run.brief).cost if looking else 0.0,
        )
        posts = await self.journal.posts(run, is_new=is_new)
        return Presenter(run, view, venue, posts, self.runs, clock=self._clock)

    async def post_card(self, run: RunRow, presenter: Presenter) -> bool:
        """Post a new run's card; return whether the channel takes it."""
        try:
            return await presenter.post_card()
        finally:
            self.runs.acknowledgements.settle(run.entry_key)

    def view_of(self, run_id: str) -> RunView | None:
        presenter = self._presenters.get(run_id)
        return presenter.view if presenter else None

    async def _carry_out(self, run: RunRow, venue: Venue, presenter: Presenter, stop: Stop) -> None:
        """Take a run through the queue and to its end; the card shows whatever ends it."""
        try:
            async with self.turn(run, stop, lambda place: presenter.observe(RunQueued(place))):
                self.backlog.release(run.entry_key)
                begun = run.brief.started_at
                waited = self.runs.recorder.since(begun) if begun else 0.0
                presenter.observe(RunAdmitted(waited))
                sources = Sources(venue.read_discussion, venue.fetch)
                await self.runs.carry_out(run, presenter.observe, stop, sources)
        except RunSuperseded:
            raise
        except Exception as error:
            log.exception("run_crashed")
            await self.runs.fail(run, presenter.observe, error)

    @asynccontextmanager
    async def turn(self, run: RunRow, stop: Stop, moved: Callable[[int], None]) -> AsyncGenerator[None]:
        """Wait for a run's turn and hold it; `moved` hears its place on arrival, then once a second.

        One that is stopped while it waits ends without a turn.
        """
        hear = moved

        def place(position: int) -> None:
            nonlocal hear
            hear(position)
            hear = later

        def later(position: int) -> None:
            if not self._moved:
                asyncio.get_running_loop().call_later(POSITION_SECONDS, self._show_places)
            self._moved[run.id] = partial(moved, position)

        async with AsyncExitStack() as stack:
            turn = stack.enter_async_context(self._queue.turn(entry_of(run), place))
            with suppress(ModelError):  # stopped while it waited: it ends without a turn
                await stop.members.guard(turn)
            self._moved.pop(run.id, None)
            if self._behind:
                await stack.enter_async_context(self._behind(run, stop))
            yield

    def _show_places(self) -> None:
        moved, self._moved = self._moved, {}
        for show in moved.values():
            show()

    async def _show(
        self, run: RunRow, presenter: Presenter, stop: Stop, resumed: Together | None
    ) -> Delivery | None:
        """Show a run to its end; whatever its card does, the run continues."""
        try:
            if resumed:
                with suppress(TimeoutError):  # calls come first, then cards
                    async with asyncio.timeout(CATCH_UP_SECONDS):
                        await presenter.caught_up()
                        await resumed.wait()
                await presenter.pick_up()
            elif not await self.post_card(run, presenter) and presenter.view.usage is None:
                # Nobody would see the answer, so nothing is spent. What is paid for finds another way.
                stop.everything.cancel("stopped")
                if await presenter.ended_without_answer():
                    return "shown"  # only the asker was shown why
            return await presenter.show()
        except Exception:
            log.exception("card_crashed")
            return "untold"

    async def retry(self, run: RunRow, venue_of: VenueOf, payer: Source) -> str:
        """Repeat a run without an answer on its card; return what happens.

        Who asks for it, at `payer`, pays for it. Raises `Refusal` if it has an answer, too many
        questions wait, or a budget hasn't enough left.
        """
        if run.id in self:  # reopened now, it would be overwritten by its ending
            raise Refusal(commands.IN_PROGRESS)
        venue = venue_of(run)
        if venue is None:
            raise Refusal(commands.ANSWERED)
        self.shown.add(run.id)  # how it failed may not be shown once more meanwhile
        reopened: RunRow | None = None
        try:
            with self.backlog.admitted(run.entry_key, run.origin):
                reopened = await self.runs.recorder.reopen(run, payer)
                if reopened is None:
                    raise Refusal(commands.ANSWERED)
                self.spawn(self.see_through(reopened, venue, Together(1)))
        finally:
            if reopened is None:
                self.shown.discard(run.id)
        return commands.RESUMING

    async def stop(self, run_id: str) -> str:
        """End a run's members' calls or, at a second press, its chairman's; return what happens.

        Raises `Refusal`.
        """
        stop = self.stops.get(run_id)
        if stop is None:
            raise Refusal(commands.OVER)
        again = stop.pressed
        stop.press()
        try:
            await self.journal.press_stop(run_id)
        except StorageError:  # it is stopped in any case; only a restart now would forget it
            log.exception("stop_not_recorded", run=run_id)
        return commands.ENDING if again else commands.STOPPING

    async def is_first(self, click: str) -> bool:
        """Return whether no process has seen a click before; a platform may deliver it to several."""
        del click
        return True

    async def undelivered(self, platform: str) -> list[RunRow]:
        """Return the runs that an earlier process didn't finish; call it before listening.

        From then on, they can be stopped.
        """
        since = self.runs.recorder.ago(days=DAYS)
        runs = await self.journal.undelivered(platform, since)
        for run in runs:
            if not run.is_over:
                self.stop_of(run)
        return runs

    async def resume(self, runs: Sequence[RunRow], venue_of: VenueOf) -> None:
        """Resume interrupted runs, the oldest first; close those that are too old, to be retried."""
        resumed: list[tuple[RunRow, Venue]] = []
        for run in runs:
            venue = venue_of(run)
            if venue is None:
                log.warning("run_of_another_workspace", run=run.id, workspace=run.origin.workspace)
                self.stops.pop(run.id, None)
                continue
            resumed.append((await self.unless_too_old(run), venue))
        if resumed:
            together = Together(len(resumed))
            for run, venue in resumed:
                if run.delivery == "untold":
                    self.undelivered_ids.add(run.id)
                if run.id not in self.shown:
                    if not run.is_over:
                        self.backlog.count(run.entry_key, run.origin)
                    self.shown.add(run.id)
                    self.spawn(self.see_through(run, venue, together))
            log.info("runs_resumed", runs=len(resumed))

    def stop_of(self, run: RunRow) -> Stop:
        """Return what stops a run, pressed as often as it was before a restart."""
        if run.id not in self.stops:
            self.stops[run.id] = Stop()
            for _ in range(run.stops):
                self.stops[run.id].press()
        return self.stops[run.id]

    async def unless_too_old(self, run: RunRow) -> RunRow:
        """Return a run; one that was interrupted too long ago is closed."""
        is_too_old = not run.is_over and self.runs.recorder.age(run) > self.within
        return await self.runs.give_up(run) if is_too_old else run

    @contextmanager
    def under_way(self, run: RunRow) -> Generator[Stop]:
        """Yield what stops a run while it is carried out and shown."""
        self.shown.add(run.id)
        try:
            yield self.stop_of(run)
        finally:
            self.backlog.release(run.entry_key)
            self.stops.pop(run.id, None)
            self.shown.discard(run.id)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self.shown

    def run_counts(self) -> RunCounts:
        return RunCounts(self._queue.running, self._queue.waiting, len(self.undelivered_ids))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something in the background, referenced until it is done and awaited by `drain`."""
        # The event loop keeps no strong reference to its tasks.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def drain(self, seconds: float | None = None) -> None:
        """Take nothing new, and give running work some time to end; the next start resumes the rest."""
        self.is_draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self.durability.drain_seconds if seconds is None else seconds):
                await self.settled()
        left = [*self._tasks]
        for task in left:
            task.cancel()
        for background in (self.runs.costs.warnings, self.runs.operators):
            if background:
                await background.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def halt(self, run_ids: Sequence[str]) -> None:
        """End these runs, and wait until they are over or their time is up."""
        for run_id in run_ids:
            if stop := self.stops.get(run_id):
                stop.everything.cancel("stopped")
        with suppress(TimeoutError):
            async with asyncio.timeout(HALT_SECONDS):
                while any(run_id in self for run_id in run_ids):  # noqa: ASYNC110 - it is soon over
                    await asyncio.sleep(LOOK_SECONDS)
