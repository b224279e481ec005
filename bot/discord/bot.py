"""The bot on Discord: logs in, connects, and resumes what was interrupted.

The one privileged intent, message content, is asked for only to read the threads it is mentioned in.

Source: https://discord.com/developers/docs/events/gateway
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

import aiohttp
import discord
import discord.shard
import structlog
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket, ReconnectWebSocket, WebSocketClosure
from discord.http import Route

from bot.actions import Actions
from bot.discord.chat import EDIT_SECONDS, DiscordChat
from bot.discord.client import NOBODY, REFUSED_TOKEN_CODE, DiscordTransport, single_attempts, why_final
from bot.discord.commands import register
from bot.discord.listeners import DiscordListeners, DiscordQuestions
from bot.discord.replies import DiscordPlaces, link
from bot.errors import ConfigurationError, Problem
from bot.past.lookup import Lookup
from bot.service.delivery.outbox import Outbox
from bot.service.delivery.posts import notify
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Dispatcher
from bot.service.metrics import Metrics
from bot.view.wording import discord as wording
from bot.view.wording.discord import NOT_REACHED
from storage.journal.rows import RunRow

log = structlog.get_logger()

RESUMES = 3
"""How often a session is resumed whose next frame can't be read; then a new one is begun."""
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 120.0
"""Before reconnecting after a second such frame, doubling: Discord allows 1,000 sessions a day."""

BAD_TOKEN = Problem(
    "DISCORD_TOKEN", "Discord refuses it", "Copy the bot's token from the application's page, under Bot"
)
UNREACHABLE = Problem("DISCORD_TOKEN", NOT_REACHED, "Check the network and DISCORD_API_BASE_URL")
NOT_DISCORD = Problem(
    "DISCORD_API_BASE_URL",
    wording.NOT_DISCORD,
    "Unset it, or check that it ends in /api/v10 and that no other server answers in its place",
)


async def introduce(
    tree: app_commands.CommandTree[discord.AutoShardedClient], api_base: str | None
) -> None:
    """Register the commands and look up the gateway, once logged in. Raises `ConfigurationError`."""

    async def prepare() -> None:
        _, url, _ = await tree.client.http.get_bot_gateway()
        gateway = yarl.URL(url)
        if gateway.scheme not in ("ws", "wss") or not gateway.host:
            raise ValueError(f"{url!r} isn't a gateway's address")
        await register(tree)
        if api_base:
            # Without it, a session that can't be resumed would start at Discord's own gateway.
            DiscordWebSocket.DEFAULT_GATEWAY = gateway

    await _checked(prepare())


async def _checked(work: Awaitable[None]) -> None:
    try:
        await work
    except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
        raise refused(error) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # What discord.py raises if a response isn't what it expects.
        log.warning("not_discord", reason=repr(error))
        raise ConfigurationError([NOT_DISCORD]) from error


def refused(error: Exception) -> ConfigurationError:
    """Return what is wrong with the configuration if a client can't log in or connect."""
    code = error.code if isinstance(error, discord.ConnectionClosed) else None
    if isinstance(error, discord.LoginFailure) or code == REFUSED_TOKEN_CODE:
        return ConfigurationError([BAD_TOKEN])
    if final := why_final(error):
        what, _, fix = final.partition(". ")
        return ConfigurationError([Problem("DISCORD_TOKEN", what, fix.removesuffix("."))])
    log.warning("discord_unreachable", reason=error)
    return ConfigurationError([UNREACHABLE])


def tolerate_unreadable_frames(sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
    """Make discord.py reconnect and resume the session after a frame that it can't read.

    On its own, discord.py would close the client and never reconnect.
    """
    failures: dict[int | None, tuple[int, int]] = {}

    class Socket(DiscordWebSocket):
        async def received_message(self, msg: str | bytes, /) -> None:
            """Receive a frame; an unreadable one closes the connection."""
            shard, before = self.shard_id, self.sequence or 0
            try:
                await super().received_message(msg)
            except (ReconnectWebSocket, WebSocketClosure, discord.DiscordException):
                raise  # discord.py's own ways to reconnect or to end
            except (aiohttp.ClientError, OSError):
                raise  # it reconnects after these, too
            except Exception as error:  # noqa: BLE001 - zlib's, JSON's, or of any event's parser
                times, _ = failures.get(shard, (0, 0))
                failures[shard] = times + 1, before
                wait = min(FIRST_SECONDS * 2 ** (times - 1), LONGEST_SECONDS) if times else 0.0
                log.warning("gateway_frame_unreadable", shard=shard, reason=repr(error), seconds=wait)
                await sleep(wait)
                if times >= RESUMES:
                    failures[shard] = times + 1, 1  # READY is a session's first event
                    self.sequence = self.session_id = None
                    await self.close(4000)
                    raise ReconnectWebSocket(shard, resume=False) from None
                raise WebSocketClosure from None
            if shard in failures and (self.sequence or 0) > failures[shard][1] + 1:
                del failures[shard]

    # `AutoShardedClient` has no option for the class of its sockets.
    cast("Any", discord.shard).DiscordWebSocket = Socket


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
        self._chat = DiscordChat(
            self._client,
            DiscordTransport(self.outbox, clock=clock),
            reads_messages=reads_messages,
            edit_seconds=edit_seconds,
            clock=clock,
        )
        locations = DiscordPlaces(self._client, self._chat)
        actions = Actions(dispatcher, lookup, link)
        questions = DiscordQuestions(dispatcher, actions, locations)
        listeners = DiscordListeners(dispatcher, lookup, actions, locations, questions)
        listeners.register()
        self._tree = listeners.command_tree()
        self._connection: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Log in; if it listens, return once the bot hears everything. Raises `ConfigurationError`."""
        try:
            if self._api_base:
                Route.BASE = self._api_base
            await _checked(self._client.login(self._token))
            if operators := self._dispatcher.operators:  # runs that are resumed may have news for admins
                operators.sends["discord"] = partial(notify, self._chat)
            if self._listens:
                await self.listen()
        except BaseException:
            await self._client.close()
            raise
        self._dispatcher.open("discord", self._chat.delete, self.venue_of)
        return self

    async def listen_once_reached(self) -> None:
        """Connect as soon as Discord can be reached. Raises `ConfigurationError` for anything else."""
        while True:
            try:
                return await self.listen()
            except ConfigurationError as error:
                if any(problem not in (UNREACHABLE, NOT_DISCORD) for problem in error.problems):
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
        if operators := self._dispatcher.operators:
            operators.sends.pop("discord", None)
        await self._dispatcher.work.close("discord")
        await self.outbox.__aexit__(kind, error, traceback)
        await self._client.close()
        if self._connection is not None:
            await asyncio.gather(self._connection, return_exceptions=True)

    async def is_connected(self) -> bool:
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

    def venue_of(self, run: RunRow) -> Venue:
        return Venue.of(self._chat, run)
