"""The database: group commit, isolated failures, draining, and errors that say what to do."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from storage.database import Database, Statement
from storage.errors import ConstraintError, DatabaseError, WriterError
from storage.sqlite.database import open_database
from tests.passing_time import let_pass
from tests.storage.examples import HeldCommits, trace_sql

INSERT = "INSERT INTO steps (run_id, key, outcome, recorded_at) VALUES (?, ?, '', '')"
RUN: Statement = (
    """
    INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at)
    VALUES (?, ?, '', '{}', '{}', 'running', '')
    """,
    ("r", "e"),
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "council.db") as opened:
        await opened.write(RUN)
        yield opened


def step(key: str, run: str = "r") -> Statement:
    """Return an insert of a step, which needs its run and an unused key."""
    return INSERT, (run, key)


async def keys(database: Database) -> list[str]:
    return [row["key"] for row in await database.read("SELECT key FROM steps ORDER BY key")]


async def test_concurrent_writes_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred concurrent writers wait for one transaction, not for a hundred."""
    seen = trace_sql(monkeypatch)
    async with open_database(tmp_path / "council.db") as database:
        await database.write(RUN)
        seen.clear()
        await asyncio.gather(*(database.write(step(f"{number:03}")) for number in range(100)))
        assert seen.count("COMMIT") == 1
        assert len(await keys(database)) == 100


async def test_only_the_invalid_write_fails(database: Database) -> None:
    """In a shared transaction, one write that breaks a rule doesn't affect the others."""
    outcomes = await asyncio.gather(
        database.write(step("a")),
        database.write(step("b", run="nobody's")),
        database.write(step("c")),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), ConstraintError, type(None)]
    assert str(outcomes[1]) == f"{database.path}: FOREIGN KEY constraint failed"
    assert await keys(database) == ["a", "c"]


async def test_a_write_is_atomic(database: Database) -> None:
    """If its second statement fails, nothing of the first is left."""
    with pytest.raises(DatabaseError):
        await database.write(step("a"), step("a"))
    assert await keys(database) == []


async def test_a_value_sqlite_cannot_take_fails_its_own_write(database: Database) -> None:
    """Other errors than SQLite's also reach the caller, and the writer continues."""
    with pytest.raises(UnicodeEncodeError):
        await database.write(step("\ud800"))
    await database.write(step("a"))
    assert await keys(database) == ["a"]


