"""Everything in one PostgreSQL database, opened or only looked at."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import orjson
from typing_extensions import override

from storage.audit import AuditLog
from storage.database import Database
from storage.errors import StorageError
from storage.migrations import known_migrations
from storage.postgres.connection import connect, explained, server
from storage.postgres.database import check_server, key_of, open_postgres
from storage.postgres.documents import PostgresDocuments
from storage.postgres.locks import PostgresLocks, fingerprints
from storage.processes.coordination import Coordination
from storage.stores import Stores

Age = Literal["new", "older", "current", "newer"]

_ADD = "INSERT INTO audit (line) VALUES (?)"


class PostgresAudit(AuditLog):
    """The audit as a table of lines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def add(self, line: Mapping[str, object]) -> None:
        await self._database.write((_ADD, (orjson.dumps(line),)))


@asynccontextmanager
async def open_server(address: str) -> AsyncGenerator[Stores]:
    """Open the database at an address, making its tables if they are missing. Raises `StorageError`."""
    async with open_postgres(address) as database:
        locks = PostgresLocks(address, database, database.key)
        try:
            yield Stores(
                database,
                PostgresDocuments(database),
                PostgresAudit(database),
                locks,
                coordination=Coordination(database),
            )
        finally:
            await locks.close()


async def is_held(address: str, names: Iterable[str]) -> bool:
    """Whether a process holds one of these names; false where that can't be asked."""
    try:
        if await inspect_server(address) != "current":
            return False
        async with open_server(address) as stores:
            for name in names:
                async with stores.locks.acquire(name) as is_free:
                    if not is_free:
                        return True
    except StorageError:
        return False
    return False


async def is_superuser(address: str) -> bool:
    """Return whether the address's role may do anything on its server. Raises `DatabaseError`."""
    with explained(address):
        async with await connect(address) as connection:
            role = b"SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
            row = await (await connection.execute(role)).fetchone()
            return bool(row and row["rolsuper"])


async def configurations(address: str) -> list[str]:
    """Return the fingerprint of each running process's `council.toml`. Raises `DatabaseError`."""
    with explained(address):
        async with await connect(address) as connection:
            return await fingerprints(connection, await key_of(connection))


async def inspect_server(address: str) -> Age:
    """Return how old the tables are. Raises `DatabaseError`, also where the server can't serve."""
    with explained(address):
        async with await connect(address) as connection:
            check_server(connection, server(address))
            cursor = await connection.execute(b"SELECT to_regclass('migrations') IS NOT NULL AS made")
            row = await cursor.fetchone()
            if row is None or not row["made"]:
                return "new"
            cursor = await connection.execute(b"SELECT max(number) AS newest FROM migrations")
            row = await cursor.fetchone()
            newest = (row["newest"] if row else None) or 0
    known = max(migration.number for migration in known_migrations("storage.postgres"))
    return "current" if newest == known else "older" if newest < known else "newer"
