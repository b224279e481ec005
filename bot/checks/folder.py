"""The data folder: whether it is writable, private and consistent, and has room."""

import asyncio
import shutil
import stat
import tempfile
from pathlib import Path

from bot.checks.channels import Stored, settings_of_channels
from bot.checks.check import Check, Outcome, found, wrong
from bot.view.message import escaped_line
from bot.view.wording.doctor import doctor as wording
from storage.audit import Audit
from storage.documents.conversations import ConversationStore
from storage.errors import DamageError, StorageError, explain_system
from storage.index.index import Index, IndexReport
from storage.overrides import Overrides
from storage.sqlite.database import open_database
from storage.sqlite.inspection import Inspection, inspect

FOLDER, ROOM, DATABASE, INDEX = "Data folder", "Disk space", "Database", "Index"
MOST_NAMED = 3
MEGABYTE = 1_000_000
ENOUGH = 500
"""Megabytes that should be free."""
INDEX_SECONDS = 60.0
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class FolderChecks:
    """Checks of the data folder; they create nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database = folder / "council.db"
        self._seen = Inspection()

    def checks(self) -> list[Check]:
        """Return the checks."""
        return [
            Check(FOLDER, self._writable),
            Check(ROOM, self._room, needs=(FOLDER,)),
            Check(DATABASE, self._sound, needs=(FOLDER,)),
            Check(INDEX, self._consistent, needs=(DATABASE,), seconds=INDEX_SECONDS),
        ]

    async def _writable(self) -> Outcome:
        where = f"COUNCIL_DATA_DIR ({self._folder})"
        nearest = self._nearest()
        if not nearest.is_dir():
            return wrong(where, wording.not_a_folder(str(nearest)))
        try:
            with tempfile.TemporaryFile(dir=nearest) as file:
                file.write(b"\n")
        except OSError as error:
            reason = explain_system(nearest, error).partition(": ")[2]
            return wrong(where, wording.not_writable(reason))
        if nearest != self._folder:
            return Outcome(wording.NO_FOLDER_YET)
        if self._folder.stat().st_mode & OTHERS:
            return wrong(where, wording.folder_open(str(self._folder)), "warning")
        if self._database.exists() and self._database.stat().st_mode & OTHERS:
            path = str(self._database)
            return wrong(path, wording.file_open(path), "warning")
        return Outcome(str(self._folder))

    def _nearest(self) -> Path:
        """Return the folder, or its nearest parent that exists."""
        return next(path for path in (self._folder, *self._folder.absolute().parents) if path.exists())

    async def _room(self) -> Outcome:
        free = shutil.disk_usage(self._nearest()).free
        if free < ENOUGH * MEGABYTE:
            advice = wording.little_room(free // MEGABYTE, ENOUGH)
            return wrong(f"COUNCIL_DATA_DIR ({self._folder})", advice, "warning")
        return Outcome(wording.room(free / (1000 * MEGABYTE)))

    async def _sound(self) -> Outcome:
        where = str(self._database)
        if not self._database.exists():
            return Outcome(wording.NO_DATABASE_YET)
        try:
            seen = self._seen = await asyncio.to_thread(inspect, self._database)
        except DamageError:
            return wrong(where, wording.DAMAGED)
        except StorageError as error:
            return wrong(where, wording.cannot_be_opened(str(error)))
        if seen.is_newer:
            return wrong(where, wording.NEWER)
        return _of_the_journal(where, seen)

    async def channel_settings(self) -> Stored:
        """Return what admins have set in channels, once the database is known to be sound."""
        if not self._database.exists() or self._seen.is_older:
            return {}
        async with open_database(self._database) as database:
            return await settings_of_channels(Overrides(database, Audit(self._folder / "audit.jsonl")))

    async def _consistent(self) -> Outcome:
        documents = self._folder / "conversations"
        if not self._database.exists() or not documents.is_dir():
            return Outcome(wording.conversations(0))
        if self._seen.is_older:
            return Outcome(wording.MIGRATED_AT_START)
        async with open_database(self._database) as database:
            report = await Index(database).check(ConversationStore(documents))
        return of_the_index(str(self._database), report)


def of_the_index(where: str, report: IndexReport) -> Outcome:
    """Report how an index compares with the documents."""
    findings = [
        found(escaped_line(one.name), wording.unreadable_document(escaped_line(one.reason)), "warning")
        for one in report.unreadable[:MOST_NAMED]
    ]
    if not report.consistent:
        differs = (len(report.missing), len(report.stale), len(report.orphaned))
        findings.append(found(where, wording.index_differs(*differs), "warning"))
    return Outcome(wording.conversations(report.documents), tuple(findings))


def _of_the_journal(where: str, seen: Inspection) -> Outcome:
    if seen.is_older:
        return Outcome(wording.MIGRATED_AT_START)
    if seen.unreadable_runs or seen.unreadable_steps:
        advice = wording.unreadable_rows(seen.unreadable_runs, seen.unreadable_steps)
        return wrong(where, advice, "warning")
    return Outcome(wording.SOUND)
