"""The installation that every test begins with."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from discord.http import Route

from bot.discord.checks import PERMISSIONS
from tests.bot.doctor.scene import BOT_TOKEN, GOOD_KEY, KEY, MEMBERS, PRICES, Scene, refusals
from tests.discord_server import DiscordServer
from tests.library import open_library
from tests.model_server import Json, ModelServer
from tests.ports import free_port
from tests.slack_server import SlackServer


@pytest_asyncio.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """An installation on both platforms in which everything is well; its data folder holds an answer."""
    monkeypatch.setattr(Route, "BASE", Route.BASE)
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("COUNCIL_", "OPENROUTER_", "DISCORD_", "SLACK_", "DATABASE_", "OTEL_")):
            monkeypatch.delenv(name)
    listed: list[Json] = [{"id": name, "pricing": PRICES} for name in (*MEMBERS, "x-ai/grok-4")]
    refused: dict[str, int] = {}
    async with (
        DiscordServer(token=BOT_TOKEN) as discord,
        SlackServer() as slack,
        ModelServer(models=listed, key={**GOOD_KEY}, middlewares=[refusals(refused)]) as models,
    ):
        discord.world.application["bot_public"] = False
        guild = discord.guild("Acme", bot_permissions=PERMISSIONS)
        general = discord.channel(guild, "general")
        slack.add_channel("general")
        async with open_library(tmp_path / "data") as library:
            await library.index.repair(library.store)
        env = {
            "OPENROUTER_API_KEY": KEY,
            "OPENROUTER_BASE_URL": models.base_url,
            "OPENROUTER_DIALECT": "openrouter",
            "COUNCIL_MEMBERS": ",".join(MEMBERS),
            "COUNCIL_STATUS_PORT": str(free_port()),
            "DISCORD_TOKEN": BOT_TOKEN,
            "DISCORD_API_BASE_URL": discord.url,
            "SLACK_BOT_TOKEN": slack.token,
            "SLACK_APP_TOKEN": slack.app_token,
            "SLACK_API_URL": slack.api_url,
        }
        there = Scene(tmp_path, discord, slack, models, monkeypatch, guild, general, env, refused)
        there.write(".env", "# nothing yet\n")
        yield there
        for taken in there.taken:
            taken.close()
