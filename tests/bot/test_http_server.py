"""The HTTP server's connections: how long they are kept, and which of them goes for a new one."""

import asyncio
import resource
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot import http_server
from bot.http_server import LARGE, SECONDS, RequestRefusal, has_arrived, serving
from tests.pairs import rows
from tests.passing_time import let_pass

HEAD = b"POST /x HTTP/1.1\r\nHost: council\r\nContent-Length: 5\r\n\r\n"
WHOLE = HEAD + b"hello"

LOOP = asyncio.new_event_loop()
"""What aiohttp's parser is given; nothing runs on it."""
LOOP.close()

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Port:
    """A server that echoes what is sent to /x, waits at /gate, and refuses what is sent to /no."""

    def __init__(self) -> None:
        self.number = 0
        self.gate = asyncio.Event()
        self.reached = asyncio.Semaphore(0)
        self._opened: list[asyncio.StreamWriter] = []

    async def echo(self, request: web.BaseRequest) -> web.Response:
        return web.Response(body=await request.read())

    async def wait(self, _: web.BaseRequest) -> web.Response:
        """Answer once the gate is open."""
        self.reached.release()
        await self.gate.wait()
        return web.Response(text="gone through")

    async def refuse(self, _: web.BaseRequest) -> web.Response:
        raise RequestRefusal(HTTPStatus.UNAUTHORIZED, "signature")

    async def crash(self, _: web.BaseRequest) -> web.Response:
        raise RuntimeError("secret words")

    async def send(self, sent: bytes = b"") -> Connection:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.number)
        self._opened.append(writer)
        writer.write(sent)
        return reader, writer

    async def close(self) -> None:
        for writer in self._opened:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def port(most: int = 100) -> AsyncGenerator[Port]:
    """Serve on a port with at most so many connections."""
    one = Port()
    routes = {
        ("POST", "/x"): one.echo,
        ("GET", "/gate"): one.wait,
        ("POST", "/no"): one.refuse,
        ("GET", "/crash"): one.crash,
    }
    async with serving(routes, "127.0.0.1", 0, most=most) as one.number:
        try:
            yield one
        finally:
            one.gate.set()
            await one.close()


async def everything(connection: Connection) -> bytes:
    """Read until the other side closes; a reset ends it, too."""
    try:
        return await connection[0].read()
    except ConnectionError:
        return b""


def is_open(connection: Connection) -> bool:
    """Return whether nothing has ended a connection yet."""
    return not connection[0].at_eof() and connection[0].exception() is None


async def test_each_connection_carries_one_request() -> None:
    """However it was cut on the way, and whatever follows it."""
    async with port() as one:
        for cut in (1, len(HEAD) - 2, len(HEAD), len(WHOLE) - 1):
            connection = await one.send(WHOLE[:cut])
            await connection[1].drain()
            await asyncio.sleep(0.002)
            connection[1].write(WHOLE[cut:] + WHOLE)
            answered = await everything(connection)
            assert answered.startswith(b"HTTP/1.1 200")
            assert answered.endswith(b"\r\n\r\nhello")
            assert answered.count(b"HTTP/1.1") == 1
            assert b"Connection: close" in answered


async def test_requests_arrive_in_any_way() -> None:
    """The kernel alone wouldn't keep all of a large one; one in pieces is answered once its last piece is there."""
    body = b"x" * (LARGE * 40)
    async with (
        port() as one,
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{one.number}/x", data=body) as answer,
    ):
        assert await answer.read() == body

    async def pieces() -> AsyncGenerator[bytes]:
        yield b"hel"
        await asyncio.sleep(0)
        yield b"lo"

    async with port() as one, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{one.number}/x"
        async with session.post(url, data=pieces()) as answer:
            assert await answer.text() == "hello"


