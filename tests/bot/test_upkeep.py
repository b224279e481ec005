"""Upkeep: the index comes back into step by itself, and what is too old goes."""

from datetime import timedelta
from pathlib import Path

import structlog.testing

from bot.app import open_library
from bot.settings import Settings
from bot.upkeep import look_after
from council.conversation import Source, timestamp
from storage.scope import Scope
from tests.storage.examples import NOW, answer, new_id

HERE = Source(platform="slack", workspace="W", channel="C", user="U")


async def test_the_index_is_mended_and_old_answers_are_forgotten(tmp_path: Path) -> None:
    """A document that isn't in the index is found again; one that is too old is deleted."""
    old, young = new_id(), new_id()
    async with open_library(Settings(council_data_dir=tmp_path)) as library:
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
        page = await library.archive.history(Scope.of(HERE))
        assert [row.id for row in page.rows] == [young]
        assert [*(await library.store.listing()).documents] == [young]
        with structlog.testing.capture_logs() as logs:
            await look_after(library, retention_days=None)
        assert logs == []


async def test_a_deleted_or_damaged_database_is_made_anew(tmp_path: Path) -> None:
    """The conversations are found as before, and the log says that something was wrong."""
    settings = Settings(council_data_dir=tmp_path)
    async with open_library(settings) as library:
        stored = await library.store.add_exchange(
            new_id(), "Why?", answer(), title="Why", source=HERE, now=NOW
        )
        await library.index.upsert(stored)
    for content in (b"", b"garbage" * 999):  # SQLite takes an empty file for a new database
        (tmp_path / "council.db").write_bytes(content)
        with structlog.testing.capture_logs() as logs:
            async with open_library(settings) as library:
                await look_after(library, retention_days=None)
                assert (await library.archive.search(Scope.of(HERE), "paris")).found == 1
        assert logs[0]["event"] in ("index_mended", "database_was_damaged")
