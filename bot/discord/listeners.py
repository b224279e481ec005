"""What the bot hears on Discord: commands, messages, buttons and forms, each answered or passed on.

A message's text comes with a mention of the bot, in direct messages, and with the message action.

Source: https://discord.com/developers/docs/interactions/receiving-and-responding
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar, cast

import discord
import structlog
from discord import app_commands

from bot.actions import Action, Actions, Incoming, Payload, past
from bot.discord.chat import CardButton
from bot.discord.client import ALREADY_ANSWERED, NOBODY, TOO_LATE
from bot.discord.commands import Answer, Propose, Submission, command_tree, fitting, submission
from bot.discord.incoming import (
    Location,
    attached,
    names_in_interaction,
    names_in_message,
    sent_files,
    words,
)
from bot.discord.replies import (
    DiscordPlaces,
    InteractionReply,
    MessageReply,
    PastButton,
    proposals,
    reply,
    whisper,
)
from bot.errors import Gone, NotAllowed, Refusal, VenueError
from bot.past.lookup import Lookup
from bot.past.pages import Choice
from bot.service.accept import Question
from bot.service.commands import (
    ASK,
    COMMANDS,
    PROFILE_DEFAULTS,
    Command,
    Given,
    OptionKind,
    RunOptions,
    Typed,
    is_help,
    parse_message,
)
from bot.service.delivery.chat import Button
from bot.service.delivery.outbox import Urgency
from bot.service.dispatcher import Dispatcher, follow_up
from bot.view.wording import discord as wording
from bot.view.wording.commands import NO_TEXT, USE_THE_BUTTON
from bot.view.wording.failures import UNEXPECTED
from council.brief import Discussion, SentFile

log = structlog.get_logger()

T = TypeVar("T")

_PRIVATE_NOTE = discord.Embed(description="Your question is on its way to the council.")


@dataclass(frozen=True, slots=True)
class DiscordQuestions:
    """Turns what people send into questions; one that can't be accepted raises `Refusal`."""

    dispatcher: Dispatcher
    actions: Actions
    locations: DiscordPlaces

    async def ask(self, interaction: discord.Interaction, given: Given) -> None:
        """Ask what follows the command; its card is the response or, if private, in direct messages."""
        options, text = RunOptions.read(given), str(given["question"])
        file = cast("discord.Attachment | None", given["attachment"])
        if given["private"] and interaction.guild_id and not is_help(text):
            await self._ask_privately(interaction, text, file, options)
            return
        files = sent_files([file] if file else [])
        here = Location.of_interaction(interaction)
        here.require(interaction.app_permissions)
        text = await names_in_interaction(self.locations.client, interaction).typed(text)
        question = self._question(
            text, here, interaction.user, interaction.id, files=files, options=options
        )
        question = replace(question, needs_files=bool(files))
        await self.actions.ask(question, InteractionReply(self.locations, interaction))

    async def ask_about(self, interaction: discord.Interaction, message: discord.Message) -> None:
        """Ask all that a message says as a question, with its files."""
        files = sent_files(attached(message))
        text = await names_in_message(self.locations.client, message).typed("\n\n".join(words(message)))
        if not text and not files:
            raise Refusal(NO_TEXT)
        here = Location.of_interaction(interaction)
        here.require(interaction.app_permissions)
        context = Discussion(until=str(interaction.id), question=str(message.id))
        question = self._question(
            text, here, interaction.user, interaction.id, files=files, context=context
        )
        await self.actions.ask(question, InteractionReply(self.locations, interaction))

    async def _ask_privately(
        self,
        interaction: discord.Interaction,
        text: str,
        file: discord.Attachment | None,
        options: RunOptions,
    ) -> None:
        """Run in the asker's direct messages, if they are open."""
        await interaction.response.defer(ephemeral=True, thinking=True)
        files = sent_files([file] if file else [])
        text = await names_in_interaction(self.locations.client, interaction).typed(text)
        asker = interaction.user

        async def invite() -> discord.Message:
            direct = await asker.create_dm()
            nonce = f"p{interaction.id}"
            return await direct.send(embed=_PRIVATE_NOTE, nonce=nonce, allowed_mentions=NOBODY)

        try:
            card = await self._send_privately(interaction, invite)
        except (Gone, NotAllowed) as error:
            raise Refusal(
                "Your direct messages are closed to the bot, so nothing was asked. Open them and try "
                "again."
            ) from error
        except VenueError as error:
            raise Refusal(
                "Discord didn't let me write to you, so nothing was asked. Try again in a minute."
            ) from error
        here, asked_in = Location(card.channel.id), Location.of_interaction(interaction)
        question = replace(
            self._question(text, here, asker, interaction.id, files=files, options=options),
            source=here.source(asker.id).model_copy(update={"message": str(card.id)}),
            standing=self.locations.standing_of(asker, asked_in),
            asked_in=asked_in.source(asker.id),
            needs_files=bool(files),
        )
        try:
            await self.actions.ask(question, InteractionReply(self.locations, interaction))
        except Refusal:
            await self._send_privately(interaction, card.delete)
            raise
        said = f"The council answers in your direct messages: {here.link(card.id)}"
        await whisper(interaction, said)

    async def ask_by_message(self, message: discord.Message) -> None:
        """Ask what a message says besides its mention of the bot, with what it replies to, and files."""
        if message.role_mentions and not message.content:
            raise Refusal(
                "Discord hides your text from me if you mention my role. Mention me, the one with my "
                "picture."
            )
        asked, files = await self._read(message)
        if not asked.question and not files:
            raise Refusal(wording.HINT)
        here, options = await self.locations.of_message(message), RunOptions.read(asked.given)
        question = self._question(
            asked.question,
            here,
            message.author,
            message.id,
            files=files,
            options=options,
            context=Discussion(until=str(message.id)),
        )
        await self.actions.ask(question, MessageReply(self.locations, self.dispatcher.tasks, message))

    async def ask_by_reply(self, message: discord.Message, replied: discord.Message) -> None:
        """Take a reply to one of the bot's messages as a follow-up, if it pings the bot.

        A reply to the response to a command comes without its text, whatever it pings.
        """
        if not message.content and not message.attachments:
            if replied.interaction_metadata is not None:
                raise Refusal(USE_THE_BUTTON)
            return  # it pings nobody: people talk
        if self.locations.client.user not in message.mentions:
            return
        here = await self.locations.of_message(message)
        run = await self.dispatcher.run_shown_as(here.source(message.author.id), str(replied.id))
        if run is None:
            raise Refusal(wording.HINT)
        asked, files = await self._read(message)
        below = await self.locations.thread_of(message.guild, here, run) or here
        question = follow_up(
            run,
            below.source(message.author.id),
            asked.question,
            options=RunOptions.read(asked.given),
            entry_key=str(message.id),
            asker=message.author.display_name,
            standing=self.locations.standing_of(message.author, below),
            context=Discussion(until=str(message.id)) if below.parent else None,
            sent=files,
        )
        await self.actions.ask(question, MessageReply(self.locations, self.dispatcher.tasks, message))

    async def _read(self, message: discord.Message) -> tuple[Typed, tuple[SentFile, ...]]:
        """Return what a message asks, shows and replies to, and its files. Raises `Refusal`."""
        text, *said = words(message)
        files, replied = attached(message), message.reference and message.reference.resolved
        if isinstance(replied, discord.Message) and replied.author != self.locations.client.user:
            quoted, files = "\n\n".join(words(replied)).strip(), [*files, *attached(replied)]
            if quoted:
                said.append(f"{replied.author.display_name} wrote:\n{quoted}".replace("\n", "\n> "))
            elif not (files or replied.stickers or self.locations.client.intents.message_content):
                raise Refusal(
                    "Discord hides what you replied to from me. Use Ask the council in its menu, under "
                    "Apps."
                )
        names = names_in_message(self.locations.client, message)
        asked = parse_message(await names.typed(text))
        rest = await names.typed("\n\n".join(said))
        return replace(asked, question=f"{asked.question}\n\n{rest}".strip()), sent_files(files)

    def _question(
        self,
        text: str,
        here: Location,
        asker: discord.User | discord.Member,
        key: int,
        *,
        files: tuple[SentFile, ...] = (),
        options: RunOptions = PROFILE_DEFAULTS,
        context: Discussion | None = None,
    ) -> Question:
        return Question(
            text=text,
            source=here.source(asker.id),
            entry_key=str(key),
            asker=asker.display_name,
            standing=self.locations.standing_of(asker, here),
            sent=files,
            context=context if here.parent else None,
            options=options,
        )

    async def _send_privately(
        self, interaction: discord.Interaction, request: Callable[[], Awaitable[T]]
    ) -> T:
        return await self.locations.transport.send(
            "direct",
            request,
            run=f"interaction {interaction.id}",
            urgency=Urgency.FIRST_CARD,
            believes_at_once=True,
        )


