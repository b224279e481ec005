"""A changed `council.toml` applies from the next run; a broken one changes nothing.

Processes on one database should have the same: each tells the others which it has.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import structlog

from bot.config.configuration import Configuration, reread
from bot.errors import ConfigurationError
from storage.errors import StorageError

log = structlog.get_logger()

LOOK_SECONDS = 2.0
COMPARE_SECONDS = 60.0
"""A file that is changed on one machine after the other may differ for as long."""

Swap = Callable[[Configuration], None]
Publish = Callable[[str], Awaitable[list[str]]]
"""Tells other processes a file's fingerprint; returns theirs."""


async def watch(
    configuration: Configuration, asked: asyncio.Event, swap: Swap, *, every: float = LOOK_SECONDS
) -> None:
    """Reload when the file changes, and whenever `asked`; until cancelled."""
    path = configuration.settings.council_config
    seen = await asyncio.to_thread(_stamp, path)
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await asked.wait()
        stamp = await asyncio.to_thread(_stamp, path)
        if asked.is_set() or stamp != seen:
            asked.clear()
            seen = stamp
            await reload(configuration, swap)


async def reload(configuration: Configuration, swap: Swap) -> None:
    """Read the file again, and use its profiles and its rules of access if all of it is valid.

    Variables, and so the keys that are sent, stay as they were at the start.
    """
    try:
        changed = await asyncio.to_thread(reread, configuration)
    except ConfigurationError as error:
        log.warning("configuration_unchanged", problems=[str(each) for each in error.problems])
        return
    if not changed.profiles:
        log.warning("configuration_unchanged", problems=["there is no profile left in council.toml"])
        return
    swap(changed)
    log.info("configuration_changed", profiles=sorted(changed.profiles))


async def compare(
    fingerprint: Callable[[], str], publish: Publish, *, every: float = COMPARE_SECONDS
) -> None:
    """Log once if other processes' files differ for longer than `every`; until cancelled."""
    looks = 0
    while True:
        mine = fingerprint()
        with suppress(StorageError):  # others have more to say about it
            differing = [each for each in await publish(mine) if each != mine]
            looks = looks + 1 if differing else 0
            if looks == 2:
                log.warning("configuration_differs", processes=len(differing))
        await asyncio.sleep(every)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
