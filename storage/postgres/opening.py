"""Everything in one PostgreSQL database, opened or only looked at; documents byte for byte."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Literal

import orjson
from typing_extensions import override

from council.document.conversation import Conversation, timestamp
from storage.atomic import Stamp
from storage.audit import AuditLog
from storage.database import Database, Statement, known_migrations, listed
from storage.documents import edits
from storage.documents.conversations import Conversations, DocumentProblem, FolderListing, Stored
from storage.documents.edits import Edit
from storage.errors import ConstraintError, ConversationNotFound, DocumentError, StorageError
from storage.postgres.connection import connect, explained, server, value
from storage.postgres.database import check_server, key_of, open_postgres
from storage.postgres.locks import PostgresLocks, fingerprints
from storage.processes.coordination import Coordination
from storage.stores import Stores

Age = Literal["new", "older", "current", "newer"]

_ADD = "INSERT INTO audit (line) VALUES (?)"
_READ = "SELECT content, mtime_ns FROM documents WHERE id = ?"
_READ_THESE = """
SELECT id, content, mtime_ns FROM json_each(?) JOIN documents ON id = value ORDER BY key
"""
_PRESENT = "SELECT id FROM documents WHERE id IN (SELECT value FROM json_each(?))"
_LISTING = "SELECT id, mtime_ns, length(content) AS size FROM documents"
_COPIES = "SELECT id, at FROM documents_set_aside"
_IS_NEW = "SELECT require(NOT EXISTS (SELECT 1 FROM documents WHERE id = ?))"
_IS_UNCHANGED = "SELECT require(EXISTS (SELECT 1 FROM documents WHERE id = ? AND mtime_ns = ?))"
_WRITE = """
INSERT INTO documents (id, content, mtime_ns) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET content = excluded.content, mtime_ns = excluded.mtime_ns
"""
_SET_ASIDE = """
INSERT INTO documents_set_aside (id, at, content) SELECT id, ?, content FROM documents WHERE id = ?
ON CONFLICT (id, at) DO UPDATE SET content = excluded.content
"""
_DELETE = "DELETE FROM documents WHERE id = ?"
_DELETE_COPIES = "DELETE FROM documents_set_aside WHERE id = ?"


class PostgresAudit(AuditLog):
    """The audit as a table of lines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def add(self, line: Mapping[str, object]) -> None:
        await self._database.write((_ADD, (orjson.dumps(line),)))


