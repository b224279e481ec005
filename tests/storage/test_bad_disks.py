"""Full disks and clocks that were set back: nothing is lost, and the error says what to do."""

import os
import re
import resource
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.database import Database
from storage.documents.conversations import ConversationStore
from storage.errors import DatabaseError, FolderError
from storage.index.index import Index
from storage.sqlite.database import open_database
from tests.storage.examples import NOW, answer, new_id

RUN = "INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at)"
PAGE = 4096


@contextmanager
def room(size: int) -> Generator[None]:
    """Limit the size of this process's files, in place of a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "council.db") as opened:
        yield opened


async def begin(database: Database, name: str, brief: str = "{}") -> None:
    await database.write((f"{RUN} VALUES (?, ?, '', '{{}}', ?, 'running', '')", (name, name, brief)))


async def names(database: Database) -> list[str]:
    return [row["id"] for row in await database.read("SELECT id FROM runs ORDER BY id")]


async def ask(store: ConversationStore, conversation_id: str) -> None:
    await store.add_exchange(
        conversation_id, "Which city?", answer(), title="Capitals", source=None, now=NOW
    )


async def test_a_database_without_room_works_again_once_there_is_some(database: Database) -> None:
    """The write fails with advice, reading works, and no restart is needed."""
    await begin(database, "before")
    with room(0):
        with pytest.raises(DatabaseError, match=r"council\.db can't .*; the disk is .*full"):
            await begin(database, "during")
        assert await names(database) == ["before"]
    await begin(database, "after")
    assert await names(database) == ["after", "before"]


async def test_a_database_that_may_not_grow_says_that_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In SQLite's own words; smaller writes still succeed."""
    async with open_database(tmp_path / "council.db"):
        pass
    pages = (tmp_path / "council.db").stat().st_size // PAGE
    monkeypatch.setattr("storage.sqlite.database._PRAGMAS", f"PRAGMA max_page_count = {pages};")
    async with open_database(tmp_path / "council.db") as database:
        with pytest.raises(
            DatabaseError, match=r"can't grow; the disk is full; free some space and try again"
        ):
            await begin(database, "large", "x" * 10 * PAGE)
        await begin(database, "small")
        assert await names(database) == ["small"]


async def test_a_folder_without_room_keeps_its_documents(tmp_path: Path) -> None:
    """The old version is intact, nothing else is left, and the next write works."""
    store = await ConversationStore.open(tmp_path / "conversations")
    conversation_id = new_id()
    await ask(store, conversation_id)
    with room(0), pytest.raises(FolderError, match=r"this process may not write a file that large"):
        await ask(store, conversation_id)
    assert len((await store.load(conversation_id)).messages) == 2
    assert [*store.folder.glob(".*.tmp")] == []
    await ask(store, conversation_id)
    assert len((await store.load(conversation_id)).messages) == 4


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def garbage_in_front(path: Path) -> None:
    path.write_bytes(b"\x99" * 100 + path.read_bytes()[100:])


def garbage_inside(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:PAGE] + b"\x99" * (len(content) - PAGE))


def move_away(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.rename(file.with_name(f"damaged-{file.name}"))


@pytest.mark.parametrize("harm", [truncated, garbage_in_front, garbage_inside])
async def test_a_damaged_database_is_named_with_the_way_back(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    """It is left as it is; once moved away, it is replaced and the index rebuilt from the documents."""
    path = tmp_path / "council.db"
    store = await ConversationStore.open(tmp_path / "conversations")
    await ask(store, conversation_id := new_id())
    async with open_database(path) as database:
        for number in range(50):
            await begin(database, str(number), "x" * PAGE)
    harm(path)
    harmed = path.read_bytes()
    with pytest.raises(DatabaseError) as caught:
        async with open_database(path) as database:
            await database.read("SELECT * FROM runs")
    sentence = str(caught.value)
    assert re.match(
        rf"{re.escape(str(path))} is (damaged|not a SQLite database); move it away", sentence
    )
    assert "`council index rebuild`" in sentence
    assert path.read_bytes() == harmed
    move_away(path)
    async with open_database(path) as database:
        index = Index(database)
        await index.rebuild(store)
        assert [row.id for row in await index.find_as_operator(conversation_id)] == [conversation_id]


async def test_damage_inside_a_text_is_damage_and_is_not_quoted(tmp_path: Path) -> None:
    """SQLite returns the bytes unchecked, and its driver's error would show them."""
    path = tmp_path / "council.db"
    async with open_database(path) as database:
        await begin(database, "r", "a private question")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"a private question", b"a private qu\xff\xffstio"))
    async with open_database(path) as database:
        with pytest.raises(DatabaseError, match="is damaged; move it away") as caught:
            await database.read("SELECT * FROM runs")
    assert "private" not in str(caught.value)
    assert caught.value.__suppress_context__


async def test_a_clock_set_back_makes_no_version_older(database: Database, tmp_path: Path) -> None:
    """The index compares the files' times of change, which increase whatever the clock says."""
    store, index = await ConversationStore.open(tmp_path / "conversations"), Index(database)
    conversation_id = new_id()
    await ask(store, conversation_id)
    path = store.folder / f"{conversation_id}.json"
    tomorrow = path.stat().st_mtime_ns + 86_400 * 10**9
    os.utime(path, ns=(tomorrow, tomorrow))
    await index.rebuild(store)
    stored = await store.add_exchange(
        conversation_id, "And now?", answer(), title="", source=None, now=NOW
    )
    assert stored.stamp.mtime_ns > tomorrow
    await index.upsert(stored)
    assert [row.exchanges for row in await index.find_as_operator(conversation_id)] == [2]
    assert (await index.check(store)).consistent