CHUNKED = b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
UNFINISHED = {
    "nothing": b"",
    "half a head": HEAD[:30],
    "one byte of the body": HEAD + b"h",
    "much of a large body": HEAD.replace(b": 5", b": 500000") + b"x" * LARGE * 2,
    "pieces": CHUNKED + b"2\r\nhe\r\n",
    "a piece that looks like the last": CHUNKED + b"5\r\n0\r\n\r\n",
    "a piece whose size ends in nought": CHUNKED + b"10\r\n\r\n",
    "a last piece whose trailer goes on": CHUNKED + b"0\r\nA: b\r\n",
    "a length of eleven digits": HEAD.replace(b": 5", b": 10000000000") + b"hello",
    "a length behind a tab": HEAD.replace(b": 5", b":\t 50\t ") + b"hello",
    "empty lines before it": b"\r\n\r\n" + HEAD,
    "pieces for another protocol": CHUNKED.replace(
        b"Host", b"Connection: upgrade\r\nUpgrade: h2c\r\nHost"
    ),
}


@rows("sent", UNFINISHED.values(), ids=UNFINISHED)
async def test_what_does_not_arrive_in_time_is_closed(sent: bytes) -> None:
    """Whatever was sent of it; it is logged once."""
    async with port() as one:
        with capture_logs() as logged:
            connections = [await one.send(sent) for _ in range(3)]
            await asyncio.sleep(0.01)
            assert all(map(is_open, connections))
            let_pass(SECONDS + 1)
            for connection in connections:
                assert await everything(connection) == b""
    assert len([line for line in logged if line["event"] == "connection_closed"]) == 1


async def test_a_byte_now_and_then_gains_no_time() -> None:
    """The ten seconds are the whole request's."""
    async with port() as one:
        connection = await one.send(HEAD[:20])
        for byte in HEAD[20:24]:
            let_pass(SECONDS / 4)
            connection[1].write(bytes([byte]))
            await asyncio.sleep(0.002)
        assert await everything(connection) == b""


