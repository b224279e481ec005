"""Everything copied from a data folder into PostgreSQL, and back: rows and documents as they are.

Each way, all of it appears at once or not at all, so that whoever was interrupted can begin again. A
backup of a database is one of the data folder that it would become.
"""

import asyncio
import os
import re
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from storage.archive import LARGEST_DOCUMENT, BackupReport, backup, restore
from storage.atomic import Stamp, clear_abandoned, create_file, move_files, read_regular, staging
from storage.database import Database
from storage.documents import codec
from storage.documents.conversations import Conversations, ConversationStore
from storage.errors import BackupError, DatabaseError, explain_sqlite, explain_system
from storage.postgres.connection import Connection, connect, explain_postgres, server, value
from storage.postgres.database import PostgresDatabase, open_postgres
from storage.postgres.locks import PostgresLocks
from storage.postgres.opening import PostgresDocuments
from storage.processes.locks import LOOK_SECONDS, PLATFORMS, SHARED
from storage.sqlite.database import open_database
from storage.sqlite.opening import AUDIT, DATABASE, DOCUMENTS, held_alone, open_folder
from storage.sqlite.schema import known_tables

Progress = Callable[[int, int], None]
"""Hears how many documents are copied, and how many there are."""

_NUMBERED = ("conversations", "work")
_BATCH = 200
_COPY = re.compile(r"(?P<id>[0-9a-f-]{36})\.json\.broken-(?P<at>\w+)")


@dataclass(frozen=True, slots=True)
class Copied:
    """How many documents and runs were copied; `was_there` if they had been already."""

    conversations: int
    runs: int
    was_there: bool = False


@dataclass(frozen=True, slots=True)
class _Contents:
    """What tells one council's data from another's: the documents' versions, and the runs."""

    documents: dict[str, Stamp]
    runs: frozenset[str]

    @classmethod
    async def of(cls, documents: Conversations, database: Database | None) -> "_Contents":
        listing = await documents.listing()
        rows = await database.read("SELECT id FROM runs") if database else ()
        return cls(listing.documents, frozenset(row["id"] for row in rows))

    @property
    def described(self) -> str:
        """What there is, in words; empty if nothing."""
        counted = f"conversations: {len(self.documents):,}, runs: {len(self.runs):,}"
        return counted if self.documents or self.runs else ""

    def are_there(self) -> Copied:
        return Copied(len(self.documents), len(self.runs), was_there=True)

    def refuse_replacing(self, name: str) -> None:
        if self.described:
            raise BackupError(
                f"{name} holds other data already ({self.described}), so nothing was copied; choose an "
                f"empty one, or move that away"
            )


async def backup_server(address: str, target: Path) -> BackupReport:
    """Write a database into one file, as `backup` does a data folder. Raises `StorageError`."""
    try:
        with staging(target.parent) as place:
            await _save(address, place, lambda _, __: None)
            return await backup(place, target)
    except OSError as error:
        raise BackupError(explain_system(target, error), target) from error


async def restore_server(source: Path, address: str, *, replace: bool = False) -> BackupReport:
    """Put a backup's content into a database, all of it checked before. Raises `StorageError`."""
    with tempfile.TemporaryDirectory(prefix="council-restore-") as place:
        report = await restore(source, Path(place))
        async with _alone(address) as (target, theirs):
            if theirs.described and not replace:
                raise BackupError(
                    f"{target.name} holds data already ({theirs.described}); say --replace to put the "
                    f"backup in its place"
                )
            async with open_database(Path(place) / DATABASE):  # an older program's gets today's tables
                pass
            await _load(Path(place), address, target, lambda _, __: None, replace=replace)
    return report


async def move_to_server(folder: Path, address: str, progress: Progress) -> Copied:
    """Copy a data folder into an empty database.

    Raises `StorageError`, also if either is in use, or the database holds other data.
    """
    path = folder / DATABASE
    if not path.exists():
        raise BackupError(f"{folder} holds no {DATABASE}, so there is nothing to copy", folder)
    with held_alone(path) as is_alone:
        if not is_alone:
            raise _in_use(str(folder))
    async with open_folder(folder) as source, _alone(address) as (target, theirs):
        for platform in PLATFORMS:
            async with source.locks.acquire(platform) as is_free:
                if not is_free:
                    raise _in_use(str(folder))
        ours = await _Contents.of(source.documents, source.database)
        if theirs == ours and ours.described:
            return ours.are_there()
        theirs.refuse_replacing(target.name)
        return await _load(folder, address, target, progress)


