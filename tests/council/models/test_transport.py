"""How replies are read off their connections."""

import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, Callable

import httpx
import pytest
import trustme

from council.errors import ModelError
from council.models import transport
from council.models.transport import Transport
from tests.council.models.scene import Serve, served

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
TOKENS = 400


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def tokens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request token by token, each in a chunk and a packet of its own."""
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(HEAD)
        for number in range(TOKENS):
            writer.write(chunk(b"data: %d\n\n" % number))
            await writer.drain()
            await asyncio.sleep(0.001)
        writer.write(END)


def certified(authority: trustme.CA) -> ssl.SSLContext:
    """Return what a server on 127.0.0.1 needs to prove that it is one."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)  # pyright: ignore[reportUnknownMemberType]
    return tls


@pytest.fixture
async def client() -> AsyncGenerator[httpx.AsyncClient]:
    """Open a client with our connections and generous limits."""
    async with httpx.AsyncClient(transport=Transport(2**24, 10**6)) as opened:
        yield opened


async def pieces(client: httpx.AsyncClient, url: str) -> list[bytes]:
    async with client.stream("GET", url) as response:
        return [piece async for piece in response.aiter_raw()]


async def test_a_reply_that_comes_token_by_token_is_read_seldom(client: httpx.AsyncClient) -> None:
    """The kernel collects what arrives between two reads."""
    async with served(tokens) as url:
        read = await pieces(client, url)
    assert b"".join(read) == b"".join(b"data: %d\n\n" % number for number in range(TOKENS))
    assert len(read) < TOKENS / 4


async def test_it_is_read_seldom_through_tls_too(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each token has a TLS record of its own; one read takes all that have arrived."""
    authority = trustme.CA()
    trusting = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    monkeypatch.setattr(httpx, "create_ssl_context", lambda: trusting)
    async with served(tokens, certified(authority)) as url:
        read = await pieces(client, url)
    assert b"".join(read).endswith(b"data: %d\n\n" % (TOKENS - 1))
    assert len(read) < TOKENS / 4


async def test_an_unknown_certificate_is_refused(client: httpx.AsyncClient) -> None:
    """The reason is told, in the words of the TLS library."""
    async with served(tokens, certified(trustme.CA())) as url:
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            await pieces(client, url)


async def test_a_reply_is_read_seldom_but_at_once_when_it_comes_at_once(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause takes a part of the time that the reply has taken; a read that brings much is followed at once."""
    monkeypatch.setattr(transport, "READ_INTERVAL", 1e6)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(HEAD + chunk(b"data: 1\n\n"))
            await writer.drain()
            writer.write(chunk(b"data: 2\n\n") + END)

    async with served(answer) as url, asyncio.timeout(30):
        for _ in range(4):  # each reply is timed separately
            assert b"".join(await pieces(client, url)) == b"data: 1\n\ndata: 2\n\n"
    collected: list[int] = []

    async def collect(_: object) -> None:
        collected.append(1)

    monkeypatch.setattr("council.models.transport._Body._collect", collect)
    body = b"x" * 2**23

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + chunk(body) + END)
        await writer.drain()

    async with served(pour) as url:
        assert b"".join(await pieces(client, url)) == body
    assert len(collected) < 2**23 / transport.FULL_READ / 4


def raw_deflate(data: bytes) -> bytes:
    """Pack as some servers understand `deflate`: without zlib's header."""
    return zlib.compress(data, wbits=-zlib.MAX_WBITS)


PACKINGS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "gzip": (gzip.compress, "gzip"),
    "x-gzip": (gzip.compress, "x-gzip"),
    "unlabelled": (gzip.compress, ""),
    "deflate": (zlib.compress, "deflate"),
    "raw deflate": (raw_deflate, "deflate"),
    "labelled only": (bytes, "gzip"),
    "plain": (bytes, ""),
}


@pytest.mark.parametrize(("pack", "label"), PACKINGS.values(), ids=PACKINGS)
async def test_what_was_packed_unasked_is_unpacked(
    client: httpx.AsyncClient, pack: Callable[[bytes], bytes], label: str
) -> None:
    """Proxies do it; some only say so."""
    body = b"".join(b"data: %d\n\n" % number for number in range(10_000))
    async with served(packed(pack(body), label)) as url:
        assert b"".join(await pieces(client, url)) == body


