"""Slack's Web API: two clients for a workspace, what its errors mean, whether it takes the tokens.

At the end is what the app asks for: its manifest, made from the command registry.

Sources: https://docs.slack.dev/apis/web-api, https://docs.slack.dev/apis/web-api/rate-limits,
https://docs.slack.dev/reference/app-manifest, and the error tables of the methods used at
https://docs.slack.dev/reference/methods
"""

# pyright: reportUnknownMemberType=false
# slack-bolt and slack-sdk annotate their dictionaries and keyword arguments without types.
import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import aiohttp
import structlog
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
from bot.service.commands import ACTION, ASK, COMMANDS, CONFIG, FORGET, Command, usage
from bot.view.wording import slack as wording
from bot.view.wording.commands import EXAMPLE, TAKE_MESSAGE
from bot.view.wording.slack import REVOKED

log = structlog.get_logger()

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
    code = _body(error).get("error")
    return code if isinstance(code, str) else None


def classified(error: Exception) -> VenueError:
    """Return what an error of the SDK means, in words for people."""
    if isinstance(error, SlackApiError):
        return by_status(
            _status(error), code_of(error), _headers(error), needed=str(_body(error).get("needed") or "")
        )
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


def _status(error: SlackApiError) -> int:
    answer = _answer(error)
    if isinstance(answer, AsyncSlackResponse):
        return cast("int", answer.status_code)
    return answer.status if answer else 0


def _headers(error: SlackApiError) -> Mapping[str, str]:
    answer = _answer(error)  # aiohttp's headers are found whatever their case
    return cast("Mapping[str, str]", answer.headers) if answer else {}


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


PATH = "/slack/events"
PLACEHOLDER = "https://YOUR-SERVER"
SHORTCUT = ACTION.lower().replace(" ", "_")
"""The message action's `callback_id`."""
EVENTS = ("app_mention", "app_uninstalled", "message.im", "tokens_revoked")
REQUIRED = frozenset(
    {
        "app_mentions:read",
        "chat:write",
        "commands",
        "files:write",
    }
)
OPTIONAL = frozenset(
    {
        "channels:read",
        "chat:write.public",
        "files:read",
        "groups:read",
        "im:history",
        "im:write",
        "usergroups:read",
        "users:read",
    }
)
"""Scopes without which the council still runs; it says what it can't do."""
THREADS = frozenset(
    {
        "channels:history",
        "groups:history",
    }
)
"""Scopes that let the bot read what people write; only for those who want that."""


def app_manifest(*, socket_mode: bool = True, url: str = PLACEHOLDER, threads: bool = False) -> Json:
    """Return the manifest, for Socket Mode, or for HTTP requests to the server at `url`.

    With `threads`, the app may read the thread in which it is asked.
    """
    optional = OPTIONAL | THREADS if threads else OPTIONAL
    address = {} if socket_mode else {"request_url": f"{url.rstrip('/')}{PATH}"}
    return {
        "display_information": {
            "name": "Council",
            "description": "Several language models answer, review each other, and conclude",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "council", "always_online": True},
            "shortcuts": [
                {
                    "name": ACTION,
                    "type": "message",
                    "callback_id": SHORTCUT,
                    "description": TAKE_MESSAGE,
                }
            ],
            "slash_commands": [_command(command, address.get("request_url")) for command in COMMANDS],
        },
        "oauth_config": {
            "scopes": {"bot": sorted(REQUIRED | optional), "bot_optional": sorted(optional)}
        },
        "settings": {
            "event_subscriptions": {**address, "bot_events": [*EVENTS]},
            "interactivity": {"is_enabled": True, **address},
            "org_deploy_enabled": False,
            "socket_mode_enabled": socket_mode,
            "token_rotation_enabled": False,
        },
    }


def _command(command: Command, url: str | None) -> Json:
    hint = EXAMPLE if command is ASK else usage(command)
    return {
        "command": f"/{command.name}",
        "description": command.description,
        **({"usage_hint": hint} if hint else {}),
        **({} if url is None else {"url": url}),
        # What people type is a question for models: names serve it better than ids. Who is to be
        # forgotten, or may ask, has to be certain.
        "should_escape": command in (CONFIG, FORGET),
    }
