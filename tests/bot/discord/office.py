"""A Discord team with the bot in it: the real client against the fake Discord, models by script."""

import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bot.app import Library, open_lookup
from bot.discord.bot import DiscordBot
from bot.service.delivery.outbox import Outbox, Patience, RateLimits
from bot.service.dispatcher import Dispatcher
from tests.bot.dispatching import dispatcher_of
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.discord_server import Channel, DiscordServer, Interaction, Message, User
from tests.library import open_library

HELD = {
    "Answers": f"stage1.1:{FOUR[0]}",
    "Reviews": f"stage2.1:{FOUR[0]}",
    "Corrections": f"stage2_5.1:{FOUR[0]}",
    "Final answer": "stage3.1:chair/man:chairman",
}
"""One call of each stage, by the stage's name on the card."""
AT_ONCE = Patience(
    recheck=0.005, first=0.001, longest=0.03, lost=0.06, give_up=0.9, request=60.0, starving=60.0
)
"""An outbox's patience with a second of a millisecond; a busy machine fails no request."""


def impatient() -> Outbox:
    """Return an impatient outbox in whose rate limits each request is a second late."""
    return Outbox(patience=AT_ONCE, rate_limits=RateLimits(itertools.count().__next__))


@dataclass
class Office:
    """A guild with one channel and one member, and the dispatcher that its questions arrive at."""

    server: DiscordServer
    general: Channel
    ada: User
    council: ScriptedCouncil
    library: Library
    dispatcher: Dispatcher

    @asynccontextmanager
    async def bot(
        self, *, edit_seconds: float = 0.0, reads_messages: bool = False
    ) -> AsyncGenerator[DiscordBot]:
        async with DiscordBot(
            self.dispatcher,
            open_lookup(self.library),
            token=self.server.world.token,
            api_base=self.server.url,
            outbox=impatient(),
            edit_seconds=edit_seconds,
            reads_messages=reads_messages,
            settle_seconds=0.001,
        ) as running:
            yield running

    async def die(self, admins: frozenset[str] = frozenset()) -> None:
        """End the dispatcher as a kill would, and start another over the same storage."""
        await self.dispatcher.tasks.drain(0)
        self.dispatcher = dispatcher_of(self.library, self.council, admins)

    async def card(self, asked: Interaction) -> Message:
        card = (await asked.acknowledged()).message
        assert card is not None
        assert not card.ephemeral, card.text
        return card

    async def ask(self, question: str = "Shard or scale up?", **options: object) -> Message:
        """Ask by command and wait for the card."""
        return await self.card(
            self.server.slash(self.general, self.ada, "council", question=question, **options)
        )

    async def asked(self, question: str = "Shard or scale up?", **options: object) -> Message:
        """Ask by command and wait until everything is shown."""
        card = await self.ask(question, **options)
        await self.dispatcher.tasks.settled()
        return card

    async def refused(self, asked: Interaction) -> str:
        """Wait for the private reply."""
        note = (await asked.acknowledged()).message
        assert note is not None
        assert note.visible_to is asked.user
        return note.text

    async def mentioned(self, channel: Channel, text: str) -> list[Message]:
        """Mention the bot in a channel; return what it posts there until the run is over."""
        before = len(self.server.messages(channel, by_bot=True))
        self.server.mention(channel, self.ada, text)
        await self.server.until(lambda: len(self.server.messages(channel, by_bot=True)) > before)
        await self.dispatcher.tasks.settled()
        return self.server.messages(channel, by_bot=True)[before:]

    async def documents(self) -> list[str]:
        return [row.id for row in await self.library.index.find_as_operator("")]


@asynccontextmanager
async def office(
    server: DiscordServer, folder: Path, council: ScriptedCouncil, admins: frozenset[str] = frozenset()
) -> AsyncGenerator[Office]:
    """Open a dispatcher for a new guild; the bot isn't running yet.

    discord.py's addresses of Discord are restored afterwards.
    """
    guild = server.guild("The team")
    ada, general = server.member(guild, "ada"), server.channel(guild, "general")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Route, "BASE", Route.BASE)
        patch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", DiscordWebSocket.DEFAULT_GATEWAY)
        patch.setattr("discord.shard.DiscordWebSocket", DiscordWebSocket)
        async with open_library(folder) as library:
            place = Office(
                server, general, ada, council, library, dispatcher_of(library, council, admins)
            )
            yield place
            await place.dispatcher.tasks.drain(0)
