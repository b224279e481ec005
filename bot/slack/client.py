"""Slack's Web API: two clients for one workspace, and whether Slack still accepts their tokens.

Source: https://docs.slack.dev/apis/web-api
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
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

from bot.slack.errors import ERRORS, classified, code_of
from bot.view.wording.slack import REVOKED

log = structlog.get_logger()

Json = dict[str, Any]

SLACK = "https://slack.com/api/"
TRIES = 3
LOST: list[type[Exception]] = [aiohttp.ServerConnectionError, aiohttp.ClientOSError, TimeoutError]
BELIEVED_SECONDS = 60.0
"""How long after a token's first refusal another is believed: one that was revoked by mistake, or that
Slack refuses while it is in trouble, is soon good again."""
ASK_AGAIN_SECONDS = 10.0
"""How long after a refusal Slack is asked whether it still holds, whatever else is sent."""
APP_TOKEN_METHOD = "apps.connections.open"  # noqa: S105 - a method, the one that takes the app's token


@dataclass(frozen=True, slots=True)
class Introduction:
    """What `auth.test` says about the bot, its granted scopes, and the time as Slack writes it."""

    me: Json
    scopes: frozenset[str]
    date: str = ""


class Installation:
    """Whether Slack still accepts the bot's tokens, judging by its responses and events.

    `code` is Slack's code for why access is lost for good; empty while it isn't. `doubted` is set from a
    token's refusal until it is accepted again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused: dict[str, float] = {}
        self.doubted = asyncio.Event()
        self.code = ""

    def accepted(self, token: str) -> None:
        """Forget a refusal that has passed."""
        self._refused.pop(token, None)
        if not self._refused:
            self.doubted.clear()

    def refused(self, token: str, code: str) -> None:
        """Note that a token was refused; that it still is after a minute is final."""
        now = self._clock()
        since = self._refused.setdefault(token, now)
        self.doubted.set()
        log.warning("slack_token_refused", where=token, code=code)
        if now - since >= BELIEVED_SECONDS:
            self.lose(code)

    def lose(self, code: str) -> None:
        """Record that access is lost for good, by Slack's code for it."""
        self.code = self.code or code
        self.doubted.set()


class WatchedClient(AsyncWebClient):
    """The SDK's client; it reports whether Slack accepts the token of each call."""

    def __init__(self, installation: Installation, **options: Any) -> None:  # noqa: ANN401 - the SDK's own
        super().__init__(**options)
        self._installation = installation

    async def api_call(self, api_method: str, **arguments: Any) -> AsyncSlackResponse:  # noqa: ANN401 - the SDK's own
        """Call a method."""
        token = "app" if api_method == APP_TOKEN_METHOD else "bot"
        try:
            answer = await super().api_call(api_method, **arguments)
        except SlackApiError as error:
            if (code := code_of(error)) and code in REVOKED:
                self._installation.refused(token, code)
            raise
        self._installation.accepted(token)
        return answer


async def granted(call: Awaitable[AsyncSlackResponse]) -> Json:
    """Return what Slack answered. Raises `VenueError`."""
    return cast("Json", (await _answered(call)).data)


async def introduced(client: AsyncWebClient) -> Introduction:
    """Learn who the bot is and what it may do. Raises `VenueError`."""
    answer = await _answered(client.auth_test())
    headers = cast("Mapping[str, str]", answer.headers)
    scopes = filter(None, headers.get("x-oauth-scopes", "").split(","))
    return Introduction(cast("Json", answer.data), frozenset(scopes), headers.get("Date", ""))


async def _answered(call: Awaitable[AsyncSlackResponse]) -> AsyncSlackResponse:
    try:
        return await call
    except ERRORS as error:
        raise classified(error) from error


def sending_client(token: str, api_url: str | None, installation: Installation) -> AsyncWebClient:
    """Build the client for what goes through the outbox, which tries again by itself."""
    return WatchedClient(installation, token=token, base_url=api_url or SLACK, retry_handlers=[])


def asking_client(token: str, api_url: str | None, installation: Installation) -> AsyncWebClient:
    """Build the client for the start and for look-ups, which are tried a few times."""
    handlers = [
        AsyncConnectionErrorRetryHandler(TRIES, error_types=LOST),
        _ServerErrors(TRIES),
        AsyncRateLimitErrorRetryHandler(TRIES),
    ]
    return WatchedClient(installation, token=token, base_url=api_url or SLACK, retry_handlers=handlers)


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
