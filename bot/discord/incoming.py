"""What people write on Discord, and where: a message's words and files, names for ids, human threads.

Sources: https://discord.com/developers/docs/resources/message#message-object,
https://discord.com/developers/docs/reference#message-formatting,
https://discord.com/developers/docs/resources/message#get-channel-messages
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast
from urllib.parse import urlsplit

import aiohttp
import discord
import structlog
from discord.components import Component, Container, SectionComponent, TextDisplay
from discord.http import Route

from bot.discord.client import DiscordTransport
from bot.errors import Gone, NotAllowed, Refusal, Unreachable
from bot.service.delivery.outbox import Urgency
from bot.service.inputs import Written, admitted
from bot.view.wording import discord as wording
from bot.view.wording.discord import PERMISSIONS, needs
from bot.view.wording.figures import CHANNEL, COLLEAGUE, GROUP, called
from council.brief import Discussion, SentFile
from council.document.conversation import Source

log = structlog.get_logger()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Location:
    """A channel, a thread (`parent` is the channel it is in) or direct messages (no `guild`)."""

    channel: int
    guild: int | None = None
    parent: int | None = None
    is_private: bool = False

    @classmethod
    def of(cls, channel: discord.abc.Snowflake, guild: int | None) -> Self:
        if isinstance(channel, discord.Thread):
            return cls(channel.id, guild, channel.parent_id, channel.is_private())
        return cls(channel.id, guild)

    @classmethod
    def of_interaction(cls, interaction: discord.Interaction) -> Self:
        """Return where somebody typed a command or pressed a button. Raises `Refusal`."""
        if interaction.channel is None:
            raise Refusal("I can't tell which channel this is. Try another.")
        return cls.of(interaction.channel, interaction.guild_id)

    @classmethod
    def of_run(cls, where: Source) -> Self:
        """Return where a run was asked for, by its origin; a thread below its own card doesn't count."""
        channel, guild = int(where.channel or 0), int(where.workspace) if where.workspace else None
        if where.thread is None or where.thread == where.message:
            return cls(channel, guild)
        return cls(int(where.thread), guild, channel, is_private=where.thread == where.channel)

    @classmethod
    def of_source(cls, where: Source) -> Self:
        """Return the location that `source` was called on."""
        channel, guild = int(where.channel or 0), int(where.workspace) if where.workspace else None
        if where.thread is None:
            return cls(channel, guild)
        parent = int(where.parent) if where.parent else channel
        return cls(int(where.thread), guild, parent, is_private=where.thread == where.channel)

    def source(self, user: int) -> Source:
        """Return a question's origin: threads belong to their channel, private ones to themselves."""
        is_own_scope = self.parent is None or self.is_private
        return Source(
            platform="discord",
            workspace=str(self.guild) if self.guild else None,
            channel=str(self.channel if is_own_scope else self.parent),
            thread=str(self.channel) if self.parent else None,
            user=str(user),
            parent=str(self.parent) if self.parent and self.is_private else None,
        )

    def missing(self, has: discord.Permissions) -> list[str]:
        if self.guild is None:
            return []
        send = "send_messages_in_threads" if self.parent else "send_messages"
        return lacking(has, "view_channel", send, "embed_links")

    def require(self, has: discord.Permissions) -> None:
        """Raise `Refusal`, naming them, if permissions to show a run here are missing."""
        if missing := self.missing(has):
            raise Refusal(needs(missing))

    @property
    def channel_link(self) -> str:
        return f"https://discord.com/channels/{self.guild or '@me'}/{self.channel}"

    def link(self, message: int) -> str:
        return f"{self.channel_link}/{message}"


def lacking(has: discord.Permissions, *wanted: str) -> list[str]:
    return [PERMISSIONS[name] for name in wanted if not getattr(has, name)]


NAME_SECONDS = 0.5
"""How long a question may wait for names of people; it has to be acknowledged in 3 s."""
MOST_NAMES = 5
"""How many people are asked for; Discord names most of them itself."""

_MARK = re.compile(
    r"<(?:@!?(?P<user>[0-9]+)|@&(?P<role>[0-9]+)|#(?P<channel>[0-9]+)"
    r"|a?:(?P<emoji>\w+):[0-9]+|/(?P<command>[^<>:\n]+):[0-9]+)>"
)


