"""Backup: everything in one file, made while the bot runs, and restored byte for byte."""

import gzip
import os
import random
import sqlite3
import tarfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from council.document.conversation import Source
from storage.archive import backup, restore
from storage.audit import Audit
from storage.database import Database
from storage.documents.conversations import ConversationStore
from storage.errors import BackupError
from storage.index.index import Index
from storage.index.past_answers import PastAnswers
from storage.journal.journal import Journal
from storage.scope import Scope
from storage.sqlite.database import damage_mark, open_database
from storage.sqlite.opening import open_folder
from tests.storage.examples import NOW, answer, new_id, unpack
from tests.storage.journal.test_journal import RUN
from tests.storage.test_bad_disks import garbage_in_front, garbage_inside, room

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
    async with open_folder(path) as opened:
        database = opened.database
        folder = Folder(path, database, await ConversationStore.open(path / "conversations"))
        await Journal(database).begin(RUN)
        await folder.ask()
        await folder.ask()
        await Audit(path / "audit.jsonl").add({"forgot": "user"})
        yield folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return every document by its name."""
    return {path.name: path.read_bytes() for path in (folder / "conversations").glob("*.json")}


async def test_a_backup_is_restored_byte_for_byte(live: Folder, tmp_path: Path) -> None:
    """Documents, journal, audit and index are as they were; nothing needs to be rebuilt."""
    file = tmp_path / "backup.tar.gz"
    made = await backup(live.path, file)
    assert (made.conversations, made.size) == (2, os.path.getsize(file))  # noqa: PTH202, ASYNC240 - a test
    there = tmp_path / "there"
    assert (await restore(file, there)).conversations == 2
    assert contents(there) == contents(live.path)
    async with open_database(there / "council.db") as database:
        store = await ConversationStore.open(there / "conversations")
        assert (await Index(database).check(store)).consistent
        assert await Journal(database).get(RUN.id) is not None
        assert len((await PastAnswers(database).history(Scope.of(HERE))).rows) == 2
    assert [*there.glob(".staging-*")] == []
    assert modes(*(one for one in (file, *there.rglob("*")) if one.is_file())) == {0o600}
    assert modes(*(one for one in (there, *there.rglob("*")) if one.is_dir())) == {0o700}


async def test_a_folder_in_use_is_replaced_only_when_told(live: Folder, tmp_path: Path) -> None:
    """Everything is as in the backup, also for a running bot; later data is gone."""
    file = tmp_path / "backup.tar.gz"
    await backup(live.path, file)
    before = contents(live.path)
    later = await live.ask()
    with pytest.raises(BackupError, match="holds 3 conversations and 1 run already; say --replace"):
        await restore(file, live.path)
    assert len(contents(live.path)) == 3

    await restore(file, live.path, replace=True)
    assert contents(live.path) == before
    assert await PastAnswers(live.database).get(Scope.of(HERE), later) is None
    assert (await live.index.check(live.store)).consistent
    again = await live.ask()
    assert await PastAnswers(live.database).get(Scope.of(HERE), again) is not None


async def test_no_backup_is_written_over_another_file(live: Folder, tmp_path: Path) -> None:
    """The name must be free and its folder must exist; a failure leaves nothing behind."""
    taken = tmp_path / "taken"
    await backup(live.path, taken)
    with pytest.raises(BackupError, match="is there already; choose another name"):
        await backup(live.path, taken)
    with pytest.raises(BackupError, match="can't be used"):
        await backup(live.path, tmp_path / "none" / "backup.tar.gz")
    assert {path.name for path in tmp_path.iterdir()} == {"data", "taken"}  # noqa: ASYNC240 - a test


async def test_a_run_without_answer_counts_as_data(tmp_path: Path, live: Folder) -> None:
    """It is paid for; a database that can't be read may contain such runs, too."""
    await backup(live.path, file := tmp_path / "backup.tar.gz")
    there = tmp_path / "there"
    async with open_database(there / "council.db") as database:
        await Journal(database).begin(RUN)
    with pytest.raises(BackupError, match="holds 1 run already; say --replace"):
        await restore(file, there)
    garbage_in_front(there / "council.db")
    with pytest.raises(BackupError, match=r"holds 0 conversations and a council\.db that can't be read"):
        await restore(file, there)


async def test_a_damaged_database_is_replaced(live: Folder, tmp_path: Path) -> None:
    """If no process has it open."""
    await backup(live.path, file := tmp_path / "backup.tar.gz")
    there = tmp_path / "there"
    await restore(file, there)
    garbage_in_front(there / "council.db")
    (there / "council.db-wal").write_bytes(b"of another database")
    damage_mark(there / "council.db").touch()
    await restore(file, there, replace=True)
    async with open_folder(there) as opened:
        assert opened.recovered is None
        assert await Journal(opened.database).get(RUN.id) is not None
        garbage_in_front(there / "council.db")
        with pytest.raises(BackupError, match=r"there/council\.db is not a SQLite database"):
            await restore(file, there, replace=True)


