"""Restoring a malicious file: one line says what is wrong, and nothing is touched."""

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from storage.archive import backup, restore
from storage.documents.conversations import ConversationStore
from storage.errors import BackupError
from storage.sqlite.opening import open_folder
from tests.storage.examples import NOW, answer, new_id

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
        """Return the content of the data folder, for a comparison."""
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
    """Make an uncompressed archive of these."""
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


async def test_only_regular_files_are_restored(place: Place) -> None:
    """Anything else could reach outside the folder, or never end."""
    for kind in (
        *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE),
        *(tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE),
    ):
        member = Member(NAME, b"", fields=LINK | {"type": kind})
        assert await refused(place, beside(place, member)) == f"FILE holds '{NAME}', {NOT_REGULAR}"


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


async def test_a_name_that_is_too_long_is_cut(place: Place) -> None:
    """An archive in another program's format has headers of any length for that."""
    said = await refused(place, beside(place, Member("x" * 5_000), form=tarfile.GNU_FORMAT))
    assert said == f"FILE holds '././@LongLink', {NOT_REGULAR}"
    said = await refused(place, beside(place, Member("x" * 3_000)))
    assert said == f"FILE holds '{'x' * 100}', which no backup holds"


async def test_each_file_comes_once(place: Place) -> None:
    """The second would overwrite the first."""
    assert (
        await refused(place, beside(place, Member(NAME), Member(NAME))) == f"FILE holds '{NAME}', twice"
    )
    twice = Member("council.db", place.database)
    assert await refused(place, beside(place, twice)) == "FILE holds 'council.db', twice"


async def test_an_impossible_time_is_named(place: Place) -> None:
    """It is found before anything is put in place."""
    for time in ("9" * 30, "-1", "1e9", "", "\u0663", str(2**63), "0x10"):
        member = Member(NAME, records={"COUNCIL.mtime_ns": time})
        said = await refused(place, beside(place, member))
        assert said == f"FILE holds '{NAME}', whose time of change can't be"


async def test_a_huge_header_is_not_read(place: Place) -> None:
    """Python's reader would load all of it into memory."""
    member = Member(NAME, records={"comment": "x" * 20_000_000})
    tracemalloc.start()
    said = await refused(place, await asyncio.to_thread(beside, place, member))
    tracemalloc.stop()
    assert re.fullmatch(r"FILE holds a header of 20000\d{3} bytes, which no backup does", said)


async def test_headers_of_headers_are_refused(place: Place) -> None:
    """Python's reader recurses for each."""
    sound = archive(Member("manifest.json", MANIFEST))[:1024]
    records = archive(Member(NAME, records={"comment": "x"}))[:1024]
    assert await refused(place, gzip.compress(sound + records * 5_000)) == (
        f"FILE holds '././@PaxHeader', {NOT_REGULAR}"
    )


async def test_a_global_header_is_refused(place: Place) -> None:
    """It would apply to every file after it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", pax_headers={"COUNCIL.mtime_ns": "1"}) as tar:
        tar.addfile(tarfile.TarInfo("manifest.json"))
    said = await refused(place, gzip.compress(stream.getvalue()))
    assert NOT_REGULAR in said


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


async def test_a_conversation_that_is_too_large_is_named(place: Place) -> None:
    """Its header states the size, whatever follows."""
    info = tarfile.TarInfo(NAME)
    info.size = 10**12
    sound = archive(Member("manifest.json", MANIFEST))[:1024]
    assert await refused(place, gzip.compress(sound + info.tobuf() + bytes(1024))) == (
        f"FILE holds '{NAME}', of 1,000,000 MB, which no conversation has"
    )


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


Change = Callable[[sqlite3.Connection], object]
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


async def test_a_backup_without_a_database_is_refused(place: Place) -> None:
    """The folder would lose its journal."""
    content = gzip.compress(archive(Member("manifest.json", MANIFEST), Member(NAME)))
    assert await refused(place, content) == "FILE holds no council.db"


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
    for _ in range(100):
        content = bytearray(sound)
        for _ in range(draw.randrange(1, 4)):
            content[draw.randrange(headers)] = draw.randrange(256)
        place.file.write_bytes(gzip.compress(content, 1))
        try:
            await restore(place.file, place.file.with_name("new"), replace=True)
        except BackupError as error:
            assert str(error).isprintable()  # noqa: PT017 - or it is restored
