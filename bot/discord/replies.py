"""How people are answered on Discord: in response to an interaction, or below their message.

Source: https://discord.com/developers/docs/interactions/receiving-and-responding
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import discord

from bot.actions import Actor
from bot.discord import modals
from bot.discord import past as discord_past
from bot.discord.location import Location
from bot.discord.locations import Locations
from bot.discord.notices import reply, whisper
from bot.discord.venue import DiscordVenue, upload
from bot.past.pages import Sheet
from bot.service.admission.access import Requester
from bot.service.delivery.receipts import Sent
from bot.service.delivery.venue import File
from bot.service.requests.follow_ups import Form
from bot.service.requests.votes import ReasonForm
from bot.service.run_tasks import RunTasks
from bot.view.wording import commands
from bot.view.wording.commands import ALREADY_ASKED, ASKED_HERE, asked
from council.document.conversation import Source
from storage.journal.rows import RunRow


@dataclass(frozen=True, slots=True)
class InteractionReply:
    """Responds to an interaction; a `bot.actions.Responder`."""

    locations: Locations
    interaction: discord.Interaction

    async def say(self, text: str) -> None:
        await whisper(self.interaction, text)

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        await discord_past.show(self.interaction, sheet, turned=turned)

    async def share(self, sheet: Sheet, sent: Sent) -> None:
        await discord_past.share(self.interaction, sheet, sent)

    async def form(self, form: Form | ReasonForm) -> None:
        await self.interaction.response.send_modal(modals.drawn(form, self.interaction.id))

    async def files(self, files: tuple[File, ...], sent: Sent) -> None:
        del sent
        uploaded = upload(files)
        await self.interaction.followup.send(commands.TRANSCRIPT, files=uploaded, ephemeral=True)

    async def later(self, work: Callable[[], Awaitable[None]]) -> None:
        await self.interaction.response.defer(ephemeral=True, thinking=True)
        await work()

    def venue(self, run: RunRow) -> DiscordVenue:
        is_answered = self.interaction.response.is_done()
        return self.locations.venue_of(run, None if is_answered else self.interaction)

    def venue_of(self, run: RunRow) -> DiscordVenue:
        return self.locations.venue_of(run)

    async def below(self, run: RunRow) -> Source:
        await self.interaction.response.defer(ephemeral=True, thinking=True)  # it takes a while
        here = Location.of_interaction(self.interaction)
        below = await self.locations.thread_of(self.interaction.guild, here, run)
        if below is None:
            here.require(self.interaction.app_permissions)
        return (below or here).source(self.interaction.user.id)

    async def asked(self, below: Source, *, is_new: bool) -> None:
        there = Location.of_source(below)
        is_here = there.channel == self.interaction.channel_id
        said = ASKED_HERE if is_here else asked(there.channel_link)
        await self.say(said if is_new else ALREADY_ASKED)

    @property
    def actor(self) -> Actor:
        """Whoever acts."""
        user, here = self.interaction.user, Location.of_interaction(self.interaction)

        async def is_admin() -> bool:
            return self.interaction.permissions.manage_guild

        async def standing(place: Source) -> Requester:
            return self.locations.standing_of(user, Location.of_source(place))

        known = self.locations.standing_of(user, here)
        return Actor(name=user.display_name, here=known, standing=standing, is_admin=is_admin)


@dataclass(frozen=True, slots=True)
class MessageReply:
    """Answers whoever asks by a message; a `bot.actions.AskerReply`."""

    locations: Locations
    tasks: RunTasks
    message: discord.Message

    async def say(self, text: str) -> None:
        self.tasks.spawn(reply(self.locations.transport, self.message, text))

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        del turned
        shown = await discord_past.posted(sheet)
        self.tasks.spawn(reply(self.locations.transport, self.message, **shown))

    def venue(self, run: RunRow) -> DiscordVenue:
        return self.locations.venue_of(run)
