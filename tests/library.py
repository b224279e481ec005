"""A data folder for tests that only need one to be there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bot import app
from bot.app import Library
from storage.sqlite.opening import DATABASE


@asynccontextmanager
async def open_library(folder: Path) -> AsyncGenerator[Library]:
    """Open a data folder as the program does; a new one begins with a copy of an empty database.

    Migrating an empty file takes as long as everything else about opening it.
    """
    if not _made():
        with TemporaryDirectory() as made:
            async with app.open_library(Path(made)):
                pass
            _keep(Path(made))
    _begin(folder)
    async with app.open_library(folder) as library:
        yield library


@cache
def _made() -> list[bytes]:
    """Return the empty database, once it is made."""
    return []


def _keep(folder: Path) -> None:
    _made().append((folder / DATABASE).read_bytes())


def _begin(folder: Path) -> None:
    database = folder / DATABASE
    if not database.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        database.touch(mode=0o600)
        database.write_bytes(_made()[0])