def packed(body: bytes, label: str) -> Serve:
    """Answer with this body, labelled as packed this way."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: %s\r\n\r\n" % label.encode())
        writer.write((head if label else HEAD) + chunk(body) + END)
        await writer.drain()

    return answer


@pytest.mark.parametrize(("of", "size"), [(b"x", 2**26), (b"\n", 2**22)], ids=["bytes", "lines"])
async def test_a_packed_bomb_is_ended(client: httpx.AsyncClient, of: bytes, size: int) -> None:
    """What it unpacks to counts, and no more is unpacked than that."""
    body = of * size
    async with served(packed(gzip.compress(body, 1), "gzip")) as url:
        with pytest.raises(ModelError) as caught:
            await pieces(client, url)
    assert caught.value.failure.cause == "too_large"


async def test_a_broken_packed_reply_is_malformed(client: httpx.AsyncClient) -> None:
    """It may be whole the next time."""
    async with served(packed(b"\x1f\x8bbroken", "gzip")) as url:
        with pytest.raises(ModelError) as caught:
            await pieces(client, url)
    assert caught.value.failure.cause == "malformed"


async def test_a_system_that_cannot_collect_reads_on(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option is refused there; everything else stays the same."""
    monkeypatch.setattr(socket, "SO_RCVLOWAT", 9_999)
    monkeypatch.setattr(transport, "READ_INTERVAL", 0.0)
    monkeypatch.setattr(f"{__name__}.TOKENS", 20)
    async with served(tokens) as url:
        assert b"".join(await pieces(client, url)).endswith(b"data: %d\n\n" % (TOKENS - 1))


async def test_a_connection_is_used_again_and_wakes_for_every_byte(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the last reply asked of the kernel is taken back."""
    monkeypatch.setattr(f"{__name__}.TOKENS", 50)
    ports: set[int] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.add(writer.get_extra_info("peername")[1])
        await tokens(reader, writer)

    async with served(answer) as url:
        for _ in range(2):
            assert (await pieces(client, url))[0].startswith(b"data: 0\n\n")
    assert len(ports) == 1


@pytest.mark.parametrize("pause", [0.0, 0.01])
async def test_what_arrives_unasked_is_no_calls_reply(client: httpx.AsyncClient, pause: float) -> None:
    """A server that says more than it was asked would hand its words to the next call, anybody's."""
    told, closed = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if told.is_set():
            writer.write(HEAD + chunk(b"data: mine\n\n") + END)
            await closed.wait()
            return
        writer.write(HEAD + chunk(b"data: first\n\n"))
        await asyncio.sleep(0.01)
        unasked = HEAD + chunk(b"data: unasked\n\n") + END
        if pause:
            writer.write(END)
            await asyncio.sleep(pause)  # the connection is idle by then
            writer.write(unasked)
        else:
            writer.write(END + unasked)
        told.set()
        await reader.read()
        closed.set()

    async with served(answer) as url, asyncio.timeout(30):
        assert await pieces(client, url) == [b"data: first\n\n"]
        await told.wait()
        await asyncio.sleep(0.01)
        assert await pieces(client, url) == [b"data: mine\n\n"]
        await closed.wait()


async def test_an_abandoned_call_closes_its_connection(client: httpx.AsyncClient) -> None:
    """Otherwise the server would go on writing, and be paid for it."""
    closed = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + chunk(b"data: 1\n\n"))
        await reader.read()
        closed.set()

    async with served(answer) as url, asyncio.timeout(30):
        async with client.stream("GET", url) as response:
            async for _ in response.aiter_raw():
                break
        await closed.wait()


async def test_a_call_whose_connection_is_lost_is_not_sent_again(client: httpx.AsyncClient) -> None:
    """The provider may have begun to answer, and bills both; whether to ask again is decided elsewhere."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HEAD + chunk(b"data: 1\n\n") + END)
        asked.append(await reader.readuntil(b"\r\n\r\n"))  # on the kept connection, which breaks

    async with served(answer) as url:
        await client.post(url)
        with pytest.raises(httpx.ReadError, match="closed before the reply ended"):
            await client.post(url)
    assert len(asked) == 2
