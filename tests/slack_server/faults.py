"""What a test can make go wrong with the bot's calls: errors of Slack, of a proxy, of the network."""

import asyncio
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, cast

from aiohttp import web

from tests.slack_server.rules import Json

Breaks = Literal["reset", "hang"]
ALWAYS = 1 << 31
LOOK_AGAIN = 1.0
"""Seconds between looking whether a client that gets no answer is still there."""
LOST = 499
"""What the log says of a call whose caller saw no answer."""
PAGE = (
    "<!DOCTYPE html><html><head><title>{status} | Slack</title></head><body>Server Error</body></html>"
)


@dataclass(slots=True, eq=False)
class Fault:
    """What Slack does instead of its own answer, for `times` matching calls or for all of `seconds`.

    The seconds begin with the first call that meets the fault. `retry_after` makes it a 429. An `html`
    answer is a proxy's page. `breaks` resets the connection, or never answers. With `applied`, the
    call takes effect before its answer is lost. `channel` and `user` take only calls about them,
    `in_thread` only posts into threads, or only those into the channel itself, `says` only those whose
    text has it, `team` only those with this workspace's token.
    """

    method: str
    error: str | None = None
    status: int = 200
    retry_after: int | None = None
    delay: float = 0.0
    times: int = 1
    channel: str | None = None
    seconds: float | None = None
    applied: bool = False
    html: bool = False
    breaks: Breaks | None = None
    user: str | None = None
    in_thread: bool | None = None
    says: str = ""
    team: str | None = None
    hits: int = 0
    met_at: float | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if self.seconds is not None:
            self.times = ALWAYS

    def release(self) -> None:
        """Release the calls that hang, and end the fault."""
        self.times = self.hits
        self.over.set()

    def is_over(self, now: float) -> bool:
        """Return whether its number of calls or its seconds are used up."""
        if self.met_at is not None and self.seconds is not None and now >= self.met_at + self.seconds:
            return True
        return self.hits >= self.times

    def matches(self, method: str, arguments: Json, now: float, team: str | None = None) -> bool:
        """Return whether this call, with a token of `team`, meets it."""
        if self.team not in (None, team):
            return False
        if self.is_over(now) or self.method not in {method, "*"}:
            return False
        if self.channel is not None and self.channel != _channel(arguments):
            return False
        if self.in_thread is not None and self.in_thread != bool(arguments.get("thread_ts")):
            return False
        if self.says not in str(arguments.get("text", "")):
            return False
        return self.user is None or self.user in {arguments.get("user"), arguments.get("users")}

    def meet(self, now: float) -> None:
        """Count a call that matches."""
        self.hits += 1
        self.met_at = now if self.met_at is None else self.met_at

    @property
    def refuses(self) -> bool:
        """Return whether the call is answered by the fault."""
        return self.error is not None or self.status != web.HTTPOk.status_code or self.html


def _channel(arguments: Json) -> object:
    for name in ("channel", "channel_id", "channels"):
        if arguments.get(name):
            return arguments[name]
    return None


def page(status: int) -> web.Response:
    """Return the page that a proxy in front of Slack answers with."""
    return web.Response(status=status, text=PAGE.format(status=status), content_type="text/html")


async def break_off(request: web.Request, how: Breaks, over: asyncio.Event) -> web.Response:
    """Reset the connection; or keep it without an answer until it is `over` or the caller hangs up."""
    if how == "hang":
        while not over.is_set() and request.transport is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await over.wait()
    if request.transport is not None:
        connection = request.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        cast("asyncio.WriteTransport", request.transport).abort()
    return web.Response(status=LOST)
