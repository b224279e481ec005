"""What Discord's errors mean for a run, in one table.

A code that isn't in the table, because Discord has no such code on the endpoints used or doesn't
document it, may pass: it is tried again a few times, then judged by its HTTP status.

Sources: https://discord.com/developers/docs/topics/opcodes-and-status-codes,
https://discord.com/developers/docs/topics/rate-limits
"""

import json
from collections.abc import Mapping
from http import HTTPStatus

import aiohttp
import discord
import structlog

from bot.service.errors import Gone, Malformed, NotAllowed, RateLimited, Unreachable, VenueError

log = structlog.get_logger()

OLD_MESSAGE, ARCHIVED, THREAD_EXISTS = 30046, 50083, 160004
ALREADY_ANSWERED, TOO_LATE = 40060, 10062
BAD_TOKEN_CODES = frozenset({40001, 50014})
"""May pass; otherwise the gateway ends the connection."""
UNKNOWN_AFTER = 5.0
"""Seconds to wait where Discord limits the rate without saying for how long."""

_BUSY = "Discord is too busy"
_FLAGGED = "Discord has restricted the bot for sending too much"
_TOKEN = "Discord refuses the bot's token"  # noqa: S105 - words about one
_CONTENT = "Discord can't take its content"
_BLOCKED = "Discord's content filter blocked it"
_FILE = "Discord can't take the file"
_TYPE = "this kind of channel can't hold it"

CODES: Mapping[int, tuple[type[VenueError], str]] = {
    # It passes.
    20016: (Unreachable, "slow mode holds it back"),
    20022: (Unreachable, _BUSY),
    20028: (Unreachable, _BUSY),
    20029: (Unreachable, _BUSY),
    30034: (Unreachable, "Discord takes no more commands from the bot today"),
    40003: (Unreachable, "the bot opens direct messages too fast"),
    40004: (Unreachable, "Discord has turned messages off for now"),
    40006: (Unreachable, "Discord has turned this feature off for now"),
    40062: (Unreachable, _BUSY),
    40333: (Unreachable, "Discord's protection against abuse blocked it"),
    110001: (Unreachable, "the application isn't available yet"),
    130000: (Unreachable, _BUSY),
    # It isn't there any more.
    10001: (Gone, "the account is gone"),
    10002: (Gone, "the bot's application is gone"),
    10003: (Gone, "the {place} is gone"),
    10004: (Gone, "the bot is no longer on this server"),
    10007: (Gone, "this person isn't on the server"),
    10008: (Gone, "the message is gone"),
    10013: (Gone, "this person's account no longer exists"),
    10015: (Gone, "the interaction has expired"),
    TOO_LATE: (Gone, "the interaction has expired"),
    10063: (Gone, "the command is gone"),
    50027: (Gone, "the interaction has expired"),
    50055: (Gone, "the bot is no longer on this server"),
    # A permission or a setting keeps the bot from it.
    20009: (NotAllowed, _BLOCKED),
    20012: (NotAllowed, "the bot's application isn't authorized for it"),
    20018: (NotAllowed, "only the account's owner may do it"),
    20024: (NotAllowed, "the bot's account is too young"),
    20026: (NotAllowed, _FLAGGED),
    30007: (NotAllowed, "this channel has reached its limit of webhooks"),
    30033: (NotAllowed, "the thread has reached its limit of members"),
    40002: (NotAllowed, "the bot's account must be verified first"),
    40007: (NotAllowed, "this person is banned from the server"),
    40012: (NotAllowed, "the bot's connection has been revoked"),
    40043: (NotAllowed, "Discord couldn't deliver the interaction"),
    40058: (NotAllowed, _TYPE),
    ALREADY_ANSWERED: (NotAllowed, "the interaction has its response"),
    40067: (NotAllowed, "posts in this forum need a tag"),
    40094: (NotAllowed, "this interaction has reached its limit of responses"),
    50001: (NotAllowed, "the bot has no access to this {place}"),
    50002: (NotAllowed, "the bot's kind of account may not do it"),
    50003: (NotAllowed, "direct messages don't allow it"),
    50005: (NotAllowed, "the message isn't the bot's"),
    50007: (NotAllowed, "direct messages from the bot are closed"),
    50008: (NotAllowed, _TYPE),
    50009: (NotAllowed, "the server's verification level keeps the bot out"),
    50010: (NotAllowed, "the application has no bot"),
    50013: (NotAllowed, "the bot lacks {permission}"),
    50017: (NotAllowed, "the server requires two-factor authentication"),
    50021: (NotAllowed, "it is one of Discord's own messages"),
    50024: (NotAllowed, "this kind of channel doesn't allow it"),
    50033: (NotAllowed, "the bot can't write to this person"),
    50067: (NotAllowed, "Discord doesn't accept where the request came from"),
    50095: (NotAllowed, "the server isn't available in the bot's location"),
    50097: (NotAllowed, "the server lacks a feature for it"),
    50101: (NotAllowed, "the server lacks boosts for it"),
    50178: (NotAllowed, "the account must be verified first"),
    50278: (NotAllowed, "the bot shares no server with this person"),
    60003: (NotAllowed, "the server requires two-factor authentication"),
    160002: (NotAllowed, "the bot lacks Read Message History"),
    160005: (NotAllowed, "the thread is locked"),
    160006: (NotAllowed, "this server has reached its limit of active threads"),
    160007: (NotAllowed, "this server has reached its limit of active announcement threads"),
    400001: (NotAllowed, "Discord has limited file uploads on this server"),
    # Discord can't take it, now or later.
    20001: (Malformed, "bots may not ask for it"),
    20002: (Malformed, "only bots may ask for it"),
    20031: (Malformed, _BLOCKED),
    30015: (Malformed, "it has too many files"),
    30032: (Malformed, "the bot has reached its limit of commands"),
    OLD_MESSAGE: (Malformed, "the message is too old to be edited this often"),
    40005: (Malformed, "it is too large"),
    40041: (Malformed, "there is a command of this name"),
    50006: (Malformed, "it is empty"),
    50026: (Malformed, "the bot's invitation lacks a scope"),
    50035: (Malformed, _CONTENT),
    50041: (Malformed, "Discord no longer offers this version of its API"),
    50045: (Malformed, _FILE),
    50046: (Malformed, _FILE),
    50068: (Malformed, _CONTENT),
    50080: (Malformed, _CONTENT),
    50081: (Malformed, _CONTENT),
    ARCHIVED: (Malformed, "the thread is archived"),
    50085: (Malformed, _CONTENT),
    50109: (Malformed, _CONTENT),
    50110: (Malformed, _FILE),
    50123: (Malformed, _FILE),
    50138: (Malformed, _FILE),
    50146: (Malformed, _FILE),
    50162: (Malformed, _CONTENT),
    THREAD_EXISTS: (Malformed, "the message has a thread"),
    200000: (Malformed, _BLOCKED),
    200001: (Malformed, _BLOCKED),
    220003: (Malformed, _CONTENT),
    240000: (Malformed, _BLOCKED),
}
"""The documented codes of the endpoints used, and 20026, which bots have met on them."""

