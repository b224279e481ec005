"""One file with everything in a data folder, made while the bot runs; `restore` puts it back.

It is a compressed tar: a manifest, the database (by SQLite's own backup, so that it is one moment's),
the audit, the documents. What was forgotten after it was made is still in it.

A file to be restored is not trusted: it is read as `backup` writes it and in no other way, so that it
can name no path, contain no link or device, and take no more memory or disk than a backup would.
"""

import asyncio
import gzip
import io
import os
import re
import shutil
import sqlite3
import stat
import tarfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from storage.atomic import create_file, move_files, read_regular, staging, sync_folder
from storage.documents import codec
from storage.errors import BackupError, explain_sqlite, explain_system
from storage.sqlite.database import damage_mark
from storage.sqlite.opening import AUDIT, DATABASE, DOCUMENTS, held_alone
from storage.sqlite.schema import foreign_objects, known_schema, read_schema

LARGEST_DOCUMENT = 256_000_000  # bytes: some thousand answers in one conversation
_MANIFEST = "manifest.json"
_FORMAT = {"council_backup": 1}
# A backup of one sentence, said a hundred thousand times, unpacks to 70 times its size.
_RATIO = 200
_ALWAYS = 64_000_000  # bytes that a backup of any size may unpack to
_PIECE = 1 << 20
_BLOCK = 512  # bytes: what a tar file consists of
_LARGEST_MANIFEST = 1_000
_LARGEST_RECORDS = 4_096
_NUMBER = re.compile("[0-9]{1,19}")
_LATEST = 2**63 - 1  # nanoseconds: what SQLite and the system can hold
_MTIME = "COUNCIL.mtime_ns"  # with whole seconds, every row of the index would be out of date


@dataclass(frozen=True, slots=True)
class BackupReport:
    """How many conversations were backed up or restored, and the file's size in bytes."""

    conversations: int
    size: int


@dataclass(frozen=True, slots=True)
class _Member:
    """A file in a backup, whose content is to be read before the next one's."""

    name: str
    size: int
    mtime_ns: int
    content: Iterator[bytes]


async def backup(folder: Path, target: Path) -> BackupReport:
    """Write a data folder into one file, which appears when it is complete.

    Raises `BackupError`, also if the file exists already.
    """

    def write() -> BackupReport:
        with _explained(target):
            if target.exists():
                raise BackupError(f"{target} is there already; choose another name", target)
            with staging(target.parent) as place:
                made = place / target.name
                with tarfile.open(made, "w:gz", compresslevel=3) as archive:
                    conversations = _fill(archive, folder)
                made.chmod(0o600)
                with made.open("rb") as file:
                    os.fsync(file.fileno())
                made.rename(target)
            sync_folder(target.parent)
            return BackupReport(conversations, target.stat().st_size)

    return await asyncio.to_thread(write)


async def restore(source: Path, folder: Path, *, replace: bool = False) -> BackupReport:
    """Put a backup's content into a data folder; the index must be updated afterwards.

    All of it is read and checked before anything is touched. Raises `BackupError` if the file isn't a
    whole backup, or if the folder isn't empty and `replace` is not set.
    """

    def put_back() -> BackupReport:
        with _explained(source):
            status = source.stat()
            if not stat.S_ISREG(status.st_mode):
                raise BackupError(f"{source} is not a regular file", source)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with staging(folder) as place:
                with gzip.open(source) as stream:
                    _check_size(source, folder, stream, status.st_size)
                    stream.seek(0)
                    found = _unpack(source, stream, place)
                _check_database(place / DATABASE, source, f"the database in {source}")
                present = {
                    path.name for path in (folder / DOCUMENTS).glob("*.json") if codec.is_id(path.stem)
                }
                if not replace and (lost := _would_lose(folder, len(present))):
                    raise BackupError(
                        f"{folder} holds {lost} already; say --replace to put the backup in their place",
                        folder,
                    )
                # All at once: one by one, a hundred thousand files would take a quarter of an hour.
                os.sync()
                _put_in_place(place, folder, found, present)
            return BackupReport(len(found), status.st_size)

    return await asyncio.to_thread(put_back)


@contextmanager
def _explained(path: Path) -> Generator[None]:
    """Turn errors of the operating system and of a damaged backup into `BackupError`."""
    try:
        yield
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise BackupError(f"{path} is not a whole backup: {error}", path) from error
    except OSError as error:
        path = Path(error.filename) if error.filename else path
        raise BackupError(explain_system(path, error), path) from error


