"""An HTTP server whose connections nobody can use up: it closes the oldest unfinished one for a new one.

Each connection carries one request, which must be there, headers and body, within `SECONDS`; its answer
must be taken within as long. So nothing that a stranger leaves half sent keeps anybody else out.
"""

import asyncio
import logging
import os
import resource
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from bot.config.logs import Repeats

log = structlog.get_logger()

SECONDS = 10.0
"""How long a request may take to arrive, and an answer to be taken."""
BACKLOG = 128
"""How many connections the kernel keeps until they are accepted."""
SHARE = 10
"""A port's connections take at most one in so many of the process's descriptors."""
MOST_DESCRIPTORS = 65_536
"""What the process asks for, where its hard limit allows it: more helps nobody here."""
TURNS = 8
"""For how many turns of the event loop a connection is kept: what was sent with it is read in six."""
MOST_AT_ONCE = 16

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]
Routes = Mapping[tuple[str, str], Handler]
"""What answers each method and path; a request has been read when it is asked."""


class Refused(Exception):
    """A request isn't what it should be; `cause` is a code for the log."""

    def __init__(self, status: HTTPStatus, cause: str) -> None:
        super().__init__(cause)
        self.status = status
        self.cause = cause


class HttpServer(web.Server):
    """Answers requests on at most `most` connections, while any of them can be closed.

    A connection whose request is being answered isn't closed for another; up to twice as many may be.
    """

    def __init__(self, routes: Routes, *, most: int, repeats: Repeats | None = None) -> None:
        super().__init__(
            self._answer,
            # Slack compresses nothing, and nothing is unpacked before it is known who sent it.
            auto_decompress=False,
            access_log=None,
            lingering_time=1.0,
            logger=_LOGGER,
        )
        self._routes = routes
        self._paths = {path for _, path in routes}
        self._most = most
        self._repeats = repeats or Repeats()
        self._waiting: dict[web.RequestHandler, float] = {}
        self._answering: set[web.RequestHandler] = set()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Let a connection in; another one may have to go."""
        super().connection_made(handler, transport)
        self._wait_for(handler)
        over = len(self._waiting) + len(self._answering) - self._most
        if over > 0 and (len(self._waiting) > 1 or over > self._most):
            self._close(next(iter(self._waiting)), "no_room")

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        self._waiting.pop(handler, None)
        self._answering.discard(handler)
        super().connection_lost(handler, exc)

    def stop(self) -> None:
        """Accept no further request on any connection."""
        self.pre_shutdown()
        if self._timer:
            self._timer.cancel()

    def _wait_for(self, handler: web.RequestHandler) -> None:
        """Close a connection unless something happens in time."""
        now = asyncio.get_running_loop().time()
        self._waiting[handler] = now + SECONDS
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(now + SECONDS, self._close_late)

    def _close_late(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._waiting:
            handler, until = next(iter(self._waiting.items()))
            if until > loop.time():
                self._timer = loop.call_at(until, self._close_late)
                return
            self._close(handler, "too_slow")

    def _close(self, handler: web.RequestHandler, cause: str) -> None:
        del self._waiting[handler]
        transport = handler.transport
        handler.force_close()
        if transport is not None:
            transport.abort()  # what it doesn't take isn't waited for
        if (repeated := self._repeats.before((cause,))) is not None:
            log.warning("connection_closed", cause=cause, repeated=repeated)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = request.protocol
        try:
            try:
                await request.read()
            except web.HTTPRequestEntityTooLarge as error:
                raise Refused(HTTPStatus.BAD_REQUEST, "too_large") from error
            except (ConnectionError, web.RequestPayloadError, web.PayloadAccessError) as error:
                raise Refused(HTTPStatus.BAD_REQUEST, "broken_off") from error
            if self._waiting.pop(handler, None) is not None:
                self._answering.add(handler)
            response = await self._route(request)
        except Refused as error:
            response = web.json_response({"error": "invalid request"}, status=error.status)
            if (repeated := self._repeats.before((error.cause,))) is not None:
                log.warning(
                    "request_refused", cause=error.cause, status=int(error.status), repeated=repeated
                )
        except Exception:
            log.exception("request_crashed")
            response = web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR)
        response.force_close()
        if handler in self._answering:
            self._answering.discard(handler)
            self._wait_for(handler)
        return response

    async def _route(self, request: web.BaseRequest) -> web.Response:
        if route := self._routes.get((request.method, request.path)):
            return await route(request)
        if request.path in self._paths:
            return web.Response(status=HTTPStatus.METHOD_NOT_ALLOWED)
        return web.Response(status=HTTPStatus.NOT_FOUND)


@asynccontextmanager
async def serving(
    routes: Routes, host: str, port: int, *, most: int | None = None, drain_seconds: float = 1.0
) -> AsyncGenerator[int]:
    """Listen on a port, with at most `most` connections; yield the port. Raises `OSError`.

    At the end, requests that are being answered have `drain_seconds`.
    """
    most = most or max(1, descriptors() // SHARE)
    http = HttpServer(routes, most=most)
    # asyncio accepts as many in one turn of the loop as its backlog says. With fewer, no flood closes a
    # connection before what it has sent was read.
    at_once = max(1, min(MOST_AT_ONCE, most // TURNS))
    server = await asyncio.get_running_loop().create_server(http, host, port, backlog=at_once)
    try:
        for listening in server.sockets:
            with socket.socket(fileno=os.dup(listening.fileno())) as same:
                same.listen(BACKLOG)
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        http.stop()
        await http.shutdown(drain_seconds)


def descriptors() -> int:
    """Return how many files and connections this process may have open."""
    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], MOST_DESCRIPTORS)


def raise_descriptors() -> None:
    """Let this process open as many files and connections as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # a sandbox may forbid it
        log.warning("descriptors_not_raised", reason=error)


def _without_traceback(record: logging.LogRecord) -> bool:
    """Leave out where in aiohttp it was noticed that a request isn't HTTP."""
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.exc_info = None
    return True


_LOGGER = logging.getLogger("aiohttp.server.council")
_LOGGER.addFilter(_without_traceback)
