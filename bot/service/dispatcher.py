"""Takes questions and clicks from every platform, and takes each run to its end."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from bot.errors import OverLimit, Refusal
from bot.service.acknowledgements import ACCEPT_SECONDS
from bot.service.admission.access import Standing
from bot.service.admission.budgets import Budgets
from bot.service.admission.channels import InForce, Operator
from bot.service.admission.limits import Backlog, Durability, channel_of, user_of
from bot.service.admission.permissions import Action, Admins, check, check_place
from bot.service.admission.queue import Queue, Ticket
from bot.service.delivery.presenter import Presenter, files_of, page_of
from bot.service.delivery.venue import File, Venue
from bot.service.options import RunOptions
from bot.service.requests.follow_ups import FollowUps
from bot.service.requests.help import guide
from bot.service.requests.question import Question
from bot.service.requests.votes import Votes
from bot.service.resuming import Resuming, Stops, Together, VenueOf, catch_up
from bot.service.runs import Runs
from bot.service.shared_queue import SharedQueue
from bot.view.details import Detail, detail
from bot.view.fold import run_view
from bot.view.message import Message
from bot.view.state import opening
from bot.view.wording.service import failures, replies
from bot.view.wording.service.access import NOT_HERE
from council.brief import Attachment
from council.cancel import Stop
from council.document.conversation import Conversation, Source
from council.errors import ModelError, RunStopped
from council.events import RunAdmitted, RunQueued
from council.offload import in_turn
from council.profile import Profile
from council.task_group import TaskGroup
from storage.documents.conversations import Conversations
from storage.errors import ConversationNotFound, RunSuperseded, StorageError
from storage.index.index import Index
from storage.index.statistics import Typical
from storage.journal.journal import Delivery, Journal, RunRow, Telling

log = structlog.get_logger()

TYPICAL_SECONDS = 0.1
"""How long a card may wait for what questions take there."""
HALT_SECONDS = 10.0
LONGEST_QUESTION = 20_000


@dataclass(frozen=True, slots=True)
class Click:
    """A pressed button: its value, and by whom and where it was pressed."""

    run_id: str
    source: Source
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs have their turn, wait for it, or have an asker who couldn't be told yet."""

    running: int
    queued: int
    untold: int


