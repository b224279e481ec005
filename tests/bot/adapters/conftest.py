"""What every scenario begins with."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from tests.bot.adapters.discord_team import DiscordTeam
from tests.bot.adapters.slack_team import SlackTeam
from tests.bot.adapters.teams import AnyTeam
from tests.council.scripted import ScriptedCouncil

OPENED = {
    "Discord": DiscordTeam.open_in,
    "Slack": SlackTeam.open_in,
    "Slack by HTTP": partial(SlackTeam.open_in, by_http=True),
    "Discord, reading": partial(DiscordTeam.open_in, reads_threads=True),
    "Slack, reading": partial(SlackTeam.open_in, reads_threads=True),
}


@pytest_asyncio.fixture(params=["Discord", "Slack"])
async def team(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnyTeam]:
    """A team of each platform."""
    async with OPENED[request.param](tmp_path, ScriptedCouncil()) as opened:
        yield opened
