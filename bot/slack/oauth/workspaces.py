"""Slack, in every workspace that installs the app: one HTTP server, and a bot for each workspace.

A workspace's bot is opened when the app is installed there, and at every start. What Slack refuses in
one workspace ends the work there alone. Once opened, a bot stays until the process ends: where the app
was removed it has no token, so runs in progress end untold; where it is installed again it gets the new
one, which they use from then on.
"""

# pyright: reportUnknownMemberType=false
# slack-bolt annotates its dictionaries and keyword arguments without types.

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Self

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import NotAllowed, Revoked, VenueError
from bot.http_server import RequestRefused, Routes, serving
from bot.past.lookup import Lookup
from bot.service.acknowledgements import LOOKUP_SECONDS
from bot.service.admission.notices import Notice
from bot.service.delivery.outbox import Outbox, Patience
from bot.service.dispatcher import Dispatcher
from bot.service.metrics import Metrics
from bot.slack.bot import SlackAccess, SlackBot, Timing
from bot.slack.client import SLACK, Json
from bot.slack.incoming import installed_in
from bot.slack.listeners import quiet_logger
from bot.slack.manifest import INSTALL, PATH, REDIRECT
from bot.slack.oauth.flow import InstallFlow, SlackApp
from bot.slack.oauth.installations import Installations, Installed
from bot.slack.oauth.pages import HEADERS
from bot.slack.receiver import UNREADABLE, bolt_request, receiver
from bot.view.wording.slack import REVOKED
from storage.errors import DatabaseError
from storage.journal.retractions import Retraction

log = structlog.get_logger()

AT_ONCE = 8
"""How many workspaces are opened together at the start."""
START_SECONDS = 20.0
"""How long the start waits for workspaces to be opened; the others are opened later."""
FIRST_SECONDS, LONGEST_SECONDS = 5.0, 15 * 60.0
"""How long to wait before a workspace that couldn't be opened is tried again; it doubles."""
JUST_INSTALLED = 600.0
"""How many seconds after an installation the news of an earlier removal may still arrive: Slack
repeats an event for six minutes, and its clock may differ from ours by five."""
REMOVED = frozenset({"account_inactive", "token_revoked"})
"""Slack's codes for a workspace that has removed the app; others may pass."""


@dataclass(slots=True)
class _Place:
    """One workspace: its bot, and who looks after it. `is_open` says that it takes events."""

    bot: SlackBot
    installed: Installed | None
    is_entered: bool = False
    is_open: bool = False
    keeper: asyncio.Task[None] | None = None
    tried: asyncio.Event = field(default_factory=asyncio.Event)


