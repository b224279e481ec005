"""Slack in several workspaces, checked before the bot runs: the app, the key, and each installation.

Nothing is changed: a code that nobody was given is exchanged, to see whether Slack knows the app.
Source: https://docs.slack.dev/reference/methods/oauth.v2.access
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.checks.check import Check, Finding, Outcome, wrong
from bot.errors import ConfigurationError, Revoked, VenueError
from bot.service.admission.access import Access
from bot.slack.checks import by_http, lacking, trouble
from bot.slack.client import SLACK, Installation, granted, introduced, sending_client
from bot.slack.errors import code_of
from bot.slack.manifest import REDIRECT
from bot.slack.oauth.flow import SlackApp
from bot.slack.oauth.installations import Installed, read_installations
from bot.view.message import escaped_line
from bot.view.wording.figures import count
from storage.errors import DatabaseError

APP, EVENTS, INSTALLS, WORKSPACES = "Slack app", "Slack events", "Slack installs", "Slack workspaces"
_CREDENTIALS = "api.slack.com/apps > your app > Basic Information > App Credentials"
_REDIRECT = "api.slack.com/apps > your app > OAuth & Permissions > Redirect URLs"
_ALLOWED = "[access.allow] in council.toml"
_CODES = {
    "bad_client_secret": Finding(
        "SLACK_CLIENT_SECRET", "it isn't the app's", f"{_CREDENTIALS} > copy Client Secret"
    ),
    "invalid_client_id": Finding(
        "SLACK_CLIENT_ID", "Slack knows no such app", f"{_CREDENTIALS} > copy Client ID"
    ),
    "bad_redirect_uri": Finding(
        "SLACK_REDIRECT_URI",
        "it isn't one of the app's redirect URLs",
        f"{_REDIRECT} > add it, or unset it if there is only one",
    ),
}
AT_ONCE = 8


class WorkspaceChecks:
    """Checks of one app in all workspaces; `keys` decrypt their tokens, which are in `folder`.

    `look_at_port` looks at the port that is listened on, and `on_date` hears the time that Slack says.
    """

    def __init__(
        self,
        app: SlackApp,
        folder: Path,
        keys: Sequence[str],
        *,
        look_at_port: Callable[[], Awaitable[Outcome]],
        api_url: str | None,
        access: Access,
        on_date: Callable[[str], None],
    ) -> None:
        self._app = app
        self._folder = folder
        self._keys = keys
        self._look_at_port = look_at_port
        self._api_url = api_url
        self._access = access
        self._on_date = on_date
        self._installed: list[Installed] = []
        self._few = asyncio.Semaphore(AT_ONCE)

    def checks(self) -> list[Check]:
        """Return the checks."""
        return [
            Check(APP, self._known),
            Check(EVENTS, lambda: by_http(self._app.signing_secret, self._look_at_port)),
            Check(INSTALLS, self._installs),
            Check(WORKSPACES, self._workspaces, needs=(APP, INSTALLS)),
        ]

    async def _known(self) -> Outcome:
        uri = self._app.redirect_uri
        if uri and (not uri.startswith("https://") or urlsplit(uri).path != REDIRECT):
            return wrong(
                "SLACK_REDIRECT_URI",
                "Slack can't send people back to the council at this address",
                f"Write it as under {_REDIRECT}, like https://council.example.com/slack/oauth_redirect",
            )
        client = AsyncWebClient(base_url=self._api_url or SLACK, retry_handlers=[])
        who = aiohttp.encode_basic_auth(self._app.client_id, self._app.client_secret)
        given = {"code": "nobody", **({"redirect_uri": uri} if uri else {})}
        try:
            await granted(client.api_call("oauth.v2.access", headers={"Authorization": who}, data=given))
        except VenueError as error:
            code = code_of(cast("Exception", error.__cause__))
            if code in _CODES:
                return Outcome(findings=(_CODES[code],))
            if code != "invalid_code":
                return Outcome(findings=(trouble(error),))
        note = "Slack knows the app; whether it reaches its redirect URL can't be seen from here"
        return Outcome(note)

    async def _installs(self) -> Outcome:
        try:
            self._installed = await read_installations(self._folder, self._app.client_id, self._keys)
        except ConfigurationError as error:
            return Outcome(
                findings=tuple(Finding(one.where, one.what, one.fix) for one in error.problems)
            )
        except DatabaseError as error:
            return wrong(
                str(error.path),
                str(error),
                "Make it readable for this user; if it is damaged, delete it and install the app again "
                "in each workspace",
            )
        allowed = self._access.allow.workspaces
        if not allowed:
            return wrong(
                _ALLOWED,
                "any workspace may install the app, and ask at your expense",
                'List your workspaces\' ids, such as workspaces = ["T0123ABCD"]',
                "warning",
            )
        if all(one.isdecimal() for one in allowed):
            return wrong(
                _ALLOWED,
                "its list of workspaces has only Discord servers, so nobody may install the app or ask "
                "on Slack",
                'Add the ids of your Slack workspaces, such as "T0123ABCD"',
            )
        if not self._installed:
            return Outcome(
                "no workspace has installed the app yet: open /slack/install at its public address"
            )
        return Outcome(f"the key fits; installed in {count(len(self._installed), 'workspace')}")

    async def _workspaces(self) -> Outcome:
        found_ones = await asyncio.gather(*map(self._workspace, self._installed))
        findings = tuple(finding for each in found_ones for finding in each)
        number = len(self._installed)
        note = f"{count(number, 'token')} accepted, with all scopes" if number else "none yet"
        return Outcome(note, findings)

    async def _workspace(self, installed: Installed) -> list[Finding]:
        where = f"{escaped_line(installed.name)} ({installed.team})"
        allowed, denied = self._access.allow.workspaces, self._access.deny.workspaces
        if installed.team in denied or (allowed and installed.team not in allowed):
            closed = Finding(
                where,
                "the app is installed there, but [access] lets nobody ask",
                f'Add "{installed.team}" to the workspaces in [access.allow], or ask the workspace to '
                "remove the app",
                "warning",
            )
            return [closed]
        client = sending_client(installed.token, self._api_url, Installation())
        try:
            async with self._few:
                bot = await introduced(client)
        except Revoked as error:
            again = "Install the app there again from /slack/install"
            return [Finding(where, f"Slack refuses its token: {error}", again)]
        except VenueError as error:
            return [trouble(error)]
        self._on_date(bot.date)
        again = "Install the app there again from /slack/install, and leave every permission ticked"
        return lacking(bot.scopes, where, again)
