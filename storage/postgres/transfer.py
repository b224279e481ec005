"""Everything copied from a data folder into PostgreSQL, and back: rows and documents as they are.

Each way, all of it appears at once or not at all, so that whoever was interrupted can begin again.
"""

import asyncio
import os
import re
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from storage.atomic import Stamp, clear_abandoned, create_file, move_files, read_regular, staging
from storage.backups.backup import LARGEST_DOCUMENT, BackupReport, backup
from storage.backups.restore import restore
from storage.documents import codec
from storage.errors import BackupError, DatabaseError, explain_sqlite, explain_system
from storage.postgres.connection import Connection, connect, server
from storage.postgres.database import PostgresDatabase, open_postgres
from storage.postgres.errors import explain_postgres
from storage.postgres.locks import PostgresLocks
from storage.processes.locks import LOOK_SECONDS, PLATFORMS, SHARED
from storage.sqlite.database import open_database
from storage.sqlite.opening import AUDIT, DATABASE, DOCUMENTS, open_folder
from storage.sqlite.salvage import held_alone

Progress = Callable[[int, int], None]
"""Hears how many documents are copied, and how many there are."""

# In an order in which each row's reference is there before it. The rest is derived from the documents.
TABLES = (
    "runs",
    "steps",
    "posts",
    "pictures",
    "conversations",
    "answers",
    "seats",
    "votes",
    "depths",
    "authors",
    "work",
    "copies",
    "spending",
    "spending_days",
    "spending_key",
    "overrides",
    "retention_clock",
    "budget_warnings",
    "judged_corrections",
    "tokens",
)
_NUMBERED = ("conversations", "work")
_BATCH = 200
_COPY = re.compile(r"(?P<id>[0-9a-f-]{36})\.json\.broken-(?P<at>\w+)")
_EVERYTHING = (*TABLES[::-1], "search", "documents", "documents_set_aside")
_LISTING = "SELECT id, mtime_ns, length(content) AS size FROM documents"


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

    @property
    def is_empty(self) -> bool:
        return not (self.documents or self.runs)

    @property
    def described(self) -> str:
        return f"conversations: {len(self.documents):,}, runs: {len(self.runs):,}"


async def backup_server(address: str, target: Path) -> BackupReport:
    """Write a database into one file, as `backup` does a data folder. Raises `StorageError`."""
    try:
        with staging(target.parent) as place:
            await save(address, place, lambda _, __: None)
            return await backup(place, target)
    except OSError as error:
        raise BackupError(explain_system(target, error), target) from error


async def restore_server(source: Path, address: str, *, replace: bool = False) -> BackupReport:
    """Put a backup's content into a database, all of it checked before. Raises `StorageError`."""
    with tempfile.TemporaryDirectory(prefix="council-restore-") as place:
        report = await restore(source, Path(place))
        async with open_postgres(address) as target, _alone(address, target):
            theirs = await _of_server(target)
            if not (theirs.is_empty or replace):
                raise BackupError(
                    f"{target.name} holds data already ({theirs.described}); say --replace to put the "
                    f"backup in its place"
                )
            async with open_database(Path(place) / DATABASE):  # an older program's gets today's tables
                pass
            await load(Path(place), address, target, lambda _, __: None, replace=replace)
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
    async with (
        open_folder(folder) as source,
        open_postgres(address) as target,
        _alone(address, target),
    ):
        for platform in PLATFORMS:
            async with source.locks.acquire(platform) as is_free:
                if not is_free:
                    raise _in_use(str(folder))
        ours, theirs = await _of_folder(folder), await _of_server(target)
        if theirs == ours and not ours.is_empty:
            return Copied(len(ours.documents), len(ours.runs), was_there=True)
        if not theirs.is_empty:
            raise _holds_others(target.name, theirs)
        return await load(folder, address, target, progress)


