"""One run: prepared, carried out, and ended; with journal, document and index."""

import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from bot.inputs.files import FileReader
from bot.inputs.links import PageFetcher, PublicPages
from bot.service.accept import Recorder, utc_now
from bot.service.costs import Costs
from bot.service.inputs import (
    Fetch,
    Prepared,
    check,
    files_read,
    fit,
    has_inputs,
    picturing,
    read_inputs,
    records,
)
from bot.service.metrics import Metrics
from bot.service.operator_notices import OperatorNotices, Remedies
from bot.service.waits import Acknowledgements, keep, until_written, when_connected
from bot.view.wording.failures import explain
from council.brief import Brief, Discussion
from council.calls import Ask, Call, Reply
from council.document.conversation import AssistantMessage, Conversation, timestamp
from council.errors import CouncilError, ModelError, RunError, RunForgotten, RunStopped
from council.events import ContextRead, Emit, HistoryShortened, RunCompleted, RunFailed
from council.prompts.opening import recent, room_beside, turns
from council.run import deliberate
from council.tasks import Stop
from storage.documents.conversations import Stored
from storage.errors import (
    ConstraintError,
    ConversationNotFound,
    DamageError,
    RunSuperseded,
    StorageError,
)
from storage.index.index import Index
from storage.journal.rows import Delivery, Ended, EndReason, RunRow
from storage.scope import TERMINAL

ReadDiscussion = Callable[[Brief, int], Coroutine[Any, Any, Discussion]]
"""Reads the thread in which a brief's question was asked, up to this many tokens."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a run's platform lets it read the thread around a question, and files."""

    read_discussion: ReadDiscussion | None = None
    fetch: Fetch | None = None


log = structlog.get_logger()
NO_SOURCES = Sources()


