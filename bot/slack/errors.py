"""What Slack's errors mean for a run; the codes with a sentence of their own are listed with it.

Sources: https://docs.slack.dev/apis/web-api/rate-limits, and the error tables of the methods used at
https://docs.slack.dev/reference/methods.
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its responses without types.

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import (
    Gone,
    Malformed,
    NotAllowed,
    NoThread,
    RateLimited,
    Revoked,
    Unreachable,
    VenueError,
)
from bot.view.wording import slack as wording

RETRY_SECONDS = 10.0
"""How long to wait after a rate limit that doesn't say how long."""

RATE_LIMITS = frozenset({"rate_limited", "ratelimited"})
HALF_DONE = frozenset({"fatal_error", "internal_error"})
"""After these, says Slack, some aspect of the operation may have succeeded."""
_KINDS: Mapping[type[VenueError], Mapping[str, str]] = {
    Revoked: wording.REVOKED,
    Gone: wording.GONE,
    NotAllowed: {**wording.FORBIDDEN, **wording.NOT_INSTALLED},
}
NO_THREADS = frozenset({"cannot_reply_to_message", "restricted_action_non_threadable_channel"})
_MALFORMED = re.compile(
    r"(?:draft|duplicate|file|invalid|metadata|missing|superfluous|time|too_many|unknown)_.+"
    r"|.+_(?:conflict|deprecated|exceeded|mismatch|not_allowed|not_found|not_supplied|not_supported)"
    r"|.+_too_(?:large|long)"
    r"|cant_broadcast_message|deprecated_endpoint|insecure_request|not_enough_users"
    r"|no_dual_broadcast_content_update|no_text"
)
"""What Slack calls a request that it never accepts, where no other code means more."""

NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
"""Errors before anything was sent; after any other, the request may have been carried out."""
UNREADABLE = (AttributeError, TypeError, ValueError)
"""What the SDK raises over a body that isn't a JSON object, such as a proxy's page."""
ERRORS = (SlackClientError, aiohttp.ClientError, TimeoutError, *UNREADABLE)
"""All that a call of the SDK raises in place of an answer."""


def code_of(error: Exception) -> str | None:
    """Return Slack's code for what went wrong, if there is one."""
    code = _body(error).get("error")
    return code if isinstance(code, str) else None


def classified(error: Exception) -> VenueError:
    """Return what an error of the SDK means, in words for people."""
    if isinstance(error, SlackApiError):
        return by_status(_status(error), code_of(error), _headers(error), needed=_needed(error))
    if isinstance(error, NOT_SENT):
        return Unreachable(wording.NO_ANSWER)
    if isinstance(error, aiohttp.ClientError | TimeoutError):
        return Unreachable(wording.NO_ANSWER, is_lost=True)
    return Unreachable(wording.UNREADABLE, is_lost=True, is_known=False)


def by_status(
    status: int, code: str | None, headers: Mapping[str, str], *, needed: str = ""
) -> VenueError:
    """Return what an HTTP status and Slack's code mean; `needed` is the scope that is missing."""
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in RATE_LIMITS:
        return RateLimited(wording.TOO_BUSY, _seconds(headers))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unreachable(wording.IN_TROUBLE, may_be_done=status != HTTPStatus.SERVICE_UNAVAILABLE)
    if code is None:
        is_lost = status == HTTPStatus.OK
        return Unreachable(wording.UNREADABLE, is_lost=is_lost, is_known=False)
    return by_code(code, needed)


def by_code(code: str, needed: str = "") -> VenueError:
    """Return what one of Slack's codes means; an unknown one may pass."""
    if code == "missing_scope":
        return NotAllowed(wording.lacks_scope(needed))
    if code in NO_THREADS:
        return NoThread(wording.NO_THREADS)
    if code in wording.TRANSIENT:
        return Unreachable(wording.TRANSIENT[code], may_be_done=code in HALF_DONE)
    for kind, codes in _KINDS.items():
        if code in codes:
            return kind(codes[code])
    if _MALFORMED.fullmatch(code):
        return Malformed(wording.malformed(code))
    return Unreachable(wording.refused(code), is_known=False)


def _seconds(headers: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", RETRY_SECONDS)))
    except ValueError:
        return RETRY_SECONDS


def _answer(error: Exception) -> AsyncSlackResponse | aiohttp.ClientResponse | None:
    """Return the response of an error; it is aiohttp's own where the SDK couldn't read its body."""
    if not isinstance(error, SlackApiError):
        return None
    return cast("AsyncSlackResponse | aiohttp.ClientResponse", error.response)


def _body(error: Exception) -> dict[str, Any]:
    answer = _answer(error)
    body = cast("object", answer.data) if isinstance(answer, AsyncSlackResponse) else None
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _needed(error: SlackApiError) -> str:
    return str(_body(error).get("needed") or "")


def _status(error: SlackApiError) -> int:
    answer = _answer(error)
    if isinstance(answer, AsyncSlackResponse):
        return cast("int", answer.status_code)
    return answer.status if answer else 0


def _headers(error: SlackApiError) -> Mapping[str, str]:
    answer = _answer(error)  # aiohttp's headers are found whatever their case
    return cast("Mapping[str, str]", answer.headers) if answer else {}