async def move_to_folder(address: str, folder: Path, progress: Progress) -> Copied:
    """Copy a database into an empty data folder.

    Raises `StorageError`, also if the database is in use, or the folder holds other data.
    """
    await asyncio.to_thread(_prepare, folder)
    async with open_postgres(address) as source, _alone(address, source):
        theirs, ours = await _of_server(source), await _of_folder(folder)
        if theirs == ours and (folder / DATABASE).exists():
            return Copied(len(ours.documents), len(ours.runs), was_there=True)
        # An interrupted move has put documents there, and the database comes last.
        is_part = ours.documents.items() <= theirs.documents.items()
        is_begun = is_part and not (folder / DATABASE).exists()
        if not (ours.is_empty or is_begun):
            raise _holds_others(str(folder), ours)
        with staging(folder) as place:
            copied = await save(address, place, progress)
            await asyncio.to_thread(_put_in_place, place, folder)
    return copied


@asynccontextmanager
async def _alone(address: str, database: PostgresDatabase) -> AsyncGenerator[None]:
    """Keep everybody else from the database: what they change would be lost, or paid for twice.

    Raises `DatabaseError` if somebody uses it.
    """
    locks = PostgresLocks(address, database, database.key)
    try:
        async with AsyncExitStack() as stack:
            for name in (SHARED, *PLATFORMS):
                if not await stack.enter_async_context(locks.acquire(name, wait=LOOK_SECONDS)):
                    raise _in_use(database.name)
            yield
    finally:
        await locks.close()


async def load(
    folder: Path, address: str, target: PostgresDatabase, progress: Progress, *, replace: bool = False
) -> Copied:
    """Copy a data folder, which nobody uses, into a database in one transaction.

    `replace` deletes first what is there, except the audit. Raises `StorageError`.
    """
    path = folder / DATABASE
    try:
        with closing(sqlite3.connect(path, check_same_thread=False)) as source:
            async with _transaction(address, target) as connection:
                if replace:
                    for table in _EVERYTHING:
                        await connection.execute(f"DELETE FROM {table}".encode())  # noqa: S608 - our own names
                await connection.execute(b"DELETE FROM spending_key")
                for table in TABLES:
                    await _copy_table(source, connection, table)
                await _copy_audit(folder / AUDIT, connection)
                count = await _copy_documents(folder, connection, progress)
                [(runs,)] = source.execute("SELECT count(*) FROM runs")
    except sqlite3.Error as error:
        raise explain_sqlite(path, error) from error
    except OSError as error:
        raise BackupError(explain_system(folder, error), folder) from error
    return Copied(count, runs)


@asynccontextmanager
async def _transaction(address: str, target: PostgresDatabase) -> AsyncGenerator[Connection]:
    """Keep other writers out until all is there, or nothing."""
    try:
        async with await connect(address) as connection:
            await connection.execute(b"SET idle_in_transaction_session_timeout = 0")
            async with connection.transaction():
                await connection.execute(f"SELECT pg_advisory_xact_lock({target.key}, 0)".encode())
                yield connection
    except psycopg.Error as error:
        raise explain_postgres(target.name, error) from None


async def _copy_table(source: sqlite3.Connection, connection: Connection, table: str) -> None:
    columns = [row[1] for row in source.execute(f"PRAGMA table_info ({table})")]
    names = ", ".join(f'"{name}"' for name in columns)
    order = "ORDER BY rowid" if table == "runs" else ""
    rows = source.execute(f"SELECT {names} FROM {table} {order}")  # noqa: S608 - our own schema's names
    await _copy_rows(connection, f"COPY {table} ({names}) FROM STDIN", rows)
    if table in _NUMBERED:
        last = f"(SELECT max(number) FROM {table})"  # noqa: S608 - our own schema's names
        sequence = f"pg_get_serial_sequence('{table}', 'number')"
        await connection.execute(f"SELECT setval({sequence}, {last}) WHERE {last} > 0".encode())


