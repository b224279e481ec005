"""Finds runs: by id, by delivery, by where they are shown, by what is left to do for them."""

from collections.abc import Sequence
from typing import cast

import structlog
from pydantic import ValidationError

from council.document.conversation import Source
from storage.database import Database, Row, listed
from storage.errors import DamageError
from storage.journal.progress import leave_out
from storage.journal.rows import OpenRun, RunRow, read_run

log = structlog.stdlib.get_logger()

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


class RunReader:
    """Finds runs; a row that can't be read is left out. Every method may raise `DatabaseError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
