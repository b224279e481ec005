"""The journal in SQLite: what it costs, and rows that can't be read."""

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import structlog.testing
from pydantic import BaseModel, ValidationError

from council.brief import Brief
from council.calls import Reply
from council.document.conversation import UserMessage
from storage.database import Database, Parameters, Statement
from storage.errors import DamageError
from storage.journal.journal import Journal
from storage.journal.rows import EndReason
from storage.sqlite.database import open_database
from storage.sqlite.opening import open_folder
from tests.storage.examples import trace_sql
from tests.storage.journal.test_journal import REPLY, RUN, call

OTHER = replace(RUN, id="run-2", entry_key="2", conversation_id="conversation-2")


async def test_steps_of_many_runs_share_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty members answering at once cost one wait for the disk."""
    seen = trace_sql(monkeypatch)
    async with open_database(tmp_path / "council.db") as database:
        journal = Journal(database)
        steps = await journal.steps((await journal.begin(RUN)).run)
        seen.clear()
        await asyncio.gather(*(steps.record(call(f"stage1.1:{number}"), REPLY) for number in range(50)))
        assert seen.count("COMMIT") == 1


async def cut(database: Database, table: str, column: str) -> None:
    """Cut a run's value in a column in half."""
    run = "id" if table == "runs" else "run_id"
    change = f"SET {column} = substr({column}, 1, 40) WHERE {run} = '{RUN.id}'"
    await database.write((f"UPDATE {table} {change}", ()))


async def test_a_run_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    """Only its id is logged, and the next start carries the others over."""
    path = tmp_path / "council.db"
    async with open_folder(path.parent) as opened:
        journal = Journal(opened.database)
        for run in (RUN, OTHER):
            await journal.begin(run)
        await cut(opened.database, "runs", "brief")
        with structlog.testing.capture_logs() as logs:
            assert [run.id for run in await journal.undelivered("discord")] == [OTHER.id]
            assert await journal.get(RUN.id) is None
            assert await journal.reopen(RUN.id) is None
            with pytest.raises(DamageError):
                await journal.begin(RUN)
        assert {line["event"] for line in logs} == {"journal_row_unreadable"}
        assert {line["run"] for line in logs} == {RUN.id}
        assert "北京" not in repr(logs)
        with pytest.raises(DamageError):
            await journal.askers([RUN.conversation_id])
    async with open_folder(path.parent) as opened:
        assert opened.recovered is not None
        assert opened.recovered.carried_over["runs"] == 1
        assert not opened.recovered.complete
        assert await Journal(opened.database).askers([RUN.conversation_id]) == {}
    async with open_folder(path.parent) as opened:
        assert opened.recovered is None


@pytest.mark.parametrize(
    "change",
    [
        "created_at = 'yesterday'",
        "created_at = '2026-01-20T10:30:00'",
        "retried_at = ''",
        "stops = 1000000000000",
        "brief = json_set(brief, '$.started_at', 'soon')",
        "brief = json_set(brief, '$.seed', 'x')",
        "origin = json_set(origin, '$.platform', 1)",
        "error = '{}'",
        """telling = '{"begun": -1}'""",
    ],
)
async def test_a_row_that_was_not_written_here_is_left_out(tmp_path: Path, change: str) -> None:
    """Restored from a stranger's backup, it would otherwise end or hang the start."""
    async with open_database(tmp_path / "council.db") as database:
        journal = Journal(database)
        for run in (RUN, OTHER):
            await journal.begin(run)
        await database.write((f"UPDATE runs SET {change} WHERE id = ?", (RUN.id,)))  # noqa: S608 - a test
        assert await journal.get(RUN.id) is None
        assert {run.id for run in await journal.undelivered("discord")} == {OTHER.id}


async def test_a_row_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """It has a field more, lists its history, and its outcomes have fields that no reply has now."""
    async with open_database(tmp_path / "council.db") as database:
        journal = Journal(database)
        run = (await journal.begin(RUN)).run
        await (await journal.steps(run)).record(call("stage1.1:a/one"), REPLY)
        await database.write(
            ("UPDATE runs SET brief = json_set(brief, '$.wants_title', json('false'))", ()),
            ("UPDATE runs SET brief = json_set(brief, '$.history', brief -> '$.history.turns')", ()),
            ("UPDATE steps SET outcome = json_set(outcome, '$.reply.unstructured', 'no JSON')", ()),
        )
        assert await journal.get(RUN.id) == run
        steps = await journal.steps(run)
    assert steps.recall(call("stage1.1:a/one")) is not None


async def test_nothing_is_read_after_a_run_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a read failed then, the asker would be told that nothing was asked, though the run continues."""
    async with open_database(tmp_path / "council.db") as database:
        reads: list[str] = []
        writes, really_read = database.write, database.read

        async def write(*statements: Statement, by: float | None = None) -> None:
            await writes(*statements, by=by)
            reads.clear()

        async def read(sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
            reads.append(sql)
            return await really_read(sql, parameters)

        monkeypatch.setattr(database, "write", write)
        monkeypatch.setattr(database, "read", read)
        begun = await Journal(database).begin(RUN)
        assert begun.created
        assert reads == []
        assert await Journal(database).get(RUN.id) == begun.run


async def test_a_place_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    """Every query about places fails until the next start leaves it out."""
    path = tmp_path / "council.db"
    async with open_folder(path.parent) as opened:
        journal = Journal(opened.database)
        for run in (RUN, OTHER):
            await journal.begin(run)
        await opened.database.write(
            *((f"DROP INDEX runs_{name}", ()) for name in ("by_place", "by_thread", "by_message")),
            ("DROP INDEX runs_undelivered", ()),
        )
        await cut(opened.database, "runs", "origin")
        with pytest.raises(DamageError):
            await journal.undelivered("discord")
    async with open_folder(path.parent) as opened:
        found = await Journal(opened.database).undelivered("discord")
        assert [run.id for run in found] == [OTHER.id]


async def test_a_step_that_cannot_be_read_is_asked_again(tmp_path: Path) -> None:
    """The other steps are used."""
    async with open_database(tmp_path / "council.db") as database:
        journal = Journal(database)
        run = (await journal.begin(RUN)).run
        steps = await journal.steps(run)
        await steps.record(call("title"), REPLY)
        await cut(database, "steps", "outcome")
        await steps.record(call("stage1.1:a/one"), REPLY)
        with structlog.testing.capture_logs() as logs:
            steps = await journal.steps(run)
        assert steps.recall(call("title")) is None
        assert steps.recall(call("stage1.1:a/one")) == REPLY
        assert logs == [{"event": "journal_row_unreadable", "log_level": "error", "run": RUN.id}]


@pytest.mark.parametrize("kind", [Brief, EndReason, Reply, UserMessage])
def test_what_people_and_models_say_is_in_no_error(kind: type[BaseModel]) -> None:
    """Tracebacks are logged."""
    for text in ('{"question": "zanzibar", "content": 1', '{"question": ["zanzibar"]}'):
        with pytest.raises(ValidationError) as caught:
            kind.model_validate_json(text)
        assert "zanzibar" not in str(caught.value)
