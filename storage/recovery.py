"""A damaged council.db: set aside, and what can be read of its journal carried over into a new one.

The index needs no saving, it is derived from the documents. The journal is the only copy of what
was paid for, so it is never dropped without a word.
"""

import asyncio
import fcntl
import os
import re
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from council.conversation import timestamp
from storage.database import Database, open_database
from storage.errors import DatabaseError, explain_system

# Reading a whole large file would hold up the start; there the journal's table of runs stands for all.
_CHECKED_WHOLE = 64_000_000  # bytes
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_DERIVED = re.compile(r"sqlite_.*|migrations|conversations|answers|seats|search(_.*)?")
_BESIDE = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Recovery:
    """A damaged database: where it lies now, how many rows of each table were carried over.

    `complete`: every table could be read to its end.
    """

    set_aside: Path
    rows: dict[str, int]
    complete: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """An open database, and the recovery that went before, if it was damaged."""

    database: Database
    recovery: Recovery | None


@asynccontextmanager
async def open_sound_database(
    path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncGenerator[Opened]:
    """Open the database; a damaged one is set aside first, and its journal carried over.

    Raises `DatabaseError`, also where it is damaged and another process has it open.
    """
    with _held_open(path) as descriptor:
        aside = await asyncio.to_thread(_set_aside_if_damaged, path, now(), descriptor)
        async with open_database(path) as database:
            recovery = await asyncio.to_thread(_carry_over, aside, path) if aside else None
            yield Opened(database, recovery)


def copies_set_aside(path: Path) -> list[Path]:
    """Name the damaged databases that were set aside, and what lies beside them."""
    return sorted(path.parent.glob(f"{path.name}.broken-*"))


@contextmanager
def _held_open(path: Path) -> Generator[int]:
    """Let other processes know that this one has the database open."""
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


def _set_aside_if_damaged(path: Path, moment: datetime, descriptor: int) -> Path | None:
    if not path.exists() or path.stat().st_size == 0 or not _is_damaged(path):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DatabaseError(
            f"{path} is damaged, and another process has it open; stop that process and start again",
            path,
        ) from error
    aside = path.with_name(f"{path.name}.broken-{re.sub('[-:.]', '', timestamp(moment))}")
    for beside in _BESIDE:
        part = path.with_name(f"{path.name}{beside}")
        if part.exists():
            part.rename(aside.with_name(f"{aside.name}{beside}"))
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return aside


def _is_damaged(path: Path) -> bool:
    small = path.stat().st_size <= _CHECKED_WHOLE
    try:
        with closing(sqlite3.connect(path)) as connection:
            check = "PRAGMA quick_check (1)" if small else "PRAGMA quick_check (runs)"
            [(verdict,)] = connection.execute(check).fetchmany(1)
    except sqlite3.DatabaseError as error:
        # Locks and the like are told by whoever opens it next.
        return error.sqlite_errorcode & 0xFF in _DAMAGE
    return verdict != "ok"


def _carry_over(aside: Path, path: Path) -> Recovery:
    rows: dict[str, int] = {}
    complete = True
    with closing(sqlite3.connect(aside)) as source, closing(sqlite3.connect(path)) as target:
        source.text_factory = bytes  # damage inside a text costs its row, not the table
        tables = [
            name
            for (name,) in target.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not _DERIVED.fullmatch(name)
        ]
        for table in tables:
            complete &= _carry_table(source, target, table)
        for table in tables:
            for key in target.execute(f"PRAGMA foreign_key_list ({table})").fetchall():
                parent, column, referenced = key[2:5]
                target.execute(
                    f"DELETE FROM {table} WHERE {column} NOT IN (SELECT {referenced} FROM {parent})"  # noqa: S608 - our own schema's names
                )
        for table in tables:
            [(rows[table],)] = target.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - our own schema's names
        target.commit()
    return Recovery(aside, rows, complete)


def _carry_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> bool:
    """Copy a table's rows from its beginning, and where damage stops that, from its end."""
    try:
        there = {column[1].decode() for column in source.execute(f"PRAGMA table_info ({table})")}
        described = target.execute(f"PRAGMA table_info ({table})").fetchall()
        shared = [column[1] for column in described if column[1] in there]
        keys = [column[1] for column in described if column[5]]
    except sqlite3.DatabaseError:
        return False
    if not shared:
        return False
    select = f"SELECT {', '.join(shared)} FROM {table}"  # noqa: S608 - our own schema's names
    insert = (
        f"INSERT OR IGNORE INTO {table} ({', '.join(shared)}) VALUES ({', '.join('?' * len(shared))})"  # noqa: S608 - our own schema's names
    )
    order = ", ".join(f"{key} DESC" for key in keys) or "rowid DESC"
    whole = _copy(source, target, select, insert)
    return whole or (_copy(source, target, f"{select} ORDER BY {order}", insert) and False)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, select: str, insert: str) -> bool:
    whole = True
    try:
        for row in source.execute(select):
            try:
                values = [value.decode() if isinstance(value, bytes) else value for value in row]
            except UnicodeDecodeError:
                whole = False
                continue
            target.execute(insert, values)
    except sqlite3.DatabaseError:
        return False
    return whole
