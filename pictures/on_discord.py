"""What people see on Discord, recorded from runs."""

from collections.abc import Sequence
from typing import Any

from pictures import scenario
from pictures.render import NoPicture
from pictures.runs import (
    CHANNEL,
    SCREEN,
    Picture,
    held,
    rehearse,
    rehearse_failures,
    rehearse_refusal,
    settled,
    until,
)
from tests.discord_server import Channel, DiscordServer, Interaction, Message
from tests.discord_server import wire as discord_wire
from tests.model_server import ModelServer

PLACE = f"# {CHANNEL}"


class OnDiscord:
    """Ada, who asks the council in a channel of her team's."""

    def __init__(self, discord: DiscordServer, models: ModelServer) -> None:
        discord.bot.name = "Council"
        guild = discord.guild("Acme")
        self._discord = discord
        self._models = models
        self._channel = discord.channel(guild, CHANNEL)
        self._ada = discord.member(guild, "ada")

    async def record(self) -> tuple[list[Picture], str]:
        """Ask, and return what is to be drawn, with the transcript's page."""
        rehearse(self._models)
        asked = self._ask()
        async with held(self._models, lambda: self._card(asked)):
            running = self._card(asked)
        card, thread = await self._answered(asked)
        page = await self._transcript(card)
        name = thread.name
        return [
            Picture("discord", "running", PLACE, [running]),
            answer := Picture("discord", "answer", PLACE, [self._card(asked)]),
            answer.cropped("verdict"),
            *await self._below(thread, name),
            Picture("discord", "weakened", PLACE, [await self._weakened()]),
            Picture("discord", "error", PLACE, [await self._failed()]),
            Picture("discord", "refused", PLACE, [await self._refused()]),
            *await self._commands(),
        ], page

    def _ask(self, **options: object) -> Interaction:
        return self._discord.slash(
            self._channel, self._ada, "council", question=scenario.MIGRATION.question, **options
        )

    def _card(self, asked: Interaction) -> dict[str, Any]:
        """Return a command's answer with the command's name, as Discord's API has it."""
        if asked.message is None:
            return {}
        body = discord_wire.message(asked.message, self._discord.world)
        name = asked.payload["data"]["name"]
        return body | {"interaction": {**body["interaction_metadata"], "name": name}}

    async def _answered(self, asked: Interaction) -> tuple[Message, Channel]:
        """Wait for an answer, and for everything below it."""
        await until(lambda: "Ask again" in str(self._card(asked)))
        if asked.message is None or (thread := asked.message.thread) is None:
            raise NoPicture("No picture: the card has no thread.")
        await settled(lambda: len(self._discord.messages(thread)))
        return asked.message, thread

    async def _below(self, thread: Channel, name: str) -> list[Picture]:
        """Record the digest, the best answer, and what *Open* below that shows."""
        posted = self._discord.messages(thread)
        best = _first_with(posted, "Open")
        posted = posted[posted.index(best) - 1 :]  # the digest is above it
        shown = posted[: posted.index(best) + 1]
        return [
            Picture("discord", "thread", name, [*map(self._wire, shown)], height=SCREEN),
            Picture("discord", "member", name, [*map(self._wire, shown[1:])]),
            Picture("discord", "open", name, await self._pressed(best, "Open")),
        ]

    def _wire(self, message: Message) -> dict[str, Any]:
        return discord_wire.message(message, self._discord.world)

    def _press(self, message: Message, label: str) -> Interaction:
        button = next(part for part in message.buttons if part["label"] == label)
        return self._discord.click(message, button["custom_id"], self._ada)

    async def _pressed(self, message: Message, label: str) -> list[dict[str, Any]]:
        """Press a button and return what it shows only to her."""
        pressed = self._press(message, label)
        await settled(lambda: len(pressed.followups) + (pressed.message is not None))
        shown = [pressed.message] if pressed.message else []
        return [*map(self._wire, [*shown, *pressed.followups])]

    async def _transcript(self, card: Message) -> str:
        pressed = self._press(card, "Transcript")
        await until(lambda: pressed.message and pressed.message.attachments)
        return pressed.message.attachments[0].data.decode() if pressed.message else ""

    async def _weakened(self) -> dict[str, Any]:
        rehearse_failures(self._models)
        asked = self._ask()
        await self._answered(asked)
        return self._card(asked)

    async def _failed(self) -> dict[str, Any]:
        rehearse_refusal(self._models)
        asked = self._ask()
        await until(lambda: "Continue" in str(self._card(asked)))
        return self._card(asked)

    async def _refused(self) -> dict[str, Any]:
        image = self._discord.upload("latency.png", b"\x89PNG\r\n\x1a\n", "image/png")
        asked = self._ask(attachment=image)
        await until(lambda: asked.message is not None)
        return self._card(asked)

    async def _commands(self) -> list[Picture]:
        """Record what two commands reply once there are enough answers to count."""
        await self._answered(self._ask())
        return [
            Picture("discord", "help", PLACE, await self._replied("council-help")),
            Picture("discord", "stats", PLACE, await self._replied("council-stats")),
        ]

    async def _replied(self, command: str) -> list[dict[str, Any]]:
        used = self._discord.slash(self._channel, self._ada, command)
        await until(lambda: used.message)
        return [self._card(used)]


def _first_with(messages: Sequence[Message], label: str) -> Message:
    """Return the first message that has a button."""
    return next(each for each in messages if label in [part["label"] for part in each.buttons])
