"""What the bot hears on Discord: commands, messages, buttons and forms, each answered or passed on.

Source: https://discord.com/developers/docs/interactions/receiving-and-responding
"""

import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial

import discord
import structlog
from discord import app_commands

from bot.actions import Action, Actions, Incoming, Payload, past
from bot.discord import modals, typed
from bot.discord import past as discord_past
from bot.discord.asking import Asking
from bot.discord.card import CardButton
from bot.discord.commands import Answer, Propose, command_tree, fitting
from bot.discord.errors import ALREADY_ANSWERED, TOO_LATE
from bot.discord.location import Location
from bot.discord.locations import Locations
from bot.discord.notices import reply, whisper
from bot.discord.past import PastButton
from bot.discord.replies import InteractionReply
from bot.errors import Refusal
from bot.past.buttons import Choice
from bot.past.lookup import Lookup
from bot.service.commands import ASK, COMMANDS, Command, Given, OptionKind
from bot.service.delivery.venue import Button
from bot.service.dispatcher import Dispatcher
from bot.view.wording.failures import UNEXPECTED

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Listeners:
    """The listeners of the bot; `asking` takes the questions among what they hear."""

    dispatcher: Dispatcher
    lookup: Lookup
    actions: Actions
    locations: Locations
    asking: Asking

    def register(self) -> None:
        """Listen to the client's events; its commands are registered by `command_tree`."""
        self.locations.client.event(self.on_message)
        self.locations.client.event(self.on_council_button)
        self.locations.client.event(self.on_past_button)
        self.locations.client.event(self.on_interaction)
        self.locations.client.add_dynamic_items(CardButton, PastButton)

    def command_tree(self) -> app_commands.CommandTree[discord.AutoShardedClient]:
        """Return the commands and the message action, each with its listener."""
        answers: Mapping[Command, Answer] = {
            **{command: partial(self._command, command.name) for command in COMMANDS},
            ASK: lambda used, given: self._answer(used, self.asking.ask(used, given)),
        }
        propose: Mapping[OptionKind, Propose] = {
            "profile": self._propose_profiles,
            "conversation": self._propose_answers,
        }

        async def ask_about(interaction: discord.Interaction, message: discord.Message) -> None:
            await self._answer(interaction, self.asking.ask_about(interaction, message))

        return command_tree(self.locations.client, answers, propose, ask_about)

    async def _command(self, action: Action, interaction: discord.Interaction, given: Given) -> None:
        await self._answer(interaction, self._act(interaction, action, Payload(given=given)))

    async def _propose_profiles(
        self, interaction: discord.Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        here = Location.of_interaction(interaction).source(interaction.user.id)
        try:
            return fitting(await self.dispatcher.profile_names(here), typed)
        except Refusal as refusal:
            log.info("nothing_proposed", reason=refusal)
            return []

    async def _propose_answers(
        self, interaction: discord.Interaction, typed: str
    ) -> list[app_commands.Choice[str]]:
        try:
            here = Location.of_interaction(interaction).source(interaction.user.id)
            return discord_past.proposals(await self.lookup.proposals(typed, here))
        except Refusal as refusal:
            log.info("nothing_proposed", reason=refusal)
            return []

    async def on_message(self, message: discord.Message) -> None:
        """Take a mention of the bot, a reply to it or a direct message as a question."""
        me = self.locations.client.user
        if me is None or message.author.bot:
            return
        # Discord's picker offers the role that it made for the bot under the bot's own name.
        roles = message.guild.roles if message.guild else ()
        mine = [role for role in roles if role.tags and role.tags.bot_id == me.id]
        by_role = any(role in message.role_mentions or role.mention in message.content for role in mine)
        mentions = by_role or re.search(rf"<@!?{me.id}>", message.content)
        replied = message.reference.resolved if message.reference else None
        if mentions or isinstance(message.channel, discord.DMChannel):
            asking = self.asking.ask_by_message(message)
        elif isinstance(replied, discord.Message) and replied.author.id == me.id:
            asking = self.asking.ask_by_reply(message, replied)
        else:
            return
        try:
            await asking
        except Refusal as refusal:
            await reply(self.locations.transport, message, str(refusal))
        except Exception:
            log.exception("message_failed", message=message.id)
            await reply(self.locations.transport, message, UNEXPECTED.format(message.id))

    async def on_past_button(self, interaction: discord.Interaction, choice: Choice) -> None:
        """Handle a pressed button below past answers."""
        await self._click(interaction, past(choice.verb), Payload(about=choice.about))

    async def on_council_button(self, interaction: discord.Interaction, button: Button) -> None:
        """Handle a pressed button of a run."""
        pressed = Payload(run_id=button.run_id, seat=button.seat)
        await self._click(interaction, button.action, pressed)

    async def _click(self, interaction: discord.Interaction, action: Action, about: Payload) -> None:
        if await self.actions.is_first(f"discord/{interaction.id}"):
            await self._answer(interaction, self._act(interaction, action, about))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Handle a submitted form, whichever process opened it."""
        if form := modals.read(interaction):
            await self._answer(interaction, self._submit(interaction, form))

    async def _submit(self, interaction: discord.Interaction, form: modals.Submitted) -> None:
        given, key = form.given, f"{interaction.user.id} {form.opened}"
        if form.action == "question":
            names = typed.of_interaction(self.locations.client, interaction)
            given = {**given, "text": await names.typed(str(given["text"]))}
        about = Payload(run_id=form.run_id, given=given)
        await self._act(interaction, form.action, about, key=key)

    async def _act(
        self, interaction: discord.Interaction, action: Action, about: Payload, key: str = ""
    ) -> None:
        reply = InteractionReply(self.locations, interaction)
        incoming = Incoming(
            actor=reply.actor,
            place=Location.of_interaction(interaction).source(interaction.user.id),
            action=action,
            payload=about,
            key=key or str(interaction.id),
            now=str(interaction.id),
        )
        await self.actions.handle(incoming, reply)

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
