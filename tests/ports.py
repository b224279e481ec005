"""Ports for programs that are started later."""

import atexit
import os
import socket
from collections import deque
from itertools import count

FIRST, LAST = 16_000, 32_000
"""Below those that the kernel gives to outgoing connections, any of which could take a port meanwhile."""
OWN = 40
"""How many ports a process tries before those of a process with the next id."""
KEPT = 64
"""How many of its latest ports a process keeps from others."""

_next = count()
_kept = deque[socket.socket]()


@atexit.register
def _close_kept() -> None:
    """Close them at the end: Python warns of each one that is left open."""
    while _kept:
        _kept.popleft().close()


def free_port() -> int:
    """Return a port that nobody listens on, another one each time.

    No other process gets it from here meanwhile: it stays bound, which those that listen with
    `SO_REUSEADDR`, as servers do, may share.
    """
    while True:
        port = FIRST + (os.getpid() * OWN + next(_next)) % (LAST - FIRST)
        kept = socket.socket()
        try:
            kept.bind(("127.0.0.1", port))
        except OSError:
            kept.close()
            continue
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _kept.append(kept)
        if len(_kept) > KEPT:
            _kept.popleft().close()
        return port