async def _copy_rows(connection: Connection, command: str, rows: Iterable[Sequence[Any]]) -> None:
    async with connection.cursor().copy(command.encode()) as copy:
        for row in rows:
            await copy.write_row(row)


async def _copy_audit(path: Path, connection: Connection) -> None:
    """Copy the audit where there is none yet: it is never changed."""
    found = await (await connection.execute(b"SELECT EXISTS (SELECT 1 FROM audit) AS kept")).fetchone()
    if found and not found["kept"]:
        with suppress(FileNotFoundError):
            content = await asyncio.to_thread(path.read_bytes)
            lines = [(line,) for line in content.splitlines(keepends=True)]
            await _copy_rows(connection, "COPY audit (line) FROM STDIN", lines)


async def _copy_documents(
    folder: Path,
    connection: Connection,
    progress: Progress,
) -> int:
    paths = await asyncio.to_thread(lambda: sorted((folder / DOCUMENTS).glob("*.json*")))
    files = [path for path in paths if codec.is_id(path.name.removesuffix(".json"))]
    progress(0, len(files))
    for start in range(0, len(files), _BATCH):
        batch = files[start : start + _BATCH]
        rows = await asyncio.to_thread(_document_rows, batch)
        await _copy_rows(connection, "COPY documents (id, content, mtime_ns) FROM STDIN", rows)
        progress(min(start + _BATCH, len(files)), len(files))
    copies = [
        (found["id"], found["at"], path.read_bytes())
        for path in paths
        if (found := _COPY.fullmatch(path.name))
    ]
    await _copy_rows(connection, "COPY documents_set_aside (id, at, content) FROM STDIN", copies)
    return len(files)


def _document_rows(batch: Sequence[Path]) -> list[tuple[Any, ...]]:
    read = [(path.stem, *read_regular(path, LARGEST_DOCUMENT)) for path in batch]
    return [(name, content, version.mtime_ns) for name, content, version in read]


async def save(address: str, folder: Path, progress: Progress) -> Copied:
    """Copy one moment of a database into a new data folder, whose index has no search texts yet.

    Raises `StorageError`.
    """
    async with open_database(folder / DATABASE):
        pass
    there = folder / DOCUMENTS
    await asyncio.to_thread(there.mkdir, 0o700)
    try:
        async with await connect(address) as connection:
            await connection.execute(b"SET idle_in_transaction_session_timeout = 0")
            await connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            with closing(sqlite3.connect(folder / DATABASE, check_same_thread=False)) as target:
                target.execute("PRAGMA foreign_keys = OFF")
                target.execute("DELETE FROM spending_key")
                for table in TABLES:
                    await _save_table(connection, target, table)
                target.commit()
                [(runs,)] = target.execute("SELECT count(*) FROM runs")
            await _save_audit(connection, folder / AUDIT)
            count = await _save_documents(connection, there, progress)
            await connection.execute(b"COMMIT")
    except psycopg.Error as error:
        raise explain_postgres(server(address), error) from None
    except sqlite3.Error as error:
        raise explain_sqlite(folder / DATABASE, error) from error
    except OSError as error:
        raise BackupError(explain_system(folder, error), folder) from error
    return Copied(count, runs)


async def _save_table(connection: Connection, target: sqlite3.Connection, table: str) -> None:
    columns = [row[1] for row in target.execute(f"PRAGMA table_info ({table})")]
    names = ", ".join(f'"{name}"' for name in columns)
    order = "ORDER BY rowid" if table == "runs" else ""
    query = f"SELECT {names} FROM {table} {order}"  # noqa: S608 - our own schema's names
    insert = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - our own schema's names
    async for rows in _batches(connection, query):
        await asyncio.to_thread(_insert, target, insert, [(*row.values(),) for row in rows])


