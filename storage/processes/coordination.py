"""What processes that share a database agree on: whose turn it is, what was seen, what may be sent.

Each entry is a run that waits or is carried out. It is accepted with its question, waits once its card
is shown, is admitted when the bounds allow it, and is claimed by the worker that carries it out.

Each statement is one exchange with the server. Those that change single rows need no turn among the
transactions that write; each may be run twice, where the connection breaks before its answer is here.
"""

import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from storage.database import SharedDatabase, listed

State = Literal["accepted", "waiting", "admitted", "claimed", "halted"]

_READY = """
UPDATE turns SET state = 'waiting', changed_at = clock_timestamp()
WHERE run = ? AND state = 'accepted' RETURNING run
"""
_ADMIT = "SELECT admitted FROM let_in(CAST(? AS integer), ?, ?)"
_PRIORITIZE = """
UPDATE turns SET state = 'admitted', changed_at = clock_timestamp()
WHERE run = ? AND state IN ('accepted', 'waiting') RETURNING run
"""
_LEAVE = "DELETE FROM turns WHERE run = ? AND (worker IS NULL OR worker = ?) RETURNING run"
_HALT = """
UPDATE turns SET state = 'halted', changed_at = clock_timestamp()
WHERE run IN (SELECT value FROM json_each(?))
"""
_PRESENT = "SELECT run FROM turns WHERE run IN (SELECT value FROM json_each(?))"
_WATCH = """
SELECT id, epoch, stops, state FROM runs LEFT JOIN turns ON turns.run = runs.id
WHERE id IN (SELECT value FROM json_each(?))
"""
_POSITIONS = """
SELECT run, place FROM (
    SELECT run, row_number() OVER (ORDER BY arrived) AS place FROM turns
    WHERE state IN ('accepted', 'waiting', 'admitted')
) AS queued WHERE run IN (SELECT value FROM json_each(?))
"""
_DUE = """
SELECT id FROM runs LEFT JOIN turns ON turns.run = runs.id
WHERE delivery IS DISTINCT FROM 'shown'
    AND origin ->> 'platform' IN ('slack', 'discord') AND origin ->> 'program' IS NULL
    AND (status = 'running' OR coalesce(retried_at, created_at) >= ?)
    AND NOT EXISTS (SELECT 1 FROM work WHERE work.kind = 'deliver' AND work.key = runs.id)
    AND (turns.run IS NULL
        OR state = 'accepted' AND changed_at < clock_timestamp() - interval '30 seconds')
ORDER BY created_at, rowid
"""
_STARTED = """
SELECT run FROM turns
WHERE state IN ('admitted', 'claimed', 'halted')
    AND changed_at <= clock_timestamp() - make_interval(secs => ?)
ORDER BY arrived
"""
_FIRST = "SELECT is_first(?, ?) AS is_first"
_TAKE = "SELECT take(?, ?, ?, ?, ?) AS wait"
_BLOCK = """
INSERT INTO lanes (lane, blocked_until) VALUES (?, seconds_now() + ?)
ON CONFLICT (lane) DO UPDATE SET blocked_until = greatest(lanes.blocked_until, excluded.blocked_until)
RETURNING lane
"""
_TIDY = (
    """
    DELETE FROM lanes WHERE lane IN (
        SELECT lane FROM lanes WHERE greatest(full_at, blocked_until) < seconds_now()
        FOR UPDATE SKIP LOCKED
    ) RETURNING lane
    """,
    """
    DELETE FROM lane_waiters WHERE (lane, process, urgency) IN (
        SELECT lane, process, urgency FROM lane_waiters WHERE until < seconds_now()
        FOR UPDATE SKIP LOCKED
    ) RETURNING lane
    """,
    """
    DELETE FROM seen WHERE key IN (
        SELECT key FROM seen WHERE at < clock_timestamp() - interval '1 day' FOR UPDATE SKIP LOCKED
    ) RETURNING key
    """,
)


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A run in the queue; `channel` and `user` are names that nobody else has."""

    run: str
    channel: str
    user: str
    conversation: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many questions may wait for their turn.

    `cooldown` is the least time in seconds between two questions of one person.
    """

    waiting_per_channel: int
    waiting_per_user: int
    cooldown: float


