"""`council doctor` for several workspaces, with one fault at a time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.checks.check import Checked, Outcome, carry_out
from bot.service.admission.access import Access
from bot.slack.oauth.checks import WorkspaceChecks
from bot.slack.oauth.flow import SlackApp
from bot.slack.oauth.installations import NAME
from tests.bot.slack.oauth.scene import KEY, OTHER_KEY, Home, Scene, scene_in

SIGNING_SECRET = "8f742231b10e8888abcd99aaabbb85a5"  # noqa: S105 - the shape of the documentation's example


@dataclass
class Setup:
    """What the checks are given; a fault changes it."""

    scene: Scene
    acme: Home
    app: SlackApp
    access: Access
    keys: tuple[str, ...] = (KEY,)

    async def look(self) -> list[Checked]:
        """Carry out the checks."""

        async def look_at_port() -> Outcome:
            return Outcome("free")

        checks = WorkspaceChecks(
            self.app,
            self.scene.folder,
            self.keys,
            look_at_port=look_at_port,
            api_url=self.scene.slack.api_url,
            access=self.access,
            on_date=lambda _: None,
        )
        return await carry_out(checks.checks())


async def setup(scene: Scene) -> Setup:
    """Return an installation in which all is well."""
    [acme] = await scene.installed("Acme Two")
    oauth = scene.slack.oauth
    app = SlackApp(oauth.client_id, oauth.client_secret, SIGNING_SECRET)
    access = Access.model_validate({"allow": {"workspaces": [acme.team.id]}})
    return Setup(scene, acme, app, access)


def app(**changed: str) -> Callable[[Setup], None]:
    """Change what is configured of the app."""

    def plant(one: Setup) -> None:
        one.app = replace(one.app, **changed)

    return plant


def access(**lists: object) -> Callable[[Setup], None]:
    """Change who may ask."""

    def plant(one: Setup) -> None:
        one.access = Access.model_validate(lists)

    return plant


def keys(one: Setup) -> None:
    """Use another key."""
    one.keys = (OTHER_KEY,)


def damage(one: Setup) -> None:
    """Write something else over the file."""
    (one.scene.folder / NAME).write_bytes(b"something else" * 100)


def scopes(*without: str) -> Callable[[Setup], None]:
    """Leave out scopes."""

    def plant(one: Setup) -> None:
        one.acme.team.scopes = one.acme.team.scopes - {*without}

    return plant


def revoke(one: Setup) -> None:
    """Remove the app while nothing runs."""
    one.scene.slack.revoke_token("account_inactive", one.acme.team)


def down(one: Setup) -> None:
    """Let Slack have problems."""
    one.scene.slack.fail("auth.test", status=503, times=9)


def unknown(one: Setup) -> None:
    """Let Slack fail where the app is looked up."""
    one.scene.slack.fail("oauth.v2.access", "fatal_error")


REDIRECT = {"redirect_uri": "http://council.example.com/slack/oauth_redirect"}
FAULTS: list[tuple[str, Callable[[Setup], None], str, str, str]] = [
    ("client id", app(client_id="1.2"), "SLACK_CLIENT_ID", "knows no such app", "Client ID"),
    ("secret", app(client_secret="x"), "SLACK_CLIENT_SECRET", "isn't the app's", "Client Secret"),  # noqa: S106 - no real secret
    ("redirect", app(**REDIRECT), "SLACK_REDIRECT_URI", "can't send people back", "https://"),
    (
        "path",
        app(redirect_uri="https://c.example/x"),
        "SLACK_REDIRECT_URI",
        "can't send people back",
        "/slack",
    ),
    ("signing secret", app(signing_secret="x"), "SLACK_SIGNING_SECRET", "isn't a signing", "Basic"),  # noqa: S106 - no real secret
    ("Slack down", unknown, "Slack", "is having problems", "slack-status.com"),
    ("key", keys, "SLACK_TOKEN_KEY", "isn't the key with which", "with a comma between them"),
    ("damaged", damage, NAME, "file is not a database", "install the app again"),
    ("open to all", access(), "[access.allow]", "any workspace may install", "List your workspaces"),
    (
        "open to none",
        access(allow={"workspaces": ["123456789012345678"]}),
        "[access.allow]",
        "only Discord servers",
        "Add the ids",
    ),
    (
        "another workspace",
        access(allow={"workspaces": ["T0ANOTHER"]}),
        "Acme Two",
        "lets nobody ask",
        "in [access.allow]",
    ),
    ("refused", revoke, "Acme Two", "the app was removed", "/slack/install"),
    ("trouble", down, "Slack", "is having problems", "slack-status.com"),
    ("needed scope", scopes("files:write"), "Acme Two", "files:write (to post", "every permission"),
    ("optional scope", scopes("users:read"), "Acme Two", "users:read (to tell", "every permission"),
]


@pytest.mark.parametrize(("_", "plant", "where", "what", "fix"), FAULTS, ids=[f[0] for f in FAULTS])
async def test_it_is_named_alone_with_its_fix(
    tmp_path: Path, _: str, plant: Callable[[Setup], None], where: str, what: str, fix: str
) -> None:
    """What depends on it is skipped; everything else was looked at and is well."""
    async with scene_in(tmp_path) as scene:
        one = await setup(scene)
        await scene.stop()
        plant(one)
        [finding] = [each for checked in await one.look() for each in checked.outcome.findings]
        assert where in finding.where
        assert what in finding.what
        assert fix in finding.fix


async def test_all_is_well_beside_a_running_council(tmp_path: Path) -> None:
    """Nothing is changed, and no token is shown."""
    async with scene_in(tmp_path) as scene:
        one = await setup(scene)
        before = (tmp_path / NAME).read_bytes()
        lines = [line for checked in await one.look() for line in checked.lines()]
        assert lines == [
            "\u2713 Slack app           Slack knows the app; whether it reaches its redirect URL can't be seen from here",
            "\u2713 Slack events        HTTP mode; whether Slack reaches its public https address can't be seen from here",
            "\u2713 Slack installs      the key fits; installed in 1 workspace",
            "\u2713 Slack workspaces    1 token accepted, with all scopes",
        ]
        assert (tmp_path / NAME).read_bytes() == before
        assert [call.error for call in scene.slack.calls("oauth.v2.access")] == [None, "invalid_code"]


async def test_nothing_installed_yet_is_no_fault(tmp_path: Path) -> None:
    """It says where to begin, and makes no file."""
    async with scene_in(tmp_path, start=False) as scene:
        app = SlackApp(scene.slack.oauth.client_id, scene.slack.oauth.client_secret, SIGNING_SECRET)
        allowed = Access.model_validate({"allow": {"workspaces": ["T0ANOTHER"]}})
        checked = await Setup(scene, scene.workspace("Acme Two"), app, allowed).look()
        assert [each.outcome.state for each in checked] == ["ok"] * 4
        assert "no workspace has installed the app yet" in checked[2].outcome.note
        assert not (tmp_path / NAME).exists()
