"""Installing the app by OAuth: the page that leads to Slack, and what happens when Slack leads back.

Bolt checks the browser and the state, which is good once; the rest is here, so that every way in which
it can fail has a page that says what to do. Source: https://docs.slack.dev/authentication/installing-with-oauth
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# slack-bolt and slack-sdk annotate their dictionaries and keyword arguments without types.

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import NoReturn, cast

import aiohttp
import structlog
from slack_bolt.oauth.async_callback_options import (
    AsyncCallbackOptions,
    AsyncFailureArgs,
    AsyncSuccessArgs,
)
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.oauth import AuthorizeUrlGenerator
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import RateLimited, Unreachable, VenueError
from bot.slack.client import Json, granted
from bot.slack.errors import ERRORS, code_of
from bot.slack.listeners import quiet_logger
from bot.slack.manifest import INSTALL, OPTIONAL, REDIRECT, REQUIRED, THREADS
from bot.slack.oauth import pages
from bot.slack.oauth.installations import Installations
from bot.slack.oauth.states import States
from bot.view.wording import slack_install as wording
from bot.view.wording.slack import NO_ANSWER
from storage.errors import DatabaseError

log = structlog.get_logger()

EXCHANGE_SECONDS = 20.0
"""How long Slack may take to give out a token; whoever installs waits for it."""
SCOPES = REQUIRED | OPTIONAL
PAGES = {
    **dict.fromkeys(
        ("bad_client_secret", "bad_redirect_uri", "invalid_client_id", "no_scopes"),
        wording.MISCONFIGURED,
    ),
    **dict.fromkeys(
        ("code_already_used", "invalid_code", "oauth_authorization_url_mismatch"), wording.CODE_REFUSED
    ),
    "cannot_install_an_org_installed_app": wording.ORGANIZATION,
}
"""What whoever installs reads of Slack's codes."""
REASONS = {
    "access_denied": wording.CANCELLED,
    "invalid_browser": wording.STATE_REFUSED,
    "invalid_state": wording.STATE_REFUSED,
    "missing_code": wording.CODE_REFUSED,
}
"""What Bolt and Slack call the reasons for which an attempt ends before a token is given out."""
_TEAM = re.compile("T[A-Z0-9]{1,31}")


