"""Slack, checked before the bot runs: tokens, scopes, how events arrive, channels.

No socket is opened: Slack would deliver the running bot's events to it.
Sources: https://docs.slack.dev/reference/methods/auth.test,
https://docs.slack.dev/reference/methods/users.conversations
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import re
from collections.abc import Callable

from bot.checks.check import Advice, Check, Outcome, needs, unanswered, wrong
from bot.checks.machine import port
from bot.config.configuration import Configuration
from bot.errors import Malformed, NotAllowed, Problem, Revoked, VenueError, Weight
from bot.slack.client import (
    OPTIONAL,
    REQUIRED,
    THREADS,
    Installation,
    Introduction,
    Json,
    granted,
    introduced,
    sending_client,
)
from bot.view.message import escaped_line
from bot.view.wording import slack
from bot.view.wording.figures import count
from bot.view.wording.slack import NO_ANSWER

TOKEN, SCOPES, CHANNELS = "Slack token", "Slack scopes", "Slack channels"
EVENTS = "Slack events"
PAGE = 200
_SIGNING_SECRET = re.compile(r"[0-9A-Za-z]{32}")
_APP = "api.slack.com/apps > your app"
_BOT_TOKEN = f"{_APP} > OAuth & Permissions > copy Bot User OAuth Token"
_CHANNELS = {"channels:read": "public_channel", "groups:read": "private_channel"}


class SlackChecks:
    """Checks of one bot in one workspace; `on_date` hears the time that Slack says.

    Without an app-level token, events come by HTTP.
    """

    def __init__(self, configuration: Configuration, on_date: Callable[[str], None]) -> None:
        settings = configuration.settings
        tokens = (settings.slack_bot_token, settings.slack_app_token, settings.slack_signing_secret)
        self._bot_token, self._app_token, self._signing_secret = (
            token.get_secret_value() if token else "" for token in tokens
        )
        self._configuration = configuration
        self._allowed = configuration.operations.access.allow
        self._on_date = on_date
        self._client = sending_client(self._bot_token, settings.slack_api_url, Installation())
        self._bot = Introduction({}, frozenset())
        self._is_there = True

    def checks(self) -> list[Check]:
        return [
            Check(TOKEN, self._token),
            Check(SCOPES, self._scopes, needs=(TOKEN,)),
            Check(EVENTS, self._socket if self._app_token else self._http, after=(TOKEN,)),
            Check(CHANNELS, self._channels, needs=(TOKEN,)),
        ]

    async def _token(self) -> Outcome:
        where = "SLACK_BOT_TOKEN"
        if advice := bot_token_advice(self._bot_token):
            return wrong(where, *advice)
        try:
            self._bot = await introduced(self._client)
        except VenueError as error:
            refused = Problem(
                where,
                f"Slack refuses the token: {error}",
                f"{_APP} > OAuth & Permissions > Reinstall to Workspace, then copy Bot User OAuth Token "
                "into SLACK_BOT_TOKEN",
            )
            finding = refused if _is_refusal(error) else _trouble(error)
            self._is_there = finding.where == where
            return Outcome(findings=(finding,))
        self._on_date(self._bot.date)
        me = self._bot.me
        workspaces, team = self._allowed.workspaces, str(me.get("team_id"))
        if any(not one.isdecimal() for one in workspaces) and team not in workspaces:
            return wrong(
                "[access.allow] in council.toml",
                f"its list of workspaces leaves out {team}, to which SLACK_BOT_TOKEN belongs: nobody "
                "there may ask",
                f'Add "{team}", or set SLACK_BOT_TOKEN to another workspace\'s',
            )
        name, bot = (escaped_line(str(me.get(each))) for each in ("team", "user"))
        return Outcome(f"accepted; @{bot} in {name}")

    async def _scopes(self) -> Outcome:
        scopes, where = self._bot.scopes, "the app's scopes"
        add = (
            f"{_APP} > OAuth & Permissions > Scopes > Bot Token Scopes > add them, then reinstall to "
            "the workspace"
        )
        findings: list[Problem] = []
        weights: dict[Weight, frozenset[str]] = {"error": REQUIRED, "warning": OPTIONAL}
        for weight, wanted in weights.items():
            if missing := sorted(wanted - scopes):
                named = "; ".join(f"{one} (to {slack.SCOPES[one]})" for one in missing)
                findings.append(Problem(where, f"they lack {named}", add, weight))
        unread = THREADS - scopes
        profiles = self._configuration.profiles.values()
        if unread != THREADS and all(one.context != "thread" for one in profiles):
            unused = Problem(
                where,
                "the app may read what people write (channels:history, groups:history), but every "
                'profile has context = "message"',
                'Set context = "thread" in a profile, or paste what `council manifest slack` prints '
                f"under {_APP} > App Manifest and reinstall the app",
                "warning",
            )
            findings.append(unused)
        elif len(unread) == 1:
            [missing] = unread
            kind = "private" if missing == "channels:history" else "public"
            half = Problem(
                where,
                f"threads are read only in {kind} channels: the scope {missing} is missing",
                f"{_APP} > App Manifest > paste what `council manifest slack --threads` prints, then "
                "Install App > Reinstall to Workspace",
                "warning",
            )
            findings.append(half)
        return Outcome("all that the manifest asks for", tuple(findings))

    async def _socket(self) -> Outcome:
        where, token = "SLACK_APP_TOKEN", self._app_token
        if advice := app_token_advice(token):
            return wrong(where, *advice)
        if not self._is_there:
            return needs(TOKEN)
        try:
            await granted(self._client.apps_connections_open(app_token=token))
        except VenueError as error:
            if not _is_refusal(error):
                return Outcome(findings=(_trouble(error),))
            return wrong(
                where,
                f"Slack opens no socket: {error}",
                f"{_APP} > Socket Mode > switch on Enable Socket Mode; Basic Information > App-Level "
                "Tokens > a token with connections:write, copied into SLACK_APP_TOKEN",
            )
        return Outcome("Socket Mode: the app-level token opens a socket")

    async def _http(self) -> Outcome:
        if not _SIGNING_SECRET.fullmatch(self._signing_secret):
            return wrong(
                "SLACK_SIGNING_SECRET",
                "it isn't a signing secret: one has 32 letters and digits",
                f"{_APP} > Basic Information > App Credentials > copy Signing Secret",
            )
        settings = self._configuration.settings
        host, number = settings.slack_http_host, settings.slack_http_port or 0
        listens = await port(self._configuration, "SLACK_HTTP_HOST", host, number)
        note = "HTTP mode; whether Slack reaches its public https address can't be seen from here"
        return listens if listens.findings else Outcome(note)

    async def _channels(self) -> Outcome:
        kinds = [kind for scope, kind in _CHANNELS.items() if scope in self._bot.scopes]
        if not kinds:
            note = "not checked: that takes the scopes channels:read and groups:read"
            return Outcome(note, skipped=True)
        try:
            listed = await granted(
                self._client.users_conversations(
                    types=",".join(kinds), exclude_archived=True, limit=PAGE
                )
            )
        except VenueError as error:
            return Outcome(findings=(_trouble(error),))
        number = len(listed["channels"])
        # In a kind of channel that can't be listed, it may be in some.
        if not number and len(kinds) == len(_CHANNELS):
            return wrong(
                "the bot",
                "it is in no channel, so nobody can mention it",
                "Type /invite and the bot's name in a channel",
                "warning",
            )
        page: Json = listed.get("response_metadata") or {}
        more = len(kinds) < len(_CHANNELS) or bool(page.get("next_cursor"))
        inside = {str(channel["id"]) for channel in listed["channels"]}
        outside = sorted(
            one for one in self._allowed.channels - inside if not one.isdecimal() and not more
        )
        findings = (
            Problem(
                one,
                "[access.allow] lets people ask in this channel, but the bot isn't in it",
                "Type /invite and the bot's name there, or correct the id in council.toml",
                "warning",
            )
            for one in outside
        )
        note = f"in {'at least ' if more else ''}{count(number, 'channel')}"
        return Outcome(note, tuple(findings))


def _trouble(error: VenueError) -> Problem:
    why = None if str(error) == NO_ANSWER else str(error)
    return unanswered("Slack", why, "SLACK_API_URL", "slack-status.com")


def bot_token_advice(token: str) -> Advice | None:
    if token.startswith("xapp-"):
        return Advice(
            "it is an app-level token (xapp-), which belongs in SLACK_APP_TOKEN",
            f"{_BOT_TOKEN} (xoxb-) into SLACK_BOT_TOKEN",
        )
    if token.startswith("xoxb-"):
        return None
    return Advice("it isn't a bot token: those begin with xoxb-", _BOT_TOKEN)


def app_token_advice(token: str) -> Advice | None:
    if token.startswith("xapp-"):
        return None
    return Advice(
        "it isn't an app-level token: those begin with xapp-",
        f"{_APP} > Basic Information > App-Level Tokens > Generate Token and Scopes, with "
        "connections:write",
    )


def _is_refusal(error: VenueError) -> bool:
    return isinstance(error, Revoked | NotAllowed | Malformed)
