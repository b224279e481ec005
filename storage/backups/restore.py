"""What `backup` wrote, put back. All of it is checked before anything is touched.

The file is not trusted: it is read as `backup` writes it and in no other way, so that it can name no
path, contain no link or device, and take no more memory or disk than a backup would.
"""

import asyncio
import gzip
import os
import re
import shutil
import sqlite3
import stat
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from storage.atomic import create_file, move_files, staging, sync_folder
from storage.backups.backup import (
    AUDIT,
    DATABASE,
    DOCUMENTS,
    FORMAT,
    LARGEST_DOCUMENT,
    MANIFEST,
    BackupReport,
    check_database,
    explained,
)
from storage.documents import codec
from storage.errors import BackupError, explain_sqlite
from storage.sqlite.database import damage_mark
from storage.sqlite.salvage import held_alone

# A backup of one sentence, said a hundred thousand times, unpacks to 70 times its size.
_RATIO = 200
_ALWAYS = 64_000_000  # bytes that a backup of any size may unpack to
_PIECE = 1 << 20
_BLOCK = 512  # bytes: what a tar file consists of
_LARGEST_MANIFEST = 1_000
_LARGEST_RECORDS = 4_096
_NUMBER = re.compile("[0-9]{1,19}")
_LATEST = 2**63 - 1  # nanoseconds: what SQLite and the system can hold
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.DIRTYPE: "a folder",
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
    tarfile.GNUTYPE_LONGNAME: "a long name",
    tarfile.GNUTYPE_LONGLINK: "a long link",
    tarfile.XHDTYPE: "a second header",
    tarfile.XGLTYPE: "a global header",
}


@dataclass(frozen=True, slots=True)
class _Member:
    """A file in a backup; its content comes next in the stream."""

    name: str
    size: int
    mtime_ns: int


async def restore(source: Path, folder: Path, *, replace: bool = False) -> BackupReport:
    """Put a backup's content into a data folder; the index must be updated afterwards.

    All of it is read and checked before anything is touched. Raises `BackupError` if the file isn't a
    whole backup, or if the folder isn't empty and `replace` is not set.
    """

    def put_back() -> BackupReport:
        with explained(source):
            return _restore(source, folder, replace)

    return await asyncio.to_thread(put_back)


def _restore(source: Path, folder: Path, replace: bool) -> BackupReport:
    status = source.stat()
    if not stat.S_ISREG(status.st_mode):
        raise BackupError(f"{source} is not a regular file", source)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with staging(folder) as place:
        with gzip.open(source) as stream:
            _check_room(source, folder, _measure(source, stream, status.st_size))
            stream.seek(0)
            found = _unpack(source, _Tar(source, stream), place)
        check_database(place / DATABASE, source, f"the database in {source}")
        present = _present(folder)
        if not replace and (lost := _would_lose(folder, present)):
            raise BackupError(
                f"{folder} holds {lost} already; say --replace to put the backup in their place", folder
            )
        # All at once: syncing a hundred thousand files one by one would take a quarter of an hour.
        os.sync()
        _put_in_place(place, folder, found, present)
    return BackupReport(len(found), status.st_size)


def _measure(source: Path, stream: gzip.GzipFile, size: int) -> int:
    """Read a backup to its end, where its checksum is; return what it unpacks to, in bytes."""
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
    return unpacked


