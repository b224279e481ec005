"""What a test can make go wrong with requests, and the rate limits that Discord enforces.

Sources: https://discord.com/developers/docs/topics/rate-limits,
https://discord.com/developers/docs/topics/opcodes-and-status-codes
"""

import asyncio
import socket
import struct
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, cast

from aiohttp import web

from .state import Channel, Json, World

Breaks = Literal["reset", "hang"]
ALWAYS = 1 << 31
LOOK_AGAIN = 1.0
"""Seconds between looking whether a client that gets no answer is still there."""
LOST = 499
"""What the log says of a request whose client saw no answer."""
PAGE = (
    "<!DOCTYPE html><html><head><title>{status}</title></head><body>{status}: cloudflare</body></html>"
)
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
BY_GUILD = {
    "POST /channels/{channel_id}/messages/{message_id}/threads",
}


@dataclass(slots=True, eq=False)
class Fault:
    """Something that goes wrong with the next `times` requests of a route, or with all of `seconds`.

    The seconds begin with the first request that meets the fault. `status` None only delays. An `html`
    answer is a proxy's page. `breaks` resets the connection, or never answers. With `applied`, the
    request takes effect before its answer is lost. `gate` holds requests back until `release`.
    `channel` takes only requests about that channel, `within` those about its threads as well, and
    `user` those about a person (a direct conversation with them, their membership).
    """

    route: str
    status: int | None = 503
    code: int = 0
    message: str = ""
    retry_after: float = 0.01
    is_global: bool = False
    times: int = 1
    seconds: float | None = None
    applied: bool = False
    html: bool = False
    breaks: Breaks | None = None
    channel: int | None = None
    within: int | None = None
    user: int | None = None
    gate: asyncio.Event | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    hits: int = 0
    met_at: float | None = None
    index: int = 0

    def __post_init__(self) -> None:
        if self.seconds is not None:
            self.times = ALWAYS

    def release(self) -> None:
        """Let held requests continue, and end the fault."""
        self.times = self.hits
        self.over.set()
        if self.gate is not None:
            self.gate.set()

    def is_over(self, now: float) -> bool:
        """Return whether its number of requests or its seconds are used up."""
        if self.met_at is not None and self.seconds is not None and now >= self.met_at + self.seconds:
            return True
        return self.hits >= self.times

    def covers(self, route: str, about: "About", now: float) -> bool:
        """Return whether this request is one that fails."""
        if self.is_over(now) or self.route not in {route, "*"}:
            return False
        if self.channel is not None and self.channel != about.channel:
            return False
        if self.within is not None and self.within not in {about.channel, about.parent}:
            return False
        return self.user is None or self.user == about.user

    def meet(self, now: float) -> None:
        """Count a request that it covers."""
        self.hits += 1
        self.met_at = now if self.met_at is None else self.met_at


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


def page(status: int) -> web.Response:
    """Return the page that a proxy in front of Discord answers with."""
    return web.Response(status=status, text=PAGE.format(status=status), content_type="text/html")


async def break_off(request: web.Request, how: Breaks, over: asyncio.Event) -> web.Response:
    """Reset the connection; or keep it without an answer until it is `over` or the client hangs up."""
    if how == "hang":
        while not over.is_set() and request.transport is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await over.wait()
    if request.transport is not None:
        reset(request.transport)
    return web.Response(status=LOST)


def reset(transport: asyncio.BaseTransport) -> None:
    """Reset a connection instead of closing it properly."""
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    cast("asyncio.WriteTransport", transport).abort()
