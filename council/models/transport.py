"""httpx's requests, sent by aiohttp and read seldom.

Providers send a reply token by token. To wake up for each token costs several times what it takes
to read it, so the kernel collects what arrives. The program waits 75 ms between two reads, and no longer
than a twentieth of the time that the reply has taken: so much later, at most, is its end known. h11,
which httpx uses, would still take each chunk apart in Python: decision 12 has the figures.
"""

import asyncio
import errno
import os
import resource
import socket
import zlib
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from ssl import SSLContext
from types import SimpleNamespace
from typing import cast
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from council.errors import Failure, ModelError
from council.models.refusals import too_large

KEPT_SECONDS = 60.0
"""How long a connection without a call is kept for the next one."""
LINES_AT_ONCE = 2_000
"""Lines that are read before other tasks have their turn: a few milliseconds of work."""
READ_INTERVAL = 0.075
"""Seconds between two reads of a reply, at most."""
SHARE_OF_WAITING = 1 / 20
"""The part of the time a reply has taken by which a pause may delay what comes next."""
UNPACKED = ("identity", "", "gzip", "x-gzip", "deflate")
"""Encodings of a body that are read; only the first is asked for."""
UNPACKED_AT_ONCE = 64 * 1024
FULL_READ = 32 * 1024
"""Bytes that show that more is waiting already."""


