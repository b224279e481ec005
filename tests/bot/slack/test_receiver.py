"""What arrives over HTTP and isn't Slack's: refused before anything reads it, in one line of the log."""

import gzip
import hashlib
import hmac
import io
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from structlog.testing import capture_logs

from bot.http_server import serving
from bot.slack.bot import receiver
from tests.pairs import rows

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 - the one in Slack's documentation
BODY = b'{"type": "event_callback"}'
DEEP = b"[" * 100_000 + b"]" * 100_000


def signed(body: bytes, stamp: str | None = None) -> dict[str, str]:
    stamp = stamp or str(int(time.time()))
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={digest}",
        "Content-Type": "application/json",
    }


@dataclass(slots=True)
class Place:
    """Where requests are sent, and those that were passed on."""

    session: aiohttp.ClientSession
    url: str
    passed_on: list[AsyncBoltRequest] = field(default_factory=list[AsyncBoltRequest])

    async def post(self, body: bytes, headers: dict[str, str]) -> int:
        """Send a request; return the status of the answer."""
        async with self.session.post(self.url, data=io.BytesIO(body), headers=headers) as answer:
            return answer.status

    async def pass_on(self, request: AsyncBoltRequest) -> BoltResponse:
        self.passed_on.append(request)
        return BoltResponse(status=200, body="ok")


@asynccontextmanager
async def receiving() -> AsyncGenerator[Place]:
    async with aiohttp.ClientSession() as session:
        place = Place(session, "")
        routes = {("POST", "/"): receiver(SECRET, place.pass_on)}
        async with serving(routes, "127.0.0.1", 0) as port:
            place.url = f"http://127.0.0.1:{port}/"
            yield place


async def test_what_slack_signed_is_passed_on() -> None:
    """Whole, and read."""
    async with receiving() as place:
        assert await place.post(BODY, signed(BODY)) == 200
    assert [request.body for request in place.passed_on] == [{"type": "event_callback"}]


async def test_slacks_look_at_the_certificate_is_answered() -> None:
    """It comes without a signature, and nobody hears of it."""
    async with receiving() as place:
        assert await place.post(b"token=x&ssl_check=1", {}) == 200
        assert await place.post(b"token=x&text=ssl_check%3D1", {}) == 401
    assert place.passed_on == []


STAMPS = [
    "",
    "soon",
    "nan",
    "1e9",
    "-1",
    " 1",
    "1_0",
    "٤٢",
    "9" * 5000,
    "0x10",
    "1700000000",  # years ago
]


@rows("stamp", STAMPS)
async def test_an_odd_timestamp_is_refused(stamp: str) -> None:
    """Even with a signature that fits it."""
    await refused(BODY, signed(BODY, stamp or " ") | {"X-Slack-Request-Timestamp": stamp})


SIGNATURES = [
    "",
    "v0=",
    "v0=ü" + "0" * 63,
    "v0=" + "0" * 64,
    "v1=" + "0" * 64,
    "0" * 64,
    "v0=" + "é" * 64,
]


@rows("signature", SIGNATURES)
async def test_an_odd_signature_is_refused(signature: str) -> None:
    """Whatever it is made of."""
    await refused(BODY, signed(BODY) | {"X-Slack-Signature": signature})


BOMB = "a bomb"
ODD: dict[str, tuple[bytes, dict[str, str]]] = {
    "nothing": (b"", {}),
    "deep": (DEEP, {"Content-Type": "application/json"}),
    "a broken archive": (b"\x1f\x8bnot gzip", signed(BODY) | {"Content-Encoding": "gzip"}),
    BOMB: (b"", signed(BODY) | {"Content-Encoding": "gzip"}),
    "not UTF-8": (b"\xff\xfe", signed(b"\xff\xfe")),
    "an unknown charset": (BODY, {"Content-Type": "application/json; charset=klingon"}),
    "too large": (b"x" * 3_000_000, signed(b"x")),
    "a deep form": (b"payload=" + DEEP, {"Content-Type": "application/x-www-form-urlencoded"}),
}


@rows("name", ODD)
async def test_an_odd_body_is_refused(name: str) -> None:
    """Before it is unpacked or read."""
    body, headers = ODD[name]
    # Packing 10 MB takes a while: not while tests are collected.
    await refused(gzip.compress(b" " * 10**7) if name == BOMB else body, headers)


@rows("body", [DEEP, b"{", json.dumps("text").encode()])
async def test_what_slack_signed_and_nobody_can_read_is_refused(body: bytes) -> None:
    """It is no error of the program."""
    await refused(body, signed(body), 400)


async def refused(body: bytes, headers: dict[str, str], status: int | None = None) -> None:
    """Send a request twice; it is refused, with one line and without a traceback."""
    async with receiving() as place:
        with capture_logs() as logged:
            answered = [await place.post(body, headers) for _ in range(2)]
    assert place.passed_on == []
    assert answered[0] == answered[1]
    assert answered[0] in ((status,) if status else (400, 401))
    [line] = logged
    assert line["event"] == "request_refused"
    assert line["status"] == answered[0]
    assert not line.keys() - {"event", "log_level", "cause", "status", "repeated"}
