"""Ports that the program listens on: which setting is wrong if it can't."""

import errno
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager

from bot.errors import ConfigurationError, Problem


@contextmanager
def listening(variables: str, host: str, port: int | None) -> Generator[None]:
    """Check that a server can listen there; name the setting if not. Raises `ConfigurationError`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            what = f"{host} isn't an address of this machine"
            fix = "Set 127.0.0.1 for a proxy on this machine, or 0.0.0.0 for every address"
            raise ConfigurationError([Problem(f"{variables}_HOST", what, fix)]) from error
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        what = f"nothing can listen on port {port} ({os.strerror(error.errno)})"
        fix = "Set another, or stop the program that uses it"
        raise ConfigurationError([Problem(f"{variables}_PORT", what, fix)]) from error
