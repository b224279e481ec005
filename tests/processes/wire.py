"""A wire to PostgreSQL that can be cut: connections stay open, and nothing gets through."""

import asyncio
from contextlib import suppress
from typing import Self


class Wire:
    """Passes bytes on between its own `port` and another one of 127.0.0.1.

    While it is cut, what is sent either way waits; after a while, as at a real wire, the connections
    that were open are reset.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server:
            self._server.close()
        self.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def address(self, address: str, port: int) -> str:
        """Return the address of a database that has this port, by way of the wire."""
        return address.replace(f"127.0.0.1:{port}", f"127.0.0.1:{self.port}")

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        """Let through what has waited, and all that follows."""
        self._open.set()

    def reset(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            await self._open.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(back)
            try:
                ends = [self._pass(reader, back), self._pass(there, writer)]
                await asyncio.wait(
                    [asyncio.ensure_future(end) for end in ends], return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                back.transport.abort()
                self._writers.discard(back)
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
