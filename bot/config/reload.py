"""A changed `council.toml` is in force for the next run; a broken one changes nothing."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import structlog

from bot.config.configuration import Configuration, ConfigurationError, reread
from council.profile import Profile

log = structlog.get_logger()

LOOK_SECONDS = 2.0

Swap = Callable[[Mapping[str, Profile]], None]


async def watch(
    configuration: Configuration, asked: asyncio.Event, swap: Swap, *, every: float = LOOK_SECONDS
) -> None:
    """Reload when the file has changed, and whenever it is `asked` for; until cancelled."""
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
    """Read the file again, and use its profiles if all of it is valid.

    Variables are as they were at the start: the keys that are sent are those, too.
    """
    try:
        profiles = (await asyncio.to_thread(reread, configuration)).profiles
    except ConfigurationError as error:
        log.warning("configuration_unchanged", problems=[str(each) for each in error.problems])
        return
    if not profiles:
        log.warning("configuration_unchanged", problems=["there is no profile left in council.toml"])
        return
    swap(profiles)
    log.info("configuration_changed", profiles=sorted(profiles))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
