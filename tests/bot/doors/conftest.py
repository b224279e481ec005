"""A store that is empty."""

from collections.abc import AsyncIterator

import pytest_asyncio

from bot.app import Library, open_library
from tests.stores import Home


@pytest_asyncio.fixture
async def library(home: Home) -> AsyncIterator[Library]:
    async with open_library(home.folder, home.address) as opened:
        yield opened
