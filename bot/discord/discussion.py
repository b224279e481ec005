"""Reads the human thread in which a question was asked on Discord.

Source: https://discord.com/developers/docs/resources/message#get-channel-messages
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import discord

from bot.discord import typed
from bot.discord.incoming import attached, sent_file, words
from bot.discord.location import Location, lacking
from bot.discord.transport import DiscordTransport
from bot.errors import Gone, NotAllowed
from bot.service.delivery.outbox import Urgency
from bot.service.requests import discussion
from bot.service.requests.discussion import Written
from bot.view.wording import discord as wording
from council.brief import Brief, Discussion, SentFile

LOOKED_THROUGH = 200
"""How many messages are read to find the last that people wrote."""
_MADE = discord.MessageType
_SAID = (_MADE.default, _MADE.reply, _MADE.chat_input_command, _MADE.context_menu_command)

T = TypeVar("T")


async def read(
    client: discord.Client,
    transport: DiscordTransport,
    where: Location,
    run: str,
    brief: Brief,
    room: int,
    *,
    may_read: bool,
) -> Discussion:
    """Read the thread in which a question was asked, as much as fits into `room` tokens.

    `may_read` says that the bot has the message content intent.
    """
    context = brief.context or Discussion(until="0")
    if not may_read:
        return context.model_copy(update={"unread": "an admin hasn't switched that on"})
    thread = _DiscordThread(client, transport, where, run, context)
    return await discussion.read(thread, brief, context, room)


@dataclass(frozen=True, slots=True)
class _DiscordThread:
    """One thread; a `bot.service.requests.discussion.HumanThread`."""

    client: discord.Client
    transport: DiscordTransport
    where: Location
    run: str
    context: Discussion
    platform = "Discord"

    async def messages(self) -> tuple[list[Written[discord.Attachment]], bool]:
        """Return what was written in the thread before the question, oldest first."""
        channel = self.client.get_channel(self.where.channel)
        if isinstance(channel, discord.Thread) and channel.parent:
            has = channel.permissions_for(channel.guild.me)
            if missing := lacking(has, "read_message_history"):
                raise NotAllowed(wording.lacks(missing))
        found = await self._send(self._newest_first)
        more = len(found) == LOOKED_THROUGH
        if not more and (first := await self._first()):
            found.append(first)
        written = [self._written(message) for message in reversed(found) if self._is_theirs(message)]
        return [each for each in written if each.text or each.files], more

    async def _newest_first(self) -> list[discord.Message]:
        thread = self.client.get_partial_messageable(self.where.channel, guild_id=self.where.guild)
        before = discord.Object(int(self.context.until))
        return [message async for message in thread.history(limit=LOOKED_THROUGH, before=before)]

    async def _first(self) -> discord.Message | None:
        """Return the message that the thread was opened on, which is in the parent channel."""
        if self.where.parent is None:
            return None
        parent = self.client.get_partial_messageable(self.where.parent, guild_id=self.where.guild)
        try:
            return await self._send(lambda: parent.fetch_message(self.where.channel))
        except Gone:  # there is none, or it is in the thread, as in a forum
            return None

    async def _send(self, request: Callable[[], Awaitable[T]]) -> T:
        return await self.transport.send(
            f"history {self.where.channel}",
            request,
            run=self.run,
            urgency=Urgency.PROGRESS,
            permission=wording.PERMISSIONS["read_message_history"],
            place="thread",
            believes_at_once=True,
        )

    def _is_theirs(self, message: discord.Message) -> bool:
        is_question = str(message.id) == self.context.question
        return message.type in _SAID and message.author != self.client.user and not is_question

    def _written(self, message: discord.Message) -> Written[discord.Attachment]:
        return Written(
            author=str(message.author.id),
            text=typed.of_message(self.client, message).plain("\n\n".join(words(message)).strip()),
            files=attached(message),
            name=message.author.display_name,
        )

    async def name(self, author: str) -> str:
        """Return somebody's name, which comes with the message here."""
        return author

    def sent(self, file: discord.Attachment) -> SentFile:
        """Return a file as the run fetches it."""
        return sent_file(file)
