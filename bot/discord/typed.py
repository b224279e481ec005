"""The text that people type on Discord, with names for ids.

Source: https://discord.com/developers/docs/reference#message-formatting
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, cast

import aiohttp
import discord
import structlog

from bot.view.wording.figures import CHANNEL, COLLEAGUE, GROUP, called

log = structlog.get_logger()

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
        """Return a text as people read it, without mentions of the bot."""
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


def of_message(client: discord.Client, message: discord.Message) -> Names:
    """Return the names that come with a message."""
    return Names(client, message.guild, {user.id: user.display_name for user in message.mentions})


def of_interaction(client: discord.Client, interaction: discord.Interaction) -> Names:
    """Return the names that come with a command or a form."""
    data = cast("dict[str, Any]", interaction.data or {})
    given: dict[str, dict[str, dict[str, Any]]] = data.get("resolved") or {}
    members = given.get("members") or {}
    people: dict[int, str] = {}
    for who, user in (given.get("users") or {}).items():
        names = (members.get(who, {}).get("nick"), user.get("global_name"), user.get("username"))
        people[int(who)] = str(next(filter(None, names), ""))
    return Names(client, interaction.guild, people)
