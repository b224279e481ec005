"""Discord: listens to commands, mentions and buttons, and hands them to the dispatcher.

No privileged intent is asked for: a message's text comes with a mention of the bot, in direct
messages, and with the message action.

Source: https://discord.com/developers/docs/interactions/receiving-and-responding
"""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Mapping
from types import TracebackType
from typing import Self, cast

import aiohttp
import discord
import structlog
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bot.config.configuration import ConfigurationError, Problem
from bot.discord import past as discord_past
from bot.discord.card import CardButton
from bot.discord.commands import Answer, Propose, fitting, read_text, read_texts, register, slash
from bot.discord.past import PastButton
from bot.discord.text import parts
from bot.discord.venue import NOBODY, DiscordVenue, Pace, Place, upload
from bot.past.buttons import Choice
from bot.past.lookup import Lookup
from bot.service.commands import (
    ACTION,
    ASK,
    COMMANDS,
    FORGET,
    HELP,
    PAST,
    Command,
    Given,
    Kind,
    UsageError,
    parse_message,
)
from bot.service.dispatcher import NO_TEXT, Click, Dispatcher, Refusal, Request
from bot.service.options import AS_THE_PROFILE_HAS_IT, RunOptions
from bot.service.venue import Button, File
from bot.view.words import UNEXPECTED, listing
from council.brief import Attachment
from council.document.conversation import Source
from storage.journal import RunRow

log = structlog.get_logger()

INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
ALREADY_ANSWERED, TOO_LATE = 40060, 10062
CLICKS_REMEMBERED = 1000

HINT = "Ask with /council and your question, or mention me with it. /council-help says more."
CLOSED = "Your direct messages are closed to the bot, so nothing was asked. Open them and try again."
TRANSCRIPT = "The whole conversation: the page opens in any browser, the other file is Markdown."

BAD_TOKEN = Problem(
    "DISCORD_TOKEN", "Discord refuses it", "Copy the bot's token from the application's page, under Bot"
)
UNREACHABLE = Problem(
    "DISCORD_TOKEN", "Discord could not be reached", "Check the network and DISCORD_API_BASE_URL"
)

_DEFERRED = discord.InteractionResponseType.deferred_channel_message
_PRIVATE_NOTE = discord.Embed(description="Your question is on its way to the council.")


class DiscordBot:
    """The council on Discord, while it is entered.

    `api_base` is another address of Discord's API, for tests.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        lookup: Lookup,
        *,
        token: str,
        api_base: str | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._lookup = lookup
        self._token = token
        self._api_base = api_base
        self._pace = pace or Pace()
        self._client = discord.AutoShardedClient(
            intents=INTENTS,
            allowed_mentions=NOBODY,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            guild_ready_timeout=self._pace.settle,
        )
        self._client.event(self.on_message)
        self._client.event(self.on_council_button)
        self._client.event(self.on_past_button)
        self._client.add_dynamic_items(CardButton, PastButton)
        self._tree = self._command_tree()
        self._clicks: deque[int] = deque(maxlen=CLICKS_REMEMBERED)
        self._connection: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Connect, and return once everything is heard. Raises `ConfigurationError`."""
        try:
            await self._start()
        except discord.LoginFailure as error:
            await self._client.close()
            raise ConfigurationError([BAD_TOKEN]) from error
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            await self._client.close()
            log.warning("discord_unreachable", reason=error)
            raise ConfigurationError([UNREACHABLE]) from error
        except asyncio.CancelledError:
            await self._client.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Hang up."""
        await self._client.close()
        if self._connection is not None:
            await asyncio.gather(self._connection, return_exceptions=True)

    async def _start(self) -> None:
        interrupted = await self._dispatcher.undelivered("discord")
        if self._api_base:
            Route.BASE = self._api_base
        await self._client.login(self._token)
        if self._api_base:
            # Without it a session that can't be resumed begins anew at Discord's own gateway.
            _, url, _ = await self._client.http.get_bot_gateway()
            DiscordWebSocket.DEFAULT_GATEWAY = type(DiscordWebSocket.DEFAULT_GATEWAY)(url)
        await register(self._tree)
        self._connection = asyncio.create_task(self._client.connect())
        self._connection.add_done_callback(_log_the_end)
        ready = asyncio.create_task(self._client.wait_until_ready())
        await asyncio.wait({ready, self._connection}, return_when=asyncio.FIRST_COMPLETED)
        if self._connection.done():
            ready.cancel()
            await self._connection
        await self._dispatcher.resume(interrupted, self._venue_of)

    def _command_tree(self) -> app_commands.CommandTree[discord.AutoShardedClient]:
        tree = app_commands.CommandTree(
            self._client,
            allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=True),
            allowed_installs=app_commands.AppInstallationType(guild=True, user=False),
        )
        answers: Mapping[Command, Answer] = {
            ASK: self._ask_by_command,
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

        for command in COMMANDS:
            tree.add_command(slash(command, answers[command], propose))
        tree.add_command(app_commands.ContextMenu(name=ACTION, callback=ask_about))
        return tree

    # ── what is heard ────────────────────────────────────────────────────────────────────────

    async def _ask_by_command(self, interaction: discord.Interaction, given: Given) -> None:
        async def work() -> None:
            options = RunOptions.read(given)
            text = str(given["question"])
            file = cast("discord.Attachment | None", given["attachment"])
            if given["private"] and interaction.guild_id:
                await self._ask_privately(interaction, text, file, options)
            else:
                attachments = (await read_text(file),) if file else ()
                await self._ask(interaction, text, attachments, options)

        await self._answer(interaction, work())

    async def _help(self, interaction: discord.Interaction, given: Given) -> None:
        del given  # it takes nothing

        async def work() -> None:
            source = _place(interaction).source(interaction.user.id)
            first, *rest = parts(await self._dispatcher.help(source))
            await interaction.response.send_message(first, ephemeral=True)
            for part in rest:
                await interaction.followup.send(part, ephemeral=True)

        await self._answer(interaction, work())

    def _past(self, command: Command) -> Answer:
        async def answer(interaction: discord.Interaction, given: Given) -> None:
            async def work() -> None:
                here = _place(interaction).source(interaction.user.id)
                sheet = await self._lookup.answer(command, given, here, discord_past.link)
                await discord_past.show(interaction, sheet)

            await self._answer(interaction, work())

        return answer

    async def _ask_to_forget(self, interaction: discord.Interaction, given: Given) -> None:
        async def work() -> None:
            who, is_admin = self._standing(interaction)
            sheet = await self._lookup.ask_to_forget(given, who, is_admin=is_admin)
            await discord_past.show(interaction, sheet)

        await self._answer(interaction, work())

    async def _forget(self, interaction: discord.Interaction, about: str) -> None:
        who, is_admin = self._standing(interaction)
        await interaction.response.defer(ephemeral=True, thinking=True)
        said = await self._lookup.forget(about, who, self._dispatcher.halt, is_admin=is_admin)
        self._dispatcher.spawn(self._lookup.scrub())
        await _whisper(interaction, said)

    def _standing(self, interaction: discord.Interaction) -> tuple[Source, bool]:
        who = _place(interaction).source(interaction.user.id)
        by_platform = interaction.permissions.manage_guild
        return who, self._dispatcher.is_admin(who, by_platform=by_platform)

    async def _propose_profiles(
        self, interaction: discord.Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        del interaction  # every council can be asked everywhere
        return fitting(self._dispatcher.profile_names(), typed)

    async def _propose_answers(
        self, interaction: discord.Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        try:
            here = _place(interaction).source(interaction.user.id)
            return discord_past.proposals(await self._lookup.proposals(typed, here))
        except Refusal as refusal:
            log.info("nothing_proposed", reason=refusal)
            return []

    async def on_past_button(self, interaction: discord.Interaction, choice: Choice) -> None:
        """Show what a button below past answers leads to, as far as it is here."""

        async def work() -> None:
            here = _place(interaction).source(interaction.user.id)
            if choice.verb == "forget":
                await self._forget(interaction, choice.about)
                return
            if choice.verb == "transcript":
                await _hand_over(interaction, self._lookup.transcript(choice.about, here))
                return
            sheet = await self._lookup.press(choice.about, here, discord_past.link)
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
        # A reply pings the bot, too, but only a mention in the text asks it something.
        question, mentions = re.subn(rf"<@!?{me.id}>", "", message.content)
        if not mentions and not isinstance(message.channel, discord.DMChannel):
            return
        try:
            await self._ask_by_message(message, question)
        except (Refusal, UsageError) as refusal:
            await _reply(message, str(refusal))
        except Exception:
            log.exception("message_failed", message=message.id)
            await _reply(message, UNEXPECTED.format(message.id))

    async def on_council_button(self, interaction: discord.Interaction, button: Button) -> None:
        """Do what a pressed button says."""

        async def work() -> None:
            source = _place(interaction).source(interaction.user.id)
            is_admin = interaction.permissions.manage_guild
            click = Click(run_id=button.run_id, source=source, is_admin=is_admin)
            run = await self._dispatcher.run_of(click)
            match button.action:
                case "stop":
                    await _whisper(interaction, await self._dispatcher.stop(click, run.origin.user))
                case "retry":
                    await _whisper(interaction, await self._dispatcher.retry(click, self._venue_of))
                case "transcript":
                    await _hand_over(interaction, self._dispatcher.transcript(run))
                case "again":
                    brief = run.brief
                    options = RunOptions.of(brief.profile)
                    await self._ask(interaction, brief.question, brief.attachments, options)

        if interaction.id not in self._clicks:  # a second press of Stop means something else
            self._clicks.append(interaction.id)
            await self._answer(interaction, work())

    # ── what is done ─────────────────────────────────────────────────────────────────────────

    async def _ask(
        self,
        interaction: discord.Interaction,
        text: str,
        attachments: tuple[Attachment, ...] = (),
        options: RunOptions = AS_THE_PROFILE_HAS_IT,
        left_out: str | None = None,
    ) -> None:
        place = _place(interaction)
        _check(place, interaction.app_permissions)
        run = await self._accept(interaction.id, interaction.user, place, text, attachments, options)
        if run is None:
            return
        if left_out:  # that is the response, then, and the card a message of its own
            await _whisper(interaction, left_out)
        venue = DiscordVenue(
            self._client, run, pace=self._pace, interaction=None if left_out else interaction
        )
        self._dispatcher.begin(run, venue)

    async def _ask_about(self, interaction: discord.Interaction, message: discord.Message) -> None:
        """Ask what a message says, its text files as attachments."""
        attachments, left_out = await read_texts(message.attachments)
        if not message.content.strip() and not attachments:
            raise Refusal(" ".join(filter(None, (NO_TEXT, left_out))))
        await self._ask(interaction, message.content, attachments, left_out=left_out)

    async def _ask_privately(
        self,
        interaction: discord.Interaction,
        text: str,
        file: discord.Attachment | None,
        options: RunOptions,
    ) -> None:
        """Hold the run in the asker's direct messages, if they are open."""
        await interaction.response.defer(ephemeral=True, thinking=True)
        attachments = (await read_text(file),) if file else ()
        asker = interaction.user
        try:
            direct = await asker.create_dm()
            card = await direct.send(
                embed=_PRIVATE_NOTE, nonce=f"p{interaction.id}", allowed_mentions=NOBODY
            )
        except discord.Forbidden as error:
            raise Refusal(CLOSED) from error
        place = Place(direct.id)
        try:
            run = await self._accept(
                interaction.id, asker, place, text, attachments, options, card_id=card.id
            )
        except (Refusal, UsageError):
            await card.delete()
            raise
        if run:
            self._dispatcher.begin(run, self._venue_of(run))
        await _whisper(
            interaction, f"The council answers in your direct messages: {place.link(card.id)}"
        )

    async def _ask_by_message(self, message: discord.Message, question: str) -> None:
        typed = parse_message(question)
        attachments, left_out = await read_texts(message.attachments)
        if not typed.question and not attachments:
            raise Refusal(" ".join(filter(None, (HINT, left_out))))
        place, options = await self._place_of(message), RunOptions.read(typed.given)
        run = await self._accept(message.id, message.author, place, typed.question, attachments, options)
        if run is None:
            return
        self._dispatcher.begin(run, self._venue_of(run))
        if left_out:
            await _reply(message, left_out)

    async def _place_of(self, message: discord.Message) -> Place:
        channel = message.channel
        if isinstance(channel, discord.DMChannel):
            return Place(channel.id)
        if message.guild is None:
            raise Refusal("Discord is not all there yet. Try again in a minute.")
        if isinstance(channel, discord.PartialMessageable):
            # The bot was mentioned into a thread before it heard that there is one.
            channel = await message.guild.fetch_channel(channel.id)
        place = Place.of(channel, message.guild.id)
        _check(place, channel.permissions_for(message.guild.me))
        return place

    async def _accept(
        self,
        key: int,
        asker: discord.User | discord.Member,
        place: Place,
        text: str,
        attachments: tuple[Attachment, ...] = (),
        options: RunOptions = AS_THE_PROFILE_HAS_IT,
        *,
        card_id: int | None = None,
    ) -> RunRow | None:
        message = str(card_id) if card_id else None
        return await self._dispatcher.accept(
            Request(
                text=text,
                source=place.source(asker.id).model_copy(update={"message": message}),
                entry_key=str(key),
                asker=asker.display_name,
                attachments=attachments,
                options=options,
            )
        )

    def _venue_of(self, run: RunRow) -> DiscordVenue:
        return DiscordVenue(self._client, run, pace=self._pace)

    async def _answer(self, interaction: discord.Interaction, work: Awaitable[None]) -> None:
        """Do the work of an interaction; what prevents it is told to its user alone."""
        try:
            await work
        except (Refusal, UsageError) as refusal:
            await _whisper(interaction, str(refusal))
        except Exception as error:
            if isinstance(error, discord.HTTPException) and error.code in (ALREADY_ANSWERED, TOO_LATE):
                log.info("interaction_over", interaction=interaction.id, reason=error)
                return
            log.exception("interaction_failed", interaction=interaction.id)
            await _whisper(interaction, UNEXPECTED.format(interaction.id))


def _place(interaction: discord.Interaction) -> Place:
    if interaction.channel is None:
        raise Refusal("Discord did not say where this is. Try again in another channel.")
    return Place.of(interaction.channel, interaction.guild_id)


def _check(place: Place, has: discord.Permissions) -> None:
    if missing := place.missing(has):
        raise Refusal(
            f"The council can't work here: the bot lacks {listing(missing)}. "
            "An admin can grant it in the channel's settings, under Permissions."
        )


async def _hand_over(interaction: discord.Interaction, writing: Awaitable[tuple[File, ...]]) -> None:
    """Give somebody a transcript; a long one's page takes longer than Discord waits for an answer."""
    await interaction.response.defer(ephemeral=True, thinking=True)
    files = upload(await writing)
    await interaction.followup.send(TRANSCRIPT, files=files, ephemeral=True)


async def _whisper(interaction: discord.Interaction, text: str) -> None:
    """Tell whoever used a command or a button something nobody else sees."""
    try:
        if interaction.response.type is _DEFERRED:
            await interaction.edit_original_response(content=text, allowed_mentions=NOBODY)
        elif interaction.response.is_done():
            await interaction.followup.send(text, ephemeral=True, allowed_mentions=NOBODY)
        else:
            await interaction.response.send_message(text, ephemeral=True, allowed_mentions=NOBODY)
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        log.info("not_told", interaction=interaction.id, reason=error)


async def _reply(message: discord.Message, text: str) -> None:
    """Answer a message; where the bot may not write, its author alone."""
    nonce = f"r{message.id}"
    ways = (
        lambda: message.reply(text, nonce=nonce, mention_author=False),
        lambda: message.author.send(text, nonce=nonce),
    )
    for say in ways:
        try:
            await say()
        except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
            log.info("not_told", message=message.id, reason=error)
        else:
            return


def _log_the_end(connection: asyncio.Task[None]) -> None:
    if not connection.cancelled() and (error := connection.exception()):
        log.error("discord_connection_lost", reason=error)
