"""What the bot hears on Discord: commands, messages, buttons and forms, each answered or passed on.

Source: https://discord.com/developers/docs/interactions/receiving-and-responding
"""

import re
from collections import deque
from collections.abc import Awaitable, Mapping
from typing import cast

import discord
import structlog
from discord import app_commands

from bot.discord import modals
from bot.discord import past as discord_past
from bot.discord.asking import Asking
from bot.discord.card import CardButton
from bot.discord.commands import Answer, Propose, command_tree, fitting
from bot.discord.errors import ALREADY_ANSWERED, TOO_LATE
from bot.discord.incoming import read_file
from bot.discord.location import Location
from bot.discord.notices import reply, whisper
from bot.discord.past import PastButton
from bot.discord.transport import Transport
from bot.discord.venue import upload
from bot.errors import Refusal
from bot.past.buttons import Choice
from bot.past.lookup import Lookup
from bot.past.pages import Sheet
from bot.service.commands import ASK, CONFIG, FORGET, HELP, PAST, Command, Given, Kind
from bot.service.delivery.venue import Button, File
from bot.service.dispatcher import Click, Dispatcher
from bot.service.options import RunOptions
from bot.view.wording.service import delivery
from bot.view.wording.service.failures import UNEXPECTED
from council.document.conversation import Source

log = structlog.get_logger()

CLICKS_REMEMBERED = 1000


class Listeners:
    """The listeners of the bot; `asking` takes the questions among what they hear."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        lookup: Lookup,
        client: discord.AutoShardedClient,
        transport: Transport,
        asking: Asking,
    ) -> None:
        self._dispatcher = dispatcher
        self._lookup = lookup
        self._client = client
        self._transport = transport
        self._asking = asking
        self._clicks: deque[int] = deque(maxlen=CLICKS_REMEMBERED)

    def register(self) -> None:
        """Listen to the client's events; its commands are registered by `command_tree`."""
        self._client.event(self.on_message)
        self._client.event(self.on_council_button)
        self._client.event(self.on_past_button)
        self._client.event(self.on_interaction)
        self._client.add_dynamic_items(CardButton, PastButton)

    def command_tree(self) -> app_commands.CommandTree[discord.AutoShardedClient]:
        """Return the commands and the message action, each with its listener."""
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
            await self._answer(interaction, self._asking.ask_about(interaction, message))

        return command_tree(self._client, answers, propose, ask_about)

    async def _ask_by_command(self, interaction: discord.Interaction, given: Given) -> None:
        async def work() -> None:
            options = RunOptions.read(given)
            text = str(given["question"])
            file = cast("discord.Attachment | None", given["attachment"])
            if given["private"] and interaction.guild_id:
                await self._asking.ask_privately(interaction, text, file, options)
            else:
                attachments = (await read_file(file),) if file else ()
                await self._asking.ask(interaction, text, attachments, options)

        await self._answer(interaction, work())

    async def _help(self, interaction: discord.Interaction, given: Given) -> None:
        del given  # it has no options

        async def work() -> None:
            source = Location.of_interaction(interaction).source(interaction.user.id)
            await discord_past.show(interaction, Sheet(await self._dispatcher.help(source)))

        await self._answer(interaction, work())

    async def _configure(self, interaction: discord.Interaction, given: Given) -> None:
        async def work() -> None:
            who, is_admin = self._who(interaction)
            known = self._asking.standing_of(interaction.user, Location.of_interaction(interaction))
            shown = await self._dispatcher.configure(given, who, known, is_admin=is_admin)
            await discord_past.show(interaction, Sheet(shown))

        await self._answer(interaction, work())

    def _past(self, command: Command) -> Answer:
        async def answer(interaction: discord.Interaction, given: Given) -> None:
            async def work() -> None:
                here = Location.of_interaction(interaction).source(interaction.user.id)
                sheet = await self._lookup.answer(command, given, here, discord_past.link)
                await discord_past.show(interaction, sheet)

            await self._answer(interaction, work())

        return answer

    async def _ask_to_forget(self, interaction: discord.Interaction, given: Given) -> None:
        async def work() -> None:
            who, is_admin = self._who(interaction)
            sheet = await self._lookup.ask_to_forget(given, who, is_admin=is_admin)
            await discord_past.show(interaction, sheet)

        await self._answer(interaction, work())

    async def _forget(self, interaction: discord.Interaction, about: str) -> None:
        who, is_admin = self._who(interaction)
        await interaction.response.defer(ephemeral=True, thinking=True)
        said = await self._lookup.forget(about, who, self._dispatcher.tasks.halt, is_admin=is_admin)
        self._dispatcher.tasks.spawn(self._lookup.scrub())
        await whisper(interaction, said)

    def _who(self, interaction: discord.Interaction) -> tuple[Source, bool]:
        who = Location.of_interaction(interaction).source(interaction.user.id)
        by_platform = interaction.permissions.manage_guild
        return who, self._dispatcher.admins.include(who, by_platform=by_platform)

    async def _propose_profiles(
        self, interaction: discord.Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        here = Location.of_interaction(interaction).source(interaction.user.id)
        try:
            return fitting(await self._dispatcher.profile_names(here), typed)
        except Refusal as refusal:
            log.info("nothing_proposed", reason=refusal)
            return []

    async def _propose_answers(
        self, interaction: discord.Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        try:
            here = Location.of_interaction(interaction).source(interaction.user.id)
            return discord_past.proposals(await self._lookup.proposals(typed, here))
        except Refusal as refusal:
            log.info("nothing_proposed", reason=refusal)
            return []

    async def on_past_button(self, interaction: discord.Interaction, choice: Choice) -> None:
        """Show what a button below past answers opens, if it belongs here."""

        async def work() -> None:
            here = Location.of_interaction(interaction).source(interaction.user.id)
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
        """Take a mention of the bot, a reply to it or a direct message as a question."""
        me = self._client.user
        if me is None or message.author.bot:
            return
        mentions = re.search(rf"<@!?{me.id}>", message.content)
        replied = message.reference.resolved if message.reference else None
        if mentions or isinstance(message.channel, discord.DMChannel):
            asking = self._asking.ask_by_message(message)
        elif isinstance(replied, discord.Message) and replied.author.id == me.id:
            asking = self._asking.ask_by_reply(message, replied)
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
            here = Location.of_interaction(interaction)
            source = here.source(interaction.user.id)
            is_admin = interaction.permissions.manage_guild
            click = Click(run_id=button.run_id, source=source, is_admin=is_admin)
            run = await self._dispatcher.run_of(click, button.permission)
            match button.action:
                case "stop":
                    await whisper(interaction, await self._dispatcher.stop(click, run.origin.user))
                case "retry":
                    known = self._asking.standing_of(interaction.user, here)
                    said = await self._dispatcher.retry(click, known, self._asking.venue_of)
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
                    await self._asking.ask_again(interaction, run)

        if interaction.id not in self._clicks:  # a second press of Stop means something else
            self._clicks.append(interaction.id)
            await self._answer(interaction, work())

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Handle a submitted form, whichever process opened it."""
        form = modals.read(interaction)
        if form is None:
            return

        async def work() -> None:
            source = Location.of_interaction(interaction).source(interaction.user.id)
            run = await self._dispatcher.run_of(Click(form.run_id, source))
            match form:
                case modals.Why():
                    said = await self._dispatcher.votes.cast(
                        run, source, helpful=False, reason=form.reason
                    )
                    await whisper(interaction, said)
                case modals.FollowUp():
                    await self._asking.follow_up(interaction, run, form)

        await self._answer(interaction, work())

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


async def _hand_over(interaction: discord.Interaction, writing: Awaitable[tuple[File, ...]]) -> None:
    """Send somebody a transcript; a long one's page takes longer than Discord waits for a response."""
    await interaction.response.defer(ephemeral=True, thinking=True)
    files = upload(await writing)
    await interaction.followup.send(delivery.TRANSCRIPT, files=files, ephemeral=True)