@dataclass(slots=True)
class Runs:
    """Carries out runs that `recorder` has recorded, and records how they end.

    `operators` tells admins what they can mend. Where other processes may claim a run, `wait_for_claim`
    returns when it may make a call; never if one has.
    """

    ask: Ask
    costs: Costs
    index: Index
    metrics: Metrics = field(default_factory=Metrics)
    operators: OperatorNotices | None = None
    remedies: Remedies = field(default_factory=Remedies)
    now: Callable[[], datetime] = utc_now
    entropy: random.Random = field(default_factory=random.SystemRandom)
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    files: FileReader = field(default_factory=FileReader)
    fetcher: PageFetcher = field(default_factory=PublicPages)
    wait_for_claim: Callable[[str], Awaitable[None]] | None = None
    recorder: Recorder = field(init=False)
    _not_closed: dict[str, tuple[Ended, EndReason | None]] = field(
        init=False, default_factory=dict[str, tuple[Ended, EndReason | None]]
    )

    def __post_init__(self) -> None:
        self.recorder = Recorder(costs=self.costs, now=self.now, entropy=self.entropy)

    async def carry_out(
        self, run: RunRow, emit: Emit, stop: Stop | None = None, sources: Sources = NO_SOURCES
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
            told = emit
            if run.origin.platform != TERMINAL and not run.is_over:  # a terminal shows what the log says
                tell = partial(self.operators.begin, run.origin) if self.operators else None
                told = self.remedies.logged(run.brief.profile, emit, tell)
            told = self.metrics.of_events(told)
            try:
                message = await self._answer(run, told, stop or Stop(), sources)
            except RunSuperseded:  # it is another worker's to end
                raise
            except CouncilError as error:
                why = await self._cause(run, error)
                ended = "stopped" if isinstance(why, RunStopped | RunForgotten) else "failed"
                await self.fail(run, told, why, ended)
                return None
            except Exception as error:
                log.exception("run_crashed")
                await self.fail(run, told, error)
                return None
            # An earlier process may have counted it.
            await self._close(run, "answered", is_counted=run.is_over)
            emit(RunCompleted(run.id, run.conversation_id, message))
            return message

    async def _prepare(self, run: RunRow, emit: Emit, stop: Stop, sources: Sources) -> Brief:
        """Look up what the first call needs, once, and record it with the run.

        That is: what the models support, the thread around the question, the files of both, and the
        conversation, which is complete now that earlier runs are over. Stop ends the reading, as it ends
        calls. Raises `NothingRead`.
        """
        brief = run.brief
        if brief.started_at is not None:
            return brief
        costs = self.costs
        profile = await costs.catalog.resolve(brief.profile)
        window = costs.catalog.window(profile)
        prepared = Prepared(brief)
        if has_inputs(brief):
            try:
                prepared = await stop.members.guard(self._read(brief, window, sources))
            except ModelError as error:  # it is read again after a Retry
                raise RunStopped from error
        read = prepared.brief.model_copy(
            update={
                "profile": profile,
                "started_at": timestamp(self.now()),
            }
        )

        async def beside_earlier() -> Brief:
            try:
                conversation = await until_written(lambda: costs.store.load(run.conversation_id), emit)
            except ConversationNotFound:  # this question begins it
                brief = fit(read, window)
                history = recent(run.brief.history.turns, room_beside(window, _texts(brief)))
                return brief.model_copy(update={"history": history})
            files = await until_written(lambda: costs.journal.earlier_files(run), emit)
            brief = fit(read, window, files)
            history = recent(turns(conversation), room_beside(window, _texts(brief)))
            return brief.model_copy(update={"history": history})

        brief = await beside_earlier()
        check(brief)
        budgets = await costs.budgets_of(run, emit)
        worst = await costs.worst(budgets, profile, run.origin)
        while True:
            # Now the texts and the prices are known.
            reservation = budgets.reservation(costs.estimate(brief), run.origin, worst)
            preparing = partial(costs.journal.prepare, run.id, brief, reservation, prepared.pictures)
            await keep(preparing, emit)
            # What is forgotten just now would stay in the row, and be sent.
            if brief.history.is_empty or (again := await beside_earlier()) == brief:
                break
            brief = again
        costs.warn(run.origin, budgets)
        return brief

    async def _read(self, brief: Brief, window: int, sources: Sources) -> Prepared:
        if brief.context and sources.read_discussion:
            room = room_beside(window, _texts(brief))
            context = await sources.read_discussion(brief, room)
            brief = brief.model_copy(update={"context": context})
        return await read_inputs(self.files, brief, sources.fetch, self.fetcher)

    async def _answer(self, run: RunRow, emit: Emit, stop: Stop, sources: Sources) -> AssistantMessage:
        journal = self.costs.journal
        brief = await self._prepare(run, emit, stop, sources)
        if read := ContextRead.of(brief.context):
            emit(read)
        if given := files_read(brief):
            emit(given)
        if shortened := _shortened(brief):
            emit(shortened)
        steps = await until_written(lambda: journal.steps(run), emit)
        steps.keep = partial(keep, emit=emit)  # none is lost to a disk that can't be written
        budget = self.costs.budget(run, brief, steps, emit)
        shown = picturing(lambda: journal.pictures(run, brief.pictures))

        async def asked(call: Call) -> Reply:
            await self.acknowledgements.acknowledged()
            if self.wait_for_claim is not None:  # until the run is certainly this process's
                await self.wait_for_claim(run.id)
            with self.metrics.of_call(call) as answered:
                async with budget(call) as (bounded, count):
                    ready = await shown(bounded)
                    reply = await when_connected(lambda: self.ask(ready), emit)
                    count(reply.usage)
                answered(reply)
            return reply

        deliberation = await deliberate(
            brief,
            ask=asked,
            steps=steps,
            emit=emit,
            now=self.now,
            stop=stop,
            price_of=partial(self.costs.prices, brief.profile.name),
        )
        files, links = records(brief.attachments, deliberation.saw)
        if brief.pictures and (seen := files_read(brief, deliberation.saw)) and seen != given:
            emit(seen)
        message = deliberation.message.model_copy(update={"run_id": run.id, "asked_by": run.origin.user})

        async def save() -> Stored:
            origin = await journal.origin(run)
            if origin is None:  # forgotten while it ran, or while it waited for the disk
                raise RunForgotten
            stored = await self.costs.store.add_exchange(
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
        return answer_in(stored.conversation, run) or message

    async def _context(self, run: RunRow, brief: Brief) -> Discussion | None:
        """Return the thread that a run read, without messages forgotten since."""
        if brief.context is None:
            return None
        try:
            row = await self.costs.journal.get(run.id)
        except DamageError:  # a row that can't be read has forgotten nobody
            row = None
        return row.brief.context if row else brief.context

    async def _without_forgotten(self, stored: Stored, run: RunRow, brief: Brief) -> Stored:
        """Remove from the document what was forgotten while it was written."""
        read = _authors(brief.context)
        gone = read - _authors(await self._context(run, brief)) if read else read
        for author in sorted(gone):
            left = await self.costs.store.remove_questions(run.conversation_id, author)
            if left is None:
                raise RunForgotten
            stored = left
        return stored

    async def _cause(self, run: RunRow, error: CouncilError) -> CouncilError:
        """Return what ended a run: if its row is gone, it was forgotten."""
        if not isinstance(error, ConstraintError):
            return error
        try:
            return error if await self.costs.journal.origin(run) else RunForgotten()
        except StorageError:
            return error

    async def fail(self, run: RunRow, emit: Emit, error: Exception, status: Ended = "failed") -> None:
        """End a run without an answer; record why, and tell the observers."""
        if isinstance(error, StorageError):
            log.error("run_failed", reason=error)  # only this says where the file is
        failures = error.failures if isinstance(error, RunError) else {}
        remedies = self.remedies.of(run.brief.profile, failures.items())
        owed = [each for each in remedies if each.is_operators]
        words = explain(
            error,
            run.id,
            at_terminal=run.origin.platform == TERMINAL,
            is_program=run.origin.program is not None,
            remedies=[each.remedy for each in remedies],
            admin_knows=bool(owed and self.operators and await self.operators.tell(run.origin, owed)),
        )
        await self._close(run, status, EndReason(message=words, failures=failures))
        emit(RunFailed(run.id, words, failures))

    async def give_up(self, run: RunRow) -> RunRow:
        """End a run that was interrupted too long ago; what it recorded is kept for a Retry.

        If its answer had been written and only its end hadn't, it is answered.
        """
        with suppress(StorageError):  # there is no document yet, or a Retry finds what there is
            if answer_in(await self.costs.store.load(run.conversation_id), run):
                await self._close(run, "answered")
                return replace(run, status="answered")
        why = EndReason(message="Interrupted. Press Continue: finished calls aren't paid twice.")
        await self._close(run, "failed", why)
        return replace(run, status="failed", error=why)

    async def deliver(self, run: RunRow, delivery: Delivery) -> None:
        """Record that a run was fully shown, or that its asker couldn't be told.

        If its end couldn't be recorded before, that comes first: a run that is shown but open would keep
        its reservation, take no follow-up, and be left out by every later start.
        """

        async def write() -> None:
            if ended := self._not_closed.get(run.id):
                await self.costs.journal.finish(run.id, *ended)
            await self.costs.journal.deliver(run.id, delivery)

        try:
            await until_written(write, lambda _: None)  # all that people see is shown
        finally:
            self._not_closed.pop(run.id, None)

    async def _close(
        self, run: RunRow, status: Ended, why: EndReason | None = None, *, is_counted: bool = False
    ) -> None:
        try:
            await self.costs.journal.finish(run.id, status, why)
        except StorageError:  # the asker is told in any case, and `deliver` writes it then
            log.exception("run_not_closed")
            self._not_closed[run.id] = status, why
        if not is_counted:
            self.metrics.runs_ended[status] += 1


def _texts(brief: Brief) -> list[str]:
    files = (*brief.attachments, *brief.earlier)
    return [
        brief.question,
        *(file.text for file in files),
        *(brief.context.texts if brief.context else ()),
    ]


def answer_in(conversation: Conversation, run: RunRow) -> AssistantMessage | None:
    return next((each for each in conversation.answers if each.run_id == run.id), None)


def _authors(context: Discussion | None) -> set[str]:
    return {message.author for message in context.messages} if context else set()


def _shortened(brief: Brief) -> HistoryShortened | None:
    history = brief.history
    titles = sum(turn.answer is None for turn in history.turns)
    if not (titles or history.left_out or history.cut):
        return None
    return HistoryShortened(len(history.turns) - titles, titles, history.left_out, history.cut)
