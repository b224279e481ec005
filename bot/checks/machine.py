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
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path

from bot.checks.check import TROUBLE, Check, Outcome, wrong
from bot.config.configuration import Configuration
from bot.config.settings import dotenv_variables, secret_names
from bot.errors import ConfigurationError, Problem
from bot.service.channels import ChannelSettings
from bot.service.limits import NANO
from bot.view.message import escaped_line
from bot.view.wording import cli as cli_wording
from bot.view.wording.figures import count, listing
from council.document.conversation import Source
from council.profile import Profile
from storage.audit import Audit, AuditLog
from storage.database import Database
from storage.documents.conversations import Conversations, ConversationStore
from storage.errors import DamageError, StorageError, explain_system
from storage.index.index import Index
from storage.journal.spending import Spending
from storage.overrides import Overrides
from storage.processes.locks import PLATFORMS, SHARED, FileLocks
from storage.scope import Scope
from storage.sqlite.database import open_database
from storage.sqlite.opening import inspect
from storage.work import WorkList

FOLDER, ROOM, DATABASE, INDEX = "Data folder", "Disk space", "Database", "Index"
MOST_NAMED = 3
ENOUGH = 500
"""Megabytes that should be free."""
INDEX_SECONDS = 60.0
OTHERS = stat.S_IRWXG | stat.S_IRWXO
NOT_YET = "created at the first start"
OLDER = "from an earlier version; the next start brings it up to date"
SOUND = "sound, and its journal can be read"
NEWER = (
    "it was written by a newer version of this program",
    "Update this program, or restore an earlier backup",
)
ROLE, AGREEMENT = "Database role", "Other processes"
MOST_SKEW = 60.0
"""Seconds; Slack's signatures hold for 300."""


