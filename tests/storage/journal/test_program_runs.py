"""What the journal knows of programs' runs, in each store."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from bot.app import Library, open_library
from council.document.conversation import Source
from storage.journal.journal import Journal
from storage.journal.rows import EndReason, RunRow
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
    """By its whole key, or with those that begin alike."""
    journal = library.journal
    found = await journal.find("slack:program:t:d1:a")
    assert found is not None
    assert found.id == "one"
    assert await repeatable(journal, "slack:program:t:d1:") == ["one", "two"]
    assert await repeatable(journal, "slack:program:t:d2:") == []
    assert await repeatable(journal, "slack:program:t:d:") == []
    assert await journal.find("slack:program:t:d1:c") is None


async def repeatable(journal: Journal, prefix: str = "slack:program:t:d1:") -> list[str]:
    """Name the runs that a request may take over."""
    return [run.id for run in await journal.repeatable(prefix, 60)]


async def test_ended_runs_are_taken_over_for_a_minute(library: Library) -> None:
    """Failed ones after the others; none that was stopped, nor one that was let go."""
    moment = datetime(2026, 11, 26, tzinfo=UTC)
    journal = Journal(library.database, lambda: moment)
    await journal.finish("one", "failed", EndReason(message="down"))
    assert await repeatable(journal) == ["two", "one"]
    await journal.finish("two", "answered")
    moment += timedelta(seconds=60)
    assert await repeatable(journal) == ["two", "one"]
    moment -= timedelta(days=1)  # a clock that was set back keeps no failure for longer
    assert await repeatable(journal) == []
    moment += timedelta(days=1)
    await journal.let_go("two")
    assert await repeatable(journal) == ["one"]
    moment += timedelta(milliseconds=1)
    assert await repeatable(journal) == []
    stopped = RunRow(
        id="four", entry_key="slack:program:t:d1:c", conversation_id="c", origin=PROGRAM, brief=BRIEF
    )
    await journal.begin(stopped)
    assert await repeatable(journal) == ["four"]
    await journal.finish("four", "stopped")
    assert await repeatable(journal) == []


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