async def test_a_backup_that_could_not_be_restored_is_refused(live: Folder, tmp_path: Path) -> None:
    """A missing, damaged or newer database is named, and no new one is created."""
    file, path = tmp_path / "backup.tar.gz", tmp_path / "there" / "council.db"
    await backup(live.path, tmp_path / "sound.tar.gz")
    await restore(tmp_path / "sound.tar.gz", path.parent)
    sound = path.read_bytes()
    path.unlink()
    with pytest.raises(BackupError, match=r"there/council\.db isn't there; run `council index rebuild`"):
        await backup(path.parent, file)
    assert not path.exists()
    for harm in (garbage_in_front, garbage_inside):
        path.write_bytes(sound)
        harm(path)
        with pytest.raises(BackupError, match=r"there/council\.db is (not a SQLite database|damaged)"):
            await backup(path.parent, file)
    path.write_bytes(sound)
    from_the_future(path)
    with pytest.raises(BackupError, match=r"there/council\.db was written by a newer program"):
        await backup(path.parent, file)
    assert not file.exists()


def from_the_future(path: Path) -> None:
    """Make a database look like a newer program's."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO migrations VALUES (99, 'future', '')")
        database.commit()


async def test_a_newer_programs_backup_changes_nothing(live: Folder, tmp_path: Path) -> None:
    """Its tables may have another meaning."""
    await backup(live.path, old := tmp_path / "old.tar.gz")
    from_the_future(unpack(old, tmp_path / "unpacked") / "council.db")
    with tarfile.open(file := tmp_path / "backup.tar.gz", "w:gz") as archive:
        for name in ("manifest.json", "council.db"):
            archive.add(tmp_path / "unpacked" / name, name)
    with pytest.raises(
        BackupError,
        match=r"the database in .*backup\.tar\.gz was written by a newer program \(schema 99",
    ):
        await restore(file, tmp_path / "there")
    assert not any((tmp_path / "there").iterdir())


async def test_a_flipped_bit_anywhere_is_noticed(live: Folder, tmp_path: Path) -> None:
    """Except where another encoding has the same meaning, as with a run of zeros."""
    await backup(live.path, file := tmp_path / "backup.tar.gz")
    content, draw = file.read_bytes(), random.Random(1)  # noqa: S311 - a test
    for place in (*(draw.randrange(100, len(content)) for _ in range(60)), len(content) - 8):
        flipped = bytearray(content)
        flipped[place] ^= 1 << draw.randrange(8)
        file.write_bytes(flipped)
        try:
            await restore(file, tmp_path / "there", replace=True)
        except BackupError as error:
            assert str(error).startswith(f"{file} is not a whole backup")  # noqa: PT017 - or it is the same
        else:
            assert gzip.decompress(flipped) == gzip.decompress(content)


async def test_a_failed_backup_names_the_path_at_fault(live: Folder, tmp_path: Path) -> None:
    """The data folder or the file, whichever it is."""
    with pytest.raises(BackupError, match=r"nowhere can't be used: No such file or directory"):
        await backup(tmp_path / "nowhere", tmp_path / "backup.tar.gz")
    with pytest.raises(BackupError, match=r"/none can't be used: No such file or directory"):
        await backup(live.path, tmp_path / "none" / "b.tar.gz")
    live.path.joinpath("audit.jsonl").unlink()
    with room(0), pytest.raises(BackupError, match=r"(council\.db|b\.tar\.gz) can't .*(full|large)"):
        await backup(live.path, tmp_path / "b.tar.gz")
    assert {path.name for path in tmp_path.iterdir()} == {"data"}  # noqa: ASYNC240 - a test


@pytest.mark.parametrize("damage", ["cut", "garbage", "no tar", "foreign", "escaping", "missing"])
async def test_an_invalid_backup_changes_nothing(live: Folder, tmp_path: Path, damage: str) -> None:
    """A truncated file, another program's, or one with its own paths is refused by name."""
    file = tmp_path / "backup.tar.gz"
    await backup(live.path, file)
    spoil(file, damage)
    there = tmp_path / "there"
    with pytest.raises(BackupError, match=r"backup\.tar\.gz"):
        await restore(file, there)
    assert [*there.rglob("*")] == []
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
            unpack(file, file.parent / "unpacked")
            with tarfile.open(file, "w:gz") as new:
                if damage == "escaping":
                    new.add(file.parent / "unpacked" / "manifest.json", "manifest.json")
                new.add(file.parent / "evil.txt", name)


def modes(*paths: Path) -> set[int]:
    """Return the files' permissions."""
    return {path.stat().st_mode & 0o777 for path in paths}


async def test_a_backup_of_an_older_program_is_restored(tmp_path: Path) -> None:
    """The file was written before this version: documents, journal and audit are read as they are."""
    kept = Path(__file__).parents[1] / "data" / "backup-1.tar.gz"
    assert (await restore(kept, tmp_path / "new")).conversations == 5
    async with open_folder(tmp_path / "new") as stores:
        report = await Index(stores.database).repair(stores.documents)
        assert [problem.name for problem in report.unreadable] == [
            "00000000-0000-4005-8000-000000000000.json"  # it was half a document then
        ]
        hits = await PastAnswers(stores.database).search(Scope.of(HERE), "paris")
        run = await Journal(stores.database).get(RUN.id)
        assert run
        steps = await Journal(stores.database).steps(run)
    assert hits.found == 3
    assert (run.brief.question, run.status) == (RUN.brief.question, "running")
    assert steps.has_begun("stage1.1")
    assert len((tmp_path / "new" / "audit.jsonl").read_bytes().splitlines()) == 1
