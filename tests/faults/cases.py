"""The fault matrix: every method and endpoint, with every fault and its duration."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.faults.documented import DISCORD, SLACK
from tests.faults.platforms import Event, Way

LostMention = Literal["mention lost", "mention reset", "schedule lost", "schedule reset"]
Scene = Literal["run", "restart", "new commands", "event"] | LostMention | Event
"""What else happens in a case: nothing, a restart in mid-run, a lost mention, an event, or only that."""
LOST: dict[LostMention, tuple[bool, tuple[str, ...]]] = {
    "mention lost": (True, ("chat.postMessage",)),
    "mention reset": (False, ("chat.postMessage",)),
    "schedule lost": (True, ("chat.postMessage", "chat.scheduleMessage")),
    "schedule reset": (False, ("chat.postMessage", "chat.scheduleMessage")),
}
"""Whether Slack carries out what the first mention takes, and the methods whose response is lost."""
PlatformName = Literal["Slack", "Discord"]
LENGTHS: dict[str, dict[str, float]] = {
    "once": {"times": 1},
    "five times": {"times": 5},
    "a minute": {"seconds": 60.0},
}
LONG: dict[str, dict[str, float]] = {"half an hour": {"seconds": 1800.0}}
"""Longer than anything is tried at a time, for what might be posted again at every new attempt."""


@dataclass(frozen=True, slots=True)
class Target:
    """What goes wrong: a method or an endpoint, for the part it has in a scene.

    `is_here` lets it go wrong in the channel alone, `narrow` as the platform's server understands it.
    With `posts`, it goes wrong for long, too.
    """

    platform: PlatformName
    name: str
    part: str = ""
    scene: Scene = "run"
    way: Way = "command"
    is_here: bool = False
    posts: bool = False
    narrow: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)

    @property
    def title(self) -> str:
        return f"{self.name} ({self.part})" if self.part else self.name

    @property
    def lengths(self) -> dict[str, dict[str, float]]:
        """Return how long it goes wrong, as the platform's server understands it."""
        return LENGTHS | LONG if self.posts else LENGTHS


@dataclass(frozen=True, slots=True)
class Trouble:
    """How it goes wrong; with `is_lost`, the request was carried out, but its response is lost."""

    name: str
    group: str
    how: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of the matrix."""

    target: Target
    trouble: Trouble
    length: str

    @property
    def title(self) -> str:
        if self.target.scene == "event":
            return f"{self.target.platform}: {self.trouble.name}"
        return f"{self.target.platform}: {self.target.title}, {self.trouble.name}, {self.length}"


IN_CHANNEL, IN_THREAD = {"in_thread": False}, {"in_thread": True}
EDIT = "PATCH /channels/{channel_id}/messages/{message_id}"
SEND = "POST /channels/{channel_id}/messages"
THREAD = "POST /channels/{channel_id}/messages/{message_id}/threads"
ORIGINAL = "webhooks/{webhook_id}/{token}/messages/{message_id}"
CALLBACK = "POST /interactions/{interaction_id}/{token}/callback"
DIRECT, MEMBER = "POST /users/@me/channels", "GET /guilds/{guild_id}/members/{user_id}"
TARGETS = (
    Target("Slack", "chat.postMessage", "the card", is_here=True, posts=True, narrow=IN_CHANNEL),
    Target("Slack", "chat.postMessage", "in the thread", posts=True, narrow=IN_THREAD),
    Target("Slack", "chat.postMessage", "in direct messages", way="private", posts=True),
    Target("Slack", "chat.scheduleMessage", "the mention arrived", scene="mention lost", posts=True),
    Target("Slack", "chat.scheduleMessage", "no mention arrived", scene="mention reset", posts=True),
    Target("Slack", "chat.scheduledMessages.list", "the mention arrived", scene="schedule lost"),
    Target("Slack", "chat.scheduledMessages.list", "no mention arrived", scene="schedule reset"),
    Target("Slack", "chat.update"),
    Target("Slack", "download", way="file"),
    Target("Slack", "users.info", way="mention"),
    Target("Slack", "conversations.open", "private run", way="private"),
    Target("Slack", "conversations.open", "channel archived", scene="closed"),
    Target("Slack", "conversations.members", "channel archived", scene="closed"),
    Target("Slack", "files.getUploadURLExternal", scene="no threads"),
    Target("Slack", "upload", scene="no threads"),
    Target("Slack", "files.completeUploadExternal", scene="no threads", posts=True),
    Target("Slack", "response_url", way="private"),
    Target("Slack", "auth.test", "restart", scene="restart"),
    Target("Slack", "apps.connections.open", "restart", scene="restart"),
    Target("Discord", CALLBACK),
    Target("Discord", f"PATCH /{ORIGINAL}", "private run", way="private"),
    Target("Discord", SEND, "everywhere", posts=True),
    Target("Discord", SEND, "the card", way="mention", is_here=True),
    Target("Discord", SEND, "in direct messages", way="private"),
    Target("Discord", EDIT),
    Target("Discord", THREAD),
    Target("Discord", DIRECT, "private run", way="private"),
    Target("Discord", DIRECT, "may not post", scene="closed"),
    Target("Discord", MEMBER, "may not post", scene="closed"),
    Target("Discord", "GET /channels/{channel_id}/messages", "restart", scene="restart"),
    Target("Discord", "GET /users/@me", "restart", scene="restart"),
    Target("Discord", "GET /oauth2/applications/@me", "restart", scene="restart"),
    Target("Discord", "GET /gateway/bot", "restart", scene="restart"),
    Target("Discord", "GET /applications/{application_id}/commands", "restart", scene="restart"),
    Target("Discord", "PUT /applications/{application_id}/commands", "restart", scene="new commands"),
)
ASIDE = {
    "DELETE /channels/{channel_id}/messages/{message_id}": "takes back the card of a refused question",
    "GET /channels/{channel_id}": "looks up a thread before a question in it, a worker's channel",
    "GET /channels/{channel_id}/thread-members/{user_id}": "asked for private threads alone",
    "GET /guilds/{guild_id}": "looked up by a worker, which has no gateway, before a direct message",
    f"GET /{ORIGINAL}": "asked for a card whose receipt names no message",
    "GET /channels/{channel_id}/messages/{message_id}": "reads what a human thread was opened on",
    "chat.postEphemeral": "tells one person why a question isn't taken; there is no answer then",
    "chat.delete": "deletes what was forgotten, after the answer; tried again for days",
    "files.delete": "likewise",
    "PATCH /channels/{channel_id}": "takes the name off the thread of a forgotten answer",
    "views.open": "shows a form to one person, beside an answer",
    "conversations.history": "looks for a card before it is posted again, which it is in any case",
    "conversations.replies": "reads the thread around a question; the run continues without it",
    "conversations.info": "asked for the name of a channel that a question mentions",
    "files.info": "asked for a file from another workspace, before the question is taken",
    "usergroups.list": "asked for the names of user groups that a question mentions",
    "usergroups.users.list": "asked before a question is taken, where user groups may ask",
    "POST /webhooks/{webhook_id}/{token}": "tells one person, beside an answer",
}
"""What is used, but not on an answer's way to its asker; its errors go through the classifier alone."""
EVENTS: dict[str, tuple[Event, float | None]] = {
    "card deleted": ("card deleted", None),
    "card and thread deleted": ("thread deleted", None),
    "channel deleted": ("channel deleted", None),
    "posting forbidden": ("closed", None),
    "access lost for 1.5 s": ("hidden", 1.5),
    "access lost for a minute": ("hidden", 60.0),
    "access lost for an hour": ("hidden", 3600.0),
    "no threads": ("no threads", None),
}
"""What admins do in mid-run, and after how many seconds they undo it."""
NOBODY_LEFT = ("channel deleted",)
"""After these nobody can know any more who may read the answer: it is kept, and not told."""
NO_METHODS = ("upload", "download", "response_url")
"""Addresses that Slack gives out; they answer by a status, and document no errors."""

