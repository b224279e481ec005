"""The database's schema: numbered SQL files, applied in order, each recorded with its name and time."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from council.document.conversation import timestamp
from storage.database import Migration
from storage.database import known_migrations as migrations_of
from storage.errors import DatabaseError

_RECORD = """
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL
) STRICT
"""
# Search texts are derived; the tables below them are SQLite's.
_COPIED = """
SELECT name FROM sqlite_schema WHERE type = 'table'
    AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'search*' AND name <> 'migrations'
ORDER BY rowid
"""


def known_migrations() -> tuple[Migration, ...]:
    return migrations_of("storage.sqlite")


def known_schema() -> int:
    """Return the number of the newest schema that this program knows."""
    return max(migration.number for migration in known_migrations())


@cache
def known_tables() -> tuple[str, ...]:
    """Return the tables whose rows are copied elsewhere, each after those that it refers to."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        migrate(ours, Path(":memory:"), known_migrations())
        return tuple(name for (name,) in ours.execute(_COPIED))


def read_schema(connection: sqlite3.Connection) -> int:
    """Return the number of a database's schema.

    Raises `sqlite3.Error`, or `ValueError` if its record of migrations isn't the council's.
    """
    if ("table", "migrations", None) not in _objects(connection):  # a view of that name might never end
        raise ValueError("it has no record of migrations")
    applied: set[object] = {*_applied(connection)}
    known = {migration.number for migration in known_migrations()}
    newer = [one for one in applied - known if isinstance(one, int) and one > max(known)]
    schema = max(newer, default=len(applied))
    if not applied or (not newer and applied != {*range(1, schema + 1)}):
        raise ValueError("its record of migrations has gaps")
    return schema


def foreign_objects(connection: sqlite3.Connection, schema: int) -> str:
    """Return an object in a database that no migration to this schema makes, in words; empty if none.

    Triggers, and views of other words, would run when the database is used. A newer program's database
    isn't judged. Raises `ValueError` if a table is missing.
    """
    if schema > known_schema():
        return ""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        migrate(ours, Path(":memory:"), known_migrations()[:schema])
        expected = _objects(ours)
    found = _objects(connection)
    for kind, name, _ in sorted(found - expected, key=repr):
        return f"a {kind} called {name!r}"
    for kind, name, _ in sorted(expected - found, key=repr):
        if kind == "table":
            raise ValueError(f"it has no table {name}")
    return ""


def _objects(connection: sqlite3.Connection) -> set[tuple[object, object, object]]:
    words = "CASE type WHEN 'view' THEN sql END"
    found = connection.execute(f"SELECT type, name, {words} FROM sqlite_schema")  # noqa: S608 - our own words
    return {each for each in found if not str(each[1]).startswith("sqlite_")}


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Bring the database to the newest schema, each migration in its own transaction.

    Raises `DatabaseError` if a newer program has migrated it: its tables may mean other things.
    """
    connection.execute(_RECORD)
    applied = _applied(connection)
    newest = max(migration.number for migration in migrations)
    if applied and max(applied) > newest:
        raise DatabaseError(
            f"{path} was written by a newer program (schema {max(applied)}, this one knows {newest}); "
            f"update this program, or restore an earlier backup",
            path,
        )
    for migration in migrations:
        if migration.number not in applied:
            _apply(connection, migration)


def _applied(connection: sqlite3.Connection) -> set[int]:
    return {row[0] for row in connection.execute("SELECT number FROM migrations")}


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have applied it while this one waited for the lock.
        if migration.number not in _applied(connection):
            for statement in _statements(migration.script):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO migrations (number, name, applied_at) VALUES (?, ?, ?)",
                (migration.number, migration.name, timestamp(datetime.now(UTC))),
            )
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _statements(script: str) -> Iterator[str]:
    """Split a script into its statements (`executescript` would commit the open transaction)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
