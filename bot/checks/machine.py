"""The machine: files with secrets, the status port, the clock."""

import asyncio
import stat
import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path

from bot.checks.check import Check, Finding, Outcome, found, wrong
from bot.config.configuration import Configuration
from bot.config.ports import listening
from bot.config.settings import dotenv_variables, secret_names
from bot.errors import ConfigurationError
from bot.view.wording.doctor import doctor as wording
from storage.processes.locks import PLATFORMS, SHARED, FileLocks

SECRETS, STATUS, CLOCK = "Secret files", "Status port", "Clock"
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
            return Outcome(wording.NO_TIME_SEEN, skipped=True)
        skew = min(self._skews, key=abs)
        if abs(skew) > MOST_SKEW:
            return wrong("the clock", wording.clock_wrong(skew))
        return Outcome(wording.clock_right(skew))


def machine_checks(configuration: Configuration) -> list[Check]:
    """Return the checks that need no server."""
    return [
        Check(SECRETS, lambda: secret_files(configuration)),
        Check(STATUS, lambda: status_port(configuration)),
    ]


async def secret_files(configuration: Configuration) -> Outcome:
    """Check that nobody else can read the files that contain secrets."""
    return await asyncio.to_thread(_secret_files, configuration)


def _secret_files(configuration: Configuration) -> Outcome:
    named = (configuration.variables.get(f"{name}_file") for name in sorted(secret_names()))
    files = [Path(name) for name in named if name and Path(name).is_file()]
    # Of what is set there, only its owner knows what is secret.
    if any(dotenv_variables().values()):
        files.insert(0, Path(".env"))
    # In a container, the mode of a mounted secret can't be changed, and nobody else is there.
    findings = (
        found(str(file), wording.readable_by_others(str(file)), "warning")
        for file in files
        if file.stat().st_mode & stat.S_IRWXO and not file.is_relative_to("/run/secrets")
    )
    return Outcome(wording.PRIVATE if files else wording.NO_FILES, tuple(findings))


async def status_port(configuration: Configuration) -> Outcome:
    """Check that health checks and metrics can be served."""
    settings = configuration.settings
    if settings.council_status_port is None:
        return Outcome(wording.NOT_LISTENING)
    return await port(
        configuration, "COUNCIL_STATUS", settings.council_status_host, settings.council_status_port
    )


async def port(configuration: Configuration, variables: str, host: str, number: int) -> Outcome:
    """Check that something can listen on a port; the running council may be doing so."""
    try:
        with listening(variables, host, number):
            server = await asyncio.start_server(lambda _, writer: writer.close(), host, number)
            server.close()
            await server.wait_closed()
    except ConfigurationError as error:
        if await _is_running(configuration):
            return Outcome(wording.IN_USE)
        return Outcome(findings=tuple(Finding(one.where, one.what, one.fix) for one in error.problems))
    return Outcome(f"{host}:{number} is free")


async def _is_running(configuration: Configuration) -> bool:
    """Whether a `council run` serves from this folder, or from this database."""
    if configuration.database:
        from storage.postgres.opening import is_held

        return await is_held(configuration.database, (*PLATFORMS, SHARED))
    held = configuration.settings.council_data_dir / ".held"
    if not held.is_dir():
        return False
    locks = FileLocks(held)
    for platform in PLATFORMS:
        async with locks.acquire(platform) as is_free:
            if not is_free:
                return True
    return False