class Names:
    """The names of one place's people, roles and channels; `people` are those that came with a text.

    What only some may see is named nowhere: a channel that isn't open to everybody is *a channel*.
    """

    def __init__(
        self, client: discord.Client, guild: discord.Guild | None, people: Mapping[int, str]
    ) -> None:
        self._me = client.user.id if client.user else 0
        self._client = client
        self._guild = guild
        self._people = dict(people)

    async def typed(self, text: str) -> str:
        """Return what somebody typed as people read it, with names that may have to be looked up."""
        mentioned = {int(found["user"]) for found in _MARK.finditer(text) if found["user"]}
        unknown = sorted(one for one in mentioned - {self._me} if self._person(one) is None)
        if self._guild and unknown:
            await asyncio.gather(*(self._look_up(self._guild, one) for one in unknown[:MOST_NAMES]))
        return self.plain(text)

    def plain(self, text: str) -> str:
        return _MARK.sub(self._said, text).strip()

    def _said(self, found: re.Match[str]) -> str:
        if found["user"]:
            who = int(found["user"])
            return "" if who == self._me else called("@", self._person(who), COLLEAGUE)
        if found["role"]:
            role = self._guild.get_role(int(found["role"])) if self._guild else None
            if role and role.tags and role.tags.bot_id == self._me:
                return ""
            return called("@", role and role.name, GROUP)
        if found["channel"]:
            return called("#", self._channel(int(found["channel"])), CHANNEL)
        return f"/{found['command']}" if found["command"] else f":{found['emoji']}:"

    def _person(self, who: int) -> str | None:
        if known := self._people.get(who):
            return known
        found = (self._guild and self._guild.get_member(who)) or self._client.get_user(who)
        return found.display_name if found else None

    def _channel(self, channel: int) -> str | None:
        if self._guild is None:
            return None
        found = self._guild.get_channel_or_thread(channel)
        if found is None or (isinstance(found, discord.Thread) and found.is_private()):
            return None
        try:
            is_open = found.permissions_for(self._guild.default_role).view_channel
        except discord.ClientException:  # a thread whose channel isn't known
            return None
        return found.name if is_open else None

    async def _look_up(self, guild: discord.Guild, who: int) -> None:
        try:
            async with asyncio.timeout(NAME_SECONDS):
                self._people[who] = (await guild.fetch_member(who)).display_name
        except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
            log.info("name_unknown", reason=error)


def names_in_message(client: discord.Client, message: discord.Message) -> Names:
    return Names(client, message.guild, {user.id: user.display_name for user in message.mentions})


def names_in_interaction(client: discord.Client, interaction: discord.Interaction) -> Names:
    data = cast("dict[str, Any]", interaction.data or {})
    given: dict[str, dict[str, dict[str, Any]]] = data.get("resolved") or {}
    members = given.get("members") or {}
    people: dict[int, str] = {}
    for who, user in (given.get("users") or {}).items():
        names = (members.get(who, {}).get("nick"), user.get("global_name"), user.get("username"))
        people[int(who)] = str(next(filter(None, names), ""))
    return Names(client, interaction.guild, people)


HOSTS = frozenset({"https://cdn.discordapp.com", "https://media.discordapp.net"})
"""Where Discord keeps files (https://discord.com/developers/docs/reference#image-formatting)."""


def words(message: discord.Message | discord.MessageSnapshot) -> list[str]:
    """Return a message's text, then what people read beside it: alerts, previews, polls, forwards."""
    said = [message.content, *_displayed(message.components)]
    for embed in message.embeds:
        link = f" ({embed.url})" if embed.url and embed.url not in message.content else ""
        pairs = [((field.name or "").strip("\u200b \n"), field.value) for field in embed.fields]
        fields = (": ".join(filter(None, pair)) for pair in pairs)
        title = embed.title and embed.title + link
        lines = (embed.author.name, title, embed.description, *fields, embed.footer.text)
        said.append("\n".join(filter(None, lines)))
    if isinstance(message, discord.Message):
        asked = (
            [message.poll.question, *(each.text for each in message.poll.answers)]
            if message.poll
            else []
        )
        said.append("\n- ".join(asked))
        said += (each for forward in message.message_snapshots for each in words(forward))
    return [said[0], *filter(None, said[1:])]


def _displayed(components: Iterable[Component]) -> Iterator[str]:
    for component in components:
        if isinstance(component, TextDisplay):
            yield component.content
        elif isinstance(component, Container | SectionComponent):
            yield from _displayed(component.children)


def attached(message: discord.Message) -> list[discord.Attachment]:
    return [file for each in (message, *message.message_snapshots) for file in each.attachments]


def sent_files(files: Iterable[discord.Attachment]) -> tuple[SentFile, ...]:
    return admitted(map(sent_file, files))


def sent_file(file: discord.Attachment) -> SentFile:
    return SentFile(name=file.filename, address=file.url, size=file.size, media=file.content_type or "")


async def fetch(client: discord.Client, file: SentFile) -> bytes:
    """Fetch a file, only from Discord's own hosts. Raises `Unreachable`."""
    parts = urlsplit(file.address)
    api = urlsplit(Route.BASE)
    if f"{parts.scheme}://{parts.netloc}" not in HOSTS | {f"{api.scheme}://{api.netloc}"}:
        raise Unreachable("the file isn't kept at Discord")
    try:
        return await client.http.get_from_cdn(file.address)
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        raise Unreachable("the file can't be fetched") from error


LOOKED_THROUGH = 200
"""How many messages are read to find the last that people wrote."""
_MADE = discord.MessageType
_SAID = (_MADE.default, _MADE.reply, _MADE.chat_input_command, _MADE.context_menu_command)


@dataclass(frozen=True, slots=True)
class DiscordThread:
    """One thread; a `bot.service.inputs.HumanThread`."""

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
            text=names_in_message(self.client, message).plain("\n\n".join(words(message)).strip()),
            files=attached(message),
            name=message.author.display_name,
        )

    async def name(self, author: str) -> str:
        return author

    def sent(self, file: discord.Attachment) -> SentFile:
        return sent_file(file)
