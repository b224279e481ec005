"""The connection to Discord's gateway: what a malformed response or frame does to it.

Source: https://discord.com/developers/docs/events/gateway
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import aiohttp
import discord
import discord.shard
import structlog
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket, ReconnectWebSocket, WebSocketClosure
from discord.http import Route

from bot.discord.commands import register
from bot.discord.errors import REFUSED_TOKEN_CODE, why_final
from bot.errors import ConfigurationError, Problem
from bot.view.wording import discord as wording
from bot.view.wording.discord import NOT_REACHED

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


async def log_in(client: discord.Client, token: str, api_base: str | None) -> None:
    """Log in, which allows requests over REST. Raises `ConfigurationError`.

    `api_base` is another address of Discord's API.
    """
    if api_base:
        Route.BASE = api_base
    await _checked(client.login(token))


async def introduce(
    tree: app_commands.CommandTree[discord.AutoShardedClient], api_base: str | None
) -> None:
    """Register the commands and look up the gateway, once logged in. Raises `ConfigurationError`."""

    async def prepare() -> None:
        _, url, _ = await tree.client.http.get_bot_gateway()
        gateway = _socket_address(url)
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


def _socket_address(url: str) -> yarl.URL:
    address = yarl.URL(url)
    if address.scheme not in ("ws", "wss") or not address.host:
        raise ValueError(f"{url!r} isn't a gateway's address")
    return address


def is_out_of_reach(error: ConfigurationError) -> bool:
    """Return whether all that is wrong may pass: Discord can't be reached, or something else answers."""
    return all(problem in (UNREACHABLE, NOT_DISCORD) for problem in error.problems)


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
