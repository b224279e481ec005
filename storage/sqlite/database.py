"""One SQLite file: its writer has a thread, visited once a transaction; readers have a connection."""

import asyncio
import os
import secrets
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import aiosqlite
import structlog
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random
from typing_extensions import override

from council.document.conversation import timestamp
from storage.atomic import check_room, clear_abandoned
from storage.database import Database, Job, Parameters
from storage.errors import DamageError, DatabaseError, damaged, explain_sqlite, explain_system
from storage.scope import Scope
from storage.sqlite.schema import known_migrations, migrate
from storage.text_search import RANKED, TEXTS, WEIGHTS, TextSearch, Wanted, spaced

log = structlog.stdlib.get_logger()

Done = TypeVar("Done")

ROOM = 2**20
"""Bytes that a question with its files, or an answer, may need of the disk."""

_PRAGMAS = """
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
"""

_MERGE_PAGES = 256  # of the search index in one transaction, some ten milliseconds

_SEARCH = f"""
WITH newest AS MATERIALIZED (
    SELECT rowid AS number, bm25(search, 0.0, {", ".join(map(str, WEIGHTS))}) AS score
    FROM search WHERE search MATCH :match ORDER BY rowid DESC LIMIT {RANKED}
)
SELECT number, score, (SELECT count(*) FROM newest) AS found
FROM newest ORDER BY score, number DESC LIMIT :limit OFFSET :offset
"""  # noqa: S608 - our own numbers


@dataclass(frozen=True, slots=True)
class _Writer:
    """The connection that writes, and its thread.

    Not aiosqlite's, which visits the thread once for each statement: most of a small commit's cost.
    """

    thread: ThreadPoolExecutor
    connection: sqlite3.Connection

    async def run(self, work: Callable[[sqlite3.Connection], Done]) -> Done:
        """Run some work with the connection, in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self.thread, work, self.connection)


class SqliteDatabase(Database):
    """An open database file; made by `open_database`."""

    def __init__(self, path: Path, writer: _Writer, reader: aiosqlite.Connection) -> None:
        super().__init__(str(path), path)
        self._path = path
        self._writer = writer
        self._reader = reader
        self.search = SqliteSearch(self)

    async def exclusively(self, *statements: str) -> list[list[sqlite3.Row]]:
        """Run statements between two transactions, each by itself, and return the rows of each.

        For what SQLite does only there: `VACUUM` and checkpoints. Writes wait until it is done.
        """

        def run(connection: sqlite3.Connection) -> list[list[sqlite3.Row]]:
            return [connection.execute(sql).fetchall() for sql in statements]

        self._refuse_if_closed()
        try:
            return await self._writer.run(run)
        except sqlite3.Error as error:
            raise self._told(error) from error

    @override
    async def read(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        self._refuse_if_closed()
        try:
            return [*await self._reader.execute_fetchall(sql, parameters)]
        except sqlite3.Error as error:
            # The error may quote what is stored, which must not reach a log.
            raise self._told(error) from None

    async def check_writable(self, by: float) -> None:
        """Write something that changes nothing, and see that files can grow; raises what `write` raises.

        On a full disk, a small write still fits where SQLite has written before; a question doesn't.
        """
        await super().check_writable(by)
        with explained(self._path):
            await asyncio.to_thread(check_room, self._path.parent, ROOM)

    async def scrub(self, *, large: bool) -> bool:
        """Rewrite the file while writes wait, and empty the write-ahead log; it is done at once.

        A damaged database that was set aside can't be edited, so it is deleted as a whole, as is what a
        killed backup has left. Old search segments are merged piece by piece, so that writes get their
        turn. Raises `DatabaseError` while another process reads the log.
        """
        del large  # reads don't wait for it
        for copy in copies_set_aside(self._path):
            await asyncio.to_thread(copy.unlink, missing_ok=True)
        await asyncio.to_thread(clear_abandoned, self._path.parent)
        await self.search.merge()
        # `secure_delete` zeroes what is deleted, but not the copies of rows that SQLite has moved to
        # another page: without this, one forgotten title in some hundreds stays in the file.
        await self.exclusively("VACUUM")
        [[(busy, *_)]] = await self.exclusively("PRAGMA wal_checkpoint (TRUNCATE)")
        if busy:
            raise DatabaseError(
                f"{self._path} is being read by another process, so what was forgotten "
                f"may still be in its -wal file; it is emptied at the next start",
                self._path,
            )
        return True

    @override
    def damaged(self) -> DamageError:
        return damaged(self._path)

    @override
    def mark_damage(self) -> None:
        with suppress(OSError):
            damage_mark(self._path).touch(mode=0o600)

    async def _transact(self, jobs: Sequence[Job]) -> list[Exception | None]:
        return await self._writer.run(partial(_transact, jobs))

    def _told(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.Error):
            return error
        told = explain_sqlite(self._path, error)
        if isinstance(told, DamageError):
            self.mark_damage()
        return told


class SqliteSearch(TextSearch):
    """Full-text search by FTS5."""

    columns = ("scope", *TEXTS)

    def __init__(self, database: "SqliteDatabase") -> None:
        self._database = database

    @override
    def stored(self, scope: Scope, texts: Mapping[str, str]) -> dict[str, str]:
        return {"scope": scope.word} | {name: spaced(texts[name]) for name in TEXTS}

    @override
    async def ranked(
        self, scope: Scope, wanted: Wanted, limit: int, offset: int = 0
    ) -> tuple[list[int], int]:
        match = f"scope : {scope.word} AND {wanted.expression}"
        given = {"match": match, "limit": limit, "offset": offset}
        rows = await self._database.read(_SEARCH, given)
        return [row["number"] for row in rows], rows[0]["found"] if rows else 0

    @override
    async def merge(self) -> None:
        """Merge the search index's segments into one, piece by piece, so that writes get their turn."""
        # A negative number begins a merge of everything; positive ones continue it.
        await self._merge(-_MERGE_PAGES)
        while await self._merge(_MERGE_PAGES):
            pass

    async def _merge(self, pages: int) -> bool:
        merge = f"INSERT INTO search (search, rank) VALUES ('merge', {pages})"  # noqa: S608 - our own number
        count = "SELECT total_changes()"
        [(before,)], _, [(after,)] = await self._database.exclusively(count, merge, count)
        # The command itself counts as a change (SQLite's documentation of FTS5, "merge").
        return after - before >= 2


