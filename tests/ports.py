"""Ports for programs that are started later."""

import os
import socket
from itertools import count

FIRST, LAST = 16_000, 32_000
"""Below those that the kernel gives to outgoing connections, any of which could take a port meanwhile."""
OWN = 40
"""How many ports a process tries before those of a process with the next id."""

_next = count()


def free_port() -> int:
    """Return a port that nobody listens on, another one each time."""
    while True:
        port = FIRST + (os.getpid() * OWN + next(_next)) % (LAST - FIRST)
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
