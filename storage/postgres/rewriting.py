"""Rewrites the tables from which something was forgotten: until then, its bytes stay in their files.

`VACUUM FULL` copies what is left of a table into a new file, while nobody else can use it. Who waits for
that keeps others waiting, so it gives up soon and tries again. It also copies deleted rows that a
transaction may still see which began before they were deleted: it waits for those to end, and looks
whether there were any.

Sources: https://www.postgresql.org/docs/current/sql-vacuum.html, and for what it says of such rows
`copy_table_data` in https://github.com/postgres/postgres/blob/REL_17_STABLE/src/backend/commands/cluster.c
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal

import psycopg
import structlog

from storage.postgres.connection import Connection, value

log = structlog.stdlib.get_logger()

TABLES = (
    *("runs", "steps", "posts", "pictures", "conversations", "search", "answers", "seats", "votes"),
    *("depths", "authors", "documents", "documents_set_aside"),
)
"""All from which forgetting deletes words, or ids of people."""
SMALL = 64 * 1024 * 1024
"""Bytes of a table that is rewritten at once: it takes about a second."""
TRIES = 60
"""How often a busy table is tried; the next pass tries it again."""
WAIT = 1.0
"""Seconds between two tries. A try lasts as long: nobody waits behind it for longer."""

Outcome = Literal["rewritten", "again", "later"]
Using = Callable[[Callable[[Connection], Awaitable[Any]]], Awaitable[Any]]
"""Lends a connection. Raises `DatabaseError`."""

_NOW = b"SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS now"
_OVER = b"SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8 AS are_over"
_KEPT = re.compile(r"\D*(\d+)")
"""The rows that can't be removed yet, in whatever language the server says so."""
_SIZE = b"SELECT pg_total_relation_size($1::regclass) AS bytes"
_USUAL = b"SELECT current_setting('lock_timeout') AS usual"
_PATIENCE = b"SELECT set_config('lock_timeout', $1, false)"


async def rewrite(
    using: Using, *, large: bool, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> bool:
    """Rewrite the tables that aren't large, or all; return whether none is left.

    A table that stays busy is left. Raises `DatabaseError`.
    """
    since, left = await using(partial(value, query=_NOW)), False
    for table in TABLES:
        left |= not await _rewrite_one(using, table, since, large=large, sleep=sleep)
    return not left


async def _rewrite_one(
    using: Using, table: str, since: str, *, large: bool, sleep: Callable[[float], Awaitable[object]]
) -> bool:
    async def try_once(connection: Connection) -> Outcome:
        is_large = await value(connection, _SIZE, table) > SMALL
        if is_large and not large:
            return "later"
        if not await value(connection, _OVER, since):
            return "again"
        kept = 0

        def hear(said: psycopg.errors.Diagnostic) -> None:
            nonlocal kept
            if found := _KEPT.match(said.message_detail or ""):
                kept += int(found[1])

        usual = await value(connection, _USUAL)
        await connection.execute(_PATIENCE, ("1s",))
        connection.add_notice_handler(hear)
        try:
            await connection.execute(f"VACUUM (FULL, VERBOSE) {table}".encode())
        except psycopg.errors.LockNotAvailable:
            return "again"
        finally:
            connection.remove_notice_handler(hear)
            if not connection.broken:
                await connection.execute(_PATIENCE, (usual,))
        if not kept:
            return "rewritten"
        if not is_large:
            return "again"
        log.warning("deleted_rows_kept", table=table)  # others would have to do without it once more
        return "later"

    for _ in range(TRIES):
        outcome = await using(try_once)
        if outcome != "again":
            return outcome == "rewritten"
        await sleep(WAIT)
    log.warning("table_stays_busy", table=table)
    return False
