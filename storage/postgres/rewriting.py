"""Rewrites the tables from which something was forgotten: until then, its bytes stay in their files.

`VACUUM FULL` copies what is left of a table into a new file, while nobody else can use it. Who waits for
that keeps others waiting, so it gives up soon and tries again.

Source: https://www.postgresql.org/docs/current/sql-vacuum.html
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import psycopg
import structlog

from storage.postgres.connection import Connection

log = structlog.stdlib.get_logger()

Done = TypeVar("Done")

TABLES = (
    "runs",
    "steps",
    "posts",
    "conversations",
    "search",
    "answers",
    "seats",
    "votes",
    "authors",
    "documents",
    "documents_set_aside",
)
"""All from which forgetting deletes words, or ids of people."""
SMALL = 64 * 1024 * 1024
"""Bytes of a table that is rewritten at once: it takes about a second."""
TRIES = 60
"""How often a busy table is tried; the next pass tries it again."""
WAIT = 1.0
"""Seconds between two tries. A try lasts as long: nobody waits behind it for longer."""

_SIZE = b"SELECT pg_total_relation_size($1::regclass) AS bytes"
_USUAL = b"SELECT current_setting('lock_timeout') AS usual"
_PATIENCE = b"SELECT set_config('lock_timeout', $1, false)"


class Using(Protocol):
    """Lends a connection."""

    def __call__(self, work: Callable[[Connection], Awaitable[Done]], /) -> Awaitable[Done]:
        """Do something with a connection. Raises `DatabaseError`."""
        ...


async def rewrite(
    using: Using, *, large: bool, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> bool:
    """Rewrite the tables that aren't large, or all; return whether none is left.

    A table that stays busy is left. Raises `DatabaseError`.
    """
    left = False
    for table in TABLES:
        left |= not await _rewrite_one(using, table, large=large, sleep=sleep)
    return not left


async def _rewrite_one(
    using: Using, table: str, *, large: bool, sleep: Callable[[float], Awaitable[object]]
) -> bool:
    async def try_once(connection: Connection) -> bool | None:
        """Return whether the table is rewritten, `None` where it is too large for now."""
        row = await (await connection.execute(_SIZE, (table,))).fetchone()
        if row and row["bytes"] > SMALL and not large:
            return None
        usual = await (await connection.execute(_USUAL)).fetchone()
        await connection.execute(_PATIENCE, ("1s",))
        try:
            await connection.execute(f"VACUUM FULL {table}".encode())
        except psycopg.errors.LockNotAvailable:
            return False
        finally:
            if usual and not connection.broken:
                await connection.execute(_PATIENCE, (usual["usual"],))
        return True

    for _ in range(TRIES):
        is_done = await using(try_once)
        if is_done is not False:
            return bool(is_done)
        await sleep(WAIT)
    log.warning("table_stays_busy", table=table)
    return False
