"""The journal in SQLite: what it costs."""

import asyncio
from pathlib import Path

import pytest

from storage.database import open_database
from storage.sqlite_journal import SqliteJournal
from tests.storage.examples import trace_sql
from tests.storage.test_journal import REPLY, RUN, call


async def test_steps_of_many_runs_share_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty members answering at once cost one wait for the disk."""
    seen = trace_sql(monkeypatch)
    async with open_database(tmp_path / "council.db") as database:
        journal = SqliteJournal(database)
        steps = await journal.steps((await journal.begin(RUN)).run)
        seen.clear()
        await asyncio.gather(*(steps.record(call(f"stage1.1:{number}"), REPLY) for number in range(50)))
        assert seen.count("COMMIT") == 1
