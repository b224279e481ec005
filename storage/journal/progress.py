"""What one run has recorded: the calls that have ended, and the messages that were posted."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Concatenate

import structlog
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import override

from council.calls import Call, Outcome, Reply, Steps
from council.document.conversation import timestamp
from council.errors import Failure
from storage.database import Database
from storage.journal import spending
from storage.journal.rows import Allowance, Clock, RunRow

log = structlog.stdlib.get_logger()

_RECORD_STEP = """
INSERT INTO steps (run_id, key, digest, outcome, recorded_at, attempt) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, key) DO UPDATE
SET digest = excluded.digest, outcome = excluded.outcome, recorded_at = excluded.recorded_at,
    attempt = excluded.attempt
WHERE steps.digest <> excluded.digest
"""
# One statement, because each waits for the database's thread: a thousand runs may resume at once.
_STEPS = f"""
WITH allowance AS MATERIALIZED ({spending.ALLOWANCE})
SELECT key, digest, outcome, reserved, spent, unpriced_call
FROM (SELECT 1) AS always LEFT JOIN steps ON run_id = ? LEFT JOIN allowance ON true
"""  # noqa: S608 - our own words
_RECORD_POST = """
INSERT INTO posts (run_id, key, digest, message, posted_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run_id, key) DO UPDATE
SET digest = excluded.digest, message = excluded.message, posted_at = excluded.posted_at
"""


class _Replied(BaseModel):
    reply: Reply


class _Failed(BaseModel):
    failure: Failure


# An outcome's stored form: `{"reply": {...}}` or `{"failure": {...}}`.
_RECORDED: TypeAdapter[_Replied | _Failed] = TypeAdapter(
    _Replied | _Failed, config=ConfigDict(hide_input_in_errors=True)
)


Write = Callable[Concatenate[str, ...], Awaitable[None]]
"""Writes statements about a run; returns when they are durable. Raises `RunSuperseded`."""


class RunSteps(Steps):
    """What one run remembers of its calls; `allowance` is what it might spend when that was loaded.

    That is `None` if no budget bounds it. `keep` insists on what records an outcome.
    """

    def __init__(
        self,
        write: Write,
        run: RunRow,
        recorded: dict[str, tuple[str, Outcome]],
        allowance: Allowance | None,
        now: Clock,
    ) -> None:
        self.allowance = allowance
        self._write = write
        self._run = run
        self._recorded = recorded
        self._now = now
        self._sent: dict[str, int] = {}
        self.keep: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]] = lambda write: write()

    @override
    def recall(self, call: Call) -> Outcome | None:
        digest, outcome = self._recorded.get(call.step, ("", None))
        # A retried member may have changed what the later stages are asked.
        return None if self._run.retries and digest != call.digest else outcome

    @override
    async def record(self, call: Call, outcome: Outcome) -> None:
        digest = call.digest
        known = self._recorded.get(call.step)
        if known is None or known[0] != digest:  # the first outcome is kept
            self._recorded[call.step] = digest, outcome
        recorded = _Replied(reply=outcome) if isinstance(outcome, Reply) else _Failed(failure=outcome)
        text, run = recorded.model_dump_json(exclude_defaults=True), self._run
        step = run.id, call.step, digest, text, timestamp(self._now()), run.retries
        sent = self._sent.get(call.step, 0)
        taking = [(spending.RECEIVE, (sent, run.id, run.retries, run.id, call.step, digest))]
        statements = *(taking if sent else []), (_RECORD_STEP, step)
        await self.keep(lambda: self._write(run.id, *statements))
        self._sent.pop(call.step, None)

    async def send(self, step: str, amount: int) -> None:
        """Note, before a request of a step is sent, what it may cost, in billionths of a dollar.

        It counts until the step's outcome is recorded, also if this process doesn't live until then.
        """
        statement = spending.SEND, (amount, self._run.id, self._run.retries)
        writing = asyncio.ensure_future(self._write(self._run.id, statement))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # What is being written counts: the record that follows has to take it out again.
            await asyncio.wait({writing})
            raise
        finally:
            if writing.done() and not writing.cancelled() and writing.exception() is None:
                self._sent[step] = self._sent.get(step, 0) + amount

    @override
    def has_begun(self, stage: str) -> bool:
        return any(step.startswith(f"{stage}:") for step in self._recorded)


async def load_steps(database: Database, write: Write, run: RunRow, now: Clock) -> RunSteps:
    """Load what a run has recorded so far, ready to record more."""
    rows = await database.read(_STEPS, (run.id, run.id))
    recorded: dict[str, tuple[str, Outcome]] = {}
    for row in rows:
        if row["key"] is None:  # there is no step yet
            continue
        try:
            recorded[row["key"]] = row["digest"], _outcome(row["outcome"])
        except ValidationError as error:  # the call is made again
            leave_out(database, run.id, error)
    bounds = {name: rows[0][name] for name in ("reserved", "spent", "unpriced_call")}
    allowance = None if bounds["reserved"] is None else Allowance(**bounds)
    return RunSteps(write, run, recorded, allowance, now)


class Posts:
    """What one run has posted beside its card: a run that is continued posts nothing twice."""

    def __init__(
        self, write: Write, run: RunRow, posted: dict[str, tuple[str, str]], now: Clock
    ) -> None:
        self._write = write
        self._run = run
        self._posted = posted
        self._now = now

    @property
    def messages(self) -> frozenset[str]:
        return frozenset(message for _, message in self._posted.values() if message)

    def has(self, key: str, text: str) -> bool:
        """Whether this part is posted; after a Retry, whether it said just this."""
        posted = self._posted.get(key)
        return posted is not None and (not self._run.retries or posted[0] == _digest(text))

    async def record(self, key: str, text: str, message: str) -> None:
        """Keep that a part was posted, as this message; returns when that is durable.

        `message` is empty where the platform never said which one it is.
        """
        digest = _digest(text)
        self._posted[key] = digest, message
        row = (self._run.id, key, digest, message, timestamp(self._now()))
        await self._write(self._run.id, (_RECORD_POST, row))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _outcome(text: str) -> Outcome:
    recorded = _RECORDED.validate_json(text)
    return recorded.reply if isinstance(recorded, _Replied) else recorded.failure


def leave_out(database: Database, run_id: str, error: ValueError) -> None:
    """Skip an unreadable row; if it is cut off, have the next start repair the database."""
    log.error("journal_row_unreadable", run=run_id)
    if isinstance(error, ValidationError) and any(
        detail["type"] == "json_invalid" for detail in error.errors()
    ):
        database.mark_damage()
