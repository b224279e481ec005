"""The run journal: what each run was asked, every model call that has ended, every message posted.

A run whose process has died is continued from it. It is the tables `runs`, `steps` and `posts`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar, cast

import structlog
from pydantic import ValidationError

from council.brief import Attachment, Brief, Picture
from council.document.conversation import Source, timestamp
from storage.database import Database, Row, SharedDatabase, SqlValue, Statement, listed
from storage.errors import (
    ConstraintError,
    DamageError,
    ReservationRefused,
    RunSuperseded,
    StorageError,
    Used,
)
from storage.journal import spending
from storage.journal.progress import (
    Posts,
    RunSteps,
    leave_out,
    load_steps,
)
from storage.journal.rows import (
    Begun,
    Clock,
    Delivery,
    Ended,
    EndReason,
    MentionState,
    OpenRun,
    Reservation,
    RunRow,
    dump_origin,
    read_run,
)
from storage.journal.spending import Spending
from storage.processes.coordination import Bounds, QueueEntry
from storage.work import WorkList

T = TypeVar("T")

log = structlog.stdlib.get_logger()

_BEGIN_RUN = """
INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at)
VALUES (?, ?, ?, ?, ?, 'running', ?)
"""
_PREPARE = "UPDATE runs SET brief = ? WHERE id = ?"
_FINISH_RUN = """
UPDATE runs SET status = ?, error = ?, finished_at = ? WHERE id = ? AND status = 'running'
"""
_REOPEN_RUN = """
UPDATE runs SET status = 'running', error = NULL, finished_at = NULL, delivery = NULL, telling = NULL,
    stops = 0, retries = retries + 1, retried_at = :now
WHERE id = :run AND status IN ('failed', 'stopped')
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
_SHOW_NO_MORE = "DELETE FROM work WHERE kind = 'deliver' AND key = :run"
_ASKERS = """
SELECT conversation_id, asker FROM (
    SELECT conversation_id, brief ->> 'asker' AS asker,
        row_number() OVER (PARTITION BY conversation_id ORDER BY created_at) AS place
    FROM runs
    WHERE conversation_id IN (SELECT value FROM json_each(?)) AND brief ->> 'asker' IS NOT NULL
) AS asked WHERE place = 1
"""
_OPEN_RUNS = """
SELECT id, origin ->> 'workspace' AS workspace, origin ->> 'channel' AS channel,
    origin ->> 'program' AS program, brief ->> 'started_at' AS started_at
FROM runs
WHERE delivery IS DISTINCT FROM 'shown' AND origin ->> 'platform' = ? AND created_at >= ?
    AND status = 'running'
"""
_KEEP_PICTURE = "INSERT INTO pictures (run_id, sha256, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
# The same picture in two conversations is kept twice: forgetting one never takes the other's.
_PICTURES = """
SELECT run_id, sha256, content FROM pictures
WHERE run_id IN (SELECT value FROM json_each(?)) AND sha256 IN (SELECT value FROM json_each(?))
"""
_EARLIER_FILES = """
SELECT id, brief FROM runs
WHERE conversation_id = ? AND id <> ? AND status = 'answered' AND created_at <= ? ORDER BY created_at, id
"""
_MOST_TRIES = 10
"""How often a reservation is written that is refused while each budget seems to have room."""


