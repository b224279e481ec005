"""An HTTP server whose connections nobody can use up.

Each connection carries one request, which must be there, headers and body, in time (`bot.arrivals`); its
answer must be taken as quickly. So nothing that a stranger leaves half done keeps anybody else out.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from bot.arrivals import SECONDS, Arrivals
from bot.config.logs import Repeats
from bot.config.ports import most_connections

log = structlog.get_logger()

NO_ROUTE = "no_route"
"""Why a request is refused that nothing answers."""
BACKLOG = 128
"""How many connections the kernel keeps until they are accepted."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Routes = Mapping[tuple[str, str], Handler]
"""What answers each method and path, one that ends in / for all below it; the request has been read."""
MostBytes = Callable[[web.BaseRequest], Awaitable[int]]
"""Returns how many bytes a request may have, by its headers alone; without it that is 1 MiB."""


class RequestRefused(Exception):
    """A request isn't what it should be; `cause` is a code for the log."""

    def __init__(self, status: HTTPStatus, cause: str) -> None:
        super().__init__(cause)
        self.status = status
        self.cause = cause


Refuse = Callable[[RequestRefused], web.Response]


def refused(error: RequestRefused) -> web.Response:
    """Return what is answered to a request that isn't what it should be."""
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
        """Return how many connections there are."""
        return len(self._taking) + len(self._waiting) + len(self._answering)

    def take(self, connection: socket.socket, until: float, *, is_whole: bool) -> None:
        """Answer on a connection whose request is whole, or by then, on the loop's clock."""
        loop = asyncio.get_running_loop()

        def handler() -> web.RequestHandler:
            made = self()
            self._wait_for(made, until, may_go=not is_whole)
            return made

        task = loop.create_task(loop.connect_accepted_socket(handler, connection))
        self._taking.add(task)
        task.add_done_callback(self._taken)

    def close_oldest(self) -> bool:
        """Close a connection whose request isn't being answered, if there is one."""
        if not self._may_go:
            return False
        self._close(next(iter(self._may_go)))
        return True

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        self._forget(handler)
        super().connection_lost(handler, exc)

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's own
        """Answer what has arrived, if that takes no longer; then close every connection."""
        await asyncio.gather(*self._taking, return_exceptions=True)
        self.pre_shutdown()
        await super().shutdown(timeout)
        for timer in self._waiting.values():
            timer.cancel()

    def _taken(self, task: asyncio.Task[Any]) -> None:
        self._taking.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.warning("connection_not_taken", reason=error)

    def _wait_for(self, handler: web.RequestHandler, until: float, *, may_go: bool) -> None:
        """Close a connection at that time, unless its request is answered before, or it is done."""
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
            await _read(request)
            if handler in self._waiting:
                self._forget(handler)
                self._answering.add(handler)
            response = await self._route(request)
        except RequestRefused as error:
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
        return self._refuse(RequestRefused(status, NO_ROUTE))


async def _read(request: web.BaseRequest) -> None:
    """Read a request's body, which stays readable. Raises `RequestRefused`."""
    try:
        await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "too_large") from error
    except (ConnectionError, web.RequestPayloadError, web.PayloadAccessError) as error:
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "broken_off") from error


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
            one = socket.create_server(address, family=family, backlog=BACKLOG)
            listening.append(one)
            one.setblocking(False)
    except OSError:
        for one in listening:
            one.close()
        raise
    return listening


def _without_traceback(record: logging.LogRecord) -> bool:
    """Leave out where in aiohttp it was noticed that a request isn't HTTP."""
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.exc_info = None
    return True


_LOGGER = logging.getLogger("aiohttp.server.council")
_LOGGER.addFilter(_without_traceback)
