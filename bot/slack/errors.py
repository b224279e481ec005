"""What Slack's errors mean: which pass, what is gone, what is forbidden, and what we did wrong.

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

from bot.service.errors import Gone, Malformed, NotAllowed, RateLimited, Unreachable, VenueError

RETRY_SECONDS = 10.0
"""How long to wait after a rate limit that doesn't say how long."""

NO_ANSWER = "Slack can't be reached"
IN_TROUBLE = "Slack has a problem of its own"
MIGRATING = "the workspace is being moved to an organization"

RATE_LIMITS = frozenset({"rate_limited", "ratelimited"})
TRANSIENT = {
    "external_channel_migrating": "the channel is being moved",
    "fatal_error": IN_TROUBLE,
    "fetch_members_failed": IN_TROUBLE,
    "file_update_failed": IN_TROUBLE,
    "internal_error": IN_TROUBLE,
    "message_limit_exceeded": "the workspace sends too many messages",
    "org_login_required": MIGRATING,
    "request_timeout": IN_TROUBLE,
    "restricted_too_many": "too many messages are scheduled in the channel",
    "service_unavailable": IN_TROUBLE,
    "streaming_state_conflict": "the card is being written to",
    "team_added_to_org": MIGRATING,
    "update_failed": IN_TROUBLE,
}
HALF_DONE = frozenset({"fatal_error", "internal_error"})
"""After these, says Slack, some aspect of the operation may have succeeded."""
REVOKED = {
    "account_inactive": "the app was removed from the workspace",
    "invalid_auth": "Slack doesn't accept the token",
    "token_expired": "the token has expired",
    "token_revoked": "the token was revoked",
}
"""Codes that are about the token, whatever was asked."""
GONE = {
    "cant_update_message": "the card no longer belongs to the bot",
    "channel_not_found": "the channel doesn't exist, or the bot isn't in it; invite it with /invite",
    "invalid_channel": "the channel doesn't exist, or the bot isn't in it; invite it with /invite",
    "is_archived": "the channel is archived",
    "is_inactive": "the channel is archived",
    "message_not_found": "the card was deleted",
    "team_not_found": "the workspace no longer exists",
    "thread_not_found": "the thread was deleted",
    "user_disabled": "the asker's account was deactivated",
    "user_not_found": "the asker's account doesn't exist",
    "user_not_in_channel": "the asker isn't in the channel",
    "user_not_visible": "the bot can't see the asker's account",
}
_NETWORK = "the workspace doesn't accept requests from this network"
_POLICY = "the workspace's settings don't allow it"
_SETTINGS = "this channel's settings keep the bot from posting"
_CONNECT = "this file or link may not be shared with other organizations"
FORBIDDEN = {
    "access_denied": _POLICY,
    "accesslimited": _NETWORK,
    "app_access_restricted": _POLICY,
    "edit_window_closed": "the workspace doesn't let messages be edited so late",
    "ekm_access_denied": "the workspace's administrators have suspended posting",
    "enterprise_is_restricted": _POLICY,
    "file_upload_size_restricted": "the workspace doesn't allow files this large",
    "file_uploads_disabled": "the workspace doesn't allow files",
    "forbidden_team": _POLICY,
    "invalid_token": "Slack doesn't accept the bot's token for this",
    "invalid_user_combination": "the asker's organization shares no channel with the bot's",
    "is_bot": "a bot may not do this",
    "messages_tab_disabled": "the app's Messages tab is switched off",
    "method_not_supported_for_channel_type": "this kind of conversation doesn't allow it",
    "no_permission": "the bot's token lacks the permission",
    "not_allowed_token_type": "the bot's token and the app's token are mixed up",
    "not_authed": "the token is missing",
    "not_in_channel": "the bot isn't in this channel; invite it with /invite",
    "posting_to_channel_denied": _SETTINGS,
    "restricted_action": _SETTINGS,
    "restricted_action_read_only_channel": "only some people may post in this channel",
    "restricted_action_thread_locked": "the thread is locked",
    "restricted_action_thread_only_channel": "this channel takes replies in threads only",
    "send_on_behalf_not_allowed": _POLICY,
    "slack_connect_canvas_sharing_blocked": _CONNECT,
    "slack_connect_file_link_sharing_blocked": _CONNECT,
    "slack_connect_lists_sharing_blocked": _CONNECT,
    "storage_limit_reached": "the workspace has no room left for files",
    "team_access_not_granted": "the app isn't allowed in this workspace",
    "two_factor_setup_required": "the workspace requires two-factor authentication",
}
NO_THREADS = frozenset({"cannot_reply_to_message", "restricted_action_non_threadable_channel"})
MALFORMED = frozenset(
    {
        "agent_prompt_display_not_allowed",
        "alt_txt_too_large",
        "as_user_not_supported",
        "attachment_payload_limit_exceeded",
        "block_mismatch",
        "cant_broadcast_message",
        "channels_limit_exceeded",
        "deprecated_endpoint",
        "draft_already_deleted",
        "draft_already_sent",
        "draft_has_conflict",
        "draft_not_found",
        "duplicate_channel_not_found",
        "duplicate_message_not_found",
        "file_not_found",
        "insecure_request",
        "invalid_arg_name",
        "invalid_arguments",
        "invalid_array_arg",
        "invalid_attachments",
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_charset",
        "invalid_cursor",
        "invalid_file_length",
        "invalid_form_data",
        "invalid_limit",
        "invalid_metadata_filter_keys",
        "invalid_metadata_format",
        "invalid_metadata_schema",
        "invalid_post_type",
        "invalid_time",
        "invalid_ts_latest",
        "invalid_ts_oldest",
        "markdown_text_conflict",
        "metadata_must_be_sent_from_app",
        "metadata_too_large",
        "method_deprecated",
        "missing_args",
        "missing_argument",
        "missing_charset",
        "missing_file_data",
        "missing_post_type",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_dual_broadcast_content_update",
        "no_text",
        "not_enough_users",
        "snippet_too_large",
        "superfluous_charset",
        "time_in_past",
        "time_too_far",
        "too_many_attachments",
        "too_many_contact_cards",
        "too_many_users",
        "unknown_method",
        "unknown_snippet_type",
        "unknown_subtype",
        "users_list_not_supplied",
    }
)

NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
"""Errors before anything was sent; after any other, the request may have been carried out."""
UNREADABLE = (AttributeError, TypeError, ValueError)
"""What the SDK raises over a body that isn't a JSON object, such as a proxy's page."""
ERRORS = (SlackClientError, aiohttp.ClientError, TimeoutError, *UNREADABLE)
"""All that a call of the SDK raises in place of an answer."""


class Revoked(Gone):
    """Slack doesn't accept the token."""


class NoThread(NotAllowed):
    """This channel takes no replies in threads."""


def code_of(error: Exception) -> str | None:
    """Return Slack's code for what went wrong, if there is one."""
    code = _body(error).get("error")
    return code if isinstance(code, str) else None


def classified(error: Exception) -> VenueError:
    """Return what an error of the SDK means, in words for people."""
    if isinstance(error, SlackApiError):
        return by_status(_status(error), code_of(error), _headers(error), needed=_needed(error))
    if isinstance(error, NOT_SENT):
        return Unreachable(NO_ANSWER)
    if isinstance(error, aiohttp.ClientError | TimeoutError):
        return Unreachable(NO_ANSWER, is_lost=True)
    return Unreachable("Slack's answer can't be read", is_lost=True, is_known=False)


def by_status(
    status: int, code: str | None, headers: Mapping[str, str], *, needed: str = ""
) -> VenueError:
    """Return what an HTTP status and Slack's code mean; `needed` is the scope that is missing."""
    if status == HTTPStatus.TOO_MANY_REQUESTS or code in RATE_LIMITS:
        return RateLimited("Slack is receiving too many requests", _seconds(headers))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unreachable(IN_TROUBLE, may_be_done=status != HTTPStatus.SERVICE_UNAVAILABLE)
    if code is None:
        is_lost = status == HTTPStatus.OK
        return Unreachable("Slack's answer can't be read", is_lost=is_lost, is_known=False)
    return by_code(code, needed)


def by_code(code: str, needed: str = "") -> VenueError:
    """Return what one of Slack's codes means; an unknown one may pass."""
    if code in TRANSIENT:
        return Unreachable(TRANSIENT[code], may_be_done=code in HALF_DONE)
    if code in REVOKED:
        return Revoked(REVOKED[code])
    if code in GONE:
        return Gone(GONE[code])
    if code in NO_THREADS:
        return NoThread("threads are switched off in this channel")
    if code == "missing_scope":
        return NotAllowed(f"the scope {needed} is missing" if needed else "a scope is missing")
    if code in FORBIDDEN:
        return NotAllowed(FORBIDDEN[code])
    if code in MALFORMED:
        return Malformed(f"Slack can't take it ({code})")
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
