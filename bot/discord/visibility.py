"""Checks whether the asker can still see the channel, before an answer goes to them directly.

Source: https://discord.com/developers/docs/topics/permissions
"""

import discord

from bot.discord.location import Location
from bot.discord.posting import Posting
from bot.errors import Gone, NotAllowed
from bot.service.delivery.outbox import Urgency
from bot.view.wording import discord as wording

Seen = tuple[discord.abc.GuildChannel, discord.Thread | None]


def _answer() -> Urgency:
    return Urgency.ANSWER


async def require_sight(
    client: discord.Client, posting: Posting, location: Location, asker: int
) -> None:
    """Raise `NotAllowed` unless the asker certainly sees the place of the run."""
    if location.guild is None:
        raise NotAllowed(wording.ASKED_IN_DIRECT)
    lane = f"member {location.guild}"
    try:
        guild = await _guild(client, posting, location.guild)
        channel, thread = await _seen_from(client, posting, guild, location)
    except Gone as error:
        raise NotAllowed(wording.UNSEEN) from error
    try:
        member = await posting.send(lane, lambda: guild.fetch_member(asker), _answer)
    except Gone as error:
        raise NotAllowed(wording.LEFT_SERVER) from error
    has = channel.permissions_for(member)
    if not has.view_channel:
        raise NotAllowed(wording.CHANNEL_HIDDEN)
    if location.is_private and thread is not None and not has.manage_threads:
        try:
            await posting.send(lane, lambda: thread.fetch_member(asker), _answer)
        except Gone as error:
            raise NotAllowed(wording.LEFT_THREAD) from error


async def _guild(client: discord.Client, posting: Posting, number: int) -> discord.Guild:
    """Return a server: as the gateway knows it or, without one, fetched."""
    if client.is_ready():
        guild = client.get_guild(number)
        if guild is None or guild.unavailable:
            raise NotAllowed(wording.UNSEEN)
        return guild
    return await posting.send(f"guild {number}", lambda: client.fetch_guild(number), _answer)


async def _seen_from(
    client: discord.Client, posting: Posting, guild: discord.Guild, location: Location
) -> Seen:
    """Return the channel whose permissions count, and the private thread in it, if it is one."""
    thread = None
    if location.is_private:
        thread = guild.get_thread(location.channel)
    if location.is_private and thread is None and not client.is_ready():
        found = await _channel(posting, guild, location.channel)
        thread = found if isinstance(found, discord.Thread) else None
    number = (
        (thread and thread.parent_id) if location.is_private else location.parent or location.channel
    )
    channel = guild.get_channel(number) if number else None
    if channel is None and number and not client.is_ready():
        fetched = await _channel(posting, guild, number)
        channel = None if isinstance(fetched, discord.Thread) else fetched
    if channel is None:
        raise NotAllowed(wording.UNSEEN)
    return channel, thread


async def _channel(
    posting: Posting, guild: discord.Guild, number: int
) -> discord.abc.GuildChannel | discord.Thread:
    return await posting.send(f"channel {number}", lambda: guild.fetch_channel(number), _answer)
