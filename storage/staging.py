"""Copies in the making: folders inside the data folder, gone when their process is done with them.

What a killed process has left of one may hold what is to be forgotten.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = ".staging-"


@contextmanager
def staging(folder: Path) -> Generator[Path]:
    """Give an empty folder, for this process as long as it lives."""
    try:
        made = tempfile.TemporaryDirectory(dir=folder, prefix=_PREFIX)
    except OSError as error:  # it would name the folder that couldn't be made
        raise OSError(error.errno, error.strerror, str(folder)) from error
    with made as place, _open(Path(place)) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield Path(place)


def clear_abandoned(folder: Path) -> None:
    """Delete what no living process holds."""
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