@rows("sent", UNFINISHED.values(), ids=UNFINISHED)
async def test_the_oldest_unfinished_one_goes_for_a_new_one(sent: bytes) -> None:
    """So that whoever sends a request is always let in."""
    async with port(most=3) as one:
        first, second, third = [await one.send(sent) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert all(map(is_open, (first, second, third)))
        assert (await everything(await one.send(WHOLE))).startswith(b"HTTP/1.1 200")
        assert await everything(first) == b""
        assert is_open(third)
        for _ in range(10):
            assert (await everything(await one.send(WHOLE))).startswith(b"HTTP/1.1 200")


async def test_what_is_being_answered_or_left_takes_nobodys_place() -> None:
    """There may be twice as many of those as of others, and no more."""
    get = b"GET /gate HTTP/1.1\r\nHost: council\r\n\r\n"
    async with port(most=2) as one:
        answered = [await one.send(get) for _ in range(4)]
        for _ in answered:
            await one.reached.acquire()
        assert await everything(await one.send(get)) == b""
        one.gate.set()
        for connection in answered:
            assert (await everything(connection)).endswith(b"gone through")
        kept = await one.send(HEAD)
        for _ in range(5):
            _, writer = await one.send(HEAD + b"h")
            writer.close()
            await writer.wait_closed()
            await asyncio.sleep(0.002)
        assert is_open(kept)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (HEAD.replace(b": 5", b": 2000000") + b"x" * 2_000_000, 400),
        (WHOLE.replace(b"/x", b"/no"), 401),
        (WHOLE.replace(b"/x", b"/y"), 404),
        (WHOLE.replace(b"POST", b"PUT"), 405),
    ],
    ids=["no HTTP", "negative", "endless", "too large", "refused", "nowhere", "method"],
)
async def test_what_is_wrong_is_refused(
    sent: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a traceback."""
    async with port() as one:
        answered = await everything(await one.send(sent))
    assert answered.split()[1] == str(status).encode()
    assert not [record for record in caplog.records if record.exc_info]


async def test_refusals_are_logged_once_a_minute_and_errors_say_nothing_of_themselves() -> None:
    """With their cause; who asked reads only that it failed."""
    async with port() as one:
        with capture_logs() as logged:
            for _ in range(20):
                await everything(await one.send(WHOLE.replace(b"/x", b"/no")))
    assert logged == [
        {
            "event": "request_refused",
            "log_level": "warning",
            "cause": "signature",
            "status": 401,
            "repeated": 0,
        }
    ]
    async with port() as one:
        with capture_logs() as logged:
            answered = await everything(await one.send(b"GET /crash HTTP/1.1\r\nHost: x\r\n\r\n"))
    assert answered.startswith(b"HTTP/1.1 500 ")
    assert b"secret" not in answered
    assert [line["event"] for line in logged] == ["request_crashed"]


async def test_without_a_descriptor_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has connected is let in once there is one."""
    monkeypatch.setattr(http_server, "AGAIN_SECONDS", 0.02)
    async with port() as one:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        connection = socket.socket()
        connection.setblocking(False)
        free = connection.fileno() + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            with capture_logs() as logged:
                await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", one.number))
                await asyncio.get_running_loop().sock_sendall(connection, WHOLE)
                while not logged:
                    await asyncio.sleep(0.001)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        answered = await asyncio.get_running_loop().sock_recv(connection, 1000)
        connection.close()
    assert [line["cause"] for line in logged] == ["no_descriptor"]
    assert answered.startswith(b"HTTP/1.1 200")


@given(st.binary(max_size=300), st.booleans(), st.data())
def test_a_request_has_arrived_when_its_last_byte_has(
    body: bytes, shouts: bool, data: st.DataObject
) -> None:
    """And not before, whatever its body is."""
    head = f"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nA: b\r\n\r\n"
    whole = (head.upper() if shouts else head).encode() + body
    assert has_arrived(whole, LOOP)
    assert has_arrived(whole[: data.draw(st.integers(0, len(whole) - 1))], LOOP) is False


@given(st.lists(st.binary(min_size=1, max_size=99)), st.sampled_from([b"", b"A: b\r\n"]), st.data())
def test_pieces_have_arrived_when_the_last_one_has(
    pieces: list[bytes], trailer: bytes, data: st.DataObject
) -> None:
    """And not before, whatever is in them."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    whole = CHUNKED + body + b"0\r\n" + trailer + b"\r\n"
    assert has_arrived(whole, LOOP)
    assert has_arrived(whole[: data.draw(st.integers(0, len(whole) - 1))], LOOP) is False


def test_the_smallest_pieces_stop_no_parser() -> None:
    """As many as are looked at before the server takes over."""
    most = (LARGE - len(CHUNKED) - 5) // 6
    assert has_arrived(CHUNKED + b"1\r\nx\r\n" * most + b"0\r\n\r\n", LOOP)


@given(st.binary(max_size=600), st.sampled_from([b"", HEAD[:-2], CHUNKED[:-2], CHUNKED]))
def test_whatever_is_sent_can_be_looked_at(sent: bytes, begins: bytes) -> None:
    """Nothing in it is an error."""
    assert has_arrived(begins + sent, LOOP) in (True, False, None)


@pytest.mark.parametrize(
    ("limits", "becomes"),
    [
        ((256, 1024), 1024),
        ((1024, 500_000), 65_536),
        ((1024, resource.RLIM_INFINITY), 65_536),
        ((100_000, 500_000), 100_000),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), resource.RLIM_INFINITY),
    ],
)
def test_descriptors_are_raised_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], becomes: int
) -> None:
    """And never lowered."""
    now = [limits]

    def limit(_: int, wanted: tuple[int, int]) -> None:
        now.append(wanted)

    def limits_now(_: int) -> tuple[int, int]:
        return now[-1]

    monkeypatch.setattr(resource, "getrlimit", limits_now)
    monkeypatch.setattr(resource, "setrlimit", limit)
    http_server.raise_descriptors()
    assert now[-1] == (becomes, limits[1])


def test_where_they_cannot_be_raised_it_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox may forbid it."""

    def refuse(*_: object) -> None:
        raise PermissionError(1, "not permitted")

    def few(_: int) -> tuple[int, int]:
        return 256, 1024

    monkeypatch.setattr(resource, "getrlimit", few)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    with capture_logs() as logged:
        http_server.raise_descriptors()
    assert [line["event"] for line in logged] == ["descriptors_not_raised"]
    assert http_server.most_connections() == 25