def _insert(target: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows; the cursor ends here, as its end in another thread would reset the next batch's."""
    target.executemany(statement, rows)


async def _save_audit(connection: Connection, path: Path) -> None:
    async for rows in _batches(connection, "SELECT line FROM audit ORDER BY number"):
        content = b"".join(bytes(row["line"]).rstrip(b"\n") + b"\n" for row in rows)
        await asyncio.to_thread(_append, path, content)


async def _save_documents(connection: Connection, folder: Path, progress: Progress) -> int:
    counted = await (await connection.execute(b"SELECT count(*) AS total FROM documents")).fetchone()
    total, done = (counted["total"] if counted else 0), 0
    progress(0, total)
    async for rows in _batches(connection, "SELECT id, content, mtime_ns FROM documents ORDER BY id"):
        files = [(f"{row['id']}.json", bytes(row["content"]), row["mtime_ns"]) for row in rows]
        await asyncio.to_thread(_write_all, folder, files)
        done += len(rows)
        progress(done, total)
    async for rows in _batches(connection, "SELECT id, at, content FROM documents_set_aside"):
        files = [(f"{row['id']}.json.broken-{row['at']}", bytes(row["content"]), None) for row in rows]
        await asyncio.to_thread(_write_all, folder, files)
    return done


async def _batches(connection: Connection, query: str) -> AsyncGenerator[list[dict[str, Any]]]:
    await connection.execute(f"DECLARE copied NO SCROLL CURSOR FOR {query}".encode())
    while rows := await (await connection.execute(f"FETCH {_BATCH} FROM copied".encode())).fetchall():
        yield rows
    await connection.execute(b"CLOSE copied")


def _write_all(folder: Path, files: Sequence[tuple[str, bytes, int | None]]) -> None:
    for name, content, mtime_ns in files:
        if not (codec.is_id(name.removesuffix(".json")) or _COPY.fullmatch(name)):
            continue  # restored from a stranger's backup, it could be any path
        create_file(folder / name, [content], mtime_ns)


def _append(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(descriptor, "ab") as file:  # noqa: PTH123 - a descriptor has no path to open
        file.write(content)


def _prepare(folder: Path) -> None:
    """Make a folder, and delete what an interrupted copy has left in it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    clear_abandoned(folder)


def _put_in_place(place: Path, folder: Path) -> None:
    """Move what is complete into a folder; the database last, so that it tells that all is there."""
    os.sync()
    documents = place / DOCUMENTS
    move_files(documents, (path.name for path in documents.iterdir()), folder / DOCUMENTS)
    audit = [AUDIT] if (place / AUDIT).exists() else []
    move_files(place, [*audit, DATABASE], folder)


async def _of_server(database: PostgresDatabase) -> _Contents:
    listing = await database.read(_LISTING)
    runs = await database.read("SELECT id FROM runs")
    return _Contents(
        {row["id"]: Stamp(row["mtime_ns"], row["size"]) for row in listing},
        frozenset(row["id"] for row in runs),
    )


async def _of_folder(folder: Path) -> _Contents:
    def look() -> _Contents:
        runs: Iterator[tuple[str]] = iter(())
        found = {
            path.stem: Stamp(status.st_mtime_ns, status.st_size)
            for path in (folder / DOCUMENTS).glob("*.json")
            if codec.is_id(path.stem) and (status := path.stat())
        }
        path = folder / DATABASE
        if not path.exists():
            return _Contents(found, frozenset())
        try:
            with closing(sqlite3.connect(path)) as connection:
                runs = connection.execute("SELECT id FROM runs")
                return _Contents(found, frozenset(one for (one,) in runs))
        except sqlite3.Error as error:
            raise explain_sqlite(path, error) from error

    return await asyncio.to_thread(look)


def _in_use(name: str) -> DatabaseError:
    return DatabaseError(f"{name} is in use by a running council; stop it and try again")


def _holds_others(name: str, contents: _Contents) -> BackupError:
    return BackupError(
        f"{name} holds other data already ({contents.described}), so nothing was copied; choose an "
        f"empty one, or move that away"
    )
