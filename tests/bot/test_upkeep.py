"""Upkeep: the index is repaired automatically, and old answers are deleted."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from datetime import timedelta
from pathlib import Path

import pytest
import structlog.testing

from bot.app import open_library
from bot.upkeep import look_after, maintain
from council.document.conversation import Source, timestamp
from storage.errors import DatabaseError
from storage.scope import Scope
from storage.sqlite.schema import known_migrations
from tests.storage.examples import NOW, answer, new_id

HERE = Source(platform="slack", workspace="W", channel="C", user="U")


async def test_the_index_is_repaired_and_old_answers_are_forgotten(tmp_path: Path) -> None:
    """A document that isn't in the index is found again; one that is too old is deleted."""
    old, young = new_id(), new_id()
    async with open_library(tmp_path) as library:
        for conversation_id, days in ((old, 40), (young, 1)):
            said = answer().model_copy(update={"finished_at": timestamp(NOW - timedelta(days=days))})
            await library.store.add_exchange(
                conversation_id, "Why?", said, title="Why", source=HERE, now=NOW
            )
        with structlog.testing.capture_logs() as logs:
            await look_after(library, retention_days=30, now=lambda: NOW)
        assert [(line["event"], line.get("missing")) for line in logs] == [
            ("index_mended", 2),
            ("old_conversations_forgotten", None),
        ]
        page = await library.past_answers.history(Scope.of(HERE))
        assert [row.id for row in page.rows] == [young]
        assert [*(await library.store.listing()).documents] == [young]
        with structlog.testing.capture_logs() as logs:
            await look_after(library, retention_days=None)
        assert logs == []


async def test_upkeep_continues_whatever_happens(tmp_path: Path) -> None:
    """Errors are logged, and the next round comes."""
    async with open_library(tmp_path) as library:
        with structlog.testing.capture_logs() as logs:
            shutil.rmtree(tmp_path / "conversations")
            keeping = asyncio.create_task(maintain(library, None, every=timedelta(milliseconds=1)))
            async with asyncio.timeout(10):
                while len(logs) < 2:
                    await asyncio.sleep(0.001)
            keeping.cancel()
    assert {line["event"] for line in logs} == {"upkeep_failed"}


async def test_upkeep_continues_when_nobody_knows_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock's disk may be full, and its database away."""
    async with open_library(tmp_path) as library:
        await library.store.add_exchange(new_id(), "Why?", answer(), title="Why", source=HERE, now=NOW)
        acquire = library.locks.acquire
        failing = iter([OSError("disk full"), DatabaseError("away")])

        def held(name: str) -> AbstractAsyncContextManager[bool]:
            if error := next(failing, None):
                raise error
            return acquire(name)

        monkeypatch.setattr(library.locks, "acquire", held)
        with structlog.testing.capture_logs() as logs:
            keeping = asyncio.create_task(maintain(library, None, every=timedelta(milliseconds=1)))
            async with asyncio.timeout(10):
                while len(logs) < 3:
                    await asyncio.sleep(0.001)
            keeping.cancel()
    assert [line["event"] for line in logs[:3]] == ["upkeep_failed", "upkeep_failed", "index_mended"]


def go_back(path: Path) -> None:
    """Restore an older program's tables, without search and figures."""
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at TEXT)"
        )
        for old in known_migrations()[:3]:
            database.executescript(old.script)
            database.execute("INSERT INTO migrations VALUES (?, ?, ?)", (old.number, old.name, "2026"))
        database.commit()


def write_half(path: Path) -> None:
    """Leave a row without its text, and a text without its row."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM search")
        database.execute("INSERT INTO search (rowid, answer) VALUES (99, 'Paris')")
        database.commit()


HARM: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),  # which SQLite takes for a new database
    "garbage": lambda path: path.write_bytes(b"garbage" * 999),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "old": go_back,
    "half": write_half,
}


@pytest.mark.parametrize("harm", HARM)
async def test_the_index_survives(tmp_path: Path, harm: str) -> None:
    """Whatever happens to it, the next start finds everything again, and the log says what was wrong."""
    async with open_library(tmp_path) as library:
        for number in range(20):
            said = answer("Paris. " * 200)
            stored = await library.store.add_exchange(
                new_id(), f"Why {number}?", said, title="Why", source=HERE, now=NOW
            )
            await library.index.upsert(stored)
    HARM[harm](tmp_path / "council.db")
    with structlog.testing.capture_logs() as logs:
        async with open_library(tmp_path) as library:
            await look_after(library, retention_days=None)
            assert (await library.past_answers.search(Scope.of(HERE), "paris")).found == 20
            assert (await library.past_answers.statistics(Scope.of(HERE))).answered == 20
            assert (await library.index.check(library.store)).consistent
    damaged = harm in ("garbage", "truncated")
    assert [line["event"] for line in logs] == ["database_was_damaged" if damaged else "index_mended"]
