"""Recovery: a damaged database is set aside, its journal carried over, and the log says so."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

from storage.errors import DatabaseError
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from storage.sqlite.database import open_database
from storage.sqlite.opening import copies_set_aside, open_folder
from storage.sqlite.schema import known_migrations, migrate
from storage.stores import Stores
from tests.pairs import every_other
from tests.storage.examples import NOW
from tests.storage.journal.test_journal import BRIEF, REPLY, RUN, call
from tests.storage.test_bad_disks import room

RUNS = 200
PAGE = 4096  # bytes


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database with many runs, each with a step, closed cleanly."""
    path = tmp_path / "council.db"
    async with open_database(path) as database:
        journal = Journal(database, lambda: NOW)

        async def ask(name: str) -> None:
            row = RunRow(id=name, entry_key=name, conversation_id=name, origin=RUN.origin, brief=BRIEF)
            steps = await journal.steps((await journal.begin(row)).run)
            await steps.record(call("title"), REPLY)

        await asyncio.gather(*(ask(f"{number:04}") for number in range(RUNS)))
    return path


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def spoil(path: Path, page: int) -> None:
    content = content_of(path)
    put(path, content[: (page - 1) * PAGE] + b"\xff" * PAGE + content[page * PAGE :])


async def rows(opened: Stores) -> tuple[int, int]:
    [row] = await opened.database.read(
        "SELECT (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM steps) AS steps"
    )
    return row["runs"], row["steps"]


async def test_a_sound_database_is_opened_as_it_is(path: Path) -> None:
    """A missing one is created."""
    async with open_folder(path.parent) as opened:
        assert opened.recovered is None
        assert await rows(opened) == (RUNS, RUNS)
    async with open_folder(path.parent / "new") as opened:
        assert opened.recovered is None
    assert copies_set_aside(path) == []


async def test_garbage_is_set_aside_whole(path: Path) -> None:
    """Nothing of it can be read, and the log says so; the bot has a new database."""
    put(path, b"dear diary, " * 1000)
    async with open_folder(path.parent, lambda: NOW) as opened:
        recovery = opened.recovered
        assert recovery is not None
        assert recovery.set_aside.name == "council.db.broken-20260120T103000000Z"
        assert content_of(recovery.set_aside) == b"dear diary, " * 1000
        assert not recovery.complete
        assert await rows(opened) == (0, 0)
    assert copies_set_aside(path) == [recovery.set_aside]


