"""Recovery: a damaged database is set aside, its journal carried over, and somebody told."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.database import open_database
from storage.errors import DatabaseError
from storage.journal import NewRun
from storage.recovery import Opened, copies_set_aside, open_sound_database
from storage.sqlite_journal import SqliteJournal
from tests.storage.examples import NOW
from tests.storage.test_journal import BRIEF, REPLY, RUN, call

RUNS = 200
PAGE = 4096  # bytes


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database with many runs, each with a step, closed cleanly."""
    path = tmp_path / "council.db"
    async with open_database(path) as database:
        journal = SqliteJournal(database, lambda: NOW)
        for number in range(RUNS):
            name = f"{number:04}"
            begun = await journal.begin(
                NewRun(id=name, entry_key=name, conversation_id=name, origin=RUN.origin, brief=BRIEF)
            )
            steps = await journal.steps(begun.run)
            await steps.record(call("title"), REPLY)
    return path


def content_of(path: Path) -> bytes:
    """Read a file."""
    return path.read_bytes()


def put(path: Path, content: bytes) -> None:
    """Write a file."""
    path.write_bytes(content)


def spoil(path: Path, page: int) -> None:
    """Make garbage of one of the file's pages."""
    content = content_of(path)
    put(path, content[: (page - 1) * PAGE] + b"\xff" * PAGE + content[page * PAGE :])


async def rows(opened: Opened) -> tuple[int, int]:
    """Count the runs and the steps."""
    [row] = await opened.database.read(
        "SELECT (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM steps) AS steps"
    )
    return row["runs"], row["steps"]


async def test_a_sound_database_is_opened_as_it_is(path: Path) -> None:
    """So is one that isn't there yet."""
    async with open_sound_database(path) as opened:
        assert opened.recovery is None
        assert await rows(opened) == (RUNS, RUNS)
    async with open_sound_database(path.with_name("new.db")) as opened:
        assert opened.recovery is None
    assert copies_set_aside(path) == []


async def test_garbage_is_set_aside_whole(path: Path) -> None:
    """Nothing can be read of it, which is said; the bot has a database again."""
    put(path, b"dear diary, " * 1000)
    async with open_sound_database(path, lambda: NOW) as opened:
        recovery = opened.recovery
        assert recovery is not None
        assert recovery.set_aside.name == "council.db.broken-20260120T103000000Z"
        assert content_of(recovery.set_aside) == b"dear diary, " * 1000
        assert not recovery.complete
        assert await rows(opened) == (0, 0)
    assert copies_set_aside(path) == [recovery.set_aside]


async def test_a_truncated_database_gives_what_can_be_read(path: Path) -> None:
    """What lies before the cut is kept, and no step without its run."""
    content = content_of(path)
    put(path, content[: len(content) * 2 // 3 // PAGE * PAGE])
    async with open_sound_database(path) as opened:
        assert opened.recovery is not None
        assert not opened.recovery.complete
        assert await opened.database.read("PRAGMA foreign_key_check") == []
        assert (await opened.database.read("PRAGMA quick_check"))[0][0] == "ok"
        assert await rows(opened) == (
            opened.recovery.rows["runs"],
            opened.recovery.rows["steps"],
        )


async def test_damage_in_the_index_costs_the_journal_nothing(path: Path) -> None:
    """The index is derived anew; every run and step is carried over."""
    with closing(sqlite3.connect(path)) as connection:
        [(page,)] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'conversations_by_title'"
        )
    spoil(path, page)
    async with open_sound_database(path) as opened:
        assert opened.recovery is not None
        assert opened.recovery.complete
        assert await rows(opened) == (RUNS, RUNS)


async def test_damage_amid_the_runs_keeps_both_sides_of_it(path: Path) -> None:
    """A table is read from its beginning, and where that stops, from its end."""
    with closing(sqlite3.connect(path)) as connection:
        pages = [
            page
            for (page,) in connection.execute(
                "SELECT pageno FROM dbstat WHERE name = 'runs' AND pagetype = 'leaf' ORDER BY path"
            )
        ]
    page = pages[len(pages) // 2]
    spoil(path, page)
    async with open_sound_database(path) as opened:
        assert opened.recovery is not None
        assert not opened.recovery.complete
        runs, steps = await rows(opened)
        assert RUNS - 20 < runs < RUNS
        assert steps == runs
        ids = [row["id"] for row in await opened.database.read("SELECT id FROM runs ORDER BY id")]
        assert (ids[0], ids[-1]) == ("0000", f"{RUNS - 1:04}")


async def test_a_damaged_database_that_others_have_open_is_left(path: Path) -> None:
    """A live bot would go on writing into what was set aside."""
    async with open_sound_database(path):
        sound = content_of(path)
        put(path, b"\0" * 100_000)
        with pytest.raises(DatabaseError, match="damaged, and another process has it open"):
            async with open_sound_database(path):
                pass
        assert copies_set_aside(path) == []
        put(path, sound)
