"""A PostgreSQL database that several processes share.

Transactions that write take turns, in one process by its queue and between processes by an advisory
lock, as they do in one SQLite file: so what a statement has read still holds when its transaction ends.
A connection that breaks during a commit leaves open whether it happened, so the server is asked that.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from math import ceil
from typing import TypeVar, cast

import psycopg
import structlog
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from typing_extensions import override

from council.document.conversation import timestamp
from storage.database import Job, Parameters, SharedDatabase, known_migrations
from storage.errors import DamageError, DatabaseError
from storage.postgres.connection import (
    NO_ANSWER,
    Connection,
    configure,
    connect,
    explain_postgres,
    explained,
    server,
    settings,
    statement,
    value,
)
from storage.postgres.connection import damaged as damaged_database
from storage.postgres.rewriting import rewrite
from storage.postgres.search import PostgresSearch

log = structlog.stdlib.get_logger()
logging.getLogger("psycopg").setLevel(logging.ERROR)  # each error is raised as well

Done = TypeVar("Done")

CONNECTIONS = 5
"""At most for reads and writes; locks have one more."""
_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_current_xact_id()::text AS id"
_PATIENCE = 3.0  # seconds to wait for a connection
_ASK_AGAIN = 0.25  # seconds between two questions how a transaction ended
_TURN = 5.0  # seconds to wait for a turn
_IN_TURN = b"SELECT set_config('lock_timeout', '100ms', true)"
"""Nobody waits for a table while others wait for their turn."""
_AGAIN = 0.5  # seconds until what needs a table that is being rewritten is tried again
_REWRITING = 600.0  # seconds that it is tried
_OLDEST = 140_000
"""The oldest server that has what the tables need: 14."""
_ENCODING = "UTF8"
_RECORD = b"""
BEGIN;
SET LOCAL lock_timeout = '30s';
SELECT pg_advisory_xact_lock(7265432461);
SET LOCAL lock_timeout = '250ms';
CREATE TABLE IF NOT EXISTS migrations (
    number bigint NOT NULL PRIMARY KEY, name text NOT NULL, applied_at text NOT NULL
)
"""
"""Of processes that start together, the first makes the tables, and the others wait for that."""
_KEY = b"SELECT ('migrations'::regclass::oid::bigint & 2147483647)::int AS key"
_LAST_PATIENCE = 10.0  # seconds of asking that, once the program ends


class _TableLockedError(Exception):
    """A transaction had its turn, and a table that it needs was locked."""


class PostgresDatabase(SharedDatabase):
    """An open database; made by `open_postgres`."""

    def __init__(self, name: str, pool: AsyncConnectionPool[Connection], key: int) -> None:
        super().__init__(name)
        self.search = PostgresSearch(self)
        self.key = key
        self._pool = pool
        self._put_off: list[Job] = []
        self._put_off_at: dict[Job, float] = {}
        self._take_turn = f"SELECT pg_advisory_xact_lock({key}, 0)".encode()

    @override
    async def change(self, sql: str, parameters: Parameters = ()) -> list[DictRow]:
        return await self.read(sql, parameters)

    @override
    async def read(self, sql: str, parameters: Parameters = ()) -> list[DictRow]:
        self._refuse_if_closed()
        query, values = statement(sql, parameters)

        async def fetch(connection: Connection) -> list[DictRow]:
            return await (await connection.execute(query, values)).fetchall()

        return await self.using(fetch)

    async def using(self, work: Callable[[Connection], Awaitable[Done]]) -> Done:
        """Do something with a connection; again with another, where the first was broken already.

        It is repeated while a table that it needs is being rewritten. Raises `DatabaseError`.
        """
        until = asyncio.get_running_loop().time() + _REWRITING
        while True:
            try:
                return await self._with_connection(work)
            except (psycopg.Error, PoolTimeout) as error:
                is_late = asyncio.get_running_loop().time() > until
                if is_late or not isinstance(error, psycopg.errors.LockNotAvailable):
                    # The error may quote what is stored, which must not reach a log.
                    raise self._told(error) from None
            await asyncio.sleep(_AGAIN)

    async def _with_connection(self, work: Callable[[Connection], Awaitable[Done]]) -> Done:
        for others in reversed(range(CONNECTIONS + 1)):
            async with self._pool.connection(_PATIENCE) as connection:
                try:
                    return await work(connection)
                except psycopg.OperationalError:
                    if not (connection.broken and others):
                        raise
        raise AssertionError  # the last one returns or raises

    async def scrub(self, *, large: bool) -> bool:
        """Rewrite the tables from which something was forgotten; return whether none is left.

        Large ones only where that is asked for: they can't be used meanwhile. What the server has on its
        disk beside them, as its write-ahead log, is its operator's.
        """
        return await rewrite(self.using, large=large)

    @override
    def damaged(self) -> DamageError:
        return damaged_database(self.name)

    def mark_damage(self) -> None:
        """Log it: the server's operator has what repairs a database."""
        log.error("database_holds_what_was_not_written")

    def close(self) -> None:
        """Accept no more reads and writes; what is queued or put off is still committed."""
        super().close()
        self._resume()

    async def _commit(self, jobs: list[Job]) -> None:
        """Commit jobs; put those off that need a table which is being rewritten."""
        loop = asyncio.get_running_loop()
        outcomes = await self._transact(jobs)
        for job, error in zip(jobs, outcomes, strict=True):
            since = self._put_off_at.pop(job, loop.time())
            if isinstance(error, _TableLockedError) and not job.is_withdrawn:
                if job.by is not None and job.by <= loop.time():
                    self._fail(job, self.too_late())
                elif loop.time() - since > _REWRITING and error.__cause__:
                    self._fail(job, cast("Exception", error.__cause__))
                else:
                    self._put_off.append(job)
                    self._put_off_at[job] = since
            else:
                self._settle(job, error)
        if self._put_off and self._closing:
            await asyncio.sleep(_AGAIN)
            self._resume()
        elif self._put_off:
            loop.call_later(_AGAIN, self._resume)

    def _resume(self) -> None:
        jobs, self._put_off = self._put_off, []
        for job in jobs:
            self._enqueue(job)

    def _fail_all(self, waiting: Sequence[Job]) -> None:
        super()._fail_all([*waiting, *self._put_off])

    async def _transact(self, jobs: Sequence[Job]) -> list[Exception | None]:
        try:
            error = await self._with_connection(lambda connection: self._try(connection, jobs))
        except (psycopg.Error, PoolTimeout) as failed:  # none has begun
            return [failed] * len(jobs)
        if isinstance(error, _TableLockedError):
            if len(jobs) == 1:
                return [error]
            return [outcome for job in jobs for outcome in await self._transact([job])]
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return await self._without_late(jobs, error)
        # No job causes a lost connection: trying each by itself would wait once per job.
        if error is None or len(jobs) == 1 or isinstance(error, NO_ANSWER):
            return [error] * len(jobs)
        return [outcome for job in jobs for outcome in await self._transact([job])]

    async def _without_late(self, jobs: Sequence[Job], error: Exception) -> list[Exception | None]:
        """Fail the late ones at once, and run the others again; return why each of these failed."""
        now = asyncio.get_running_loop().time()
        late = {job for job in jobs if job.by is not None and job.by <= now}
        if not late:
            return [error] * len(jobs)
        for job in late:
            if not job.done.done():  # somebody still waits
                self._fail(job, self.too_late())
        rest = [job for job in jobs if job not in late]
        outcomes = iter(await self._transact(rest) if rest else ())
        return [None if job in late else next(outcomes) for job in jobs]

    async def _try(self, connection: Connection, jobs: Sequence[Job]) -> Exception | None:
        """Run jobs in one transaction; return why they failed.

        Raises `psycopg.Error` where none has begun. All is sent before the turn comes: others wait for
        the server's work alone, and not for this process as well.
        """
        cursor = await connection.execute(_BEGIN)
        while cursor.nextset():
            pass
        row = await cursor.fetchone()
        transaction = cast("str", row["id"] if row else "")
        begun = [job for job in jobs if job.begin()]
        turn: AsyncCursor[DictRow] | None = None
        try:
            statements = [statement(*one) for job in begun for one in job.statements]
            async with connection.pipeline():
                await connection.execute(_patience(begun))
                turn = await connection.execute(self._take_turn)
                await connection.execute(_IN_TURN)
                for query, values in statements:
                    await connection.execute(query, values)
                await connection.execute(b"COMMIT")
        except Exception as error:  # noqa: BLE001 - its waiter handles whatever a job raises
            if connection.broken:
                return None if await self._is_committed(transaction) else error
            await connection.execute(b"ROLLBACK")
            if isinstance(error, psycopg.errors.LockNotAvailable) and turn and turn.statusmessage:
                locked = _TableLockedError()
                locked.__cause__ = error
                return locked
            return error
        return None

    async def _is_committed(self, transaction: str) -> bool:
        """Wait until the server says how a transaction ended; at the program's end, not for long."""

        async def ask(connection: Connection) -> str | None:
            query = b"SELECT pg_xact_status($1::xid8) AS status"
            return await value(connection, query, transaction)

        log.warning("commit_unknown")
        patience = _LAST_PATIENCE
        while patience > 0:
            try:
                status = await self._with_connection(ask)
            except (psycopg.OperationalError, PoolTimeout):
                status = "in progress"  # as far as anybody knows
            if status != "in progress":
                return status == "committed"
            await asyncio.sleep(_ASK_AGAIN)
            if self._closing:
                patience -= _ASK_AGAIN
        return False

    def _told(self, error: Exception) -> Exception:
        if isinstance(error, psycopg.Error | PoolTimeout):
            return explain_postgres(self.name, error)
        return error


