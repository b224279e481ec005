"""What the journal knows of programs' runs, in each store."""

from collections.abc import AsyncIterator

import pytest

from bot.app import Library, open_library
from council.document.conversation import Source
from storage.journal.rows import RunRow
from tests.storage.journal.test_journal import BRIEF
from tests.stores import Home

PROGRAM = Source(platform="slack", workspace="T1", channel="C1", program="ci")
PERSON = Source(platform="slack", workspace="T1", channel="C1", user="U1")


@pytest.fixture
async def library(home: Home) -> AsyncIterator[Library]:
    """Two questions of a program and one of a person, in one channel."""
    async with open_library(home.folder, home.address) as opened:
        for name, key, origin in (
            ("one", "slack:program:t:d1:a", PROGRAM),
            ("two", "slack:program:t:d1:b", PROGRAM),
            ("three", "slack:1", PERSON),
        ):
            run = RunRow(id=name, entry_key=key, conversation_id=name, origin=origin, brief=BRIEF)
            await opened.journal.begin(run)
        yield opened


async def test_a_request_finds_its_run(library: Library) -> None:
    """By its whole key, or the newest of those that begin alike."""
    journal = library.journal
    found = await journal.find("slack:program:t:d1:a")
    assert found is not None
    assert found.id == "one"
    newest = await journal.newest("slack:program:t:d1:")
    assert newest is not None
    assert newest.id == "two"
    assert await journal.newest("slack:program:t:d2:") is None
    assert await journal.newest("slack:program:t:d:") is None
    assert await journal.find("slack:program:t:d1:c") is None


async def test_programs_runs_are_continued_by_doors_and_peoples_by_platforms(library: Library) -> None:
    """Until they are over and known to be."""
    journal = library.journal
    assert [run.id for run in await journal.undelivered("slack")] == ["three"]
    assert [run.id for run in await journal.unfinished_of_programs()] == ["one", "two"]
    await journal.finish("one", "answered")
    await journal.deliver("one", "shown")
    assert [run.id for run in await journal.unfinished_of_programs()] == ["two"]


async def test_stops_and_deletions_are_seen(library: Library) -> None:
    """A forgotten run has no mark."""
    await library.journal.press_stop("two")
    assert await library.journal.marks(["one", "two", "gone"]) == {"one": 0, "two": 1}
