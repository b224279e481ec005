"""Requests to Discord as the outbox sends them: each once, its failure classified at once.

discord.py itself would sleep on a rate limit or a server error and then try again, holding up all
that waits behind it; cancelled in a global limit's sleep, it would hold back every request for good.
So such responses end the request here, and the outbox decides when to repeat it. discord.py still
waits for the buckets whose size it knows.
"""

import json
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from http import HTTPStatus
from types import SimpleNamespace
from typing import TypeVar

import aiohttp
import discord
from discord.http import json_or_text

from bot.discord.errors import classify, is_for_all, retry_after, settled
from bot.errors import RateLimited, Unreachable, VenueError
from bot.service.delivery.outbox import TICK, Lane, Outbox, UrgencyNow
from bot.view.wording.discord import A_PERMISSION, BUSY, CHANNEL, UNREADABLE

T = TypeVar("T")

ALL = Lane("discord", 1 / 40, burst=8, at_once=1000)
"""All requests with the bot's token: Discord takes 50 a second, and some go past the outbox.

Source: https://discord.com/developers/docs/topics/rate-limits#global-rate-limit
"""

_by_outbox: ContextVar[bool] = ContextVar("by_outbox", default=False)


def single_attempts(*, by_all: bool = False) -> aiohttp.TraceConfig:
    """Return what a client needs as its `http_trace`, so that the outbox's requests are sent once.

    With `by_all`, so are all others.
    """

    async def check(
        _: aiohttp.ClientSession, __: SimpleNamespace, params: aiohttp.TraceRequestEndParams
    ) -> None:
        response = params.response
        if not (by_all or _by_outbox.get()):
            return
        if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise discord.DiscordServerError(response, await json_or_text(response))
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise discord.HTTPException(response, await json_or_text(response))
        is_json = response.headers.get("Content-Type") == "application/json"  # as discord.py reads it
        if response.status == HTTPStatus.OK and not is_json:
            raise Unreachable(UNREADABLE, is_lost=True, is_known=False)

    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(check)
    return trace


class DiscordTransport:
    """Sends discord.py's requests through an outbox; raises the errors of `bot.errors`."""

    def __init__(self, outbox: Outbox, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._outbox = outbox
        self._clock = clock
        self._closed_until = 0.0

    async def send(
        self,
        lane: str,
        request: Callable[[], Awaitable[T]],
        *,
        run: str,
        urgency: UrgencyNow,
        permission: str = A_PERMISSION,
        place: str = CHANNEL,
        believes_at_once: bool = False,
    ) -> T:
        """Send a request in its lane's order, one at a time, and return its result.

        It may be repeated, so a request must guard against showing something twice.
        `permission` and `place` are the words for a refusal.
        """

        async def attempt() -> T:
            if (left := self._closed_until - self._clock()) > TICK:
                raise RateLimited(BUSY, left)
            token = _by_outbox.set(True)
            try:
                return await request()
            except (
                discord.HTTPException,
                discord.RateLimited,
                aiohttp.ClientError,
                OSError,
                json.JSONDecodeError,
            ) as error:
                if (
                    isinstance(error, discord.HTTPException)
                    and error.status == HTTPStatus.TOO_MANY_REQUESTS
                    and is_for_all(error)
                ):
                    self._closed_until = self._clock() + retry_after(error)
                raise classify(error, permission=permission, place=place) from error
            finally:
                _by_outbox.reset(token)

        try:
            return await self._outbox.send(
                Lane(f"discord {lane}", within=ALL),
                attempt,
                run=run,
                urgency=urgency,
                believes_at_once=believes_at_once,
            )
        except Unreachable as error:
            final: VenueError = settled(error, place)
            if final is error:
                raise
            raise final from error.__cause__
