"""Questions on Discord: by command, form, mention or reply; each becomes a run.

A message's text comes with a mention of the bot, in direct messages, and with the message action.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import discord
import structlog

from bot.discord import modals, typed
from bot.discord.incoming import read_file, read_files
from bot.discord.location import Location
from bot.discord.notices import NOBODY, reply, whisper
from bot.discord.transport import Transport
from bot.discord.venue import EDIT_SECONDS, DiscordVenue
from bot.errors import Gone, NotAllowed, Refusal, VenueError
from bot.service.admission.access import Standing
from bot.service.commands import Typed, parse_message
from bot.service.delivery.outbox import Urgency
from bot.service.dispatcher import Dispatcher
from bot.service.options import AS_THE_PROFILE_HAS_IT, RunOptions
from bot.service.requests.question import Question
from bot.view.wording.platforms import discord as wording
from bot.view.wording.service.follow_ups import ALREADY_ASKED, ASKED_HERE, USE_THE_BUTTON, asked
from bot.view.wording.service.replies import NO_TEXT
from council.brief import Attachment, Discussion
from storage.journal.journal import RunRow

log = structlog.get_logger()

T = TypeVar("T")

_PRIVATE_NOTE = discord.Embed(description=wording.ON_ITS_WAY)


class Asking:
    """Turns what people send into runs; a question that can't be accepted raises `Refusal`.

    With `reads_messages`, the bot reads the threads that it is mentioned in. A card is left alone for
    `edit_seconds` after an edit.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        client: discord.AutoShardedClient,
        transport: Transport,
        *,
        reads_messages: bool = False,
        edit_seconds: float = EDIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dispatcher = dispatcher
        self._client = client
        self._transport = transport
        self._reads_messages = reads_messages
        self._edit_seconds = edit_seconds
        self._clock = clock

    async def ask(
        self,
        interaction: discord.Interaction,
        text: str,
        attachments: tuple[Attachment, ...] = (),
        options: RunOptions = AS_THE_PROFILE_HAS_IT,
        left_out: str | None = None,
        context: Discussion | None = None,
    ) -> None:
        """Ask a question; its card is the response, unless that must say what was `left_out`."""
        here = Location.of_interaction(interaction)
        here.require(interaction.app_permissions)
        text = await typed.of_interaction(self._client, interaction).typed(text)
        run = await self._accept(
            interaction.id, interaction.user, here, text, attachments, options, context=context
        )
        if run is None:
            return
        if left_out:  # this is the response, so the card is a message of its own
            await whisper(interaction, left_out)
        self._dispatcher.tasks.begin(run, self.venue_of(run, None if left_out else interaction))

    async def ask_again(self, interaction: discord.Interaction, run: RunRow) -> None:
        """Ask a run's question again, with its options; the same part of a thread is read again."""
        brief = run.brief
        context = brief.context.without_messages if brief.context else None
        options = RunOptions.of(brief.profile)
        await self.ask(interaction, brief.question, brief.attachments, options, context=context)

    async def ask_about(self, interaction: discord.Interaction, message: discord.Message) -> None:
        """Ask a message as a question, with its text files as attachments."""
        (attachments, left_out), text = await asyncio.gather(
            read_files(message.attachments),
            typed.of_message(self._client, message).typed(message.content),
        )
        if not text and not attachments:
            raise Refusal(" ".join(filter(None, (NO_TEXT, left_out))))
        context = Discussion(until=str(interaction.id), question=str(message.id))
        await self.ask(interaction, text, attachments, left_out=left_out, context=context)

    async def ask_privately(
        self,
        interaction: discord.Interaction,
        text: str,
        file: discord.Attachment | None,
        options: RunOptions,
    ) -> None:
        """Run in the asker's direct messages, if they are open."""
        await interaction.response.defer(ephemeral=True, thinking=True)
        attachments = (await read_file(file),) if file else ()
        text = await typed.of_interaction(self._client, interaction).typed(text)
        asker = interaction.user

        async def invite() -> discord.Message:
            direct = await asker.create_dm()
            nonce = f"p{interaction.id}"
            return await direct.send(embed=_PRIVATE_NOTE, nonce=nonce, allowed_mentions=NOBODY)

        try:
            card = await self._send_privately(interaction, invite)
        except (Gone, NotAllowed) as error:
            raise Refusal(wording.CLOSED) from error
        except VenueError as error:
            raise Refusal(wording.UNREACHED) from error
        here = Location(card.channel.id)
        try:
            run = await self._accept(
                interaction.id,
                asker,
                here,
                text,
                attachments,
                options,
                card_id=card.id,
                asked_in=Location.of_interaction(interaction),
            )
        except Refusal:
            await self._send_privately(interaction, card.delete)
            raise
        if run:
            self._dispatcher.tasks.begin(run, self.venue_of(run))
        await whisper(interaction, wording.in_direct(here.link(card.id)))

    async def ask_by_message(self, message: discord.Message) -> None:
        """Ask what a message says besides its mention of the bot, with its text files."""
        (attachments, left_out), asked = await asyncio.gather(
            read_files(message.attachments), self._parsed(message)
        )
        if not asked.question and not attachments:
            raise Refusal(" ".join(filter(None, (wording.HINT, left_out))))
        here, options = await self._location_of(message), RunOptions.read(asked.given)
        context = Discussion(until=str(message.id))
        run = await self._accept(
            message.id, message.author, here, asked.question, attachments, options, context=context
        )
        if run is None:
            return
        self._dispatcher.tasks.begin(run, self.venue_of(run))
        if left_out:
            await reply(self._transport, message, left_out)

    async def ask_by_reply(self, message: discord.Message, replied: discord.Message) -> None:
        """Take a reply to one of the bot's messages as a follow-up, if it pings the bot.

        A reply to the response to a command comes without its text, whatever it pings.
        """
        if not message.content and not message.attachments:
            if replied.interaction_metadata is not None:
                raise Refusal(USE_THE_BUTTON)
            return  # it pings nobody: people talk
        if self._client.user not in message.mentions:
            return
        here = await self._location_of(message)
        source = here.source(message.author.id)
        run = await self._dispatcher.run_shown_as(source, str(replied.id))
        if run is None:
            raise Refusal(wording.HINT)
        (attachments, left_out), asked = await asyncio.gather(
            read_files(message.attachments), self._parsed(message)
        )
        below = await self._thread_of(message.guild, here, run) or here
        question = self._dispatcher.follow_ups.question(
            run,
            below.source(message.author.id),
            asked.question,
            profile="",
            entry_key=str(message.id),
            asker=message.author.display_name,
            standing=self.standing_of(message.author, below),
            context=Discussion(until=str(message.id)) if below.parent else None,
        )
        options = RunOptions.read(asked.given)
        begun = await self._dispatcher.accept(
            replace(question, options=options, attachments=attachments)
        )
        if begun is None:
            return
        self._dispatcher.tasks.begin(begun, self.venue_of(begun))
        if left_out:
            await reply(self._transport, message, left_out)

    async def follow_up(
        self, interaction: discord.Interaction, run: RunRow, form: modals.FollowUp
    ) -> None:
        """Ask a form's question in the conversation's thread or, if that is gone, here."""
        await interaction.response.defer(ephemeral=True, thinking=True)  # finding a thread takes a while
        here = await self._location_below(interaction, run)
        question = self._dispatcher.follow_ups.question(
            run,
            here.source(interaction.user.id),
            await typed.of_interaction(self._client, interaction).typed(form.text),
            profile=form.profile,
            # One form asks one question, however often it is submitted.
            entry_key=f"form {interaction.user.id} {form.opened}",
            asker=interaction.user.display_name,
            standing=self.standing_of(interaction.user, here),
            context=Discussion(until=str(interaction.id)) if here.parent else None,
        )
        begun = await self._dispatcher.accept(question)
        if begun is None:
            await whisper(interaction, ALREADY_ASKED)
            return
        self._dispatcher.tasks.begin(begun, self.venue_of(begun))
        is_here = here.channel == interaction.channel_id
        await whisper(interaction, ASKED_HERE if is_here else asked(here.channel_link))

    async def _parsed(self, message: discord.Message) -> Typed:
        return parse_message(await typed.of_message(self._client, message).typed(message.content))

    def venue_of(self, run: RunRow, interaction: discord.Interaction | None = None) -> DiscordVenue:
        """Return where a run is shown."""
        return DiscordVenue(
            self._client,
            run,
            self._transport,
            interaction=interaction,
            reads_messages=self._reads_messages,
            edit_seconds=self._edit_seconds,
            clock=self._clock,
        )

    def standing_of(self, who: discord.User | discord.Member, here: Location) -> Standing:
        """Return what decides whether somebody may ask here."""
        channel = self._client.get_channel(here.parent or here.channel)
        places = (here.channel, here.parent, getattr(channel, "category_id", None))
        roles = who.roles if isinstance(who, discord.Member) else ()
        return Standing(
            workspace=str(here.guild) if here.guild else None,
            places=frozenset(str(place) for place in places if place),
            memberships=frozenset(str(role.id) for role in roles),
            is_direct=here.guild is None,
        )

    async def _accept(
        self,
        key: int,
        asker: discord.User | discord.Member,
        here: Location,
        text: str,
        attachments: tuple[Attachment, ...] = (),
        options: RunOptions = AS_THE_PROFILE_HAS_IT,
        *,
        card_id: int | None = None,
        asked_in: Location | None = None,
        context: Discussion | None = None,
    ) -> RunRow | None:
        """Record a question; `asked_in` is where it was asked, if elsewhere."""
        message = str(card_id) if card_id else None
        return await self._dispatcher.accept(
            Question(
                text=text,
                source=here.source(asker.id).model_copy(update={"message": message}),
                entry_key=str(key),
                asker=asker.display_name,
                standing=self.standing_of(asker, asked_in or here),
                attachments=attachments,
                context=context if here.parent else None,
                options=options,
                asked_in=asked_in.source(asker.id) if asked_in else None,
            )
        )

    async def _send_privately(
        self, interaction: discord.Interaction, request: Callable[[], Awaitable[T]]
    ) -> T:
        return await self._transport.send(
            "direct",
            request,
            run=f"interaction {interaction.id}",
            urgency=lambda: Urgency.FIRST_CARD,
            believes_at_once=True,
        )

    async def _location_below(self, interaction: discord.Interaction, run: RunRow) -> Location:
        """Return the thread of a run's conversation or, if gone, where its button was pressed."""
        here = Location.of_interaction(interaction)
        if below := await self._thread_of(interaction.guild, here, run):
            return below
        here.require(interaction.app_permissions)
        return here

    async def _thread_of(
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

    async def _location_of(self, message: discord.Message) -> Location:
        channel = message.channel
        if isinstance(channel, discord.DMChannel):
            return Location(channel.id)
        if message.guild is None:
            raise Refusal(wording.CONNECTING)
        if isinstance(channel, discord.PartialMessageable):
            # The bot was mentioned in a thread before it learned of the thread.
            channel = await message.guild.fetch_channel(channel.id)
        here = Location.of(channel, message.guild.id)
        here.require(channel.permissions_for(message.guild.me))
        return here
