"""Installing the app in further workspaces: Slack's page, codes, and the tokens they are exchanged for."""

import base64
import binascii
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.slack_server.rules import Json, Refused
from tests.slack_server.workspace import Team, User, Workspace

CODE_SECONDS = 600.0


@dataclass(slots=True)
class Code:
    """What somebody allowed; a code is good once, for ten minutes."""

    team: Team
    user: User
    scopes: frozenset[str]
    at: float
    used: bool = False


class OAuth:
    """Gives out tokens for what people allow."""

    def __init__(self, world: Workspace) -> None:
        self.world = world
        self.client_id = "1234567890.1234567890"
        self.client_secret = secrets.token_hex(16)
        self.redirect_url = "https://council.example.com/slack/oauth_redirect"
        self.extra: Json = {}
        """What every answer has beside the usual."""
        self.renews = False
        """Whether a workspace that has the app gets another token each time, in place of the one before."""
        self.new_token: Callable[[], str] = lambda: f"xoxb-{secrets.token_hex(24)}"
        self._codes: dict[str, Code] = {}

    def allow(self, address: str, user: User, scopes: Iterable[str] | None = None) -> str:
        """Let somebody click *Allow* on Slack's page; return where it leads.

        `scopes` are those that they leave ticked.
        """
        asked = parse_qs(urlsplit(address).query)
        if asked["client_id"] != [self.client_id] or asked.get("user_scope"):
            raise Refused("invalid_client_id")
        wanted = frozenset(asked["scope"][0].split(","))
        code = f"{secrets.randbelow(10**12)}.{secrets.token_hex(20)}"
        allowed = wanted if scopes is None else wanted & {*scopes}
        self._codes[code] = Code(self.world.teams[user.team], user, allowed, self.world.clock())
        return self._back(code=code, state=asked["state"][0])

    def cancel(self, address: str) -> str:
        """Let somebody click *Cancel*; return where it leads."""
        return self._back(error="access_denied", state=parse_qs(urlsplit(address).query)["state"][0])

    def _back(self, **query: str) -> str:
        return f"{self.redirect_url}?{urlencode(query)}"

    def access(self, arguments: Json, authorization: str) -> Json:
        """Exchange a code: `oauth.v2.access`."""
        client_id, secret = self._credentials(authorization)
        if client_id != self.client_id:
            raise Refused("invalid_client_id")
        if secret != self.client_secret:
            raise Refused("bad_client_secret")
        code = self._codes.get(str(arguments.get("code")))
        if code is None or self.world.clock() - code.at > CODE_SECONDS:
            raise Refused("invalid_code")
        if code.used:
            raise Refused("code_already_used")
        if arguments.get("redirect_uri") not in (None, "", self.redirect_url):
            raise Refused("bad_redirect_uri")
        code.used = True
        team = code.team
        if team.revoked is not None or self.renews:
            team.token, team.revoked = self.new_token(), None
        team.scopes = {*code.scopes}
        return {
            "app_id": self.world.app_id,
            "access_token": team.token,
            "token_type": "bot",
            "scope": ",".join(sorted(code.scopes)),
            "bot_user_id": team.bot.id,
            "team": {"id": team.id, "name": team.name},
            "enterprise": None,
            "is_enterprise_install": False,
            "authed_user": {"id": code.user.id},
            **self.extra,
        }

    def _credentials(self, authorization: str) -> tuple[str, str]:
        try:
            given = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        client_id, _, secret = given.partition(":")
        return client_id, secret