async def move_to_folder(address: str, folder: Path, progress: Progress) -> Copied:
    """Copy a database into an empty data folder.

    Raises `StorageError`, also if the database is in use, or the folder holds other data.
    """
    path = folder / DATABASE
    documents = await ConversationStore.open(folder / DOCUMENTS)
    clear_abandoned(folder)
    async with _alone(address) as (_, theirs):
        if path.exists():
            async with open_database(path) as database:
                ours = await _Contents.of(documents, database)
            if theirs == ours:
                return ours.are_there()
            ours.refuse_replacing(str(folder))
        else:
            # An interrupted move has put documents there, and the database comes last.
            ours = await _Contents.of(documents, None)
            if not ours.documents.items() <= theirs.documents.items():
                ours.refuse_replacing(str(folder))
        with staging(folder) as place:
            copied = await _save(address, place, progress)
            await asyncio.to_thread(_put_in_place, place, folder)
    return copied


@asynccontextmanager
async def _alone(address: str) -> AsyncGenerator[tuple[PostgresDatabase, _Contents]]:
    """Open a database and keep everybody else from it: what they change would be lost, or paid twice.

    Raises `DatabaseError` if somebody uses it.
    """
    async with open_postgres(address) as database, AsyncExitStack() as stack:
        locks = PostgresLocks(address, database, database.key)
        stack.push_async_callback(locks.close)
        for name in (SHARED, *PLATFORMS):
            if not await stack.enter_async_context(locks.acquire(name, wait=LOOK_SECONDS)):
                raise _in_use(database.name)
        yield database, await _Contents.of(PostgresDocuments(database), database)


def _in_use(name: str) -> DatabaseError:
    return DatabaseError(f"{name} is in use by a running council; stop it and try again")


@contextmanager
def _explained(folder: Path, address: str) -> Generator[sqlite3.Connection]:
    """Open a folder's database; turn errors of both sides into `StorageError`."""
    path = folder / DATABASE
    try:
        with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
            yield connection
    except psycopg.Error as error:
        raise explain_postgres(server(address), error) from None
    except sqlite3.Error as error:
        raise explain_sqlite(path, error) from error
    except OSError as error:
        raise BackupError(explain_system(folder, error), folder) from error


def _count_runs(folder: sqlite3.Connection) -> int:
    [(runs,)] = folder.execute("SELECT count(*) FROM runs")
    return runs


async def _load(
    folder: Path, address: str, target: PostgresDatabase, progress: Progress, *, replace: bool = False
) -> Copied:
    """Copy a data folder, which nobody uses, into a database in one transaction.

    `replace` deletes first what is there, except the audit. Raises `StorageError`.
    """
    emptied = (*known_tables()[::-1], "search", "documents", "documents_set_aside")
    with _explained(folder, address) as source:
        async with await connect(address) as connection:
            await connection.execute(b"SET idle_in_transaction_session_timeout = 0")
            async with connection.transaction():
                await connection.execute(f"SELECT pg_advisory_xact_lock({target.key}, 0)".encode())
                for table in emptied if replace else ("spending_key",):
                    await connection.execute(f"DELETE FROM {table}".encode())  # noqa: S608 - our own names
                for table in known_tables():
                    names, query = _rows_of(source, table)
                    await _copy(connection, table, names, source.execute(query))
                    if table in _NUMBERED:
                        last = f"(SELECT max(number) FROM {table})"  # noqa: S608 - our own schema's names
                        sequence = f"pg_get_serial_sequence('{table}', 'number')"
                        setting = f"SELECT setval({sequence}, {last}) WHERE {last} > 0"
                        await connection.execute(setting.encode())
                await _copy_audit(folder / AUDIT, connection)
                count = await _copy_documents(folder, connection, progress)
        return Copied(count, _count_runs(source))


def _rows_of(folder: sqlite3.Connection, table: str) -> tuple[str, str]:
    """Return a table's columns, and what reads its rows in either store."""
    names = ", ".join(f'"{row[1]}"' for row in folder.execute(f"PRAGMA table_info ({table})"))
    order = "ORDER BY rowid" if table == "runs" else ""
    return names, f"SELECT {names} FROM {table} {order}"  # noqa: S608 - our own schema's names


async def _copy(connection: Connection, table: str, names: str, rows: Iterable[Sequence[Any]]) -> None:
    async with connection.cursor().copy(f"COPY {table} ({names}) FROM STDIN".encode()) as copy:
        for row in rows:
            await copy.write_row(row)


