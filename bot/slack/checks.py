"""Slack, checked before the bot runs: tokens, scopes, how events arrive, channels.

No socket is opened: Slack would deliver the running bot's events to it.
Sources: https://docs.slack.dev/reference/methods/auth.test,
https://docs.slack.dev/reference/methods/users.conversations
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import re
from collections.abc import Awaitable, Callable, Iterable

from bot.checks.check import Check, Finding, Outcome, found, wrong
from bot.errors import Malformed, NotAllowed, Revoked, VenueError
from bot.service.admission.access import Rules
from bot.slack.client import Installation, Introduction, Json, granted, introduced, sending_client
from bot.slack.manifest import OPTIONAL, REQUIRED, THREADS
from bot.view.message import escaped_line
from bot.view.wording.doctor import slack as wording
from bot.view.wording.doctor.doctor import Advice, needs
from bot.view.wording.platforms import slack
from bot.view.wording.platforms.slack_errors import NO_ANSWER

TOKEN, SCOPES, CHANNELS = "Slack token", "Slack scopes", "Slack channels"
EVENTS = "Slack events"
PAGE = 200
_SIGNING_SECRET = re.compile(r"[0-9A-Za-z]{32}")
_CHANNELS = {"channels:read": "public_channel", "groups:read": "private_channel"}


class SlackChecks:
    """Checks of one bot in one workspace.

    With `app_token` events come by Socket Mode; without, `look_at_port` looks at the port that HTTP
    mode listens on. `reads_threads` says whether any profile reads the thread it is asked in, `allowed`
    where people may ask, and `on_date` hears the time that Slack says.
    """

    def __init__(
        self,
        bot_token: str,
        *,
        app_token: str | None,
        signing_secret: str | None,
        look_at_port: Callable[[], Awaitable[Outcome]],
        api_url: str | None,
        reads_threads: bool,
        allowed: Rules,
        on_date: Callable[[str], None],
    ) -> None:
        self._bot_token = bot_token
        self._app_token = app_token
        self._signing_secret = signing_secret or ""
        self._look_at_port = look_at_port
        self._reads_threads = reads_threads
        self._allowed = allowed
        self._on_date = on_date
        self._client = sending_client(bot_token, api_url, Installation())
        self._bot = Introduction({}, frozenset())
        self._is_there = True

    def checks(self) -> list[Check]:
        """Return the checks."""
        return [
            Check(TOKEN, self._token),
            Check(SCOPES, self._scopes, needs=(TOKEN,)),
            Check(EVENTS, self._socket if self._app_token else self._http, after=(TOKEN,)),
            Check(CHANNELS, self._channels, needs=(TOKEN,)),
        ]

    async def _token(self) -> Outcome:
        where = "SLACK_BOT_TOKEN"
        if advice := bot_token_advice(self._bot_token):
            return wrong(where, advice)
        try:
            self._bot = await introduced(self._client)
        except VenueError as error:
            finding = _refused(where, error, wording.bot_token_refused)
            self._is_there = finding.where == where
            return Outcome(findings=(finding,))
        self._on_date(self._bot.date)
        me = self._bot.me
        workspaces, team = self._allowed.workspaces, str(me.get("team_id"))
        if any(not one.isdecimal() for one in workspaces) and team not in workspaces:
            return wrong("[access.allow] in council.toml", wording.workspace_not_allowed(team))
        names = (escaped_line(str(me.get(name))) for name in ("team", "user"))
        return Outcome(wording.workspace(*names))

    async def _scopes(self) -> Outcome:
        granted_ones, where = self._bot.scopes, wording.APP_SCOPES
        findings = lacking(granted_ones, where, wording.scopes_missing)
        unread = THREADS - granted_ones
        if unread != THREADS and not self._reads_threads:
            findings.append(found(where, wording.THREADS_UNUSED, "warning"))
        elif len(unread) == 1:
            findings.append(found(where, wording.HALF_THREADS[min(unread)], "warning"))
        return Outcome(wording.SCOPES_WELL, tuple(findings))

    async def _socket(self) -> Outcome:
        where, token = "SLACK_APP_TOKEN", self._app_token or ""
        if advice := app_token_advice(token):
            return wrong(where, advice)
        if not self._is_there:
            return Outcome(needs(TOKEN), skipped=True)
        try:
            await granted(self._client.apps_connections_open(app_token=token))
        except VenueError as error:
            return Outcome(findings=(_refused(where, error, wording.app_token_refused),))
        return Outcome(wording.SLACK_SOCKET_WELL)

    async def _http(self) -> Outcome:
        return await by_http(self._signing_secret, self._look_at_port)

    async def _channels(self) -> Outcome:
        kinds = [kind for scope, kind in _CHANNELS.items() if scope in self._bot.scopes]
        if not kinds:
            return Outcome(wording.CHANNELS_UNSEEN, skipped=True)
        try:
            listed = await granted(
                self._client.users_conversations(
                    types=",".join(kinds), exclude_archived=True, limit=PAGE
                )
            )
        except VenueError as error:
            return wrong("Slack", wording.slack_trouble(str(error)))
        number = len(listed["channels"])
        # In a kind of channel that can't be listed, it may be in some.
        if not number and len(kinds) == len(_CHANNELS):
            return wrong("the bot", wording.NO_CHANNEL, "warning")
        page: Json = listed.get("response_metadata") or {}
        more = len(kinds) < len(_CHANNELS) or bool(page.get("next_cursor"))
        inside = {str(channel["id"]) for channel in listed["channels"]}
        outside = sorted(
            one for one in self._allowed.channels - inside if not one.isdecimal() and not more
        )
        findings = (found(one, wording.NOT_IN_ALLOWED_CHANNEL, "warning") for one in outside)
        return Outcome(wording.in_channels(number, more=more), tuple(findings))


def lacking(
    scopes: frozenset[str], where: str, advice: Callable[[Iterable[tuple[str, str]]], Advice]
) -> list[Finding]:
    """Return what is wrong with the scopes that were granted somewhere."""
    findings: list[Finding] = []
    if required := [(one, slack.SCOPES[one]) for one in sorted(REQUIRED - scopes)]:
        findings.append(found(where, advice(required)))
    if optional := [(one, slack.SCOPES[one]) for one in sorted(OPTIONAL - scopes)]:
        findings.append(found(where, advice(optional), "warning"))
    return findings


async def by_http(signing_secret: str, look_at_port: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Check what HTTP mode needs on this machine."""
    if not _SIGNING_SECRET.fullmatch(signing_secret):
        return wrong("SLACK_SIGNING_SECRET", wording.SIGNING_SECRET_SHAPE)
    listens = await look_at_port()
    return listens if listens.findings else Outcome(wording.SLACK_HTTP_WELL)


def trouble(error: VenueError) -> Finding:
    """Return what is wrong if Slack doesn't answer as asked."""
    if str(error) == NO_ANSWER:
        return found("Slack", wording.SLACK_UNREACHABLE)
    return found("Slack", wording.slack_trouble(str(error)))


def bot_token_advice(token: str) -> Advice | None:
    """Return what looks wrong with a bot token."""
    if token.startswith("xapp-"):
        return wording.TOKENS_SWAPPED
    return None if token.startswith("xoxb-") else wording.BOT_TOKEN_SHAPE


def app_token_advice(token: str) -> Advice | None:
    """Return what looks wrong with an app-level token."""
    return None if token.startswith("xapp-") else wording.APP_TOKEN_SHAPE


def _refused(where: str, error: VenueError, refused: Callable[[str], Advice]) -> Finding:
    if isinstance(error, Revoked | NotAllowed | Malformed):
        return found(where, refused(str(error)))
    return trouble(error)
