"""What Slack's errors mean: every documented code, and every way a response can be missing."""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its keyword arguments without types.

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import product

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import (
    Gone,
    Malformed,
    NotAllowed,
    NoThread,
    RateLimited,
    Revoked,
    Unreachable,
    VenueError,
)
from bot.slack.client import Installation, by_code, by_status, granted, sending_client
from tests.breaking import Breaks
from tests.faults.documented import SLACK
from tests.pairs import rows
from tests.slack_server import SlackServer


@rows("method", SLACK.methods)
def test_every_documented_code_is_known(method: str) -> None:
    """None of them counts as temporary merely because it is unknown."""
    for code in SLACK.errors(method):
        error = by_status(200, code, {})
        assert not isinstance(error, Unreachable) or error.is_known, code


@rows(
    ("code", "kind", "said"),
    [
        ("internal_error", Unreachable, "Slack is having problems"),
        ("team_added_to_org", Unreachable, "the workspace is being moved to an organization"),
        ("message_not_found", Gone, "the card was deleted"),
        ("token_revoked", Revoked, "the token was revoked"),
        ("not_in_channel", NotAllowed, "the bot isn't in this channel; invite it with /invite"),
        ("cannot_reply_to_message", NoThread, "threads are switched off in this channel"),
        ("missing_scope", NotAllowed, "a scope is missing"),
        ("invalid_blocks", Malformed, "Slack doesn't accept it (invalid_blocks)"),
        ("a_new_one", Unreachable, "Slack refused (a_new_one)"),
    ],
)
def test_a_code_is_put_into_words(code: str, kind: type[VenueError], said: str) -> None:
    """Short ones, to be used within a sentence."""
    error = by_code(code)
    assert type(error) is kind
    assert str(error) == said
    if isinstance(error, Unreachable):
        assert error.is_known == (code != "a_new_one")


@asynccontextmanager
async def calling() -> AsyncGenerator[tuple[SlackServer, AsyncWebClient]]:
    """Start a Slack, and the client for what goes through the outbox."""
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        client = sending_client(slack.token, slack.api_url, Installation())
        client.session = session
        yield slack, client


async def raised(client: AsyncWebClient) -> VenueError:
    """Return what a call that Slack doesn't carry out raises."""
    with pytest.raises(VenueError) as caught:
        await granted(client.auth_test())
    return caught.value


@rows(("status", "html"), [(500, True), (502, False), (503, True), (504, False)])
async def test_a_server_error_may_pass_whatever_its_body(status: int, html: bool) -> None:
    """A proxy's page as well as Slack's own JSON, whatever its code says."""
    async with calling() as (slack, client):
        slack.fail("auth.test", "account_inactive", status=status, html=html)
        error = await raised(client)
        assert type(error) is Unreachable
        assert (str(error), error.is_lost, error.is_known) == ("Slack is having problems", False, True)
        assert len(slack.calls("auth.test")) == 1


@rows("status", [200, 403, 404])
async def test_another_page_in_place_of_an_answer_may_pass(status: int) -> None:
    """It isn't Slack's, so its meaning is unknown."""
    async with calling() as (slack, client):
        slack.fail("auth.test", status=status, html=True)
        error = await raised(client)
        assert isinstance(error, Unreachable)
        assert not error.is_known
        assert error.is_lost == (status == 200)


@rows(
    ("body", "kind", "status"),
    product(
        (b"[]", b"null", b"{", b"\xff\xfe", b"", b"busy"), ("application/json", "text/plain"), (200, 502)
    ),
)
async def test_a_body_that_is_no_answer_is_a_typed_error(body: bytes, kind: str, status: int) -> None:
    """The SDK would raise any kind of error."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, aiohttp.ClientSession() as session:
        client = sending_client(
            "t", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", Installation()
        )
        client.session = session
        error = await raised(client)
        assert isinstance(error, Unreachable)
        is_readable = body != b"\xff\xfe"  # where it isn't, the SDK doesn't tell the status
        assert error.is_known == (status == 502 and is_readable)
        assert error.is_lost == (status == 200 or not is_readable)


@rows(("retry_after", "error", "waits"), [(0, None, 0), (30, None, 30), (None, "ratelimited", 10)])
async def test_a_rate_limit_says_when_to_come_back(
    retry_after: int | None, error: str | None, waits: float
) -> None:
    """The SDK doesn't sleep, so that other requests can be held back, too."""
    async with calling() as (slack, client):
        slack.fail("auth.test", error, retry_after=retry_after)
        limited = await raised(client)
        assert isinstance(limited, RateLimited)
        assert limited.after == waits
        assert len(slack.calls("auth.test")) == 1


@rows("breaks", ["reset", "hang"])
async def test_an_answer_that_never_comes_may_have_been_carried_out(breaks: Breaks) -> None:
    """Whether the connection breaks or nothing happens."""
    async with calling() as (slack, client):
        assert client.session
        client.session._timeout = aiohttp.ClientTimeout(total=0.05 if breaks == "hang" else None)  # pyright: ignore[reportPrivateUsage]
        slack.fail("auth.test", breaks=breaks)
        error = await raised(client)
        assert isinstance(error, Unreachable)
        assert (str(error), error.is_lost) == ("Slack can't be reached", True)


async def test_a_connection_that_is_refused_carried_nothing_out() -> None:
    """Nothing was sent."""
    async with aiohttp.ClientSession() as session:
        client = sending_client("t", "http://127.0.0.1:9/api", Installation())
        client.session = session
        error = await raised(client)
        assert isinstance(error, Unreachable)
        assert (str(error), error.is_lost) == ("Slack can't be reached", False)


def test_a_refusal_that_lasts_a_minute_is_final() -> None:
    """For either token."""
    now = [0.0]
    installation = Installation(lambda: now[0])
    installation.refused("bot", "invalid_auth")
    now[0] = 59.0
    installation.refused("bot", "invalid_auth")
    installation.refused("app", "token_revoked")
    assert not installation.code
    now[0] = 60.0
    installation.refused("bot", "account_inactive")
    assert installation.code == "account_inactive"


def test_a_refusal_that_passes_is_forgotten() -> None:
    """An accepted call shows that the token is valid."""
    now = [0.0]
    installation = Installation(lambda: now[0])
    installation.refused("bot", "invalid_auth")
    installation.accepted("bot")
    now[0] = 60.0
    installation.refused("bot", "invalid_auth")
    assert not installation.code
