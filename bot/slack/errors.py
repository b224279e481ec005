"""What Slack's errors mean for a run; the codes with a sentence of their own are listed with it.

Sources: https://docs.slack.dev/apis/web-api/rate-limits, and the error tables of the methods used at
https://docs.slack.dev/reference/methods.
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its responses without types.

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
    NotAllowed: wording.FORBIDDEN,
}
NO_THREADS = frozenset({"cannot_reply_to_message", "restricted_action_non_threadable_channel"})
_NEVER_ACCEPTED = """
agent_prompt_display_not_allowed alt_txt_too_large as_user_not_supported
attachment_payload_limit_exceeded block_mismatch cant_broadcast_message channels_limit_exceeded
deprecated_endpoint draft_already_deleted draft_already_sent draft_has_conflict draft_not_found
duplicate_channel_not_found duplicate_external_id duplicate_message_not_found file_deleted
file_not_found insecure_request invalid_arg_name invalid_arguments invalid_array_arg
invalid_attachments invalid_blocks invalid_blocks_format invalid_charset invalid_cursor
invalid_file_length invalid_form_data invalid_limit invalid_metadata_filter_keys
invalid_metadata_format invalid_metadata_schema invalid_post_type invalid_team invalid_time
invalid_ts_latest invalid_ts_oldest markdown_text_conflict metadata_must_be_sent_from_app
metadata_too_large method_deprecated missing_args missing_argument missing_charset
missing_file_data missing_post_type msg_blocks_too_long msg_too_long
no_dual_broadcast_content_update no_text not_enough_users snippet_too_large superfluous_charset
time_in_past time_too_far too_many_attachments too_many_contact_cards too_many_users
unknown_method unknown_snippet_type unknown_subtype users_list_not_supplied users_not_found
view_too_large
"""
_MALFORMED = frozenset(_NEVER_ACCEPTED.split())
"""What Slack calls requests that it never accepts. A code that it doesn't document may pass."""

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
        return RateLimited("Slack is receiving too many requests", _seconds(headers))
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
        return NoThread("threads are switched off in this channel")
    if code in wording.TRANSIENT:
        return Unreachable(wording.TRANSIENT[code], may_be_done=code in HALF_DONE)
    for kind, codes in _KINDS.items():
        if code in codes:
            return kind(codes[code])
    if code in _MALFORMED:
        return Malformed(f"Slack doesn't accept it ({code})")
    return Unreachable(f"Slack refused ({code})", is_known=False)


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
