"""Files that exist either complete or not at all, even if the process dies while writing them.

A copy being made has a folder of its own (`staging`), which is deleted when its process is done with
it. What a killed process leaves of one may hold data that is to be forgotten.
"""

import errno
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_PREFIX = ".staging-"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which version of a file: its time of change and its size."""

    mtime_ns: int
    size: int


def stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_size)


def read_regular(path: Path, largest: int | None = None) -> tuple[bytes, Stamp]:
    """Read a regular file of at most `largest` bytes, or a link to one.

    Nothing else is opened: reading a named pipe would wait for its writer, and a device may never end.
    Raises `OSError`.
    """
    _check_regular(path, path.stat(), largest)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - a descriptor has no path to open
        status = os.fstat(file.fileno())
        _check_regular(path, status, largest)
        return file.read(-1 if largest is None else largest), stamp(status)


def _check_regular(path: Path, status: os.stat_result, largest: int | None) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "it is not a regular file", str(path))
    if largest is not None and status.st_size > largest:
        raise OSError(0, f"it is larger than {largest // 10**6} MB", str(path))


def replace_file(path: Path, content: bytes) -> Stamp:
    """Replace a file's content atomically and durably; only its owner can read it.

    The temporary file is hidden in the same folder: `.{name}.{random}.tmp`. A new version is never
    stamped older than the one it replaces, even if the clock was set back.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path to open
            file.write(content)
            file.flush()
            with suppress(FileNotFoundError):
                replaced = path.stat().st_mtime_ns
                if os.fstat(descriptor).st_mtime_ns <= replaced:
                    os.utime(descriptor, ns=(replaced + 1, replaced + 1))
            os.fsync(descriptor)
            written = stamp(os.fstat(descriptor))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return written


def create_file(path: Path, content: Iterable[bytes], mtime_ns: int | None = None) -> None:
    """Write a file that isn't there yet; only its owner can read it. It isn't made durable."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path to open
        file.writelines(content)
        file.flush()
        if mtime_ns is not None:
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))


def move_files(place: Path, names: Iterable[str], folder: Path) -> None:
    """Move files into a folder, in the place of those that are there; durable on return."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        (place / name).replace(folder / name)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a rename is stored in the folder, not in the file."""
    with _open(folder) as descriptor:
        os.fsync(descriptor)


def check_room(folder: Path, size: int) -> None:
    """Write a file of that size without a name, which leaves nothing. Raises `OSError`."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        left = memoryview(bytes(size))
        while left:
            left = left[file.write(left) :]


@contextmanager
def staging(folder: Path) -> Generator[Path]:
    """Yield an empty folder that is this process's alone and is deleted afterwards."""
    try:
        made = tempfile.TemporaryDirectory(dir=folder, prefix=_PREFIX)
    except OSError as error:  # it would name the folder that couldn't be made
        raise OSError(error.errno, error.strerror, str(folder)) from error
    with made as place, _open(Path(place)) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield Path(place)


def clear_abandoned(folder: Path) -> None:
    """Delete the folders that no living process holds."""
    for place in folder.glob(f"{_PREFIX}*"):
        try:
            with _open(place) as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place)
        except (BlockingIOError, FileNotFoundError):  # in use, or done with just now
            continue


@contextmanager
def _open(place: Path) -> Generator[int]:
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
