"""A data folder: the database, the documents and the audit in files.

A damaged database is set aside, and what can be read of its journal is copied to a new one. The index
needs no rescue, because it is derived from the documents. The journal is the only copy of what was paid
for, so it is never dropped silently: the damaged database stays until the new one is complete.
"""

import asyncio
import fcntl
import os
import re
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from council.document.conversation import timestamp
from storage.atomic import sync_folder
from storage.audit import Audit
from storage.documents.conversations import ConversationStore
from storage.errors import DatabaseError, damaged, explain_system
from storage.processes.locks import FileLocks
from storage.sqlite.database import copies_set_aside, damage_mark, explained, make_private, open_database
from storage.sqlite.schema import known_migrations, known_schema, migrate, read_schema
from storage.stores import Recovery, Stores

DATABASE, DOCUMENTS, AUDIT = "council.db", "conversations", "audit.jsonl"

# Reading a whole large file would delay the start: only its table of runs is checked, and damage
# elsewhere is marked by whoever meets it.
_CHECKED_WHOLE = 64_000_000  # bytes
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOST = (*_DAMAGE, sqlite3.SQLITE_ERROR)  # the last: the table itself
_REFUSED = (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR)  # the last: JSON that an index reads
_BROKEN = (
    "DELETE FROM runs WHERE NOT (json_valid(origin) AND json_valid(brief))",
    "DELETE FROM runs WHERE NOT json_valid(ifnull(error, '{}'))",
    "DELETE FROM steps WHERE NOT json_valid(outcome)",
)
_DERIVED = re.compile(
    r"sqlite_.*|migrations|conversations|answers|seats|authors|votes|depths|search(_.*)?"
)
_BESIDE = ("", "-wal", "-shm")
_MOST_STEPS = 10_000
_UNREADABLE_RUNS = """
SELECT count(*) FROM runs
WHERE NOT (json_valid(origin) AND json_valid(brief) AND json_valid(ifnull(error, '{}')))
"""
_UNREADABLE_STEPS = """
SELECT count(*) FROM (SELECT outcome FROM steps ORDER BY recorded_at DESC LIMIT ?)
WHERE NOT json_valid(outcome)
"""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was seen: whether the schema is an older or a newer program's, and rows that can't be read.

    Of the model calls, the last 10,000 are looked at, and none where the schema isn't this program's.
    """

    is_older: bool = False
    is_newer: bool = False
    unreadable_runs: int = 0
    unreadable_steps: int = 0


@asynccontextmanager
async def open_folder(
    folder: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncGenerator[Stores]:
    """Open a data folder, creating it if it is missing; a damaged database is recovered before.

    Raises `StorageError`, also if it is damaged and another process has it open.
    """
    path = folder / DATABASE
    with _held_open(path) as descriptor:
        recovered = await asyncio.to_thread(_recover_if_damaged, path, now(), descriptor)
        async with open_database(path) as database:
            yield Stores(
                database=database,
                documents=await ConversationStore.open(folder / DOCUMENTS),
                audit=Audit(folder / AUDIT),
                locks=FileLocks(folder / ".held"),
                recovered=recovered,
            )


@contextmanager
def held_alone(path: Path) -> Generator[bool]:
    """Keep other processes from opening the database; yield false if one has it open already."""
    with _held_open(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _held_open(path: Path) -> Generator[int]:
    """Mark the database as open in this process, for others to see."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path.with_name(f".{path.name}.open"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise DatabaseError(explain_system(path, error), path) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def _recover_if_damaged(path: Path, moment: datetime, descriptor: int) -> Recovery | None:
    new, mark = path.with_name(f".{path.name}.recovering"), damage_mark(path)
    with explained(path):
        # Only the swap removes the database while there is a new one.
        is_certain = is_damaged(path) or (new.exists() and not path.exists())
        if not is_certain and not mark.exists():
            new.unlink(missing_ok=True)
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not is_certain:
                return None
            raise DatabaseError(
                f"{path} is damaged, and another process has it open; stop that process and start again",
                path,
            ) from error
        if (
            not path.exists()
        ):  # undo a swap that was interrupted, so that it is done again from its beginning
            ends = tuple(filter(None, _BESIDE))
            for aside in [one for one in copies_set_aside(path) if not one.name.endswith(ends)][-1:]:
                for end in reversed(_BESIDE):
                    _move(aside, path, end)
        new.unlink(missing_ok=True)
        recovery = _recover(path, new, moment) if path.exists() else None
        mark.unlink(missing_ok=True)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return recovery


def _recover(path: Path, new: Path, moment: datetime) -> Recovery:
    make_private(new)
    rows, complete = _carry_over(path, new)
    aside = path.with_name(f"{path.name}.broken-{re.sub('[-:.]', '', timestamp(moment))}")
    for end in _BESIDE:
        _move(path, aside, end)
    new.rename(path)
    sync_folder(path.parent)
    return Recovery(aside, rows, complete)