_BY_STATUS: Mapping[int, tuple[type[VenueError], str]] = {
    HTTPStatus.BAD_REQUEST: (Malformed, _CONTENT),
    HTTPStatus.FORBIDDEN: (NotAllowed, "Discord doesn't allow it"),
    HTTPStatus.NOT_FOUND: (Gone, "the {place} is gone"),
}

REFUSED_TOKEN_CODE = 4004
_FINAL = {
    REFUSED_TOKEN_CODE: "Discord refuses the bot's token; it may have been reset. Copy it again from "
    "the application's page, under Bot, into DISCORD_TOKEN, and start again.",
    4010: "Discord refuses how the connection is sharded (4010). Start again.",
    4011: "The bot is on too many servers for one connection (4011). Start again: it is sharded then.",
    4012: "Discord no longer offers this version of its gateway (4012). Update the program.",
    4013: "Discord doesn't know an intent that the bot asks for (4013). Update the program.",
    4014: "Discord refuses an intent that the bot asks for (4014). Allow it on the application's page, "
    "under Bot, and start again.",
}
"""The close codes after which a bot shouldn't reconnect."""


def classify(
    error: Exception, *, permission: str = "a permission", place: str = "channel"
) -> VenueError:
    """Return what an error of discord.py or of its connection means.

    `permission` names what the request takes, `place` what it is about, both in a person's words.
    """
    if isinstance(error, discord.RateLimited):
        return RateLimited(_BUSY, error.retry_after)
    if isinstance(error, discord.HTTPException):
        return _refusal(error, permission, place)
    is_lost = not isinstance(error, aiohttp.ClientConnectorError)  # else nothing was sent
    if isinstance(error, json.JSONDecodeError):
        return Unreachable("Discord's response can't be read", is_lost=is_lost, is_known=False)
    return Unreachable("Discord could not be reached", is_lost=is_lost)


def _refusal(error: discord.HTTPException, permission: str, place: str) -> VenueError:
    status, code = error.status, error.code
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unreachable("Discord is out of order", is_lost=True)
    if status == HTTPStatus.TOO_MANY_REQUESTS and code != OLD_MESSAGE:
        return RateLimited(_BUSY, retry_after(error))
    if code in BAD_TOKEN_CODES or (status == HTTPStatus.UNAUTHORIZED and code not in CODES):
        return Unreachable(_TOKEN, is_known=False)
    if code in CODES:
        kind, words = CODES[code]
        return kind(words.format(permission=permission, place=place))
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Malformed("it is too large")
    log.warning("discord_refused", status=status, code=code, reason=error)
    return Unreachable("Discord refused it without saying why", is_known=False)


def settled(error: Unreachable, place: str) -> VenueError:
    """Return what an error means that an undocumented code has caused again and again.

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
    """Return Discord's code for an error; 0 where it has none."""
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
    """Return why a connection is lost for good, in a sentence; `None` where it may be made again."""
    match error:
        case discord.LoginFailure():
            return _FINAL[REFUSED_TOKEN_CODE]
        case discord.PrivilegedIntentsRequired():
            return _FINAL[4014]
        case discord.ConnectionClosed():
            return _FINAL.get(error.code)
        case _:
            return None
