"""Forgetting on PostgreSQL: the tables' files hold no byte of it any more, and nobody waits for long."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from structlog.testing import capture_logs

from storage.postgres import database as databases
from storage.postgres import rewriting
from storage.postgres.database import PostgresDatabase, open_postgres
from tests.postgres_server import PostgresServer
from tests.storage.test_database import RUN as ROW
from tests.storage.test_database import keys, soon, step
from tests.storage.test_forgetting import HERE, SCOPE, Place, opened
from tests.stores import Home

WORDS = "xylophonequartz"
"""What one person wrote; other tests on this server don't."""


@pytest.fixture
async def place(postgres: str, tmp_path: object) -> AsyncIterator[Place]:
    del tmp_path
    async with opened(Home(folder=None, address=postgres)) as one:  # pyright: ignore[reportArgumentType] - it has no folder
        yield one


def files_with(server: PostgresServer, address: str, text: str) -> list[str]:
    """Name the tables' files whose bytes hold a text, once all pages are on the disk."""
    with psycopg.connect(address, autocommit=True) as operator:
        operator.execute("CHECKPOINT")
    wanted = text.encode()
    files = (path for path in (server.folder / "data" / "base").rglob("*") if path.is_file())
    return sorted(path.name for path in files if wanted in path.read_bytes())


async def asked(place: Place, postgres: str) -> None:
    """Ask with these words among other questions; have the server gather its statistics."""
    for number in range(5):
        await place.ask(f"Question {number}?")
    await place.ask(WORDS, source=HERE.model_copy(update={"user": "eve"}))
    for number in range(5, 10):
        await place.ask(f"Question {number}?")
    with psycopg.connect(postgres, autocommit=True) as operator:
        operator.execute("ANALYZE")


async def test_the_tables_files_hold_nothing_that_was_forgotten(
    place: Place, postgres: str, postgres_server: PostgresServer
) -> None:
    """Neither do the server's own statistics; everything else is kept."""
    await asked(place, postgres)
    assert len(files_with(postgres_server, postgres, WORDS)) >= 4
    await place.forgetting.forget(await place.forgetting.select.user("discord", "eve"), by="eve")
    assert files_with(postgres_server, postgres, WORDS) != []
    await place.forgetting.scrub()
    assert files_with(postgres_server, postgres, WORDS) == []
    assert await place.count("work WHERE kind = 'scrub'") == 0
    assert await place.count("conversations") == await place.count("documents") == 10
    assert (await place.past_answers.search(SCOPE, "question")).found == 10


@pytest.mark.parametrize("begins", ["SELECT pg_current_xact_id()", "SELECT 1"], ids=["writes", "reads"])
async def test_what_others_may_still_see_is_not_copied(
    place: Place, postgres: str, postgres_server: PostgresServer, begins: str
) -> None:
    """A transaction that began before is waited for, also one that can be known only by what is kept."""
    waits: list[float] = []
    await asked(place, postgres)
    with psycopg.connect(postgres) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute(begins.encode())

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 2:
                other.rollback()

        await place.forgetting.forget(await place.forgetting.select.user("discord", "eve"), by="eve")
        assert isinstance(place.database, PostgresDatabase)
        assert await rewriting.rewrite(place.database.using, large=False, sleep=sleep)
    assert waits == [rewriting.WAIT] * 2
    assert files_with(postgres_server, postgres, WORDS) == []


