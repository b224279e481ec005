"""Records questions as runs and carries them out, with journal, document and index."""

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog

from bot.inputs.links import PageFetcher, PublicPages
from bot.inputs.reading import FileReader
from bot.service.acknowledgements import Acknowledgements
from bot.service.admission.budget_warnings import BudgetWarnings
from bot.service.admission.budgets import Budgets, is_exempt, refusal
from bot.service.admission.channels import Channels
from bot.service.admission.costs import Costs, Prices, unknown
from bot.service.admission.limits import entry_of, over_limit
from bot.service.durable_writes import DurableSteps, connected, keep, until_written
from bot.service.inputs import (
    Fetch,
    Prepared,
    check,
    files_read,
    fit,
    has_inputs,
    read_inputs,
    records,
    showing,
)
from bot.service.metrics import Metrics
from bot.service.remedies import Remedies
from bot.service.requests.question import Question
from bot.service.traces import Trace, Traces, untraced
from bot.view.wording.failures import INTERRUPTED, explain
from council.brief import Brief, CorrectionRecord, Discussion
from council.calls import Ask, Call, Reply, wrap
from council.cancel import Stop
from council.document.conversation import (
    AssistantMessage,
    Conversation,
    Source,
    timestamp,
)
from council.errors import CouncilError, Failure, ModelError, RunError, RunForgotten, RunStopped
from council.events import ContextRead, Emit, Event, HistoryShortened, RunCompleted, RunFailed
from council.models.catalog import Catalog
from council.profile import Profile
from council.prompts.context import recent, room_beside, turns
from council.run import deliberate
from council.worth.corrections import spoils
from storage.documents.conversations import Conversations, Stored
from storage.errors import (
    BudgetExceeded,
    ConstraintError,
    ConversationNotFound,
    DamageError,
    QueueFull,
    RunSuperseded,
    StorageError,
)
from storage.index.index import Index
from storage.journal.journal import Journal
from storage.journal.rows import Begun, Delivery, Ended, EndReason, NewRun, RunRow
from storage.judged_corrections import JudgedCorrections
from storage.processes.coordination import Bounds
from storage.scope import TERMINAL

log = structlog.get_logger()


ReadDiscussion = Callable[[Brief, int], Coroutine[Any, Any, Discussion]]
"""Reads the thread in which a brief's question was asked, up to this many tokens."""


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


async def at_once(run_id: str) -> None:
    """Return at once: no other process can claim a run."""
    del run_id


