"""The running program, and its adapters of the platforms; one process at a time listens to Discord."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import structlog
from pydantic import SecretStr

from bot.app import Council, Library, open_lookup
from bot.checks.machine import listening
from bot.config.configuration import Configuration
from bot.errors import ConfigurationError, Problem, VenueError
from bot.past.lookup import Lookup
from bot.service.delivery.outbox import Outbox, SharedRateLimits
from bot.service.dispatcher import Dispatcher
from bot.service.metrics import Metrics
from bot.service.shared_tasks import SharedTasks
from council.tasks import first_of
from storage.database import Database
from storage.errors import DatabaseError, StorageError

if TYPE_CHECKING:
    from bot.discord.bot import DiscordBot

log = structlog.get_logger()

WRITE_SECONDS = 2.0
"""How long a write to the journal may wait for its turn."""


@dataclass(slots=True)
class Health:
    """The program's phase, its journal, and whether each configured platform is connected."""

    database: Database
    phase: Literal["starting", "serving", "ending"] = "starting"
    platforms: dict[str, Callable[[], Awaitable[bool]]] = field(
        default_factory=dict[str, Callable[[], Awaitable[bool]]]
    )
    dispatcher: Dispatcher | None = None
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def connected(self) -> dict[str, bool]:
        return {name: await is_connected() for name, is_connected in self.platforms.items()}

    async def troubles(self) -> list[str]:
        """Return why the program can't serve right now, in sentences; none if it can."""
        if self.phase != "serving":
            return [f"The council is {self.phase}."]
        lost = [name for name, is_connected in (await self.connected()).items() if not is_connected]
        said = [f"{name} isn't connected." for name in lost]
        async with self._writing:  # however often this is called, at most one write waits
            try:
                await self.database.check_writable(asyncio.get_running_loop().time() + WRITE_SECONDS)
            except TimeoutError:
                said.append(f"The journal has been busy for {WRITE_SECONDS:.0f} s.")
            except StorageError as error:
                said.append(f"The journal has a problem: {error.for_chat}.")
        return said


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
    council: Council
    dispatcher: Dispatcher
    metrics: Metrics
    health: Health
    stack: AsyncExitStack
    role: Role
    shared: SharedTasks | None = None
    endings: Endings = field(default_factory=Endings)


async def start_platforms(program: Program) -> None:
    """Start what is configured; the SDKs are loaded only then."""
    settings, lookup = program.configuration.settings, open_lookup(program.library)
    if settings.discord_token:
        await _start_discord(program, lookup, settings.discord_token)
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
        listens=program.shared is None,
    )
    # Given back only when the bot has hung up: two that listen would take each question twice.
    held = await stack.enter_async_context(AsyncExitStack())
    await stack.enter_async_context(discord)
    if program.shared is None:
        health.platforms["Discord"] = discord.is_connected
        program.endings.append(discord.until_lost)
        return
    program.shared.venues["discord"] = discord.venue_of
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
            lost = await first_of(locks.until_unsure, discord.until_lost)
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
            while True:
                await asyncio.sleep(1)
                with suppress(DatabaseError):
                    await library.database.read("SELECT 1")
                    break
            await asyncio.sleep(HOLDER_FIRST_SECONDS)
        else:
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
        with listening("SLACK_HTTP_HOST", settings.slack_http_host, settings.slack_http_port):
            await stack.enter_async_context(bot)
    except VenueError as error:
        fix = "Check the tokens, and that SLACK_API_URL is right or unset"
        raise ConfigurationError([Problem("SLACK_BOT_TOKEN", str(error), fix)]) from error
    if program.shared:
        program.shared.venues["slack"] = bot.venue_of
    health.platforms["Slack"] = bot.is_connected
    program.endings.append(bot.until_lost)


def _outbox(program: Program, platform: str) -> Outbox:
    """Return a platform's outbox; processes on one database share its rate limits."""
    shared = program.shared
    return Outbox(
        platform,
        metrics=program.metrics,
        rate_limits=SharedRateLimits(shared.coordination, shared.worker) if shared else None,
        may_send=shared.claims.may_send if shared else None,
    )
