"""The state of a small Slack: teams, people, channels, messages, files."""

import itertools
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.slack_server.rules import Changes, Clock, Json, Refused

BOT_SCOPES = ("commands", "chat:write", "app_mentions:read", "files:write")
"""The scopes the bot can't do without."""
OPTIONAL_SCOPES = (
    "chat:write.public",
    "channels:read",
    "files:read",
    "groups:read",
    "im:history",
    "im:write",
    "usergroups:read",
    "users:read",
)

ChannelKind = Literal["public", "private", "im"]


@dataclass(slots=True)
class User:
    """A person or a bot of a team."""

    id: str
    name: str
    team: str
    is_admin: bool = False
    is_owner: bool = False
    is_bot: bool = False

    def wire(self) -> Json:
        """Return the user as `users.info` does."""
        return {
            "id": self.id,
            "team_id": self.team,
            "name": self.name,
            "deleted": False,
            "real_name": self.name.title(),
            "tz": "Europe/Berlin",
            "tz_offset": 3600,
            "profile": {"display_name": self.name, "real_name": self.name.title()},
            "is_admin": self.is_admin,
            "is_owner": self.is_owner,
            "is_primary_owner": False,
            "is_restricted": False,
            "is_ultra_restricted": False,
            "is_bot": self.is_bot,
            "is_app_user": False,
        }


@dataclass(slots=True)
class Team:
    """A workspace with the app installed."""

    id: str
    name: str
    token: str
    bot: User
    bot_id: str
    scopes: set[str]
    groups: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """User groups, each with its members."""
    handles: dict[str, str] = field(default_factory=dict[str, str])
    """What user groups are called, without the sign."""
    revoked: str | None = None
    """The error that every call with the token gets, once it is no longer good."""

    @property
    def domain(self) -> str:
        """The first part of the workspace's address."""
        return self.name.lower().replace(" ", "-")


@dataclass(slots=True)
class StoredFile:
    """A file: announced, uploaded, then shared."""

    id: str
    name: str
    team: str
    user: str
    length: int
    url_private: str
    content: bytes | None = None
    title: str = ""
    alt_txt: str = ""
    """What a picture shows, at most 1,000 characters."""
    connected: bool = False
    """Whether it comes from another workspace: messages then say nothing but its id."""
    shared_in: list[str] = field(default_factory=list[str])
    shares: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """In which messages of which channels it is."""

    def wire(self) -> Json:
        """The file as `files.*` carry it."""
        return {
            "id": self.id,
            "name": self.name,
            "title": self.title or self.name,
            "mimetype": "text/plain",
            "filetype": self.name.rpartition(".")[2] or "text",
            "user": self.user,
            "size": self.length,
            "mode": "hosted",
            "url_private": self.url_private,
            "url_private_download": self.url_private,
            "channels": list(self.shared_in),
            "shares": {
                "public": {
                    channel: [{"ts": ts} for ts in messages] for channel, messages in self.shares.items()
                }
            },
        }

    def shared(self) -> Json:
        """The file as messages carry it.

        Source: https://docs.slack.dev/apis/slack-connect/using-slack-connect-api#files
        """
        stub = {"id": self.id, "mode": "file_access", "file_access": "check_file_info"}
        stub |= {"created": 0, "timestamp": 0, "user": ""}
        return stub if self.connected else self.wire()


@dataclass(frozen=True, slots=True)
class Version:
    """What a message said from `at` on."""

    at: float
    text: str
    blocks: tuple[Json, ...]


@dataclass(slots=True)
class Message:
    """A message; `history` begins with its first version, `pinged` is whom posting it notified."""

    channel: str
    ts: str
    user: str
    text: str
    blocks: list[Json]
    posted_at: float
    bot_id: str | None = None
    thread_ts: str | None = None
    files: list[StoredFile] = field(default_factory=list[StoredFile])
    attachments: list[Json] = field(default_factory=list[Json])
    pinged: frozenset[str] = frozenset()
    history: list[Version] = field(default_factory=list[Version])
    deleted_at: float | None = None
    reply_count: int = 0
    arguments: Json = field(default_factory=dict[str, Any])
    """Everything the caller passed, metadata and unfurling included."""

    def __post_init__(self) -> None:
        self.history.append(Version(self.posted_at, self.text, tuple(self.blocks)))

    def becomes(self, at: float, text: str, blocks: list[Json]) -> None:
        self.text, self.blocks = text, blocks
        self.history.append(Version(at, text, tuple(blocks)))

    def gaps(self) -> list[float]:
        """Seconds between an update and the one before it; posting is not an update."""
        edits = [version.at for version in self.history[1:]]
        return [later - earlier for earlier, later in itertools.pairwise(edits)]

    def elements(self) -> Iterable[tuple[Json, Json]]:
        """Its interactive elements, each with the block it is in."""
        return interactive_elements(self.blocks)

    def wire(self) -> Json:
        """The message as Slack's API and payloads carry it."""
        message: Json = {"type": "message", "user": self.user, "text": self.text, "ts": self.ts}
        if self.bot_id:
            message |= {"bot_id": self.bot_id}
        if self.thread_ts:
            message |= {"thread_ts": self.thread_ts}
        elif self.reply_count:
            message |= {"thread_ts": self.ts, "reply_count": self.reply_count}
        if self.blocks:
            message |= {"blocks": self.blocks}
        if self.attachments:
            message |= {"attachments": self.attachments}
        if self.files:
            message |= {"files": [file.shared() for file in self.files]}
        if len(self.history) > 1:
            message |= {"edited": {"user": self.user, "ts": f"{self.history[-1].at:.6f}"}}
        return message


