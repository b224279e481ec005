"""PostgreSQL as a store: several processes, lost connections, and errors that say what to do."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import psycopg
import pytest

from storage.errors import BudgetExceeded, ConstraintError, DatabaseError
from storage.journal.journal import Journal
from storage.journal.rows import Payer, Reservation
from storage.postgres import database as databases
from storage.postgres.database import PostgresDatabase, open_postgres, server
from tests.postgres_server import PASSWORD, PostgresServer, serve
from tests.storage.examples import NOW
from tests.storage.journal.test_journal import RUN
from tests.storage.test_database import RUN as ROW
from tests.storage.test_database import keys, soon, step
from tests.test_documents import ROOT

TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'council' AND pid <> pg_backend_pid()
"""


@pytest.fixture
async def database(postgres: str) -> AsyncIterator[PostgresDatabase]:
    async with open_postgres(postgres) as opened:
        await opened.write(ROW)
        yield opened


def disconnect(address: str) -> None:
    """End every connection of the program's, as a restart of the server does."""
    with psycopg.connect(address, autocommit=True) as operator:
        operator.execute(TERMINATE)


async def test_writes_wait_for_another_processs_transaction(postgres: str) -> None:
    """One that does not begin in time is never done."""
    async with open_postgres(postgres) as one, open_postgres(postgres) as other:
        await one.write(ROW)
        with psycopg.connect(postgres) as held:
            held.execute("SELECT pg_advisory_xact_lock(%s, 0)", (one.key,))
            waiting = asyncio.create_task(one.write(step("a")))
            with pytest.raises(TimeoutError, match="so nothing was written"):
                await other.write(step("late"), by=soon())
            assert not waiting.done()
        await waiting
        await other.write(step("b"))
        assert await keys(one) == ["a", "b"]


async def test_a_start_waits_for_the_one_that_makes_the_tables(postgres: str) -> None:
    """It may take that one longer than a write may wait."""

    async def start() -> int:
        async with open_postgres(postgres) as database:
            return database.key

    with psycopg.connect(postgres) as held:
        held.execute("SELECT pg_advisory_xact_lock(7265432461)")
        starting = [asyncio.create_task(start()) for _ in range(2)]
        await asyncio.sleep(0.3)  # more than the usual quarter of a second
        assert not any(one.done() for one in starting)
    one, other = await asyncio.gather(*starting)
    assert one == other


async def test_of_writes_that_share_a_turn_only_the_late_ones_are_never_done(postgres: str) -> None:
    """The others wait longer for it, and are done."""
    async with open_postgres(postgres) as database:
        await database.write(ROW)
        with psycopg.connect(postgres) as held:
            held.execute("SELECT pg_advisory_xact_lock(%s, 0)", (database.key,))
            waiting = [
                asyncio.create_task(database.write(step(key), by=by))
                for key, by in (("a", None), ("late", soon()), ("b", None), ("in time", soon() + 60))
            ]
            with pytest.raises(TimeoutError, match="so nothing was written"):
                await waiting[1]
            assert not any(one.done() for one in (waiting[0], *waiting[2:]))
        await asyncio.gather(waiting[0], *waiting[2:])
        assert await keys(database) == ["a", "b", "in time"]


