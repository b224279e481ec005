"""`council run` from outside: one process for Discord and Slack, real clients, fake platforms on 127.0.0.1."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from council.document.conversation import Conversation
from tests.discord_server import Channel as DiscordChannel
from tests.discord_server import DiscordServer
from tests.discord_server import User as DiscordUser
from tests.launcher import Process, start
from tests.model_server import ModelServer
from tests.ports import free_port
from tests.slack_server import Channel as SlackChannel
from tests.slack_server import SlackServer

QUICK = """
from bot.cli import main
from tests.crashes.inside import hurry
hurry()
main()
"""
"""The program without its waits between posts: those are the venues' tests."""

QUESTION = "Should we shard now or buy a bigger machine?"
PARTS = ("Ranking", "Objections", "Corrected response")
SECONDS = 40.0  # for a whole run on a busy machine; a run that works takes about one


@dataclass(frozen=True, slots=True)
class Team:
    """Both platforms with a person in a channel, and the program between them and the models.

    `status` is the port of its health checks and metrics.
    """

    discord: DiscordServer
    slack: SlackServer
    models: ModelServer
    program: Process
    data: Path
    status: int

    def documents(self) -> list[Conversation]:
        folder = self.data / "conversations"
        return [Conversation.model_validate_json(file.read_bytes()) for file in folder.glob("*.json")]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(
    folder: Path, discord: DiscordServer, slack: SlackServer, models: ModelServer, **more: str
) -> AsyncGenerator[Team]:
    """Start `council run` between these servers, with `more` set; it ends by SIGTERM."""
    status = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "OPENROUTER_BASE_URL": models.base_url,
        "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
        "COUNCIL_MEMBERS": "openai/gpt-5,anthropic/claude,google/gemini,x-ai/grok",
        "COUNCIL_DATA_DIR": str(folder / "data"),
        "DISCORD_TOKEN": discord.world.token,
        "DISCORD_API_BASE_URL": discord.url,
        "SLACK_BOT_TOKEN": slack.token,
        "SLACK_APP_TOKEN": slack.app_token,
        "SLACK_API_URL": slack.api_url,
        "COUNCIL_STATUS_PORT": str(status),
        **more,
    } | {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    process = await start("run", cwd=folder, env=environment, stdout=subprocess.DEVNULL, code=QUICK)
    try:
        await until(lambda: slack.courier.sockets > 0)  # Slack comes last
        yield Team(discord, slack, models, process, folder / "data", status)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert b"Traceback" not in err, err.decode()


@asynccontextmanager
async def servers() -> AsyncGenerator[tuple[DiscordServer, SlackServer, ModelServer]]:
    """Put up both platforms and the provider; a busy machine fails no test."""
    async with DiscordServer() as discord, SlackServer() as slack, ModelServer() as models:
        discord.world.patience = slack.patience.ack_seconds = SECONDS
        yield discord, slack, models


@pytest.fixture
async def team(tmp_path: Path) -> AsyncGenerator[Team]:
    async with (
        servers() as (discord, slack, models),
        running(tmp_path, discord, slack, models) as everything,
    ):
        yield everything


def general_of(discord: DiscordServer) -> tuple[DiscordChannel, DiscordUser]:
    """Return a channel of a server that the bot is in, and a person in it."""
    guild = discord.guild("Team")
    return discord.channel(guild, "general"), discord.member(guild, "ada")


async def test_a_question_on_each_platform_from_card_to_mention(team: Team) -> None:
    """Command in, card, an edit a stage, thread in order, answer, exactly one mention on each."""
    general, ada = general_of(team.discord)
    asked = team.discord.slash(general, ada, "council", question=QUESTION)
    bob = team.slack.add_user("bob")
    room = team.slack.add_channel("room", bob)
    delivery = await team.slack.slash(room, bob, "/council", QUESTION)
    assert delivery.acked

    await until(lambda: len(team.discord.pings()) == 1)
    await asked.acknowledged()
    card = asked.message
    assert card is not None
    await until(lambda: "Ask again" in str(card.components))
    assert [(ping.kind, ping.id) for ping in team.discord.pings()] == [("user", ada.id)]
    assert card.thread is not None
    thread_id = card.thread

    def posted() -> str:
        return "\n".join(message.text for message in team.discord.messages(thread_id))

    await until(lambda: all(part in posted() for part in PARTS))  # after the mention
    assert sorted(PARTS, key=posted().index) == [*PARTS]

    await until(
        lambda: (
            any(message.pinged for message in team.slack.messages(room)[0:1]) or bool(pings(team, room))
        )
    )
    [slack_card] = team.slack.messages(room)
    assert pings(team, room) == [{bob.id}]

    def thread() -> str:
        posts = team.slack.thread(room, slack_card.ts)
        return "\n".join(f"{message.text}{message.blocks}" for message in posts)

    await until(lambda: all(part in thread() for part in PARTS))  # after the mention
    assert len(team.documents()) == 2
    assert len(team.models.history) == 2 * 13


def pings(team: Team, room: SlackChannel) -> list[set[str]]:
    messages = team.slack.messages(room)
    replies = [each for card in messages for each in team.slack.thread(room, card.ts)]
    return [set(each.pinged) for each in [*messages, *replies] if each.pinged]


async def test_sigterm_lets_runs_end(tmp_path: Path) -> None:
    """Nothing new is taken meanwhile; the process ends with 0."""
    async with servers() as (discord, slack, models):
        async with running(tmp_path, discord, slack, models) as team:
            bob = slack.add_user("bob")
            room = slack.add_channel("room", bob)
            models.gate = asyncio.Event()
            await slack.slash(room, bob, "/council", QUESTION)
            await until(lambda: len(models.history) == 4)
            team.program.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.05)
            models.gate.set()
            await until(lambda: bool(pings(team, room)))
            await team.program.wait()
        assert len(team.documents()) == 1
