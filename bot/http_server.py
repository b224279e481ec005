"""An HTTP server whose connections nobody can use up.

Each connection carries one request, which must be there, headers and body, in time; its answer must be
taken as quickly. So nothing that a stranger leaves half done keeps anybody else out. Somebody who opens
thousands, and replaces each that is closed, must not keep the program busy, or the kernel would have no
place for anybody else's: until its request is there, a connection is a plain socket, cheap to close.
"""

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import web
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
AGAIN_SECONDS = 1.0
"""How long nothing is accepted after there was no descriptor for it."""
SHARE = 10
"""A port's connections take at most one in so many of the process's descriptors."""
MOST_DESCRIPTORS = 65_536
"""What the process asks for, where its hard limit allows it: more would help nobody here."""
NO_ROUTE = "no_route"
"""Why a request is refused that nothing answers."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Routes = Mapping[tuple[str, str], Handler]
"""What answers each method and path, one that ends in / for all below it; the request has been read."""
MostBytes = Callable[[web.BaseRequest], Awaitable[int]]
"""Returns how many bytes a request may have, by its headers alone; without it that is 1 MiB."""


class RequestRefusal(Exception):
    """A request isn't what it should be; `cause` is a code for the log."""

    def __init__(self, status: HTTPStatus, cause: str) -> None:
        super().__init__(cause)
        self.status = status
        self.cause = cause


Refuse = Callable[[RequestRefusal], web.Response]


def refused(error: RequestRefusal) -> web.Response:
    if error.cause == NO_ROUTE:
        return web.Response(status=error.status)
    return web.json_response({"error": "invalid request"}, status=error.status)


class HttpServer(web.Server):
    """Answers the requests on its connections; it closes those on which nothing happens in time."""

    def __init__(
        self,
        routes: Routes,
        repeats: Repeats,
        refuse: Refuse = refused,
        most_bytes: MostBytes | None = None,
    ) -> None:
        super().__init__(
            self._answer,
            # Slack compresses nothing, and nothing is unpacked before it is known who sent it.
            auto_decompress=False,
            access_log=None,
            tcp_keepalive=False,
            lingering_time=1.0,
            logger=_LOGGER,
        )
        self._routes = routes
        self._paths = {path for _, path in routes}
        self._repeats = repeats
        self._refuse = refuse
        self._most_bytes = most_bytes
        self._taking: set[asyncio.Task[Any]] = set()
        self._waiting: dict[web.RequestHandler, asyncio.TimerHandle] = {}
        self._may_go: dict[web.RequestHandler, None] = {}
        self._answering: set[web.RequestHandler] = set()

    def count(self) -> int:
        return len(self._taking) + len(self._waiting) + len(self._answering)

    def take(self, connection: socket.socket, until: float, *, is_whole: bool) -> None:
        """Answer on a connection whose request is whole, or by then, on the loop's clock."""
        loop = asyncio.get_running_loop()

        def handler() -> web.RequestHandler:
            made = self()
            self._wait_for(made, until, may_go=not is_whole)
            return made

        def taken(task: asyncio.Task[Any]) -> None:
            self._taking.discard(task)
            if not task.cancelled() and (error := task.exception()):
                log.warning("connection_not_taken", reason=error)

        task = loop.create_task(loop.connect_accepted_socket(handler, connection))
        self._taking.add(task)
        task.add_done_callback(taken)

    def close_oldest(self) -> bool:
        if not self._may_go:
            return False
        self._close(next(iter(self._may_go)))
        return True

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self._forget(handler)
        super().connection_lost(handler, exc)

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's own
        """Answer what has arrived, if that takes no longer; then close every connection."""
        await asyncio.gather(*self._taking, return_exceptions=True)
        self.pre_shutdown()
        await super().shutdown(timeout)
        for timer in self._waiting.values():
            timer.cancel()

    def _wait_for(self, handler: web.RequestHandler, until: float, *, may_go: bool) -> None:
        loop = asyncio.get_running_loop()
        if may_go:
            self._may_go[handler] = None
        self._waiting[handler] = loop.call_at(until, self._close, handler)

    def _forget(self, handler: web.RequestHandler) -> None:
        if timer := self._waiting.pop(handler, None):
            timer.cancel()
        self._may_go.pop(handler, None)
        self._answering.discard(handler)

    def _close(self, handler: web.RequestHandler) -> None:
        self._forget(handler)
        transport = handler.transport
        handler.force_close()
        if transport is not None:
            transport.abort()  # what the other side doesn't take isn't waited for
        if (repeated := self._repeats.before("not_taken")) is not None:
            log.warning("connection_closed", cause="not_taken", repeated=repeated)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = request.protocol
        try:
            if self._most_bytes:
                request = request.clone(client_max_size=await self._most_bytes(request))
            try:
                await request.read()  # it stays readable
            except web.HTTPRequestEntityTooLarge as error:
                raise RequestRefusal(HTTPStatus.BAD_REQUEST, "too_large") from error
            except (ConnectionError, web.RequestPayloadError, web.PayloadAccessError) as error:
                raise RequestRefusal(HTTPStatus.BAD_REQUEST, "broken_off") from error
            if handler in self._waiting:
                self._forget(handler)
                self._answering.add(handler)
            response = await self._route(request)
        except RequestRefusal as error:
            response = self._refuse(error)
            if (repeated := self._repeats.before(error.cause)) is not None:
                status = int(error.status)
                log.warning("request_refused", cause=error.cause, status=status, repeated=repeated)
        except Exception:
            log.exception("request_crashed")
            response = web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR)
        response.force_close()
        if handler in self._answering:
            self._forget(handler)
            self._wait_for(handler, asyncio.get_running_loop().time() + SECONDS, may_go=True)
        return response

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        above = (path for path in self._paths if path.endswith("/") and request.path.startswith(path))
        path = next(above, request.path)
        if route := self._routes.get((request.method, path)):
            return await route(request)
        is_known = path in self._paths
        status = HTTPStatus.METHOD_NOT_ALLOWED if is_known else HTTPStatus.NOT_FOUND
        return self._refuse(RequestRefusal(status, NO_ROUTE))


