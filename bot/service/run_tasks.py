"""Takes each accepted run through the queue to its end, and shows it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from bot.errors import Refusal
from bot.service.admission.limits import Backlog, Durability
from bot.service.claimed_runs import Claims
from bot.service.delivery.presenter import Presenter, page_of
from bot.service.delivery.venue import File, Venue
from bot.service.resuming import Resuming, Stops, Together, catch_up
from bot.service.run_queue import RunCounts, RunQueue
from bot.service.runs.preparing import Sources
from bot.service.runs.runs import Runs
from bot.view.state import RunView, opening
from bot.view.wording import commands
from council.cancel import Stop
from council.document.conversation import Source
from council.events import RunAdmitted, RunQueued
from council.offload import offload_slowly
from council.task_group import TaskGroup
from storage.documents.conversations import Conversations
from storage.errors import RunSuperseded, StorageError
from storage.index.statistics import Typical
from storage.journal.journal import Journal
from storage.journal.rows import Delivery, MentionState, RunRow

log = structlog.get_logger()

HALT_SECONDS = 10.0


class RunTasks:
    """Carries out and shows runs until `drain` ends them; `backlog` counts those that wait.

    Where several processes share the `queue`, `begin` only posts a run's card, and `take_up` carries out
    one that this process has claimed.
    """

    def __init__(
        self,
        *,
        runs: Runs,
        journal: Journal,
        store: Conversations,
        queue: RunQueue,
        backlog: Backlog,
        durability: Durability,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._runs = runs
        self._journal = journal
        self._store = store
        self._queue = queue
        self._backlog = backlog
        self._durability = durability
        self._clock = clock
        self._shown: set[str] = set()
        self._presenters: dict[str, Presenter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_draining = False
        self.stops = Stops()
        self.typical: dict[str, asyncio.Task[Typical | None]] = {}
        """For each new run, what an answer took lately where it was asked; its card shows that."""
        self.resuming = Resuming(
            runs,
            journal,
            self.stops,
            self._restart,
            within=durability.resume_within,
            sleep=sleep,
            is_shared=queue.is_shared,
        )

    def begin(self, run: RunRow, venue: Venue) -> None:
        """Carry out a run and show it, in a task of its own."""
        if run.id in self._shown:  # a workspace that is opened again may have found it first
            return
        self._shown.add(run.id)
        self._queue.begin(self, run, venue)

    async def take_up(self, run: RunRow, venue: Venue, claims: Claims) -> Delivery | None:
        """Carry out a run that this process has claimed, and show it; return how that ended."""
        if (
            not run.is_over
            and run.epoch > 1
            and self._runs.recorder.age(run) > self._durability.resume_within
        ):
            run = await self._runs.endings.give_up(run)
        self._shown.add(run.id)
        stop = self.stops.of(run)
        claims.add(run, stop)
        return await self._see_through(run, venue, stop, Together(1))

    async def reopen(self, run: RunRow, venue: Venue, payer: Source) -> None:
        """Reopen a run without an answer and carry it out on its card.

        Whoever asks for it, at `payer`, pays for it. Raises `Refusal` if it has an answer, too many
        questions wait, or a budget hasn't enough left.
        """
        self._shown.add(run.id)  # how it failed may not be shown once more meanwhile
        reopened: RunRow | None = None
        try:
            with self._backlog.admitted(run.entry_key, run.origin):
                reopened = await self._runs.recorder.reopen(run, payer)
                if reopened is None:
                    raise Refusal(commands.ANSWERED)
                self.start(reopened, venue, Together(1))
        finally:
            if reopened is None:
                self._shown.discard(run.id)

    def start(self, run: RunRow, venue: Venue, resumed: Together | None = None) -> None:
        """Carry out a run and show it, in a task of its own."""
        if not run.is_over:
            self._backlog.count(run.entry_key, run.origin)
        self._shown.add(run.id)

        async def see_through() -> None:
            delivery = await self._see_through(run, venue, self.stops.of(run), resumed)
            self.resuming.shown(run, venue, delivery, is_last=self.is_draining)

        self.spawn(see_through())

    def leave(self, run: RunRow) -> None:
        """Show a run no more: somebody else does."""
        self._runs.acknowledgements.settle(run.entry_key)
        self._shown.discard(run.id)

    def _restart(self, run: RunRow, venue: Venue, resumed: Together) -> None:
        if run.id not in self._shown:
            self.start(run, venue, resumed)

    async def _see_through(
        self, run: RunRow, venue: Venue, stop: Stop, resumed: Together | None
    ) -> Delivery | None:
        """Carry out a run and show it; return how the showing ended, `None` if it was cut off."""
        delivery: Delivery | None = None
        with structlog.contextvars.bound_contextvars(run=run.id):
            try:
                presenter = await self.present(run, venue, is_new=resumed is None)
                self._presenters[run.id] = presenter
                async with TaskGroup() as group:
                    group.create_task(self._carry_out(run, venue, presenter, stop))
                    delivery = await self._show(run, presenter, stop, resumed)
                if delivery:
                    await self._runs.endings.deliver(run, delivery)
            except StorageError:
                log.exception("run_left_to_the_next_start")
            finally:
                self._backlog.release(run.entry_key)
                self.stops.remove(run.id)
                self._shown.discard(run.id)
                self._presenters.pop(run.id, None)
        return delivery

    async def present(self, run: RunRow, venue: Venue, *, is_new: bool = True) -> Presenter:
        """Return what shows a run."""
        looking = self.typical.pop(run.id, None)
        view = opening(
            run.brief.question,
            run.brief.profile,
            asker=run.brief.asker,
            now=self._clock(),
            typical=await looking if looking else None,
            estimated=self._runs.costs.estimate(run.brief).cost if looking else 0.0,
        )
        posts = await self._journal.posts(run, is_new=is_new)
        record = _Record(run, self._runs, self._journal, self._store, run.origin)
        return Presenter(run, view, venue, posts, record, clock=self._clock)

    async def _carry_out(self, run: RunRow, venue: Venue, presenter: Presenter, stop: Stop) -> None:
        """Take a run through the queue and to its end; the card shows whatever ends it."""
        try:
            async with self._queue.turn(run, stop, lambda place: presenter.observe(RunQueued(place))):
                self._backlog.release(run.entry_key)
                begun = run.brief.started_at
                waited = self._runs.recorder.since(begun) if begun else 0.0
                presenter.observe(RunAdmitted(waited))
                sources = Sources(venue.read_discussion, venue.fetch)
                await self._runs.carry_out(run, presenter.observe, stop, sources)
        except RunSuperseded:
            raise
        except Exception as error:
            log.exception("run_crashed")
            await self._runs.endings.fail(run, presenter.observe, error)

    async def _show(
        self, run: RunRow, presenter: Presenter, stop: Stop, resumed: Together | None
    ) -> Delivery | None:
        """Show a run to its end; whatever its card does, the run continues."""
        try:
            if resumed:
                await catch_up(presenter, resumed)
                await presenter.pick_up()
            elif not await self.post_card(run, presenter) and not presenter.has_spent:
                # Nobody would see the answer, so nothing is spent. What is paid for finds another way.
                stop.everything.cancel("stopped")
                if await presenter.ended_without_answer():
                    return "shown"  # only the asker was told why
            return await presenter.show()
        except Exception:
            log.exception("card_crashed")
            return "untold"

    async def post_card(self, run: RunRow, presenter: Presenter) -> bool:
        """Post a new run's card; return whether the channel takes it."""
        try:
            return await presenter.post_card()
        finally:
            self._runs.acknowledgements.settle(run.entry_key)

    def __contains__(self, run_id: str) -> bool:
        """Return whether a run is being carried out or shown here."""
        return run_id in self._shown

    def view_of(self, run_id: str) -> RunView | None:
        """Return the newest view of a run that is being shown here."""
        presenter = self._presenters.get(run_id)
        return presenter.view if presenter else None

    @property
    def resume_within(self) -> float:
        """How old, in seconds, an interrupted run may be that continues by itself."""
        return self._durability.resume_within

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
        if self._runs.costs.warnings:
            await self._runs.costs.warnings.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def halt(self, run_ids: Sequence[str]) -> None:
        """End these runs, and wait until they are over or their time is up."""
        await self._queue.end(self, run_ids, HALT_SECONDS)