def _check_room(source: Path, folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise BackupError(
            f"{source} needs {needed / 1e6:,.0f} MB in {folder}, where {free / 1e6:,.0f} MB are free; "
            f"free some space and try again",
            source,
        )


@dataclass(slots=True)
class _Tar:
    """A tar file, read as far as `backup` uses the format: regular files under short names.

    Python's own reader follows links, trusts sizes and reads headers of any length.
    """

    source: Path
    stream: gzip.GzipFile
    _left: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[_Member]:
        """Read one header after the other; the content before it must have been read."""
        while any(block := self._exactly(_BLOCK)):
            records: dict[str, str] = {}
            header = self._header(block)
            if header.type == tarfile.XHDTYPE:
                records = self._records(header.size)
                header = self._header(self._exactly(_BLOCK))
            if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                kind = _KINDS.get(header.type, "something else")
                raise self.refused(header.name, f"which is {kind}; a backup contains only regular files")
            size = _number(records.get("size", str(header.size)))
            changed = records.get("COUNCIL.mtime_ns", "0")
            mtime_ns = _number(changed)
            if size is None:
                raise self.refused(header.name, "whose size can't be")
            if mtime_ns is None or mtime_ns > _LATEST:
                raise self.refused(header.name, "whose time of change can't be")
            yield _Member(header.name, size, mtime_ns)
            self._exactly(-size % _BLOCK)

    def content(self, member: _Member) -> Iterator[bytes]:
        """Read the content of the member that came last, piece by piece."""
        left = member.size
        while left:
            piece = self._exactly(min(left, _PIECE))
            left -= len(piece)
            yield piece

    def refused(self, name: str, why: str) -> BackupError:
        """Return the error that names a member, whatever characters its name has."""
        return BackupError(f"{self.source} holds {name[:100]!r}, {why}", self.source)

    def _header(self, block: bytes) -> tarfile.TarInfo:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")

    def _records(self, size: int) -> dict[str, str]:
        """Read the records before a header: `<length> <key>=<value>`, each on a line."""
        if not 0 <= size <= _LARGEST_RECORDS:
            raise BackupError(
                f"{self.source} holds a header of {size} bytes, which no backup does", self.source
            )
        content = self._exactly(size)
        self._exactly(-size % _BLOCK)
        records: dict[str, str] = {}
        while content:
            length = _number(content.partition(b" ")[0].decode())
            if not length:
                raise tarfile.TarError("bad header")
            key, _, value = content[:length].decode().rstrip("\n").partition(" ")[2].partition("=")
            records[key] = value
            content = content[length:]
        return records

    def _exactly(self, size: int) -> bytes:
        content = self.stream.read(size)
        if len(content) < size:
            raise EOFError("it ends too early")
        return content


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _unpack(source: Path, tar: _Tar, place: Path) -> set[str]:
    """Read a backup's files into one flat folder; return the documents' names."""
    members = iter(tar)
    first = next(members, None)
    if first is None or first.name != MANIFEST or first.size > _LARGEST_MANIFEST:
        raise _unknown(source)
    if orjson.loads(b"".join(tar.content(first))) != {"council_backup": FORMAT}:
        raise _unknown(source)
    found: set[str] = set()
    for member in members:
        folder, _, name = member.name.rpartition("/")
        is_document = folder == DOCUMENTS and codec.is_id(name.removesuffix(".json"))
        if not (is_document and name.endswith(".json")) and member.name not in (DATABASE, AUDIT):
            raise tar.refused(member.name, "which no backup holds")
        if name in found:
            raise tar.refused(member.name, "twice")
        if is_document and member.size > LARGEST_DOCUMENT:
            raise tar.refused(member.name, f"of {member.size / 1e6:,.0f} MB, which no conversation has")
        found.add(name)
        create_file(place / name, tar.content(member), member.mtime_ns)
    if DATABASE not in found:
        raise BackupError(f"{source} holds no {DATABASE}", source)
    return found - {DATABASE, AUDIT}


def _unknown(source: Path) -> BackupError:
    return BackupError(f"{source} is not a backup of a council that this program knows", source)


def _put_in_place(place: Path, folder: Path, found: set[str], present: set[str]) -> None:
    live, there = folder / DATABASE, folder / DOCUMENTS
    with held_alone(live) as is_alone:
        if is_alone:
            _replace_database(place / DATABASE, live)
        else:
            _overwrite_database(place / DATABASE, live)
        move_files(place, found, there)
        for name in present - found:
            (there / name).unlink(missing_ok=True)
        sync_folder(there)
    if (place / AUDIT).exists() and not (folder / AUDIT).exists():
        (place / AUDIT).replace(folder / AUDIT)
    sync_folder(folder)


def _replace_database(new: Path, live: Path) -> None:
    """Replace a database that nobody has open, whatever state it is in."""
    for end in ("", "-wal", "-shm"):
        live.with_name(f"{live.name}{end}").unlink(missing_ok=True)
    new.rename(live)
    damage_mark(live).unlink(missing_ok=True)
    sync_folder(live.parent)


def _overwrite_database(new: Path, live: Path) -> None:
    """Write a database into one that a running bot has open."""
    try:
        with closing(sqlite3.connect(new)) as saved, closing(sqlite3.connect(live)) as target:
            saved.backup(target)
    except sqlite3.Error as error:
        raise BackupError(str(explain_sqlite(live, error)), live) from error


def _present(folder: Path) -> set[str]:
    return {path.name for path in (folder / DOCUMENTS).glob("*.json") if codec.is_id(path.stem)}


def _would_lose(folder: Path, present: set[str]) -> str:
    """Return what a folder contains that a restore would replace, in words; empty if nothing."""
    path = folder / DATABASE
    runs = 0
    try:
        if path.exists() and path.stat().st_size:
            with closing(sqlite3.connect(path)) as live:
                [(runs,)] = live.execute("SELECT count(*) FROM runs")
    except sqlite3.Error:
        return f"{len(present)} conversations and a {DATABASE} that can't be read"
    counted = [(len(present), "conversation"), (runs, "run")]
    return " and ".join(f"{number} {what}{'s' * (number != 1)}" for number, what in counted if number)
