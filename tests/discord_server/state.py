"""What this Discord contains: accounts, guilds, channels, messages, commands, interactions."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum, IntFlag
from typing import Any, Literal

from . import errors

Json = dict[str, Any]

EPOCH = 1_420_070_400_000
"""Milliseconds from 1970 to Discord's own epoch, the first second of 2015."""


class ChannelType(IntEnum):
    """The kinds of channel this fake holds."""

    TEXT = 0
    DM = 1
    ANNOUNCEMENT = 5
    ANNOUNCEMENT_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15


THREADS = {ChannelType.ANNOUNCEMENT_THREAD, ChannelType.PUBLIC_THREAD, ChannelType.PRIVATE_THREAD}


class Intent(IntFlag):
    """Gateway intents, as far as an event here depends on one."""

    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    DIRECT_MESSAGES = 1 << 12
    MESSAGE_CONTENT = 1 << 15


PRIVILEGED = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES | Intent.MESSAGE_CONTENT


class MessageFlag(IntFlag):
    """Message flags with a meaning here."""

    SUPPRESS_EMBEDS = 1 << 2
    HAS_THREAD = 1 << 5
    EPHEMERAL = 1 << 6
    LOADING = 1 << 7
    SUPPRESS_NOTIFICATIONS = 1 << 12


FIRST_RESPONSE = 3.0
"""Seconds from an interaction's dispatch to its first response, for `World.patience`."""


class Clock:
    """Time that a test can push forward, by default wall time."""

    def __init__(self, read: Callable[[], float] = time.time) -> None:
        self._read = read
        self._ahead = 0.0

    def now(self) -> float:
        """Return seconds since 1970, as this Discord sees it."""
        return self._read() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


def iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


@dataclass(slots=True, eq=False)
class User:
    """An account; `takes_dms` says whether the bot may write to it."""

    id: int
    name: str
    bot: bool = False
    takes_dms: bool = True

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(slots=True, eq=False)
class Role:
    """A role, its permissions as bits; Discord manages that of `bot_id`."""

    id: int
    name: str
    permissions: int
    mentionable: bool = False
    bot_id: int | None = None


@dataclass(slots=True, eq=False)
class Overwrite:
    """What a channel allows or denies one role (kind 0) or member (kind 1)."""

    id: int
    kind: int
    allow: int = 0
    deny: int = 0


@dataclass(slots=True, eq=False)
class Member:
    """A user in a guild."""

    user: User
    joined_at: str
    roles: list[Role] = field(default_factory=list[Role])


@dataclass(slots=True, eq=False)
class Guild:
    """A server."""

    id: int
    name: str
    owner: User
    roles: dict[int, Role] = field(default_factory=dict[int, Role])
    members: dict[int, Member] = field(default_factory=dict[int, Member], repr=False)
    channels: dict[int, "Channel"] = field(default_factory=dict[int, "Channel"], repr=False)
    has_bot: bool = True


@dataclass(slots=True, eq=False)
class Channel:
    """A channel, thread or direct conversation."""

    id: int
    type: ChannelType
    name: str
    guild: Guild | None = field(default=None, repr=False)
    parent: "Channel | None" = field(default=None, repr=False)
    owner: User | None = None
    recipients: list[User] = field(default_factory=list[User])
    overwrites: dict[int, Overwrite] = field(default_factory=dict[int, Overwrite])
    messages: dict[int, "Message"] = field(default_factory=dict[int, "Message"], repr=False)
    joined: dict[int, str] = field(default_factory=dict[int, str])
    archived: bool = False
    locked: bool = False
    auto_archive: int = 1440
    created_at: float = 0.0
    archive_changed_at: float = 0.0
    deleted: bool = False

    @property
    def is_thread(self) -> bool:
        return self.type in THREADS

    @property
    def is_private(self) -> bool:
        return self.type is ChannelType.PRIVATE_THREAD

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"


@dataclass(slots=True, eq=False)
class Attachment:
    """A file held here and served back."""

    id: int
    filename: str
    data: bytes = field(repr=False)
    content_type: str
    url: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Ping:
    """A notification: who a text would have pinged, and whether a post or an edit did it.

    `kind` is `user`, `role`, `everyone` or `here`; `id` is 0 for the last two.
    """

    kind: Literal["user", "role", "everyone", "here"]
    id: int
    on: Literal["post", "edit"]
    message_id: int


@dataclass(frozen=True, slots=True)
class Version:
    """A message's content from `at` on; the first is the post, every further one an edit.

    `by` says which credential wrote it: a person, the bot token, or an interaction's token.
    """

    at: float
    by: Literal["person", "bot", "interaction"]
    content: str
    embeds: list[Json]
    components: list[Json]
    attachments: list[Attachment]
    flags: int
    pinged: tuple[Ping, ...]