@dataclass(slots=True)
class Scheduled:
    """A message that Slack posts by itself at `post_at`, in whole seconds since 1970."""

    id: str
    team: Team
    channel: "Channel"
    content: Json
    post_at: int
    created_at: int
    thread_ts: str | None = None

    def wire(self) -> Json:
        """Return the message as `chat.scheduledMessages.list` does."""
        return {
            "id": self.id,
            "channel_id": self.channel.id,
            "post_at": self.post_at,
            "date_created": self.created_at,
            "text": self.content["text"],
        }


@dataclass(slots=True)
class Ephemeral:
    """A message only one person sees."""

    channel: str
    user: str
    text: str
    blocks: list[Json]
    at: float
    ts: str
    via: Literal["chat.postEphemeral", "response_url", "ack"]
    thread_ts: str | None = None
    history: list[Version] = field(default_factory=list[Version])
    deleted_at: float | None = None

    def __post_init__(self) -> None:
        self.history.append(Version(self.at, self.text, tuple(self.blocks)))

    def becomes(self, at: float, text: str, blocks: list[Json]) -> None:
        """Replace what it says; only a response URL can."""
        self.text, self.blocks = text, blocks
        self.history.append(Version(at, text, tuple(blocks)))

    def elements(self) -> Iterable[tuple[Json, Json]]:
        """Its interactive elements, each with the block it is in."""
        return interactive_elements(self.blocks)


def interactive_elements(blocks: list[Json]) -> Iterable[tuple[Json, Json]]:
    """Buttons and menus of `blocks`, each with its block."""
    for block in blocks:
        for element in [*block.get("elements", ()), block.get("accessory")]:
            if isinstance(element, dict) and "action_id" in element:
                yield element, block


@dataclass(slots=True)
class Channel:
    """A channel or a direct conversation with its messages by ts."""

    id: str
    name: str
    kind: ChannelKind
    team: str
    members: set[str]
    archived: bool = False
    deleted: bool = False
    messages: dict[str, Message] = field(default_factory=dict[str, Message])

    def replies(self, ts: str) -> list[Message]:
        """What is below a message, oldest first."""
        return [m for m in self.messages.values() if m.thread_ts == ts != m.ts and m.deleted_at is None]

    def has_thread(self, ts: str) -> bool:
        """Whether something can be posted below a message, which may have been deleted."""
        parent = self.messages.get(ts)
        return parent is not None and (parent.deleted_at is None or bool(self.replies(ts)))

    def wire(self, team: Team) -> Json:
        """Return the channel as `conversations.info` does."""
        if self.kind == "im":
            other = next(iter(self.members - {team.bot.id}), team.bot.id)
            return {"id": self.id, "is_im": True, "user": other, "context_team_id": self.team}
        return {
            "id": self.id,
            "name": self.name,
            "is_channel": self.kind == "public",
            "is_group": self.kind == "private",
            "is_im": False,
            "is_mpim": False,
            "is_private": self.kind == "private",
            "is_archived": self.archived,
            "is_member": team.bot.id in self.members,
            "context_team_id": self.team,
        }


class Workspace:
    """All teams with what happens in them."""

    def __init__(self, clock: Clock, changes: Changes) -> None:
        self.clock = clock
        self.changes = changes
        self.origin = ""
        self.app_id = "A0COUNCIL1"
        self.app_token = f"xapp-1-{self.app_id}-{secrets.token_hex(8)}"
        self.app_revoked: str | None = None
        self.teams: dict[str, Team] = {}
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, StoredFile] = {}
        self.ephemerals: list[Ephemeral] = []
        self.scheduled: list[Scheduled] = []
        self._number = itertools.count(1)
        self._last_ts = 0

    def new_id(self, prefix: str) -> str:
        """A fresh id in Slack's form."""
        return f"{prefix}{next(self._number):010d}"

    def new_ts(self) -> str:
        """A timestamp that no other message has."""
        self._last_ts = max(self._last_ts + 1, int(self.clock() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def add_team(self, name: str, scopes: Iterable[str] | None = None) -> Team:
        """Open a workspace, with the app in it."""
        team_id = self.new_id("T")
        bot = User(self.new_id("U"), "council", team_id, is_bot=True)
        granted = {*BOT_SCOPES, *OPTIONAL_SCOPES} if scopes is None else set(scopes)
        team = Team(team_id, name, f"xoxb-{secrets.token_hex(12)}", bot, self.new_id("B"), granted)
        self.teams[team_id] = team
        self.users[bot.id] = bot
        return team

    def add_user(self, name: str, team: Team, *, admin: bool = False, owner: bool = False) -> User:
        user = User(self.new_id("U"), name, team.id, is_admin=admin or owner, is_owner=owner)
        self.users[user.id] = user
        return user

    def add_channel(self, name: str, team: Team, kind: ChannelKind, members: set[str]) -> Channel:
        prefix = "D" if kind == "im" else "C"
        channel = Channel(self.new_id(prefix), name, kind, team.id, members)
        self.channels[channel.id] = channel
        return channel

    def open_im(self, team: Team, user: str) -> Channel:
        """The direct conversation of the bot with `user`, opened when there is none."""
        if user not in self.users or self.users[user].team != team.id:
            raise Refused("user_not_found")
        members = {team.bot.id, user}
        for channel in self.channels.values():
            if channel.kind == "im" and channel.members == members:
                return channel
        return self.add_channel("directmessage", team, "im", members)

    def keep(self, message: Message) -> Message:
        messages = self.channels[message.channel].messages
        messages[message.ts] = message
        if message.thread_ts in messages:
            messages[message.thread_ts].reply_count += 1
        self.changes.happened()
        return message
