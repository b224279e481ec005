"""Requests to Discord as the outbox sends them, and what their failures mean for a run.

discord.py itself would sleep on a rate limit or a server error and then try again, holding up all
that waits behind it; cancelled in a global limit's sleep, it would hold back every request for good.
So such responses end the request here, and the outbox decides when to repeat it. discord.py still
waits for the buckets whose size it knows.

A code that isn't listed with its words, because Discord doesn't use it on these endpoints or doesn't
document it, may be temporary: the request is repeated a few times, then judged by its HTTP status.

Sources: https://discord.com/developers/docs/topics/opcodes-and-status-codes,
https://discord.com/developers/docs/topics/rate-limits
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from types import SimpleNamespace
from typing import TypeVar

import aiohttp
import discord
import structlog
from discord.http import json_or_text

from bot.errors import Gone, Malformed, NotAllowed, RateLimited, Unreachable, VenueError
from bot.service.delivery.outbox import TICK, Lane, Outbox, UrgencyNow
from bot.view.wording import discord as wording
from bot.view.wording.discord import A_PERMISSION, BUSY, CHANNEL, UNREADABLE

log = structlog.get_logger()

T = TypeVar("T")

NOBODY = discord.AllowedMentions.none()
OLD_MESSAGE, ARCHIVED, THREAD_EXISTS = 30046, 50083, 160004
UNKNOWN_CHANNEL, UNKNOWN_MESSAGE = 10003, 10008
ALREADY_ANSWERED, TOO_LATE = 40060, 10062
BAD_TOKEN_CODES = frozenset({40001, 50014})
"""May pass; otherwise the gateway ends the connection."""
UNKNOWN_AFTER = 5.0
"""Seconds to wait where Discord limits the rate without saying for how long."""

_KINDS: Mapping[type[VenueError], Mapping[int, str]] = {
    Unreachable: wording.TEMPORARY,
    Gone: wording.GONE,
    NotAllowed: wording.NOT_ALLOWED,
    Malformed: wording.MALFORMED,
}
CODES: Mapping[int, type[VenueError]] = {code: kind for kind, codes in _KINDS.items() for code in codes}
"""The documented codes of the endpoints used, and 20026, which bots have met on them."""

_BY_STATUS: Mapping[int, tuple[type[VenueError], str]] = {
    HTTPStatus.BAD_REQUEST: (Malformed, wording.CONTENT),
    HTTPStatus.FORBIDDEN: (NotAllowed, "Discord doesn't allow it"),
    HTTPStatus.NOT_FOUND: (Gone, "the {place} is gone"),
}

REFUSED_TOKEN_CODE = 4004


def classify(error: Exception, *, permission: str = A_PERMISSION, place: str = CHANNEL) -> VenueError:
    """Return what an error of discord.py or of its connection means.

    `permission` names what the request needs, `place` what it is about, both in people's words.
    """
    if isinstance(error, discord.RateLimited):
        return RateLimited(wording.BUSY, error.retry_after)
    if isinstance(error, discord.HTTPException):
        return _refusal(error, permission, place)
    is_lost = not isinstance(error, aiohttp.ClientConnectorError)  # else nothing was sent
    if isinstance(error, json.JSONDecodeError):
        return Unreachable(wording.UNREADABLE, is_lost=is_lost, is_known=False)
    return Unreachable(wording.NOT_REACHED, is_lost=is_lost)


def _refusal(error: discord.HTTPException, permission: str, place: str) -> VenueError:
    status, code = error.status, error.code
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unreachable("Discord is having problems", is_lost=True)
    if status == HTTPStatus.TOO_MANY_REQUESTS and code != OLD_MESSAGE:
        return RateLimited(wording.BUSY, retry_after(error))
    if code in BAD_TOKEN_CODES or (status == HTTPStatus.UNAUTHORIZED and code not in CODES):
        return Unreachable("Discord refuses the bot's token", is_known=False)
    if code in CODES:
        return CODES[code](wording.CODES[code].format(permission=permission, place=place))
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Malformed("it is too large")
    log.warning("discord_refused", status=status, code=code, reason=error)
    return Unreachable("Discord refused it without saying why", is_known=False)


def settled(error: Unreachable, place: str) -> VenueError:
    """Return what an error means whose undocumented code keeps coming back.

    A page of HTML isn't from Discord's API, but from what protects it, and passes; so does a 401,
    or the connection ends.
    """
    refused = error.__cause__
    if error.is_known or not isinstance(refused, discord.HTTPException):
        return error
    if refused.status not in _BY_STATUS or (
        refused.status != HTTPStatus.BAD_REQUEST and not refused.code
    ):
        return error
    kind, words = _BY_STATUS[refused.status]
    return kind(words.format(place=place))


def code_of(error: VenueError) -> int:
    """Return Discord's code for an error; 0 if it has none."""
    refused = error.__cause__
    return refused.code if isinstance(refused, discord.HTTPException) else 0


def retry_after(error: discord.HTTPException) -> float:
    """Return how long to wait after a 429, in seconds."""
    headers = error.response.headers
    for name in ("X-RateLimit-Reset-After", "Retry-After"):
        try:
            return max(0.0, float(headers.get(name, "")))
        except ValueError:
            continue
    return UNKNOWN_AFTER


def is_for_all(error: discord.HTTPException) -> bool:
    """Whether a 429 is for all requests: by Discord's global limit, or by the proxy before it."""
    headers = error.response.headers
    return headers.get("X-RateLimit-Global") == "true" or "Via" not in headers


def why_final(error: BaseException) -> str | None:
    """Return why a connection is lost for good, in a sentence; `None` if the bot may reconnect."""
    match error:
        case discord.LoginFailure():
            return wording.CLOSE_CODES[REFUSED_TOKEN_CODE]
        case discord.PrivilegedIntentsRequired():
            return wording.CLOSE_CODES[4014]
        case discord.ConnectionClosed():
            return wording.CLOSE_CODES.get(error.code)
        case _:
            return None


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
        self.outbox = outbox
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
            return await self.outbox.send(
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