@dataclass(slots=True, eq=False)
class Message:
    """A message with its whole history."""

    id: int
    channel: Channel = field(repr=False)
    author: User
    history: list[Version]
    type: int = 0
    visible_to: User | None = None
    nonce: str | None = None
    reply_to: "Message | None" = field(default=None, repr=False)
    interaction: "Interaction | None" = field(default=None, repr=False)
    thread: Channel | None = field(default=None, repr=False)
    deleted: bool = False
    carries: Json = field(default_factory=dict[str, Any])
    """What a bot can't post: forwards, a poll."""

    @property
    def now(self) -> Version:
        return self.history[-1]

    @property
    def content(self) -> str:
        return self.now.content

    @property
    def embeds(self) -> list[Json]:
        return self.now.embeds

    @property
    def attachments(self) -> list[Attachment]:
        return self.now.attachments

    @property
    def ephemeral(self) -> bool:
        return self.visible_to is not None

    @property
    def components(self) -> list[Json]:
        """Return every component, nested ones included, in reading order."""
        return list(walk(self.now.components))

    @property
    def buttons(self) -> list[Json]:
        return [component for component in self.components if component["type"] == 2]

    @property
    def text(self) -> str:
        """Return everything a person reads: content and embeds."""
        return shown(self.now)

    @property
    def pinged(self) -> list[Ping]:
        """Return every ping over the whole history."""
        return [ping for version in self.history for ping in version.pinged]


@dataclass(slots=True, eq=False)
class Interaction:
    """Somebody used a command, button, menu or completion; and what the bot made of it.

    `acknowledged_after` is the wall time from dispatch to the first response, in seconds; `refused`
    holds the codes of the attempts this Discord turned down.
    """

    id: int
    token: str
    kind: int
    user: User
    channel: Channel = field(repr=False)
    payload: Json = field(repr=False)
    sent_at: float
    sent: float = field(default_factory=time.perf_counter)
    source: Message | None = None
    deliveries: int = 0
    acknowledged_after: float | None = None
    callback: int | None = None
    response: Json | None = None
    message: Message | None = None
    followups: list[Message] = field(default_factory=list[Message])
    choices: list[Json] = field(default_factory=list[Json])
    refused: list[int] = field(default_factory=list[int])
    answered: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    async def acknowledged(self, within: float = 30.0) -> "Interaction":
        """Wait for the first response; raises `TimeoutError`."""
        async with asyncio.timeout(within):
            await self.answered.wait()
        return self


@dataclass(frozen=True, slots=True)
class Event:
    """Something for the gateway: to every shard that holds the guild, or to shard 0.

    A session without the `needs` intent doesn't get it; one without MESSAGE_CONTENT gets `redacted`.
    """

    name: str
    data: Json
    guild: Guild | None = None
    needs: Intent | None = None
    redacted: Json | None = None


class World:
    """Everything there is, and the ids it goes by."""

    def __init__(self, token: str, privileged: Intent, shards: int, clock: Clock) -> None:
        self.clock = clock
        self.patience = FIRST_RESPONSE
        self.token = token
        self.privileged = privileged
        self.shards = shards
        self.url = ""
        self.publish: Callable[[Event], int] = lambda _: 0
        self._last = 0
        self.users: dict[int, User] = {}
        self.guilds: dict[int, Guild] = {}
        self.channels: dict[int, Channel] = {}
        self.messages: dict[int, Message] = {}
        self.attachments: dict[int, Attachment] = {}
        self.interactions: dict[int, Interaction] = {}
        self.tokens: dict[str, Interaction] = {}
        self.commands: dict[int, Json] = {}
        self.nonces: dict[str, tuple[float, Message]] = {}
        self.old_edits: int | None = None
        self.old_edit_retry_after = 0.01
        self.bot = self.add_user("council", bot=True)
        self.application_id = self.bot.id
        self.application: Json = {}
        """What its owner has set on the application's page, over the defaults of a new one."""

    def snowflake(self, step: int = 1) -> int:
        """Return the next id: later ids are larger, and tell their time by this clock."""
        here = (int(self.clock.now() * 1000) - EPOCH) << 22
        self._last = max(self._last + step, here)
        return self._last

    def add_user(self, name: str, *, bot: bool = False) -> User:
        user = User(self.snowflake(), name, bot=bot)
        self.users[user.id] = user
        return user

    def attach(self, filename: str, data: bytes, content_type: str) -> Attachment:
        """Keep a file and give it an address on this host."""
        number = self.snowflake()
        url = f"{self.url}/attachments/{self.application_id}/{number}/{filename}"
        attachment = Attachment(number, filename, data, content_type, url)
        self.attachments[number] = attachment
        return attachment

    def channel(self, number: int) -> Channel:
        """Return a channel as the bot may address it; raises 10003 or 50001."""
        channel = self.channels.get(number)
        if channel is None:
            raise errors.ApiError(*errors.UNKNOWN_CHANNEL)
        if channel.guild is not None and not channel.guild.has_bot:
            raise errors.ApiError(*errors.MISSING_ACCESS)
        return channel

    def guild(self, number: int) -> Guild:
        """Return a guild that the bot is in; raises 10004."""
        guild = self.guilds.get(number)
        if guild is None or not guild.has_bot:
            raise errors.ApiError(*errors.UNKNOWN_GUILD)
        return guild


def walk(components: list[Json]) -> Iterator[Json]:
    for component in components:
        yield component
        yield from walk(component.get("components", []))


def shown(version: Version) -> str:
    """Return everything a person reads in one version of a message, joined."""
    lines = [version.content]
    for embed in version.embeds:
        lines += [embed.get("author", {}).get("name", ""), embed.get("title", "")]
        lines.append(embed.get("description", ""))
        for entry in embed.get("fields", []):
            lines += [entry["name"], entry["value"]]
        lines.append(embed.get("footer", {}).get("text", ""))
    return "\n".join(line for line in lines if line)