class Transport(httpx.AsyncBaseTransport):
    """Sends each request on a connection of its own, which the next may use again.

    No reply may be over `most_bytes` bytes or `most_lines` lines: reading on raises `ModelError`.
    """

    def __init__(self, most_bytes: int, most_lines: int) -> None:
        self._most_bytes = most_bytes
        self._most_lines = most_lines
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        began = asyncio.get_running_loop().time()
        seconds = cast("dict[str, float | None]", request.extensions.get("timeout", {}))
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=seconds.get("connect"), sock_read=seconds.get("read")
        )
        with _as_httpx():
            response = await self._open().request(
                request.method,
                # httpx has made a header of its name and password; aiohttp takes one or the other.
                str(request.url.copy_with(userinfo=b"") if request.url.userinfo else request.url),
                data=request.content or None,
                headers=[(name, value) for name, value in request.headers.items() if name != "host"],
                allow_redirects=False,
                proxy=proxy_of(request.url),
                ssl=self._trusting if request.url.scheme == "https" else True,
                timeout=timeout,
                trace_request_ctx=request.extensions.get("sent"),
            )
        return httpx.Response(
            response.status,
            headers=response.raw_headers,
            stream=_Body(response, began, self._most_bytes, self._most_lines),
        )

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        # aiohttp wants a running loop, which there may not be yet when the client is made.
        if self._session is None:
            # Half of what the process may open, 0 for any number: otherwise, connections kept for later
            # calls could leave none for the files of those that have ended.
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            most = 0 if soft == resource.RLIM_INFINITY else max(1, soft // 2)
            self._session = aiohttp.ClientSession(
                connector=_Connections(limit=most, keepalive_timeout=KEPT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trace_configs=[_telling_what_is_sent()],
            )
        return self._session

    @cached_property
    def _trusting(self) -> SSLContext:
        # Reading the certificates takes 25 ms: only where an address needs them.
        return httpx.create_ssl_context()


NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
TURNS_TO_HEAR = 2
"""Turns of the event loop until it knows what the kernel has received."""
MOST_CONNECTIONS = 3
"""How many are tried for one request: a server may close every new one."""


class _Connections(aiohttp.TCPConnector):
    """Connections to keep; none that a server has closed, or on which it has spoken unasked, is used.

    aiohttp would take what was said for the reply to the next call, whoever's it is. Of a request on a
    closed connection, nobody would know whether it was worked on.
    """

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own
    ) -> Connection:
        """Return an open connection on which nothing has arrived. Raises `aiohttp.ClientError`."""
        for _ in range(MOST_CONNECTIONS):
            connection = await super().connect(req, traces, timeout)
            try:
                for _ in range(TURNS_TO_HEAR):
                    await asyncio.sleep(0)
                protocol = connection.protocol
                if protocol is not None and protocol.is_connected() and not protocol.should_close:
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()
        raise aiohttp.ServerDisconnectedError


class _Body(httpx.AsyncByteStream):
    """A reply's bytes as they arrive, unpacked and counted. `began` is when its request was sent.

    What has arrived is handed on without a wait, so a server that sends fast would keep every other
    task from its turn, and the deadline from passing: many lines are handed on in several parts.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, began: float, most_bytes: int, most_lines: int
    ) -> None:
        self._response = response
        self._began = began
        self._bytes_left = most_bytes
        self._lines_left = most_lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        unpack: _Unpacking | None = None
        while data := await self._read():
            if unpack is None:
                unpack = _unpacking(data, self._response.headers.get("Content-Encoding", ""))
            for part in unpack(data):
                lines = self._count(part)
                # Every byte may be a line of its own.
                size = LINES_AT_ONCE if lines > LINES_AT_ONCE else len(part)
                for start in range(0, len(part), size):
                    yield part[start : start + size]
                    if lines > LINES_AT_ONCE:
                        await asyncio.sleep(0)
            if len(data) < FULL_READ:
                await self._collect()

    def _count(self, part: bytes) -> int:
        lines = part.count(b"\n") + part.count(b"\r")
        self._bytes_left -= len(part)
        self._lines_left -= lines
        if self._bytes_left < 0 or self._lines_left < 0:
            raise too_large("the reply")
        return lines

    async def aclose(self) -> None:
        # Of a reply that was read to its end, aiohttp has freed the connection already.
        self._response.close()

    async def _read(self) -> bytes:
        with _as_httpx():
            return await self._response.content.readany()

    async def _collect(self) -> None:
        """Have the kernel collect what arrives, for a while."""
        connection = self._response.connection
        if connection is None or connection.transport is None:
            return
        arriving: socket.socket | None = connection.transport.get_extra_info("socket")
        if arriving is None:
            return
        with suppress(OSError):  # not every system can
            arriving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, FULL_READ)
        try:
            taken = asyncio.get_running_loop().time() - self._began
            await asyncio.sleep(min(READ_INTERVAL, taken * SHARE_OF_WAITING))
        finally:
            with suppress(OSError):
                arriving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


_Unpacking = Callable[[bytes], Iterable[bytes]]


def _unpacking(first: bytes, encoding: str) -> _Unpacking:
    """Return what unpacks a body that begins like this.

    Proxies pack what nobody asked them to, and some label as packed what isn't.
    """
    is_gzip = first.startswith(b"\x1f\x8b")
    if not is_gzip and encoding.lower() != "deflate":
        return lambda data: (data,)
    # Deflate comes with zlib's header, as it should, or without: one byte tells.
    has_header = first[0] & 0x0F == zlib.DEFLATED
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32 if is_gzip or has_header else -zlib.MAX_WBITS)

    def unpack(data: bytes) -> Iterator[bytes]:
        while data and not unpacker.eof:
            try:
                part = unpacker.decompress(data, UNPACKED_AT_ONCE)
            except zlib.error as error:
                raise ModelError(Failure(cause="malformed", detail="packed, and broken")) from error
            data = unpacker.unconsumed_tail
            if part:
                yield part

    return unpack


@contextmanager
def _as_httpx() -> Generator[None]:
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except aiohttp.SocketTimeoutError as error:
        raise httpx.ReadTimeout(str(error)) from error
    except (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError) as error:
        raise httpx.ProxyError(str(error)) from error
    except aiohttp.ClientConnectorError as error:
        if _is_short_of_descriptors(error):
            raise ModelError(Failure(cause="descriptors")) from error
        raise httpx.ConnectError(error.os_error.strerror or str(error)) from error
    except aiohttp.ClientResponseError as error:
        raise httpx.RemoteProtocolError(str(error)) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError) as error:
        raise httpx.ReadError("the connection was closed before the reply ended") from error
    except aiohttp.ClientError as error:
        raise httpx.ReadError(str(error)) from error
    except OSError as error:  # the certificates couldn't be read
        if _is_short_of_descriptors(error):
            raise ModelError(Failure(cause="descriptors")) from error
        raise


def _telling_what_is_sent() -> aiohttp.TraceConfig:
    """Return what calls a request's `sent`, if it has one, once its headers are on their way."""

    async def tell(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        sent: Callable[[], None] | None = context.trace_request_ctx
        if sent is not None:
            sent()

    config = aiohttp.TraceConfig()
    config.on_request_headers_sent.append(tell)
    return config


def _is_short_of_descriptors(error: OSError) -> bool:
    """Whether a connection failed because this process, or the system, may open no further file."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        # The system's resolver doesn't say why it couldn't ask.
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as unopened:
            return unopened.errno in NO_DESCRIPTORS
    return error.errno in NO_DESCRIPTORS


def proxy_of(url: httpx.URL) -> str | None:
    """Return the environment's proxy for an address; models on this machine need none."""
    if url.host == "localhost" or url.host.startswith("127.") or url.host == "::1":
        return None
    if proxy_bypass(url.host):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    # `proxy.example:3128` is what many write, and what other programs accept.
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy
