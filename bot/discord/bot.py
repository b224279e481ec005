"""Discord: listens to commands, mentions and buttons, and hands them to the dispatcher.

A message's text comes with a mention of the bot, in direct messages, and with the message action. The
one privileged intent, message content, is asked for only to read the threads it is mentioned in.

Source: https://discord.com/developers/docs/interactions/receiving-and-responding
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, cast

import aiohttp
import discord
import structlog
from discord import app_commands

from bot.discord import modals
from bot.discord import past as discord_past
from bot.discord.card import CardButton
from bot.discord.commands import Answer, Propose, command_tree, fitting
from bot.discord.errors import ALREADY_ANSWERED, TOO_LATE, why_final
from bot.discord.gateway import (
    introduce,
    is_out_of_reach,
    log_in,
    refused,
    tolerate_unreadable_frames,
)
from bot.discord.incoming import read_file, read_files
from bot.discord.location import Location
from bot.discord.notices import NOBODY, reply, send_notice, whisper
from bot.discord.past import PastButton
from bot.discord.transport import Transport, single_attempts
from bot.discord.venue import EDIT_SECONDS, DiscordVenue, upload
from bot.errors import ConfigurationError, Gone, NotAllowed, Refusal, VenueError
from bot.past.buttons import Choice
from bot.past.lookup import Lookup
from bot.past.pages import Sheet
from bot.service.access import Standing
from bot.service.commands import ASK, CONFIG, FORGET, HELP, PAST, Command, Given, Kind, parse_message
from bot.service.configure import configure
from bot.service.dispatcher import Click, Dispatcher
from bot.service.metrics import Metrics
from bot.service.options import AS_THE_PROFILE_HAS_IT, RunOptions
from bot.service.outbox import Outbox, Urgency
from bot.service.question import Question
from bot.service.venue import Button, File
from bot.view.message import Message
from bot.view.wording import delivery, discord_errors
from bot.view.wording import discord as wording
from bot.view.wording.failures import UNEXPECTED
from bot.view.wording.follow_ups import ALREADY_ASKED, ASKED_HERE, USE_THE_BUTTON, asked
from bot.view.wording.replies import NO_TEXT
from council.brief import Attachment, Discussion
from council.document.conversation import Source
from storage.journal import RunRow

log = structlog.get_logger()

T = TypeVar("T")

INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
CLICKS_REMEMBERED = 1000
TAKEOVER_SECONDS = 5.0
"""Between two tries to take over from another process, while Discord can't be reached."""
SETTLE_SECONDS = 2.0
"""How long a start waits for the next server that the bot is on."""


