"""Faults on Discord."""

from collections.abc import Callable

from bot.discord.checks import PERMISSIONS
from tests.bot.doctor.scene import NOWHERE, Scene, allowed, setting
from tests.discord_server import NEW_GUILD, Fault, Intent, Permission


def application(name: str, value: object) -> Callable[[Scene], object]:
    return lambda scene: scene.discord.world.application.update({name: value})


def _old_command(scene: Scene) -> None:
    scene.discord.world.commands[1] = {
        "id": "1",
        "application_id": "1",
        "version": "1",
        "type": 1,
        "name": "ask-all",
        "description": "Old",
    }


def _no_role(scene: Scene) -> None:
    guild = scene.guild
    for role in guild.roles.values():
        role.permissions = (NEW_GUILD | PERMISSIONS) & ~Permission.EMBED_LINKS & ~Permission.ATTACH_FILES


def _hidden_though_allowed(scene: Scene) -> None:
    allowed(channels=["{general}"])(scene)
    scene.discord.hide(scene.general)


def _intent_unused(scene: Scene) -> None:
    scene.discord.world.privileged = Intent.MESSAGE_CONTENT


PLANTS: dict[str, Callable[[Scene], object]] = {
    "client secret for a token": setting("DISCORD_TOKEN", "x" * 32),
    "token reset": lambda s: s.discord.reset_token(),
    "no Discord there": setting("DISCORD_API_BASE_URL", f"{NOWHERE}/api/v10"),
    "something else there": lambda s: s.env.update(DISCORD_API_BASE_URL=s.models.url),
    "Discord down": lambda s: s.discord.api.faults.append(Fault("GET /users/@me", 503)),
    "public bot": application("bot_public", value=True),
    "code grant": application("bot_require_code_grant", value=True),
    "interactions endpoint": application("interactions_endpoint_url", "https://a.example"),
    "intent off": setting("DISCORD_MESSAGE_CONTENT", "true"),
    "intent unused": _intent_unused,
    "other commands": _old_command,
    "no server": lambda s: s.discord.kick_bot(s.guild),
    "role without permissions": _no_role,
    "channel without a permission": lambda s: s.discord.overwrite(
        s.general, s.discord.bot, deny=Permission.CREATE_PUBLIC_THREADS
    ),
    "channel without writing": lambda s: s.discord.overwrite(
        s.general, s.discord.bot, deny=Permission.SEND_MESSAGES
    ),
    "no channel to see": lambda s: s.discord.hide(s.general),
    "allowed channel hidden": _hidden_though_allowed,
    "allowed channel unknown": allowed(channels=["{general}", "1" * 18]),
    "server not allowed": lambda s: allowed(workspaces=[s.slack.team.id])(s),
    "allowed role unknown": allowed(roles=["2" * 18]),
    "permissions can't be read": lambda s: s.discord.api.faults.append(
        Fault("GET /users/@me/guilds", 503)
    ),
    "commands can't be read": lambda s: s.discord.api.faults.append(
        Fault("GET /applications/{application_id}/commands", 503)
    ),
}
