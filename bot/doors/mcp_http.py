"""MCP over HTTP, on the port for programs: the SDK's streamable HTTP behind our own server.

Each request stands alone: no session is kept that a restart would lose. The SDK answers as an ASGI
application; https://asgi.readthedocs.io/en/latest/specs/www.html says how it is called.
"""

import asyncio
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from bot.doors.door import Caller, Door
from bot.doors.endpoint import Served
from bot.doors.mcp_tools import Tools

Message = MutableMapping[str, Any]


@asynccontextmanager
async def open_mcp(door: Door) -> AsyncGenerator[Served]:
    """Yield what answers MCP's requests of a known caller."""
    manager = StreamableHTTPSessionManager(
        Tools(door, _caller).server(), json_response=True, stateless=True
    )

    async def serve(caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
        exchange = _Exchange(caller, request, await request.read())
        await manager.handle_request(exchange.scope, exchange.receive, exchange.send)
        return exchange.response or web.Response(status=500)

    is_open, ended = asyncio.Event(), asyncio.Event()

    async def keep_open() -> None:
        async with manager.run():
            is_open.set()
            await ended.wait()

    # Its task group has to be left by the task that entered it, which ours needn't be.
    keeping = asyncio.create_task(keep_open())
    await is_open.wait()
    try:
        yield serve
    finally:
        ended.set()
        await keeping


def _caller(context: ServerRequestContext[Any, Any]) -> Caller:
    """Return whoever sent the request that a tool answers."""
    return context.request.scope["state"]["caller"] if context.request is not None else _nobody()


def _nobody() -> Caller:
    raise LookupError("a request without its caller")


class _Exchange:
    """One request as an ASGI application takes it, and its response."""

    def __init__(self, caller: Caller, request: web.BaseRequest, body: bytes) -> None:
        self._request = request
        self._body: bytes | None = body
        self._status = 500
        self._headers: list[tuple[str, str]] = []
        self._sent: list[bytes] = []
        self.response: web.StreamResponse | None = None
        self.scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": request.path,
            "raw_path": request.path.encode(),
            "root_path": "",
            "query_string": request.query_string.encode(),
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "server": None,
            "client": None,
            "state": {"caller": caller},
        }

    async def receive(self) -> Message:
        """Return the body, then that the client has left, once it has."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        while (transport := self._request.transport) is not None and not transport.is_closing():  # noqa: ASYNC110 - aiohttp tells nobody
            await asyncio.sleep(1.0)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the response; it is sent as a whole."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in message.get("headers", ())
                if name.lower() != b"content-length"
            ]
            return
        self._sent.append(message.get("body", b""))
        if not message.get("more_body", False):
            response = web.Response(status=self._status, body=b"".join(self._sent))
            for name, value in self._headers:
                response.headers[name] = value
            self.response = response