async def test_a_cancelled_waiter_does_not_withdraw_its_write(database: Database) -> None:
    """The write stays queued."""
    waiting = asyncio.create_task(database.write(step("a")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await database.write(step("b"))
    assert await keys(database) == ["a", "b"]


async def test_a_failed_write_without_a_waiter_is_reported(database: Database) -> None:
    """The event loop's exception handler is called."""
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(context["exception"])
    )
    waiting = asyncio.create_task(database.write(step("a", run="nobody's")))
    await asyncio.sleep(0)
    waiting.cancel()
    await database.write(step("b"))
    assert [type(error) for error in reported] == [ConstraintError]


def locked(path: Path) -> sqlite3.Connection:
    """Hold the database's write lock, as another process's transaction does; closing frees it."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def soon() -> float:
    """Return a time that has almost come."""
    return asyncio.get_running_loop().time() + 0.01


async def test_a_write_that_does_not_begin_in_time_is_never_done(tmp_path: Path) -> None:
    """It waited for another process's transaction; neither the next commit nor a restart performs it."""
    path = tmp_path / "council.db"
    async with open_database(path) as database:
        await database.write(RUN)
        with closing(locked(path)), pytest.raises(TimeoutError, match="so nothing was written"):
            await database.write(step("late"), by=soon())
        await database.write(step("a"))
        assert await keys(database) == ["a"]
    async with open_database(path) as again:
        assert await keys(again) == ["a"]


async def test_a_write_that_does_not_begin_in_time_is_never_done_behind_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was queued behind a transaction that took too long; the others are performed."""
    commits = HeldCommits(monkeypatch)
    async with open_database(tmp_path / "council.db") as database:
        await database.write(RUN)
        with commits:
            first = asyncio.create_task(database.write(step("first")))
            await commits.reached()
            beside = asyncio.create_task(database.write(step("beside")))
            with pytest.raises(TimeoutError):
                await database.write(step("late"), by=soon())
        await asyncio.gather(first, beside)
        assert await keys(database) == ["beside", "first"]


async def test_a_write_whose_time_is_over_before_it_begins_to_wait_is_not_done(
    database: Database,
) -> None:
    """Earlier writes used up its time."""
    with pytest.raises(TimeoutError):
        await database.write(step("late"), by=asyncio.get_running_loop().time() - 1)
    await database.write(step("a"))
    assert await keys(database) == ["a"]


async def test_the_outcome_of_a_write_that_has_begun_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the commit, nobody knows whether it would survive a crash."""
    commits = HeldCommits(monkeypatch)
    async with open_database(tmp_path / "council.db") as database:
        await database.write(RUN)
        with commits:
            writing = asyncio.create_task(database.write(step("a"), by=soon() + 60))
            await commits.reached()
            let_pass(61)
            await asyncio.sleep(0.001)  # what is due by now has run
            assert not writing.done()
        await writing
        assert await keys(database) == ["a"]


async def test_a_write_that_has_begun_beside_an_invalid_one_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second transaction may begin after its time, since the first began in time."""
    commits = HeldCommits(monkeypatch)
    async with open_database(tmp_path / "council.db") as database:
        await database.write(RUN)
        with commits:
            by = soon() + 60
            both = asyncio.gather(
                database.write(step("a"), by=by),
                database.write(step("b", run="nobody's"), by=by),
                return_exceptions=True,
            )
            await commits.reached()
            let_pass(61)
            await asyncio.sleep(0.001)  # what is due by now has run
        assert [type(outcome) for outcome in await both] == [type(None), ConstraintError]
        assert await keys(database) == ["a"]


async def test_a_cancelled_waiter_takes_back_a_write_with_a_time_limit(tmp_path: Path) -> None:
    """Nobody would hear of it. A write that has begun can't be withdrawn."""
    path = tmp_path / "council.db"
    async with open_database(path) as database:
        await database.write(RUN)
        with closing(locked(path)):
            waiting = asyncio.create_task(database.write(step("late"), by=soon() + 60))
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await database.write(step("a"))
        assert await keys(database) == ["a"]


async def test_a_failed_writer_fails_every_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Waiting, queued and later writes all fail at once with a message."""
    path = tmp_path / "council.db"
    async with open_database(path) as database:
        await database.write(RUN)
        begun = asyncio.Event()
        going_on = asyncio.Event()

        async def broken(*_: object) -> None:
            begun.set()
            await going_on.wait()
            raise RuntimeError("unforeseen")

        monkeypatch.setattr(database, "_commit", broken)
        waiting = [asyncio.create_task(database.write(step("a")))]
        await begun.wait()
        assert not database.failed.done()
        waiting.append(asyncio.create_task(database.write(step("b"))))
        waiting.append(asyncio.create_task(database.write(step("c"), by=soon() + 60)))
        await asyncio.sleep(0)
        going_on.set()
        sentence = (
            f"{path} can't be written any more, because the part of this program that writes it has "
            f"failed (the log says how); what was written before is kept, so start the program again"
        )
        for task in waiting:
            with pytest.raises(WriterError) as failed:
                await task
            assert str(failed.value) == sentence
        for late in (database.write(step("d")), database.exclusively("VACUUM")):
            with pytest.raises(WriterError):
                await late
        assert isinstance(await database.failed, WriterError)
    assert "unforeseen" in capsys.readouterr().out


async def test_closing_commits_what_is_queued(tmp_path: Path) -> None:
    """Queued writes are durable when the database is closed; later ones are refused."""
    path = tmp_path / "council.db"
    async with open_database(path) as database:
        await database.write(RUN)
        waiting = [asyncio.create_task(database.write(step(f"{number}"))) for number in range(9)]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    with pytest.raises(DatabaseError, match=r"council\.db is closed"):
        await database.write(step("late"))
    with pytest.raises(DatabaseError, match=r"council\.db is closed"):
        await database.read("SELECT 1")
    async with open_database(path) as again:
        assert len(await keys(again)) == 9


async def test_files_are_private(tmp_path: Path) -> None:
    """The folder is 0700, the database and the files beside it are 0600."""
    path = tmp_path / "data" / "council.db"
    async with open_database(path) as database:
        await database.write(RUN)
        assert path.parent.stat().st_mode & 0o777 == 0o700
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {"council.db": 0o600, "council.db-wal": 0o600, "council.db-shm": 0o600}


async def test_commits_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write-ahead log is synced at every commit, and references are enforced."""
    seen = trace_sql(monkeypatch)
    async with open_database(tmp_path / "council.db"):
        pass
    pragmas = [sql.strip() for sql in seen if "PRAGMA" in sql]
    assert pragmas[:3] == [
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL;",
        "PRAGMA foreign_keys = ON;",
    ]


async def test_readers_cannot_write(database: Database) -> None:
    """A read connection can't change anything."""
    with pytest.raises(DatabaseError, match="can't be written"):
        await database.read("DELETE FROM runs")


async def test_another_processs_lock_is_reported(tmp_path: Path) -> None:
    """While another process keeps the database locked, every waiting write fails with advice."""
    path = tmp_path / "council.db"
    async with open_database(path, busy_timeout=0.001) as database:
        await database.write(RUN)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        outcomes = await asyncio.gather(
            *(database.write(step(key)) for key in "ab"), return_exceptions=True
        )
        other.close()
        sentence = (
            f"{path} is locked by another process; wait for it to end, or stop it, and try again"
            " (database is locked)"
        )
        assert [str(outcome) for outcome in outcomes] == [sentence, sentence]
        await database.write(step("a"))


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in place of the folder is an error that names the path."""
    (tmp_path / "data").write_bytes(b"")
    path = tmp_path / "data" / "council.db"
    with pytest.raises(
        DatabaseError, match=f"{re.escape(str(path))} can't be used: there is a file where"
    ):
        async with open_database(path):
            pass