HANGS = (
    Trouble("reset", "reset", {"breaks": "reset"}),
    Trouble("lost response", "lost response", {"breaks": "reset", "applied": True}, is_lost=True),
    Trouble("hang", "hang", {"breaks": "hang"}),
    Trouble("hang after it was carried out", "hang", {"breaks": "hang", "applied": True}, is_lost=True),
)
PAGES = tuple(
    Trouble(f"{status} as HTML", "5xx as HTML", {"status": status, "html": True})
    for status in (500, 502, 503)
)


def troubles(target: Target) -> Iterator[Trouble]:
    """Yield everything that may go wrong with a target."""
    if target.scene == "event":
        yield Trouble(target.name, "event")
        return
    yield from HANGS
    yield from PAGES
    if target.platform == "Slack":
        yield from _slack(target)
    else:
        yield from _discord(target)


def _slack(target: Target) -> Iterator[Trouble]:
    for seconds in (1, 30):
        yield Trouble(f"429, {seconds} s", f"429, {seconds} s", {"retry_after": seconds})
    if target.name in NO_METHODS:
        return
    for error in SLACK.errors(target.name):
        if error != "ratelimited":
            yield Trouble(error, "documented error", {"error": error})
    yield Trouble("an error that isn't documented", "undocumented error", {"error": "a_new_error"})


def _discord(target: Target) -> Iterator[Trouble]:
    for seconds in (1, 30):
        how = {"status": 429, "retry_after": float(seconds)}
        yield Trouble(f"429, {seconds} s", f"429, {seconds} s", how)
        yield Trouble(f"global 429, {seconds} s", "global 429", {**how, "is_global": True})
    for status in (401, 403, 404):
        how = {"status": status, "html": True}
        yield Trouble(f"{status} as HTML", "4xx as HTML", how)
    for status in (400, 403, 404):
        yield Trouble(f"{status}, code 0", "documented error", {"status": status})
    for code in DISCORD.errors(target.name):
        status, meaning = DISCORD.codes[code]
        how = {"status": status, "code": code, "message": meaning, "retry_after": 5.0}
        yield Trouble(str(code), "documented error", how)
    yield Trouble("a code that isn't documented", "undocumented error", {"status": 400, "code": 99999})


def every() -> Iterator[Case]:
    for target in TARGETS:
        for trouble in troubles(target):
            for length in target.lengths:
                yield Case(target, trouble, length)
    for platform in ("Slack", "Discord"):
        for name in EVENTS:
            yield event(platform, name)


def event(platform: PlatformName, name: str) -> Case:
    return Case(Target(platform, name, scene="event"), Trouble(name, "event"), "")
