"""Ends runs: answered, failed, stopped, or given up."""

from dataclasses import dataclass, field, replace

import structlog

from bot.service.admission.operator_notices import OperatorNotices
from bot.service.durable_writes import until_written
from bot.service.metrics import Metrics
from bot.service.remedies import Remedies
from bot.view.wording.failures import explain
from council.document.conversation import AssistantMessage, Conversation
from council.errors import RunError
from council.events import Emit, RunFailed
from storage.documents.conversations import Conversations
from storage.errors import StorageError
from storage.journal.journal import Journal
from storage.journal.rows import Delivery, Ended, EndReason, RunRow
from storage.scope import TERMINAL

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endings:
    """Records how runs end, counts them and says why; `operators` tells admins what they can mend."""

    journal: Journal
    store: Conversations
    metrics: Metrics
    remedies: Remedies
    operators: OperatorNotices | None = None
    _not_closed: dict[str, tuple[Ended, EndReason | None]] = field(
        default_factory=dict[str, tuple[Ended, EndReason | None]]
    )

    async def answered(self, run: RunRow) -> None:
        """Record that a run has its answer; an earlier process may have counted it."""
        await self._close(run, "answered", is_counted=run.is_over)

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
        if await self._is_written(run):
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
                await self.journal.finish(run.id, *ended)
            await self.journal.deliver(run.id, delivery)

        try:
            await until_written(write, lambda _: None)  # all that people see is shown
        finally:
            self._not_closed.pop(run.id, None)

    async def _close(
        self, run: RunRow, status: Ended, why: EndReason | None = None, *, is_counted: bool = False
    ) -> None:
        try:
            await self.journal.finish(run.id, status, why)
        except StorageError:  # the asker is told in any case, and `deliver` writes it then
            log.exception("run_not_closed")
            self._not_closed[run.id] = status, why
        if not is_counted:
            self.metrics.runs_ended[status] += 1

    async def _is_written(self, run: RunRow) -> bool:
        try:
            conversation = await self.store.load(run.conversation_id)
        except StorageError:  # there is none yet, or it can't be read now: a Retry finds what there is
            return False
        return answer_in(conversation, run) is not None


def answer_in(conversation: Conversation, run: RunRow) -> AssistantMessage | None:
    """Return the answer that a run has written to its conversation."""
    return next((each for each in conversation.answers if each.run_id == run.id), None)