async def test_a_large_table_is_not_rewritten_again_and_again(
    place: Place, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody may still see of it is left to the next pass."""
    monkeypatch.setattr(rewriting, "SMALL", 0)
    await asked(place, postgres)
    assert isinstance(place.database, PostgresDatabase)
    with psycopg.connect(postgres) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT 1")
        await place.forgetting.forget(await place.forgetting.select.user("discord", "eve"), by="eve")
        with capture_logs() as logs:
            await place.forgetting.scrub(large=True)
    assert {line["event"] for line in logs} == {"deleted_rows_kept"}
    assert await place.count("work WHERE kind = 'scrub'") == 1
    await place.forgetting.scrub(large=True)
    assert await place.count("work WHERE kind = 'scrub'") == 0


async def test_large_tables_wait_for_the_next_retention_pass(
    place: Place, postgres: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are remembered until then."""
    monkeypatch.setattr(rewriting, "SMALL", 0)
    await asked(place, postgres)
    await place.forgetting.forget(await place.forgetting.select.user("discord", "eve"), by="eve")
    await place.forgetting.scrub()
    assert files_with(postgres_server, postgres, WORDS) != []
    assert await place.count("work WHERE kind = 'scrub'") == 1
    await place.forgetting.scrub(large=True)
    assert files_with(postgres_server, postgres, WORDS) == []
    assert await place.count("work WHERE kind = 'scrub'") == 0


async def test_a_busy_table_is_tried_again(postgres: str) -> None:
    """A backup that reads it ends; whoever waits behind a try waits for a second at most."""
    waits: list[float] = []
    async with open_postgres(postgres) as database:
        with psycopg.connect(postgres) as backup:
            backup.execute("SELECT count(*) FROM documents")

            async def sleep(seconds: float) -> None:
                waits.append(seconds)
                if len(waits) == 2:
                    backup.rollback()

            assert await rewriting.rewrite(database.using, large=False, sleep=sleep)
    assert waits == [rewriting.WAIT] * 2


async def test_a_table_that_stays_busy_is_left(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are rewritten, and it is tried again in the next pass."""
    monkeypatch.setattr(rewriting, "TRIES", 1)
    async with open_postgres(postgres) as database:
        with psycopg.connect(postgres) as backup:
            backup.execute("SELECT count(*) FROM documents")
            assert not await rewriting.rewrite(database.using, large=False, sleep=asyncio.sleep)
        assert await rewriting.rewrite(database.using, large=False, sleep=asyncio.sleep)


class TestLockedTable:
    """A table is being rewritten."""

    @pytest.fixture
    async def database(self, postgres: str) -> AsyncIterator[PostgresDatabase]:
        async with open_postgres(postgres) as opened_one:
            await opened_one.write(ROW)
            yield opened_one

    async def test_a_write_that_needs_it_keeps_no_other_waiting(
        self, database: PostgresDatabase, postgres: str
    ) -> None:
        """It is done afterwards, whatever shared its turn is done at once, and reads wait as well."""
        with psycopg.connect(postgres) as rewriter:
            rewriter.execute("LOCK TABLE documents IN ACCESS EXCLUSIVE MODE")
            document = ("INSERT INTO documents VALUES (?, ?, ?)", ("d", b"{}", 0))
            waiting = asyncio.create_task(database.write(document))
            reading = asyncio.create_task(database.read("SELECT id FROM documents"))
            await asyncio.gather(*(database.write(step(key), by=soon() + 3) for key in "abc"))
            assert await keys(database) == ["a", "b", "c"]
            assert not waiting.done()
            assert not reading.done()
        await waiting
        await reading
        assert [row["id"] for row in await database.read("SELECT id FROM documents")] == ["d"]

    async def test_a_late_write_is_never_done(self, database: PostgresDatabase, postgres: str) -> None:
        """Whoever waits for an acknowledgement is told in time."""
        with psycopg.connect(postgres) as rewriter:
            rewriter.execute("LOCK TABLE steps IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(TimeoutError, match="so nothing was written"):
                await database.write(step("late"), by=soon())
        await database.write(step("b"))
        assert await keys(database) == ["b"]

    async def test_what_waits_when_the_program_ends_is_done(self, postgres: str) -> None:
        """Closing waits for the table."""
        with psycopg.connect(postgres) as rewriter:
            async with open_postgres(postgres) as database:
                await database.write(ROW)
                rewriter.execute("LOCK TABLE steps IN ACCESS EXCLUSIVE MODE")
                waiting = asyncio.create_task(database.write(step("a")))
                await asyncio.sleep(0)
                database.close()
                asyncio.get_running_loop().call_later(0.01, rewriter.rollback)
        await waiting

    async def test_one_that_is_locked_for_good_is_named(
        self, database: PostgresDatabase, postgres: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It isn't a table that is being rewritten, then."""
        monkeypatch.setattr(databases, "_REWRITING", 0.0)
        with psycopg.connect(postgres) as rewriter:
            rewriter.execute("LOCK TABLE steps IN ACCESS EXCLUSIVE MODE")
            for work in (database.write(step("a")), database.read("SELECT key FROM steps")):
                with pytest.raises(databases.DatabaseError, match=r"is locked by another process"):
                    await work
