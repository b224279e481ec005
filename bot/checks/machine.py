"""The machine: files with secrets, ports, the clock, and where everything is kept."""

import asyncio
import errno
import os
import shutil
import socket
import stat
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path

from bot.checks.channels import Stored, settings_of_channels
from bot.checks.check import TROUBLE, Check, Finding, Outcome, reported, wrong
from bot.config.configuration import Configuration
from bot.config.settings import dotenv_variables, secret_names
from bot.errors import ConfigurationError, Problem
from bot.view.message import escaped_line
from bot.view.wording import cli as cli_wording
from bot.view.wording.figures import count, listing
from storage.audit import Audit, AuditLog
from storage.database import Database
from storage.documents.conversations import ConversationStore, Documents
from storage.errors import DamageError, StorageError, explain_system
from storage.index.index import Index
from storage.overrides import Overrides
from storage.processes.locks import PLATFORMS, SHARED, FileLocks
from storage.sqlite.database import open_database
from storage.sqlite.inspection import inspect
from storage.work import WorkList

SECRETS, STATUS, CLOCK = "Secret files", "Status port", "Clock"
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
ROLE, AGREEMENT = "Database role", "Other processes"
MOST_SKEW = 60.0
"""Seconds; Slack's signatures hold for 300."""


class Clock:
    """How far this machine's clock is from the servers' clocks."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._skews: list[float] = []

    def note(self, date: str) -> None:
        """Note a server's time, from HTTP's Date header."""
        try:
            told = parsedate_to_datetime(date)
        except ValueError:
            return
        self._skews.append(self._now() - told.replace(tzinfo=told.tzinfo or UTC).timestamp())

    async def look(self) -> Outcome:
        """Compare the clocks; if servers differ, believe the one closest to this machine."""
        if not self._skews:
            return Outcome("skipped: no server said what time it is", skipped=True)
        skew = min(self._skews, key=abs)
        if abs(skew) > MOST_SKEW:
            off = f"{abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
            return wrong(
                "the clock",
                f"this machine's clock is {off}; Slack's signatures fail when it is 5 minutes off",
                "Let the system set it: `timedatectl set-ntp true`",
            )
        return Outcome(f"accurate to {max(1, round(abs(skew)))} s")


def secret_files(configuration: Configuration) -> Outcome:
    """Check that nobody else can read the files that contain secrets."""
    named = (configuration.variables.get(f"{name}_file") for name in sorted(secret_names()))
    files = [Path(name) for name in named if name and Path(name).is_file()]
    # Of what is set there, only its owner knows what is secret.
    if any(dotenv_variables().values()):
        files.insert(0, Path(".env"))
    # In a container, the mode of a mounted secret can't be changed, and nobody else is there.
    findings = (
        Finding(
            str(file),
            "other users of this machine can read it, and it contains secrets",
            f"Run `chmod 600 {file}`",
            "warning",
        )
        for file in files
        if file.stat().st_mode & stat.S_IRWXO and not file.is_relative_to("/run/secrets")
    )
    note = "only you can read them" if files else "no file contains a secret"
    return Outcome(note, tuple(findings))


async def status_port(configuration: Configuration) -> Outcome:
    """Check that health checks and metrics can be served."""
    settings = configuration.settings
    if settings.council_status_port is None:
        return Outcome("off: COUNCIL_STATUS_PORT isn't set")
    return await port(
        configuration, "COUNCIL_STATUS", settings.council_status_host, settings.council_status_port
    )


@contextmanager
def listening(variables: str | tuple[str, str], host: str, port: int | None) -> Generator[None]:
    """Check that a server can listen there; name the setting if not. Raises `ConfigurationError`.

    `variables` are what the names of both settings begin with, or those of the host and the port.
    """
    host_name, port_name = (
        (f"{variables}_HOST", f"{variables}_PORT") if isinstance(variables, str) else variables
    )
    try:
        yield
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            what = f"{host} isn't an address of this machine"
            fix = "Set 127.0.0.1 for a proxy on this machine, or 0.0.0.0 for every address"
            raise ConfigurationError([Problem(host_name, what, fix)]) from error
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        what = f"nothing can listen on port {port} ({os.strerror(error.errno)})"
        fix = "Set another, or stop the program that uses it"
        raise ConfigurationError([Problem(port_name, what, fix)]) from error


async def port(configuration: Configuration, variables: str, host: str, number: int) -> Outcome:
    """Check that something can listen on a port; the running council may be doing so."""
    try:
        with listening(variables, host, number):
            # As `bot.http_server` does: of an unknown address, asyncio on Python 3.13 gives no `errno`.
            loop, kind, flags = asyncio.get_running_loop(), socket.SOCK_STREAM, socket.AI_PASSIVE
            for family, *_, address in await loop.getaddrinfo(host, number, type=kind, flags=flags):
                socket.create_server(address, family=family).close()
    except ConfigurationError as error:
        if await _is_running(configuration):
            return Outcome("in use by `council run`, which is running")
        return Outcome(findings=reported(error))
    return Outcome(f"{host}:{number} is free")


async def _is_running(configuration: Configuration) -> bool:
    """Whether a `council run` serves from this folder, or from this database."""
    if configuration.database:
        from storage.postgres.opening import is_held

        return await is_held(configuration.database, (*PLATFORMS, SHARED))
    if not (held := configuration.settings.council_data_dir / ".held").is_dir():
        return False
    locks = FileLocks(held)
    for platform in PLATFORMS:
        async with locks.acquire(platform) as is_free:
            if not is_free:
                return True
    return False


class _Store(ABC):
    """What both kinds of storage are checked for; `_waits` says why there is nothing to read yet."""

    _where: str
    _waits: str | None = NOT_YET

    @abstractmethod
    def _opened(self) -> AbstractAsyncContextManager[tuple[Database, Documents, AuditLog]]: ...

    async def channel_settings(self) -> Stored:
        """Return what admins have set in channels, once the database is known to be sound."""
        if self._waits:
            return {}
        async with self._opened() as (database, _, audit):
            return await settings_of_channels(Overrides(WorkList(database), audit))

    async def _consistent(self) -> Outcome:
        if self._waits:
            return Outcome(self._waits)
        async with self._opened() as (database, documents, _):
            report = await Index(database).check(documents)
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
            parts = (f"{len(ids)} {how}" for ids, how in differs if ids)
            what = f"the index doesn't match the conversations: {listing(parts)}"
            findings.append(Finding(self._where, what, "Run `council index rebuild`", "warning"))
        return Outcome(count(report.documents, "conversation"), tuple(findings))


class FolderChecks(_Store):
    """Checks of the data folder; they create nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database = folder / "council.db"
        self._where = str(self._database)

    def checks(self) -> list[Check]:
        """Return the checks."""
        return [
            Check(FOLDER, self._writable),
            Check(ROOM, self._room, needs=(FOLDER,)),
            Check(DATABASE, self._sound, needs=(FOLDER,)),
            Check(INDEX, self._indexed, needs=(DATABASE,), seconds=INDEX_SECONDS),
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
        where = self._where
        if not self._database.exists():
            return Outcome(NOT_YET)
        try:
            seen = await asyncio.to_thread(inspect, self._database)
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
        self._waits = OLDER if seen.is_older else None
        counted = ((seen.unreadable_runs, "run"), (seen.unreadable_steps, "model call"))
        if unreadable := [count(number, what) for number, what in counted if number]:
            return wrong(
                where,
                f"its journal has {listing(unreadable)} that can't be read",
                "No action is needed: these runs are left out, and these calls are made again. If the "
                "number keeps growing, check the disk",
                "warning",
            )
        return Outcome(self._waits or SOUND)

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[tuple[Database, Documents, AuditLog]]:
        documents = ConversationStore(self._folder / "conversations")
        async with open_database(self._database) as database:
            yield database, documents, Audit(self._folder / "audit.jsonl")

    async def _indexed(self) -> Outcome:
        has_documents = (self._folder / "conversations").is_dir()
        return await self._consistent() if has_documents else Outcome(count(0, "conversation"))


class ServerChecks(_Store):
    """Checks of a PostgreSQL database; they create nothing."""

    _where = "DATABASE_URL"

    def __init__(self, address: str, fingerprint: str) -> None:
        self._address = address
        self._fingerprint = fingerprint

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
            return not_opened(self._where, cli_wording.NO_POSTGRES)
        try:
            age = await inspect_server(self._address)
        except StorageError as error:
            return not_opened(self._where, str(error))
        if age == "newer":
            return newer(self._where)
        self._waits = {"new": NOT_YET, "older": OLDER}.get(age)
        return Outcome(self._waits or SOUND)

    async def _role(self) -> Outcome:
        from storage.postgres.inspection import is_superuser

        if not await is_superuser(self._address):
            return Outcome("no superuser")
        return wrong(
            self._where,
            "its role is a superuser: with the address, anybody can read and change everything on that "
            "server",
            "Make an ordinary role that owns the council's database, as deploy/postgres-role.sh does, "
            "and name it in the address",
            "warning",
        )

    async def _agreement(self) -> Outcome:
        from storage.postgres.inspection import configurations

        found = [] if self._waits else await configurations(self._address)
        differing = sum(each != self._fingerprint for each in found)
        if differing:
            have = "process has" if len(found) == 1 else "processes have"
            return wrong(
                "COUNCIL_CONFIG",
                f"{differing} of {len(found)} running {have} another council.toml than this one",
                "Give every machine the same file; what needs a restart is in docs/configuration.md",
                "warning",
            )
        if not found:
            return Outcome("none is running")
        return Outcome(f"{len(found)} {'has' if len(found) == 1 else 'have'} the same council.toml")

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[tuple[Database, Documents, AuditLog]]:
        from storage.postgres.opening import open_server

        async with open_server(self._address) as stores:
            yield stores.database, stores.documents, stores.audit


def not_opened(where: str, reason: str) -> Outcome:
    """Return that a database can't be used."""
    return wrong(where, reason, TROUBLE)


def newer(where: str) -> Outcome:
    """Return that a newer version wrote a database."""
    return wrong(
        where,
        "it was written by a newer version of this program",
        "Update this program, or restore an earlier backup",
    )
