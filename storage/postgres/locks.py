"""Who works on what, by PostgreSQL's advisory locks: the server releases those of a dead process."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import psycopg
import structlog
from typing_extensions import override

from storage.database import Database
from storage.postgres.connection import NO_ANSWER, Connection, connect, explain_postgres, value
from storage.processes.locks import Locks

log = structlog.stdlib.get_logger()

_POLL = 0.1  # seconds
_LONG = 60.0  # whoever waits as long looks less often
_LOOK = 1.0  # seconds between two looks whether the connection still holds what is held
SURE = 20.0
"""Seconds without an answer after which others may soon have what is held: the server ends the session
after 25 (`storage.postgres.connection`)."""
_PUBLISH = b"SELECT set_config('application_name', $1, false)"
_PUBLISHED = b"""
SELECT substr(application_name, length($1) + 1) AS fingerprint FROM pg_stat_activity
WHERE starts_with(application_name, $1) AND datname = current_database() AND pid <> pg_backend_pid()
"""
_LIVES = b"SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1) AS lives"
_LOCK = (b"SELECT pg_try_advisory_lock($1) AS taken", b"SELECT pg_try_advisory_lock_shared($1) AS taken")
_UNLOCK = b"SELECT pg_advisory_unlock($1)", b"SELECT pg_advisory_unlock_shared($1)"


@dataclass(frozen=True, slots=True)
class _Hold:
    number: int
    is_shared: bool


class PostgresLocks(Locks):
    """Locks on a connection of their own, whose name tells everybody the process's configuration."""

    def __init__(self, address: str, database: Database, key: int) -> None:
        self._address = address
        self._database = database
        self._key = key
        self._held: set[_Hold] = set()
        self._missing: set[_Hold] = set()
        # The numbers of the broken connection and of this one, at the server.
        self._before = self._now = 0
        self._using = asyncio.Lock()
        self._connection: Connection | None = None
        self._answered = 0.0  # by the loop's clock
        self._watching: asyncio.Task[None] | None = None

    @override
    @asynccontextmanager
    async def acquire(
        self, name: str, *, wait: float = 0.0, shared: bool = False
    ) -> AsyncGenerator[bool]:
        digest = hashlib.blake2b(f"{self._key} {name}".encode(), digest_size=8).digest()
        hold = _Hold(int.from_bytes(digest, signed=True), shared)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        held = await self._take(hold)
        while not held and loop.time() < until:
            await asyncio.sleep(_POLL if wait < _LONG else _LOOK)
            held = await self._take(hold)
        try:
            yield held
        finally:
            if held:
                await self._give_back(hold)

    @override
    async def until_unsure(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            left = self._answered + SURE - loop.time()
            if left <= 0:
                return
            await asyncio.sleep(left)

    @override
    async def publish(self, fingerprint: str) -> list[str]:
        try:
            async with self._using:
                connection = await self._connected()
                await connection.execute(_PUBLISH, (published(self._key) + fingerprint,))
                return await fingerprints(connection, self._key)
        except (psycopg.Error, OSError) as error:
            raise explain_postgres(self._database.name, error) from None

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        if self._connection is not None:
            await self._connection.close()

    async def _take(self, hold: _Hold) -> bool:
        async with self._using:
            if hold in self._held:  # the server would let one connection have it twice
                return False
            try:
                taken = await _lock(await self._connected(), hold)
            except (psycopg.Error, OSError) as error:
                raise explain_postgres(self._database.name, error) from None
            if taken:
                self._held.add(hold)
            self._answered = asyncio.get_running_loop().time()
            self._watching = self._watching or asyncio.create_task(self._watch())
            return taken

    async def _give_back(self, hold: _Hold) -> None:
        async with self._using:
            self._held.discard(hold)
            self._missing.discard(hold)
            if self._connection is not None:
                with suppress(psycopg.Error):  # with a broken connection, it is released already
                    unlock = _UNLOCK[hold.is_shared]
                    await self._connection.execute(unlock, (hold.number,))

    async def _connected(self) -> Connection:
        """Return the connection; a new one takes again what the broken one held, as far as it can."""
        if self._connection is None or self._connection.broken:
            self._connection = await connect(self._address)
            self._before, self._now = self._now, self._connection.info.backend_pid
            self._missing = {*self._held}
        for hold in [*self._missing]:
            if await _lock(self._connection, hold):
                self._missing.discard(hold)
        return self._connection

    async def _watch(self) -> None:
        """Keep what is held; if somebody else has it by now, the process must end."""
        while True:
            await asyncio.sleep(_LOOK)
            is_lost = False
            with suppress(*NO_ANSWER):
                async with self._using:
                    lives = await value(await self._connected(), _LIVES, self._before)
                    self._answered = asyncio.get_running_loop().time()
                    # Until the server has noticed, it is the broken connection that still holds it.
                    is_lost = bool(self._missing and not lives)
            if is_lost:
                log.error("lock_lost")
                self._database.fail()
                return


def published(key: int) -> str:
    """Return how the name of a process's connection begins, before its configuration's fingerprint."""
    return f"council {key} "


async def fingerprints(connection: Connection, key: int) -> list[str]:
    """Return those of all other processes that serve this council. Raises `psycopg.Error`."""
    cursor = await connection.execute(_PUBLISHED, (published(key),))
    return [row["fingerprint"] for row in await cursor.fetchall()]


async def _lock(connection: Connection, hold: _Hold) -> bool:
    return await value(connection, _LOCK[hold.is_shared], hold.number)
