"""The run journal: what each run was asked, and the outcome of every model call that has ended."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

import orjson
from pydantic import BaseModel, TypeAdapter

from council.brief import Brief
from council.calls import Outcome, Reply
from council.conversation import Source, timestamp
from council.errors import Failure
from storage.database import Database

RunStatus = Literal["running", "answered", "failed", "stopped"]
Clock = Callable[[], datetime]

_BEGIN_RUN = """
INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at)
VALUES (?, ?, ?, ?, ?, 'running', ?) ON CONFLICT (entry_key) DO NOTHING
"""
_FINISH_RUN = """
UPDATE runs SET status = ?, error = ?, finished_at = ? WHERE id = ? AND status = 'running'
"""
_RECORD_STEP = """
INSERT INTO steps (run_id, key, outcome, recorded_at) VALUES (?, ?, ?, ?)
ON CONFLICT (run_id, key) DO NOTHING
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run about to begin.

    `entry_key` is the id under which the platform delivered the question: a redelivery carries the
    same. `origin` says where the question was asked, by whom, and which message is the card.
    """

    id: str
    entry_key: str
    conversation_id: str
    origin: Source
    brief: Brief


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow(NewRun):
    """A run as the journal has it, times in ISO 8601, UTC."""

    status: RunStatus
    error: str | None
    created_at: str
    finished_at: str | None


@dataclass(frozen=True, slots=True)
class Begun:
    """The run of an entry key; `created` is false where an earlier delivery began it."""

    run: RunRow
    created: bool


class _Replied(BaseModel):
    reply: Reply


class _Failed(BaseModel):
    failure: Failure


# An outcome's stored form: `{"reply": {...}}` or `{"failure": {...}}`.
_RECORDED: TypeAdapter[_Replied | _Failed] = TypeAdapter(_Replied | _Failed)


class RunSteps:
    """One run's steps, kept in memory and in the journal; a `council.calls.Steps`."""

    def __init__(
        self, database: Database, run_id: str, outcomes: dict[str, Outcome], now: Clock
    ) -> None:
        self._database = database
        self._run_id = run_id
        self._outcomes = outcomes
        self._now = now

    def recall(self, key: str) -> Outcome | None:
        """Give the recorded outcome of a step, or `None` where it hasn't ended yet."""
        return self._outcomes.get(key)

    async def record(self, key: str, outcome: Outcome) -> None:
        """Keep a step's outcome; the first one recorded under a key stands. Returns when durable."""
        self._outcomes.setdefault(key, outcome)
        recorded = _Replied(reply=outcome) if isinstance(outcome, Reply) else _Failed(failure=outcome)
        await self._database.write(
            (
                _RECORD_STEP,
                (
                    self._run_id,
                    key,
                    recorded.model_dump_json(exclude_defaults=True),
                    timestamp(self._now()),
                ),
            )
        )


class Journal:
    """All runs, in the database's `runs` and `steps`."""

    def __init__(self, database: Database, now: Clock = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._now = now

    async def begin(self, run: NewRun) -> Begun:
        """Write a run down as running, or find the one that its entry key has begun before."""
        await self._database.write(
            (
                _BEGIN_RUN,
                (
                    run.id,
                    run.entry_key,
                    run.conversation_id,
                    orjson.dumps(run.origin.dump()).decode(),
                    run.brief.model_dump_json(),
                    timestamp(self._now()),
                ),
            )
        )
        [found] = await self._find("SELECT * FROM runs WHERE entry_key = ?", run.entry_key)
        return Begun(found, created=found.id == run.id)

    async def get(self, run_id: str) -> RunRow | None:
        """Give a run, or `None` where there is no such."""
        found = await self._find("SELECT * FROM runs WHERE id = ?", run_id)
        return found[0] if found else None

    async def steps(self, run_id: str) -> RunSteps:
        """Load what a run has recorded so far, ready to record more."""
        rows = await self._database.read("SELECT key, outcome FROM steps WHERE run_id = ?", (run_id,))
        outcomes = {cast("str", row["key"]): _outcome(row["outcome"]) for row in rows}
        return RunSteps(self._database, run_id, outcomes, self._now)

    async def place(self, run_id: str, origin: Source) -> None:
        """Write down where a run is shown: its card and its thread, as they become known."""
        await self._database.write(
            ("UPDATE runs SET origin = ? WHERE id = ?", (orjson.dumps(origin.dump()).decode(), run_id))
        )

    async def prepare(self, run_id: str, brief: Brief) -> None:
        """Complete a run's brief, before its first call."""
        await self._database.write(
            ("UPDATE runs SET brief = ? WHERE id = ?", (brief.model_dump_json(), run_id))
        )

    async def conversation_in(self, here: Source) -> str | None:
        """Find the conversation whose thread this is, if there is one.

        On the platforms a thread has the id of the message it began on: here, the card's.
        """
        if here.thread is None:
            return None
        rows = await self._database.read(
            "SELECT conversation_id FROM runs"
            " WHERE (origin ->> 'thread' = ? OR origin ->> 'message' = ?)"
            " AND origin ->> 'platform' = ? AND origin ->> 'workspace' IS ?"
            " AND origin ->> 'channel' IS ? ORDER BY created_at LIMIT 1",
            (here.thread, here.thread, here.platform, here.workspace, here.channel),
        )
        return cast("str", rows[0]["conversation_id"]) if rows else None

    async def finish(
        self, run_id: str, status: Literal["answered", "failed", "stopped"], error: str | None = None
    ) -> None:
        """Write down how a run ended; a run ends once."""
        await self._database.write((_FINISH_RUN, (status, error, timestamp(self._now()), run_id)))

    async def _find(self, sql: str, value: str) -> list[RunRow]:
        return [
            RunRow(
                id=row["id"],
                entry_key=row["entry_key"],
                conversation_id=row["conversation_id"],
                origin=Source.model_validate_json(row["origin"]),
                brief=Brief.model_validate_json(row["brief"]),
                status=row["status"],
                error=row["error"],
                created_at=row["created_at"],
                finished_at=row["finished_at"],
            )
            for row in await self._database.read(sql, (value,))
        ]


def _outcome(text: str) -> Outcome:
    recorded = _RECORDED.validate_json(text)
    return recorded.reply if isinstance(recorded, _Replied) else recorded.failure
