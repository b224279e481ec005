"""The index: derived from the documents, searched by id, checked without reading unchanged files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from council.document.conversation import Source
from storage.database import Database, Row
from storage.documents.conversations import Conversations, DocumentProblem, Stored
from storage.index.index import Index, IndexReport
from storage.index.rows import IndexRow
from storage.stores import Stores
from tests.storage.examples import CONTRACT_EXAMPLE, CONTRACT_ID, NOW, answer, legacy, new_id
from tests.stores import Home

IN_STEP = IndexReport(documents=0, missing=(), stale=(), orphaned=(), unreadable=(), set_aside=())
SOURCE = Source(platform="slack", workspace="W", channel="C", thread="T", message="M", user="U")


@pytest.fixture
def database(stores: Stores) -> Database:
    return stores.database


@pytest.fixture
def index(database: Database) -> Index:
    return Index(database)


async def ask(store: Conversations, conversation_id: str) -> Stored:
    question = "Capital of France? " * 20
    return await store.add_exchange(
        conversation_id, question, answer(), title="France", source=SOURCE, now=NOW
    )


async def rows(database: Database) -> Sequence[Row]:
    return await database.read("SELECT * FROM conversations ORDER BY id")


async def test_a_row_says_what_its_document_says(store: Conversations, index: Index) -> None:
    """Sums cover all answers; the agreement is the last one's, the question the first, shortened."""
    conversation_id = new_id()
    await ask(store, conversation_id)
    stored = await ask(store, conversation_id)
    await index.upsert(stored)
    assert await index.find_as_operator(conversation_id) == [
        IndexRow(
            id=conversation_id,
            title="France",
            created_at="2026-01-20T10:30:00.000Z",
            updated_at="2026-01-20T10:31:00.000Z",
            platform="slack",
            workspace="W",
            channel="C",
            thread="T",
            message="M",
            user="U",
            exchanges=2,
            question=("Capital of France? " * 20)[:200],
            cost=0.5,
            tokens=240,
            mtime_ns=stored.stamp.mtime_ns,
            size=stored.stamp.size,
        )
    ]


async def test_the_contracts_own_example_is_indexed(
    home: Home, store: Conversations, index: Index
) -> None:
    """A document with only the contract's fields has a row without invented values."""
    home.put(CONTRACT_ID, CONTRACT_EXAMPLE)
    await index.rebuild(store)
    [row] = await index.find_as_operator("550e8400")
    assert replace(row, mtime_ns=0) == IndexRow(
        id=CONTRACT_ID,
        title="Capital of France",
        created_at="2026-01-20T10:30:00.000Z",
        updated_at="2026-01-20T10:30:00.000Z",
        platform=None,
        workspace=None,
        channel=None,
        thread=None,
        message=None,
        user=None,
        exchanges=1,
        question="What is the capital of France?",
        cost=0.0,
        tokens=0,
        mtime_ns=0,
        size=len(CONTRACT_EXAMPLE),
    )


async def test_a_prefix_finds_every_id_that_begins_with_it(store: Conversations, index: Index) -> None:
    """There may be several hits, and wildcards are plain characters."""
    twins = [f"abcdef0{digit}-0000-4000-8000-000000000000" for digit in "19"]
    for conversation_id in (*twins, CONTRACT_ID):
        await index.upsert(await ask(store, conversation_id))

    async def found(prefix: str) -> list[str]:
        return [row.id for row in await index.find_as_operator(prefix)]

    assert await found("ABCDEF0") == twins
    assert await found("abcdef09") == [twins[1]]
    assert await found(CONTRACT_ID) == [CONTRACT_ID]
    assert await found("%") == []
    assert len(await index.find_as_operator("", limit=2)) == 2