class PostgresDocuments(Conversations):
    """All conversation documents in an open database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.place = database.name

    @override
    async def document(self, conversation_id: str) -> tuple[bytes, Conversation]:
        edits.check_id(conversation_id)
        rows = await self._database.read(_READ, (conversation_id,))
        if not rows:
            raise ConversationNotFound(conversation_id, self.place)
        content = bytes(rows[0]["content"])
        return content, (await asyncio.to_thread(edits.read, conversation_id, content)).conversation

    @override
    async def listing(self) -> FolderListing:
        rows = await self._database.read(_LISTING)
        copies = await self._database.read(_COPIES)
        return FolderListing(
            documents={row["id"]: Stamp(row["mtime_ns"], row["size"]) for row in rows},
            set_aside=[_copy(row["id"], row["at"]) for row in copies],
        )

    @override
    async def present(self, conversation_ids: Sequence[str]) -> tuple[str, ...]:
        for one in conversation_ids:
            edits.check_id(one)
        ids = listed(conversation_ids)
        found = {row["id"] for row in await self._database.read(_PRESENT, (ids,))}
        return tuple(one for one in conversation_ids if one in found)

    @override
    async def read(self, conversation_ids: Sequence[str]) -> list[Stored | DocumentProblem]:
        rows = await self._database.read(_READ_THESE, (listed(conversation_ids),))

        def parse() -> Iterator[Stored | DocumentProblem]:
            for row in rows:
                content = bytes(row["content"])
                try:
                    conversation = edits.read(row["id"], content).conversation
                except DocumentError as error:
                    yield DocumentProblem(f"{row['id']}.json", error.reason)
                else:
                    yield Stored(conversation, Stamp(row["mtime_ns"], len(content)))

        return await asyncio.to_thread(lambda: [*parse()])

    @override
    async def remove(self, conversation_id: str) -> None:
        edits.check_id(conversation_id)
        await self._database.write(*_removal(conversation_id))

    @override
    async def edit(self, conversation_id: str, edit: Edit, now: datetime | None = None) -> Stored | None:
        edits.check_id(conversation_id)
        while True:
            rows = await self._database.read(_READ, (conversation_id,))
            old = bytes(rows[0]["content"]) if rows else None
            version = rows[0]["mtime_ns"] if rows else 0
            edited = await asyncio.to_thread(edit, old)
            if edited is not None and edited.content is None:
                return Stored(edited.conversation, Stamp(version, len(old or b"")))
            premise: Statement = (_IS_NEW, (conversation_id,))
            if old is not None:
                premise = _IS_UNCHANGED, (conversation_id, version)
            changes: list[Statement] = []
            aside, mtime_ns = None, max(time.time_ns(), version + 1)
            if edited is None:
                changes += _removal(conversation_id)
            else:
                if edited.drops_copies:
                    changes.append((_DELETE_COPIES, (conversation_id,)))
                if edited.sets_aside:
                    at = re.sub("[-:.]", "", timestamp(now or datetime.now(UTC)))
                    aside = _copy(conversation_id, at)
                    changes.append((_SET_ASIDE, (at, conversation_id)))
                changes.append((_WRITE, (conversation_id, edited.content, mtime_ns)))
            try:
                await self._database.write(premise, *changes)
            except ConstraintError:  # somebody else was faster
                continue
            if edited is None:
                return None
            return Stored(edited.conversation, Stamp(mtime_ns, len(edited.content or b"")), aside)


def _removal(conversation_id: str) -> list[Statement]:
    return [(_DELETE, (conversation_id,)), (_DELETE_COPIES, (conversation_id,))]


def _copy(conversation_id: str, at: str) -> str:
    return f"{conversation_id}.json.broken-{at}"


@asynccontextmanager
async def open_server(address: str) -> AsyncGenerator[Stores]:
    """Open the database at an address, making its tables if they are missing. Raises `StorageError`."""
    async with open_postgres(address) as database:
        locks = PostgresLocks(address, database, database.key)
        try:
            yield Stores(
                database,
                PostgresDocuments(database),
                PostgresAudit(database),
                locks,
                coordination=Coordination(database),
            )
        finally:
            await locks.close()


async def is_held(address: str, names: Iterable[str]) -> bool:
    """Whether a process holds one of these names; false where that can't be asked."""
    try:
        if await inspect_server(address) != "current":
            return False
        async with open_server(address) as stores:
            for name in names:
                async with stores.locks.acquire(name) as is_free:
                    if not is_free:
                        return True
    except StorageError:
        return False
    return False


async def is_superuser(address: str) -> bool:
    """Return whether the address's role may do anything on its server. Raises `DatabaseError`."""
    with explained(address):
        async with await connect(address) as connection:
            role = b"SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
            return await value(connection, role)


async def configurations(address: str) -> list[str]:
    """Return the fingerprint of each running process's `council.toml`. Raises `DatabaseError`."""
    with explained(address):
        async with await connect(address) as connection:
            return await fingerprints(connection, await key_of(connection))


async def inspect_server(address: str) -> Age:
    """Return how old the tables are. Raises `DatabaseError`, also where the server can't serve."""
    with explained(address):
        async with await connect(address) as connection:
            check_server(connection, server(address))
            if not await value(connection, b"SELECT to_regclass('migrations') IS NOT NULL"):
                return "new"
            newest = await value(connection, b"SELECT coalesce(max(number), 0) FROM migrations")
    known = max(migration.number for migration in known_migrations("storage.postgres"))
    return "current" if newest == known else "older" if newest < known else "newer"
