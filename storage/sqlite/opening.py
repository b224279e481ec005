"""A data folder: the database, the documents and the audit in files."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from storage.audit import Audit
from storage.documents.conversations import ConversationStore
from storage.processes.locks import FileLocks
from storage.sqlite.salvage import open_sound_database
from storage.stores import Stores

DATABASE, DOCUMENTS, AUDIT = "council.db", "conversations", "audit.jsonl"


@asynccontextmanager
async def open_folder(folder: Path) -> AsyncGenerator[Stores]:
    """Open a data folder, creating it if it is missing. Raises `StorageError`."""
    async with open_sound_database(folder / DATABASE) as opened:
        yield Stores(
            database=opened.database,
            documents=await ConversationStore.open(folder / DOCUMENTS),
            audit=Audit(folder / AUDIT),
            locks=FileLocks(folder / ".held"),
            recovered=opened.recovery,
        )