async def test_an_older_version_does_not_replace_a_newer(store: Conversations, index: Index) -> None:
    """Two answers to one conversation may reach the index in the wrong order."""
    older = await ask(store, CONTRACT_ID)
    newer = await ask(store, CONTRACT_ID)
    await index.upsert(newer)
    await index.upsert(older)
    [row] = await index.find_as_operator(CONTRACT_ID)
    assert row.exchanges == 2


async def test_a_check_names_every_difference_and_changes_none(
    home: Home, store: Conversations, index: Index, database: Database
) -> None:
    """Missing, stale and orphaned rows, unreadable documents and copies set aside are distinguished."""
    good, stale, gone, broken, missing = sorted(new_id() for _ in range(5))
    for conversation_id in (good, stale, gone, broken):
        await index.upsert(await ask(store, conversation_id))
    assert await index.check(store) == replace(IN_STEP, documents=4)
    assert (await index.check(store)).consistent

    await ask(store, stale)
    await ask(store, missing)
    home.delete(gone)
    home.put(broken, b"{")
    home.put_copy(good, b"{")
    before = await rows(database)

    report = await index.check(store)
    assert report == IndexReport(
        documents=3,
        missing=(missing,),
        stale=(stale,),
        orphaned=tuple(sorted((gone, broken))),
        unreadable=(DocumentProblem(f"{broken}.json", "it is not JSON (see its line 1)"),),
        set_aside=(f"{good}.json.broken-20260101",),
    )
    assert not report.consistent
    assert await rows(database) == before

    assert await index.rebuild(store) == report
    after = await index.check(store)
    assert after.consistent
    assert after.documents == 3
    assert home.content(broken) == b"{"


async def test_a_check_names_a_file_without_an_id(tmp_path: Path) -> None:
    """Only a folder can hold one."""
    home = Home(tmp_path)
    async with home.open() as stores:
        (tmp_path / "conversations" / "notes.json").write_bytes(b"{}")
        report = await Index(stores.database).check(stores.documents)
    reason = "its name is not a conversation's id: a uuid in lower case with hyphens"
    assert report.unreadable == (DocumentProblem("notes.json", reason),)


async def test_a_rebuild_makes_the_same_index(
    home: Home, store: Conversations, index: Index, database: Database
) -> None:
    """A rebuild from the documents gives the same rows as the writes."""
    for _ in range(3):
        await index.upsert(await ask(store, new_id()))
    document = legacy(new_id())
    home.put(str(document["id"]), orjson.dumps(document))
    await index.rebuild(store)
    first = [{**dict(row), "number": 0} for row in await rows(database)]
    await database.write(("DELETE FROM conversations", ()))
    report = await index.rebuild(store)
    assert len(report.missing) == 4
    assert [{**dict(row), "number": 0} for row in await rows(database)] == first


async def test_a_rebuild_follows_a_restored_document(
    home: Home, store: Conversations, index: Index
) -> None:
    """Even if it is older than its row."""
    await index.upsert(await ask(store, CONTRACT_ID))
    home.put(CONTRACT_ID, CONTRACT_EXAMPLE, mtime_ns=1)
    assert (await index.rebuild(store)).stale == (CONTRACT_ID,)
    [row] = await index.find_as_operator(CONTRACT_ID)
    assert (row.title, row.mtime_ns) == ("Capital of France", 1)


async def test_an_answer_saved_during_a_rebuild_stays_indexed(
    database: Database, store: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild that read the document before that doesn't undo its row."""
    index = Index(database)

    read = store.read

    async def overtaken(conversation_ids: Sequence[str]) -> list[Stored | DocumentProblem]:
        assert conversation_ids == [CONTRACT_ID]
        found = await read([CONTRACT_ID])
        await index.upsert(await ask(store, CONTRACT_ID))
        return found

    monkeypatch.setattr(store, "read", overtaken)
    await index.upsert(await ask(store, CONTRACT_ID))
    await index.rebuild(store)
    [row] = await index.find_as_operator(CONTRACT_ID)
    assert row.exchanges == 2
