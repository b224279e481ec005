"""One file with everything in the data folder, made while the bot runs; `restore` puts it back.

A backup is a compressed tar: a manifest, the database (by SQLite's own backup, so that it is one
moment's), the audit, the documents. What was forgotten after it was made is still in it.
"""

import asyncio
import gzip
import io
import os
import secrets
import sqlite3
import tarfile
import zlib
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from storage.atomic import read_regular, staging, sync_folder
from storage.documents import codec
from storage.errors import BackupError, explain_sqlite, explain_system
from storage.sqlite.schema import foreign_objects, known_schema, read_schema

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "council.db"
AUDIT = "audit.jsonl"
DOCUMENTS = "conversations"
LARGEST_DOCUMENT = 256_000_000  # bytes: some thousand answers in one conversation


@dataclass(frozen=True, slots=True)
class BackupReport:
    """How many conversations were backed up or restored, and the file's size in bytes."""

    conversations: int
    size: int


async def backup(folder: Path, target: Path) -> BackupReport:
    """Write a data folder into one file, which appears when it is complete.

    Raises `BackupError`, also if the file exists already.
    """

    def write() -> BackupReport:
        with explained(target):
            return _write(folder, target)

    return await asyncio.to_thread(write)


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Turn errors of the operating system and of a damaged backup into `BackupError`."""
    try:
        yield
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise BackupError(f"{path} is not a whole backup: {error}", path) from error
    except OSError as error:
        path = Path(error.filename) if error.filename else path
        raise BackupError(explain_system(path, error), path) from error


def _write(folder: Path, target: Path) -> BackupReport:
    if target.exists():
        raise BackupError(f"{target} is there already; choose another name", target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BackupError(explain_system(target, error), target) from error
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path to open
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=3) as archive:
                conversations = _fill(archive, folder)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)
    return BackupReport(conversations, target.stat().st_size)


def _fill(archive: tarfile.TarFile, folder: Path) -> int:
    # The database first: a document that is written meanwhile is newer than its row, which is updated.
    with staging(folder) as place:
        copy = _copy_database(folder / DATABASE, place)
        _add(archive, MANIFEST, orjson.dumps({"council_backup": FORMAT}), 0)
        archive.add(copy, DATABASE)
    if (folder / AUDIT).exists():
        archive.add(folder / AUDIT, AUDIT)
    conversations = 0
    for path in sorted((folder / DOCUMENTS).glob("*.json")):
        if not codec.is_id(path.stem):
            continue
        try:
            content, stamp = read_regular(path, LARGEST_DOCUMENT)
        except FileNotFoundError:  # forgotten meanwhile
            continue
        _add(archive, f"{DOCUMENTS}/{path.name}", content, stamp.mtime_ns)
        conversations += 1
    return conversations


def _copy_database(path: Path, place: Path) -> Path:
    """Copy the live database, and check the copy: a backup that can't be restored is useless."""
    if not path.exists():
        raise BackupError(
            f"{path} isn't there; run `council index rebuild`, which makes it, and try again", path
        )
    copy = place / DATABASE
    try:
        with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(copy)) as saved:
            live.backup(saved)
    except sqlite3.Error as error:
        raise BackupError(str(explain_sqlite(path, error)), path) from error
    check_database(copy, path, str(path))
    return copy


def check_database(database: Path, path: Path, name: str) -> None:
    """Check that this program can open a database, named `name` in errors. Raises `BackupError`.

    Nothing in it runs: it must have the tables of its schema, and neither triggers nor views.
    """
    try:
        with closing(sqlite3.connect(database)) as connection:
            schema = read_schema(connection)
            foreign = foreign_objects(connection, schema)
            [(verdict,)] = connection.execute("PRAGMA quick_check (1)").fetchmany(1)
    except (sqlite3.Error, ValueError) as error:
        raise BackupError(f"{name} is damaged: {_line(error)}", path) from error
    if schema > known_schema():
        raise BackupError(
            f"{name} was written by a newer program (schema {schema}, this one knows {known_schema()}); "
            f"update this program",
            path,
        )
    if foreign:
        raise BackupError(f"{name} holds {foreign}, which this program never makes", path)
    if verdict != "ok":
        raise BackupError(f"{name} is damaged: {_line(verdict)}", path)


def _line(said: object) -> str:
    """Return what SQLite says on one line: it may quote what is stored."""
    return "".join(one if one.isprintable() else " " for one in str(said))


def _add(archive: tarfile.TarFile, name: str, content: bytes, mtime_ns: int) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o600
    member.mtime = mtime_ns // 10**9
    # With whole seconds, every row of the index would be out of date.
    member.pax_headers = {"COUNCIL.mtime_ns": str(mtime_ns)}
    archive.addfile(member, io.BytesIO(content))
