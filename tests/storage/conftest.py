"""Stores that are empty."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from storage.documents.conversations import Conversations
from storage.stores import Stores
from tests.stores import Home


@pytest_asyncio.fixture
async def stores(home: Home) -> AsyncIterator[Stores]:
    async with home.open() as opened:
        yield opened


@pytest.fixture
def store(stores: Stores) -> Conversations:
    return stores.documents
