"""A changed `council.toml` applies from the next run; a broken one changes nothing."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from bot.config.configuration import Configuration, reread
from bot.errors import ConfigurationError

log = structlog.get_logger()

LOOK_SECONDS = 2.0

Swap = Callable[[Configuration], None]


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


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
