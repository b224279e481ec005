"""What people write on Slack: a message's words and files, names for ids, and human threads.

Sources: https://docs.slack.dev/messaging/formatting-message-text#advanced,
https://docs.slack.dev/reference/block-kit/blocks,
https://docs.slack.dev/legacy/legacy-messaging/legacy-secondary-message-attachments,
https://docs.slack.dev/reference/methods/conversations.replies
"""

# pyright: reportUnknownMemberType=false
# slack-bolt and slack-sdk annotate their dictionaries and keyword arguments without types.

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import structlog
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import NotAllowed, Refusal, Unreachable, VenueError
from bot.inputs.limits import DOCUMENT_BYTES
from bot.service.delivery.outbox import Lane, Outbox, Urgency
from bot.service.inputs import Written, admitted, one_line, read_thread
from bot.service.waits import LOOKUP_SECONDS
from bot.slack.chat import AT_ONCE, BURST, TIER_3
from bot.slack.client import THREADS, Json, granted
from bot.view.wording import slack as wording
from bot.view.wording.commands import GROUPS_UNKNOWN, NO_NAME
from bot.view.wording.figures import CHANNEL, COLLEAGUE, GROUP, called, listing
from council.brief import Brief, Discussion, SentFile
from council.document.conversation import Source
from council.prompts.opening import MOST_MESSAGES

log = structlog.get_logger()

T = TypeVar("T")

NOBODY: Mapping[str, str] = MappingProxyType({})
GROUP_MENTION = "!subteam^"

_SHOWN = (
    *("pretext", "author_name", "title", "title_link", "subtitle", "text", "body", "description"),
    *("details", "output", "fields", "elements", "tasks", "blocks", "message_blocks", "message"),
    *("attachments", "alt_text", "footer"),
)
"""Where blocks, attachments and the messages shared in them have what people read, in that order."""
_CONTROLS = ("actions", "button", "context_actions", "input")
_RICH_LINES = ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
_INLINE = {
    "user": "<@{user_id}>",
    "usergroup": f"<{GROUP_MENTION}{{usergroup_id}}>",
    "channel": "<#{channel_id}>",
    "broadcast": "<!{range}>",
    "date": "<!date^{timestamp}^{format}|{fallback}>",
    "link": "<{url}|{text}>",
    "emoji": ":{name}:",
    "color": "{value}",
}
_STOPGAPS = ("[no preview available]", "This content can't be displayed.")  # Slack's, for no text
_WORD = re.compile(r":skin-tone-\d:|&(?:lt|gt|amp);|([^\W_]+)")

# Slack writes each mention and link as `<target>` or `<target|label>`; a typed `<` comes as `&lt;`.
_CONTROL = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


def plain(text: str, bot: str = "", names: Mapping[str, str] = NOBODY) -> str:
    """Return what was typed as people read it, without mentions of `bot`.

    `names` are those of people, channels and user groups, by id, where Slack sent none.
    """

    def said(found: re.Match[str]) -> str:
        target, label = found[1], found[2]
        if target[0] == "@":
            who = target[1:]
            return "" if who == bot else called("@", label or names.get(who), COLLEAGUE)
        if target[0] == "#":
            return called("#", label or names.get(target[1:]), CHANNEL)
        if target.startswith(GROUP_MENTION):
            group = label or names.get(target.removeprefix(GROUP_MENTION))
            return called("@", group, GROUP)
        if target.startswith("!date^"):
            return label or ""
        if target[0] == "!":  # here, channel, everyone
            return f"@{label or target[1:]}"
        if label and target.partition(":")[2].lstrip("/") == label:
            return label
        return f"{label} ({target})" if label else target

    read = _CONTROL.sub(said, text)
    return read.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def words(message: Json) -> list[str]:
    """Return a message's text and, line by line, what people read beside it, all in Slack's markup.

    A line whose words were there before is left out: most texts repeat what blocks show.
    """
    shown: list[str] = []
    known = " "
    for line in (str(message.get("text") or ""), *_lines({**message, "text": ""})):
        said = " ".join(filter(None, _WORD.findall(line)))
        if not shown or (said and f" {said} " not in known and line not in _STOPGAPS):
            shown.append(line)
            known += f"{said} "
    return ["" if shown[0] in _STOPGAPS else shown[0], *shown[1:]]