class Dispatcher:
    """Accepts, queues, shows and stops runs; knows no platform.

    With a queue that several processes share, it leaves accepted runs to whoever takes them up.
    """

    def __init__(
        self,
        *,
        runs: Runs,
        journal: Journal,
        store: Conversations,
        index: Index,
        queue: Queue,
        durability: Durability | None = None,
        admins: Admins | None = None,
        shared_queue: SharedQueue | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._runs = runs
        self._shared_queue = shared_queue
        self._journal = journal
        self._store = store
        self._index = index
        self._queue = queue
        self.votes = Votes(store, index, runs.now)
        self.follow_ups = FollowUps(store)
        self._backlog = Backlog(queue.limits, clock)
        self._durability = durability or Durability()
        self.admins = admins or Admins()
        self.channels = runs.channels
        self.warnings = runs.warnings
        self._clock = clock
        self._stops = Stops()
        self._shown: set[str] = set()
        self._presenters: dict[str, Presenter] = {}
        self._typical: dict[str, asyncio.Task[Typical | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        self.resuming = Resuming(
            runs,
            journal,
            self._stops,
            self._restart,
            within=self._durability.resume_within,
            sleep=sleep,
            is_shared=shared_queue is not None,
        )

    async def accept(self, question: Question) -> RunRow | None:
        """Record a question as a run; return `None` if it was delivered before.

        Files without a text hold the question. Raises `Refusal` or `UsageError` with what to tell the
        asker.
        """
        text = question.text.strip() or _in_files(question.attachments)
        if self._draining:
            raise Refusal(replies.RESTARTING)
        if not text:
            raise Refusal(replies.NO_QUESTION)
        if len(text) > LONGEST_QUESTION:
            raise Refusal(replies.too_long(LONGEST_QUESTION))
        entry_key = f"{question.source.platform}:{question.entry_key}"
        by = asyncio.get_running_loop().time() + ACCEPT_SECONDS
        run: RunRow | None = None
        self._runs.acknowledgements.expect(entry_key)
        # Read beside the writing, so that no card waits for it.
        looking = asyncio.create_task(self._look_up_typical(question.source))
        try:
            async with asyncio.timeout_at(by):
                here = await self.channels.in_force(question.place)
            profile = here.profile(question.options)
            here.check(question.source, question.standing, profile.name)
            # A private run is paid for where it takes place.
            budgets = None if question.asked_in else here.budgets
            whole = replace(question, text=text, entry_key=entry_key)
            run = await self._write_down(whole, profile, by, budgets)
        except (TimeoutError, StorageError) as error:
            log.warning("question_not_taken", reason=error)
            raise Refusal(replies.NOT_SAVED) from error
        finally:
            if run is None:  # otherwise it is acknowledged by its card
                self._runs.acknowledgements.settle(entry_key)
                looking.cancel()
        if run is not None:
            self._typical[run.id] = looking
        return run

    async def _look_up_typical(self, here: Source) -> Typical | None:
        """Return what a question takes there, if that is known soon."""
        try:
            async with asyncio.timeout(TYPICAL_SECONDS):
                return await self._index.typical(here)
        except (TimeoutError, StorageError):  # the card is as well without
            return None

    async def _write_down(
        self, question: Question, profile: Profile, by: float, budgets: Budgets | None
    ) -> RunRow | None:
        entry_key, source = question.entry_key, question.source
        context = question.context if profile.context == "thread" else None
        bounds = self._shared_queue.bounds if self._shared_queue else None
        try:
            with self._backlog.admitted(entry_key, source) as is_new:
                async with asyncio.timeout_at(by):
                    continued = question.conversation_id or await self._journal.conversation_in(source)
                    if context and await self._journal.opened_thread(source):
                        context = None  # what was said there is the conversation itself
                # No timeout around this: only the write itself knows whether it was done.
                whole = replace(question, conversation_id=continued, context=context)
                begun = await self._runs.record(whole, profile, by=by, budgets=budgets, bounds=bounds)
        except OverLimit:
            async with asyncio.timeout_at(by):
                if await self._journal.knows(entry_key):
                    return None
            raise
        if bounds or (is_new and not begun.created):
            self._backlog.release(entry_key)
        return begun.run if begun.created else None

    def begin(self, run: RunRow, venue: Venue) -> None:
        """Carry out a run and show it, in a task of its own."""
        if run.id in self._shown:  # a workspace that is opened again may have found it first
            return
        if self._shared_queue:
            self._shown.add(run.id)
            self.spawn(self._hand_over(run, venue, self._shared_queue))
        else:
            self._start(run, venue)

    async def take_up(self, run: RunRow, venue: Venue, shared_queue: SharedQueue) -> Delivery | None:
        """Carry out a run that this process has claimed, and show it; return how that ended."""
        if not run.is_over and run.epoch > 1 and self._runs.age(run) > self._durability.resume_within:
            run = await self._runs.give_up(run)
        self._shown.add(run.id)
        stop = self._stops.of(run)
        shared_queue.claims.add(run, stop)
        return await self._see_through(run, venue, stop, Together(1))

    async def retry(self, click: Click, standing: Standing, venue_of: VenueOf) -> str:
        """Repeat a run that has no answer, on its card; return what happens. Raises `Refusal`."""
        run = await self.run_of(click)
        here = await self.in_force(click.source)
        here.check(click.source, standing, run.brief.profile.name)
        if self._draining:
            raise Refusal(replies.RESTARTING)
        if self._shared_queue:
            return await self._shared_queue.retry(run, click.source)
        if run.id in self._shown:  # reopened now, it would be overwritten by its ending
            raise Refusal(replies.IN_PROGRESS)
        venue = venue_of(run)
        if venue is None:
            raise Refusal(replies.ANSWERED)
        self._shown.add(run.id)  # nor may how it failed be shown once more meanwhile
        reopened: RunRow | None = None
        try:
            with self._backlog.admitted(run.entry_key, run.origin):
                reopened = await self._runs.reopen(run, click.source)
                if reopened is None:
                    raise Refusal(replies.ANSWERED)
                self._start(reopened, venue, Together(1))
        finally:
            if reopened is None:
                self._shown.discard(run.id)
        return replies.RESUMING

    async def stop(self, click: Click, asker: str | None) -> str:
        """End a run's members' calls or, at a second press, its chairman's; return what happened.

        Raises `Refusal`.
        """
        is_admin = self.admins.include(click.source, by_platform=click.is_admin)
        if self._shared_queue:
            check("stop", click.source, is_admin=is_admin, asker=asker)
            return await self._shared_queue.stop(click.run_id)
        stop = self._stops.get(click.run_id)
        if stop is None:
            raise Refusal(replies.OVER)
        check("stop", click.source, is_admin=is_admin, asker=asker)
        again = stop.pressed
        stop.press()
        try:
            await self._journal.press_stop(click.run_id)
        except StorageError:  # it is stopped in any case; only a restart now would forget it
            log.exception("stop_not_recorded", run=click.run_id)
        if again:
            return replies.ENDING
        return replies.STOPPING

    async def is_first(self, click: str) -> bool:
        """Return whether no process has seen a click before; a platform may deliver it to several."""
        return await self._shared_queue.is_first(click) if self._shared_queue else True

    async def run_of(self, click: Click, action: Action = "look") -> RunRow:
        """Find the run of a click, if that person may do this there. Raises `Refusal`."""
        run = await self._journal.get(click.run_id)
        if run is None:
            raise Refusal(NOT_HERE)
        check_place(run.origin, click.source)
        is_admin = self.admins.include(click.source, by_platform=click.is_admin)
        check(action, click.source, is_admin=is_admin, asker=run.origin.user)
        return run

    async def run_shown_as(self, here: Source, message: str) -> RunRow | None:
        """Find the run whose card or part is this message. Raises `Refusal`."""
        try:
            return await self._journal.shown_as(here, message)
        except StorageError as error:
            raise Refusal(failures.explain(error, "")) from error

    async def transcript(self, run: RunRow) -> tuple[File, ...]:
        """Return a run's conversation as files. Raises `Refusal`."""
        try:
            return await asyncio.to_thread(files_of, await self._stored(run))
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error

    async def _page(self, run: RunRow) -> File:
        return await in_turn(page_of, await self._stored(run))

    async def _stored(self, run: RunRow) -> Conversation:
        return await self._store.load(run.conversation_id)

    async def detail(self, run: RunRow, what: Detail, seat: int) -> Message:
        """Return what a button below a thread's message shows. Raises `Refusal`."""
        if presenter := self._presenters.get(run.id):
            return await asyncio.to_thread(detail, presenter.view, what, seat)
        try:
            conversation = await self._stored(run)
        except ConversationNotFound as error:
            raise Refusal(self._why_no_detail(run)) from error
        except StorageError as error:
            raise Refusal(failures.explain(error, run.id)) from error
        view = await asyncio.to_thread(run_view, conversation, run.id)
        if view is None:
            raise Refusal(self._why_no_detail(run))
        return await asyncio.to_thread(detail, view, what, seat)

    def _why_no_detail(self, run: RunRow) -> str:
        is_elsewhere = self._shared_queue is not None and not run.is_over
        return replies.IN_PROGRESS if is_elsewhere else replies.NOT_KEPT

    async def help(self, here: Source) -> Message:
        """Describe the council, the models that see a question, and what was spent here."""
        now = await self.in_force(here)
        return guide(
            [now.profile(RunOptions(profile=name)) for name in now.open_profiles],
            self._queue.limits,
            await self._index.spent(here),
            self._runs.costs.estimate_short,
            await self._runs.costs.used(here),
        )

    async def show_privately(
        self,
        message: Message,
        who: Source,
        is_admin: Callable[[], Awaitable[bool]],
        show: Callable[[Message], Awaitable[bool]],
    ) -> None:
        """Show somebody the reply to a command; an admin also reads which budgets are nearly used up."""
        if self.warnings:
            await self.warnings.at_command(message, who, is_admin, show)
        else:
            await show(message)

    async def in_force(self, here: Source) -> InForce:
        """Return what is in force in a channel. Raises `Refusal`."""
        try:
            return await self.channels.in_force(here)
        except StorageError as error:
            raise Refusal(failures.explain(error, "")) from error

    @property
    def resume_within(self) -> float:
        """How old, in seconds, an interrupted run may be that continues by itself."""
        return self._durability.resume_within

    def run_counts(self) -> RunCounts:
        """Count this process's runs."""
        if self._shared_queue:
            return RunCounts(
                self._shared_queue.claims.count, self._shared_queue.waiting, self._shared_queue.untold
            )
        return RunCounts(self._queue.running, self._queue.waiting, self.resuming.untold)

    def reconfigure(self, operator: Operator) -> None:
        """Use this configuration from the next question on; runs keep what they began with."""
        self.channels.operator = operator

    async def profile_names(self, here: Source) -> tuple[str, ...]:
        """Name the councils that can be asked in a channel. Raises `Refusal`."""
        return (await self.in_force(here)).open_profiles

    async def settled(self) -> None:
        """Wait until every run is over and shown."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def drain(self, seconds: float | None = None) -> None:
        """Take nothing new, and give running work some time to end; the next start resumes the rest."""
        self._draining = True
        if self._shared_queue:
            self._shared_queue.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._durability.drain_seconds if seconds is None else seconds):
                await self.settled()
        await self.resuming.close()
        left = [*self._tasks]
        for task in left:
            task.cancel()
        if self.warnings:
            await self.warnings.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _start(self, run: RunRow, venue: Venue, resumed: Together | None = None) -> None:
        if not run.is_over:
            self._backlog.count(run.entry_key, run.origin)
        self._shown.add(run.id)

        async def see_through() -> None:
            delivery = await self._see_through(run, venue, self._stops.of(run), resumed)
            self.resuming.shown(run, venue, delivery, is_last=self._draining)

        self.spawn(see_through())

    async def _hand_over(self, run: RunRow, venue: Venue, shared_queue: SharedQueue) -> None:
        """Post a run's card, then leave the run to a worker; show its place until one has it."""
        with structlog.contextvars.bound_contextvars(run=run.id):
            shared_queue.claims.add(run, Stop())  # once a worker has it, nothing more is shown from here
            try:
                presenter = await self._presenter(run, venue, is_new=True)
                presenter.hear(RunAdmitted(0.0))
                if await self._post_card(run, presenter):
                    await shared_queue.begin(run.id)
                    async for position in shared_queue.positions(run.id):
                        presenter.hear(RunQueued(position))
                        await presenter.show_place()
                else:  # nobody would see the answer, so nothing is spent; the asker was told why
                    await self._runs.fail(run, presenter.hear, RunStopped(), "stopped")
                    await self._runs.deliver(run, "shown")
                    await shared_queue.leave(run.id)
            except StorageError:
                log.exception("run_left_to_a_sweep")
            finally:
                shared_queue.claims.remove(run.id)
                self._runs.acknowledgements.settle(run.entry_key)
                self._shown.discard(run.id)

    def _restart(self, run: RunRow, venue: Venue, resumed: Together) -> None:
        if run.id not in self._shown:
            self._start(run, venue, resumed)

    async def _see_through(
        self, run: RunRow, venue: Venue, stop: Stop, resumed: Together | None
    ) -> Delivery | None:
        """Carry out a run and show it; return how the showing ended, `None` if it was cut off."""
        delivery: Delivery | None = None
        with structlog.contextvars.bound_contextvars(run=run.id):
            try:
                presenter = self._presenters[run.id] = await self._presenter(
                    run, venue, is_new=resumed is None
                )
                async with TaskGroup() as group:
                    group.create_task(self._carry_out(run, venue, presenter, stop))
                    delivery = await self._show(run, presenter, stop, resumed)
                if delivery:
                    await self._runs.deliver(run, delivery)
            except StorageError:
                log.exception("run_left_to_the_next_start")
            finally:
                self._backlog.release(run.entry_key)
                self._stops.remove(run.id)
                self._shown.discard(run.id)
                self._presenters.pop(run.id, None)
        return delivery

    async def _presenter(self, run: RunRow, venue: Venue, *, is_new: bool) -> Presenter:
        where = run.origin

        async def place(**changed: str | None) -> None:
            nonlocal where
            where = where.model_copy(update=changed)
            try:
                await self._journal.place(run.id, where)
            except StorageError:  # only a restart now would have to look for the card
                log.exception("place_not_recorded", run=run.id)

        async def note(telling: Telling) -> None:
            try:
                await self._journal.note_telling(run.id, telling)
            except StorageError:  # only a restart now could mention the asker once more
                log.exception("telling_not_recorded", run=run.id)

        async def is_wanted() -> bool:
            try:
                return await self._journal.origin(run) is not None
            except StorageError:  # if the journal can't be read, nothing counts as forgotten
                log.exception("run_not_read", run=run.id)
                return True

        looking = self._typical.pop(run.id, None)
        return Presenter(
            run.id,
            opening(
                run.brief.question,
                run.brief.profile,
                asker=run.brief.asker,
                now=self._clock(),
                typical=await looking if looking else None,
            ),
            venue,
            await self._journal.posts(run, is_new=is_new),
            run.telling,
            clock=self._clock,
            place=place,
            note=note,
            is_wanted=is_wanted,
            page=partial(self._page, run),
            edited=partial(self._runs.metrics.edited, run.origin.platform),
            none_due=self._runs.acknowledgements.none_due,
        )

    async def _carry_out(self, run: RunRow, venue: Venue, presenter: Presenter, stop: Stop) -> None:
        """Take a run through the queue and to its end; the card shows whatever ends it."""
        try:
            await self._take_turn(run, venue, presenter, stop)
        except RunSuperseded:
            raise
        except Exception as error:
            log.exception("run_crashed")
            await self._runs.fail(run, presenter.hear, error)

    async def _take_turn(self, run: RunRow, venue: Venue, presenter: Presenter, stop: Stop) -> None:
        source = run.origin
        ticket = Ticket(
            channel=channel_of(source),
            user=user_of(source),
            conversation=run.conversation_id,
        )

        async with AsyncExitStack() as stack:
            if self._shared_queue:  # its turn has come; even one that was stopped has to leave it
                await stack.enter_async_context(self._shared_queue.turn(run.id))
            else:
                turn = stack.enter_async_context(
                    self._queue.turn(ticket, lambda position: presenter.hear(RunQueued(position)))
                )
                with suppress(ModelError):  # stopped while it waited: it ends without a turn
                    await stop.members.guard(turn)
            self._backlog.release(run.entry_key)
            begun = run.brief.started_at
            presenter.hear(RunAdmitted(self._runs.since(begun) if begun else 0.0))
            await self._runs.carry_out(run, presenter.hear, stop, venue.read_discussion)

    async def _show(
        self, run: RunRow, presenter: Presenter, stop: Stop, resumed: Together | None
    ) -> Delivery | None:
        """Show a run to its end; whatever its card does, the run continues."""
        try:
            if resumed:
                await catch_up(presenter, resumed)
                await presenter.pick_up()
            elif not await self._post_card(run, presenter) and not presenter.has_spent:
                # Nobody would see the answer, so nothing is spent. What is paid for finds another way.
                stop.everything.cancel("stopped")
                if await presenter.ended_without_answer():
                    return "shown"  # only the asker was told why
            return await presenter.show()
        except Exception:
            log.exception("card_crashed")
            return "untold"

    async def _post_card(self, run: RunRow, presenter: Presenter) -> bool:
        try:
            return await presenter.post_card()
        finally:
            self._runs.acknowledgements.settle(run.entry_key)

    async def halt(self, run_ids: Sequence[str]) -> None:
        """End these runs, and wait until they are over or their time is up."""
        if self._shared_queue:
            await self._shared_queue.end(run_ids, HALT_SECONDS)
            return
        for run_id in run_ids:
            if stop := self._stops.get(run_id):
                stop.everything.cancel("stopped")
        with suppress(TimeoutError):
            async with asyncio.timeout(HALT_SECONDS):
                while any(run_id in self._shown for run_id in run_ids):  # noqa: ASYNC110 - it is soon over
                    await asyncio.sleep(0.05)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something in the background, referenced until it is done and awaited by `drain`."""
        # The event loop keeps no strong reference to its tasks.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _in_files(attachments: Sequence[Attachment]) -> str:
    named = [file.name for file in attachments]
    return replies.in_files(named) if named else ""