class Journal:
    """All runs. Every method may raise `DatabaseError`; what is written is durable on return.

    A row that can't be read is left out.

    What is written about a claimed run raises `RunSuperseded` once another worker has claimed it.
    Presses of Stop and Retry are anybody's.
    """

    def __init__(self, database: Database, now: Clock = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self.work = WorkList(database, now)
        self.spending = Spending(database)
        self._now = now
        self._claimed: dict[str, int] = {}
        self._lost: dict[str, Callable[[], None]] = {}

    async def begin(
        self,
        run: RunRow,
        *,
        by: float | None = None,
        reservation: Reservation | None = None,
        entry: QueueEntry | None = None,
        bounds: Bounds | None = None,
        pictures: Mapping[str, str] | None = None,
    ) -> Begun:
        """Record a run as running, or find the one that was begun with its entry key before.

        `by` is a time on the event loop's clock. Raises `TimeoutError` where writing has not begun by
        then: the run is not there, nor will it be at the next start. A run is recorded with its
        `reservation`, its `entry` and its `pictures` (Base64 by SHA-256), or not at all. Raises
        `BudgetExceeded`, and `QueueFull` where the bounds forbid the entry. Only a database that
        processes share takes an entry.
        """
        now = self._now()
        created_at = timestamp(now)
        row = (
            run.id,
            run.entry_key,
            run.conversation_id,
            dump_origin(run.origin),
            run.brief.model_dump_json(),
            created_at,
        )

        async def record() -> Begun:
            async with asyncio.timeout_at(by):
                reserving = await self.spending.reserve(run.id, reservation, now)
            try:
                # Nothing after this may fail: the run exists.
                accepting = _accepting(entry, bounds)
                keeping = _keeping(run.id, pictures)
                await self._database.write((_BEGIN_RUN, row), *keeping, *accepting, *reserving, by=by)
            except (StorageError, TimeoutError):
                # Asked only now: who waits for an acknowledgement would wait for one more read.
                if earlier := await self.find(run.entry_key):
                    return Begun(earlier, created=False)
                raise
            return Begun(replace(run, created_at=created_at), created=True)

        return await self._in_budget(record, run.id, reservation, now)

    async def claim(
        self, run_id: str, worker: str, lost: Callable[[], None] = lambda: None
    ) -> RunRow | None:
        """Take up a run, so that nobody who claimed it earlier can write to it; `None` if there is none.

        It lasts until another claim, or until `unclaim`. `lost` is called when a write finds out about
        another.
        """
        turn = [(_CLAIM_TURN, (worker, run_id))] if isinstance(self._database, SharedDatabase) else []
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

    async def steps(self, run: RunRow) -> RunSteps:
        """Load what a run has recorded so far, ready to record more."""
        return await load_steps(self._database, self._write, run, self._now)

    async def posts(self, run: RunRow, *, is_new: bool = False) -> Posts:
        """Load what a run has posted so far, ready to record more; a new one has posted nothing."""
        query = "SELECT key, digest, message FROM posts WHERE run_id = ?"
        rows: Sequence[Row] = () if is_new else await self._database.read(query, (run.id,))
        posted = {row["key"]: (row["digest"], row["message"]) for row in rows}
        return Posts(self._write, run, posted, self._now)

    async def place(self, run_id: str, origin: Source) -> None:
        """Record where a run is shown: its card and its thread, as they become known."""
        await self._update("origin = ?", run_id, dump_origin(origin))

    async def prepare(
        self,
        run_id: str,
        brief: Brief,
        reservation: Reservation | None = None,
        pictures: Mapping[str, str] | None = None,
    ) -> None:
        """Complete a run's brief and pictures, before its first call, and correct what it has reserved.

        Raises `BudgetExceeded`.
        """
        keeping = _keeping(run_id, pictures)
        await self._change(run_id, reservation, (_PREPARE, (brief.model_dump_json(), run_id)), *keeping)

    async def pictures(self, run: RunRow, wanted: Sequence[Picture]) -> dict[str, str]:
        """Return pictures in Base64, by SHA-256; without those that were forgotten."""
        runs = {each.run or run.id for each in wanted}
        names = {each.sha256 for each in wanted}
        rows = await self._database.read(_PICTURES, (listed(runs), listed(names)))
        return {row["sha256"]: row["content"] for row in rows}

    async def earlier_files(self, run: RunRow) -> tuple[Attachment, ...]:
        """Return what was read of the files of a conversation's answered questions, oldest first.

        Their pictures name the run that keeps them.
        """
        found: list[Attachment] = []
        asked = run.conversation_id, run.id, run.created_at
        for row in await self._database.read(_EARLIER_FILES, asked):
            try:
                brief = Brief.model_validate_json(row["brief"])
            except ValidationError:  # what can't be read any more is left out, as it is everywhere
                continue
            for file in brief.attachments:
                if not file.is_unread:
                    pictures = tuple(
                        each.model_copy(update={"run": row["id"]}) for each in file.pictures
                    )
                    found.append(file.model_copy(update={"pictures": pictures}))
        return tuple(found)

    async def press_stop(self, run_id: str) -> None:
        """Record a press of Stop: a run that is continued after a crash stays stopped."""
        await self._database.write(("UPDATE runs SET stops = stops + 1 WHERE id = ?", (run_id,)))

    async def finish(self, run_id: str, status: Ended, why: EndReason | None = None) -> None:
        """Record how a run ended, and settle what it reserved; a run ends once."""
        error = why.model_dump_json(exclude_defaults=True) if why else None
        ended = status, error, timestamp(self._now()), run_id
        await self._write(run_id, (_FINISH_RUN, ended), (spending.SETTLE, (run_id,)))

    async def deliver(self, run_id: str, delivery: Delivery) -> None:
        """Record that a run was shown to its end, or that its asker could not be told."""
        await self._update("delivery = ?", run_id, delivery)

    async def repeatable(self, prefix: str, seconds: float) -> list[RunRow]:
        """Return the runs whose entry key begins like this, oldest first and failed ones last.

        They are unfinished, or ended at most so long ago, not by Stop.
        """
        now = self._now()
        return await self._find(
            "entry_key >= ? AND entry_key < ?"
            " AND (status = 'running' OR (status <> 'stopped' AND finished_at BETWEEN ? AND ?))"
            " ORDER BY status = 'failed', created_at, rowid",
            prefix,
            f"{prefix}~",
            timestamp(now - timedelta(seconds=seconds)),
            timestamp(now),
        )

    async def let_go(self, run_id: str) -> None:
        """Have what asked for a run find it no more: the same request begins a new one."""
        await self._update("entry_key = ?", run_id, f"fetched:{run_id}")

    async def record_mention(self, run_id: str, telling: MentionState) -> None:
        """Record what is known of a run's posts and its mention, before they are sent and after."""
        await self._update("telling = ?", run_id, telling.model_dump_json(exclude_defaults=True))

    async def reserve(self, run_id: str, reservation: Reservation) -> None:
        """Replace what an open run has reserved, or leave it. Raises `BudgetExceeded`."""
        await self._change(run_id, reservation)

    async def used(self, reservation: Reservation) -> list[Used]:
        """Return what is used or reserved of each budget that a reservation names."""
        return await self.spending.used(reservation, self._now())

    async def reopen(
        self,
        run_id: str,
        reservation: Reservation | None = None,
        *,
        entry: QueueEntry | None = None,
        bounds: Bounds | None = None,
    ) -> RunRow | None:
        """Reopen a run without an answer; return `None` if there is none.

        It reserves again, or stays as it is: raises `BudgetExceeded`. Failures and presses of Stop are
        deleted. Replies are kept, and are used again if the run still asks what they answer.
        """
        now = self._now()
        named = {"run": run_id, "now": timestamp(now)}
        statements = (_REOPEN_RUN, _FORGET_FAILURES, _FORGET_MENTION, _SHOW_NO_MORE)

        async def reopen() -> None:
            reserving = await self.spending.reserve(run_id, reservation, now)
            await self._database.write(
                *((statement, named) for statement in statements),
                *_accepting(entry, bounds, again_at=named["now"]),
                *reserving,
            )

        await self._in_budget(reopen, run_id, reservation, now)
        run = await self.get(run_id)
        return None if run is None or run.is_over else run

    async def knows(self, entry_key: str) -> bool:
        query = "SELECT EXISTS (SELECT 1 FROM runs WHERE entry_key = ?) AS known"
        [row] = await self._database.read(query, (entry_key,))
        return bool(row["known"])

    async def get(self, run_id: str) -> RunRow | None:
        found = await self._find("id = ?", run_id)
        return found[0] if found else None

    async def origin(self, run: RunRow) -> Source | None:
        """Return where a run is shown by now, or `None` if it has been forgotten.

        If its row can't be read, the run is not taken for forgotten: the origin in `run` is returned.
        """
        try:
            rows = await self._database.read("SELECT origin FROM runs WHERE id = ?", (run.id,))
            return Source.model_validate_json(rows[0]["origin"]) if rows else None
        except DamageError:
            log.exception("journal_damaged", run=run.id)
        except ValidationError as error:
            leave_out(self._database, run.id, error)
        return run.origin

    async def undelivered(self, platform: str, since: str = "") -> list[RunRow]:
        """Return what people asked on a platform and wasn't shown to its end, the oldest run first.

        Those that are over and *untold* are left out where they were accepted or retried before `since`.
        """
        return await self._find(
            "delivery IS DISTINCT FROM 'shown' AND origin ->> 'platform' = ?"
            " AND origin ->> 'program' IS NULL"
            " AND (delivery IS NULL OR coalesce(retried_at, created_at) >= ?)"
            " ORDER BY created_at, rowid",
            platform,
            since,
        )

    async def unfinished_of_programs(self) -> list[RunRow]:
        """Return what programs asked and isn't over, or not known to be, the oldest run first."""
        return await self._find(
            "delivery IS DISTINCT FROM 'shown' AND origin ->> 'program' IS NOT NULL"
            " ORDER BY created_at, rowid"
        )

    async def open_runs(self, here: Source, since: str) -> list[OpenRun]:
        """Return the runs on a platform that aren't over and were accepted by then or later."""
        rows = await self._database.read(_OPEN_RUNS, (here.platform, since))
        return [
            OpenRun(
                id=row["id"],
                is_here=(row["workspace"], row["channel"]) == (here.workspace, here.channel),
                program=row["program"],
                has_begun=row["started_at"] is not None,
            )
            for row in rows
        ]

    async def marks(self, run_ids: Sequence[str]) -> dict[str, int]:
        """Return how often Stop was pressed for each of these runs; a forgotten one is missing."""
        query = "SELECT id, stops FROM runs WHERE id IN (SELECT value FROM json_each(?))"
        rows = await self._database.read(query, (listed(run_ids),))
        return {row["id"]: row["stops"] for row in rows}

    async def find(self, entry_key: str) -> RunRow | None:
        """Return the run that a delivery with this entry key began, if there is one."""
        rows = await self._database.read("SELECT * FROM runs WHERE entry_key = ?", (entry_key,))
        found = self._readable(rows)
        if rows and not found:
            raise self._database.damaged()
        return found[0] if found else None

    async def askers(self, conversation_ids: Sequence[str]) -> dict[str, str]:
        """Return who began each of these conversations, as far as it is on record."""
        rows = await self._database.read(_ASKERS, (listed(conversation_ids),))
        return {row["conversation_id"]: row["asker"] for row in rows}

    async def conversation_in(self, here: Source) -> str | None:
        """Return the conversation whose thread this is, if there is one.

        A thread has the id of the message on which it began: the card's.
        """
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
        """Return whether this thread is one below a card, opened for a run."""
        if here.thread is None:
            return False
        rows = await self._database.read(
            "SELECT 1 FROM runs WHERE origin ->> 'message' = ? AND origin ->> 'platform' = ?"
            " AND origin ->> 'workspace' IS NOT DISTINCT FROM ?"
            " AND origin ->> 'channel' IS NOT DISTINCT FROM ? LIMIT 1",
            (here.thread, here.platform, here.workspace, here.channel),
        )
        return bool(rows)

    async def _find(self, which: str, *values: str | None) -> list[RunRow]:
        return self._readable(
            await self._database.read(f"SELECT * FROM runs WHERE {which}", values)  # noqa: S608 - our own words
        )

    def _readable(self, rows: Sequence[Row]) -> list[RunRow]:
        found: list[RunRow] = []
        for row in rows:
            try:
                found.append(read_run(row))
            except ValueError as error:
                leave_out(self._database, row["id"], error)
        return found

    async def _change(
        self, run_id: str, reservation: Reservation | None, *statements: Statement
    ) -> None:
        changing = [spending.change(run_id, reservation)] if reservation else []
        await self._in_budget(
            lambda: self._write(run_id, *statements, *changing), run_id, reservation, self._now()
        )

    async def _in_budget(
        self,
        write: Callable[[], Awaitable[T]],
        run_id: str,
        reservation: Reservation | None,
        now: datetime,
    ) -> T:
        """Write a reservation; where no budget has room for it, raise the error that says which.

        What was reserved elsewhere may be settled before the reason is read. Then there is room, and
        no budget to name: it is written again.
        """
        for _ in range(_MOST_TRIES):
            try:
                return await write()
            except ReservationRefused as error:
                if reservation is None:
                    raise
                if exceeded := await self.spending.exceeded(run_id, reservation, now):
                    raise exceeded from error
        return await write()

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


def _keeping(run_id: str, pictures: Mapping[str, str] | None) -> list[Statement]:
    return [(_KEEP_PICTURE, (run_id, *picture)) for picture in (pictures or {}).items()]


def _accepting(
    entry: QueueEntry | None, bounds: Bounds | None, again_at: str | None = None
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
