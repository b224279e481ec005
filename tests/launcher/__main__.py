"""The process that all others are forked from: `python -m tests.launcher DESCRIPTOR`."""

import atexit
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pkgutil import walk_packages
from typing import cast

import bot
import council
import storage
from tests.launcher import LONGEST_REQUEST

OURS = (bot, council, storage)
LAZY = (
    "importlib.readers",
    "jinja2",
    "rich._emoji_codes",
    "rich.console",
    "rich.markdown",
    "tarfile",
    "typer._adapters",
    "typer._click._textwrap",
    "typer.rich_utils",
)
"""What the program and its libraries import only when they use it, and most processes do."""


@dataclass(frozen=True, slots=True)
class Start:
    """What is to run where, and the descriptors of its streams."""

    words: list[str]
    cwd: str
    env: dict[str, str]
    code: str
    streams: list[int]


def serve(listening: socket.socket) -> Start | None:
    """Fork for each request, and tell who asked how each child ended.

    Returns in each child what it is to run, and None in the parent once nobody is connected any more;
    children that a failed test has left are killed then.
    """
    children: dict[int, int] = {}
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    signal.signal(signal.SIGCHLD, _nothing)  # the descriptor above hears of it
    workers: set[socket.socket] = set()
    selector = selectors.DefaultSelector()
    for each in (listening, wake):
        selector.register(each, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is wake:
                wake.recv(4096)
                reap(children)
                continue
            if key.fileobj is listening:
                worker, _ = listening.accept()
                worker.send(b"+")
                workers.add(worker)
                selector.register(worker, selectors.EVENT_READ)
                continue
            worker = cast("socket.socket", key.fileobj)
            said, descriptors, _, _ = socket.recv_fds(worker, LONGEST_REQUEST, 4)
            if not said:
                selector.unregister(worker)
                workers.remove(worker)
                worker.close()
                if workers:
                    continue
                kill(children)
                return None
            *streams, tells = descriptors
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                # A shell's background job ignores Ctrl-C, and so would all that it starts.
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for each in (selector, listening, wake, woken, *workers):
                    each.close()
                for descriptor in (tells, *children.values()):
                    os.close(descriptor)
                return Start(**json.loads(said), streams=streams)
            children[pid] = tells
            for descriptor in streams:
                os.close(descriptor)
            worker.send(str(pid).encode())


def _nothing(*_: object) -> None:
    pass


def kill(children: Iterable[int]) -> None:
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def reap(children: dict[int, int]) -> None:
    for pid in [*children]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            descriptor = children.pop(pid)
            os.write(descriptor, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(descriptor)


def run(start: Start) -> None:
    for number, descriptor in enumerate(start.streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(start.cwd)
    os.environ.clear()
    os.environ.update(start.env)
    sys.argv = ["council", *start.words]
    # As Python makes them where LANG is C.UTF-8.
    for name, number, mode, errors, buffering in (
        ("stdin", 0, "r", "surrogateescape", -1),
        ("stdout", 1, "w", "surrogateescape", 1 if os.isatty(1) else -1),
        ("stderr", 2, "w", "backslashreplace", 1),
    ):
        setattr(sys, name, os.fdopen(number, mode, buffering, "utf-8", errors, closefd=False))
    try:
        exec(compile(start.code, "<start>", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        code = ended.code or 0
    else:
        code = 0
    end(code)


def end(code: int) -> None:
    """End as Python does, but leave what was imported to the kernel: taking it apart takes 0.07 s.

    What the program itself has left is taken apart, so that a forgotten task or file is still reported.
    """
    # Python's own names for what it does at an end; multiprocessing calls the first one, too.
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # Python tells what it can't write
    os._exit(code & 0xFF)


def main() -> None:
    """Import, and serve whoever started this."""
    modules = [
        each.name for package in OURS for each in walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for name in (*modules, *LAZY):
        if not name.endswith(".__main__"):
            importlib.import_module(name)
    gc.freeze()
    if start := serve(socket.socket(fileno=int(sys.argv[1]))):
        run(start)


main()