@asynccontextmanager
async def open_database(path: Path, *, busy_timeout: float = 5.0) -> AsyncGenerator[SqliteDatabase]:
    """Open the database, creating and migrating it as needed; on exit, commit what is queued.

    `busy_timeout` is how many seconds to wait for another process's transaction.
    Raises `DatabaseError`.
    """
    async with AsyncExitStack() as stack:
        with explained(path):
            await asyncio.to_thread(make_private, path)
            writer = await stack.enter_async_context(_writing(path, busy_timeout))
            await writer.run(partial(_prepare, path, busy_timeout))
            reader = await stack.enter_async_context(
                aiosqlite.connect(path, timeout=busy_timeout, isolation_level=None)
            )
            await reader.execute("PRAGMA query_only = ON")
            reader.row_factory = sqlite3.Row
        database = SqliteDatabase(path, writer, reader)
        committing = asyncio.create_task(database.commit_queued())
        try:
            yield database
        finally:
            database.close()
            await committing


@asynccontextmanager
async def _writing(path: Path, busy_timeout: float) -> AsyncGenerator[_Writer]:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer") as thread:
        # No isolation level: a transaction begins only where the code says BEGIN.
        connect = partial(sqlite3.connect, path, timeout=busy_timeout, isolation_level=None)
        writer = _Writer(thread, await loop.run_in_executor(thread, connect))
        try:
            yield writer
        finally:
            await writer.run(sqlite3.Connection.close)


def _prepare(path: Path, busy_timeout: float, connection: sqlite3.Connection) -> None:
    # SQLite refuses at once to change the mode of a file that another program is opening, too.
    for attempt in Retrying(
        retry=retry_if_exception(_is_busy),
        stop=stop_after_delay(busy_timeout),
        wait=wait_random(0, 0.02),
        reraise=True,
    ):
        with attempt:
            connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(_PRAGMAS)
    connection.create_function("random_name", 0, lambda: secrets.token_hex(16))
    connection.create_function("database_day", 0, lambda: timestamp(datetime.now(UTC))[:10])
    migrate(connection, path, known_migrations())


def _is_busy(error: BaseException) -> bool:
    # The extended codes say why in their higher bits.
    return isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _transact(jobs: Sequence[Job], connection: sqlite3.Connection) -> list[Exception | None]:
    """Run jobs in one transaction, or else each in its own; return each one's error."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:
        # No job causes a lock: trying each by itself would wait for it once per job.
        return [error] * len(jobs)
    begun = [job for job in jobs if job.begin()]
    try:
        statements = (statement for job in begun for statement in job.statements)
        for sql, alike in groupby(statements, key=lambda statement: statement[0]):
            connection.executemany(sql, [parameters for _, parameters in alike])
        connection.execute("COMMIT")
    except Exception as error:  # noqa: BLE001 - its waiter handles whatever a job raises
        if connection.in_transaction:  # SQLite has rolled back already if the disk is full
            connection.execute("ROLLBACK")
        if len(jobs) == 1:
            return [error]
        return [failed for job in jobs for failed in _transact([job], connection)]
    return [None] * len(jobs)


def copies_set_aside(path: Path) -> list[Path]:
    """Return the damaged databases that were set aside, with their -wal and -shm files."""
    return sorted(path.parent.glob(f"{path.name}.broken-*"))


def damage_mark(path: Path) -> Path:
    """Return the path of the file that marks the database as damaged; the next start repairs it."""
    return path.with_name(f".{path.name}.damaged")


def make_private(path: Path) -> None:
    """Create the folder with mode 0700 and the file with 0600; -wal and -shm get the file's mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Turn errors of SQLite and the operating system into `DatabaseError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain_sqlite(path, error) from error
    except OSError as error:
        raise DatabaseError(explain_system(path, error), path) from error