def _lines(part: Json | Sequence[Json] | str | None) -> Iterator[str]:
    """Yield the lines of blocks and attachments, or of their parts."""
    if isinstance(part, str):
        yield part
    elif not isinstance(part, Mapping):
        yield from (line for each in part or () for line in _lines(each))
    elif (kind := str(part.get("type"))) in _INLINE:
        yield _INLINE[kind].format_map(defaultdict[str, object](str, part))
    elif kind in _RICH_LINES:
        yield "".join(_lines(part.get("elements")))
    elif kind == "table":
        yield from (" | ".join(" ".join(_lines(cell)) for cell in row) for row in part.get("rows") or ())
    elif "value" in part:  # a field of an attachment
        yield ": ".join(str(each) for each in (part.get("title"), part["value"]) if each)
    elif kind not in _CONTROLS:
        said = [line for key in _SHOWN for line in _lines(part.get(key)) if line]
        yield from said or _lines(part.get("fallback"))


def unnamed(text: str, bot: str = "") -> Iterator[str]:
    """Yield the ids of people, channels and user groups that a text mentions without their names."""
    for target, label in _CONTROL.findall(text):
        if target.startswith(("@", "#", GROUP_MENTION)) and not label:
            who = target.removeprefix(GROUP_MENTION).lstrip("@#")
            if who != bot:
                yield who


FILES = "https://files.slack.com"
PERSON_SECONDS = 600.0
MOST_REMEMBERED = 10_000
"""How many people, and how many channels, are remembered."""
MOST_NAMES = 20
"""How many names are looked up for a text; who is mentioned beyond that stays *a colleague*."""
CHECK_FILE = "check_file_info"
"""What a file from another workspace says in place of everything else; `files.info` tells the rest.
Source: https://docs.slack.dev/apis/slack-connect/using-slack-connect-api#files
"""


@dataclass(frozen=True, slots=True)
class Person:
    """What Slack says about somebody; empty where the bot may not ask."""

    name: str = ""
    is_admin: bool = False


def installed_in(body: Json, bots: Mapping[str, str]) -> str | None:
    """Return the workspace for whose installation something is, whichever its author is from.

    `bots` are the workspaces with an installation, by the id of the bot's user there. In a channel
    shared with another workspace, an event names that one, but its `authorizations` name the
    installation; so does the bot's own message below which somebody has clicked. A form names it, too.
    Source: https://docs.slack.dev/apis/events-api/#authorizations
    """
    known = {*bots.values()}
    if installations := body.get("authorizations"):
        found: list[Json] = [each for each in installations if each.get("team_id") in known]
        # With the app on both sides of a shared channel, the mention says which bot is asked.
        text = str(_within(body, "event", "text"))
        found.sort(key=lambda each: f"<@{each.get('user_id')}>" not in text)
        return found[0]["team_id"] if found else None
    if (team := _within(body, "view", "app_installed_team_id")) in known:
        return team
    author = _within(body, "message", "user")
    if body.get("type") == "block_actions" and author in bots:
        return bots[author]
    team = str(body.get("team_id") or _within(body, "team", "id"))
    return team if team in known else None


def _within(body: Json, part: str, key: str) -> str:
    inner: Json = body.get(part) or {}
    return str(inner.get(key))