async def test_a_late_write_that_nobody_waits_for_is_no_error(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was withdrawn before its transaction began; another of that transaction was late for its turn."""
    execute = psycopg.AsyncConnection.execute

    async def slowly(self: psycopg.AsyncConnection[Any], query: Any, *rest: Any, **named: Any) -> Any:
        if query.startswith(b"BEGIN"):
            await asyncio.sleep(0.05)
        return await execute(self, query, *rest, **named)

    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    async with open_postgres(postgres) as database:
        await database.write(ROW)
        monkeypatch.setattr(psycopg.AsyncConnection, "execute", slowly)
        with psycopg.connect(postgres) as held:
            held.execute("SELECT pg_advisory_xact_lock(%s, 0)", (database.key,))
            withdrawn, late = await asyncio.gather(
                database.write(step("withdrawn"), by=soon()),
                database.write(step("late"), by=soon() + 0.2),
                return_exceptions=True,
            )
        assert isinstance(withdrawn, TimeoutError)
        assert isinstance(late, TimeoutError)
        assert await keys(database) == []
    assert errors == []


async def test_a_lock_held_too_long_is_named(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every waiting write fails with advice, and the next one is done."""
    monkeypatch.setattr(databases, "_TURN", 0.01)
    async with open_postgres(postgres) as database:
        await database.write(ROW)
        with psycopg.connect(postgres) as held:
            held.execute("SELECT pg_advisory_xact_lock(%s, 0)", (database.key,))
            with pytest.raises(DatabaseError, match=r"is locked by another process; wait .*\(55P03\)"):
                await database.write(step("a"))
        await database.write(step("a"))


async def test_concurrent_writes_share_a_transaction(database: PostgresDatabase) -> None:
    """A hundred concurrent writers wait for one commit, not for a hundred."""
    count = "SELECT CAST(count(DISTINCT CAST(xmin AS TEXT)) AS BIGINT) AS commits FROM steps"
    await asyncio.gather(*(database.write(step(f"{number:03}")) for number in range(100)))
    [row] = await database.read(count)
    assert row["commits"] == 1
    assert len(await keys(database)) == 100


async def test_a_new_connection_replaces_a_lost_one(database: PostgresDatabase, postgres: str) -> None:
    """After a restart of the server, the first read and the first write succeed."""
    disconnect(postgres)
    assert await keys(database) == []
    disconnect(postgres)
    await database.write(step("a"))
    assert await keys(database) == ["a"]


@pytest.mark.parametrize("happened", [True, False])
async def test_a_commit_whose_answer_is_lost_happened_or_did_not(
    database: PostgresDatabase, postgres: str, monkeypatch: pytest.MonkeyPatch, happened: bool
) -> None:
    """The server is asked, so that nothing is written twice and nothing is taken for written."""
    execute = psycopg.AsyncConnection.execute

    async def cut_off(self: psycopg.AsyncConnection[Any], query: Any, *rest: Any, **named: Any) -> Any:
        if query != b"COMMIT":
            return await execute(self, query, *rest, **named)
        patch.undo()
        if happened:
            await execute(self, query)
            async with self.pipeline() as pipeline:
                await pipeline.sync()
        disconnect(postgres)
        return await execute(self, b"SELECT 1")

    patch = monkeypatch
    patch.setattr(psycopg.AsyncConnection, "execute", cut_off)
    if happened:
        await database.write(step("a"))
    else:
        with pytest.raises(DatabaseError):
            await database.write(step("a"))
    assert await keys(database) == (["a"] if happened else [])


async def test_budgets_hold_between_processes(postgres: str) -> None:
    """Of twenty questions at once in two processes, as many begin as the budget pays for."""
    payer = Payer(user="u", channel="c", workspace="w")
    limits = {("user", "day"): 5}
    reservation = Reservation(payer=payer, amount=1, unpriced_call=0, limits=cast("Any", limits))
    async with open_postgres(postgres) as one, open_postgres(postgres) as other:
        journals = [Journal(each, lambda: NOW) for each in (one, other)]
        outcomes = await asyncio.gather(
            *(
                journals[number % 2].begin(
                    replace(RUN, id=f"run-{number}", entry_key=f"{number}"), reservation=reservation
                )
                for number in range(20)
            ),
            return_exceptions=True,
        )
        refused = [one for one in outcomes if isinstance(one, BudgetExceeded)]
        assert (len(outcomes), len(refused)) == (20, 15), outcomes
        [used] = await journals[0].used(reservation)
        assert used.amount == 5


async def test_an_entry_begins_one_run_in_two_processes(postgres: str) -> None:
    """A redelivery to another process finds the run."""
    async with open_postgres(postgres) as one, open_postgres(postgres) as other:
        begun = await asyncio.gather(
            *(
                Journal(each).begin(replace(RUN, id=f"run-{number}"))
                for number, each in enumerate((one, other) * 5)
            )
        )
        assert sum(each.created for each in begun) == 1
        assert len({each.run.id for each in begun}) == 1


async def test_an_error_quotes_nothing_that_is_stored(
    database: PostgresDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    """PostgreSQL's own messages contain the row, and its address the password."""
    text = "zanzibarquux"
    with pytest.raises(ConstraintError) as caught:
        await database.write((ROW[0], ("r", text)))
    told = f"{caught.value!r} {caught.value.__cause__!r}"
    with pytest.raises(DatabaseError) as caught_reading:
        await database.read("SELECT CAST(? AS BIGINT)", (text,))
    told += f"{caught_reading.value!r} {caught_reading.value.__cause__!r}"
    assert text not in told
    assert PASSWORD not in told + database.name + capsys.readouterr().out


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (
            "postgresql://u:hunter22@127.0.0.1:1/db",
            "postgresql://127.0.0.1:1/db can't be reached: the connection is refused; check that the server runs, and DATABASE_URL",
        ),
        (
            "postgresql://u:hunter22@127.0.0.1/db?sslmod=x",
            "postgresql://127.0.0.1/db isn't an address that PostgreSQL has",
        ),
    ],
)
async def test_a_server_that_cannot_be_reached_is_named(address: str, sentence: str) -> None:
    """Without the name and the password."""
    with pytest.raises(DatabaseError) as caught:
        async with open_postgres(address):
            pass
    assert str(caught.value) == sentence
    assert "hunter22" not in repr(caught.value.__cause__)