@dataclass(frozen=True, slots=True)
class DiscordListeners:
    """The listeners of the bot; `questions` takes the questions among what they hear."""

    dispatcher: Dispatcher
    lookup: Lookup
    actions: Actions
    locations: DiscordPlaces
    questions: DiscordQuestions

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
            ASK: lambda used, given: self._answer(used, self.questions.ask(used, given)),
        }
        propose: Mapping[OptionKind, Propose] = {
            "profile": self._propose_profiles,
            "conversation": self._propose_answers,
        }

        async def ask_about(interaction: discord.Interaction, message: discord.Message) -> None:
            await self._answer(interaction, self.questions.ask_about(interaction, message))

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
            return proposals(await self.lookup.proposals(typed, here))
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
            asking = self.questions.ask_by_message(message)
        elif isinstance(replied, discord.Message) and replied.author.id == me.id:
            asking = self.questions.ask_by_reply(message, replied)
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
        await self._click(interaction, past(choice.verb), Payload(about=choice.about))

    async def on_council_button(self, interaction: discord.Interaction, button: Button) -> None:
        pressed = Payload(run_id=button.run_id, seat=button.seat)
        await self._click(interaction, button.action, pressed)

    async def _click(self, interaction: discord.Interaction, action: Action, about: Payload) -> None:
        if await self.actions.is_first(f"discord/{interaction.id}"):
            await self._answer(interaction, self._act(interaction, action, about))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        if form := submission(interaction):
            await self._answer(interaction, self._submit(interaction, form))

    async def _submit(self, interaction: discord.Interaction, form: Submission) -> None:
        given, key = form.given, f"{interaction.user.id} {form.opened}"
        if form.action == "question":
            names = names_in_interaction(self.locations.client, interaction)
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
