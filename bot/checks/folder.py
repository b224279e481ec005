"""Where everything is kept: whether the data folder or the database is usable, private and sound."""

import asyncio
import errno
import shutil
import stat
import tempfile
from pathlib import Path

from bot.checks.channels import Stored, settings_of_channels
from bot.checks.check import Check, Finding, Outcome, wrong
from bot.view.message import escaped_line
from bot.view.wording import cli as cli_wording
from bot.view.wording.figures import count, listing
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
NOT_YET = "created at the first start"
OLDER = "from an earlier version; the next start brings it up to date"
SOUND = "sound, and its journal can be read"


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
            return wrong(
                where,
                f"{nearest} is a file, not a folder",
                "Move the file away, or set COUNCIL_DATA_DIR to another folder",
            )
        try:
            with tempfile.TemporaryFile(dir=nearest) as file:
                file.write(b"\n")
        except OSError as error:
            reason = explain_system(nearest, error).partition(": ")[2].partition(";")[0]
            remedy = (
                "Free some space there"
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else "Make it writable for the user that runs the council"
            )
            return wrong(
                where,
                f"nothing can be written there ({reason})",
                f"{remedy}, or set COUNCIL_DATA_DIR to another folder",
            )
        if nearest != self._folder:
            return Outcome(NOT_YET)
        if self._folder.stat().st_mode & OTHERS:
            return wrong(
                where,
                "other users of this machine can open it, and it contains questions and answers",
                f"Run `chmod 700 {self._folder}`",
                "warning",
            )
        if self._database.exists() and self._database.stat().st_mode & OTHERS:
            return wrong(
                str(self._database),
                "other users of this machine can read it, and it contains questions and answers",
                f"Run `chmod 600 {self._database}`",
                "warning",
            )
        return Outcome(str(self._folder))

    def _nearest(self) -> Path:
        """Return the folder, or its nearest parent that exists."""
        return next(path for path in (self._folder, *self._folder.absolute().parents) if path.exists())

    async def _room(self) -> Outcome:
        free = shutil.disk_usage(self._nearest()).free
        if free < ENOUGH * MEGABYTE:
            return wrong(
                f"COUNCIL_DATA_DIR ({self._folder})",
                f"only {free // MEGABYTE:,} MB are free; at least {ENOUGH:,} MB should be",
                "Free some space: on a full disk, runs wait and new questions are refused",
                "warning",
            )
        gigabytes = free / (1000 * MEGABYTE)
        return Outcome(
            f"{gigabytes:,.0f} GB free" if gigabytes >= 1 else f"{gigabytes * 1000:,.0f} MB free"
        )

    async def _sound(self) -> Outcome:
        where = str(self._database)
        if not self._database.exists():
            return Outcome(NOT_YET)
        try:
            seen = self._seen = await asyncio.to_thread(inspect, self._database)
        except DamageError:
            return wrong(
                where,
                "it is damaged",
                "Stop every process that has it open, then start: the database is set aside, what is "
                "readable in its journal is carried over, and the index is rebuilt",
            )
        except StorageError as error:
            return not_opened(where, str(error))
        if seen.is_newer:
            return newer(where)
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
            return Outcome(count(0, "conversation"))
        if self._seen.is_older:
            return Outcome(OLDER)
        async with open_database(self._database) as database:
            report = await Index(database).check(ConversationStore(documents))
        return of_the_index(str(self._database), report)


def not_opened(where: str, reason: str) -> Outcome:
    """Return that a database can't be used."""
    return wrong(where, reason, "docs/troubleshooting.md says what to do, under What the errors mean")


def newer(where: str) -> Outcome:
    """Return that a newer version wrote a database."""
    return wrong(
        where,
        "it was written by a newer version of this program",
        "Update this program, or restore an earlier backup",
    )


