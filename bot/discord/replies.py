"""How people are answered on Discord: in response to an interaction, or below their message.

Sources: https://discord.com/developers/docs/interactions/receiving-and-responding,
https://discord.com/developers/docs/components/reference#button
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

import aiohttp
import discord
import structlog
from discord import app_commands, ui

from bot.actions import Actor
from bot.discord import text as discord_text
from bot.discord.chat import DiscordChat, embed_of, embeds_of, upload, view_of
from bot.discord.client import NOBODY, DiscordTransport
from bot.discord.commands import modal
from bot.discord.incoming import Location
from bot.errors import Refusal, VenueError
from bot.past.pages import Choice, Sheet, Verb, shared
from bot.service.access import Requester
from bot.service.delivery.chat import File, Part, Response
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import Sent
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Form, ReasonForm
from bot.service.run_tasks import RunTasks
from bot.view.wording import commands, figures
from bot.view.wording.commands import ALREADY_ASKED, ASKED_HERE, asked
from council.document.conversation import Source
from council.text import clip
from storage.index.rows import IndexRow
from storage.journal.rows import RunRow

log = structlog.get_logger()

_DEFERRED = discord.InteractionResponseType.deferred_channel_message


async def whisper(interaction: discord.Interaction, text: str) -> bool:
    """Reply privately to who used a command or a button; return whether it arrived."""
    try:
        if interaction.response.type is _DEFERRED:
            await interaction.edit_original_response(content=text, allowed_mentions=NOBODY)
        elif interaction.response.is_done():
            await interaction.followup.send(text, ephemeral=True, allowed_mentions=NOBODY)
        else:
            await interaction.response.send_message(text, ephemeral=True, allowed_mentions=NOBODY)
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        log.info("not_told", interaction=interaction.id, reason=error)
        return False
    return True


async def reply(
    transport: DiscordTransport,
    message: discord.Message,
    text: str | None = None,
    **shown: Any,  # noqa: ANN401 - discord.py's own arguments
) -> None:
    """Answer a message; if the bot may not write there, answer its author directly."""
    nonce = f"r{message.id}"
    ways = (
        lambda: message.reply(text, nonce=nonce, mention_author=False, **shown),
        lambda: message.author.send(text, nonce=nonce, **shown),
    )
    for say in ways:
        try:
            await transport.send(
                f"post {message.channel.id}",
                say,
                run=f"message {message.id}",
                urgency=Urgency.FIRST_CARD,
                believes_at_once=True,
            )
        except VenueError as error:
            log.info("not_told", message=message.id, reason=error)
        else:
            return


PRESSED = "past_button"
"""The client's event for a pressed button, with the interaction and the `Choice`."""
LONGEST_CHOICE = 100


class PastButton(
    ui.DynamicItem[ui.Button[ui.View]],
    template=r"past:(?P<verb>turn|see|share|transcript|ask|forget|cancel|help):(?P<about>[\s\S]+)",
):
    """A button that names what it opens, whichever process drew it."""

    def __init__(self, choice: Choice) -> None:
        custom_id = f"past:{choice.verb}:{choice.about}"
        style = discord.ButtonStyle.danger if choice.verb == "forget" else discord.ButtonStyle.secondary
        super().__init__(ui.Button(label=choice.label, custom_id=custom_id, style=style))
        self.choice = choice

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        del interaction  # part of the interface
        label = str(cast("ui.Button[ui.View]", item).label)
        return cls(Choice(label, cast("Verb", match["verb"]), match["about"]))

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        interaction.client.dispatch(PRESSED, interaction, self.choice)


async def show_sheet(
    interaction: discord.Interaction[Any], sheet: Sheet, *, turned: bool = False
) -> None:
    """Show a sheet to the asker, in place of the page they `turned`."""
    message = interaction.message
    text = await asyncio.to_thread(discord_text.card, sheet.message, "")
    # What the whole channel sees stays as it is, whatever a crafted button says.
    if turned and not text.cut and message is not None and message.flags.ephemeral:
        await interaction.response.edit_message(
            embed=embed_of(text), view=_view(sheet), allowed_mentions=NOBODY
        )
    else:
        await _post(interaction, sheet, text, ephemeral=True)


async def message_of(sheet: Sheet) -> dict[str, Any]:
    text = await asyncio.to_thread(discord_text.card, sheet.message, "")
    return {"embed": embed_of(text), "view": _view(sheet)}


async def share_sheet(interaction: discord.Interaction[Any], sheet: Sheet, sent: Sent) -> None:
    """Show a sheet to the whole channel. Raises `Refusal` if they may not write there.

    `sent` keeps each message's id.
    """
    has = interaction.permissions
    in_thread = isinstance(interaction.channel, discord.Thread)
    if interaction.guild_id and not (has.send_messages_in_threads if in_thread else has.send_messages):
        raise Refusal("You can't write in this channel, so you can't share here.")
    public = shared(sheet, interaction.user.display_name)
    text = await asyncio.to_thread(discord_text.card, public.message, "")
    await _post(interaction, public, text, ephemeral=False, sent=sent)


