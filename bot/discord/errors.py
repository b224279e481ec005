"""What Discord's errors mean for a run; the codes are listed with their words.

A code that isn't listed, because Discord doesn't use it on these endpoints or doesn't
document it, may be temporary: the request is repeated a few times, then judged by its HTTP status.

Sources: https://discord.com/developers/docs/topics/opcodes-and-status-codes,
https://discord.com/developers/docs/topics/rate-limits
"""

import json
from collections.abc import Mapping
from http import HTTPStatus

import aiohttp
import discord
import structlog

from bot.errors import Gone, Malformed, NotAllowed, RateLimited, Unreachable, VenueError
from bot.view.wording import discord as wording
from bot.view.wording.discord import A_PERMISSION, CHANNEL

log = structlog.get_logger()

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
