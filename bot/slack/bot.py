"""Slack: its clients, and how its events arrive: by Socket Mode or, verified first, by HTTP.

Bolt parses a request before it verifies it, and raises where a header isn't what it expects, but
strangers can send anything. Source: https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

# pyright: reportUnknownMemberType=false
# slack-bolt and slack-sdk annotate their dictionaries and keyword arguments without types.

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, cast

import aiohttp
import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from bot.actions import Actions
from bot.errors import VenueError
from bot.http_server import Handler, RequestRefusal, serving
from bot.past.lookup import Lookup
from bot.service.delivery.outbox import Outbox
from bot.service.delivery.posts import notify
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Dispatcher
from bot.service.waits import LOOKUP_SECONDS
from bot.slack.chat import SlackChat
from bot.slack.client import (
    ASK_AGAIN_SECONDS,
    PATH,
    REQUIRED,
    Installation,
    Json,
    asking_client,
    granted,
    introduced,
    sending_client,
)
from bot.slack.incoming import DiscussionReader, Reader
from bot.slack.listeners import SlackListeners, SlackQuestions
from bot.slack.replies import SlackPlaces, linked
from bot.view.wording.slack import REVOKED
from storage.journal.rows import RunRow

log = structlog.get_logger()

UNREADABLE = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What Bolt raises over a body that isn't one of Slack's."""
_STAMP = re.compile("[0-9]{1,12}")
_SIGNATURE = re.compile("v0=[0-9a-f]{64}")

Answer = Callable[[AsyncBoltRequest], Awaitable[BoltResponse]]


def receiver(signing_secret: str, answer: Answer) -> Handler:
    """Return what passes Slack's requests on; it raises `Refused` for others."""
    verifier = SignatureVerifier(signing_secret)

    async def receive(request: web.BaseRequest) -> web.Response:
        body = await request.read()
        # Slack looks at the certificate now and then, without a signature.
        if b"ssl_check=1" in body.split(b"&"):
            return web.Response()
        if cause := _distrusted(verifier, request, body):
            raise RequestRefusal(HTTPStatus.UNAUTHORIZED, cause)
        try:
            # Bolt's adapter reads only what every request of aiohttp's has.
            received = await to_bolt_request(cast("web.Request", request))
        except UNREADABLE as error:
            raise RequestRefusal(HTTPStatus.BAD_REQUEST, "unreadable") from error
        return await to_aiohttp_response(await answer(received))

    return receive


def _distrusted(verifier: SignatureVerifier, request: web.BaseRequest, body: bytes) -> str | None:
    """Return why a request may not be Slack's; `None` if it is."""
    stamp = request.headers.get("X-Slack-Request-Timestamp", "")
    signature = request.headers.get("X-Slack-Signature", "")
    if not _STAMP.fullmatch(stamp):
        return "timestamp"
    if not _SIGNATURE.fullmatch(signature):
        return "signature"
    try:
        return None if verifier.is_valid(body, stamp, signature) else "signature"
    except UnicodeDecodeError:
        return "not_text"


CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAccess:
    """How the workspace is reached, and how its events arrive.

    With `app_token`, by a socket to Slack; with `http_port`, by HTTP on `http_host`. Without a socket,
    each request must carry a signature by `signing_secret`. `api_url` moves the Web API, and with it the
    socket and the files.
    """

    bot_token: str
    app_token: str | None = None
    signing_secret: str | None = None
    http_host: str = "127.0.0.1"
    http_port: int | None = None
    api_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What time it is: `clock` for durations, `now` in seconds since 1970; and how to wait."""

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


REAL_TIME = Timing()


class SlackBot:
    """The bot in its workspace; it listens inside `async with`. Entering raises `VenueError`.

    One that doesn't `listen` only shows runs.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        lookup: Lookup,
        access: SlackAccess,
        *,
        outbox: Outbox | None = None,
        listens: bool = True,
        timing: Timing = REAL_TIME,
    ) -> None:
        by_http = access.signing_secret and access.http_port
        if not access.app_token and not by_http:
            raise ValueError("Slack needs app_token, or signing_secret and http_port")
        self._listens = listens
        self._dispatcher = dispatcher
        self._lookup = lookup
        self._access = access
        self._timing = timing
        self._installation = Installation(timing.clock)
        token, api_url = access.bot_token, access.api_url
        self._client = asking_client(token, api_url, self._installation)
        self._sender = sending_client(token, api_url, self._installation)
        self._outbox = outbox or Outbox("slack", clock=timing.clock, sleep=timing.sleep)
        self._socket: SocketModeClient | None = None
        self._open = AsyncExitStack()

    async def until_lost(self) -> str:
        """Wait until Slack has revoked the bot's access for good; return a sentence about it."""
        installation = self._installation
        while not installation.code:
            await installation.doubted.wait()
            if not installation.code:
                await self._timing.sleep(ASK_AGAIN_SECONDS)
                with suppress(VenueError):
                    await introduced(self._client)
        return (
            f"Slack no longer accepts the bot, because {REVOKED[installation.code]}: install the app to "
            "the workspace again, set its tokens, and start the council."
        )

    async def is_connected(self) -> bool:
        return self._socket is None or await self._socket.is_connected()

    def venue_of(self, run: RunRow) -> Venue | None:
        """Return where a run is shown; `None` if it is another workspace's."""
        return self._locations.venue_of(run)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
            session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
            self._client.session = self._sender.session = session
            await stack.enter_async_context(self._outbox)
            await self._introduce(session)
            if operators := self._dispatcher.operators:  # runs that are resumed may have news for admins
                operators.sends["slack"] = partial(notify, self._chat)
                stack.callback(operators.sends.pop, "slack", None)
            interrupted = await self._dispatcher.tasks.undelivered("slack")
            if self._listens and self._access.app_token:
                await self._open_socket(self._access.app_token, stack)
            elif self._listens and self._access.http_port:
                await self._serve(self._access.http_port, stack)
            await self._dispatcher.tasks.resume(interrupted, self._locations.venue_of)
            self._dispatcher.open("slack", self._chat.delete, self.venue_of)
            stack.push_async_callback(self._dispatcher.work.close, "slack")
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.aclose()

    async def _introduce(self, session: aiohttp.ClientSession) -> None:
        """Learn who the bot is here."""
        bot = await introduced(self._client)
        team = str(bot.me["team_id"])
        if missing := REQUIRED - bot.scopes:
            log.warning("slack_scopes_missing", scopes=sorted(missing), workspace=team)
        reader = Reader(self._client, session, bot.scopes, team, clock=self._timing.clock)
        self._chat = SlackChat(
            client=self._sender,
            asking=self._client,
            session=session,
            outbox=self._outbox,
            url=str(bot.me["url"]),
            team=team,
            read=DiscussionReader(self._sender, self._outbox, reader, bot.me).read,
            fetch=reader.fetch,
            clock=self._timing.clock,
            now=self._timing.now,
            sleep=self._timing.sleep,
        )
        self._me = str(bot.me["user_id"])
        self._locations = SlackPlaces(self._dispatcher, self._client, self._chat, reader)
        actions = Actions(self._dispatcher, self._lookup, linked(self._chat))
        questions = SlackQuestions(actions, self._locations, self._me)
        listeners = SlackListeners(actions, self._locations, questions, bot.me, now=self._timing.now)
        self._app = listeners.app(self._access.signing_secret or "")
        self._app.event("app_uninstalled")(self._on_uninstalled)
        self._app.event("tokens_revoked")(self._on_revoked)

    async def _open_socket(self, token: str, stack: AsyncExitStack) -> None:
        socket = AsyncSocketModeHandler(self._app, token, web_client=self._client)
        stack.push_async_callback(_close, socket)
        # Requested here, so that a wrong token ends the start; the SDK would retry forever.
        opened = await granted(self._client.apps_connections_open(app_token=token))
        socket.client.wss_uri = opened["url"]
        await socket.connect_async()
        self._socket = socket.client

    async def _serve(self, port: int, stack: AsyncExitStack) -> None:
        routes = {("POST", PATH): receiver(self._access.signing_secret or "", self._app.async_dispatch)}
        await stack.enter_async_context(
            serving(routes, self._access.http_host, port, drain_seconds=LOOKUP_SECONDS)
        )

    async def _on_uninstalled(self) -> None:
        self._installation.lose("account_inactive")

    async def _on_revoked(self, event: Json) -> None:
        if self._me in (event.get("tokens") or {}).get("bot", ()):
            self._installation.lose("token_revoked")


async def _close(socket: AsyncSocketModeHandler) -> None:
    await socket.close_async()
    client = socket.client
    tasks: list[asyncio.Future[Any] | None] = [
        client.message_processor,
        client.current_session_monitor,
        client.message_receiver,
    ]
    await asyncio.gather(*filter(None, tasks), return_exceptions=True)
