"""The bot on Discord: logs in, connects, and resumes what was interrupted.

The one privileged intent, message content, is asked for only to read the threads it is mentioned in.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

import aiohttp
import discord
import structlog

from bot.actions import Actions
from bot.discord.asking import Asking
from bot.discord.errors import why_final
from bot.discord.gateway import (
    introduce,
    is_out_of_reach,
    log_in,
    refused,
    tolerate_unreadable_frames,
)
from bot.discord.listeners import Listeners
from bot.discord.locations import Locations
from bot.discord.notices import NOBODY, send_notice
from bot.discord.past import link
from bot.discord.retracting import Retractor
from bot.discord.transport import DiscordTransport, single_attempts
from bot.discord.venue import EDIT_SECONDS, DiscordVenue
from bot.errors import ConfigurationError
from bot.past.lookup import Lookup
from bot.service.delivery.outbox import Outbox
from bot.service.dispatcher import Dispatcher
from bot.service.metrics import Metrics
from storage.journal.rows import RunRow

log = structlog.get_logger()

INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
TAKEOVER_SECONDS = 5.0
"""Between two tries to take over from another process, while Discord can't be reached."""
SETTLE_SECONDS = 2.0
"""How long a start waits for the next server that the bot is on."""


class DiscordBot:
    """The council on Discord, while it is entered.

    `api_base` is another address of Discord's API, for tests. With `reads_messages`, the bot asks for
    the message content intent, and reads the threads that it is mentioned in. A card is left alone
    for `edit_seconds` after an edit; a start waits `settle_seconds` for the next server that the bot is
    on. One that doesn't `listen` from the start shows runs over REST, and listens once it is told to.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        lookup: Lookup,
        *,
        token: str,
        api_base: str | None = None,
        reads_messages: bool = False,
        outbox: Outbox | None = None,
        metrics: Metrics | None = None,
        listens: bool = True,
        edit_seconds: float = EDIT_SECONDS,
        settle_seconds: float = SETTLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dispatcher = dispatcher
        self._token = token
        self._api_base = api_base
        self._listens = listens
        self.outbox = outbox or Outbox("discord", metrics=metrics)
        self._clock = clock
        self._transport = DiscordTransport(self.outbox, clock=clock)
        # There is no voice: its libraries needn't be installed.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        tolerate_unreadable_frames()
        self._client = discord.AutoShardedClient(
            intents=INTENTS | discord.Intents(message_content=reads_messages),
            allowed_mentions=NOBODY,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            guild_ready_timeout=settle_seconds,
            http_trace=single_attempts(),
        )
        self._locations = Locations(
            self._client,
            self._transport,
            reads_messages=reads_messages,
            edit_seconds=edit_seconds,
            clock=clock,
        )
        actions = Actions(dispatcher, lookup, link)
        asking = Asking(dispatcher, actions, self._locations)
        listeners = Listeners(dispatcher, lookup, actions, self._locations, asking)
        listeners.register()
        self._tree = listeners.command_tree()
        self._connection: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Log in; if it listens, return once the bot hears everything. Raises `ConfigurationError`."""
        try:
            await log_in(self._client, self._token, self._api_base)
            if operators := self._dispatcher.operators:  # runs that are resumed may have news for admins
                send = partial(send_notice, self._client, self._transport, self._clock)
                operators.sends["discord"] = send
            if self._listens:
                await self.listen()
        except BaseException:
            await self._client.close()
            raise
        self._dispatcher.work.retract("discord", Retractor(self._client, self._transport).retract)
        return self

    async def listen_once_reached(self) -> None:
        """Connect as soon as Discord can be reached. Raises `ConfigurationError` for anything else."""
        while True:
            try:
                return await self.listen()
            except ConfigurationError as error:
                if not is_out_of_reach(error):
                    raise
            log.warning("discord_not_taken_over", again_in=TAKEOVER_SECONDS)
            await asyncio.sleep(TAKEOVER_SECONDS)

    async def listen(self) -> None:
        """Connect, and return once the bot hears everything. Raises `ConfigurationError`."""
        try:
            await self._listen()
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            raise refused(error) from error

    async def hang_up(self) -> None:
        """Close the gateway, and hear nothing until it listens again; runs are still shown over REST."""
        if self._connection is None:
            return
        while not self._connection.done():
            # Once isn't enough: discord.py takes it for the end of an attempt to reconnect.
            self._connection.cancel()
            await asyncio.wait({self._connection}, timeout=1)
        self._connection = None
        # A shard that is about to reconnect asks for it here, where nobody looks any more.
        vars(self._client)["_AutoShardedClient__queue"] = asyncio.PriorityQueue()
        await asyncio.gather(*(shard.disconnect() for shard in self._client.shards.values()))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Hang up."""
        if operators := self._dispatcher.operators:
            operators.sends.pop("discord", None)
        await self._dispatcher.work.close("discord")
        await self.outbox.__aexit__(kind, error, traceback)
        await self._client.close()
        if self._connection is not None:
            await asyncio.gather(self._connection, return_exceptions=True)

    async def is_connected(self) -> bool:
        """Return whether every shard hears Discord's events."""
        shards = self._client.shards.values()
        return self._client.is_ready() and not any(shard.is_closed() for shard in shards)

    async def until_lost(self) -> str:
        """Wait until the connection is lost for good; return why, in a sentence.

        Raises whatever else ended it.
        """
        if self._connection is None:
            raise RuntimeError("the bot doesn't listen")
        await asyncio.wait({self._connection})
        error = self._connection.exception()
        if error is None:
            return "The connection to Discord was closed. Start again."
        if why := why_final(error):
            return why
        raise error

    async def _listen(self) -> None:
        interrupted = await self._dispatcher.tasks.undelivered("discord")
        await introduce(self._tree, self._api_base)
        self._connection = asyncio.create_task(self._client.connect())
        # Not `wait_until_ready`: a bot that has hung up counts as ready ever after.
        ready = asyncio.create_task(self._client.wait_for("ready"))
        await asyncio.wait({ready, self._connection}, return_when=asyncio.FIRST_COMPLETED)
        if self._connection.done():
            ready.cancel()
            await self._connection
        await self._dispatcher.tasks.resume(interrupted, self.venue_of)

    def venue_of(self, run: RunRow) -> DiscordVenue:
        """Return where a run is shown."""
        return self._locations.venue_of(run)
