"""Checks whether the asker can still see the channel, before an answer goes to them directly.

Source: https://discord.com/developers/docs/topics/permissions
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import discord

from bot.discord.location import Location
from bot.discord.transport import DiscordTransport
from bot.errors import Gone, NotAllowed
from bot.service.delivery.outbox import Urgency
from bot.view.wording import discord as wording

T = TypeVar("T")

Seen = tuple[discord.abc.GuildChannel, discord.Thread | None]


@dataclass(frozen=True, slots=True)
class Sight:
    """Whether people see the place of a run, by what the gateway knows or, without one, by requests."""

    client: discord.Client
    transport: DiscordTransport
    run: str
    location: Location

    async def require(self, asker: int) -> None:
        """Raise `NotAllowed` unless the asker certainly sees the place of the run."""
        location = self.location
        if location.guild is None:
            raise NotAllowed("the run was asked for in direct messages")
        lane = f"member {location.guild}"
        try:
            guild = await self._guild(location.guild)
            channel, thread = await self._seen_from(guild)
        except Gone as error:
            raise NotAllowed(wording.UNSEEN) from error
        try:
            member = await self._ask(lane, lambda: guild.fetch_member(asker))
        except Gone as error:
            raise NotAllowed("the asker has left the server") from error
        has = channel.permissions_for(member)
        if not has.view_channel:
            raise NotAllowed("the asker can no longer see the channel")
        if location.is_private and thread is not None and not has.manage_threads:
            try:
                await self._ask(lane, lambda: thread.fetch_member(asker))
            except Gone as error:
                raise NotAllowed("the asker has left the thread") from error

    async def _guild(self, number: int) -> discord.Guild:
        if self.client.is_ready():
            guild = self.client.get_guild(number)
            if guild is None or guild.unavailable:
                raise NotAllowed(wording.UNSEEN)
            return guild
        return await self._ask(f"guild {number}", lambda: self.client.fetch_guild(number))

    async def _seen_from(self, guild: discord.Guild) -> Seen:
        """Return the channel whose permissions count, and the private thread in it, if it is one."""
        location = self.location
        thread = None
        if location.is_private:
            thread = guild.get_thread(location.channel)
        if location.is_private and thread is None and not self.client.is_ready():
            found = await self._channel(guild, location.channel)
            thread = found if isinstance(found, discord.Thread) else None
        number = (
            (thread and thread.parent_id) if location.is_private else location.parent or location.channel
        )
        channel = guild.get_channel(number) if number else None
        if channel is None and number and not self.client.is_ready():
            fetched = await self._channel(guild, number)
            channel = None if isinstance(fetched, discord.Thread) else fetched
        if channel is None:
            raise NotAllowed(wording.UNSEEN)
        return channel, thread

    async def _channel(
        self, guild: discord.Guild, number: int
    ) -> discord.abc.GuildChannel | discord.Thread:
        return await self._ask(f"channel {number}", lambda: guild.fetch_channel(number))

    async def _ask(self, lane: str, request: Callable[[], Awaitable[T]]) -> T:
        return await self.transport.send(lane, request, run=self.run, urgency=Urgency.ANSWER)
