"""`council run`: serve every configured platform in one process until it is to stop.

With a database that several processes share, each may receive questions, carry out runs, or both
(`council worker` only carries them out), and one at a time listens to Discord.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import structlog

from bot.adapters import EVERYTHING, Health, Program, Role, start_platforms
from bot.app import Library, open_council, open_dispatcher, open_shared_dispatcher, operator_of
from bot.checks.machine import listening
from bot.config.configuration import Configuration, check, reread
from bot.config.settings import Settings
from bot.errors import ConfigurationError, Problem
from bot.http_server import raise_descriptors
from bot.service.metrics import Metrics
from bot.service.run_tasks import Behind
from bot.upkeep import maintain
from council.tasks import beside, first_of
from storage.errors import StorageError
from storage.processes.locks import LOOK_SECONDS, SHARED
from storage.work import Do, Kind

log = structlog.get_logger()


HANDOVER_SECONDS = 5.0
"""How much longer than its drain a process that is being replaced may take."""


async def hold_data(configuration: Configuration, library: Library, stack: AsyncExitStack) -> None:
    """Keep a database from being moved. Raises `ConfigurationError`."""
    if configuration.database:
        holding = library.locks.acquire(SHARED, wait=LOOK_SECONDS, shared=True)
        if not await stack.enter_async_context(holding):
            what = "what this database holds is being copied or replaced"
            fix = "Start again when council migrate or council restore has ended"
            raise ConfigurationError([Problem("DATABASE_URL", what, fix)])


async def _hold_platforms(configuration: Configuration, library: Library, stack: AsyncExitStack) -> None:
    """Allow only one process to serve a platform from this folder: two would resume the same runs."""
    await hold_data(configuration, library, stack)
    if configuration.database:
        return
    settings = configuration.settings
    tokens = {"Discord": settings.discord_token, "Slack": settings.slack_bot_token}
    wait = configuration.operations.durability.drain_seconds + HANDOVER_SECONDS
    for platform in (name for name, token in tokens.items() if token):
        if not await stack.enter_async_context(library.locks.acquire(platform.lower(), wait=wait)):
            what = f"another council run serves {platform} from this folder"
            fix = "Stop it first, or use another folder for this one"
            raise ConfigurationError([Problem("COUNCIL_DATA_DIR", what, fix)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Surfaces:
    """What a process listens on: `check` refuses settings, `hold` keeps out a second process.

    `start` opens them. What is `behind` others shares no runs with workers and has no status port.
    """

    check: Callable[[Settings], None]
    hold: Callable[[Configuration, Library, AsyncExitStack], Awaitable[None]]
    start: Callable[[Program], Awaitable[None]]
    behind: Behind | None = None


PLATFORMS = Surfaces(check=check, hold=_hold_platforms, start=start_platforms)


async def serve(
    configuration: Configuration,
    library: Library,
    role: Role = EVERYTHING,
    surfaces: Surfaces = PLATFORMS,
) -> str | None:
    """Do what the role says until SIGTERM or SIGINT, then let runs end, if there is time.

    Returns why a platform is lost for good, if that ends it. A signal during the start aborts it.
    Raises `ConfigurationError` if there is nothing to listen to, and `WriterError` as soon as nothing
    can be written any more.
    """
    settings, operations = configuration.settings, configuration.operations
    surfaces.check(settings)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    failed = library.database.failed
    failed.add_done_callback(lambda _: ended.set())
    raise_descriptors()
    tune_interpreter()

    async def until_ended() -> None:
        await ended.wait()

    async with AsyncExitStack() as stack:
        health, metrics = Health(library.database), Metrics()
        if settings.council_status_port and surfaces.behind is None:
            from bot.status import Status

            host, port = settings.council_status_host, settings.council_status_port
            with listening("COUNCIL_STATUS_HOST", host, port):
                await stack.enter_async_context(Status(health, metrics).serve(host, port))
        council = await stack.enter_async_context(open_council(configuration, library, metrics))
        shared = None
        if configuration.database and surfaces.behind is None:
            opening = open_shared_dispatcher(configuration, library, council.runs)
            dispatcher, shared = await stack.enter_async_context(opening)
        else:
            dispatcher = open_dispatcher(configuration, library, council, behind=surfaces.behind)
        health.dispatcher = dispatcher
        program = Program(
            configuration, library, council, dispatcher, metrics, health, stack, role, shared
        )

        async def started() -> bool:
            await surfaces.hold(configuration, library, stack)
            await _watch(program)
            await surfaces.start(program)
            if shared and role.works:
                program.endings.append(await stack.enter_async_context(shared.working()))
            does: dict[Kind, Do] = {
                "audit": library.overrides.append,
                "forget": library.forgetting.delete,
            }
            if dispatcher.operators:
                does["tell"] = dispatcher.operators.send
            dispatcher.work.open(does)
            stack.push_async_callback(dispatcher.work.close)
            days, messages = settings.council_retention_days, settings.council_retention_messages
            await stack.enter_async_context(beside(maintain(library, days, messages=messages)))
            log.info("ready")
            return True

        if not await first_of(started, until_ended):
            log.info("ended_before_ready")
        try:
            health.phase = "serving"
            lost = await first_of(until_ended, *program.endings)
            if lost is not None:
                log.error("lost_for_good", connection=lost)
        finally:
            health.phase = "ending"
            if not failed.done():
                log.info("draining", seconds=operations.durability.drain_seconds)
            await dispatcher.tasks.drain(0 if failed.done() else None)
        if failed.done():
            raise failed.result()
        return lost


async def _watch(program: Program) -> None:
    """Apply changed councils while the bot runs: when the file changes, and at SIGHUP.

    Look whether other processes have the same file.
    """
    fingerprint = program.configuration.fingerprint

    def swap(changed: Configuration) -> None:
        nonlocal fingerprint
        fingerprint = changed.fingerprint
        program.council.directory.add(changed.profiles.values())
        program.dispatcher.reconfigure(operator_of(changed, changed.profiles))

    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    watching = watch(program.configuration, asked, swap)
    comparing = compare(lambda: fingerprint, program.library.locks.publish)
    await program.stack.enter_async_context(beside(watching, comparing))


def tune_interpreter() -> None:
    """Set the interpreter up for a thousand runs at once.

    Garbage is collected less often: looking through all the runs' objects again and again takes a
    quarter of the process's time, and what was made at the start stays in any case. A thread that
    computes gives way after half a millisecond, not five: the loop needs a turn a thousand times a
    second.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    sys.setswitchinterval(0.0005)


COMPARE_SECONDS = 60.0
"""A file that is changed on one machine after the other may differ for as long."""

Swap = Callable[[Configuration], None]


async def watch(
    configuration: Configuration, asked: asyncio.Event, swap: Swap, *, every: float = 2.0
) -> None:
    """Reload when the file changes, and whenever `asked`; until cancelled."""
    path = configuration.settings.council_config

    def stamp() -> tuple[int, int, int] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    seen = await asyncio.to_thread(stamp)
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await asked.wait()
        now = await asyncio.to_thread(stamp)
        if asked.is_set() or now != seen:
            asked.clear()
            seen = now
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
    fingerprint: Callable[[], str],
    publish: Callable[[str], Awaitable[list[str]]],
    *,
    every: float = COMPARE_SECONDS,
) -> None:
    """Log once if other processes' files differ for longer than `every`; until cancelled.

    `publish` tells them this file's fingerprint and returns theirs.
    """
    looks = 0
    while True:
        mine = fingerprint()
        with suppress(StorageError):  # others have more to say about it
            differing = [each for each in await publish(mine) if each != mine]
            looks = looks + 1 if differing else 0
            if looks == 2:
                log.warning("configuration_differs", processes=len(differing))
        await asyncio.sleep(every)