def _patience(jobs: Sequence[Job]) -> bytes:
    """Return what ends the wait for a turn: its time, or when the first of some jobs is late."""
    now = asyncio.get_running_loop().time()
    left = min(_TURN, *(job.by - now for job in jobs if job.by is not None), _TURN)
    return f"SELECT set_config('lock_timeout', '{max(1, ceil(left * 1000))}ms', true)".encode()


@asynccontextmanager
async def open_postgres(address: str) -> AsyncGenerator[PostgresDatabase]:
    """Open the database, migrating it as needed; on exit, commit what is queued.

    `address` is `postgresql://…`, with a password or without. Raises `DatabaseError`.
    """
    name = server(address)
    with explained(address):
        async with await connect(address) as connection:
            check_server(connection, name)
            key = await _migrate(connection, name)
    pool = AsyncConnectionPool[Connection](
        address,
        connection_class=cast("type[Connection]", AsyncConnection),
        kwargs={**settings(address), "row_factory": dict_row},
        configure=configure,
        min_size=1,
        max_size=CONNECTIONS,
        reconnect_timeout=1.0,
        open=False,
    )
    async with pool:
        database = PostgresDatabase(name, pool, key)
        committing = asyncio.create_task(database.commit_queued())
        try:
            yield database
        finally:
            database.close()
            await committing


