"""The process that reads one file: `python -m bot.inputs.child KIND`, content in, result out.

It bounds itself before it looks at anything, in memory, time, files, processes and network. It gets no
secrets, and ends with its parent. The result is JSON, with pictures in Base64.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import struct
import sys
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import cast

import bot
import council
from bot.inputs.extraction import extract
from bot.inputs.kinds import Extractable
from bot.inputs.limits import MEMORY, SECONDS

OUT_OF_MEMORY = 3
"""The exit code for a file that takes more memory than is allowed."""
_FORBIDDEN = (
    b"socket io_uring_setup fork vfork execve execveat ptrace process_vm_readv process_vm_writev kill "
    b"tkill pidfd_send_signal setpriority chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat "
    b"utimensat"
)
"""Calls for the network and other processes, and what Landlock leaves of files."""


def bound(kind: Extractable) -> None:
    """Limit this process; what the system doesn't know is left out."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the parent
        # Where memory runs out all the same, the kernel ends this process and not the bot.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        # Memory of its own: reserved addresses and shared libraries take none (getrlimit(2)).
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        # Office files' libraries start a thread for each core, each with addresses of its own.
        if kind != "office":
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY * 3 // 2, MEMORY * 3 // 2))
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, without which neither may be done
        _give_up_files(libc)
        _give_up_calls()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _give_up_files(libc: ctypes.CDLL) -> None:
    """Leave of all files the libraries', to read, where the kernel has Landlock (landlock(7))."""
    version = libc.syscall(444, None, 0, 1)
    if version < 1:
        return
    # Truncating is known from the third version on, TCP from the fourth, signals from the sixth.
    handled = struct.pack("QQQ", 0x1FFF | (version > 2) << 14, 3 * (version > 3), 3 * (version > 5))
    rules = libc.syscall(444, handled, len(handled), 0)
    # A checkout may hold keys and data beside the program; a folder of installed packages doesn't.
    folder = Path(bot.__path__[0]).parent
    others = (path for path in sys.path if Path(path) != folder or any(folder.glob("*.dist-info")))
    for path in (*others, *bot.__path__, *council.__path__, "/usr", "/lib", "/lib64"):
        with suppress(OSError):
            place = os.open(path, os.O_PATH | os.O_DIRECTORY)
            libc.syscall(445, rules, 1, struct.pack("=Qi", 4 | 8, place), 0)
            os.close(place)
    libc.syscall(446, rules, 0)
    os.close(rules)


def _give_up_calls() -> None:
    """Forbid calls that no reading needs, where libseccomp is installed (seccomp_rule_add(3))."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(0x7FFF0000))
    number, add = library.seccomp_syscall_resolve_name, library.seccomp_rule_add_array
    refused = 0x50000 | errno.EPERM
    for name in _FORBIDDEN.split():
        add(rules, refused, number(name), 0, None)
    # `clone` without `CLONE_THREAD` makes a process; without `clone3`, libraries call it.
    add(rules, 0x50000 | errno.ENOSYS, number(b"clone3"), 0, None)
    for name, *of in (
        (b"clone", 7, 0x10000, 0),
        (b"prlimit64", 1, 0, 0),
        (b"tgkill", 1, os.getpid(), 0),
    ):
        add(rules, refused, number(name), 1, struct.pack("IiQQ", 0, *of))
    library.seccomp_load(rules)


def main() -> None:
    """Read what arrives on standard input."""
    kind = cast("Extractable", sys.argv[1])
    bound(kind)
    try:
        found = extract(kind, sys.stdin.buffer.read())
        said = json.dumps(asdict(found), default=lambda content: b64encode(content).decode())
    except (MemoryError, RecursionError):
        sys.exit(OUT_OF_MEMORY)
    sys.stdout.write(said)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