@dataclass(slots=True)
class _Record:
    """What is kept of one run, which is now shown at `where`; a `RunRecord`."""

    run: RunRow
    runs: Runs
    journal: Journal
    store: Conversations
    where: Source

    async def place(self, **where: str | None) -> None:
        """Keep where the card or the thread is."""
        self.where = self.where.model_copy(update=where)
        try:
            await self.journal.place(self.run.id, self.where)
        except StorageError:  # only a restart now would have to look for the card
            log.exception("place_not_recorded", run=self.run.id)
        for message in {where.get("message"), where.get("card")} - {None}:
            await self.retract_if_forgotten(str(message))

    async def retract_if_forgotten(self, message: str) -> bool:
        """Have a message deleted if the run was forgotten while it was posted; return whether it was."""
        if await self.run_exists():
            return False
        try:
            await self.journal.retractions.add(self.where, message)
        except StorageError:  # nothing else names it
            log.exception("message_not_listed", run=self.run.id, message=message)
        return True

    async def note(self, telling: MentionState) -> None:
        """Keep what may have arrived of the run's posts and its mention."""
        try:
            await self.journal.record_mention(self.run.id, telling)
        except StorageError:  # only a restart now could mention the asker once more
            log.exception("telling_not_recorded", run=self.run.id)

    async def run_exists(self) -> bool:
        """Return whether the run is still on record."""
        try:
            return await self.journal.origin(self.run) is not None
        except StorageError:  # if the journal can't be read, nothing counts as forgotten
            log.exception("run_not_read", run=self.run.id)
            return True

    async def render_page(self) -> File:
        """Return the run's stored conversation as an HTML file."""
        return await offload_slowly(page_of, await self.store.load(self.run.conversation_id))

    async def acknowledged(self) -> None:
        """Wait for others' acknowledgements."""
        await self.runs.acknowledgements.acknowledged()

    def edited(self, changes: int) -> None:
        """Count an edit of the card."""
        self.runs.observer.metrics.edited(self.run.origin.platform, changes)
