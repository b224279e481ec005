"""A look at the database that changes nothing: whether the server and its tables are this program's."""

from typing import Literal

import psycopg

from storage.errors import DatabaseError
from storage.migrations import known_migrations
from storage.postgres.connection import connect, server
from storage.postgres.database import check_server
from storage.postgres.errors import explain_postgres
from storage.postgres.locks import fingerprints
from storage.postgres.schema import key_of

Age = Literal["new", "older", "current", "newer"]


async def is_superuser(address: str) -> bool:
    """Return whether the address's role may do anything on its server. Raises `DatabaseError`."""
    try:
        async with await connect(address) as connection:
            cursor = await connection.execute(
                b"SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
            )
            row = await cursor.fetchone()
    except (psycopg.Error, OSError) as error:
        raise explain_postgres(server(address), error) from None
    return bool(row and row["rolsuper"])


async def configurations(address: str) -> list[str]:
    """Return the fingerprint of each running process's `council.toml`. Raises `DatabaseError`."""
    try:
        async with await connect(address) as connection:
            return await fingerprints(connection, await key_of(connection))
    except (psycopg.Error, OSError) as error:
        raise explain_postgres(server(address), error) from None


async def inspect_server(address: str) -> Age:
    """Return how old the tables are. Raises `DatabaseError`, also where the server can't serve."""
    name = server(address)
    try:
        async with await connect(address) as connection:
            check_server(connection, name)
            cursor = await connection.execute(b"SELECT to_regclass('migrations') IS NOT NULL AS made")
            row = await cursor.fetchone()
            if row is None or not row["made"]:
                return "new"
            cursor = await connection.execute(b"SELECT max(number) AS newest FROM migrations")
            row = await cursor.fetchone()
            newest = (row["newest"] if row else None) or 0
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:  # it quotes the address
            raise DatabaseError(f"{name} isn't an address that PostgreSQL has") from None
        raise explain_postgres(name, error) from None
    except (psycopg.Error, OSError) as error:
        raise explain_postgres(name, error) from None
    known = max(migration.number for migration in known_migrations("storage.postgres"))
    return "current" if newest == known else "older" if newest < known else "newer"
