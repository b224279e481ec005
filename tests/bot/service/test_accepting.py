"""A question that is recorded too late: its asker is told what really happens."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import bot.service.dispatcher
from bot.errors import Refusal
from bot.view.wording.commands import NOT_SAVED
from storage.errors import DatabaseError
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import Office, office
from tests.council.scripted import ScriptedCouncil
from tests.passing_time import let_pass
from tests.storage.examples import HeldCommits


def limit(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the time in which a question must be recorded."""
    monkeypatch.setattr(bot.service.dispatcher, "ACCEPT_SECONDS", seconds)


async def runs_on_record(folder: Path) -> list[str]:
    """Return the entry keys that the next start would find."""
    async with office(folder, ScriptedCouncil()) as place:
        return [run.entry_key for run in await place.library.journal.undelivered("slack")]


async def write_something(place: Office) -> None:
    """Make the writer commit its queue."""
    await place.library.database.write(("DELETE FROM work", ()))


async def test_a_refused_question_is_never_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process kept the database locked for too long; nothing is recorded after the lock's end."""
    limit(monkeypatch, 0.05)
    async with office(tmp_path, council := ScriptedCouncil()) as place:
        with closing(sqlite3.connect(tmp_path / "council.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Refusal) as refused:
                await place.ask("1")
        assert str(refused.value) == NOT_SAVED
        await write_something(place)
        assert await place.library.journal.undelivered("slack") == []
    assert await runs_on_record(tmp_path) == []
    assert council.calls == []


async def test_a_question_that_is_being_written_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit takes longer than the limit, and its outcome is unknown until then."""
    commits = HeldCommits(monkeypatch)
    async with office(tmp_path, ScriptedCouncil()) as place:
        with commits:
            asking = asyncio.create_task(place.ask("1"))
            await commits.reached()
            let_pass(61)
            await asyncio.sleep(0.001)  # the timers that are due by now have run
            assert not asking.done()
        run = await asking
        assert run is not None
        place.dispatcher.tasks.begin(run, venue := RecordingVenue())
        await place.dispatcher.tasks.settled()
    assert venue.cards
    assert await runs_on_record(tmp_path) == []  # it is shown to its end


async def test_a_question_whose_commit_fails_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late or not, it isn't recorded, and the asker is told so."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        write = place.library.database.write

        async def full(*statements: tuple[str, tuple[()]], by: float | None = None) -> None:
            await write(*statements, ("INSERT INTO nowhere VALUES (1)", ()), by=by)

        monkeypatch.setattr(place.library.database, "write", full)
        with pytest.raises(Refusal) as refused:
            await place.ask("1")
        assert isinstance(refused.value.__cause__, DatabaseError)
        assert str(refused.value) == NOT_SAVED
    assert await runs_on_record(tmp_path) == []


async def test_a_handler_that_is_cancelled_leaves_no_question_behind(tmp_path: Path) -> None:
    """Nobody has been told anything; a redelivery or the asker asks again."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        with closing(sqlite3.connect(tmp_path / "council.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            asking = asyncio.create_task(place.ask("1"))
            await asyncio.sleep(0.02)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        await write_something(place)
    assert await runs_on_record(tmp_path) == []


@pytest.mark.parametrize("error", [DatabaseError("the disk is failing"), None])
async def test_a_question_over_a_limit_is_refused_even_if_the_journal_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: DatabaseError | None
) -> None:
    """Whether it was delivered before can't be known then."""

    async def knows(_: str) -> bool:
        if error:
            raise error
        await asyncio.Event().wait()
        return False

    async with office(tmp_path, ScriptedCouncil(), waiting_per_user=1) as place:
        assert await place.ask("1")
        monkeypatch.setattr(place.library.journal, "knows", knows)
        limit(monkeypatch, 0.05)
        with pytest.raises(Refusal) as refused:
            await place.ask("2")
        assert str(refused.value) == NOT_SAVED