@dataclass(slots=True, kw_only=True)
class Runs:
    """Records questions as runs and carries them out; `channels` says what is in force where.

    `judged` knows what members' corrections did. `prices` returns what a call costs; `warnings` tells
    admins of budgets that are nearly used up.
    """

    ask: Ask
    catalog: Catalog
    journal: Journal
    store: Conversations
    index: Index
    prices: Prices = unknown
    warnings: BudgetWarnings | None = None
    judged: JudgedCorrections | None = None
    channels: Channels = field(default_factory=Channels)
    now: Callable[[], datetime] = utc_now
    new_id: Callable[[], uuid.UUID] = uuid.uuid4
    entropy: random.Random = field(default_factory=random.SystemRandom)
    metrics: Metrics = field(default_factory=Metrics)
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    traces: Traces = untraced
    remedies: Remedies = field(default_factory=Remedies)
    files: FileReader = field(default_factory=FileReader)
    fetcher: PageFetcher = field(default_factory=PublicPages)
    wait_for_claim: Callable[[str], Awaitable[None]] = at_once
    """Returns when a run may make a call; never where it is another process's by now."""
    _not_closed: dict[str, tuple[Ended, EndReason | None]] = field(
        default_factory=dict[str, tuple[Ended, EndReason | None]]
    )

    @property
    def costs(self) -> Costs:
        """What these runs may cost."""
        return Costs(
            catalog=self.catalog,
            journal=self.journal,
            store=self.store,
            channels=self.channels,
            prices=self.prices,
            warnings=self.warnings,
        )

    async def record(
        self,
        question: Question,
        profile: Profile,
        *,
        by: float | None = None,
        budgets: Budgets | None = None,
        bounds: Bounds | None = None,
    ) -> Begun:
        """Record a run under a new id, or return the one that an earlier delivery of the question began.

        `profile` is the council that answers, with the question's options. This makes no call; from
        here on, the run doesn't depend on the configuration. Raises `TimeoutError` if writing hasn't
        begun by `by`, a time on the event loop's clock: then the run doesn't exist and never will.
        Raises `Refusal` if it may cost more than a budget has left: one of `budgets`, if they are known
        already, or else of those in force where it is asked. With `bounds`, it enters the queue that
        several processes share; raises `OverLimit` if too many wait there.
        """
        brief = question.brief(profile, self.entropy)
        run = NewRun(
            id=question.run_id or str(self.new_id()),
            entry_key=question.entry_key,
            conversation_id=question.conversation_id or str(self.new_id()),
            origin=question.source,
            brief=brief,
        )
        if is_exempt(question.source):
            return await self.journal.begin(run, by=by, pictures=question.pictures)
        if budgets is None:
            async with asyncio.timeout_at(by):
                budgets = await self.costs.budgets(question.source)
        budgets = budgets.within(question.ceilings)
        await self.costs.refresh_prices(profile, budgets)
        async with asyncio.timeout_at(by):
            cost = await self.costs.foresee(brief, question.conversation_id)
        reservation = budgets.reservation(cost, question.source)
        try:
            entry = entry_of(run) if bounds else None
            begun = await self.journal.begin(
                run,
                by=by,
                reservation=reservation,
                entry=entry,
                bounds=bounds,
                pictures=question.pictures,
            )
        except BudgetExceeded as error:
            raise refusal(error, cost) from error
        except QueueFull as error:
            raise (over_limit(error, bounds) if bounds else error) from error
        finally:
            self.costs.warn(question.source, budgets)
        return begun

    async def reopen(self, run: RunRow, source: Source, bounds: Bounds | None = None) -> RunRow | None:
        """Reopen a run without an answer; whoever presses Continue pays for it, at `source`.

        Returns `None` if there is none. Raises `Refusal` if a budget hasn't enough left. With `bounds`,
        it enters the queue that several processes share.
        """
        cost = self.costs.estimate(run.brief)
        budgets = await self.costs.budgets(source)
        try:
            return await self.journal.reopen(
                run.id,
                budgets.reservation(cost, source),
                entry=entry_of(run) if bounds else None,
                bounds=bounds,
            )
        except BudgetExceeded as error:
            raise refusal(error, cost) from error
        except QueueFull as error:
            raise (over_limit(error, bounds) if bounds else error) from error
        finally:
            self.costs.warn(source, budgets)

    async def carry_out(
        self,
        run: RunRow,
        emit: Emit,
        stop: Stop | None = None,
        read_discussion: ReadDiscussion | None = None,
        fetch: Fetch | None = None,
    ) -> AssistantMessage | None:
        """Carry out an accepted run; return its answer, or `None` if it has none.

        Either way, the end is in the journal and the observers know it. An interrupted run takes the
        same path again, and calls that the journal has aren't repeated. Unexpected errors are logged
        with the run's id and shown only as that id.
        """
        with structlog.contextvars.bound_contextvars(run=run.id):
            if run.error:
                emit(RunFailed(run.id, run.error.message, run.error.failures))
                return None
            # What an earlier process answered, and traced, is only shown again.
            with untraced(run) if run.is_over else self.traces(run) as trace:
                told = wrap(emit, trace.heard, self._logged(run), self.metrics.timed)
                sources = _Sources(read_discussion, fetch)
                message = await self._answer_or_fail(run, told, stop, sources, trace)
            if message is None:
                return None
            await self._close(run, "answered")
            if not run.is_over:  # it may have been answered by an earlier process
                self.metrics.runs_ended["answered"] += 1
            emit(RunCompleted(run.id, run.conversation_id, message))
            return message

    async def _answer_or_fail(
        self,
        run: RunRow,
        emit: Emit,
        stop: Stop | None,
        sources: "_Sources",
        trace: Trace,
    ) -> AssistantMessage | None:
        try:
            message = await self._answer(run, emit, stop, sources, trace)
        except RunSuperseded as error:  # it is another worker's to end
            trace.ended("failed", error)
            raise
        except CouncilError as error:
            why = await self._cause(run, error)
            ended = "stopped" if isinstance(why, RunStopped | RunForgotten) else "failed"
            trace.ended(ended, why)
            await self.fail(run, emit, why, ended)
            return None
        except Exception as error:
            log.exception("run_crashed")
            trace.ended("failed", error)
            await self.fail(run, emit, error)
            return None
        trace.ended("answered")
        return message

    def age(self, run: RunRow) -> float:
        """Return the seconds since a run was accepted or retried, 0 if the clock was set back."""
        return self.since(run.retried_at or run.created_at)

    def since(self, moment: str) -> float:
        """Return the seconds since a time in ISO 8601, 0 if the clock was set back."""
        return max(0.0, (self.now() - datetime.fromisoformat(moment)).total_seconds())

    def ago(self, days: int) -> str:
        """Return the time this many days ago, in ISO 8601, UTC."""
        return timestamp(self.now() - timedelta(days=days))

    async def give_up(self, run: RunRow) -> RunRow:
        """End a run that was interrupted too long ago; what it recorded is kept for a Retry.

        If its answer had been written and only its end hadn't, it is answered.
        """
        if await self._is_written(run):
            await self._close(run, "answered")
            self.metrics.runs_ended["answered"] += 1
            return replace(run, status="answered")
        why = EndReason(message=INTERRUPTED)
        await self._close(run, "failed", why)
        self.metrics.runs_ended["failed"] += 1
        return replace(run, status="failed", error=why)

    async def _is_written(self, run: RunRow) -> bool:
        try:
            conversation = await self.store.load(run.conversation_id)
        except StorageError:  # there is none yet, or it can't be read now: a Retry finds what there is
            return False
        return _answer_in(conversation, run) is not None

    async def _answer(
        self,
        run: RunRow,
        emit: Emit,
        stop: Stop | None,
        sources: "_Sources",
        trace: Trace,
    ) -> AssistantMessage:
        brief = await self._prepared(run, emit, stop or Stop(), sources)
        if read := ContextRead.of(brief.context):
            emit(read)
        if given := files_read(brief):
            emit(given)
        if shortened := _shortened(brief):
            emit(shortened)
        steps = await until_written(lambda: self.journal.steps(run), emit)
        deliberation = await deliberate(
            brief,
            ask=wrap(
                self.ask,
                self.acknowledgements.before,
                self._claimed(run),
                trace.asked,
                self.costs.bounded(run, brief, steps, emit),
                showing(brief, lambda: self.journal.pictures(run, brief.pictures)),
                connected(emit),
                self.metrics.counted,
            ),
            steps=trace.recorded(DurableSteps(steps, emit)),
            emit=emit,
            now=self.now,
            stop=stop,
            price_of=partial(self.prices, brief.profile.name),
        )
        files, links = records(brief, deliberation.saw)
        if brief.pictures and (seen := files_read(brief, deliberation.saw)) and seen != given:
            emit(seen)
        message = deliberation.message.model_copy(update={"run_id": run.id, "asked_by": run.origin.user})

        async def save() -> Stored:
            origin = await self.journal.origin(run)
            if origin is None:  # forgotten while it ran, or while it waited for the disk
                raise RunForgotten
            stored = await self.store.add_exchange(
                run.conversation_id,
                run.brief.question,
                message,
                title=deliberation.title or run.brief.question,
                source=origin,
                now=self.now(),
                context=await self._context(run, brief),
                files=files,
                links=links,
            )
            return await self._without_forgotten(stored, run, brief)

        stored = await until_written(save, emit)
        if stored.set_aside:
            log.warning("broken_document_set_aside", copy=str(stored.set_aside))
        written = time.monotonic()
        try:
            await self.index.upsert(stored)
            self.metrics.index_lag.add(time.monotonic() - written)
        except StorageError:  # the answer is safe in its document, and the index can be rebuilt
            log.exception("answer_not_indexed", conversation=run.conversation_id)
        # A run that is shown again took the time of its first showing, not the time until now.
        return _answer_in(stored.conversation, run) or message

    def _logged(self, run: RunRow) -> Callable[[Emit], Emit]:
        """Return what logs what operators can do; a terminal shows what the log says."""
        if run.origin.platform == TERMINAL or run.is_over:
            return lambda emit: emit
        tell = partial(self.warnings.operators.begin, run.origin) if self.warnings else None
        return partial(self.remedies.logged, run.brief.profile, tell=tell)

    def _claimed(self, run: RunRow) -> Callable[[Ask], Ask]:
        """Return what lets calls wait until the run is certainly this process's."""

        def layer(ask: Ask) -> Ask:
            async def asked(call: Call) -> Reply:
                await self.wait_for_claim(run.id)
                return await ask(call)

            return asked

        return layer

    async def _context(self, run: RunRow, brief: Brief) -> Discussion | None:
        """Return the thread that a run read, without messages forgotten since."""
        try:
            row = await self.journal.get(run.id)
        except DamageError:  # a row that can't be read has forgotten nobody
            row = None
        return row.brief.context if row else brief.context

    async def _without_forgotten(self, stored: Stored, run: RunRow, brief: Brief) -> Stored:
        """Remove from the document what was forgotten while it was written."""
        read = _authors(brief.context)
        gone = read - _authors(await self._context(run, brief)) if read else read
        for author in sorted(gone):
            left = await self.store.remove_questions(run.conversation_id, author)
            if left is None:
                raise RunForgotten
            stored = left
        return stored

    async def _cause(self, run: RunRow, error: CouncilError) -> CouncilError:
        """Return what ended a run: if its row is gone, it was forgotten."""
        if not isinstance(error, ConstraintError):
            return error
        try:
            return error if await self.journal.origin(run) else RunForgotten()
        except StorageError:
            return error

    async def deliver(self, run: RunRow, delivery: Delivery) -> None:
        """Record that a run was fully shown, or that its asker couldn't be told.

        If its end couldn't be recorded before, that comes first: a run that is shown but open would keep
        its reservation, take no follow-up, and be left out by every later start.
        """

        async def write() -> None:
            if ended := self._not_closed.get(run.id):
                await self.journal.finish(run.id, *ended)
            await self.journal.deliver(run.id, delivery)

        try:
            await until_written(write, _to_nobody)
        finally:
            self._not_closed.pop(run.id, None)

    async def fail(self, run: RunRow, emit: Emit, error: Exception, status: Ended = "failed") -> None:
        """End a run without an answer; record why, and tell the observers."""
        if isinstance(error, StorageError):
            log.error("run_failed", reason=error)  # only this says where the file is
        failures = error.failures if isinstance(error, RunError) else {}
        words = explain(
            error,
            run.id,
            at_terminal=run.origin.platform == TERMINAL,
            remedies=self.remedies.advice(run.brief.profile, failures.items()),
            admin_knows=await self._tell_operators(run, failures),
        )
        await self._close(run, status, EndReason(message=words, failures=failures))
        self.metrics.runs_ended[status] += 1
        emit(RunFailed(run.id, words, failures))

    async def _tell_operators(self, run: RunRow, failures: Mapping[str, Failure]) -> bool:
        """Tell admins what only an operator can mend; return whether they know."""
        causes = self.remedies.operators(run.brief.profile, failures.items())
        if not (causes and self.warnings):
            return False
        return await self.warnings.operators.tell(run.origin, causes)

    async def _close(self, run: RunRow, status: Ended, why: EndReason | None = None) -> None:
        try:
            await self.journal.finish(run.id, status, why)
        except StorageError:  # the asker is told in any case, and `deliver` writes it then
            log.exception("run_not_closed")
            self._not_closed[run.id] = status, why

    async def _prepared(self, run: RunRow, emit: Emit, stop: Stop, sources: "_Sources") -> Brief:
        """Look up what the first call needs, once, and record it with the run.

        That is: what the models support, the thread around the question, the files of both, and the
        conversation, which is complete now that earlier runs are over. Stop ends the reading, as it ends
        calls. Raises `NothingRead`.
        """
        brief = run.brief
        if brief.started_at is not None:
            return brief
        profile = await self.catalog.resolve(brief.profile)
        window = self.catalog.window(profile)
        prepared = Prepared(brief)
        if has_inputs(brief):
            try:
                prepared = await stop.members.guard(self._read(brief, window, sources))
            except ModelError as error:  # it is read again after a Retry
                raise RunStopped from error
        read = prepared.brief.model_copy(
            update={
                "profile": profile,
                "uncorrected": await self._uncorrected(profile, emit),
                "started_at": timestamp(self.now()),
            }
        )

        async def beside_earlier() -> Brief:
            try:
                conversation = await until_written(lambda: self.store.load(run.conversation_id), emit)
            except ConversationNotFound:  # this question begins it
                brief = fit(read, window)
                history = recent(run.brief.history.turns, room_beside(window, _texts(brief)))
                return brief.model_copy(update={"history": history})
            files = await until_written(lambda: self.journal.earlier_files(run), emit)
            brief = fit(read, window, files)
            history = recent(turns(conversation), room_beside(window, _texts(brief)))
            return brief.model_copy(update={"history": history})

        brief = await beside_earlier()
        check(brief)
        budgets = await self.costs.budgets_of(run, emit)
        while True:
            # Now the texts and the prices are known.
            reservation = budgets.reservation(self.costs.estimate(brief), run.origin)
            preparing = partial(self.journal.prepare, run.id, brief, reservation, prepared.pictures)
            await keep(preparing, emit)
            # What is forgotten just now would stay in the row, and be sent.
            if brief.history.is_empty or (again := await beside_earlier()) == brief:
                break
            brief = again
        self.costs.warn(run.origin, budgets)
        return brief

    async def _uncorrected(self, profile: Profile, emit: Emit) -> dict[str, CorrectionRecord]:
        """Return whose corrections a run leaves out, because they are known to spoil answers."""
        if profile.corrections != "auto" or self.judged is None:
            return {}
        records = await until_written(self.judged.records, emit)
        names = (member.name for member in profile.members)
        return {name: records[name] for name in names if name in records and spoils(records[name])}

    async def _read(self, brief: Brief, window: int, sources: "_Sources") -> Prepared:
        """Read the thread around a question, and the files of both."""
        if brief.context and sources.read_discussion:
            room = room_beside(window, _texts(brief))
            context = await sources.read_discussion(brief, room)
            brief = brief.model_copy(update={"context": context})
        return await read_inputs(self.files, brief, sources.fetch, self.fetcher)


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where a run's platform lets it read the thread around a question, and files."""

    read_discussion: ReadDiscussion | None
    fetch: Fetch | None


def _texts(brief: Brief) -> list[str]:
    files = (*brief.attachments, *brief.earlier)
    return [
        brief.question,
        *(file.text for file in files),
        *(brief.context.texts if brief.context else ()),
    ]


def _to_nobody(event: Event) -> None:
    """Ignore an event: all that people see is shown."""
    del event


def _answer_in(conversation: Conversation, run: RunRow) -> AssistantMessage | None:
    return next((each for each in conversation.answers if each.run_id == run.id), None)


def _authors(context: Discussion | None) -> set[str]:
    return {message.author for message in context.messages} if context else set()


def _shortened(brief: Brief) -> HistoryShortened | None:
    history = brief.history
    titles = sum(turn.answer is None for turn in history.turns)
    if not (titles or history.left_out or history.cut):
        return None
    return HistoryShortened(len(history.turns) - titles, titles, history.left_out, history.cut)