_PRIVATE_NOTE = discord.Embed(description=wording.ON_ITS_WAY)


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
        self._lookup = lookup
        self._token = token
        self._api_base = api_base
        self._reads_messages = reads_messages
        self._listens = listens
        self._edit_seconds = edit_seconds
        self.outbox = outbox or Outbox("discord", metrics=metrics)
        self._clock = clock
        self._transport = Transport(self.outbox, clock=clock)
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
        self._client.event(self.on_message)
        self._client.event(self.on_council_button)
        self._client.event(self.on_past_button)
        self._client.event(self.on_interaction)
        self._client.add_dynamic_items(CardButton, PastButton)
        self._tree = self._command_tree()
        self._clicks: deque[int] = deque(maxlen=CLICKS_REMEMBERED)
        self._connection: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Log in; if it listens, return once the bot hears everything. Raises `ConfigurationError`."""
        try:
            await log_in(self._client, self._token, self._api_base)
            if self._listens:
                await self.listen()
        except BaseException:
            await self._client.close()
            raise
        if warnings := self._dispatcher.warnings:
            warnings.open("discord", partial(send_notice, self._client, self._transport, self._clock))
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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Hang up."""
        if warnings := self._dispatcher.warnings:
            warnings.close("discord")
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
            return discord_errors.CLOSED
        if why := why_final(error):
            return why
        raise error

    async def _listen(self) -> None:
        interrupted = await self._dispatcher.resuming.undelivered("discord")
        await introduce(self._tree, self._api_base)
        self._connection = asyncio.create_task(self._client.connect())
        ready = asyncio.create_task(self._client.wait_until_ready())
        await asyncio.wait({ready, self._connection}, return_when=asyncio.FIRST_COMPLETED)
        if self._connection.done():
            ready.cancel()
            await self._connection
        await self._dispatcher.resuming.resume(interrupted, self.venue_of)

    def _command_tree(self) -> app_commands.CommandTree[discord.AutoShardedClient]:
        answers: Mapping[Command, Answer] = {
            ASK: self._ask_by_command,
            CONFIG: self._configure,
            HELP: self._help,
            **{command: self._past(command) for command in PAST},
            FORGET: self._ask_to_forget,
        }
        propose: Mapping[Kind, Propose] = {
            "profile": self._propose_profiles,
            "conversation": self._propose_answers,
        }

        async def ask_about(interaction: discord.Interaction, message: discord.Message) -> None:
            await self._answer(interaction, self._ask_about(interaction, message))

        return command_tree(self._client, answers, propose, ask_about)

    # ── what is heard ────────────────────────────────────────────────────────────────────────

    async def _ask_by_command(self, interaction: discord.Interaction, given: Given) -> None:
        async def work() -> None:
            options = RunOptions.read(given)
            text = str(given["question"])
            file = cast("discord.Attachment | None", given["attachment"])
            if given["private"] and interaction.guild_id:
                await self._ask_privately(interaction, text, file, options)
            else:
                attachments = (await read_file(file),) if file else ()
                await self._ask(interaction, text, attachments, options)

        await self._answer(interaction, work())

    async def _help(self, interaction: discord.Interaction, given: Given) -> None:
        del given  # it has no options

        async def work() -> None:
            source = _location(interaction).source(interaction.user.id)
            await self._reply(interaction, Sheet(await self._dispatcher.help(source)))

        await self._answer(interaction, work())

    async def _configure(self, interaction: discord.Interaction, given: Given) -> None:
        async def work() -> None:
            who, is_admin = self._who(interaction)
            known = self._standing_of(interaction.user, _location(interaction))
            shown = await configure(self._dispatcher.channels, given, who, known, is_admin=is_admin)
            await self._reply(interaction, Sheet(shown))

        await self._answer(interaction, work())

    async def _reply(self, interaction: discord.Interaction, sheet: Sheet) -> None:
        """Show somebody the reply to a command."""
        who, is_admin = self._who(interaction)

        async def may() -> bool:
            return is_admin

        async def show(message: Message) -> bool:
            await discord_past.show(interaction, replace(sheet, message=message))
            return True

        await self._dispatcher.show_privately(sheet.message, who, may, show)

    def _past(self, command: Command) -> Answer:
        async def answer(interaction: discord.Interaction, given: Given) -> None:
            async def work() -> None:
                here = _location(interaction).source(interaction.user.id)
                sheet = await self._lookup.answer(command, given, here, discord_past.link)
                await self._reply(interaction, sheet)

            await self._answer(interaction, work())

        return answer

    async def _ask_to_forget(self, interaction: discord.Interaction, given: Given) -> None:
        async def work() -> None:
            who, is_admin = self._who(interaction)
            sheet = await self._lookup.ask_to_forget(given, who, is_admin=is_admin)
            await self._reply(interaction, sheet)

        await self._answer(interaction, work())

    async def _forget(self, interaction: discord.Interaction, about: str) -> None:
        who, is_admin = self._who(interaction)
        await interaction.response.defer(ephemeral=True, thinking=True)
        said = await self._lookup.forget(about, who, self._dispatcher.halt, is_admin=is_admin)
        self._dispatcher.spawn(self._lookup.scrub())
        await whisper(interaction, said)

    def _standing_of(self, who: discord.User | discord.Member, here: Location) -> Standing:
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

    def _who(self, interaction: discord.Interaction) -> tuple[Source, bool]:
        who = _location(interaction).source(interaction.user.id)
        by_platform = interaction.permissions.manage_guild
        return who, self._dispatcher.admins.include(who, by_platform=by_platform)

    async def _propose_profiles(
        self, interaction: discord.Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        here = _location(interaction).source(interaction.user.id)
        try:
            return fitting(await self._dispatcher.profile_names(here), typed)
        except Refusal as refusal:
            log.info("nothing_proposed", reason=refusal)
            return []

    async def _propose_answers(
        self, interaction: discord.Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        try:
            here = _location(interaction).source(interaction.user.id)
            return discord_past.proposals(await self._lookup.proposals(typed, here))
        except Refusal as refusal:
            log.info("nothing_proposed", reason=refusal)
            return []

    async def on_past_button(self, interaction: discord.Interaction, choice: Choice) -> None:
        """Show what a button below past answers opens, if it belongs here."""

        async def work() -> None:
            here = _location(interaction).source(interaction.user.id)
            if choice.verb == "forget":
                await self._forget(interaction, choice.about)
                return
            if choice.verb == "transcript":
                await _hand_over(interaction, self._lookup.transcript(choice.about, here))
                return
            sheet = await self._lookup.press(choice.about, here, discord_past.link, choice.verb)
            if choice.verb == "share":
                await discord_past.share(interaction, sheet)
            else:
                await discord_past.show(interaction, sheet, turned=choice.verb == "turn")

        await self._answer(interaction, work())

    async def on_message(self, message: discord.Message) -> None:
        """Take a message that mentions the bot, or a direct one, as a question."""
        me = self._client.user
        if me is None or message.author.bot:
            return
        question, mentions = re.subn(rf"<@!?{me.id}>", "", message.content)
        replied = message.reference.resolved if message.reference else None
        if mentions or isinstance(message.channel, discord.DMChannel):
            asking = self._ask_by_message(message, question)
        elif isinstance(replied, discord.Message) and replied.author.id == me.id:
            asking = self._ask_by_reply(message, replied)
        else:
            return
        try:
            await asking
        except Refusal as refusal:
            await reply(self._transport, message, str(refusal))
        except Exception:
            log.exception("message_failed", message=message.id)
            await reply(self._transport, message, UNEXPECTED.format(message.id))

    async def on_council_button(self, interaction: discord.Interaction, button: Button) -> None:
        """Handle a pressed button."""

        async def work() -> None:
            source = _location(interaction).source(interaction.user.id)
            is_admin = interaction.permissions.manage_guild
            click = Click(run_id=button.run_id, source=source, is_admin=is_admin)
            run = await self._dispatcher.run_of(click, button.permission)
            match button.action:
                case "stop":
                    await whisper(interaction, await self._dispatcher.stop(click, run.origin.user))
                case "retry":
                    known = self._standing_of(interaction.user, _location(interaction))
                    said = await self._dispatcher.retry(click, known, self.venue_of)
                    await whisper(interaction, said)
                case "transcript":
                    await _hand_over(interaction, self._dispatcher.transcript(run))
                case "votes" | "changes" | "reviews":
                    shown = await self._dispatcher.detail(run, button.action, button.seat)
                    await discord_past.show(interaction, Sheet(shown))
                case "follow" | "answer":
                    names = await self._dispatcher.profile_names(source)
                    answers = button.action == "answer"
                    form = await self._dispatcher.follow_ups.form(run, source, names, answers=answers)
                    await interaction.response.send_modal(modals.follow_up(form, interaction.id))
                case "helpful":
                    said = await self._dispatcher.votes.cast(run, source, helpful=True)
                    await whisper(interaction, said)
                case "unhelpful":
                    await self._dispatcher.votes.cast(run, source, helpful=False)
                    await interaction.response.send_modal(modals.why(run.id))
                case "again":
                    brief = run.brief
                    options = RunOptions.of(brief.profile)
                    context = brief.context.without_messages if brief.context else None
                    await self._ask(
                        interaction, brief.question, brief.attachments, options, context=context
                    )

        if interaction.id not in self._clicks:  # a second press of Stop means something else
            self._clicks.append(interaction.id)
            await self._answer(interaction, work())

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Handle a submitted form, whichever process opened it."""
        form = modals.read(interaction)
        if form is None:
            return

        async def work() -> None:
            source = _location(interaction).source(interaction.user.id)
            run = await self._dispatcher.run_of(Click(form.run_id, source))
            match form:
                case modals.Why():
                    said = await self._dispatcher.votes.cast(
                        run, source, helpful=False, reason=form.reason
                    )
                    await whisper(interaction, said)
                case modals.FollowUp():
                    await self._follow_up(interaction, run, form)

        await self._answer(interaction, work())

    # ── what is done ─────────────────────────────────────────────────────────────────────────

    async def _ask(
        self,
        interaction: discord.Interaction,
        text: str,
        attachments: tuple[Attachment, ...] = (),
        options: RunOptions = AS_THE_PROFILE_HAS_IT,
        left_out: str | None = None,
        context: Discussion | None = None,
    ) -> None:
        here = _location(interaction)
        _check(here, interaction.app_permissions)
        run = await self._accept(
            interaction.id, interaction.user, here, text, attachments, options, context=context
        )
        if run is None:
            return
        if left_out:  # this is the response, so the card is a message of its own
            await whisper(interaction, left_out)
        self._dispatcher.begin(run, self.venue_of(run, None if left_out else interaction))

    async def _follow_up(
        self, interaction: discord.Interaction, run: RunRow, form: modals.FollowUp
    ) -> None:
        """Ask a form's question in the conversation's thread or, if that is gone, here."""
        await interaction.response.defer(ephemeral=True, thinking=True)  # finding a thread takes a while
        here = await self._location_below(interaction, run)
        question = self._dispatcher.follow_ups.question(
            run,
            here.source(interaction.user.id),
            form.text,
            profile=form.profile,
            # One form asks one question, however often it is submitted.
            entry_key=f"form {interaction.user.id} {form.opened}",
            asker=interaction.user.display_name,
            standing=self._standing_of(interaction.user, here),
            context=Discussion(until=str(interaction.id)) if here.parent else None,
        )
        begun = await self._dispatcher.accept(question)
        if begun is None:
            await whisper(interaction, ALREADY_ASKED)
            return
        self._dispatcher.begin(begun, self.venue_of(begun))
        is_here = here.channel == interaction.channel_id
        await whisper(interaction, ASKED_HERE if is_here else asked(here.channel_link))

    async def _location_below(self, interaction: discord.Interaction, run: RunRow) -> Location:
        """Return the thread of a run's conversation or, if gone, where its button was pressed."""
        here = _location(interaction)
        if below := await self._thread_of(interaction.guild, here, run):
            return below
        _check(here, interaction.app_permissions)
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
        _check(below, found.permissions_for(guild.me))
        return below

    async def _ask_about(self, interaction: discord.Interaction, message: discord.Message) -> None:
        """Ask a message as a question, with its text files as attachments."""
        attachments, left_out = await read_files(message.attachments)
        if not message.content.strip() and not attachments:
            raise Refusal(" ".join(filter(None, (NO_TEXT, left_out))))
        context = Discussion(until=str(interaction.id), question=str(message.id))
        await self._ask(interaction, message.content, attachments, left_out=left_out, context=context)

    async def _ask_privately(
        self,
        interaction: discord.Interaction,
        text: str,
        file: discord.Attachment | None,
        options: RunOptions,
    ) -> None:
        """Run in the asker's direct messages, if they are open."""
        await interaction.response.defer(ephemeral=True, thinking=True)
        attachments = (await read_file(file),) if file else ()
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
                asked_in=_location(interaction),
            )
        except Refusal:
            await self._send_privately(interaction, card.delete)
            raise
        if run:
            self._dispatcher.begin(run, self.venue_of(run))
        await whisper(interaction, wording.in_direct(here.link(card.id)))

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

    async def _ask_by_message(self, message: discord.Message, question: str) -> None:
        typed = parse_message(question)
        attachments, left_out = await read_files(message.attachments)
        if not typed.question and not attachments:
            raise Refusal(" ".join(filter(None, (wording.HINT, left_out))))
        here, options = await self._location_of(message), RunOptions.read(typed.given)
        context = Discussion(until=str(message.id))
        run = await self._accept(
            message.id, message.author, here, typed.question, attachments, options, context=context
        )
        if run is None:
            return
        self._dispatcher.begin(run, self.venue_of(run))
        if left_out:
            await reply(self._transport, message, left_out)

    async def _ask_by_reply(self, message: discord.Message, replied: discord.Message) -> None:
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
        typed = parse_message(message.content)
        attachments, left_out = await read_files(message.attachments)
        below = await self._thread_of(message.guild, here, run) or here
        question = self._dispatcher.follow_ups.question(
            run,
            below.source(message.author.id),
            typed.question,
            profile="",
            entry_key=str(message.id),
            asker=message.author.display_name,
            standing=self._standing_of(message.author, below),
            context=Discussion(until=str(message.id)) if below.parent else None,
        )
        options = RunOptions.read(typed.given)
        begun = await self._dispatcher.accept(
            replace(question, options=options, attachments=attachments)
        )
        if begun is None:
            return
        self._dispatcher.begin(begun, self.venue_of(begun))
        if left_out:
            await reply(self._transport, message, left_out)

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
        _check(here, channel.permissions_for(message.guild.me))
        return here

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
                standing=self._standing_of(asker, asked_in or here),
                attachments=attachments,
                context=context if here.parent else None,
                options=options,
                asked_in=asked_in.source(asker.id) if asked_in else None,
            )
        )

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

    async def _answer(self, interaction: discord.Interaction, work: Awaitable[None]) -> None:
        """Handle an interaction; if that is impossible, tell only its user why."""
        try:
            await work
        except Refusal as refusal:
            await whisper(interaction, str(refusal))
        except Exception as error:
            if isinstance(error, discord.HTTPException) and error.code in (ALREADY_ANSWERED, TOO_LATE):
                log.info("interaction_over", interaction=interaction.id, reason=error)
                return
            log.exception("interaction_failed", interaction=interaction.id)
            await whisper(interaction, UNEXPECTED.format(interaction.id))


def _location(interaction: discord.Interaction) -> Location:
    if interaction.channel is None:
        raise Refusal(wording.UNKNOWN_PLACE)
    return Location.of(interaction.channel, interaction.guild_id)


def _check(here: Location, has: discord.Permissions) -> None:
    if missing := here.missing(has):
        raise Refusal(wording.needs(missing))


async def _hand_over(interaction: discord.Interaction, writing: Awaitable[tuple[File, ...]]) -> None:
    """Send somebody a transcript; a long one's page takes longer than Discord waits for a response."""
    await interaction.response.defer(ephemeral=True, thinking=True)
    files = upload(await writing)
    await interaction.followup.send(delivery.TRANSCRIPT, files=files, ephemeral=True)
