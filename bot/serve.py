"""`council run`: serve every configured platform in one process until it is told to stop.

With a database that several processes share, each may receive questions, carry out runs, or both
(`council worker` only carries them out), and one at a time listens to Discord.
"""

import asyncio
import gc
import math
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import structlog
from pydantic import SecretStr

from bot.app import Council, Library, open_council, open_dispatcher, open_lookup, operator_of
from bot.config.configuration import Configuration
from bot.config.platforms import check, serves_workspaces, shares
from bot.config.ports import listening, raise_descriptors
from bot.config.reload import compare, watch
from bot.config.settings import Settings, token_keys
from bot.errors import ConfigurationError, Problem, VenueError
from bot.health import Health
from bot.past.lookup import Lookup
from bot.service.delivery.outbox import Outbox, SharedRateLimits
from bot.service.dispatcher import Dispatcher
from bot.service.metrics import Metrics
from bot.upkeep import Job, forget_removed, maintain
from bot.view.wording import cli as wording
from bot.worker import Worker, open_shared_queue
from storage.database import Database
from storage.errors import DatabaseError
from storage.processes.locks import LOOK_SECONDS, SHARED

if TYPE_CHECKING:
    from bot.discord.bot import DiscordBot
    from bot.slack.oauth.flow import SlackApp

log = structlog.get_logger()

HANDOVER_SECONDS = 5.0
"""How much longer than its drain a process that is being replaced may take."""

HOLDER_FIRST_SECONDS = 4.0
"""How long a database must be back before another process may take Discord from the one that has it."""

Endings = list[Callable[[], Awaitable[str]]]
"""What ends the process by itself: each waits until something is lost for good, and returns why."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a process does: receive questions, carry out runs, or both."""

    receives: bool = True
    works: bool = True


EVERYTHING = Role()


@dataclass(slots=True)
class Program:
    """The running program; `stack` closes what was opened."""

    configuration: Configuration
    library: Library
    dispatcher: Dispatcher
    metrics: Metrics
    health: Health
    stack: AsyncExitStack
    role: Role
    worker: Worker | None = None
    endings: Endings = field(default_factory=Endings)
    jobs: list[Job] = field(default_factory=list[Job])


async def serve(configuration: Configuration, library: Library, role: Role = EVERYTHING) -> str | None:
    """Do what the role says until SIGTERM or SIGINT, then let runs end, if there is time.

    Returns why a platform is lost for good, if that ends it. A signal during the start aborts it.
    Raises `ConfigurationError` if there is nothing to listen to, and `WriterError` as soon as nothing
    can be written any more.
    """
    settings = configuration.settings
    check(settings)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    failed = library.database.failed
    failed.add_done_callback(lambda _: ended.set())
    raise_descriptors()
    tune_interpreter()
    async with AsyncExitStack() as stack:
        health, metrics = Health(library.database), Metrics()
        if settings.council_status_port:
            await _show_status(settings, health, metrics, stack)
        council = await stack.enter_async_context(open_council(configuration, library, metrics))
        shared_queue = None
        if shares(configuration):
            shared_queue = await stack.enter_async_context(
                open_shared_queue(configuration, library, council.runs)
            )
        dispatcher = health.dispatcher = open_dispatcher(configuration, library, council, shared_queue)
        program = Program(configuration, library, dispatcher, metrics, health, stack, role)
        if shared_queue:
            program.worker = Worker(dispatcher, shared_queue)
        await _before(ended, _start(program, council))
        try:
            health.phase = "serving"
            lost = await _until(partial(_wait, ended), program.endings)
            if lost is not None:
                log.error("lost_for_good", connection=lost)
        finally:
            health.phase = "ending"
            if not failed.done():
                log.info("draining", seconds=configuration.durability.drain_seconds)
            await dispatcher.tasks.drain(0 if failed.done() else None)
        if failed.done():
            raise failed.result()
        return lost


