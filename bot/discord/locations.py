"""Where people and runs are on Discord: a run's venue, somebody's standing, a conversation's thread."""

import time
from collections.abc import Callable

import discord
import structlog

from bot.discord.location import Location
from bot.discord.transport import DiscordTransport
from bot.discord.venue import EDIT_SECONDS, DiscordVenue
from bot.errors import Refusal
from bot.service.admission.access import Requester
from storage.journal.rows import RunRow

log = structlog.get_logger()


class Locations:
    """Finds where people and runs are, as the bot's client knows it.

    With `reads_messages`, the bot reads the threads that it is mentioned in. A card is left alone for
    `edit_seconds` after an edit.
    """

    def __init__(
        self,
        client: discord.AutoShardedClient,
        transport: DiscordTransport,
        *,
        reads_messages: bool = False,
        edit_seconds: float = EDIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self.transport = transport
        self._reads_messages = reads_messages
        self._edit_seconds = edit_seconds
        self._clock = clock

    def venue_of(self, run: RunRow, interaction: discord.Interaction | None = None) -> DiscordVenue:
        """Return where a run is shown."""
        return DiscordVenue(
            self.client,
            run,
            self.transport,
            interaction=interaction,
            reads_messages=self._reads_messages,
            edit_seconds=self._edit_seconds,
            clock=self._clock,
        )

    def standing_of(self, who: discord.User | discord.Member, here: Location) -> Requester:
        """Return what decides whether somebody may ask here."""
        channel = self.client.get_channel(here.parent or here.channel)
        places = (here.channel, here.parent, getattr(channel, "category_id", None))
        roles = who.roles if isinstance(who, discord.Member) else ()
        return Requester(
            workspace=str(here.guild) if here.guild else None,
            places=frozenset(str(place) for place in places if place),
            memberships=frozenset(str(role.id) for role in roles),
            is_direct=here.guild is None,
        )

    async def thread_of(
        self, guild: discord.Guild | None, here: Location, run: RunRow
    ) -> Location | None:
        """Return the thread of a run's conversation, if there is one and it isn't this one."""
        thread = int(run.origin.thread or 0)
        if not thread or thread == here.channel or guild is None:
            return None
        try:
            found = await guild.fetch_channel(thread)
        except (discord.NotFound, discord.Forbidden) as error:
            log.info("thread_lost", run=run.id, reason=error)
            return None
        below = Location.of(found, guild.id)
        below.require(found.permissions_for(guild.me))
        return below

    async def of_message(self, message: discord.Message) -> Location:
        """Return where a message is. Raises `Refusal` if the bot may not show a run there."""
        channel = message.channel
        if isinstance(channel, discord.DMChannel):
            return Location(channel.id)
        if message.guild is None:
            raise Refusal("Still connecting to Discord. Try again in a minute.")
        if isinstance(channel, discord.PartialMessageable):
            # The bot was mentioned in a thread before it learned of the thread.
            channel = await message.guild.fetch_channel(channel.id)
        here = Location.of(channel, message.guild.id)
        here.require(channel.permissions_for(message.guild.me))
        return here