def of_the_index(where: str, report: IndexReport) -> Outcome:
    """Report how an index compares with the documents."""
    findings = [
        Finding(
            escaped_line(one.name),
            f"it can't be read ({escaped_line(one.reason)})",
            "Restore it from a backup, or move it away, then run `council index rebuild`",
            "warning",
        )
        for one in report.unreadable[:MOST_NAMED]
    ]
    if not report.consistent:
        differs = (
            (report.missing, "not in it"),
            (report.stale, "changed since being indexed"),
            (report.orphaned, "in it without a document"),
        )
        parts = listing(f"{len(ids)} {how}" for ids, how in differs if ids)
        what = f"the index doesn't match the conversations: {parts}"
        findings.append(Finding(where, what, "Run `council index rebuild`", "warning"))
    return Outcome(count(report.documents, "conversation"), tuple(findings))


def _of_the_journal(where: str, seen: Inspection) -> Outcome:
    if seen.is_older:
        return Outcome(OLDER)
    counted = ((seen.unreadable_runs, "run"), (seen.unreadable_steps, "model call"))
    if unreadable := [count(number, what) for number, what in counted if number]:
        return wrong(
            where,
            f"its journal has {listing(unreadable)} that can't be read",
            "No action is needed: these runs are left out, and these calls are made again. If the "
            "number keeps growing, check the disk",
            "warning",
        )
    return Outcome(SOUND)


WHERE = "DATABASE_URL"
CONFIG = "COUNCIL_CONFIG"
ROLE = "Database role"
AGREEMENT = "Other processes"


class ServerChecks:
    """Checks of a PostgreSQL database; they create nothing."""

    def __init__(self, address: str, fingerprint: str) -> None:
        self._address = address
        self._fingerprint = fingerprint
        self._is_current = False

    def checks(self) -> list[Check]:
        """Return the checks."""
        return [
            Check(DATABASE, self._sound),
            Check(ROLE, self._role, needs=(DATABASE,)),
            Check(AGREEMENT, self._agreement, needs=(DATABASE,)),
            Check(INDEX, self._consistent, needs=(DATABASE,), seconds=INDEX_SECONDS),
        ]

    async def _sound(self) -> Outcome:
        try:
            from storage.postgres.inspection import inspect_server
        except ModuleNotFoundError:
            return not_opened(WHERE, cli_wording.NO_POSTGRES)
        try:
            age = await inspect_server(self._address)
        except StorageError as error:
            return not_opened(WHERE, str(error))
        if age == "newer":
            return newer(WHERE)
        self._is_current = age == "current"
        return Outcome({"new": NOT_YET, "older": OLDER}.get(age, SOUND))

    async def _role(self) -> Outcome:
        from storage.postgres.inspection import is_superuser

        try:
            if await is_superuser(self._address):
                return wrong(
                    WHERE,
                    "its role is a superuser: with the address, anybody can read and change "
                    "everything on that server",
                    "Make an ordinary role that owns the council's database, as deploy/postgres-role.sh "
                    "does, and name it in the address",
                    "warning",
                )
        except StorageError as error:
            return not_opened(WHERE, str(error))
        return Outcome("no superuser")

    async def _agreement(self) -> Outcome:
        from storage.postgres.inspection import configurations

        try:
            found = await configurations(self._address) if self._is_current else []
        except StorageError as error:
            return not_opened(WHERE, str(error))
        differing = sum(each != self._fingerprint for each in found)
        if differing:
            have = "process has" if len(found) == 1 else "processes have"
            return wrong(
                CONFIG,
                f"{differing} of {len(found)} running {have} another council.toml than this one",
                "Give every machine the same file; what needs a restart is in docs/configuration.md",
                "warning",
            )
        if not found:
            return Outcome("none is running")
        return Outcome(f"{len(found)} {'has' if len(found) == 1 else 'have'} the same council.toml")

    async def channel_settings(self) -> Stored:
        """Return what admins have set in channels, once the database is known to be sound."""
        if not self._is_current:
            return {}
        from storage.postgres.opening import open_server

        async with open_server(self._address) as stores:
            return await settings_of_channels(Overrides(stores.database, stores.audit))

    async def _consistent(self) -> Outcome:
        if not self._is_current:
            return Outcome(OLDER)
        from storage.postgres.opening import open_server

        async with open_server(self._address) as stores:
            report = await Index(stores.database).check(stores.documents)
        return of_the_index(WHERE, report)
