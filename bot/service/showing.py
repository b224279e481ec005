"""Carries out one run and shows it meanwhile, to the end of both."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import structlog

from bot.service.admission.limits import Backlog
from bot.service.delivery.presenter import Presenter
from bot.service.delivery.run_record import RunRecord
from bot.service.delivery.venue import Venue
from bot.service.resuming import Together, catch_up
from bot.service.runs.preparing import Sources
from bot.service.runs.runs import Runs
from bot.view.run import RunView
from council.cancel import Stop
from council.events import RunAdmitted, RunQueued
from council.task_group import TaskGroup
from storage.documents.conversations import Conversations
from storage.errors import RunSuperseded, StorageError
from storage.index.statistics import Typical
from storage.journal.journal import Journal
from storage.journal.rows import Delivery, RunRow

log = structlog.get_logger()

Turn = Callable[[RunRow, Stop, Callable[[int], None]], AbstractAsyncContextManager[None]]
"""Waits for a run's turn and holds it, as `bot.service.run_tasks.RunQueue` does."""


@dataclass(slots=True, kw_only=True)
class Showing:
    """Takes runs to their end, and shows each in its venue; `backlog` counts them until their `turn`.

    `typical` holds what an answer took lately where a new run was asked; its card shows that. `clock` is
    in seconds.
    """

    runs: Runs
    journal: Journal
    store: Conversations
    backlog: Backlog
    turn: Turn
    clock: Callable[[], float]
    typical: dict[str, asyncio.Task[Typical | None]] = field(
        default_factory=dict[str, asyncio.Task[Typical | None]]
    )
    _presenters: dict[str, Presenter] = field(default_factory=dict[str, Presenter])

    async def see_through(
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
                    await self.runs.endings.deliver(run, delivery)
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
            started=self.clock(),
            typical=await looking if looking else None,
            estimated=self.runs.costs.estimate(run.brief).cost if looking else 0.0,
        )
        posts = await self.journal.posts(run, is_new=is_new)
        record = RunRecord(
            run,
            self.journal,
            self.store,
            self.runs.acknowledgements,
            self.runs.metrics,
            run.origin,
        )
        return Presenter(run, view, venue, posts, record, clock=self.clock)

    async def post_card(self, run: RunRow, presenter: Presenter) -> bool:
        """Post a new run's card; return whether the channel takes it."""
        try:
            return await presenter.post_card()
        finally:
            self.runs.acknowledgements.settle(run.entry_key)

    def view_of(self, run_id: str) -> RunView | None:
        """Return the newest view of a run that is being shown here."""
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
            await self.runs.endings.fail(run, presenter.observe, error)

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
