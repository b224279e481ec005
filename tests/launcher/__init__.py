"""Processes of the program that start in milliseconds: forked from one that has imported it.

Each is a process as any other, with its own folder, environment and streams, and ends by signals as
any other. Only the imports are shared: they take half a second, and the tests start the program some
two hundred times.
"""

import asyncio
import atexit
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

MAIN = "from bot.cli import main; main()"
LONGEST_REQUEST = 1 << 16  # bytes: a test's words and environment
PLACE = "TESTS_LAUNCHER"
"""The variable that names the folder in which all workers of a run find the process to fork from."""
_STREAM_LIMIT = 1 << 16  # as asyncio's own


class Process:
    """A process of the program, with what `asyncio.subprocess.Process` has."""

    def __init__(self, pid: int, ended: asyncio.Future[int]) -> None:
        self.pid = pid
        self._ended = ended
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None

    @property
    def returncode(self) -> int | None:
        """How it ended: its code, or minus the signal's number; None while it runs."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    async def communicate(self, typed: bytes | None = None) -> tuple[bytes, bytes]:
        if self.stdin is not None:
            self.stdin.write(typed or b"")
            self.stdin.close()
        out, err, _ = await asyncio.gather(_all(self.stdout), _all(self.stderr), self.wait())
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal. Raises `ProcessLookupError` where it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def start(
    *words: str,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    code: str = MAIN,
) -> Process:
    """Start `council` with these words; the streams are given as to `subprocess`.

    `code` is what runs: the program, or something that changes it first.
    """
    loop = asyncio.get_running_loop()
    null = os.open(os.devnull, os.O_RDWR)
    theirs, ours = list[int](), list[int | None]()
    for number, stream in enumerate((stdin, stdout, stderr)):
        if stream == subprocess.PIPE:
            read, write = os.pipe()
            theirs.append(write if number else read)
            ours.append(read if number else write)
        else:
            is_null = stream == subprocess.DEVNULL
            theirs.append(
                os.dup(null if is_null else stream if isinstance(stream, int) else stream.fileno())
            )
            ours.append(None)
    told, tells = os.pipe()
    request = {"words": words, "cwd": str(cwd), "env": dict(env), "code": code}
    connection = _parent()
    socket.send_fds(connection, [json.dumps(request).encode()], [*theirs, tells])
    pid = int(connection.recv(32))
    for descriptor in (*theirs, tells, null):
        os.close(descriptor)
    process = Process(pid, ended := loop.create_future())

    def over() -> None:
        loop.remove_reader(told)
        # Nothing is told where the parent is gone, which kills nobody.
        code = os.read(told, 32)
        os.close(told)
        if not ended.done():
            ended.set_result(int(code or b"-9"))

    loop.add_reader(told, over)
    stdin_, stdout_, stderr_ = ours
    if stdin_ is not None:
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(stdin_, "wb", 0)
        )
        process.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
    process.stdout, process.stderr = await _reader(stdout_), await _reader(stderr_)
    return process


async def _reader(descriptor: int | None) -> asyncio.StreamReader | None:
    if descriptor is None:
        return None
    reader = asyncio.StreamReader(limit=_STREAM_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    return reader


async def _all(reader: asyncio.StreamReader | None) -> bytes:
    return await reader.read() if reader else b""


@cache
def _parent() -> socket.socket:
    """Connect to the process that all others are forked from, and start it where no other worker has."""
    place = Path(os.environ[PLACE])
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ours = _connected(place / "socket")
        if ours is None:
            _start(place / "socket")
            ours = _connected(place / "socket")
    if ours is None:
        raise RuntimeError("the process that others are forked from has ended")
    atexit.register(ours.close)
    return ours


def _connected(address: Path) -> socket.socket | None:
    """Return a connection to it; None where it isn't there, or is just ending."""
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with suppress(OSError):
        ours.connect(str(address))
        if ours.recv(1):
            return ours
    ours.close()
    return None


def _start(address: Path) -> None:
    """Start it; it listens at once, and ends when the last worker that is connected does."""
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as theirs:
        theirs.bind(str(address))
        theirs.listen()
        kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
        process = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, "-m", "tests.launcher", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **kept},
            stdin=subprocess.DEVNULL,
        )
    atexit.register(process.wait)