@dataclass(frozen=True, slots=True)
class Watched:
    """What may have changed about a run elsewhere; `state` is `None` where it has no entry."""

    epoch: int
    stops: int
    state: State | None


class Coordination:
    """The shared queue, clicks and rate limits. Every method may raise `DatabaseError`."""

    def __init__(
        self, database: SharedDatabase, new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    ) -> None:
        self._database = database
        self._new_id = new_id

    async def ready(self, run: str) -> bool:
        """Queue an accepted run; return whether it was accepted and no more."""
        return bool(await self._database.change(_READY, (run,)))

    async def admit(self, runs_per_channel: int, runs_per_user: int) -> list[str]:
        """Admit every waiting run that may start, by arrival; return those that this call admitted.

        Of a conversation, one starts at a time. If the caller ends before it passes them on, they are
        found by `started`.
        """
        bounds = self._database.key, runs_per_channel, runs_per_user
        return [row["admitted"] for row in await self._database.change(_ADMIT, bounds)]

    async def prioritize(self, run: str) -> bool:
        """Admit a run that hasn't been admitted, whatever the bounds say; return whether it did."""
        return bool(await self._database.change(_PRIORITIZE, (run,)))

    async def leave(self, run: str, worker: str) -> None:
        """Delete a run's entry, unless another worker has claimed it."""
        await self._database.change(_LEAVE, (run, worker))

    async def halt(self, runs: Collection[str]) -> None:
        """Mark runs as halted: they still count as started, whoever claims them."""
        # It changes several rows at once, so that without taking turns there could be a deadlock.
        await self._database.write((_HALT, (listed(runs),)))

    async def present(self, runs: Collection[str]) -> set[str]:
        """Return which of these runs have an entry."""
        return {row["run"] for row in await self._database.read(_PRESENT, (listed(runs),))}

    async def watch(self, runs: Collection[str]) -> dict[str, Watched]:
        """Return what may have changed about these runs; those that are forgotten are missing."""
        rows = await self._database.read(_WATCH, (listed(runs),))
        return {row["id"]: Watched(row["epoch"], row["stops"], row["state"]) for row in rows}

    async def positions(self, runs: Collection[str]) -> dict[str, int]:
        """Return the places of these runs among all that nobody has claimed yet; 1 is the next."""
        rows = await self._database.read(_POSITIONS, (listed(runs),))
        return {row["run"]: row["place"] for row in rows}

    async def due(self, since: str) -> list[str]:
        """Return unfinished runs that nobody has made ready, the oldest first.

        They have no entry, or have been accepted for more than 30 seconds, and aren't on the list of
        what is shown later. Those that are over are left
        out where they were accepted or retried before `since`; a terminal's and a program's are its own.
        """
        return [row["id"] for row in await self._database.read(_DUE, (since,))]

    async def started(self, seconds: float = 30.0) -> list[str]:
        """Return the runs that were admitted, claimed or halted so many seconds ago, by arrival.

        Each should have a job: whoever admitted it may have ended before there was one.
        """
        return [row["run"] for row in await self._database.read(_STARTED, (float(seconds),))]

    async def first(self, key: str) -> bool:
        """Return whether nobody has called this with the key within a day."""
        [row] = await self._database.change(_FIRST, (key, self._new_id()))
        return row["is_first"]

    async def take(self, lane: str, interval: float, burst: int, urgency: int, process: str) -> float:
        """Count one request against a lane's rate limit, or return the seconds to wait.

        One request every `interval` seconds, `burst` at once at first, by the server's clock. A process
        that waits keeps less urgent requests (larger numbers) of other processes waiting, until it has
        its turn or hasn't asked again for a second longer than it was told to wait.
        """
        [row] = await self._database.change(_TAKE, (lane, float(interval), burst, urgency, process))
        return row["wait"]

    async def block(self, lane: str, seconds: float) -> None:
        await self._database.change(_BLOCK, (lane, float(seconds)))

    async def tidy(self) -> None:
        """Delete what has expired: idle lanes, and keys older than a day. To be called now and then."""
        for expired in _TIDY:
            await self._database.change(expired)
