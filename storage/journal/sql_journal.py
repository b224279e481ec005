"""The run journal in a database: the tables `runs`, `steps` and `posts`."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol, cast

import orjson
import structlog
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from council.brief import Brief
from council.calls import Call, Outcome, Reply
from council.document.conversation import Source, timestamp
from council.errors import Failure
from storage.database import Database, Row, SqlValue, Statement, listed
from storage.errors import ConstraintError, DamageError, QueueFull, RunSuperseded, StorageError, Used
from storage.journal import spending
from storage.journal.journal import (
    NOTHING_TOLD,
    Allowance,
    Begun,
    Clock,
    Delivery,
    Ended,
    NewRun,
    Reservation,
    RunRow,
    Telling,
    Why,
)
from storage.journal.spending import Spending
from storage.processes.coordination import Bounds, Entry

log = structlog.stdlib.get_logger()

_BEGIN_RUN = """
INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at)
VALUES (?, ?, ?, ?, ?, 'running', ?)
"""
_PREPARE = "UPDATE runs SET brief = ? WHERE id = ?"
_FINISH_RUN = """
UPDATE runs SET status = ?, error = ?, finished_at = ? WHERE id = ? AND status = 'running'
"""
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
_REOPEN_RUN = """
UPDATE runs SET status = 'running', error = NULL, finished_at = NULL, delivery = NULL, telling = NULL,
    stops = 0, retries = retries + 1, retried_at = :now
WHERE id = :run AND status IN ('failed', 'stopped')
"""
_ASKERS = """
SELECT conversation_id, asker FROM (
    SELECT conversation_id, brief ->> 'asker' AS asker,
        row_number() OVER (PARTITION BY conversation_id ORDER BY created_at) AS place
    FROM runs
    WHERE conversation_id IN (SELECT value FROM json_each(?)) AND brief ->> 'asker' IS NOT NULL
) AS asked WHERE place = 1
"""
_FORGET_FAILURES = """
DELETE FROM steps WHERE run_id = :run AND outcome ->> 'failure' IS NOT NULL
    AND (SELECT retried_at FROM runs WHERE id = :run) = :now
"""
# The stored epoch breaks its constraint where it isn't the claimed one; otherwise no row is changed.
_FENCE = "UPDATE runs SET epoch = NULL WHERE id = ? AND epoch <> ?"
_CLAIM = "UPDATE runs SET epoch = CASE WHEN epoch = ? THEN epoch + 1 END WHERE id = ?"
_CLAIM_TURN = """
UPDATE turns SET state = CASE state WHEN 'halted' THEN 'halted' ELSE 'claimed' END, worker = ?,
    changed_at = clock_timestamp()
WHERE run = ?
"""
_ACCEPT_TURN = "SELECT accept_turn(?, ?, ?, ?, ?, ?, ?)"
_ACCEPT_TURN_AGAIN = f"{_ACCEPT_TURN} WHERE (SELECT retried_at FROM runs WHERE id = ?) = ?"  # noqa: S608 - our own words
_FORGET_MENTION = """
DELETE FROM posts WHERE run_id = :run AND key = 'mention'
    AND (SELECT retried_at FROM runs WHERE id = :run) = :now
