"""Faults on Slack."""

from collections.abc import Callable

from tests.bot.doctor.scene import NOWHERE, Scene, allowed, setting


def scopes(*, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()) -> Callable[[Scene], object]:
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


PLANTS: dict[str, Callable[[Scene], object]] = {
    "tokens swapped": lambda s: s.env.update(SLACK_BOT_TOKEN=s.slack.app_token),
    "no bot token": setting("SLACK_BOT_TOKEN", "xoxp-1"),
    "token revoked": lambda s: s.slack.revoke_token(),
    "Slack down": lambda s: s.slack.fail("auth.test", status=503, error="x"),
    "needed scope": scopes(remove=("files:write",)),
    "optional scope": scopes(remove=("users:read",)),
    "half of the threads": scopes(add=("channels:history",)),
    "threads unused": _threads_unused,
    "no app-level token": setting("SLACK_APP_TOKEN", "xoxb-1"),
    "app-level token revoked": lambda s: s.slack.revoke_app_token(),
    "in no channel": lambda s: [s.slack.kick_bot(one) for one in s.slack.world.channels.values()],
    "not in an allowed channel": allowed(channels=["C0ELSEWHERE"]),
    "workspace not allowed": allowed(workspaces=["{guild}", "T0ANOTHER1"]),
    "no signing secret": _http("SLACK_SIGNING_SECRET", "abc"),
    "HTTP port taken": _http("SLACK_HTTP_PORT", None),
    "Slack not there": setting("SLACK_API_URL", f"{NOWHERE}/api/"),
    "channels can't be read": lambda s: s.slack.fail("users.conversations", "fatal_error"),
}
