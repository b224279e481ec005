"""Looks up what Slack doesn't send with a message: names, files, and who somebody is."""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import structlog
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import Refusal, Unreachable, VenueError
from bot.inputs.limits import DOCUMENT_BYTES
from bot.service.acknowledgements import LOOKUP_SECONDS
from bot.service.requests.attachments import admitted, one_line
from bot.slack.client import Json, granted
from bot.slack.typed import NOBODY, plain, unnamed
from bot.view.wording import slack as wording
from bot.view.wording.commands import GROUPS_UNKNOWN, NO_NAME
from council.brief import SentFile

log = structlog.get_logger()

T = TypeVar("T")

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
    _people: dict[str, tuple[float, Person]] = field(default_factory=dict[str, Any])
    _channels: dict[str, tuple[float, str]] = field(default_factory=dict[str, Any])
    _handles: tuple[float, Mapping[str, str]] = (-PERSON_SECONDS, NOBODY)
    _groups: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict[str, Any])

    async def person(self, user: str) -> Person:
        """Return who this is; without `users:read`, or an answer in time, nobody in particular."""
        if "users:read" not in self.scopes:
            return Person()
        seen, known = self._people.get(user, (0.0, None))
        if known and self.clock() - seen < PERSON_SECONDS:
            return known
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                found = (await granted(self.client.users_info(user=user)))["user"]
        except (TimeoutError, VenueError) as error:
            log.warning("person_unknown", reason=error)
            return Person()
        name: str = (
            found.get("profile", {}).get("display_name") or found.get("real_name") or found["name"]
        )
        is_admin = bool(found.get("is_admin") or found.get("is_owner"))
        # In a shared channel, somebody may be the admin of another workspace.
        person = Person(name, is_admin and found.get("team_id") == self.team)
        _remember(self._people, user, (self.clock(), person))
        return person

    async def typed(self, text: str, bot: str = "") -> str:
        """Return what somebody typed as people read it, without mentions of `bot`."""
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
        seen, known = self._channels.get(channel, (0.0, None))
        if known is None or self.clock() - seen >= PERSON_SECONDS:
            found: Json = (await granted(self.client.conversations_info(channel=channel)))["channel"]
            known = "" if found.get("is_private") else str(found.get("name") or "")
            _remember(self._channels, channel, (self.clock(), known))
        return known

    async def _handle(self, group: str) -> str:
        if "usergroups:read" not in self.scopes:
            return ""
        seen, known = self._handles
        if self.clock() - seen >= PERSON_SECONDS:
            listed: list[Json] = (await granted(self.client.usergroups_list()))["usergroups"]
            known = {str(each["id"]): str(each["handle"]) for each in listed}
            self._handles = self.clock(), known
        return known.get(group, "")

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
        seen, known = self._groups.get(group, (0.0, None))
        if known is None or self.clock() - seen >= PERSON_SECONDS:
            listed = await granted(self.client.usergroups_users_list(usergroup=group))
            known = frozenset(map(str, listed["users"]))
            self._groups[group] = self.clock(), known
        return known

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
        """Return a file as a question names it."""
        if "files:read" not in self.scopes:
            return SentFile(name=file_name(file), why=wording.lacks_scope("files:read"))
        return SentFile(
            name=file_name(file),
            address=str(file.get("url_private") or ""),
            size=file_size(file),
            media=str(file.get("mimetype") or ""),
        )

    async def known(self, files: Sequence[Json]) -> list[Json]:
        """Return files with their names, sizes and addresses, also those from other workspaces."""
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
    """Return the files of a message and of those that are shared in it."""
    files, shared = message.get("files") or (), message.get("attachments") or ()
    return [*files, *(file for each in shared for file in attached(each))]


def file_name(file: Json) -> str:
    """Return a file's name."""
    return one_line(str(file.get("name") or "")) or NO_NAME


def file_size(file: Json) -> int:
    """Return the size that Slack states; without one, a file counts as the largest allowed."""
    size = file.get("size")
    return size if isinstance(size, int) and size >= 0 else DOCUMENT_BYTES


def _remember(memory: dict[str, T], key: str, value: T) -> None:
    """Keep a value in place of the oldest one where there are too many."""
    memory.pop(key, None)
    while len(memory) >= MOST_REMEMBERED:
        del memory[next(iter(memory))]
    memory[key] = value