async def test_a_database_that_is_missing_is_named(postgres_server: PostgresServer) -> None:
    """And so is one that a newer program has migrated."""
    missing = postgres_server.address().replace("/postgres", "/nowhere", 1)
    with pytest.raises(
        DatabaseError, match="/nowhere can't be reached: the database or the user doesn't exist"
    ):
        async with open_postgres(missing):
            pass
    with postgres_server.schema() as address:
        async with open_postgres(address) as database:
            await database.write(("INSERT INTO migrations VALUES (9999, 'later', '')", ()))
        with pytest.raises(DatabaseError, match="was written by a newer program"):
            async with open_postgres(address):
                pass


def test_an_address_is_named_without_its_secrets() -> None:
    """Whatever form it has."""
    assert server("postgresql://ada:s3cret@db.example.com:6432/council?sslmode=require") == (
        "postgresql://db.example.com:6432/council"
    )
    assert server("postgresql:///council?host=/run/postgresql") == "postgresql://localhost/council"
    assert "s3cret" not in server("postgresql://ada:s3cret@a:1,b:2/council")


async def test_a_vanished_machine_loses_its_sessions_soon(database: PostgresDatabase) -> None:
    """The server itself looks whether idle clients are there: their locks go with their sessions."""
    [row] = await database.read(
        "SELECT current_setting('tcp_keepalives_idle') AS idle,"
        " current_setting('tcp_keepalives_interval') AS interval,"
        " current_setting('tcp_keepalives_count') AS count"
    )
    assert int(row["idle"]) + int(row["interval"]) * int(row["count"]) <= 30


async def test_searches_are_not_compiled(database: PostgresDatabase) -> None:
    """PostgreSQL would compile what looks costly, which takes up to a second each time."""
    [row] = await database.read("SELECT current_setting('jit') AS jit")
    assert row["jit"] == "off"


def test_the_commands_for_the_write_ahead_log_leave_no_deleted_word() -> None:
    """It has them until then, in segments that are used again as well (`docs/privacy.md`)."""
    documented = (ROOT / "docs" / "privacy.md").read_text().split("```sql\n")[1].split("```")[0]
    once, reload, *each = documented.splitlines()
    with (
        serve("wal_level=replica", "max_wal_senders=2") as server,
        psycopg.connect(server.address(), autocommit=True) as operator,
    ):

        def holding() -> list[str]:
            """Name the server's files that have the word."""
            files = (path for path in (server.folder / "data").rglob("*") if path.is_file())
            return [path.name for path in files if b"zanzibarquux" in path.read_bytes()]

        operator.execute("CREATE TABLE said (words text)")
        for _ in range(3):
            operator.execute("INSERT INTO said SELECT 'zanzibarquux' FROM generate_series(1, 9)")
            operator.execute("SELECT pg_switch_wal()")
        for command in ("DELETE FROM said", "VACUUM FULL said", "CHECKPOINT"):
            operator.execute(command)
        segments = [*(server.folder / "data" / "pg_wal").glob("0*")]
        assert {*holding()} & {path.name for path in segments}
        for command in (once, reload, *each * (len(segments) + 1)):
            operator.execute(command.encode())
        assert holding() == []