def _move(source: Path, target: Path, end: str) -> None:
    with suppress(FileNotFoundError):
        source.with_name(f"{source.name}{end}").rename(target.with_name(f"{target.name}{end}"))


def is_damaged(path: Path) -> bool:
    """Return whether a database is damaged, as far as a quick look tells; a missing one isn't."""
    size = path.stat().st_size if path.exists() else 0
    if not size:  # SQLite takes an empty file for a new database
        return False
    small = size <= _CHECKED_WHOLE
    try:
        with closing(sqlite3.connect(path)) as connection:
            check = "PRAGMA quick_check (1)" if small else "PRAGMA quick_check (runs)"
            [(verdict,)] = connection.execute(check).fetchmany(1)
    except sqlite3.DatabaseError as error:
        # Locks and the like are told by who opens it next.
        return error.sqlite_errorcode & 0xFF in _DAMAGE
    return verdict != "ok"


class _Text(bytes):
    """A text as it is stored: damage inside it costs its row, not the table."""


def _carry_over(damaged: Path, new: Path) -> tuple[dict[str, int], bool]:
    """Copy the journal into a new file; return each table's row count, and whether no row is missing."""
    rows: dict[str, int] = {}
    complete = True
    with (
        closing(sqlite3.connect(damaged)) as source,
        closing(sqlite3.connect(new, isolation_level=None)) as target,
    ):
        source.text_factory = _Text
        target.execute("PRAGMA journal_mode = MEMORY")  # a killed recovery starts over
        # As old as what is read: who opens it next carries over what is kept differently today.
        applied = [row[0] for row in _readable(source, "SELECT number FROM migrations") if row]
        newest = max(applied, default=known_schema())
        migrate(target, new, [one for one in known_migrations() if one.number <= newest])
        tables = [
            name
            for (name,) in target.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not _DERIVED.fullmatch(name)
        ]
        target.execute("BEGIN")
        for table in tables:
            complete &= _carry_table(source, target, table)
        for broken in _BROKEN:
            complete &= target.execute(broken).rowcount == 0
        for table in tables:
            for key in target.execute(f"PRAGMA foreign_key_list ({table})").fetchall():
                parent, column, referenced = key[2:5]
                target.execute(
                    f"DELETE FROM {table} WHERE {column} NOT IN (SELECT {referenced} FROM {parent})"  # noqa: S608 - our own schema's names
                )
        for table in tables:
            [(rows[table],)] = target.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - our own schema's names
        target.execute("COMMIT")
    return rows, complete


def _carry_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> bool:
    """Copy a table's rows from its beginning and, if damage stops that, from its end."""
    described = target.execute(f"PRAGMA table_info ({table})").fetchall()
    there: set[bytes] = set()
    for column in _readable(source, f"PRAGMA table_info ({table})"):
        if column is None:
            return False
        there.add(column[1])
    shared = [column[1] for column in described if column[1].encode() in there]
    keys = [column[1] for column in described if column[5]]
    if not shared:  # an older program's database had no such table
        return True
    select = f"SELECT {', '.join(shared)} FROM {table}"  # noqa: S608 - our own schema's names
    insert = (
        f"INSERT OR IGNORE INTO {table} ({', '.join(shared)}) VALUES ({', '.join('?' * len(shared))})"  # noqa: S608 - our own schema's names
    )
    order = ", ".join(f"{key} DESC" for key in keys) or "rowid DESC"
    whole = _copy(source, target, select, insert)
    return whole or (_copy(source, target, f"{select} ORDER BY {order}", insert) and False)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, select: str, insert: str) -> bool:
    whole = True
    for row in _readable(source, select):
        if row is None:
            return False
        try:
            values = [value.decode() if isinstance(value, _Text) else value for value in row]
            target.execute(insert, values)
        except UnicodeDecodeError:
            whole = False
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in _REFUSED:
                raise
            whole = False
    return whole


def _readable(source: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...] | None]:
    """Yield a query's rows as far as they can be read, then `None` if there are more."""
    try:
        yield from source.execute(query)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _LOST:
            raise
        yield None


def inspect(path: Path) -> Inspection:
    """Look at a database. Raises `DatabaseError`, of which a `DamageError` says that it is damaged."""
    if damage_mark(path).exists() or is_damaged(path):
        raise damaged(path)
    with (
        explained(path),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database,
    ):
        try:
            schema = read_schema(database)
        except ValueError as error:
            raise DatabaseError(f"{path}: {error}", path) from error
        if schema != known_schema():
            return Inspection(is_older=schema < known_schema(), is_newer=schema > known_schema())
        [(runs,)] = database.execute(_UNREADABLE_RUNS)
        [(steps,)] = database.execute(_UNREADABLE_STEPS, (_MOST_STEPS,))
        return Inspection(unreadable_runs=runs, unreadable_steps=steps)
