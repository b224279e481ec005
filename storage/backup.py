"""One file with everything in the data folder, made and put back while the bot runs.

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
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import orjson

from storage import documents
from storage.atomic import replace_file, staging, sync_folder
from storage.database import damage_mark
from storage.errors import BackupError, explain_sqlite, explain_system
from storage.recovery import held_alone
from storage.schema import applied_schema, known_schema

_FORMAT = 1
_MANIFEST = "manifest.json"
_DATABASE = "council.db"
_AUDIT = "audit.jsonl"
_DOCUMENTS = "conversations"


@dataclass(frozen=True, slots=True)
class BackupReport:
    """How many conversations went in or came back, and the file's size in bytes."""

    conversations: int
    size: int


async def backup(folder: Path, target: Path) -> BackupReport:
    """Write a data folder into one file, which appears when it is whole.

    Raises `BackupError`, also where the file is there already.
    """
    return await asyncio.to_thread(_explained, target, lambda: _write(folder, target))


async def restore(source: Path, folder: Path, *, replace: bool = False) -> BackupReport:
    """Put a backup's content into a data folder; the index is to be mended after it.

    All of it is read and checked before anything is touched. Raises `BackupError` where the file
    isn't a whole backup, or where something is there that isn't to be replaced.
    """
    return await asyncio.to_thread(_explained, source, lambda: _restore(source, folder, replace))


def _explained(path: Path, work: Callable[[], BackupReport]) -> BackupReport:
    try:
        return work()
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
    # The database first: a document that is written meanwhile is newer than its row, and mended.
    with staging(folder) as place:
        copy = _copy_database(folder / _DATABASE, place)
        _add(archive, _MANIFEST, orjson.dumps({"council_backup": _FORMAT}), 0)
        archive.add(copy, _DATABASE)
    if (folder / _AUDIT).exists():
        archive.add(folder / _AUDIT, _AUDIT)
    conversations = 0
    for path in sorted((folder / _DOCUMENTS).glob("*.json")):
        if not documents.is_id(path.stem):
            continue
        try:
            status, content = path.stat(), path.read_bytes()
        except FileNotFoundError:  # forgotten meanwhile
            continue
        _add(archive, f"{_DOCUMENTS}/{path.name}", content, status.st_mtime_ns)
        conversations += 1
    return conversations


def _copy_database(path: Path, place: Path) -> Path:
    """Copy the live database, and check the copy: a backup is no good that can't be restored."""
    if not path.exists():
        raise BackupError(
            f"{path} isn't there; run `council index rebuild`, which makes it, and try again", path
        )
    copy = place / _DATABASE
    try:
        with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(copy)) as saved:
            live.backup(saved)
    except sqlite3.Error as error:
        raise BackupError(str(explain_sqlite(path, error)), path) from error
    _check(copy, path, str(path))
    return copy


