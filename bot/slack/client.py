"""Slack's Web API: calls that are tried again where that helps, and refusals in words.

Sources: https://docs.slack.dev/apis/web-api, and the error lists of the methods used.
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.service.venue import Gone, NotAllowed, Unreachable, VenueError

Json = dict[str, Any]

SLACK = "https://slack.com/api/"
TRIES = 5
RATE_LIMIT_TRIES = 10
LOST: list[type[Exception]] = [aiohttp.ServerConnectionError, aiohttp.ClientOSError, TimeoutError]
GONE = {
    "account_inactive": "the bot was removed from this workspace",
    "cant_update_message": "the card isn't the bot's any more",
    "channel_not_found": "there is no such channel, or the bot is no member; invite it with /invite",
    "invalid_auth": "Slack doesn't accept the token",
    "is_archived": "the channel is archived",
    "message_not_found": "the card was deleted",
    "thread_not_found": "the thread was deleted",
    "token_revoked": "the bot's token was revoked",
}
NOT_ALLOWED = {
    "ekm_access_denied": "the workspace's administrators have suspended posting",
    "no_permission": "the bot's token lacks the permission",
    "not_allowed_token_type": "the bot's token and the app's token are mixed up",
    "not_in_channel": "the bot is no member of this channel; invite it with /invite",
    "restricted_action_thread_locked": "the thread is locked",
}
NO_THREADS = frozenset({"cannot_reply_to_message", "restricted_action_non_threadable_channel"})


@dataclass(frozen=True, slots=True)
class Introduction:
    """What `auth.test` says of the bot, and the scopes it was granted."""

    me: Json
    scopes: frozenset[str]


class NoThread(NotAllowed):
    """This channel takes no replies in threads."""


def refusal(error: SlackApiError) -> VenueError:
    """Say in words for people what Slack refused."""
    response = cast("Json", error.response)
    code = str(response.get("error") or "no answer")
    if code == "missing_scope":
        return NotAllowed(f"the scope {response.get('needed')} is missing")
    if code in NO_THREADS:
        return NoThread("threads are switched off in this channel")
    if code in GONE:
        return Gone(GONE[code])
    if code in NOT_ALLOWED or code.startswith("restricted_action"):
        return NotAllowed(NOT_ALLOWED.get(code, "this channel's settings keep the bot from posting"))
    return VenueError(f"Slack refused ({code})")


async def granted(call: Awaitable[AsyncSlackResponse]) -> Json:
    """Give what Slack answered. Raises `VenueError`."""
    return cast("Json", (await _answered(call)).data)


async def introduced(client: AsyncWebClient) -> Introduction:
    """Learn who the bot is and what it may do. Raises `VenueError`."""
    answer = await _answered(client.auth_test())
    headers = cast("Mapping[str, str]", answer.headers)
    scopes = filter(None, headers.get("x-oauth-scopes", "").split(","))
    return Introduction(cast("Json", answer.data), frozenset(scopes))


async def _answered(call: Awaitable[AsyncSlackResponse]) -> AsyncSlackResponse:
    try:
        return await call
    except SlackApiError as error:
        raise refusal(error) from error
    except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
        raise Unreachable("Slack can't be reached") from error


def web_client(token: str, api_url: str | None) -> AsyncWebClient:
    """Build a client that waits out rate limits and short outages."""
    return AsyncWebClient(
        token,
        base_url=api_url or SLACK,
        retry_handlers=[
            AsyncConnectionErrorRetryHandler(TRIES, error_types=LOST),
            _ServerErrors(TRIES),
            AsyncRateLimitErrorRetryHandler(RATE_LIMIT_TRIES),
        ],
    )


class _ServerErrors(AsyncServerErrorRetryHandler):
    """Tries again after every 5xx; the SDK's own leaves out a proxy's 502 and 504."""

    async def _can_retry_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        del state, request, error  # part of the interface
        return response is not None and response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