def _fill(archive: tarfile.TarFile, folder: Path) -> int:
    """Add everything in a data folder; return how many documents that are."""
    path = folder / DATABASE
    # The database first: a document that is written meanwhile is newer than its row, which is updated.
    with staging(folder) as place:
        copy = place / DATABASE
        if not path.exists():
            raise BackupError(
                f"{path} isn't there; run `council index rebuild`, which makes it, and try again", path
            )
        _copy_database(path, copy, path)
        _check_database(copy, path, str(path))  # a backup that can't be restored is useless
        _add(archive, _MANIFEST, orjson.dumps(_FORMAT), 0)
        archive.add(copy, DATABASE)
    if (folder / AUDIT).exists():
        archive.add(folder / AUDIT, AUDIT)
    conversations = 0
    for document in sorted((folder / DOCUMENTS).glob("*.json")):
        if not codec.is_id(document.stem):
            continue
        try:
            content, stamp = read_regular(document, LARGEST_DOCUMENT)
        except FileNotFoundError:  # forgotten meanwhile
            continue
        _add(archive, f"{DOCUMENTS}/{document.name}", content, stamp.mtime_ns)
        conversations += 1
    return conversations


def _add(archive: tarfile.TarFile, name: str, content: bytes, mtime_ns: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), 0o600, mtime_ns // 10**9
    member.pax_headers = {_MTIME: str(mtime_ns)}
    archive.addfile(member, io.BytesIO(content))


def _copy_database(source: Path, target: Path, live: Path) -> None:
    """Copy a database into another one; a running bot may have either open, which errors name."""
    try:
        with closing(sqlite3.connect(source)) as saved, closing(sqlite3.connect(target)) as copy:
            saved.backup(copy)
    except sqlite3.Error as error:
        raise BackupError(str(explain_sqlite(live, error)), live) from error


def _check_database(database: Path, path: Path, name: str) -> None:
    """Check that this program can open a database, named `name` in errors. Raises `BackupError`.

    Nothing in it runs: it must have the tables of its schema, no triggers, and no views of other words.
    """
    try:
        with closing(sqlite3.connect(database)) as connection:
            schema = read_schema(connection)
            foreign = foreign_objects(connection, schema)
            [(verdict,)] = connection.execute("PRAGMA quick_check (1)").fetchmany(1)
    except (sqlite3.Error, ValueError) as error:
        wrong = f"is damaged: {error}"
    else:
        if schema > known_schema():
            wrong = (
                f"was written by a newer program (schema {schema}, this one knows {known_schema()}); "
                f"update this program"
            )
        elif foreign:
            wrong = f"holds {foreign}, which this program never makes"
        elif verdict != "ok":
            wrong = f"is damaged: {verdict}"
        else:
            return
    # SQLite may quote what is stored.
    said = "".join(one if one.isprintable() else " " for one in wrong)
    raise BackupError(f"{name} {said}", path)


def _check_size(source: Path, folder: Path, stream: gzip.GzipFile, size: int) -> None:
    """Read a backup to its end, where its checksum is, and see that there is room for all of it."""
    most = max(_ALWAYS, _RATIO * size)
    unpacked = 0
    while piece := stream.read(_PIECE):
        unpacked += len(piece)
        if unpacked > most:
            raise BackupError(
                f"{source} has {size / 1e6:,.1f} MB and unpacks to more than {most / 1e6:,.0f} MB, "
                f"which no backup does",
                source,
            )
    free = shutil.disk_usage(folder).free
    if unpacked > free:
        raise BackupError(
            f"{source} needs {unpacked / 1e6:,.0f} MB in {folder}, where {free / 1e6:,.0f} MB are free; "
            f"free some space and try again",
            source,
        )