async def _post(
    interaction: discord.Interaction[Any],
    sheet: Sheet,
    text: discord_text.CardText,
    *,
    ephemeral: bool,
    sent: Sent | None = None,
) -> None:
    if not text.cut:
        posted = await interaction.response.send_message(
            embed=embed_of(text), view=_view(sheet), ephemeral=ephemeral, allowed_mentions=NOBODY
        )
        await _keep(interaction, posted, sent)
        return
    pages = await asyncio.to_thread(discord_text.pages, sheet.message)
    for number, page in enumerate(pages):
        shown: dict[str, Any] = {
            "embeds": [discord.Embed(description=each) for each in page],
            "ephemeral": ephemeral,
            "allowed_mentions": NOBODY,
        }
        if number == len(pages) - 1:
            shown["view"] = _view(sheet)
        if number == 0:
            await _keep(interaction, await interaction.response.send_message(**shown), sent)
        else:
            await _keep(interaction, await interaction.followup.send(**shown, wait=True), sent)


async def _keep(
    interaction: discord.Interaction[Any],
    posted: discord.WebhookMessage | discord.InteractionCallbackResponse[Any],
    sent: Sent | None,
) -> None:
    if sent is None:
        return
    if isinstance(posted, discord.WebhookMessage):
        await sent(str(posted.id))
    else:
        await sent(str(posted.message_id or (await interaction.original_response()).id))


def _view(sheet: Sheet) -> ui.View:
    view = ui.View(timeout=None)
    for choice in sheet.choices:
        view.add_item(PastButton(choice))
    return view


def link(row: IndexRow) -> str | None:
    """Return the address of a conversation's thread, or of its card if it has no thread."""
    if row.message is None:
        return None
    guild = row.workspace or "@me"
    if row.thread == row.message:
        return f"https://discord.com/channels/{guild}/{row.thread}"
    return f"https://discord.com/channels/{guild}/{row.thread or row.channel}/{row.message}"


def proposals(rows: Sequence[IndexRow]) -> list[app_commands.Choice[str]]:
    return [app_commands.Choice(name=_proposal(row), value=row.id) for row in rows]


def _proposal(row: IndexRow) -> str:
    """Label a conversation so that it differs from others with the same title."""
    told_by = f" \u00b7 {figures.moment(row.updated_at)} \u00b7 id {row.id[:8]}"
    return f"{clip(' '.join(row.title.split()), LONGEST_CHOICE - len(told_by))}{told_by}"


class DiscordPlaces:
    """Finds where people and runs are, as the bot's client knows it."""

    def __init__(self, client: discord.AutoShardedClient, chat: DiscordChat) -> None:
        self.client = client
        self.chat = chat
        self.transport = chat.transport

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


RESPONSE_SECONDS = 5.0
"""How long a command's response is waited for; Discord takes none after 3 s."""


@dataclass(frozen=True, slots=True)
class InteractionReply:
    """Responds to an interaction; a `bot.actions.Responder`."""

    locations: DiscordPlaces
    interaction: discord.Interaction

    async def say(self, text: str) -> None:
        await whisper(self.interaction, text)

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        await show_sheet(self.interaction, sheet, turned=turned)

    async def share(self, sheet: Sheet, sent: Sent) -> None:
        await share_sheet(self.interaction, sheet, sent)

    async def form(self, form: Form | ReasonForm) -> None:
        await self.interaction.response.send_modal(modal(form, self.interaction.id))

    async def files(self, files: tuple[File, ...], sent: Sent) -> None:
        del sent
        uploaded = upload(files)
        await self.interaction.followup.send(commands.TRANSCRIPT, files=uploaded, ephemeral=True)

    async def later(self, work: Callable[[], Awaitable[None]]) -> None:
        await self.interaction.response.defer(ephemeral=True, thinking=True)
        await work()

    def venue(self, run: RunRow) -> Venue:
        if self.interaction.response.is_done():
            return self.venue_of(run)
        response = Response(partial(whisper, self.interaction), self._show_card)
        return Venue.of(self.locations.chat, run, response)

    async def _show_card(self, part: Part) -> str | None:
        response = self.interaction.response
        try:
            async with asyncio.timeout(RESPONSE_SECONDS):
                try:
                    shown = await response.send_message(
                        embeds=embeds_of(part), view=view_of(part.buttons), allowed_mentions=NOBODY
                    )
                    card = shown.message_id or (await self.interaction.original_response()).id
                except discord.HTTPException:  # it may have arrived, and only its receipt be lost
                    card = (await self.interaction.original_response()).id
        except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
            log.info("response_too_late", interaction=self.interaction.id, reason=error)
            return None if isinstance(error, discord.NotFound) else ""
        return str(card)

    def venue_of(self, run: RunRow) -> Venue:
        return Venue.of(self.locations.chat, run)

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
        """Who acts."""
        user, here = self.interaction.user, Location.of_interaction(self.interaction)

        async def is_admin() -> bool:
            return self.interaction.permissions.manage_guild

        async def standing(place: Source) -> Requester:
            return self.locations.standing_of(user, Location.of_source(place))

        known = self.locations.standing_of(user, here)
        return Actor(name=user.display_name, here=known, standing=standing, is_admin=is_admin)


@dataclass(frozen=True, slots=True)
class MessageReply:
    """Answers who asks by a message; a `bot.actions.AskerReply`."""

    locations: DiscordPlaces
    tasks: RunTasks
    message: discord.Message

    async def say(self, text: str) -> None:
        self.tasks.spawn(reply(self.locations.transport, self.message, text))

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        del turned
        shown = await message_of(sheet)
        self.tasks.spawn(reply(self.locations.transport, self.message, **shown))

    def venue(self, run: RunRow) -> Venue:
        return Venue.of(self.locations.chat, run)