async def _until(ended: Callable[[], Awaitable[None]], endings: Endings) -> str | None:
    """Wait for the end, or until something is lost for good; return why it is lost."""
    waits = [asyncio.ensure_future(wait()) for wait in (ended, *endings)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return next(wait for wait in waits if wait.done()).result()
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def _wait(ended: asyncio.Event) -> None:
    await ended.wait()


async def _before(ended: asyncio.Event, start: Coroutine[object, object, None]) -> None:
    """Start, unless the end comes first, which aborts the start."""
    starting, ending = asyncio.create_task(start), asyncio.create_task(ended.wait())
    await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if starting.done():
        await starting
        log.info("ready")
    else:
        starting.cancel()
        await asyncio.wait({starting})
        log.info("ended_before_ready")


async def _start(program: Program, council: Council) -> None:
    configuration, library, stack = program.configuration, program.library, program.stack
    await _hold_platforms(configuration, library, stack)
    await _watch(configuration, council, program, stack)
    await _start_platforms(program, open_lookup(library))
    if program.worker and program.role.works:
        failed = await stack.enter_async_context(
            program.worker.working(configuration.limits, configuration.durability)
        )
        program.endings.append(partial(_ended_by, failed))
    days = configuration.settings.council_retention_days
    upkeep = asyncio.create_task(maintain(library, days, also=program.jobs))
    stack.callback(upkeep.cancel)


async def _ended_by(failed: Callable[[], Awaitable[NoReturn]]) -> str:
    return await failed()


async def _show_status(
    settings: Settings, health: Health, metrics: Metrics, stack: AsyncExitStack
) -> None:
    from bot.monitoring import Status

    host, port = settings.council_status_host, settings.council_status_port or 0
    with listening("COUNCIL_STATUS", host, port):
        status = Status(health, metrics)
        await stack.enter_async_context(status.serve(host, port))


async def _watch(
    configuration: Configuration, council: Council, program: Program, stack: AsyncExitStack
) -> None:
    """Apply changed councils while the bot runs: when the file changes, and at SIGHUP.

    Look whether other processes have the same file.
    """
    dispatcher, publish = program.dispatcher, program.library.locks.publish
    fingerprint = configuration.fingerprint

    def swap(changed: Configuration) -> None:
        nonlocal fingerprint
        fingerprint = changed.fingerprint
        council.directory.add(changed.profiles.values())
        dispatcher.reconfigure(operator_of(changed, changed.profiles))

    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    watching = {
        asyncio.create_task(watch(configuration, asked, swap)),
        asyncio.create_task(compare(lambda: fingerprint, publish)),
    }

    async def end() -> None:
        for task in watching:
            task.cancel()
        await asyncio.wait(watching)

    stack.push_async_callback(end)


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


async def _hold_platforms(configuration: Configuration, library: Library, stack: AsyncExitStack) -> None:
    """Allow only one process to serve a platform from this folder: two would resume the same runs.

    A database may be shared, but not while it is moved.
    """
    if shares(configuration):
        holding = library.locks.acquire(SHARED, wait=LOOK_SECONDS, shared=True)
        if not await stack.enter_async_context(holding):
            raise ConfigurationError([Problem("DATABASE_URL", wording.MOVING, wording.WAIT)])
        return
    settings = configuration.settings
    slack = settings.slack_bot_token or settings.slack_client_id
    tokens = {"Discord": settings.discord_token, "Slack": slack}
    wait = configuration.durability.drain_seconds + HANDOVER_SECONDS
    for platform in (name for name, token in tokens.items() if token):
        if not await stack.enter_async_context(library.locks.acquire(platform.lower(), wait=wait)):
            if configuration.database:
                what, fix = wording.held(platform, "database"), wording.OTHER_DATABASE
                raise ConfigurationError([Problem("DATABASE_URL", what, fix)])
            what, fix = wording.held(platform), wording.OTHER_FOLDER
            raise ConfigurationError([Problem("COUNCIL_DATA_DIR", what, fix)])


async def _start_platforms(program: Program, lookup: Lookup) -> None:
    """Start what is configured; the SDKs are loaded only then."""
    settings = program.configuration.settings
    if settings.discord_token:
        await _start_discord(program, lookup, settings.discord_token)
    if serves_workspaces(settings):
        await _start_workspaces(program, lookup)
    if settings.slack_bot_token:
        await _start_slack(program, lookup, settings.slack_bot_token)


async def _start_discord(program: Program, lookup: Lookup, token: SecretStr) -> None:
    from bot.discord.bot import DiscordBot

    settings, health, stack = program.configuration.settings, program.health, program.stack
    discord = DiscordBot(
        program.dispatcher,
        lookup,
        token=token.get_secret_value(),
        api_base=settings.discord_api_base_url,
        reads_messages=settings.discord_message_content,
        outbox=_outbox(program, "discord"),
        metrics=program.metrics,
        listens=program.worker is None,
    )
    # Given back only when the bot has hung up: two that listen would take each question twice.
    held = await stack.enter_async_context(AsyncExitStack())
    await stack.enter_async_context(discord)
    if program.worker is None:
        health.platforms["Discord"] = discord.is_connected
        program.endings.append(discord.until_lost)
        return
    program.worker.venues["discord"] = discord.venue_of
    if program.role.receives:
        await _listen_to_discord(program, discord, held)


async def _listen_to_discord(program: Program, discord: "DiscordBot", held: AsyncExitStack) -> None:
    """Listen at once or, where another process does, as soon as that one ends."""
    locks, health = program.library.locks, program.health
    is_standing_by = not await held.enter_async_context(locks.acquire("discord"))

    async def keep_listening() -> str:
        nonlocal is_standing_by
        while True:
            if is_standing_by:
                log.info("standing_by_for_discord")
                await _hold_discord(program.library, held)
                await discord.listen_once_reached()
                is_standing_by = False
                log.info("discord_taken_over")
            lost = await _until(locks.until_unsure, [discord.until_lost])
            if lost is not None:
                return lost
            log.warning("discord_given_up")
            is_standing_by = True
            await discord.hang_up()
            await held.aclose()

    async def is_connected() -> bool:
        return is_standing_by or await discord.is_connected()

    if not is_standing_by:
        await discord.listen()
    health.platforms["Discord"] = is_connected
    program.endings.append(keep_listening)


async def _hold_discord(library: Library, stack: AsyncExitStack) -> None:
    """Hold Discord once nobody does; after a failure of the database, its last holder goes first."""
    while True:
        try:
            await stack.enter_async_context(library.locks.acquire("discord", wait=math.inf))
        except DatabaseError as error:
            log.warning("standing_by_without_database", reason=error)
            await _until_back(library.database)
            await asyncio.sleep(HOLDER_FIRST_SECONDS)
        else:
            return


async def _until_back(database: Database) -> None:
    while True:
        await asyncio.sleep(1)
        with suppress(DatabaseError):
            await database.read("SELECT 1")
            return


async def _start_slack(program: Program, lookup: Lookup, token: SecretStr) -> None:
    from bot.slack.bot import SlackAccess, SlackBot

    settings, health, stack = program.configuration.settings, program.health, program.stack
    app_token, secret = settings.slack_app_token, settings.slack_signing_secret
    bot = SlackBot(
        program.dispatcher,
        lookup,
        SlackAccess(
            bot_token=token.get_secret_value(),
            app_token=app_token.get_secret_value() if app_token else None,
            signing_secret=secret.get_secret_value() if secret else None,
            http_host=settings.slack_http_host,
            http_port=settings.slack_http_port,
            api_url=settings.slack_api_url,
        ),
        outbox=_outbox(program, "slack"),
        listens=program.role.receives,
    )
    try:
        with listening("SLACK_HTTP", settings.slack_http_host, settings.slack_http_port):
            await stack.enter_async_context(bot)
    except VenueError as error:
        raise ConfigurationError(
            [Problem("SLACK_BOT_TOKEN", str(error), wording.CHECK_SLACK)]
        ) from error
    if program.worker:
        program.worker.venues["slack"] = bot.venue_of
    health.platforms["Slack"] = bot.is_connected
    program.endings.append(bot.until_lost)


def _outbox(program: Program, platform: str) -> Outbox:
    """Return a platform's outbox; processes on one database share its rate limits."""
    queue = program.worker.queue if program.worker else None
    return Outbox(
        platform,
        metrics=program.metrics,
        rate_limits=SharedRateLimits(queue.coordination, queue.worker) if queue else None,
        may_send=queue.claims.may_send if queue else None,
    )


async def _start_workspaces(program: Program, lookup: Lookup) -> None:
    """Start Slack in every workspace that has installed the app; none of them ends the process."""
    from bot.slack.oauth.installations import open_installations
    from bot.slack.oauth.workspaces import SlackWorkspaces

    settings, library, stack = program.configuration.settings, program.library, program.stack
    app = slack_app(settings)
    installations = await stack.enter_async_context(
        open_installations(
            settings.council_data_dir, app.client_id, token_keys(revealed(settings.slack_token_key))
        )
    )
    workspaces = SlackWorkspaces(
        program.dispatcher,
        lookup,
        installations,
        app=app,
        removal_days=settings.slack_removal_days,
        http_host=settings.slack_http_host,
        http_port=settings.slack_http_port or 0,
        api_url=settings.slack_api_url,
        metrics=program.metrics,
    )
    with listening("SLACK_HTTP", settings.slack_http_host, settings.slack_http_port):
        await stack.enter_async_context(workspaces)
    program.health.platforms["Slack"] = workspaces.is_connected
    halt = program.dispatcher.tasks.halt
    program.jobs.append(partial(forget_removed, library, "slack", workspaces.due, halt))


def slack_app(settings: Settings) -> "SlackApp":
    """Return the Slack app that workspaces install."""
    from bot.slack.oauth.flow import SlackApp

    return SlackApp(
        client_id=settings.slack_client_id or "",
        client_secret=revealed(settings.slack_client_secret),
        signing_secret=revealed(settings.slack_signing_secret),
        redirect_uri=settings.slack_redirect_uri,
    )


def revealed(secret: SecretStr | None) -> str:
    """Return a secret's text; empty if it isn't set."""
    return secret.get_secret_value() if secret else ""
