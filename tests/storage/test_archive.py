"""Backup: everything in one file, made while the bot runs, and restored byte for byte.

Of a malicious file, one line says what is wrong, and nothing is touched.
"""

import asyncio
import gzip
import io
import os
import random
import re
import shutil
import sqlite3
import tarfile
import tracemalloc
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
    for place in (*(draw.randrange(100, len(content)) for _ in range(25)), len(content) - 8):
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
    live.path.joinpath("audit.jsonl").unlink()
    with room(0), pytest.raises(BackupError, match=r"(council\.db|b\.tar\.gz) can't .*(full|large)"):
        await backup(live.path, tmp_path / "b.tar.gz")
    assert {path.name for path in tmp_path.iterdir()} == {"data"}  # noqa: ASYNC240 - a test


@pytest.mark.parametrize("damage", ["cut", "no tar", "missing"])
async def test_an_invalid_backup_changes_nothing(live: Folder, tmp_path: Path, damage: str) -> None:
    """A truncated file, another program's, or none is refused by name."""
    file = tmp_path / "backup.tar.gz"
    await backup(live.path, file)
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:3000] if damage == "cut" else b"dear diary")
    there = tmp_path / "there"
    with pytest.raises(BackupError, match=r"backup\.tar\.gz"):
        await restore(file, there)
    assert [*there.rglob("*")] == []


def modes(*paths: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in paths}


async def test_a_backup_of_an_older_program_is_restored(tmp_path: Path) -> None:
    """The file was written before this version: documents, journal and audit are read as they are."""
    kept = Path(__file__).parent / "data" / "backup-1.tar.gz"
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


ID = "550e8400-e29b-41d4-a716-446655440000"
NAME = f"conversations/{ID}.json"
MANIFEST = b'{"council_backup":1}'


@dataclass(frozen=True)
class Place:
    """A folder with a backup file, and a data folder that is in use."""

    file: Path
    data: Path
    database: bytes

    def contents(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.data)): path.read_bytes()
            for path in self.data.rglob("*")
            if path.is_file()
        }


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    """A data folder with a conversation, and the database of its backup."""
    data = tmp_path / "data"
    async with open_folder(data):
        store = await ConversationStore.open(data / "conversations")
        await store.add_exchange(new_id(), "Why?", answer(), title="Why", source=None, now=NOW)
    await backup(data, tmp_path / "sound.tar.gz")
    with tarfile.open(tmp_path / "sound.tar.gz") as archive:
        database = archive.extractfile("council.db")
        assert database
        return Place(tmp_path / "backup.tar.gz", data, database.read())


class Member(NamedTuple):
    """A member of an archive."""

    name: str
    content: bytes = b"{}"
    records: Mapping[str, str] = {}
    fields: Mapping[str, object] = {}


def archive(*members: Member, form: int = tarfile.PAX_FORMAT) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
        for member in members:
            info = tarfile.TarInfo(member.name)
            info.size = len(member.content)
            info.pax_headers = dict(member.records)
            for name, value in member.fields.items():
                setattr(info, name, value)
            tar.addfile(info, io.BytesIO(member.content))
    return stream.getvalue()


async def refused(place: Place, content: bytes) -> str:
    """Try to restore these bytes; return the one line that says why that is not done."""
    place.file.write_bytes(content)
    before = place.contents()
    with pytest.raises(BackupError) as error:
        await restore(place.file, place.data, replace=True)
    assert place.contents() == before
    said = str(error.value)
    assert said.isprintable()
    return said.replace(str(place.file), "FILE")