async def test_what_is_readable_in_a_truncated_database_is_recovered(path: Path) -> None:
    """Everything before the cut is kept, except steps without their run."""
    content = content_of(path)
    put(path, content[: len(content) * 2 // 3 // PAGE * PAGE])
    async with open_folder(path.parent) as opened:
        assert opened.recovered is not None
        assert not opened.recovered.complete
        assert await opened.database.read("PRAGMA foreign_key_check") == []
        [sound] = await opened.database.read("PRAGMA quick_check")
        assert sound["quick_check"] == "ok"
        assert await rows(opened) == (
            opened.recovered.carried_over["runs"],
            opened.recovered.carried_over["steps"],
        )


def spoil_index(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        [(page,)] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'conversations_by_time'"
        )
    spoil(path, page)


def leaf(path: Path, table: str) -> int:
    """Return the page in the middle of a table."""
    with closing(sqlite3.connect(path)) as connection:
        pages = [
            page
            for (page,) in connection.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", (table,)
            )
        ]
    return pages[len(pages) // 2]


async def test_damage_in_the_index_costs_the_journal_nothing(path: Path) -> None:
    """The index is rebuilt; every run, every step and the budgets' key, which is no text, are carried over."""
    key = bytes(range(0xE0, 0x100))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO spending_key VALUES (1, ?)", (key,))
    spoil_index(path)
    async with open_folder(path.parent) as opened:
        assert opened.recovered is not None
        assert opened.recovered.complete
        assert await rows(opened) == (RUNS, RUNS)
        [kept] = await opened.database.read("SELECT key FROM spending_key")
        assert kept["key"] == key


async def test_an_older_programs_database_is_complete_without_newer_tables(path: Path) -> None:
    """Missing tables and columns aren't reported as lost."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE posts")
        connection.execute("ALTER TABLE runs DROP COLUMN epoch")
    spoil_index(path)
    async with open_folder(path.parent) as opened:
        assert opened.recovered is not None
        assert opened.recovered.complete
        assert opened.recovered.carried_over["posts"] == 0


async def test_what_an_older_program_had_listed_is_carried_over(path: Path) -> None:
    """It is copied as it was kept, and then migrated."""
    put(path, b"")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, path, known_migrations()[:24])
        connection.execute("INSERT INTO unaudited (line) VALUES ('{}')")
    spoil_index(path)
    async with open_folder(path.parent) as opened:
        [row] = await opened.database.read("SELECT kind, item FROM work")
        assert (row["kind"], row["item"]) == ("audit", "{}")


async def test_damage_amid_the_runs_keeps_both_sides_of_it(path: Path) -> None:
    """A table is read from its beginning and, where that fails, from its end."""
    spoil(path, leaf(path, "runs"))
    async with open_folder(path.parent) as opened:
        assert opened.recovered is not None
        assert not opened.recovered.complete
        runs, steps = await rows(opened)
        assert RUNS - 20 < runs < RUNS
        assert steps == runs
        ids = [row["id"] for row in await opened.database.read("SELECT id FROM runs ORDER BY id")]
        assert (ids[0], ids[-1]) == ("0000", f"{RUNS - 1:04}")


async def test_a_damaged_database_that_others_have_open_is_left(path: Path) -> None:
    """A running bot would continue to write into the copy set aside."""
    async with open_folder(path.parent):
        sound = content_of(path)
        put(path, b"\0" * 100_000)
        with pytest.raises(DatabaseError, match="damaged, and another process has it open"):
            async with open_folder(path.parent):
                pass
        assert copies_set_aside(path) == []
        put(path, sound)


class Killed(BaseException):
    """The process dies here."""


@pytest.mark.parametrize("renamed", every_other([None, 0, 1, 2, 3], str))
async def test_a_recovery_that_was_killed_is_done_by_the_next_start(
    path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int | None
) -> None:
    """Whether during the copy or after some files were moved: no run and no step is lost."""
    spoil_index(path)
    for end in ("-wal", "-shm"):
        put(path.with_name(f"{path.name}{end}"), b"")
    rename, left = Path.rename, iter(range(renamed or 0))

    def dies(*_: object) -> NoReturn:
        raise Killed

    def renames(source: Path, target: Path) -> Path:
        if next(left, None) is None:
            raise Killed
        return rename(source, target)

    with monkeypatch.context() as patch:
        if renamed is None:
            patch.setattr("storage.sqlite.opening._carry_table", dies)
        else:
            patch.setattr(Path, "rename", renames)
        with pytest.raises(Killed):
            async with open_folder(path.parent, lambda: NOW):
                pass
    async with open_folder(path.parent) as opened:
        assert opened.recovered is not None
        assert opened.recovered.complete
        assert await rows(opened) == (RUNS, RUNS)
        assert opened.recovered.set_aside in copies_set_aside(path)
    async with open_folder(path.parent) as opened:
        assert opened.recovered is None
    names = {file.name for file in path.parent.iterdir()}
    kept = {name for name in names if ".broken-" not in name}
    assert kept == {"council.db", ".council.db.open", "conversations"}


@pytest.mark.parametrize("size", [0, 10 * PAGE, 60 * PAGE])
async def test_a_recovery_without_room_is_done_by_the_next_start(path: Path, size: int) -> None:
    """The damaged database stays in place, with everything that can be read of it."""
    spoil_index(path)
    damaged = content_of(path)
    with room(size), pytest.raises(DatabaseError, match="disk"):
        async with open_folder(path.parent):
            pass
    assert content_of(path) == damaged
    assert copies_set_aside(path) == []
    async with open_folder(path.parent) as opened:
        assert await rows(opened) == (RUNS, RUNS)


async def test_damage_that_was_met_is_repaired_at_the_next_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large database isn't checked at every start; other processes may have it open."""
    monkeypatch.setattr("storage.sqlite.opening._CHECKED_WHOLE", 0)
    spoil(path, leaf(path, "steps"))
    async with open_folder(path.parent) as opened:
        assert opened.recovered is None
        with pytest.raises(DatabaseError, match="is damaged"):
            await opened.database.read("SELECT * FROM steps")
        async with open_folder(path.parent) as other:
            assert other.recovered is None
    async with open_folder(path.parent) as opened:
        assert opened.recovered is not None
        assert not opened.recovered.complete
        assert await opened.database.read("SELECT * FROM steps") != []
        assert (await rows(opened))[0] == RUNS
    async with open_folder(path.parent) as opened:
        assert opened.recovered is None


async def test_an_undecodable_text_costs_its_row(path: Path) -> None:
    """SQLite's own check doesn't find it; reading does."""
    put(path, content_of(path).replace(b'"boundary":"b0undary"', b'"boundary":"b0und\xff\xffy"', 1))
    async with open_folder(path.parent) as opened:
        with pytest.raises(DatabaseError, match="is damaged"):
            await opened.database.read("SELECT * FROM runs")
    async with open_folder(path.parent) as opened:
        assert opened.recovered is not None
        assert await rows(opened) == (RUNS - 1, RUNS - 1)
        assert len(await opened.database.read("SELECT * FROM runs")) == RUNS - 1
