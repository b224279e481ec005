"""The machine: files with secrets, the status port, the clock."""

import asyncio
import errno
import os
import socket
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path

from bot.checks.check import Finding, Outcome, wrong
from bot.config.configuration import Configuration
from bot.config.settings import dotenv_variables, secret_names
from bot.errors import ConfigurationError, Problem
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
