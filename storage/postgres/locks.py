"""Who works on what, by PostgreSQL's advisory locks: the server releases those of a dead process."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import psycopg
import structlog

from storage.database import Database
from storage.postgres.connection import Connection, connect
from storage.postgres.errors import NO_ANSWER, explain_postgres

log = structlog.stdlib.get_logger()

_POLL = 0.1  # seconds
_LOOK = 1.0  # seconds between two looks whether the connection still holds what is held
_LIVES = b"SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1) AS lives"


class PostgresLocks:
    """Names that one process at a time can hold, on a connection of their own.

    A `storage.locks.Holds`.
    """

    def __init__(self, address: str, database: Database, key: int) -> None:
        self._address = address
        self._database = database
        self._key = key
        self._held: set[int] = set()
        self._missing: set[int] = set()
        self._before = self._now = (
            0  # the numbers of the broken connection and of this one, at the server
        )
        self._using = asyncio.Lock()
        self._connection: Connection | None = None
        self._watching: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self, name: str, *, wait: float = 0.0) -> AsyncGenerator[bool]:
        """Hold a name; yield false if another process holds it for longer than `wait` seconds.

        Raises `DatabaseError`.
        """
        number = self._number(name)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        held = await self._take(number)
        while not held and loop.time() < until:
            await asyncio.sleep(_POLL)
            held = await self._take(number)
        try:
            yield held
        finally:
            if held:
                await self._give_back(number)

    async def close(self) -> None:
        """Release everything."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        if self._connection is not None:
            await self._connection.close()

    def _number(self, name: str) -> int:
        digest = hashlib.blake2b(f"{self._key} {name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, signed=True)

    async def _take(self, number: int) -> bool:
        async with self._using:
            if number in self._held:  # the server would let one connection have it twice
                return False
            try:
                taken = await _lock(await self._connected(), number)
            except (psycopg.Error, OSError) as error:
                raise explain_postgres(self._database.name, error) from None
            if taken:
                self._held.add(number)
            self._watching = self._watching or asyncio.create_task(self._watch())
            return taken

    async def _give_back(self, number: int) -> None:
        async with self._using:
            self._held.discard(number)
            self._missing.discard(number)
            if self._connection is not None:
                with suppress(psycopg.Error):  # with a broken connection, it is released already
                    await self._connection.execute(b"SELECT pg_advisory_unlock($1)", (number,))

    async def _connected(self) -> Connection:
        """Return the connection; a new one takes again what the broken one held, as far as it can."""
        if self._connection is None or self._connection.broken:
            self._connection = await connect(self._address)
            self._before, self._now = self._now, self._connection.info.backend_pid
            self._missing = {*self._held}
        for number in [*self._missing]:
            if await _lock(self._connection, number):
                self._missing.discard(number)
        return self._connection

    async def _watch(self) -> None:
        """Keep what is held; if somebody else has it by now, the process must end."""
        while True:
            await asyncio.sleep(_LOOK)
            is_lost = False
            with suppress(*NO_ANSWER):
                async with self._using:
                    cursor = await (await self._connected()).execute(_LIVES, (self._before,))
                    row = await cursor.fetchone()
                    # Until the server has noticed, it is the broken connection that still holds it.
                    is_lost = bool(self._missing and row and not row["lives"])
            if is_lost:
                log.error("lock_lost")
                self._database.fail()
                return


async def _lock(connection: Connection, number: int) -> bool:
    cursor = await connection.execute(b"SELECT pg_try_advisory_lock($1) AS taken", (number,))
    row = await cursor.fetchone()
    return bool(row and row["taken"])
