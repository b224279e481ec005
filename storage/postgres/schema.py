"""The tables in PostgreSQL, brought to the newest schema."""

from datetime import UTC, datetime
from typing import cast

from council.document.conversation import timestamp
from storage.errors import DatabaseError
from storage.migrations import known_migrations
from storage.postgres.connection import Connection

OLDEST = 140_000
"""The oldest server that has what the tables need: 14."""
ENCODING = "UTF8"
_RECORD = b"""
BEGIN;
SET LOCAL lock_timeout = '30s';
SELECT pg_advisory_xact_lock(7265432461);
SET LOCAL lock_timeout = '250ms';
CREATE TABLE IF NOT EXISTS migrations (
    number bigint NOT NULL PRIMARY KEY, name text NOT NULL, applied_at text NOT NULL
)
"""
"""Of processes that start together, the first makes the tables, and the others wait for that."""
_KEY = b"SELECT ('migrations'::regclass::oid::bigint & 2147483647)::int AS key"


async def migrate(connection: Connection, name: str) -> int:
    """Bring the tables to the newest schema in one transaction; return a number that is theirs alone.

    Raises `DatabaseError` if a newer program has migrated them, and `psycopg.Error`.
    """
    await connection.execute(_RECORD)
    try:
        migrations = known_migrations("storage.postgres")
        found = await (await connection.execute(b"SELECT number FROM migrations")).fetchall()
        applied = {cast("int", row["number"]) for row in found}
        _refuse_newer(name, max(applied, default=0), max(one.number for one in migrations))
        for migration in migrations:
            if migration.number not in applied:
                await connection.execute(migration.script.encode())
                row = (migration.number, migration.name, timestamp(datetime.now(UTC)))
                await connection.execute(b"INSERT INTO migrations VALUES ($1, $2, $3)", row)
        key = await key_of(connection)
        await connection.execute(b"COMMIT")
    except BaseException:
        if not connection.broken:
            await connection.execute(b"ROLLBACK")
        raise
    return key


async def key_of(connection: Connection) -> int:
    """Return the number of the council whose tables these are. Raises `psycopg.Error`."""
    row = await (await connection.execute(_KEY)).fetchone()
    return cast("int", row["key"] if row else 0)


def _refuse_newer(name: str, applied: int, known: int) -> None:
    if applied > known:
        raise DatabaseError(
            f"{name} was written by a newer program (schema {applied}, this one knows {known}); "
            f"update this program, or restore an earlier backup"
        )