async def _copy_audit(path: Path, connection: Connection) -> None:
    """Copy the audit where there is none yet: it is never changed."""
    if not await value(connection, b"SELECT EXISTS (SELECT 1 FROM audit)"):
        with suppress(FileNotFoundError):
            content = await asyncio.to_thread(path.read_bytes)
            await _copy(
                connection, "audit", "line", ((line,) for line in content.splitlines(keepends=True))
            )


async def _copy_documents(folder: Path, connection: Connection, progress: Progress) -> int:
    paths = await asyncio.to_thread(lambda: sorted((folder / DOCUMENTS).glob("*.json*")))
    files = [path for path in paths if codec.is_id(path.name.removesuffix(".json"))]
    progress(0, len(files))
    for start in range(0, len(files), _BATCH):
        batch = files[start : start + _BATCH]
        rows = await asyncio.to_thread(_document_rows, batch)
        await _copy(connection, "documents", "id, content, mtime_ns", rows)
        progress(start + len(batch), len(files))
    copies = [(found, path) for path in paths if (found := _COPY.fullmatch(path.name))]
    broken = ((found["id"], found["at"], path.read_bytes()) for found, path in copies)
    await _copy(connection, "documents_set_aside", "id, at, content", broken)
    return len(files)


def _document_rows(batch: Sequence[Path]) -> list[tuple[Any, ...]]:
    read = ((path.stem, *read_regular(path, LARGEST_DOCUMENT)) for path in batch)
    return [(name, content, version.mtime_ns) for name, content, version in read]


async def _save(address: str, folder: Path, progress: Progress) -> Copied:
    """Copy one moment of a database into a new data folder, whose index has no search texts yet.

    Raises `StorageError`.
    """
    async with open_database(folder / DATABASE):
        pass
    there, done = folder / DOCUMENTS, 0
    with _explained(folder, address) as target:
        there.mkdir(0o700)
        async with await connect(address) as connection:
            await connection.execute(b"SET idle_in_transaction_session_timeout = 0")
            await connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            batches = partial(_batches, connection)
            target.execute("PRAGMA foreign_keys = OFF")
            target.execute("DELETE FROM spending_key")
            for table in known_tables():
                names, query = _rows_of(target, table)
                values = ", ".join("?" * (names.count(",") + 1))
                insert = f"INSERT INTO {table} ({names}) VALUES ({values})"  # noqa: S608 - our own schema's names
                async for rows in batches(query):
                    await asyncio.to_thread(_insert, target, insert, [(*row.values(),) for row in rows])
            target.commit()
            async for rows in batches("SELECT line FROM audit ORDER BY number"):
                lines = b"".join(bytes(row["line"]).rstrip(b"\n") + b"\n" for row in rows)
                await asyncio.to_thread(_append, folder / AUDIT, lines)
            total = await value(connection, b"SELECT count(*) FROM documents")
            progress(0, total)
            async for rows in batches("SELECT id || '.json' AS name, * FROM documents ORDER BY id"):
                await asyncio.to_thread(_write_all, there, rows)
                done += len(rows)
                progress(done, total)
            copies = "SELECT id || '.json.broken-' || at AS name, content FROM documents_set_aside"
            async for rows in batches(copies):
                await asyncio.to_thread(_write_all, there, rows)
            await connection.execute(b"COMMIT")
        return Copied(done, _count_runs(target))


def _insert(target: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows; the cursor ends here, as its end in another thread would reset the next batch's."""
    target.executemany(statement, rows)


async def _batches(connection: Connection, query: str) -> AsyncGenerator[list[dict[str, Any]]]:
    await connection.execute(f"DECLARE copied NO SCROLL CURSOR FOR {query}".encode())
    while rows := await (await connection.execute(f"FETCH {_BATCH} FROM copied".encode())).fetchall():
        yield rows
    await connection.execute(b"CLOSE copied")


def _write_all(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        name = str(row["name"])
        if codec.is_id(name.removesuffix(".json")) or _COPY.fullmatch(name):
            # From a stranger's backup, it could be any path.
            create_file(folder / name, [bytes(row["content"])], row.get("mtime_ns"))


def _append(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(descriptor, "ab") as file:  # noqa: PTH123 - a descriptor has no path to open
        file.write(content)


def _put_in_place(place: Path, folder: Path) -> None:
    """Move what is complete into a folder; the database last, so that it tells that all is there."""
    os.sync()
    documents = place / DOCUMENTS
    move_files(documents, (path.name for path in documents.iterdir()), folder / DOCUMENTS)
    audit = [AUDIT] if (place / AUDIT).exists() else []
    move_files(place, [*audit, DATABASE], folder)