class SlackWorkspaces:
    """The app in all workspaces that have installed it; it listens inside `async with`.

    Conversations of a workspace that removes it are to be deleted after `removal_days`, which
    `due` tells. `api_url` moves the Web API. Entering raises `DatabaseError` and `OSError`.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        lookup: Lookup,
        installations: Installations,
        *,
        app: SlackApp,
        removal_days: int,
        http_host: str = "127.0.0.1",
        http_port: int,
        api_url: str | None = None,
        patience: Patience | None = None,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._dispatcher = dispatcher
        self._lookup = lookup
        self._installations = installations
        self._slack_app = app
        self._removal = timedelta(days=removal_days)
        self._host = http_host
        self._port = http_port
        self._api_url = api_url
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._outbox = Outbox("slack", metrics=metrics, patience=patience, clock=clock, sleep=sleep)
        self._places: dict[str, _Place] = {}
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._few = asyncio.Semaphore(AT_ONCE)
        self._strangers: set[str] = set()
        self._open = AsyncExitStack()

    @property
    def open_workspaces(self) -> list[str]:
        """The ids of the workspaces whose events are taken."""
        return sorted(team for team, place in self._places.items() if place.is_open)

    @property
    def waiting(self) -> list[str]:
        """The ids of the workspaces that have installed the app and can't be served yet."""
        places = self._places.items()
        return sorted(team for team, place in places if place.installed and not place.is_open)

    async def is_connected(self) -> bool:
        """Return whether anything can be done where the app is installed."""
        return bool(self.open_workspaces) or not self.waiting

    async def due(self) -> list[str]:
        """Return the workspaces whose conversations are to be deleted. Raises `DatabaseError`."""
        return await self._installations.removed(self._removal)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._outbox)
            client = AsyncWebClient(base_url=self._api_url or SLACK, retry_handlers=[])
            self._flow = InstallFlow(
                self._slack_app,
                self._installations,
                client,
                serves=self._serves,
                install=self._install,
                days=self._removal.days,
                now=self._now,
            )
            self._unknown = self._app_for_others()
            stack.push_async_callback(self._close)
            for installed in await self._installations.all():
                self._keep(installed)
            await stack.enter_async_context(
                serving(self._routes(), self._host, self._port, drain_seconds=LOOKUP_SECONDS)
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(START_SECONDS):
                    for place in [*self._places.values()]:
                        await place.tried.wait()
            if warnings := self._dispatcher.warnings:
                warnings.open("slack", self._notify)
                stack.callback(warnings.close, "slack")
            self._dispatcher.retracting.open("slack", self._retract)
            stack.push_async_callback(self._dispatcher.retracting.close, "slack")
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def _close(self) -> None:
        keepers = [place.keeper for place in self._places.values() if place.keeper]
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        for place in self._places.values():
            if place.is_entered:
                await place.bot.__aexit__(None, None, None)

    # -- what arrives

    def _routes(self) -> Routes:
        return {
            ("POST", PATH): receiver(self._slack_app.signing_secret, self._on_event),
            ("GET", INSTALL): self._on_install,
            ("GET", REDIRECT): self._on_redirect,
        }

    async def _on_install(self, request: web.BaseRequest) -> web.Response:
        return await _page(await self._flow.handle_installation(await bolt_request(request)))

    async def _on_redirect(self, request: web.BaseRequest) -> web.Response:
        return await _page(await self._flow.handle_callback(await bolt_request(request)))

    async def _on_event(self, received: AsyncBoltRequest) -> BoltResponse:
        """Pass a request on to the bot it is for."""
        open_ones = {place.bot.user: team for team, place in self._places.items() if place.is_open}
        try:
            team = installed_in(received.body, open_ones)
        except UNREADABLE as error:
            raise RequestRefused(HTTPStatus.BAD_REQUEST, "unreadable") from error
        if team is None:
            return await self._unknown.async_dispatch(received)
        return await self._places[team].bot.answer(received)

    def _app_for_others(self) -> AsyncApp:
        """Return what verifies and answers everything that is for no open workspace."""

        async def authorize() -> AuthorizeResult:
            return AuthorizeResult(enterprise_id=None, team_id=None, bot_token="")

        app = AsyncApp(
            name="council",
            logger=quiet_logger(),
            client=AsyncWebClient(base_url=self._api_url or SLACK),
            signing_secret=self._slack_app.signing_secret,
            authorize=authorize,
        )
        app.use(self._on_other)
        return app

    async def _on_other(self, body: Json) -> BoltResponse:
        """Have Slack repeat what is for a workspace that can't be served yet; acknowledge the rest."""
        waiting = {place.installed.user: team for team, place in self._places.items() if place.installed}
        if installed_in(body, waiting):
            return BoltResponse(status=HTTPStatus.SERVICE_UNAVAILABLE)
        team: Json = body.get("team") or {}
        stranger = str(body.get("team_id") or team.get("id"))
        if stranger not in self._strangers:
            self._strangers.add(stranger)
            log.warning("slack_installation_unknown", workspace=stranger)
        return BoltResponse(status=HTTPStatus.OK)

    async def _notify(self, notice: Notice) -> None:
        place = self._places.get(notice.workspace or "")
        if place is None or not place.is_open:
            raise Revoked(REVOKED["account_inactive"])
        await place.bot.notify(notice)

    async def _retract(self, one: Retraction) -> None:
        place = self._places.get(one.workspace or "")
        if place is None or not place.is_open:
            raise NotAllowed(REVOKED["account_inactive"])
        await place.bot.retract(one)

    # -- who is served

    def _serves(self, team: str) -> bool:
        access = self._dispatcher.channels.operator.access
        allowed, denied = access.allow.workspaces, access.deny.workspaces
        return team not in denied and (not allowed or team in allowed)

    async def _install(self, installation: Installation) -> None:
        """Keep what a workspace granted, and serve it. Raises `DatabaseError`."""
        team = str(installation.team_id)
        async with self._changing[team]:
            await self._installations.save(installation)
            found = await self._installations.find(team)
            if found is None:  # it was removed in the same moment
                return
            log.info("slack_installed", workspace=team)
            place = self._keep(found)
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOKUP_SECONDS):
                await place.tried.wait()

    def _keep(self, installed: Installed) -> _Place:
        """Look after a workspace with this token from now on."""
        place = self._places.get(installed.team)
        if place is None:
            place = self._places[installed.team] = _Place(self._bot(installed), installed)
        elif place.keeper:
            place.keeper.cancel()
        place.installed = installed
        place.bot.use(installed.token)
        place.tried = asyncio.Event()
        place.keeper = asyncio.create_task(self._look_after(place, installed, place.tried))
        return place

    def _bot(self, installed: Installed) -> SlackBot:
        async def removed(code: str, event: Json) -> None:
            await self._on_removed(installed.team, code, event)

        return SlackBot(
            self._dispatcher,
            self._lookup,
            SlackAccess(
                bot_token=installed.token,
                signing_secret=self._slack_app.signing_secret,
                api_url=self._api_url,
            ),
            outbox=self._outbox,
            shares_outbox=True,
            removed=removed,
            timing=Timing(clock=self._clock, now=self._now, sleep=self._sleep),
        )

    async def _look_after(self, place: _Place, installed: Installed, tried: asyncio.Event) -> None:
        """Open a workspace, and again whenever that fails; end when the app is removed there."""
        wait = FIRST_SECONDS
        while True:
            try:
                async with self._few:
                    await self._enter(place)
                wait = FIRST_SECONDS
                tried.set()
                log.info("slack_workspace_opened", workspace=installed.team)
                await place.bot.until_lost()
            except VenueError as error:
                log.warning(
                    "slack_workspace_not_opened", workspace=installed.team, reason=error, again_in=wait
                )
            except Exception:
                log.exception("slack_workspace_not_opened", workspace=installed.team, again_in=wait)
            tried.set()
            if code := place.bot.lost_by:
                place.is_open = False
                log.warning("slack_access_lost", workspace=installed.team, code=code)
                if code in REMOVED:
                    break
            await self._sleep(wait)
            if place.installed is installed and place.bot.lost_by not in {"", *REMOVED}:
                place.bot.use(installed.token)  # runs in progress may have been refused until now
            wait = min(wait * 2, LONGEST_SECONDS)
        while not await self._remove(place, installed):
            await self._sleep(wait)
            wait = min(wait * 2, LONGEST_SECONDS)

    async def _enter(self, place: _Place) -> None:
        if place.is_entered:
            await place.bot.reconnect()
        else:
            await place.bot.__aenter__()
            place.is_entered = True
        place.is_open = True

    async def _on_removed(self, team: str, code: str, event: Json) -> None:
        """Delete a workspace's tokens, unless the app was installed again meanwhile."""
        place = self._places[team]
        installed, at = place.installed, float(event.get("event_time") or 0)
        if installed is None:
            return
        if installed.at > at - JUST_INSTALLED and await self._is_accepted(place):
            log.info("slack_removal_outdated", workspace=team, code=code)
            return
        if not await self._remove(place, installed) or place.installed is None:
            place.bot.lose(code)  # what failed, its keeper tries again

    async def _remove(self, place: _Place, installed: Installed) -> bool:
        """Delete a workspace's tokens, unless it has others by now; return whether that is done."""
        team = installed.team
        async with self._changing[team]:
            if place.installed is not installed:
                return True
            place.is_open = False
            place.bot.disconnect()
            try:
                await self._installations.remove(team)
            except DatabaseError:
                log.exception("slack_tokens_not_deleted", workspace=team)
                return False
            place.installed = None
        log.warning("slack_removed", workspace=team, days=self._removal.days)
        return True

    async def _is_accepted(self, place: _Place) -> bool:
        """Return whether Slack still accepts the token of a workspace."""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                await place.bot.check()
        except (TimeoutError, VenueError):
            return False
        return True


async def _page(answer: BoltResponse) -> web.Response:
    shown = await to_aiohttp_response(answer)
    shown.charset = "utf-8"
    shown.headers.update(HEADERS)
    return shown