def check_server(connection: Connection, name: str) -> None:
    """Refuse a server, or a database on it, that can't serve. Raises `DatabaseError`."""
    version = connection.info.server_version
    if version < _OLDEST:
        raise DatabaseError(
            f"{name} is PostgreSQL {version // 10_000}; this program needs {_OLDEST // 10_000} or newer"
        )
    if connection.info.parameter_status("server_encoding") != _ENCODING:
        raise DatabaseError(f"{name} isn't in {_ENCODING}; create one with createdb -E {_ENCODING}")


async def _migrate(connection: Connection, name: str) -> int:
    """Bring the tables to the newest schema in one transaction; return a number that is theirs alone.

    Raises `DatabaseError` if a newer program has migrated them, and `psycopg.Error`.
    """
    await connection.execute(_RECORD)
    try:
        migrations = known_migrations("storage.postgres")
        found = await (await connection.execute(b"SELECT number FROM migrations")).fetchall()
        applied = {cast("int", row["number"]) for row in found}
        _refuse_newer(name, max(applied, default=0), max(one.number for one in migrations))
        for migration in migrations:
            if migration.number not in applied:
                await connection.execute(migration.script.encode())
                row = (migration.number, migration.name, timestamp(datetime.now(UTC)))
                await connection.execute(b"INSERT INTO migrations VALUES ($1, $2, $3)", row)
        key = await key_of(connection)
        await connection.execute(b"COMMIT")
    except BaseException:
        if not connection.broken:
            await connection.execute(b"ROLLBACK")
        raise
    return key


async def key_of(connection: Connection) -> int:
    """Return the number of the council whose tables these are. Raises `psycopg.Error`."""
    return await value(connection, _KEY)


def _refuse_newer(name: str, applied: int, known: int) -> None:
    if applied > known:
        raise DatabaseError(
            f"{name} was written by a newer program (schema {applied}, this one knows {known}); "
            f"update this program, or restore an earlier backup"
        )