@dataclass(slots=True)
class Reader:
    """Looks up files and people, within the granted scopes."""

    client: AsyncWebClient
    session: aiohttp.ClientSession
    scopes: frozenset[str]
    team: str
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _found: dict[str, tuple[float, Any]] = field(default_factory=dict[str, Any])

    async def _recent(self, key: str, look_up: Callable[[], Awaitable[T]]) -> T:
        """Return what was found within `PERSON_SECONDS`, or look it up."""
        seen, found = self._found.get(key, (0.0, None))
        if found is None or self.clock() - seen >= PERSON_SECONDS:
            found = await look_up()
            self._found.pop(key, None)
            while len(self._found) >= MOST_REMEMBERED:
                del self._found[next(iter(self._found))]
            self._found[key] = self.clock(), found
        return found

    async def person(self, user: str) -> Person:
        """Return who this is; without `users:read`, or an answer in time, nobody in particular."""
        if "users:read" not in self.scopes:
            return Person()

        async def look_up() -> Person:
            found: Json = (await granted(self.client.users_info(user=user)))["user"]
            profile: Json = found.get("profile") or {}
            name = profile.get("display_name") or found.get("real_name") or found["name"]
            is_admin = bool(found.get("is_admin") or found.get("is_owner"))
            # In a shared channel, somebody may be the admin of another workspace.
            return Person(name, is_admin and found.get("team_id") == self.team)

        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await self._recent(user, look_up)
        except (TimeoutError, VenueError) as error:
            log.warning("person_unknown", reason=error)
            return Person()

    async def typed(self, text: str, bot: str = "") -> str:
        return plain(text, bot, await self.names(unnamed(text, bot)))

    async def names(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the names of people, channels and user groups, as far as Slack tells them in time."""
        wanted = [*dict.fromkeys(ids)][:MOST_NAMES]
        names = await asyncio.gather(*map(self._name, wanted))
        return {one: name for one, name in zip(wanted, names, strict=True) if name}

    async def _name(self, one: str) -> str:
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                if one.startswith("S"):
                    return await self._handle(one)
                if one.startswith(("C", "G")):
                    return await self._channel(one)
        except (TimeoutError, VenueError) as error:
            log.info("name_unknown", reason=error)
            return ""
        return (await self.person(one)).name

    async def _channel(self, channel: str) -> str:
        """Return a public channel's name; a private one's is for its members."""
        if not self.scopes & {"channels:read", "groups:read"}:
            return ""

        async def look_up() -> str:
            found: Json = (await granted(self.client.conversations_info(channel=channel)))["channel"]
            return "" if found.get("is_private") else str(found.get("name") or "")

        return await self._recent(channel, look_up)

    async def _handle(self, group: str) -> str:
        if "usergroups:read" not in self.scopes:
            return ""

        async def look_up() -> dict[str, str]:
            listed: list[Json] = (await granted(self.client.usergroups_list()))["usergroups"]
            return {str(each["id"]): str(each["handle"]) for each in listed}

        return (await self._recent("handles", look_up)).get(group, "")

    async def memberships(self, user: str, groups: frozenset[str]) -> frozenset[str]:
        """Return which of these user groups somebody is in. Raises `Refusal` where Slack doesn't say."""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                members = await asyncio.gather(*map(self._members, groups))
        except (TimeoutError, VenueError) as error:
            log.warning("user_groups_unknown", reason=error)
            raise Refusal(GROUPS_UNKNOWN) from error
        return frozenset(group for group, users in zip(groups, members, strict=True) if user in users)

    async def _members(self, group: str) -> frozenset[str]:
        async def look_up() -> frozenset[str]:
            listed = await granted(self.client.usergroups_users_list(usergroup=group))
            return frozenset(map(str, listed["users"]))

        return await self._recent(group, look_up)

    async def files(self, message: Json) -> tuple[SentFile, ...]:
        """Return the files of a message, to be read before the first call."""
        files = attached(message)
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                known = await self.known(files)
        except TimeoutError:
            return tuple(
                SentFile(name=file_name(each), why="Slack took too long to describe it")
                for each in files
            )
        return admitted(map(self.sent, known))

    def sent(self, file: Json) -> SentFile:
        if "files:read" not in self.scopes:
            return SentFile(name=file_name(file), why=wording.lacks_scope("files:read"))
        return SentFile(
            name=file_name(file),
            address=str(file.get("url_private") or ""),
            size=file_size(file),
            media=str(file.get("mimetype") or ""),
        )

    async def known(self, files: Sequence[Json]) -> list[Json]:
        return [*await asyncio.gather(*map(self._known, files))]

    async def _known(self, file: Json) -> Json:
        if file.get("file_access") != CHECK_FILE or "files:read" not in self.scopes:
            return file
        try:
            found: Json = (await granted(self.client.files_info(file=str(file.get("id")))))["file"]
        except VenueError as error:
            log.info("file_unknown", reason=error)
            return {**file, "size": 0}  # it isn't there for the bot: no room is kept for it
        return found

    async def fetch(self, file: SentFile) -> bytes:
        """Fetch a file, only from Slack's own hosts: the token goes with it. Raises `Unreachable`."""
        if urlsplit(file.address)[:2] not in {
            urlsplit(each)[:2] for each in (FILES, self.client.base_url)
        }:
            raise Unreachable("the file isn't kept at Slack")
        headers = {"Authorization": f"Bearer {self.client.token}"}
        content = bytearray()
        try:
            async with self.session.get(
                file.address, headers=headers, proxy=self.client.proxy, allow_redirects=False
            ) as response:
                # A token that may not read the file is shown Slack's sign-in page, with status 200.
                is_page = response.content_type == "text/html" and file.media != "text/html"
                if response.status != 200 or is_page:
                    raise Unreachable("Slack asks to sign in for the file")
                async for chunk in response.content.iter_any():
                    content += chunk
                    if len(content) > file.size:
                        raise Unreachable("the file is larger than Slack said")
        except (aiohttp.ClientError, ValueError) as error:
            raise Unreachable("the file can't be fetched") from error
        return bytes(content)


def attached(message: Json) -> list[Json]:
    files, shared = message.get("files") or (), message.get("attachments") or ()
    return [*files, *(file for each in shared for file in attached(each))]


def file_name(file: Json) -> str:
    return one_line(str(file.get("name") or "")) or NO_NAME


def file_size(file: Json) -> int:
    """Return the size that Slack states; without one, a file counts as the largest allowed."""
    size = file.get("size")
    return size if isinstance(size, int) and size >= 0 else DOCUMENT_BYTES


PAGE = 1000
MOST_PAGES = 5
"""Replies come oldest first, so all pages have to be read to see the last."""
SAID = (None, "bot_message", "file_share", "me_message", "message_share", "thread_broadcast")
"""Subtypes of messages that somebody wrote; others tell of joins, renamings, and the like."""


@dataclass(frozen=True, slots=True)
class DiscussionReader:
    """Reads threads with the bot's own token; `me` is what `auth.test` says about the bot."""

    client: AsyncWebClient
    outbox: Outbox
    reader: Reader
    me: Json

    async def read(self, run: str, where: Source, brief: Brief, room: int) -> Discussion:
        """Read the thread in which a question was asked, as much as fits into `room` tokens."""
        context = brief.context or Discussion(until="")
        lane = Lane(f"{where.workspace}/conversations.replies", TIER_3, BURST, AT_ONCE)

        async def page(cursor: str | None) -> Json:
            async def request() -> Json:
                return await granted(
                    self.client.conversations_replies(
                        channel=str(where.channel),
                        ts=str(where.thread),
                        latest=context.until,
                        limit=PAGE,
                        cursor=cursor,
                    )
                )

            return await self.outbox.send(
                lane, request, run=run, urgency=Urgency.PROGRESS, believes_at_once=True
            )

        thread = _SlackThread(page, self.reader, self.me, context)
        return await read_thread(thread, brief, context, room)


@dataclass(frozen=True, slots=True)
class _SlackThread:
    """One thread, which `page` returns by cursor; a `bot.service.inputs.HumanThread`."""

    page: Callable[[str | None], Awaitable[Json]]
    reader: Reader
    me: Json
    context: Discussion
    platform = "Slack"

    async def messages(self) -> tuple[list[Written[Json]], bool]:
        """Return what was written in the thread before the question, oldest first."""
        if not self.reader.scopes & THREADS:
            raise NotAllowed(f"the scopes {listing(sorted(THREADS))} are missing")
        theirs: list[Json] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self.page(cursor)
            messages: list[Json] = page.get("messages") or []
            theirs += filter(self._is_theirs, messages)
            metadata: Json = page.get("response_metadata") or {}
            cursor = metadata.get("next_cursor")
            if not cursor:
                return await self._written(theirs), False
        raise NotAllowed("it is too long")

    def _is_theirs(self, message: Json) -> bool:
        mine = message.get("user") == self.me.get("user_id") or (
            message.get("bot_id") or ""
        ) == self.me.get("bot_id")
        # The range is Slack's to keep; a message that holds the question is never its own context.
        before = message.get("ts", "") < self.context.until
        is_question = message.get("ts") == self.context.question
        return before and not mine and not is_question and message.get("subtype") in SAID

    async def _written(self, messages: list[Json]) -> list[Written[Json]]:
        """Return what was written; names and files are looked up where it may be read, newest first."""
        me = str(self.me.get("user_id"))
        newest = messages[-MOST_MESSAGES:]
        mentioned = (one for each in reversed(newest) for one in unnamed(_said(each), me))
        names, files = await asyncio.gather(
            self.reader.names(mentioned),
            self.reader.known([file for each in newest for file in attached(each)]),
        )
        known = {str(file.get("id")): file for file in files}
        written: list[Written[Json]] = []
        for message in messages:
            bot: Json = message.get("bot_profile") or {}
            written.append(
                Written(
                    author=str(message.get("user") or message.get("bot_id") or ""),
                    text=plain(_said(message), me, names),
                    files=[known.get(str(file.get("id")), file) for file in attached(message)],
                    name=message.get("username") or bot.get("name"),
                )
            )
        return [each for each in written if each.text or each.files]

    async def name(self, author: str) -> str:
        """Return somebody's name; nothing if the bot may not ask."""
        return (await self.reader.person(author)).name

    def sent(self, file: Json) -> SentFile:
        return self.reader.sent(file)


def _said(message: Json) -> str:
    return "\n".join(words(message))
