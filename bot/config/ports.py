"""Ports that the program listens on: which setting is wrong if it can't, and how many may connect."""

import errno
import os
import resource
import socket
from collections.abc import Generator
from contextlib import contextmanager

import structlog

from bot.errors import ConfigurationError, Problem

log = structlog.get_logger()

SHARE = 10
"""A port's connections take at most one in so many of the process's descriptors."""
MOST_DESCRIPTORS = 65_536
"""What the process asks for, where its hard limit allows it: more would help nobody here."""


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


def most_connections() -> int:
    """Return how many connections a port may take."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(
        1, (MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, MOST_DESCRIPTORS)) // SHARE
    )


def raise_descriptors() -> None:
    """Let this process open as many files and connections as the system allows it, up to a bound."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # a sandbox may forbid it
        log.warning("descriptors_not_raised", reason=error)
