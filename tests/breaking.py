"""What goes wrong with requests to any fake: for how many or how long, and how a connection breaks."""

import asyncio
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, cast

from aiohttp import web

Breaks = Literal["reset", "hang"]
ALWAYS = 1 << 31
LOOK_AGAIN = 1.0
"""Seconds between looking whether a client that gets no answer is still there."""
LOST = 499
"""What the log says of a request whose client saw no answer."""


@dataclass(slots=True, eq=False, kw_only=True)
class Passing:
    """A fault of the next `times` requests that it covers, or of all of `seconds`.

    The seconds begin with the first request that meets the fault. `breaks` resets the connection, or
    never answers. With `applied`, the request takes effect before its answer is lost. An `html` answer
    is a proxy's page.
    """

    times: int = 1
    seconds: float | None = None
    applied: bool = False
    html: bool = False
    breaks: Breaks | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    hits: int = 0
    met_at: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            self.times = ALWAYS

    def release(self) -> None:
        """Release the requests that hang, and end the fault."""
        self.times = self.hits
        self.over.set()

    def is_over(self, now: float) -> bool:
        """Return whether its number of requests or its seconds are used up."""
        if self.met_at is not None and self.seconds is not None and now >= self.met_at + self.seconds:
            return True
        return self.hits >= self.times

    def meet(self, now: float) -> None:
        """Count a request that it covers."""
        self.hits += 1
        self.met_at = now if self.met_at is None else self.met_at


def page(status: int) -> web.Response:
    """Return the page that a proxy answers with."""
    text = (
        f"<!DOCTYPE html><html><head><title>{status}</title></head><body>{status}: a proxy</body></html>"
    )
    return web.Response(status=status, text=text, content_type="text/html")


async def break_off(request: web.Request, how: Breaks, over: asyncio.Event) -> web.Response:
    """Reset the connection; or keep it without an answer until it is `over` or the client hangs up."""
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
