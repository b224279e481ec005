"""What index and journal need of a database, whichever it is; and how its writers share transactions.

A commit waits for the disk, so it is the expensive part of a write. Meanwhile, further writes queue
up; the next transaction takes all of them (group commit).

Statements are written once for all databases: parameters are `?` or `:name`, and what JSON a text holds
is read by `->>`, `->` and `json_each`, as in SQLite.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import orjson
import structlog

from storage.errors import DamageError, DatabaseError, WriterError
from storage.text_search import TextSearch

log = structlog.stdlib.get_logger()

SqlValue = str | bytes | int | float | None
Parameters = Sequence[SqlValue] | Mapping[str, SqlValue]
Statement = tuple[str, Parameters]

_SAME = "UPDATE migrations SET applied_at = applied_at WHERE number = 1"


@dataclass(frozen=True, slots=True)
class Migration:
    """A step from an older schema to the next: a numbered SQL file, `migrations/NNNN_name.sql`."""

    number: int
    name: str
    script: str


@cache
def known_migrations(package: str) -> tuple[Migration, ...]:
    scripts = (
        entry for entry in (files(package) / "migrations").iterdir() if entry.name.endswith(".sql")
    )
    found = (
        Migration(int(number), name, script.read_text("utf-8"))
        for script in scripts
        for number, name in [script.name.removesuffix(".sql").split("_", 1)]
    )
    return tuple(sorted(found, key=lambda migration: migration.number))


def listed(values: Iterable[str | int]) -> str:
    """Return values as `json_each` reads them."""
    return orjson.dumps([*values]).decode()


class Row(Protocol):
    """A row of a result, its values by column."""

    def __getitem__(self, key: str, /) -> Any: ...  # noqa: ANN401 - what a column holds

    def keys(self) -> Iterable[str]:
        """Return the columns' names."""
        ...


@dataclass(slots=True, eq=False)
class Job:
    """Statements that succeed or fail together, and who waits for them.

    Either its transaction begins, perhaps in a writer's thread, or it is withdrawn, in the event loop's.
    Whichever comes first rules out the other. `by` is when it must have begun, on the loop's clock.
    """

    statements: tuple[Statement, ...]
    done: asyncio.Future[None]
    by: float | None = None
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


class Database(ABC):
    """An open database; `name` is what errors call it, `path` its file, if it is one.

    `failed` is done when nothing can be written any more, because the writer has failed. Its result
    is the error that every write raises from then on; a long-running process should end with it.
    `search` is the full-text search over its table `search`.
    """

    search: TextSearch

    def __init__(self, name: str, path: Path | None = None) -> None:
        self.name = name
        self.path = path
        self.failed: asyncio.Future[WriterError] = asyncio.get_running_loop().create_future()
        self._queue: list[Job] = []
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
            raise self.too_late()
        job = Job(statements, loop.create_future(), by)
        self._enqueue(job)
        if left is not None:
            await self._begun(job, left)
        await job.done

    async def _begun(self, job: Job, seconds: float) -> None:
        """Wait until a job is done; withdraw it if it hasn't begun in time."""
        try:
            await asyncio.wait({job.done}, timeout=seconds)
        except asyncio.CancelledError:
            job.withdraw()
            job.done.cancel()
            raise
        if not job.done.done() and job.withdraw():
            job.done.cancel()
            raise self.too_late()

    def too_late(self) -> TimeoutError:
        return TimeoutError(f"{self.name} was busy for too long, so nothing was written")

    def _enqueue(self, job: Job) -> None:
        self._queue.append(job)
        self._wake.set()

    @abstractmethod
    async def read(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]:
        """Return all rows of a query, which sees every finished write. Raises `DatabaseError`."""

    @abstractmethod
    async def scrub(self, *, large: bool) -> bool:
        """Leave nothing of deleted rows, as far as the database allows; return whether that is done.

        Without `large`, what can't be used while it is rewritten for long may be left. Raises
        `StorageError`.
        """

    @abstractmethod
    def damaged(self) -> DamageError:
        """Return the error that says that the database doesn't contain what was written."""

    @abstractmethod
    def mark_damage(self) -> None:
        """Have the next start repair the database, where that is possible."""

    async def check_writable(self, by: float) -> None:
        """Write something that changes nothing. Raises what `write` raises."""
        await self.write((_SAME, ()), by=by)

    async def commit_queued(self) -> None:
        """Commit what is queued, until the database is closed and everything is committed.

        If an unforeseen error ends it earlier, every write fails, waiting or later.
        """
        taken: list[Job] = []
        try:
            while not self._closing or self._queue:
                await self._wake.wait()
                self._wake.clear()
                taken, self._queue = self._queue, []
                if taken:
                    await self._commit(taken)
        except BaseException as error:
            self._fail_all([*taken, *self._queue])
            if not isinstance(error, Exception):
                raise
            # Who waits for `failed` ends the process; a bare task's exception would be lost.
            log.critical("database_writer_failed", exc_info=error)

    def fail(self) -> None:
        """Refuse every further write."""
        self._fail_all(self._queue)

    def close(self) -> None:
        """Accept no more reads and writes; what is queued is still committed."""
        self._closing = True
        self._wake.set()

    @abstractmethod
    async def _transact(self, jobs: Sequence[Job]) -> Sequence[Exception | None]:
        """Run jobs in one transaction, or else each in its own; return each one's error."""

    @abstractmethod
    def _told(self, error: Exception) -> Exception:
        """Return what an error of the database's library means; others as they are."""

    async def _commit(self, jobs: list[Job]) -> None:
        outcomes = await self._transact(jobs)
        for job, error in zip(jobs, outcomes, strict=True):
            self._settle(job, error)

    def _settle(self, job: Job, error: Exception | None) -> None:
        if error is not None and not job.is_withdrawn:
            self._fail(job, error)
        elif not job.done.done():
            job.done.set_result(None)

    def _fail(self, job: Job, error: Exception) -> None:
        told = self._told(error)
        if told is not error:
            told.__cause__ = error
        if job.done.done():
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a write that nobody waits for any more has failed", "exception": told}
            )
        else:
            job.done.set_exception(told)

    def _fail_all(self, waiting: Sequence[Job]) -> None:
        if not self.failed.done():
            self.failed.set_result(WriterError(self.name, self.path))
        for one in waiting:
            if not one.done.done():
                one.done.set_exception(WriterError(self.name, self.path))

    def _refuse_if_closed(self) -> None:
        if self.failed.done():
            raise WriterError(self.name, self.path)
        if self._closing:
            raise DatabaseError(f"{self.name} is closed", self.path)


class SharedDatabase(Database):
    """A database whose runs several processes share, so that it has the table `turns`.

    `key` is a number that no other council in it has.
    """

    key: int

    @abstractmethod
    async def change(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]:
        """Run one statement without taking turns, and return its rows.

        It may be run twice, where the connection breaks before its answer is here. Raises
        `DatabaseError`.
        """
