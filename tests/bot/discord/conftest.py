"""A fake Discord, and a team on it with and without its bot."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.bot.discord.office import Office, office
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import DiscordServer


@pytest.fixture
def council() -> ScriptedCouncil:
    """A council of four members and a chairman who answer at once."""
    return ScriptedCouncil()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[DiscordServer]:
    """A running fake."""
    async with DiscordServer() as running:
        running.world.patience = 60  # a busy machine fails no test
        yield running


@pytest_asyncio.fixture
async def quiet(
    server: DiscordServer, tmp_path: Path, council: ScriptedCouncil
) -> AsyncIterator[Office]:
    """A team whose bot isn't running yet."""
    async with office(server, tmp_path, council) as place:
        yield place


@pytest_asyncio.fixture
async def team(quiet: Office) -> AsyncIterator[Office]:
    async with quiet.bot():
        yield quiet
