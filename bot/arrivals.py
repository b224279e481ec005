"""Connections whose request hasn't arrived: plain sockets, cheap to keep and to close.

Whoever opens thousands, and replaces each that is closed, must not keep the program busy: the kernel
would have no place for anybody else's. So the HTTP server takes a connection once its request is there.
"""

import asyncio
import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser
from aiohttp.http_exceptions import HttpProcessingError

from bot.config.logs import Repeats

log = structlog.get_logger()

SECONDS = 10.0
"""How long a request may take to arrive, headers and body."""
AT_ONCE = 32
"""How many connections are accepted in one turn of the event loop."""
LARGE = 16 * 1024
"""Bytes from which on the HTTP server reads a request while it arrives: the kernel keeps little more."""
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
AGAIN_SECONDS = 1.0
"""How long nothing is accepted after there was no descriptor for it."""


class CountedServer(Protocol):
    """What answers requests that have arrived."""

    def count(self) -> int:
        """Return how many connections it has."""
        ...

    def take(self, connection: socket.socket, until: float, *, is_whole: bool) -> None:
        """Answer on a connection whose request is whole, or by then, on the loop's clock."""
        ...

    def close_oldest(self) -> bool:
        """Close a connection whose request it doesn't answer at the moment, if there is one."""
        ...


@dataclass(slots=True)
class _Arriving:
    until: float
    seen: int = 0


class Arrivals:
    """Accepts connections, at most `most` of them with those of the server, and passes requests on.

    At the bound the oldest one without a whole request is closed for a new one. Only where each is being
    answered may there be more, up to twice as many.
    """

    def __init__(
        self, server: CountedServer, listening: Sequence[socket.socket], most: int, repeats: Repeats
    ) -> None:
        self._server = server
        self._listening = listening
        self._most = most
        self._repeats = repeats
        self._loop = asyncio.get_running_loop()
        self._arriving: dict[socket.socket, _Arriving] = {}
        self._timer: asyncio.TimerHandle | None = None
        # Fewer at the bound than it has places: what has just come in isn't closed before it is heard.
        self._at_once = max(1, min(AT_ONCE, most // 2))
        self._again: list[asyncio.TimerHandle] = []
        for one in listening:
            self._listen(one)

    def close(self) -> None:
        """Accept nothing more, and close what hasn't arrived."""
        for timer in filter(None, (self._timer, *self._again)):
            timer.cancel()
        for one in self._listening:
            self._loop.remove_reader(one)
            one.close()
        for connection in [*self._arriving]:
            self._close(connection)

    def _listen(self, one: socket.socket) -> None:
        self._loop.add_reader(one, self._accept, one)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(self._at_once):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                self._say("no_descriptor")
                self._loop.remove_reader(listening)
                self._again = [self._loop.call_later(AGAIN_SECONDS, self._listen, listening)]
                return
            self._let_in(connection)

    def _let_in(self, connection: socket.socket) -> None:
        until = self._loop.time() + SECONDS
        self._arriving[connection] = _Arriving(until)
        over = len(self._arriving) + self._server.count() - self._most
        if over > 0:
            if len(self._arriving) > 1:
                self._close(next(iter(self._arriving)), "no_room")
            elif not self._server.close_oldest() and over > self._most:
                self._close(connection, "no_room")
                return
        if self._timer is None:
            self._timer = self._loop.call_at(until, self._close_late)
        # By its number: asyncio writes a socket out, addresses and all, to find that it doesn't know it.
        self._loop.add_reader(connection.fileno(), self._hear, connection)
        self._hear(connection)

    def _hear(self, connection: socket.socket) -> None:
        try:
            self._look(connection)
        except BlockingIOError:
            pass
        except OSError:
            self._close(connection)

    def _look(self, connection: socket.socket) -> None:
        """Look at what has arrived, and leave it there for the server. Raises `OSError`."""
        arriving = self._arriving[connection]
        seen = connection.recv(LARGE, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        if len(seen) <= arriving.seen:  # it was woken, and nothing more is coming
            self._close(connection)
        elif (is_whole := has_arrived(seen, self._loop)) is not False or len(seen) == LARGE:
            self._loop.remove_reader(connection.fileno())
            del self._arriving[connection]
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            self._server.take(connection, arriving.until, is_whole=bool(is_whole))
        else:
            arriving.seen = len(seen)
            # The kernel wakes the loop when there is more than what was seen.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(seen) + 1)

    def _close_late(self) -> None:
        self._timer = None
        while self._arriving:
            connection, arriving = next(iter(self._arriving.items()))
            if arriving.until > self._loop.time():
                self._timer = self._loop.call_at(arriving.until, self._close_late)
                return
            self._close(connection, "too_slow")

    def _close(self, connection: socket.socket, cause: str | None = None) -> None:
        self._loop.remove_reader(connection.fileno())
        self._arriving.pop(connection, None)
        connection.close()
        if cause:
            self._say(cause)

    def _say(self, cause: str) -> None:
        if (repeated := self._repeats.before(cause)) is not None:
            log.warning("connection_closed", cause=cause, repeated=repeated)


def has_arrived(seen: bytes, loop: asyncio.AbstractEventLoop) -> bool | None:
    """Return whether the bytes are a whole request, or `None` for something that can't become one.

    By the parser of the HTTP server, so that it takes no connection on which it would wait for more.
    """
    # So large that nothing stops the parser: it pauses at a chunk for each sixteenth byte of its limit.
    parser = HttpRequestParser(BaseProtocol(loop), loop, 16 * LARGE, auto_decompress=False)
    try:
        requests, _, _ = parser.feed_data(seen)
    except HttpProcessingError:
        return None
    return bool(requests) and requests[0][1].is_eof()
