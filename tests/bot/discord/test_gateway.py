"""The connection to Discord: what ends it, what it outlives, and what a start says of a malformed response."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import discord
import pytest
from aiohttp import web

from bot.discord.bot import RESUMES, tolerate_unreadable_frames
from bot.errors import ConfigurationError
from tests.bot.discord.office import Office, office
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import DiscordServer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
NOT_DISCORD = "DISCORD_API_BASE_URL: the server there doesn't respond as Discord does"
REFUSED = (
    "Discord refuses the bot's token; it may have been reset. Copy it again from the application's page, "
    "under Bot, into DISCORD_TOKEN, and start again."
)
INTENT_REFUSED = (
    "Discord refuses an intent that the bot asks for (4014). Allow it on the application's page, under "
    "Bot, and start again."
)
JSON = {"Content-Type": "application/json"}


async def broken(server: DiscordServer, frame: bytes, *, compressed: bool = True) -> None:
    """Send a frame that isn't what discord.py expects, on every connection."""
    for connection in server.gateway.connections:
        if compressed:
            connection.send(frame)
        else:
            await connection.socket.send_bytes(frame)


# ── what it outlives ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("frame", "compressed"),
    [
        (b"{not json", True),
        (b'{"op": 0, "t": "MESSAGE_CREATE", "s": null, "d": {}}', True),
        (b"not zlib\x00\x00\xff\xff", False),
    ],
    ids=["no JSON", "no message", "no zlib"],
)
async def test_an_unreadable_frame_is_followed_by_a_resumed_session(
    server: DiscordServer, team: Office, frame: bytes, *, compressed: bool
) -> None:
    """At once; what happened meanwhile is heard, and questions are answered as before."""
    await broken(server, frame, compressed=compressed)
    server.mention(team.general, team.ada, "Shard?")
    await server.until(lambda: server.gateway.resumed == 1)
    await server.until(lambda: len(server.pings()) == 1)
    await team.asked("And now?")
    assert (server.gateway.identified, server.gateway.resumed) == (1, 1)
    assert len(server.pings()) == 2


async def test_a_session_whose_next_frame_stays_unreadable_is_begun_again(
    server: DiscordServer, quiet: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More and more slowly, so that no day's sessions are used up."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def at_once(*_: object, **__: object) -> None:
        """Don't wait for five seconds before a new session, as discord.py does by itself."""

    monkeypatch.setattr(discord.Client, "before_identify_hook", at_once)

    async with quiet.bot():
        tolerate_unreadable_frames(sleep)
        server.drop()  # the next socket is of the class that takes this sleep
        await server.until(lambda: server.gateway.resumed == 1)
        for _ in range(RESUMES + 1):
            resumed, identified = server.gateway.resumed, server.gateway.identified
            await broken(server, b"{not json")
            await server.until(
                lambda: (server.gateway.resumed, server.gateway.identified) != (resumed, identified)  # noqa: B023 - awaited at once
            )
        assert server.gateway.identified == 2
        assert waits == [0, 1, 2, 4]
        await quiet.asked()


# ── what ends it ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("code", "said"), [(4004, REFUSED), (4014, INTENT_REFUSED)])
async def test_a_connection_lost_for_good_says_why(
    server: DiscordServer, quiet: Office, code: int, said: str
) -> None:
    """Once, and what to do; any other code is followed by a reconnect."""
    async with quiet.bot() as bot:
        lost = asyncio.create_task(bot.until_lost())
        server.drop(4000)
        await server.until(lambda: server.gateway.resumed == 1)
        assert not lost.done()
        server.drop(code)
        assert await asyncio.wait_for(lost, 20) == said


# ── the start ────────────────────────────────────────────────────────────────────────────────


def instead(path: str, body: str, headers: dict[str, str]) -> Callable[[web.Request, Handler], object]:
    """Return a middleware that answers one path with this, at status 200."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.endswith(path):
            return web.Response(body=body.encode(), headers=headers)
        return await handler(request)

    return answer


@pytest.mark.parametrize("path", ["/users/@me", "/gateway/bot", "/applications/@me", "/commands"])
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ("{}", JSON),
        ("[]", JSON),
        ("null", JSON),
        ("{", JSON),
        ("<html>welcome</html>", {"Content-Type": "text/html"}),
        ('{"url": "https://example.org", "shards": 1, "session_start_limit": {}}', JSON),
    ],
    ids=["empty", "a list", "null", "half", "HTML", "another address"],
)
async def test_a_malformed_response_at_the_start_is_a_problem_in_words(
    tmp_path: Path, path: str, body: str, headers: dict[str, str]
) -> None:
    """One line, or none where it doesn't matter; never an error of discord.py's."""
    middleware = instead(path, body, headers)
    async with (
        DiscordServer(middlewares=[middleware]) as server,  # pyright: ignore[reportArgumentType] - aiohttp marks it
        office(server, tmp_path, ScriptedCouncil()) as place,
    ):
        said: list[str] = []
        try:
            async with place.bot():
                pass
        except ConfigurationError as error:
            said = [str(problem).partition(". ")[0] for problem in error.problems]
        passes = path == "/commands" and body in {"[]", "{}"}
        assert said == ([] if passes else [NOT_DISCORD])


async def test_a_start_says_nothing_about_voice(
    quiet: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The bot neither hears nor speaks; discord.py warns once a process."""
    for name in ("warn_nacl", "warn_dave"):
        monkeypatch.setattr(discord.VoiceClient, name, True)
    with caplog.at_level(logging.WARNING):
        async with quiet.bot():
            pass
    assert [record.message for record in caplog.records if record.name.startswith("discord")] == []


async def test_it_says_whether_it_is_connected(server: DiscordServer, quiet: Office) -> None:
    """For the health check: from the start on, but for as long as a connection is lost."""
    async with quiet.bot() as bot:
        assert await bot.is_connected()
        server.drop(4000)
        while await bot.is_connected():
            await asyncio.sleep(0)
        while not await bot.is_connected():
            await asyncio.sleep(0.001)
    assert not await bot.is_connected()
