"""Backup: everything in one file, from beside a running bot, and back to the byte."""

import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from council.conversation import Source
from storage.archive import Archive
from storage.audit import Audit
from storage.backup import backup, restore
from storage.conversations import ConversationStore
from storage.database import Database, open_database
from storage.errors import BackupError
from storage.index import Index
from storage.scope import Scope
from storage.sqlite_journal import SqliteJournal
from tests.storage.examples import NOW, answer, new_id
from tests.storage.test_journal import RUN

HERE = Source(platform="slack", workspace="W", channel="C", user="U")


class Folder:
    """A data folder in use."""

    def __init__(self, path: Path, database: Database, store: ConversationStore) -> None:
        self.path = path
        self.database = database
        self.store = store
        self.index = Index(database)

    async def ask(self) -> str:
        """Save and index a conversation."""
        stored = await self.store.add_exchange(
            new_id(), "Why?", answer(), title="Why", source=HERE, now=NOW
        )
        await self.index.upsert(stored)
        return stored.conversation.id


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Folder]:
    """A data folder that a bot has open, with two conversations, a run and an audit."""
    path = tmp_path / "data"
    async with open_database(path / "council.db") as database:
        folder = Folder(path, database, await ConversationStore.open(path / "conversations"))
        await SqliteJournal(database).begin(RUN)
        await folder.ask()
        await folder.ask()
        await Audit(path / "audit.jsonl").add({"forgot": "user"})
        yield folder


def contents(folder: Path) -> dict[str, bytes]:
    """Give every document by its name."""
    return {path.name: path.read_bytes() for path in (folder / "conversations").glob("*.json")}


async def test_a_backup_comes_back_to_the_byte(live: Folder, tmp_path: Path) -> None:
    """Documents, journal, audit and index are as they were, and nothing has to be derived anew."""
    file = tmp_path / "backup.tar.gz"
    made = await backup(live.path, file)
    assert (made.conversations, made.size) == (2, os.path.getsize(file))  # noqa: PTH202, ASYNC240 - a test
    there = tmp_path / "there"
    assert (await restore(file, there)).conversations == 2
    assert contents(there) == contents(live.path)
    async with open_database(there / "council.db") as database:
        store = await ConversationStore.open(there / "conversations")
        assert (await Index(database).check(store)).consistent
        assert await SqliteJournal(database).get(RUN.id) is not None
        assert len((await Archive(database).history(Scope.of(HERE))).rows) == 2
    assert [path.name for path in sorted(there.iterdir()) if path.name.startswith(".")] == []
    assert modes(file, *there.rglob("*.json*")) == {0o600}


async def test_a_folder_in_use_is_replaced_only_when_told(live: Folder, tmp_path: Path) -> None:
    """Under a running bot everything is as in the backup; what came later is gone."""
    file = tmp_path / "backup.tar.gz"
    await backup(live.path, file)
    before = contents(live.path)
    later = await live.ask()
    with pytest.raises(BackupError, match="holds 3 conversations already; say --replace"):
        await restore(file, live.path)
    assert len(contents(live.path)) == 3

    await restore(file, live.path, replace=True)
    assert contents(live.path) == before
    assert await Archive(live.database).get(Scope.of(HERE), later) is None
    assert (await live.index.check(live.store)).consistent
    again = await live.ask()
    assert await Archive(live.database).get(Scope.of(HERE), again) is not None


async def test_no_backup_is_written_over_another_file(live: Folder, tmp_path: Path) -> None:
    """The name has to be free, and its folder there; a failure leaves nothing behind."""
    taken = tmp_path / "taken"
    await backup(live.path, taken)
    with pytest.raises(BackupError, match="is there already; choose another name"):
        await backup(live.path, taken)
    with pytest.raises(BackupError, match="can't be used"):
        await backup(live.path, tmp_path / "none" / "backup.tar.gz")
    assert {path.name for path in tmp_path.iterdir()} == {"data", "taken"}  # noqa: ASYNC240 - a test


@pytest.mark.parametrize("damage", ["cut", "garbage", "no tar", "foreign", "escaping", "missing"])
async def test_what_is_no_whole_backup_changes_nothing(
    live: Folder, tmp_path: Path, damage: str
) -> None:
    """A truncated file, another program's, or one with paths of its own is refused by name."""
    file = tmp_path / "backup.tar.gz"
    await backup(live.path, file)
    spoil(file, damage)
    there = tmp_path / "there"
    with pytest.raises(BackupError, match=r"backup\.tar\.gz"):
        await restore(file, there)
    assert not any(there.iterdir())
    assert not (tmp_path / "evil").exists()


def spoil(file: Path, damage: str) -> None:
    """Damage a backup in one of many ways."""
    content = file.read_bytes()
    match damage:
        case "cut":
            file.write_bytes(content[: len(content) // 2])
        case "garbage":
            file.write_bytes(content[:200] + b"\xff" * 200 + content[400:])
        case "no tar":
            file.write_bytes(b"dear diary")
        case "missing":
            file.unlink()
        case _:
            name = "../evil" if damage == "escaping" else "notes.txt"
            (file.parent / "evil.txt").write_text("x")
            with tarfile.open(file, "r:gz") as old:
                old.extractall(file.parent / "unpacked", filter="data")
            with tarfile.open(file, "w:gz") as new:
                if damage == "escaping":
                    new.add(file.parent / "unpacked" / "manifest.json", "manifest.json")
                new.add(file.parent / "evil.txt", name)


def modes(*paths: Path) -> set[int]:
    """Give the files' permissions."""
    return {path.stat().st_mode & 0o777 for path in paths}
