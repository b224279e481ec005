"""What people see on Discord, recorded from runs."""

from typing import Any

from pictures import scenario
from pictures.render import NoPicture
from pictures.runs import CHANNEL, Picture, rehearse, settled, until
from tests.discord_server import DiscordServer, Interaction, Message
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
        page = await self._transcript(await self._answered(asked))
        return [Picture("discord", "answer", PLACE, [self._card(asked)]).cropped("verdict")], page

    def _ask(self) -> Interaction:
        return self._discord.slash(
            self._channel, self._ada, "council", question=scenario.MIGRATION.question
        )

    def _card(self, asked: Interaction) -> dict[str, Any]:
        """Return a command's answer with the command's name, as Discord's API has it."""
        if asked.message is None:
            return {}
        body = discord_wire.message(asked.message, self._discord.world)
        name = asked.payload["data"]["name"]
        return body | {"interaction": {**body["interaction_metadata"], "name": name}}

    async def _answered(self, asked: Interaction) -> Message:
        """Wait for an answer, and for everything below it."""
        await until(lambda: "Ask again" in str(self._card(asked)))
        if asked.message is None or (thread := asked.message.thread) is None:
            raise NoPicture("No picture: the card has no thread.")
        await settled(lambda: len(self._discord.messages(thread)))
        return asked.message

    async def _transcript(self, card: Message) -> str:
        button = next(part for part in card.buttons if part["label"] == "Transcript")
        pressed = self._discord.click(card, button["custom_id"], self._ada)
        await until(lambda: pressed.message and pressed.message.attachments)
        return pressed.message.attachments[0].data.decode() if pressed.message else ""
