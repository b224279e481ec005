"""The trap: hears of moments in the program and around it, and kills the program at the chosen one."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: as something happens for the `nth` time, or this many seconds after the question.

    Whatever is asked of a server is `asked`, then `accepted` (done, the reply not yet sent), then
    `answered` (the reply is on its way): `discord card accepted`. What happens inside the program is
    named by `inside.py`: `after commit of steps`.
    """

    what: str
    nth: int = 1
    seconds: float | None = None

    def __str__(self) -> str:
        """Name it, for a test's report."""
        if self.seconds is not None:
            return f"{self.what} after {self.seconds * 1000:.0f} ms"
        return f"{self.what} #{self.nth}"


class Trap:
    """Kills one process after the other, each at a moment.

    `port` is where what is inside a process tells its moments; `is_committing` says that it is about
    to tell of a commit's end.
    """

    def __init__(self) -> None:
        self.port = 0
        self.is_committing = False
        self._pid = 0
        self._moment: Moment | None = None
        self._left = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._listen, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    def follow(self, pid: int) -> None:
        """Turn to another process."""
        self._pid, self._moment, self.is_committing = pid, None, False

    def arm(self, moment: Moment) -> None:
        """Kill the process at this moment, counted from now on."""
        self._moment, self._left = moment, moment.nth
        if moment.seconds is not None:
            asyncio.get_running_loop().call_later(moment.seconds, self.spring, moment)

    @property
    def is_armed(self) -> bool:
        """Whether the moment is still to come."""
        return self._moment is not None

    def spring(self, moment: Moment) -> None:
        """Kill now, if that is still the moment waited for."""
        if self._moment is moment:
            self._moment = None
            os.kill(self._pid, signal.SIGKILL)

    def happened(self, what: str) -> None:
        """Hear of a moment; at the chosen one, the process is dead when this returns."""
        if " commit " in what:
            self.is_committing = what.startswith("before")
        if self._moment is not None and what == self._moment.what:
            self._left -= 1
            if self._left == 0:
                self.spring(self._moment)

    def around(self, name: Callable[[web.Request, str], str]) -> Middleware:
        """Tell of what a server is asked and answers; `name` says what a request with this body is."""

        @web.middleware
        async def pass_through(request: web.Request, handler: Handler) -> web.StreamResponse:
            # A request counts when it is whole; one in several parts can be read only once.
            is_whole = not request.content_type.startswith("multipart/")
            what = name(request, await request.text() if is_whole else "")
            self.happened(f"{what} asked")
            response = await handler(request)
            self.happened(f"{what} accepted")
            if not response.prepared:
                await response.prepare(request)
                await response.write_eof()
            self.happened(f"{what} answered")
            return response

        return pass_through

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError), closing(writer):
            while line := await reader.readline():
                self.happened(line.decode().strip())
                writer.write(b"\n")
