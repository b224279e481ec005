"""Faults on Slack."""

from collections.abc import Callable

from tests.bot.doctor.scene import NOWHERE, Planted, Scene, allowed, setting


def scopes(*, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> Callable[[Scene], object]:
    """Grant the Slack app other scopes."""

    def plant(scene: Scene) -> None:
        granted = scene.slack.team.scopes
        scene.slack.team.scopes = (granted | {*add}) - {*remove}

    return plant


def _http(name: str, value: str | None) -> Callable[[Scene], object]:
    def plant(scene: Scene) -> None:
        scene.by_http()
        scene.env[name] = value or str(scene.take_port())

    return plant


def _threads_unused(scene: Scene) -> None:
    scopes(add=("channels:history", "groups:history"))(scene)
    scene.write("council.toml", '[profiles.default]\ncontext = "message"')


FAULTS = [
    Planted(
        "tokens swapped",
        lambda s: s.env.update(SLACK_BOT_TOKEN=s.slack.app_token),
        "SLACK_BOT_TOKEN",
        "app-level token",
        "xoxb-",
    ),
    Planted(
        "no bot token",
        setting("SLACK_BOT_TOKEN", "xoxp-1"),
        "SLACK_BOT_TOKEN",
        "isn't a bot token",
        "Bot User OAuth Token",
    ),
    Planted(
        "token revoked",
        lambda s: s.slack.revoke_token(),
        "SLACK_BOT_TOKEN",
        "the token was revoked",
        "Reinstall to Workspace",
    ),
    Planted(
        "Slack down",
        lambda s: s.slack.fail("auth.test", status=503, error="x"),
        "Slack",
        "is having problems",
        "slack-status.com",
    ),
    Planted(
        "needed scope",
        scopes(remove=("files:write",)),
        "the app's scopes",
        "files:write (to post transcripts)",
        "Bot Token Scopes",
    ),
    Planted(
        "optional scope",
        scopes(remove=("users:read",)),
        "the app's scopes",
        "users:read (to tell who is an admin",
        "Bot Token Scopes",
        "warning",
    ),
    Planted(
        "half of the threads",
        scopes(add=("channels:history",)),
        "the app's scopes",
        "groups:history is missing",
        "council manifest slack --threads",
        "warning",
    ),
    Planted(
        "threads unused",
        _threads_unused,
        "the app's scopes",
        'context = "message"',
        "council manifest slack",
        "warning",
    ),
    Planted(
        "no app-level token",
        setting("SLACK_APP_TOKEN", "xoxb-1"),
        "SLACK_APP_TOKEN",
        "isn't an app-level token",
        "connections:write",
    ),
    Planted(
        "app-level token revoked",
        lambda s: s.slack.revoke_app_token(),
        "SLACK_APP_TOKEN",
        "opens no socket",
        "Enable Socket Mode",
    ),
    Planted(
        "in no channel",
        lambda s: [s.slack.kick_bot(one) for one in s.slack.world.channels.values()],
        "the bot",
        "in no channel",
        "/invite",
        "warning",
    ),
    Planted(
        "not in an allowed channel",
        allowed(channels=["C0ELSEWHERE"]),
        "C0ELSEWHERE",
        "isn't in it",
        "/invite",
        "warning",
    ),
    Planted(
        "workspace not allowed",
        allowed(workspaces=["{guild}", "T0ANOTHER1"]),
        "[access.allow] in council.toml",
        "nobody there may ask",
        'Add "T',
    ),
    Planted(
        "no signing secret",
        _http("SLACK_SIGNING_SECRET", "abc"),
        "SLACK_SIGNING_SECRET",
        "isn't a signing secret",
        "Basic Information",
    ),
    Planted(
        "HTTP port taken",
        _http("SLACK_HTTP_PORT", None),
        "SLACK_HTTP_PORT",
        "nothing can listen",
        "Set another",
    ),
    Planted(
        "Slack not there",
        setting("SLACK_API_URL", f"{NOWHERE}/api/"),
        "Slack",
        "doesn't answer",
        "SLACK_API_URL",
    ),
    Planted(
        "channels can't be read",
        lambda s: s.slack.fail("users.conversations", "fatal_error"),
        "Slack",
        "is having problems",
        "slack-status.com",
    ),
]
