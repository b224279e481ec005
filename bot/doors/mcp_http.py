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
from bot.http_server import SECONDS

Message = MutableMapping[str, Any]
_STREAM = "text/event-stream"


@asynccontextmanager
async def open_mcp(door: Door) -> AsyncGenerator[Served]:
    """Yield what answers MCP's requests of a known caller."""
    server = Tools(door, _caller).server()
    whole = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    streamed = StreamableHTTPSessionManager(server, stateless=True)

    async def serve(caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        # Notifications have room in a stream alone, which simple clients don't read.
        wants_progress = b'"progressToken"' in body and _STREAM in request.headers.get("Accept", "")
        exchange = _Exchange(caller, request, body)
        manager = streamed if wants_progress else whole
        await manager.handle_request(exchange.scope, exchange.receive, exchange.send)
        return exchange.response

    is_open, ended = asyncio.Event(), asyncio.Event()

    async def keep_open() -> None:
        async with whole.run(), streamed.run():
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
    request: Any = context.request
    return request.scope["state"]["caller"]


class _Exchange:
    """One request as an ASGI application takes it, and its response."""

    def __init__(self, caller: Caller, request: web.BaseRequest, body: bytes) -> None:
        self._request = request
        self._body: bytes | None = body
        self.response = web.StreamResponse(status=500)
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
        """Send the beginning of the response, or a part of it, which must be taken in time."""
        try:
            async with asyncio.timeout(SECONDS):
                if message["type"] == "http.response.start":
                    self.response.set_status(message["status"])
                    for name, value in message.get("headers", ()):
                        if name.lower() != b"connection":
                            self.response.headers[name.decode("latin-1")] = value.decode("latin-1")
                    self.response.force_close()
                    await self.response.prepare(self._request)
                    return
                await self.response.write(message.get("body", b""))
                if not message.get("more_body", False):
                    await self.response.write_eof()
        except (ConnectionError, TimeoutError):  # it left, or takes nothing any more
            if self._request.transport is not None:
                self._request.transport.abort()
