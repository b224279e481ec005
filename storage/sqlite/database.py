"""One SQLite file: many writers share one transaction, readers have a connection of their own.

A commit waits for the disk, so it is the expensive part of a write. Meanwhile, further writes queue
up; the next transaction takes all of them (group commit), in one visit to the writer's thread.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import aiosqlite
import structlog
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from storage.errors import DamageError, DatabaseError, WriterError, explain_sqlite, explain_system
from storage.sqlite.schema import known_migrations, migrate

log = structlog.stdlib.get_logger()

SqlValue = str | bytes | int | float | None
Parameters = Sequence[SqlValue] | Mapping[str, SqlValue]
Statement = tuple[str, Parameters]
Done = TypeVar("Done")

_SAME = "UPDATE migrations SET applied_at = applied_at WHERE number = 1"
_PRAGMAS = """
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
"""


@dataclass(slots=True, eq=False)
class _Job:
    """Statements that succeed or fail together, and who waits for them.

    Either its transaction begins, in the writer's thread, or it is withdrawn, in the event loop's.
    Whichever comes first rules out the other.
    """

    statements: tuple[Statement, ...]
    done: asyncio.Future[None]
    _deciding: threading.Lock = field(default_factory=threading.Lock)
    _has_begun: bool = False
    is_withdrawn: bool = False

    def begin(self) -> bool:
        """Rule out that the job is withdrawn; false if it has been."""
        with self._deciding:
            self._has_begun = not self.is_withdrawn
            return self._has_begun

    def withdraw(self) -> bool:
        """Rule out that the job is run; false if its transaction has begun."""
        with self._deciding:
            self.is_withdrawn = not self._has_begun
            return self.is_withdrawn


@dataclass(frozen=True, slots=True, eq=False)
class _Chore:
    """Statements that run outside any transaction, and who waits for their rows."""

    statements: tuple[str, ...]
    done: asyncio.Future[list[list[sqlite3.Row]]]


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


class Database:
    """An open database; made by `open_database`.

    `failed` is done when nothing can be written any more, because the writer has failed. Its result
    is the error that every write raises from then on; a long-running process should end with it.
    """

    def __init__(self, path: Path, writer: _Writer, reader: aiosqlite.Connection) -> None:
        self.path = path
        self.failed: asyncio.Future[WriterError] = asyncio.get_running_loop().create_future()
        self._writer = writer
        self._reader = reader
        self._queue: list[_Job] = []
        self._chores: list[_Chore] = []
        self._wake = asyncio.Event()
        self._closing = False

    async def write(self, *statements: Statement, by: float | None = None) -> None:
        """Run these statements in one transaction; return when they are durable.

        `by` is the time on the event loop's clock by which the transaction must have begun. If it
        hasn't, or if the waiter is cancelled before it has, nothing is written, now or later. Once
        it has begun, only its outcome tells whether anything is written, so that is waited for.
        Without `by`, a write stays queued even if its waiter is cancelled.

        Raises `TimeoutError` where the transaction did not begin by then, and `DatabaseError`, for
        this write alone, when it can't be done.
        """
        self._refuse_if_closed()
        loop = asyncio.get_running_loop()
        left = None if by is None else by - loop.time()
        if left is not None and left <= 0:
            raise self._too_late()
        job = _Job(statements, loop.create_future())
        self._queue.append(job)
        self._wake.set()
        if left is not None:
            await self._begun(job, left)
        await job.done

    async def _begun(self, job: _Job, seconds: float) -> None:
        """Wait until a job is done; withdraw it if it hasn't begun in time."""
        try:
            await asyncio.wait({job.done}, timeout=seconds)
        except asyncio.CancelledError:
            job.withdraw()
            job.done.cancel()
            raise
        if not job.done.done() and job.withdraw():
            job.done.cancel()
            raise self._too_late()

    def _too_late(self) -> TimeoutError:
        return TimeoutError(f"{self.path} was busy for too long, so nothing was written")

    async def exclusively(self, *statements: str) -> list[list[sqlite3.Row]]:
        """Run statements between two transactions, each by itself, and return the rows of each.

        For what SQLite does only there: `VACUUM` and checkpoints. Writes wait until it is done.
        """
        self._refuse_if_closed()
        chore = _Chore(statements, asyncio.get_running_loop().create_future())
        self._chores.append(chore)
        self._wake.set()
        return await chore.done

    async def read(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        """Return all rows of a query, which sees every finished write."""
        self._refuse_if_closed()
        try:
            return [*await self._reader.execute_fetchall(sql, parameters)]
        except sqlite3.Error as error:
            # The error may quote what is stored, which must not reach a log.
            raise self._told(error) from None

    async def check_writable(self, by: float) -> None:
        """Write something that changes nothing. Raises what `write` raises."""
        await self.write((_SAME, ()), by=by)

    def mark_damage(self) -> None:
        """Have the next start repair the database: its content isn't what was written."""
        with suppress(OSError):
            damage_mark(self.path).touch(mode=0o600)

    async def commit_queued(self) -> None:
        """Commit what is queued, until the database is closed and everything is committed.

        If an unforeseen error ends it earlier, every write fails, waiting or later.
        """
        taken: list[_Job | _Chore] = []
        try:
            while not self._closing or self._queue or self._chores:
                await self._wake.wait()
                self._wake.clear()
                jobs, self._queue = self._queue, []
                chores, self._chores = self._chores, []
                taken = [*jobs, *chores]
                if jobs:
                    await self._commit(jobs)
                for chore in chores:
                    await self._do(chore)
        except BaseException as error:
            self._fail_all([*taken, *self._queue, *self._chores])
            if not isinstance(error, Exception):
                raise
            # Whoever waits for `failed` ends the process; a bare task's exception would be lost.
            log.critical("database_writer_failed", exc_info=error)

    def close(self) -> None:
        """Accept no more reads and writes; what is queued is still committed."""
        self._closing = True
        self._wake.set()

    async def _commit(self, jobs: list[_Job]) -> None:
        outcomes = await self._writer.run(partial(_transact, jobs))
        for job, error in zip(jobs, outcomes, strict=True):
            if error is not None and not job.is_withdrawn:
                self._fail(job, error)
            elif not job.done.done():
                job.done.set_result(None)

    async def _do(self, chore: _Chore) -> None:
        try:
            rows = await self._writer.run(
                lambda connection: [connection.execute(sql).fetchall() for sql in chore.statements]
            )
        except sqlite3.Error as error:
            told = self._told(error)
            told.__cause__ = error
            if not chore.done.done():
                chore.done.set_exception(told)
        else:
            if not chore.done.done():
                chore.done.set_result(rows)

    def _fail(self, job: _Job, error: Exception) -> None:
        told: Exception = error
        if isinstance(error, sqlite3.Error):
            told = self._told(error)
            told.__cause__ = error
        if job.done.done():
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a write that nobody waits for any more has failed", "exception": told}
            )
        else:
            job.done.set_exception(told)

    def _fail_all(self, waiting: Sequence[_Job | _Chore]) -> None:
        self.failed.set_result(WriterError(self.path))
        for one in waiting:
            if not one.done.done():
                one.done.set_exception(WriterError(self.path))

    def _told(self, error: sqlite3.Error) -> DatabaseError:
        told = explain_sqlite(self.path, error)
        if isinstance(told, DamageError):
            self.mark_damage()
        return told

    def _refuse_if_closed(self) -> None:
        if self.failed.done():
            raise WriterError(self.path)
        if self._closing:
            raise DatabaseError(f"{self.path} is closed", self.path)


@asynccontextmanager
async def open_database(path: Path, *, busy_timeout: float = 5.0) -> AsyncGenerator[Database]:
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
        database = Database(path, writer, reader)
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
    migrate(connection, path, known_migrations())


def _is_busy(error: BaseException) -> bool:
    # The extended codes say why in their higher bits.
    return isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _transact(jobs: Sequence[_Job], connection: sqlite3.Connection) -> list[Exception | None]:
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
