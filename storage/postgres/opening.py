"""Everything in one PostgreSQL database."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager

import orjson
from typing_extensions import override

from storage.audit import AuditLog
from storage.database import Database
from storage.errors import StorageError
from storage.postgres.database import open_postgres
from storage.postgres.documents import PostgresDocuments
from storage.postgres.inspection import inspect_server
from storage.postgres.locks import PostgresLocks
from storage.processes.coordination import Coordination
from storage.stores import Stores

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
