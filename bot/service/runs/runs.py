"""Carries out recorded runs, with journal, document and index."""

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import structlog

from bot.service.acknowledgements import Acknowledgements
from bot.service.admission.costs import Costs
from bot.service.admission.operator_notices import OperatorNotices
from bot.service.durable_writes import DurableSteps, until_written, when_connected
from bot.service.inputs import files_read, picturing, records
from bot.service.metrics import Metrics, Observation
from bot.service.remedies import Remedies
from bot.service.runs.ending import Endings, answer_in
from bot.service.runs.preparing import Preparation, Sources
from bot.service.runs.recording import Recorder, utc_now
from council.brief import Brief, Discussion
from council.calls import Ask, Call, Reply
from council.cancel import Stop
from council.document.conversation import AssistantMessage
from council.errors import CouncilError, RunForgotten, RunStopped
from council.events import ContextRead, Emit, HistoryShortened, RunCompleted, RunFailed
from council.run import deliberate
from storage.documents.conversations import Stored
from storage.errors import ConstraintError, DamageError, RunSuperseded, StorageError
from storage.index.index import Index
from storage.journal.rows import RunRow
from storage.scope import TERMINAL

log = structlog.get_logger()

NO_SOURCES = Sources()


@dataclass(slots=True, kw_only=True)
class Runs:
    """Carries out runs that `recorder` has recorded."""

    ask: Ask
    recorder: Recorder
    preparation: Preparation
    endings: Endings
    index: Index
    metrics: Metrics
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
    wait_for_claim: Callable[[str], Awaitable[None]] | None = None
    """Returns when a run may make a call, where other processes may claim one; never if one has."""

    @property
    def costs(self) -> Costs:
        return self.recorder.costs

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
            observed = Observation(self.metrics)
            told = observed.of_events(self._logged(run)(emit))
            try:
                message = await self._answer(run, told, stop or Stop(), sources, observed)
            except RunSuperseded:  # it is another worker's to end
                raise
            except CouncilError as error:
                why = await self._cause(run, error)
                ended = "stopped" if isinstance(why, RunStopped | RunForgotten) else "failed"
                await self.endings.fail(run, told, why, ended)
                return None
            except Exception as error:
                log.exception("run_crashed")
                await self.endings.fail(run, told, error)
                return None
            await self.endings.answered(run)
            emit(RunCompleted(run.id, run.conversation_id, message))
            return message

    async def _answer(
        self, run: RunRow, emit: Emit, stop: Stop, sources: Sources, observed: Observation
    ) -> AssistantMessage:
        journal = self.costs.journal
        brief = await self.preparation.prepare(run, emit, stop, sources)
        if read := ContextRead.of(brief.context):
            emit(read)
        if given := files_read(brief):
            emit(given)
        if shortened := _shortened(brief):
            emit(shortened)
        steps = await until_written(lambda: journal.steps(run), emit)
        budget = self.costs.budget(run, brief, steps, emit)
        shown = picturing(lambda: journal.pictures(run, brief.pictures))

        async def asked(call: Call) -> Reply:
            await self.acknowledgements.acknowledged()
            if self.wait_for_claim is not None:  # until the run is certainly this process's
                await self.wait_for_claim(run.id)
            with observed.of_call(call) as answered:
                async with budget(call) as (bounded, count):
                    ready = await shown(bounded)
                    reply = await when_connected(lambda: self.ask(ready), emit)
                    count(reply.usage)
                answered(reply)
            return reply

        deliberation = await deliberate(
            brief,
            ask=asked,
            steps=DurableSteps(steps, emit),
            emit=emit,
            now=self.recorder.now,
            stop=stop,
            price_of=partial(self.costs.prices, brief.profile.name),
        )
        files, links = records(brief, deliberation.saw)
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
                now=self.recorder.now(),
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

    def _logged(self, run: RunRow) -> Callable[[Emit], Emit]:
        """Return what logs what operators can do; a terminal shows what the log says."""
        if run.origin.platform == TERMINAL or run.is_over:
            return lambda emit: emit
        operators = self.endings.operators
        tell = partial(operators.begin, run.origin) if operators else None
        return partial(self.endings.remedies.logged, run.brief.profile, tell=tell)

    async def _context(self, run: RunRow, brief: Brief) -> Discussion | None:
        """Return the thread that a run read, without messages forgotten since."""
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


def _authors(context: Discussion | None) -> set[str]:
    return {message.author for message in context.messages} if context else set()


def _shortened(brief: Brief) -> HistoryShortened | None:
    history = brief.history
    titles = sum(turn.answer is None for turn in history.turns)
    if not (titles or history.left_out or history.cut):
        return None
    return HistoryShortened(len(history.turns) - titles, titles, history.left_out, history.cut)


def build_runs(
    ask: Ask,
    costs: Costs,
    index: Index,
    *,
    metrics: Metrics | None = None,
    operators: OperatorNotices | None = None,
    remedies: Remedies | None = None,
    now: Callable[[], datetime] = utc_now,
    entropy: random.Random | None = None,
    acknowledgements: Acknowledgements | None = None,
) -> Runs:
    """Put together what records, prepares, carries out and ends runs."""
    metrics = metrics or Metrics()
    return Runs(
        ask=ask,
        recorder=Recorder(costs=costs, now=now, entropy=entropy or random.SystemRandom()),
        preparation=Preparation(costs=costs, now=now),
        endings=Endings(
            journal=costs.journal,
            store=costs.store,
            metrics=metrics,
            remedies=remedies or Remedies(),
            operators=operators,
        ),
        index=index,
        metrics=metrics,
        acknowledgements=acknowledgements or Acknowledgements(),
    )