def _check(database: Path, path: Path, name: str) -> None:
    """Hold a database, called so, to what this program can open. Raises `BackupError`."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            [(verdict,)] = connection.execute("PRAGMA quick_check (1)").fetchmany(1)
            schema = applied_schema(connection)
            connection.execute("SELECT count(*) FROM runs")
    except sqlite3.Error as error:
        raise BackupError(f"{name} is damaged: {error}", path) from error
    if verdict != "ok":
        raise BackupError(f"{name} is damaged: {verdict}", path)
    if schema > known_schema():
        raise BackupError(
            f"{name} was written by a newer program (schema {schema}, this one knows {known_schema()}); "
            f"update this program",
            path,
        )


def _add(archive: tarfile.TarFile, name: str, content: bytes, mtime_ns: int) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o600
    member.mtime = mtime_ns // 10**9
    # Seconds alone would make every row of the index outdated.
    member.pax_headers = {"COUNCIL.mtime_ns": str(mtime_ns)}
    archive.addfile(member, io.BytesIO(content))


def _restore(source: Path, folder: Path, replace: bool) -> BackupReport:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with staging(folder) as place:
        found = _unpack(source, place)
        present = _present(folder)
        if not replace and (lost := _would_lose(folder, present)):
            raise BackupError(
                f"{folder} holds {lost} already; say --replace to put the backup in their place", folder
            )
        live = folder / _DATABASE
        with held_alone(live) as is_alone:
            if is_alone:
                _replace_database(place / _DATABASE, live)
            else:
                _overwrite_database(place / _DATABASE, live)
            (folder / _DOCUMENTS).mkdir(mode=0o700, exist_ok=True)
            for name, mtime_ns in found.items():
                path = folder / _DOCUMENTS / name
                replace_file(path, (place / name).read_bytes())
                os.utime(path, ns=(mtime_ns, mtime_ns))
            for name in present - found.keys():
                (folder / _DOCUMENTS / name).unlink(missing_ok=True)
        audit = place / _AUDIT
        if audit.exists() and not (folder / _AUDIT).exists():
            replace_file(folder / _AUDIT, audit.read_bytes())
    return BackupReport(len(found), source.stat().st_size)


def _replace_database(new: Path, live: Path) -> None:
    """Put a database in the place of one that nobody has open, whatever state that is in."""
    new.chmod(0o600)
    with new.open("rb") as file:
        os.fsync(file.fileno())
    for end in ("", "-wal", "-shm"):
        live.with_name(f"{live.name}{end}").unlink(missing_ok=True)
    new.rename(live)
    damage_mark(live).unlink(missing_ok=True)
    sync_folder(live.parent)


def _overwrite_database(new: Path, live: Path) -> None:
    """Write a database into one that a running bot goes on with."""
    try:
        with closing(sqlite3.connect(new)) as saved, closing(sqlite3.connect(live)) as target:
            saved.backup(target)
    except sqlite3.Error as error:
        raise BackupError(str(explain_sqlite(live, error)), live) from error


def _present(folder: Path) -> set[str]:
    return {path.name for path in (folder / _DOCUMENTS).glob("*.json") if documents.is_id(path.stem)}


def _would_lose(folder: Path, present: set[str]) -> str:
    """Say what a folder holds that a restore would take the place of; nothing for nothing."""
    path = folder / _DATABASE
    runs = 0
    try:
        if path.exists() and path.stat().st_size:
            with closing(sqlite3.connect(path)) as live:
                [(runs,)] = live.execute("SELECT count(*) FROM runs")
    except sqlite3.Error:
        return f"{len(present)} conversations and a {_DATABASE} that can't be read"
    counted = [(len(present), "conversation"), (runs, "run")]
    return " and ".join(f"{number} {what}{'s' * (number != 1)}" for number, what in counted if number)


def _unpack(source: Path, place: Path) -> dict[str, int]:
    """Read a backup to its end, into flat files; gives the documents with their times of change."""
    found: dict[str, int] = {}
    with gzip.open(source) as stream:
        # The checksum stands at the end, where a tar reader doesn't get.
        while stream.read(1 << 20):
            pass
        stream.seek(0)
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            first = archive.next()
            manifest = archive.extractfile(first) if first and first.name == _MANIFEST else None
            if manifest is None or orjson.loads(manifest.read()) != {"council_backup": _FORMAT}:
                raise BackupError(
                    f"{source} is not a backup of a council that this program knows", source
                )
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                is_document = folder == _DOCUMENTS and documents.is_id(name.removesuffix(".json"))
                content = archive.extractfile(member)
                if content is None or not (is_document or member.name in (_MANIFEST, _DATABASE, _AUDIT)):
                    raise BackupError(
                        f"{source} holds something that no backup holds: {member.name!r}", source
                    )
                with (place / name).open("wb") as file:
                    while piece := content.read(1 << 20):
                        file.write(piece)
                if is_document:
                    found[name] = int(member.pax_headers.get("COUNCIL.mtime_ns", 0))
    _check(place / _DATABASE, source, f"the database in {source}")
    return found