def _unpack(source: Path, stream: gzip.GzipFile, place: Path) -> set[str]:
    """Read a backup's files into one flat folder; return the documents' names."""
    members = _members(source, stream)
    first = next(members, None)
    is_ours = first is not None and first.name == _MANIFEST and first.size <= _LARGEST_MANIFEST
    if first is None or not is_ours or orjson.loads(b"".join(first.content)) != _FORMAT:
        raise BackupError(f"{source} is not a backup of a council that this program knows", source)
    found: set[str] = set()
    for member in members:
        folder, _, name = member.name.rpartition("/")
        is_document = folder == DOCUMENTS and name.endswith(".json") and codec.is_id(name[:-5])
        if not is_document and member.name not in (DATABASE, AUDIT):
            raise _refused(source, member.name, "which no backup holds")
        if name in found:
            raise _refused(source, member.name, "twice")
        if is_document and member.size > LARGEST_DOCUMENT:
            size = f"{member.size / 1e6:,.0f} MB"
            raise _refused(source, member.name, f"of {size}, which no conversation has")
        found.add(name)
        create_file(place / name, member.content, member.mtime_ns)
    if DATABASE not in found:
        raise BackupError(f"{source} holds no {DATABASE}", source)
    return found - {DATABASE, AUDIT}


def _members(source: Path, stream: gzip.GzipFile) -> Iterator[_Member]:
    """Read a tar file as far as `backup` uses the format: regular files under short names.

    Python's own reader follows links, trusts sizes and reads headers of any length.
    """

    def exactly(size: int) -> bytes:
        content = stream.read(size)
        if len(content) < size:
            raise EOFError("it ends too early")
        return content

    def pieces(size: int) -> Iterator[bytes]:
        while size:
            piece = exactly(min(size, _PIECE))
            size -= len(piece)
            yield piece

    while any(block := exactly(_BLOCK)):
        records: dict[str, str] = {}
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if header.type == tarfile.XHDTYPE:
            if not 0 <= header.size <= _LARGEST_RECORDS:
                raise BackupError(
                    f"{source} holds a header of {header.size} bytes, which no backup does", source
                )
            records = _records(exactly(header.size))
            exactly(-header.size % _BLOCK)
            header = tarfile.TarInfo.frombuf(exactly(_BLOCK), "utf-8", "surrogateescape")
        if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise _refused(source, header.name, "which isn't a regular file, as all of a backup's are")
        size = _number(records.get("size", str(header.size)))
        if size is None:
            raise _refused(source, header.name, "whose size can't be")
        mtime_ns = _number(records.get(_MTIME, "0"))
        if mtime_ns is None or mtime_ns > _LATEST:
            raise _refused(source, header.name, "whose time of change can't be")
        yield _Member(header.name, size, mtime_ns, pieces(size))
        exactly(-size % _BLOCK)


def _records(content: bytes) -> dict[str, str]:
    """Read the records before a header: `<length> <key>=<value>`, each on a line."""
    records: dict[str, str] = {}
    while content:
        length = _number(content.partition(b" ")[0].decode())
        if not length:
            raise tarfile.TarError("bad header")
        key, _, value = content[:length].decode().rstrip("\n").partition(" ")[2].partition("=")
        records[key] = value
        content = content[length:]
    return records


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _refused(source: Path, name: str, why: str) -> BackupError:
    """Return the error that names a member, whatever characters its name has."""
    return BackupError(f"{source} holds {name[:100]!r}, {why}", source)


def _put_in_place(place: Path, folder: Path, found: set[str], present: set[str]) -> None:
    live, there = folder / DATABASE, folder / DOCUMENTS
    with held_alone(live) as is_alone:
        if is_alone:  # whatever state it is in
            for end in ("", "-wal", "-shm"):
                live.with_name(f"{live.name}{end}").unlink(missing_ok=True)
            move_files(place, [DATABASE], folder)
            damage_mark(live).unlink(missing_ok=True)
        else:
            _copy_database(place / DATABASE, live, live)
        move_files(place, found, there)
        for name in present - found:
            (there / name).unlink(missing_ok=True)
        sync_folder(there)
    if (place / AUDIT).exists() and not (folder / AUDIT).exists():
        (place / AUDIT).replace(folder / AUDIT)
    sync_folder(folder)


def _would_lose(folder: Path, conversations: int) -> str:
    """Return what a folder contains that a restore would replace, in words; empty if nothing."""
    path = folder / DATABASE
    runs = 0
    try:
        if path.exists() and path.stat().st_size:
            with closing(sqlite3.connect(path)) as live:
                [(runs,)] = live.execute("SELECT count(*) FROM runs")
    except sqlite3.Error:
        return f"{conversations} conversations and a {DATABASE} that can't be read"
    counted = [(conversations, "conversation"), (runs, "run")]
    return " and ".join(f"{number} {what}{'s' * (number != 1)}" for number, what in counted if number)