class NotInstalled(Exception):
    """The app wasn't installed; the message says why, to whoever tried."""

    def __init__(self, why: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class SlackApp:
    """The Slack app that workspaces install, as its page *Basic Information* shows it.

    `redirect_uri` names one of its redirect URLs, if there are several.
    """

    client_id: str
    client_secret: str
    signing_secret: str
    redirect_uri: str | None = None


class InstallFlow(AsyncOAuthFlow):
    """The two pages of an installation.

    `serves` says whether a workspace, by its id, may install the app, and `install` takes what it was
    granted; it may raise `DatabaseError`. Conversations are deleted `days` after the app is removed.
    """

    def __init__(
        self,
        app: SlackApp,
        installations: Installations,
        client: AsyncWebClient,
        *,
        serves: Callable[[str], bool],
        install: Callable[[Installation], Awaitable[None]],
        days: int,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(
            client=client,
            logger=quiet_logger(),
            settings=AsyncOAuthSettings(
                client_id=app.client_id,
                client_secret=app.client_secret,
                scopes=sorted(SCOPES),
                user_scopes=[],
                redirect_uri=app.redirect_uri,
                install_path=INSTALL,
                redirect_uri_path=REDIRECT,
                installation_store=installations.bolt,
                state_store=States(now),
                callback_options=AsyncCallbackOptions(_succeeded, _failed),
            ),
        )
        self._with_threads = AuthorizeUrlGenerator(
            client_id=app.client_id,
            scopes=sorted(SCOPES | THREADS),
            redirect_uri=app.redirect_uri,
        )
        self._who = aiohttp.encode_basic_auth(app.client_id, app.client_secret)
        self._serves = serves
        self._install = install
        self._days = days
        self._now = now

    async def handle_installation(self, request: AsyncBoltRequest) -> BoltResponse:
        """Return the page that leads to Slack."""
        return await _or_why(super().handle_installation(request))

    async def handle_callback(self, request: AsyncBoltRequest) -> BoltResponse:
        """Finish an installation that Slack's page began; return the page that says how it went."""
        return await _or_why(super().handle_callback(request))

    async def build_authorize_url(self, state: str, request: AsyncBoltRequest) -> str:
        """Return the address of Slack's page; of the request, only a workspace's id gets into it."""
        return self.settings.authorize_url_generator.generate(state, _team_in(request))

    async def build_install_page_html(self, url: str, request: AsyncBoltRequest) -> str:
        """Write the page that leads to Slack."""
        state = url.partition("state=")[2].partition("&")[0]
        return pages.offer(url, self._with_threads.generate(state, _team_in(request)), self._days)

    async def run_installation(self, code: str) -> Installation:
        """Exchange a code for what was granted. Raises `NotInstalled`."""
        exchange = {"code": code}
        if uri := self.settings.redirect_uri:
            exchange["redirect_uri"] = uri
        try:
            async with asyncio.timeout(EXCHANGE_SECONDS):
                body = await granted(
                    # The SDK's own method uses what aiohttp is about to remove.
                    self.client.api_call(
                        "oauth.v2.access", headers={"Authorization": self._who}, data=exchange
                    )
                )
                await self._check(body)
                me = await granted(self.client.auth_test(token=body["access_token"]))
                if me.get("team_id") != body["team"]["id"]:
                    # Its events would be routed to one workspace, and answered with another's token.
                    await self._give_back(body, wording.OTHER_WORKSPACE)
        except TimeoutError as error:
            log.warning("slack_not_installed", reason=Unreachable(NO_ANSWER))
            raise NotInstalled(wording.NO_ANSWER, HTTPStatus.BAD_GATEWAY) from error
        except VenueError as error:
            log.warning("slack_not_installed", reason=error)
            if isinstance(error, Unreachable | RateLimited):
                raise NotInstalled(wording.NO_ANSWER, HTTPStatus.BAD_GATEWAY) from error
            code = code_of(cast("Exception", error.__cause__)) or ""
            raise NotInstalled(PAGES.get(code, wording.UNKNOWN)) from error
        team: Json = body["team"]
        enterprise: Json = body.get("enterprise") or {}
        return Installation(
            app_id=body.get("app_id"),
            enterprise_id=enterprise.get("id"),
            enterprise_name=enterprise.get("name"),
            team_id=team["id"],
            team_name=team.get("name"),
            bot_token=body["access_token"],
            bot_id=me.get("bot_id"),
            bot_user_id=me["user_id"],
            bot_scopes=body.get("scope") or "",
            user_id=str((body.get("authed_user") or {}).get("id")),
            token_type=body.get("token_type"),
            installed_at=self._now(),
        )

    async def _check(self, body: Json) -> None:
        """Revoke a token that can't be used. Raises `NotInstalled`."""
        team = str((body.get("team") or {}).get("id"))
        if body.get("is_enterprise_install"):
            why = wording.ORGANIZATION
        elif not _TEAM.fullmatch(team) or not body.get("access_token"):
            why = wording.UNKNOWN
        elif body.get("refresh_token"):
            why = wording.ROTATING
        elif not self._serves(team):
            why = wording.not_served(team)
        else:
            return
        await self._give_back(body, why)

    async def _give_back(self, body: Json, why: str) -> NoReturn:
        log.warning("slack_install_refused", workspace=str((body.get("team") or {}).get("id")))
        with suppress(*ERRORS):  # the token is nowhere; Slack only shows the app for longer
            await self.client.auth_revoke(token=str(body.get("access_token")))
        raise NotInstalled(why, HTTPStatus.FORBIDDEN)

    async def store_installation(self, request: AsyncBoltRequest, installation: Installation) -> None:
        """Keep what was granted, and begin to serve the workspace."""
        del request  # part of the interface
        await self._install(installation)


async def _or_why(page: Awaitable[BoltResponse]) -> BoltResponse:
    """Return a page, or the one that says why nothing was installed."""
    try:
        return await page
    except NotInstalled as error:
        return _why(str(error), error.status)
    except DatabaseError:
        log.exception("slack_install_not_saved")
        return _why(wording.NOT_SAVED, HTTPStatus.SERVICE_UNAVAILABLE)


async def _succeeded(args: AsyncSuccessArgs) -> BoltResponse:
    done = args.installation
    return _html(pages.installed(str(done.team_name or done.team_id), done.bot_scopes or ()))


async def _failed(args: AsyncFailureArgs) -> BoltResponse:
    # Of what comes in an address, nothing is repeated.
    why = REASONS.get(args.reason, wording.UNKNOWN)
    if why is wording.UNKNOWN:
        log.warning("slack_not_installed", code=args.reason)
    return _why(why, HTTPStatus(args.suggested_status_code))


def _why(why: str, status: HTTPStatus) -> BoltResponse:
    return _html(pages.failed(why, INSTALL), status)


def _html(page: str, status: HTTPStatus = HTTPStatus.OK) -> BoltResponse:
    return BoltResponse(status=status, body=page, headers={"Content-Type": "text/html; charset=utf-8"})


def _team_in(request: AsyncBoltRequest) -> str | None:
    named = (request.query.get("team") or [""])[0]
    return named if _TEAM.fullmatch(named) else None