"""


class _Replied(BaseModel):
    reply: Reply


class _Failed(BaseModel):
    failure: Failure


# An outcome's stored form: `{"reply": {...}}` or `{"failure": {...}}`.
_RECORDED: TypeAdapter[_Replied | _Failed] = TypeAdapter(
    _Replied | _Failed, config=ConfigDict(hide_input_in_errors=True)
)
_ROW = TypeAdapter(RunRow)
_MOST_STOPS = 1_000


class _Write(Protocol):
    """Writes statements about a run. Raises `RunSuperseded`."""

    async def __call__(self, run_id: str, /, *statements: Statement) -> None: ...


class _Steps:
    """One run's steps, kept in memory and in the table; a `storage.journal.journal.RunSteps`."""

    def __init__(
        self,
        write: _Write,
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

    def recall(self, call: Call) -> Outcome | None:
        """Return the recorded outcome of a call's step, or `None` if it hasn't ended yet."""
        digest, outcome = self._recorded.get(call.step, ("", None))
        # A retried member may have changed what the later stages are asked.
        return None if self._run.retries and digest != call.digest else outcome

    async def record(self, call: Call, outcome: Outcome) -> None:
        """Keep the outcome of a call's step."""
        digest = call.digest
        known = self._recorded.get(call.step)
        if known is None or known[0] != digest:  # the first outcome is kept
            self._recorded[call.step] = digest, outcome
        recorded = _Replied(reply=outcome) if isinstance(outcome, Reply) else _Failed(failure=outcome)
        sent = self._sent.get(call.step, 0)
        taking = spending.receive(self._run.id, self._run.retries, sent, call.step, digest)
        await self._write(
            self._run.id,
            *([taking] if sent else []),
            (
                _RECORD_STEP,
                (
                    self._run.id,
                    call.step,
                    digest,
                    recorded.model_dump_json(exclude_defaults=True),
                    timestamp(self._now()),
                    self._run.retries,
                ),
            ),
        )
        self._sent.pop(call.step, None)

    async def send(self, step: str, amount: int) -> None:
        """Note, before a request of a step is sent, what it may cost."""
        statement = spending.send(self._run.id, self._run.retries, amount)
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

    def has_begun(self, stage: str) -> bool:
        """Whether any step of a stage's round has ended."""
        return any(step.startswith(f"{stage}:") for step in self._recorded)


class _Posts:
    """One run's posts, kept in memory and in the table; a `storage.journal.journal.Posts`."""

    def __init__(
        self, write: _Write, run: RunRow, posted: dict[str, tuple[str, str]], now: Clock
    ) -> None:
        self._write = write
        self._run = run
        self._posted = posted
        self._now = now

    @property
    def messages(self) -> frozenset[str]:
        """The ids of the messages that are known to be posted."""
        return frozenset(message for _, message in self._posted.values() if message)

    def has(self, key: str, text: str) -> bool:
        """Return whether this part is posted; after a Retry, with exactly this content."""
        posted = self._posted.get(key)
        return posted is not None and (not self._run.retries or posted[0] == _digest(text))

    async def record(self, key: str, text: str, message: str) -> None:
        """Record that a part was posted."""
        digest = _digest(text)
        self._posted[key] = digest, message
        row = (self._run.id, key, digest, message, timestamp(self._now()))
        await self._write(self._run.id, (_RECORD_POST, row))


class SqlJournal:
    """All runs, in an open database; a `storage.journal.journal.Journal`."""

    def __init__(self, database: Database, now: Clock = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._spending = Spending(database)
        self._now = now
        self._claimed: dict[str, int] = {}
        self._lost: dict[str, Callable[[], None]] = {}

    async def begin(
        self,
        run: NewRun,
        *,
        by: float | None = None,
        reservation: Reservation | None = None,
        entry: Entry | None = None,
        bounds: Bounds | None = None,
    ) -> Begun:
        """Record a run as running, or return the one that already has its entry key."""
        now = self._now()
        async with asyncio.timeout_at(by):
            reserving = await self._reserving(run.id, reservation, now)
        created_at = timestamp(now)
        row = (
            run.id,
            run.entry_key,
            run.conversation_id,
            _origin(run.origin),
            run.brief.model_dump_json(),
            created_at,
        )
        try:
            # Nothing after this may fail: the run exists.
            await self._database.write((_BEGIN_RUN, row), *_accepting(entry, bounds), *reserving, by=by)
        except (StorageError, TimeoutError) as error:
            # Asked only now: whoever waits for an acknowledgement would wait for one more read.
            if earlier := await self._delivered_before(run.entry_key):
                return Begun(earlier, created=False)
            if isinstance(error, ConstraintError):
                raise await self._explained(error, run.id, reservation, now) from error
            raise
        return Begun(_begun(run, created_at), created=True)

    async def claim(
        self, run_id: str, worker: str, lost: Callable[[], None] = lambda: None
    ) -> RunRow | None:
        """Take up a run, so that nobody who claimed it earlier can write to it.

        Returns `None` if there is none.
        """
        turn = [(_CLAIM_TURN, (worker, run_id))] if self._database.is_shared else []
        while (before := await self._epoch(run_id)) is not None:
            try:
                await self._database.write((_CLAIM, (before, run_id)), *turn)
            except ConstraintError:
                if await self._epoch(run_id) == before:
                    raise
                continue  # somebody else was faster
            self._claimed[run_id] = before + 1
            self._lost[run_id] = lost
            run = await self.get(run_id)
            return replace(run, epoch=before + 1) if run else None
        return None

    def unclaim(self, run_id: str) -> None:
        """Forget that a run was claimed here: what is written from now on isn't checked."""
        self._claimed.pop(run_id, None)
        self._lost.pop(run_id, None)

    async def is_current(self, run_id: str, epoch: int) -> bool:
        """Return whether nobody has claimed a run since this epoch; false if it has been forgotten."""
        return await self._epoch(run_id) == epoch

    async def knows(self, entry_key: str) -> bool:
        """Return whether a delivery with this entry key began a run."""
        query = "SELECT EXISTS (SELECT 1 FROM runs WHERE entry_key = ?) AS known"
        [row] = await self._database.read(query, (entry_key,))
        return bool(row["known"])

    async def get(self, run_id: str) -> RunRow | None:
        """Return a run, or `None` if there is none."""
        found = await self._find("id = ?", run_id)
        return found[0] if found else None

    async def origin(self, run: RunRow) -> Source | None:
        """Return where a run is shown, or `None` if it has been forgotten."""
        try:
            rows = await self._database.read("SELECT origin FROM runs WHERE id = ?", (run.id,))
            return Source.model_validate_json(rows[0]["origin"]) if rows else None
        except DamageError:
            log.exception("journal_damaged", run=run.id)
        except ValidationError as error:
            self._leave_out(run.id, error)
        return run.origin

    async def undelivered(
        self, platform: str, since: str = "", workspace: str | None = None
    ) -> list[RunRow]:
        """Return a platform's runs that weren't fully shown, the oldest first."""
        only = "" if workspace is None else " AND origin ->> 'workspace' = ?"
        return await self._find(
            "delivery IS DISTINCT FROM 'shown' AND origin ->> 'platform' = ?"
            " AND (delivery IS NULL OR coalesce(retried_at, created_at) >= ?)"
            f"{only} ORDER BY created_at, rowid",
            platform,
            since,
            *([] if workspace is None else [workspace]),
        )

    async def steps(self, run: RunRow) -> _Steps:
        """Load a run's recorded steps and its allowance; new steps can be recorded."""
        rows = await self._database.read(_STEPS, (run.id, run.id))
        recorded: dict[str, tuple[str, Outcome]] = {}
        for row in rows:
            if row["key"] is None:  # there is no step yet
                continue
            try:
                recorded[row["key"]] = row["digest"], _outcome(row["outcome"])
            except ValidationError as error:  # the call is made again
                self._leave_out(run.id, error)
        bounds = {name: rows[0][name] for name in ("reserved", "spent", "unpriced_call")}
        allowance = None if bounds["reserved"] is None else Allowance(**bounds)
        return _Steps(self._write, run, recorded, allowance, self._now)

    async def posts(self, run: RunRow, *, is_new: bool = False) -> _Posts:
        """Load a run's recorded posts; new ones can be recorded. A new run has none."""
        query = "SELECT key, digest, message FROM posts WHERE run_id = ?"
        rows: Sequence[Row] = () if is_new else await self._database.read(query, (run.id,))
        posted = {row["key"]: (row["digest"], row["message"]) for row in rows}
        return _Posts(self._write, run, posted, self._now)

    async def place(self, run_id: str, origin: Source) -> None:
        """Record where a run is shown: its card and its thread, as they become known."""
        await self._update("origin = ?", run_id, _origin(origin))

    async def prepare(self, run_id: str, brief: Brief, reservation: Reservation | None = None) -> None:
        """Replace a run's brief, before its first call, and adjust its reservation."""
        await self._change(run_id, reservation, (_PREPARE, (brief.model_dump_json(), run_id)))

    async def press_stop(self, run_id: str) -> None:
        """Record a press of Stop, so that a run resumed after a crash stays stopped."""
        await self._database.write(("UPDATE runs SET stops = stops + 1 WHERE id = ?", (run_id,)))

    async def finish(self, run_id: str, status: Ended, why: Why | None = None) -> None:
        """Record how a run ended; a run ends once."""
        error = why.model_dump_json(exclude_defaults=True) if why else None
        ended = status, error, timestamp(self._now()), run_id
        await self._write(run_id, (_FINISH_RUN, ended), spending.settle(run_id))

    async def deliver(self, run_id: str, delivery: Delivery) -> None:
        """Record that a run was fully shown, or that its asker couldn't be told."""
        await self._update("delivery = ?", run_id, delivery)

    async def note_telling(self, run_id: str, telling: Telling) -> None:
        """Record what is known of a run's mention, before it is sent and after."""
        await self._update("telling = ?", run_id, telling.model_dump_json(exclude_defaults=True))

    async def reserve(self, run_id: str, reservation: Reservation) -> None:
        """Replace what an open run has reserved, if the budgets allow it."""
        await self._change(run_id, reservation)

    async def used(self, reservation: Reservation) -> list[Used]:
        """Return what is used or reserved of each budget that a reservation names."""
        return await self._spending.used(reservation, self._now())

    async def reopen(
        self,
        run_id: str,
        reservation: Reservation | None = None,
        *,
        entry: Entry | None = None,
        bounds: Bounds | None = None,
    ) -> RunRow | None:
        """Reopen a run without an answer; return `None` if there is none."""
        now = self._now()
        named = {"run": run_id, "now": timestamp(now)}
        statements = (_REOPEN_RUN, _FORGET_FAILURES, _FORGET_MENTION)
        reserving = await self._reserving(run_id, reservation, now)
        try:
            await self._database.write(
                *((statement, named) for statement in statements),
                *_accepting(entry, bounds, again_at=named["now"]),
                *reserving,
            )
        except ConstraintError as error:
            raise await self._explained(error, run_id, reservation, now) from error
        run = await self.get(run_id)
        return None if run is None or run.is_over else run

    async def askers(self, conversation_ids: Sequence[str]) -> dict[str, str]:
        """Return who began each of these conversations, where that is recorded."""
        rows = await self._database.read(_ASKERS, (listed(conversation_ids),))
        return {row["conversation_id"]: row["asker"] for row in rows}

    async def conversation_in(self, here: Source) -> str | None:
        """Return the conversation whose thread this is, if there is one."""
        if here.thread is None:
            return None
        rows = await self._database.read(
            "SELECT conversation_id FROM runs"
            " WHERE (origin ->> 'thread' = ? OR origin ->> 'message' = ?)"
            " AND origin ->> 'platform' = ? AND origin ->> 'workspace' IS NOT DISTINCT FROM ?"
            " AND origin ->> 'channel' IS NOT DISTINCT FROM ? ORDER BY created_at LIMIT 1",
            (here.thread, here.thread, here.platform, here.workspace, here.channel),
        )
        return cast("str", rows[0]["conversation_id"]) if rows else None

    async def shown_as(self, here: Source, message: str) -> RunRow | None:
        """Return the run of which this message of a channel is the card or a part, if there is one."""
        found = await self._find(
            "(origin ->> 'message' = ? OR origin ->> 'card' = ?"
            " OR id IN (SELECT run_id FROM posts WHERE posts.message = ?))"
            " AND origin ->> 'platform' = ? AND origin ->> 'workspace' IS NOT DISTINCT FROM ?"
            " AND origin ->> 'channel' IS NOT DISTINCT FROM ? ORDER BY created_at DESC LIMIT 1",
            *(message, message, message, here.platform, here.workspace, here.channel),
        )
        return found[0] if found else None

    async def opened_thread(self, here: Source) -> bool:
        """Return whether this thread was opened below a card, for a run."""
        if here.thread is None:
            return False
        rows = await self._database.read(
            "SELECT 1 FROM runs WHERE origin ->> 'message' = ? AND origin ->> 'platform' = ?"
            " AND origin ->> 'workspace' IS NOT DISTINCT FROM ?"
            " AND origin ->> 'channel' IS NOT DISTINCT FROM ? LIMIT 1",
            (here.thread, here.platform, here.workspace, here.channel),
        )
        return bool(rows)

    async def _reserving(
        self, run_id: str, reservation: Reservation | None, now: datetime
    ) -> list[Statement]:
        if reservation is None:
            return []
        return await self._spending.reserve(run_id, reservation, now)

    async def _change(
        self, run_id: str, reservation: Reservation | None, *statements: Statement
    ) -> None:
        changing = [spending.change(run_id, reservation)] if reservation else []
        try:
            await self._write(run_id, *statements, *changing)
        except RunSuperseded:
            raise
        except ConstraintError as error:
            raise await self._explained(error, run_id, reservation, self._now()) from error

    async def _explained(
        self, error: ConstraintError, run_id: str, reservation: Reservation | None, now: datetime
    ) -> ConstraintError:
        """Return the budget that forbade a write, or the error as it is."""
        if reservation is None or isinstance(error, QueueFull):
            return error
        return await self._spending.exceeded(run_id, reservation, now) or error

    async def _update(self, change: str, run_id: str, *values: SqlValue) -> None:
        await self._write(run_id, (f"UPDATE runs SET {change} WHERE id = ?", (*values, run_id)))  # noqa: S608 - our own words

    async def _write(self, run_id: str, /, *statements: Statement) -> None:
        """Write something about a run, unless another worker has claimed it since this one."""
        epoch = self._claimed.get(run_id)
        if epoch is None:
            await self._database.write(*statements)
            return
        try:
            await self._database.write((_FENCE, (run_id, epoch)), *statements)
        except ConstraintError as error:
            if await self._epoch(run_id) not in (None, epoch):
                self._lost.get(run_id, lambda: None)()
                raise RunSuperseded(self._database.name, run_id) from error
            raise

    async def _epoch(self, run_id: str) -> int | None:
        rows = await self._database.read("SELECT epoch FROM runs WHERE id = ?", (run_id,))
        return cast("int", rows[0]["epoch"]) if rows else None

    async def _delivered_before(self, entry_key: str) -> RunRow | None:
        rows = await self._database.read("SELECT * FROM runs WHERE entry_key = ?", (entry_key,))
        found = self._readable(rows)
        if rows and not found:
            raise self._database.damaged()
        return found[0] if found else None

    async def _find(self, which: str, *values: str | None) -> list[RunRow]:
        return self._readable(
            await self._database.read(f"SELECT * FROM runs WHERE {which}", values)  # noqa: S608 - our own words
        )

    def _readable(self, rows: Sequence[Row]) -> list[RunRow]:
        found: list[RunRow] = []
        for row in rows:
            try:
                found.append(_run(row))
            except ValueError as error:
                self._leave_out(row["id"], error)
        return found

    def _leave_out(self, run_id: str, error: ValueError) -> None:
        """Skip an unreadable row; if it is cut off, have the next start repair the database."""
        log.error("journal_row_unreadable", run=run_id)
        if isinstance(error, ValidationError) and any(
            detail["type"] == "json_invalid" for detail in error.errors()
        ):
            self._database.mark_damage()


def _accepting(
    entry: Entry | None, bounds: Bounds | None, again_at: str | None = None
) -> list[Statement]:
    """Return what enters a run into the queue; a reopened one only if it was reopened at that time."""
    if entry is None:
        return []
    limits = (
        (bounds.waiting_per_user, bounds.waiting_per_channel, float(bounds.cooldown))
        if bounds
        else (None, None, None)
    )
    row = entry.run, entry.channel, entry.user, entry.conversation
    if again_at is None:
        return [(_ACCEPT_TURN, (*row, *limits))]
    return [(_ACCEPT_TURN_AGAIN, (*row, *limits, entry.run, again_at))]


def _begun(run: NewRun, created_at: str) -> RunRow:
    return RunRow(
        id=run.id,
        entry_key=run.entry_key,
        conversation_id=run.conversation_id,
        origin=run.origin,
        brief=run.brief,
        created_at=created_at,
    )


def _run(row: Row) -> RunRow:
    """Return a row as a run. Raises `ValueError` for one that this program can't have written."""
    run = _ROW.validate_python(
        {
            **dict(row),
            "origin": Source.model_validate_json(row["origin"]),
            "brief": Brief.model_validate_json(row["brief"]),
            "error": Why.model_validate_json(row["error"]) if row["error"] else None,
            "telling": Telling.model_validate_json(row["telling"]) if row["telling"] else NOTHING_TOLD,
        }
    )
    for moment in (run.created_at, run.finished_at, run.retried_at, run.brief.started_at):
        if moment is not None and datetime.fromisoformat(moment).tzinfo is None:
            raise ValueError("a time without a zone")
    if not 0 <= run.stops <= _MOST_STOPS:
        raise ValueError("more presses of Stop than anybody makes")
    return run


def _origin(source: Source) -> str:
    return orjson.dumps(source.dump()).decode()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _outcome(text: str) -> Outcome:
    recorded = _RECORDED.validate_json(text)
    return recorded.reply if isinstance(recorded, _Replied) else recorded.failure