def beside(place: Place, *members: Member, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Add a member to those of a backup."""
    sound = Member("manifest.json", MANIFEST), Member("council.db", place.database)
    return gzip.compress(archive(*sound, *members, form=form), 1)


NOT_REGULAR = "which isn't a regular file, as all of a backup's are"
LINK = {"linkname": "/etc/passwd", "size": 0}


async def test_only_the_names_of_a_backup_are_restored(place: Place) -> None:
    """The allow-list has no paths; control characters and odd encodings are shown as escapes."""
    for name in (
        "/etc/cron.d/evil",
        "../evil",
        f"conversations/../{ID}.json",
        f"/conversations/{ID}.json",
        f"./conversations/{ID}.json",
        f"conversations/{ID}",
        f"conversations/{ID}.json.broken-1",
        f"conversations/{ID.upper()}.json",
        "conversations/evil\n\x1b[31m.json",
        "conversations/\udcff\udcfe.json",
        "conversations/\u202eevil.json",
        "council.db-wal",
        "",
    ):
        said = await refused(place, beside(place, Member(name), form=tarfile.GNU_FORMAT))
        assert said == f"FILE holds {name!r}, which no backup holds"


async def test_what_no_backup_holds_is_named(place: Place) -> None:
    """What could reach outside the folder or never end, comes twice, or has an impossible time or size."""
    sound, database = (
        archive(Member("manifest.json", MANIFEST))[:1024],
        Member("council.db", place.database),
    )
    records = archive(Member(NAME, records={"comment": "x"}))[:1024]
    (large := tarfile.TarInfo(NAME)).size = 10**12
    kinds = (
        *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE),
        *(tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE),
    )
    odd = [Member(NAME, b"", fields=LINK | {"type": kind}) for kind in kinds]
    times = ("9" * 30, "-1", "1e9", "", "\u0663", str(2**63), "0x10")
    late = [Member(NAME, records={"COUNCIL.mtime_ns": time}) for time in times]
    gnu, once = tarfile.GNU_FORMAT, Member(NAME)
    for content, said in (
        *((beside(place, one), f"'{NAME}', {NOT_REGULAR}") for one in odd),
        *((beside(place, one), f"'{NAME}', whose time of change can't be") for one in late),
        (beside(place, Member("x" * 5_000), form=gnu), f"'././@LongLink', {NOT_REGULAR}"),
        (beside(place, Member("x" * 3_000)), f"'{'x' * 100}', which no backup holds"),
        (beside(place, once, once), f"'{NAME}', twice"),
        (beside(place, database), "'council.db', twice"),
        (gzip.compress(sound + records * 5_000), f"'././@PaxHeader', {NOT_REGULAR}"),
        (gzip.compress(sound + large.tobuf() + bytes(1024)), f"'{NAME}', of 1,000,000 MB, which no conversation has"),
        (gzip.compress(archive(Member("manifest.json", MANIFEST), once)), "no council.db"),
    ):  # fmt: skip
        assert await refused(place, content) == f"FILE holds {said}"
    with tarfile.open(
        fileobj=(stream := io.BytesIO()), mode="w", pax_headers={"COUNCIL.mtime_ns": "1"}
    ) as tar:
        tar.addfile(tarfile.TarInfo("manifest.json"))
    assert NOT_REGULAR in await refused(place, gzip.compress(stream.getvalue()))  # it would apply to all


async def test_a_huge_header_is_not_read(place: Place) -> None:
    """Python's reader would load all of it into memory."""
    member = Member(NAME, records={"comment": "x" * 20_000_000})
    tracemalloc.start()
    said = await refused(place, await asyncio.to_thread(beside, place, member))
    tracemalloc.stop()
    assert re.fullmatch(r"FILE holds a header of 20000\d{3} bytes, which no backup does", said)


async def test_a_small_file_does_not_become_a_large_one(place: Place) -> None:
    """It is refused before a byte is written, using little memory."""
    bomb = await asyncio.to_thread(beside, place, Member("audit.jsonl", bytes(70_000_000)))
    assert len(bomb) < 320_000
    tracemalloc.start()
    said = await refused(place, bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert re.fullmatch(r"FILE has \d\.\d MB and unpacks to more than 64 MB, which no backup does", said)
    assert peak < 30_000_000


async def test_the_disk_has_to_have_room(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk would stop everything else on it."""
    nearly_full = shutil.disk_usage(place.data)._replace(free=100_000)

    def usage(_: Path) -> object:
        return nearly_full

    monkeypatch.setattr(shutil, "disk_usage", usage)
    content = beside(place, Member(NAME, bytes(20_000_000)))
    said = await refused(place, content)
    assert re.fullmatch(
        r"FILE needs 20 MB in \S+, where 0 MB are free; free some space and try again", said
    )


async def test_only_a_regular_file_is_opened(place: Place) -> None:
    """A named pipe would be waited for."""
    os.mkfifo(place.file)
    for source in (place.file, Path("/dev/zero"), place.data):
        with pytest.raises(BackupError, match=f"^{source} is not a regular file$"):
            await restore(source, place.data, replace=True)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS number FROM n"
CHANGES: Sequence[tuple[str, str]] = [
    (
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM steps; END",
        "holds a trigger called 't', which this program never makes",
    ),
    (f"DROP TABLE posts; CREATE VIEW posts AS {ENDLESS}", "holds a view called 'posts', which this"),
    (
        f"DROP VIEW counted; CREATE VIEW counted AS {ENDLESS}",
        "holds a view called 'counted', which this program never makes",
    ),
    (
        f"DROP TABLE migrations; CREATE VIEW migrations AS {ENDLESS}",
        "is damaged: it has no record of migrations",
    ),
    ("CREATE TABLE evil (x)", "holds a table called 'evil', which this program never makes"),
    ("DROP TABLE posts", "is damaged: it has no table posts"),
    ("DELETE FROM migrations", "is damaged: its record of migrations has gaps"),
    ("DELETE FROM migrations WHERE number = 2", "is damaged: its record of migrations has gaps"),
    (
        "UPDATE migrations SET number = -1 WHERE number = 1",
        "is damaged: its record of migrations has gaps",
    ),
    ("DROP TABLE migrations", "is damaged: it has no record of migrations"),
]


async def test_the_database_is_one_of_ours(place: Place, tmp_path: Path) -> None:
    """Anything that would run on opening, or never end on counting, is named."""
    path = tmp_path / "evil.db"
    for change, said in CHANGES:
        path.write_bytes(place.database)
        with closing(sqlite3.connect(path)) as database:
            database.executescript(change)
        members = Member("manifest.json", MANIFEST), Member("council.db", path.read_bytes())
        assert (await refused(place, gzip.compress(archive(*members), 1))).startswith(
            f"the database in FILE {said}"
        )


async def test_a_manifest_of_another_program_is_refused(place: Place) -> None:
    """By its content and by its length."""
    for manifest in (b"[]", b'{"council_backup":2}', MANIFEST + b" " * 2000):
        assert await refused(place, gzip.compress(archive(Member("manifest.json", manifest)))) == (
            "FILE is not a backup of a council that this program knows"
        )
    for manifest in (b"", b"{", b"[" * 900):
        said = await refused(place, gzip.compress(archive(Member("manifest.json", manifest))))
        assert said.startswith("FILE is not a whole backup: ")


async def test_random_damage_is_restored_or_refused_in_words(place: Place) -> None:
    """Bytes are changed at random, with a matching checksum."""
    draw = random.Random(1)  # noqa: S311 - a test draws the same each time
    members = (
        Member("manifest.json", MANIFEST),
        Member(NAME, records={"COUNCIL.mtime_ns": "1"}),
        Member("council.db", place.database),
    )
    sound = archive(*members)
    headers = 7 * 512
    for _ in range(40):
        content = bytearray(sound)
        for _ in range(draw.randrange(1, 4)):
            content[draw.randrange(headers)] = draw.randrange(256)
        place.file.write_bytes(gzip.compress(content, 1))
        try:
            await restore(place.file, place.file.with_name("new"), replace=True)
        except BackupError as error:
            assert str(error).isprintable()  # noqa: PT017 - or it is restored