@dataclass(slots=True)
class _Arrival:
    until: float
    seen: int = 0


class Arrivals:
    """Accepts connections, at most `most` of them with those of the server, and passes requests on.

    At the bound the oldest one without a whole request is closed for a new one. Only where each is being
    answered may there be more, up to twice as many.
    """

    def __init__(
        self, server: HttpServer, listening: Sequence[socket.socket], most: int, repeats: Repeats
    ) -> None:
        self._server = server
        self._listening = listening
        self._most = most
        self._repeats = repeats
        self._loop = asyncio.get_running_loop()
        self._arriving: dict[socket.socket, _Arrival] = {}
        self._timer: asyncio.TimerHandle | None = None
        # Fewer at the bound than it has places: what has just come in isn't closed before it is read.
        self._at_once = max(1, min(AT_ONCE, most // 2))
        self._again: list[asyncio.TimerHandle] = []
        for one in listening:
            self._listen(one)

    def close(self) -> None:
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
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                self._say("no_descriptor")
                self._loop.remove_reader(listening)
                self._again = [self._loop.call_later(AGAIN_SECONDS, self._listen, listening)]
                return
            self._let_in(connection)

    def _let_in(self, connection: socket.socket) -> None:
        until = self._loop.time() + SECONDS
        self._arriving[connection] = _Arrival(until)
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
        self._loop.add_reader(connection.fileno(), self._look, connection)
        self._look(connection)

    def _look(self, connection: socket.socket) -> None:
        """Look at what has arrived, and leave it there for the server."""
        arriving = self._arriving[connection]
        try:
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
        except BlockingIOError:
            pass
        except OSError:
            self._close(connection)

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


@asynccontextmanager
async def serving(
    routes: Routes,
    host: str,
    port: int,
    *,
    most: int | None = None,
    drain_seconds: float = 1.0,
    refuse: Refuse = refused,
    most_bytes: MostBytes | None = None,
) -> AsyncGenerator[int]:
    """Listen on a port, with at most `most` connections; yield the port. Raises `OSError`.

    At the end, requests that are being answered have `drain_seconds`.
    """
    repeats = Repeats()
    server = HttpServer(routes, repeats, refuse, most_bytes)
    listening = await _listening(host, port)
    arrivals = Arrivals(server, listening, most or most_connections(), repeats)
    try:
        yield int(listening[0].getsockname()[1])
    finally:
        arrivals.close()
        await server.shutdown(drain_seconds)


async def _listening(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on each address of a host. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listening: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            # The backlog is how many connections the kernel keeps until they are accepted.
            one = socket.create_server(address, family=family, backlog=128)
            listening.append(one)
            one.setblocking(False)
    except OSError:
        for one in listening:
            one.close()
        raise
    return listening


def _without_traceback(record: logging.LogRecord) -> bool:
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.exc_info = None
    return True


_LOGGER = logging.getLogger("aiohttp.server.council")
_LOGGER.addFilter(_without_traceback)


def most_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, _bounded(soft) // SHARE)


def raise_descriptors() -> None:
    """Let this process open as many files and connections as the system allows it, up to a bound."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _bounded(hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # a sandbox may forbid it
        log.warning("descriptors_not_raised", reason=error)


def _bounded(limit: int) -> int:
    return MOST_DESCRIPTORS if limit == resource.RLIM_INFINITY else min(limit, MOST_DESCRIPTORS)
