"""Migrations: applied in order, recorded, each atomic, and never reversed."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from storage.errors import DatabaseError
from storage.sqlite.database import open_database
from storage.sqlite.schema import Migration, known_migrations, migrate

ONE = Migration(1, "one", "CREATE TABLE one (x); -- a first\nCREATE TABLE uno (x);")
TWO = Migration(2, "two", "CREATE TABLE two (\n    x\n);\n")
BROKEN = Migration(3, "three", "CREATE TABLE three (x);\nCREATE TABLE one (x);")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "council.db", isolation_level=None)) as opened:
        yield opened


def tables(connection: sqlite3.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


async def test_every_migration_is_recorded_with_its_name_and_time(tmp_path: Path) -> None:
    """A new database has all migrations, with names and times; opening it again adds none."""
    for _ in range(2):
        async with open_database(tmp_path / "council.db") as database:
            rows = await database.read("SELECT number, name, applied_at FROM migrations ORDER BY number")
        names = [(row["number"], row["name"]) for row in rows]
        assert names == [(one.number, one.name) for one in known_migrations()]
        assert all(row["applied_at"].endswith("Z") for row in rows)


def test_migrations_are_numbered_without_gaps() -> None:
    """The files are numbered from 1."""
    numbers = [migration.number for migration in known_migrations()]
    assert numbers == [*range(1, len(numbers) + 1)]


def test_a_failed_migration_leaves_nothing_of_itself(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    """The migrations before it stay; the next start tries it again."""
    with pytest.raises(sqlite3.OperationalError, match="table one already exists"):
        migrate(connection, tmp_path, [ONE, TWO, BROKEN])
    assert tables(connection) == {"migrations", "one", "uno", "two"}
    migrate(connection, tmp_path, [ONE, TWO, Migration(3, "three", "CREATE TABLE three (x)")])
    assert "three" in tables(connection)


async def test_programs_that_start_together_migrate_once(tmp_path: Path) -> None:
    """The second program finds each migration applied."""

    async def start() -> int:
        async with open_database(tmp_path / "council.db") as database:
            return len(await database.read("SELECT * FROM migrations"))

    known = len(known_migrations())
    assert await asyncio.gather(*(start() for _ in range(4))) == [known] * 4


async def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    """It is left as it is, with an error that says why."""
    path = tmp_path / "council.db"
    async with open_database(path) as database:
        await database.write(("INSERT INTO migrations VALUES (999, 'future', '')", ()))
    with pytest.raises(DatabaseError) as caught:
        async with open_database(path):
            pass
    newest = known_migrations()[-1].number
    assert str(caught.value) == (
        f"{path} was written by a newer program (schema 999, this one knows {newest}); "
        "update this program, or restore an earlier backup"
    )
