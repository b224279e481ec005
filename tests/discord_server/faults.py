"""What a test can make go wrong with requests, and the rate limits that Discord enforces.

Sources: https://discord.com/developers/docs/topics/rate-limits,
https://discord.com/developers/docs/topics/opcodes-and-status-codes
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import cast

from tests.breaking import Passing

from .state import Channel, Json, World

OBSERVED: dict[str, tuple[int, float]] = {
    "POST /channels/{channel_id}/messages": (5, 5.0),
    "PATCH /channels/{channel_id}/messages/{message_id}": (5, 5.0),
    "DELETE /channels/{channel_id}/messages/{message_id}": (5, 1.0),
    "GET /channels/{channel_id}/messages": (5, 1.0),
    "POST /channels/{channel_id}/messages/{message_id}/threads": (50, 300.0),
    "POST /webhooks/{webhook_id}/{token}": (5, 2.0),
    "PATCH /webhooks/{webhook_id}/{token}/messages/@original": (5, 2.0),
}
"""Requests in so many seconds, by route, as the headers have told bots for years.

Discord documents none of them, so that they may change. Threads are counted by guild and shared with
other bots (discord/discord-api-docs#7816, #8082).
"""
BY_GUILD = {"POST /channels/{channel_id}/messages/{message_id}/threads"}


@dataclass(slots=True, eq=False)
class Fault(Passing):
    """Something that goes wrong with requests of a route.

    `status` None only delays. `gate` holds requests back until `release`. `channel` takes only requests
    about that channel, `within` those about its threads as well, and `user` those about a person (a
    direct conversation with them, their membership).
    """

    route: str
    status: int | None = 503
    code: int = 0
    message: str = ""
    retry_after: float = 0.01
    is_global: bool = False
    channel: int | None = None
    within: int | None = None
    user: int | None = None
    gate: asyncio.Event | None = None
    index: int = 0

    def release(self) -> None:
        """Let held requests continue, too."""
        Passing.release(self)
        if self.gate is not None:
            self.gate.set()

    def covers(self, route: str, about: "About", now: float) -> bool:
        if self.is_over(now) or self.route not in {route, "*"}:
            return False
        if self.channel is not None and self.channel != about.channel:
            return False
        if self.within is not None and self.within not in {about.channel, about.parent}:
            return False
        return self.user is None or self.user == about.user


@dataclass(frozen=True, slots=True)
class About:
    """The channel, its parent and the person that a request is about, as ids."""

    channel: int | None = None
    parent: int | None = None
    user: int | None = None


def about(world: World, parameters: dict[str, str], body: object) -> About:
    """Return what a request is about; an interaction's token means the place where it was used."""
    channel: Channel | None = None
    number = parameters.get("channel_id", "")
    if number.isdecimal():
        channel = world.channels.get(int(number))
    elif (interaction := world.tokens.get(parameters.get("token", ""))) is not None:
        channel = interaction.channel
    recipient = cast("Json", body).get("recipient_id", "") if isinstance(body, dict) else ""
    person = parameters.get("user_id", "") or str(recipient)
    user = int(person) if person.isdecimal() else None
    if channel is None:
        return About(int(number) if number.isdecimal() else None, None, user)
    return About(channel.id, channel.parent.id if channel.parent else None, user)


@dataclass(slots=True, eq=False)
class Limit:
    """A bucket: this many requests in this many seconds, per channel, guild or webhook."""

    requests: int
    seconds: float
    windows: dict[tuple[str, ...], deque[float]] = field(
        default_factory=dict[tuple[str, ...], deque[float]]
    )

    def take(self, key: tuple[str, ...], now: float) -> tuple[int, float]:
        """Count a request; return what remains (-1: refused) and the seconds until more."""
        window = self.windows.setdefault(key, deque())
        while window and now - window[0] >= self.seconds:
            window.popleft()
        if len(window) < self.requests:
            window.append(now)
            return self.requests - len(window), self.seconds - (now - window[0])
        return -1, self.seconds - (now - window[0])