class Clock:
    """How far this machine's clock is from the servers' clocks."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._skews: list[float] = []

    def note(self, date: str) -> None:
        with suppress(ValueError):
            at = parsedate_to_datetime(date)
            self._skews.append(self._now() - at.replace(tzinfo=at.tzinfo or UTC).timestamp())

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
    named = (configuration.variables.get(f"{name}_file") for name in sorted(secret_names()))
    files = [Path(name) for name in named if name and Path(name).is_file()]
    # Of what is set there, only its owner knows what is secret.
    if any(dotenv_variables().values()):
        files.insert(0, Path(".env"))
    # In a container, the mode of a mounted secret can't be changed, and nobody else is there.
    findings = (
        Problem(
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
    settings = configuration.settings
    if settings.council_status_port is None:
        return Outcome("off: COUNCIL_STATUS_PORT isn't set")
    host = settings.council_status_host
    return await port(configuration, "COUNCIL_STATUS_HOST", host, settings.council_status_port)


@contextmanager
def listening(name: str, host: str, port: int | None) -> Generator[None]:
    """Check that a server can listen there; `name` is the host's setting, and tells the port's.

    Raises `ConfigurationError`.
    """
    try:
        yield
    except OSError as error:
        what = f"{host} isn't an address of this machine"
        fix = "Set 127.0.0.1 for a proxy on this machine, or 0.0.0.0 for every address"
        if not isinstance(error, socket.gaierror) and error.errno != errno.EADDRNOTAVAIL:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            name = name.replace("HOST", "PORT").replace("host", "port")
            what = f"nothing can listen on port {port} ({os.strerror(error.errno)})"
            fix = "Set another, or stop the program that uses it"
        raise ConfigurationError([Problem(name, what, fix)]) from error


async def port(configuration: Configuration, name: str, host: str, number: int) -> Outcome:
    """Check that something can listen on a port; the running council may be doing so."""
    try:
        with listening(name, host, number):
            # As `bot.http_server` does: of an unknown address, asyncio on Python 3.13 gives no `errno`.
            loop, kind, flags = asyncio.get_running_loop(), socket.SOCK_STREAM, socket.AI_PASSIVE
            for family, *_, address in await loop.getaddrinfo(host, number, type=kind, flags=flags):
                socket.create_server(address, family=family).close()
    except ConfigurationError as error:
        if await _is_running(configuration):
            return Outcome("in use by `council run`, which is running")
        return Outcome(findings=tuple(error.problems))
    return Outcome(f"{host}:{number} is free")


async def _is_running(configuration: Configuration) -> bool:
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


class Store(ABC):
    """What both kinds of storage are checked for; `_waits` says why there is nothing to read yet."""

    _where: str
    _waits: str | None = NOT_YET

    @abstractmethod
    def checks(self) -> list[Check]:
        """Return the checks, which create nothing."""

    @abstractmethod
    def _opened(self) -> AbstractAsyncContextManager[tuple[Database, Conversations, AuditLog]]: ...

    async def channel_settings(self) -> Mapping[Scope, Mapping[str, object]]:
        """Return what admins have set in channels, by key, once the database is known to be sound."""
        stored = defaultdict[Scope, dict[str, object]](dict)
        if not self._waits:
            async with self._opened() as (database, _, audit):
                overrides = Overrides(WorkList(database), audit)
                for key in ChannelSettings.model_fields:
                    for scope, (value, _) in (await overrides.everywhere(key)).items():
                        stored[scope][key] = value
        return stored

    async def worst(self, at: Scope, profile: Profile) -> float | None:
        """Return the dollars that a council's last ten answers there cost at most; `None` below ten."""
        here = Source(platform=at.platform, workspace=at.workspace, channel=at.channel)
        async with self._opened() as (database, *_):
            worst = await Spending(database).worst(here, profile)
        return None if worst is None else worst / NANO

    async def _consistent(self) -> Outcome:
        if self._waits:
            return Outcome(self._waits)
        async with self._opened() as (database, documents, _):
            report = await Index(database).check(documents)
        findings = [
            Problem(
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
            findings.append(Problem(self._where, what, "Run `council index rebuild`", "warning"))
        return Outcome(count(report.documents, "conversation"), tuple(findings))


class FolderChecks(Store):
    """Checks of the data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database = folder / "council.db"
        self._where = str(self._database)

    def checks(self) -> list[Check]:
        return [
            Check(FOLDER, self._writable),
            Check(ROOM, self._room, needs=(FOLDER,)),
            Check(DATABASE, self._sound, needs=(FOLDER,)),
            Check(INDEX, self._indexed, needs=(DATABASE,), seconds=INDEX_SECONDS),
        ]

    async def _writable(self) -> Outcome:
        where, nearest = f"COUNCIL_DATA_DIR ({self._folder})", self._nearest()
        if not nearest.is_dir():
            what = f"{nearest} is a file, not a folder"
            return wrong(where, what, "Move the file away, or set COUNCIL_DATA_DIR to another folder")
        try:
            with tempfile.TemporaryFile(dir=nearest) as file:
                file.write(b"\n")
        except OSError as error:
            reason = explain_system(nearest, error).partition(": ")[2].partition(";")[0]
            remedy = "Make it writable for the user that runs the council"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                remedy = "Free some space there"
            what = f"nothing can be written there ({reason})"
            return wrong(where, what, f"{remedy}, or set COUNCIL_DATA_DIR to another folder")
        if nearest != self._folder:
            return Outcome(NOT_YET)
        for path, at, do, mode in (
            (self._folder, where, "open", 700),
            (self._database, self._where, "read", 600),
        ):
            if path.exists() and path.stat().st_mode & OTHERS:
                what = f"other users of this machine can {do} it, and it contains questions and answers"
                return wrong(at, what, f"Run `chmod {mode} {path}`", "warning")
        return Outcome(str(self._folder))

    def _nearest(self) -> Path:
        return next(path for path in (self._folder, *self._folder.absolute().parents) if path.exists())

    async def _room(self) -> Outcome:
        megabytes = shutil.disk_usage(self._nearest()).free // 1_000_000
        if megabytes < ENOUGH:
            return wrong(
                f"COUNCIL_DATA_DIR ({self._folder})",
                f"only {megabytes:,} MB are free; at least {ENOUGH:,} MB should be",
                "Free some space: on a full disk, runs wait and new questions are refused",
                "warning",
            )
        return Outcome(
            f"{megabytes / 1000:,.0f} GB free" if megabytes >= 1000 else f"{megabytes} MB free"
        )

    async def _sound(self) -> Outcome:
        if not self._database.exists():
            return Outcome(NOT_YET)
        try:
            seen = await asyncio.to_thread(inspect, self._database)
        except DamageError:
            return wrong(
                self._where,
                "it is damaged",
                "Stop every process that has it open, then start: the database is set aside, what is "
                "readable in its journal is carried over, and the index is rebuilt",
            )
        except StorageError as error:
            return wrong(self._where, str(error), TROUBLE)
        if seen.is_newer:
            return wrong(self._where, *NEWER)
        self._waits = OLDER if seen.is_older else None
        counted = ((seen.unreadable_runs, "run"), (seen.unreadable_steps, "model call"))
        if unreadable := [count(number, what) for number, what in counted if number]:
            return wrong(
                self._where,
                f"its journal has {listing(unreadable)} that can't be read",
                "No action is needed: these runs are left out, and these calls are made again. If the "
                "number keeps growing, check the disk",
                "warning",
            )
        return Outcome(self._waits or SOUND)

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[tuple[Database, Conversations, AuditLog]]:
        documents = ConversationStore(self._folder / "conversations")
        async with open_database(self._database) as database:
            yield database, documents, Audit(self._folder / "audit.jsonl")

    async def _indexed(self) -> Outcome:
        has_documents = (self._folder / "conversations").is_dir()
        return await self._consistent() if has_documents else Outcome(count(0, "conversation"))


class ServerChecks(Store):
    """Checks of a PostgreSQL database."""

    _where = "DATABASE_URL"

    def __init__(self, address: str, fingerprint: str) -> None:
        self._address = address
        self._fingerprint = fingerprint

    def checks(self) -> list[Check]:
        return [
            Check(DATABASE, self._sound),
            Check(ROLE, self._role, needs=(DATABASE,)),
            Check(AGREEMENT, self._agreement, needs=(DATABASE,)),
            Check(INDEX, self._consistent, needs=(DATABASE,), seconds=INDEX_SECONDS),
        ]

    async def _sound(self) -> Outcome:
        try:
            from storage.postgres.opening import inspect_server
        except ModuleNotFoundError:
            return wrong(self._where, cli_wording.NO_POSTGRES, TROUBLE)
        try:
            age = await inspect_server(self._address)
        except StorageError as error:
            return wrong(self._where, str(error), TROUBLE)
        if age == "newer":
            return wrong(self._where, *NEWER)
        self._waits = {"new": NOT_YET, "older": OLDER}.get(age)
        return Outcome(self._waits or SOUND)

    async def _role(self) -> Outcome:
        from storage.postgres.opening import is_superuser

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
        from storage.postgres.opening import configurations

        found = [] if self._waits else await configurations(self._address)
        if differing := sum(each != self._fingerprint for each in found):
            have = "process has" if len(found) == 1 else "processes have"
            return wrong(
                "COUNCIL_CONFIG",
                f"{differing} of {len(found)} running {have} another council.toml than this one",
                "Give every machine the same file; what needs a restart is in docs/configuration.md",
                "warning",
            )
        have = "has" if len(found) == 1 else "have"
        return Outcome(f"{len(found)} {have} the same council.toml" if found else "none is running")

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[tuple[Database, Conversations, AuditLog]]:
        from storage.postgres.opening import open_server

        async with open_server(self._address) as stores:
            yield stores.database, stores.documents, stores.audit
