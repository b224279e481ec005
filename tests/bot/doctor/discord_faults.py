"""Faults on Discord."""

from collections.abc import Callable

from bot.discord.invite import PERMISSIONS
from tests.bot.doctor.scene import NOWHERE, Planted, Scene, allowed, setting
from tests.discord_server import NEW_GUILD, Fault, Intent, Permission


def application(name: str, value: object) -> Callable[[Scene], object]:
    """Set something on the application's page."""
    return lambda scene: scene.discord.world.application.update({name: value})


def _old_command(scene: Scene) -> None:
    scene.discord.world.commands[None][1] = {
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


FAULTS = [
    Planted(
        "client secret for a token",
        setting("DISCORD_TOKEN", "x" * 32),
        "DISCORD_TOKEN",
        "isn't a bot token",
        "Reset Token",
    ),
    Planted(
        "token reset",
        lambda s: s.discord.reset_token(),
        "DISCORD_TOKEN",
        "refuses the token",
        "Reset Token",
    ),
    Planted(
        "no Discord there",
        setting("DISCORD_API_BASE_URL", f"{NOWHERE}/api/v10"),
        "Discord",
        "doesn't answer",
        "DISCORD_API_BASE_URL",
    ),
    Planted(
        "something else there",
        lambda s: s.env.update(DISCORD_API_BASE_URL=s.models.url),
        "DISCORD_API_BASE_URL",
        "as Discord does",
        "/api/v10",
    ),
    Planted(
        "Discord down",
        lambda s: s.discord.api.faults.append(Fault("GET /users/@me", 503)),
        "Discord",
        "is having problems",
        "discordstatus.com",
    ),
    Planted(
        "public bot",
        application("bot_public", value=True),
        "the application",
        "Public Bot is switched on",
        "switch off Public Bot",
        "warning",
    ),
    Planted(
        "code grant",
        application("bot_require_code_grant", value=True),
        "the application",
        "Requires OAuth2 Code Grant",
        "switch off",
    ),
    Planted(
        "interactions endpoint",
        application("interactions_endpoint_url", "https://a.example"),
        "the application",
        "Interactions Endpoint URL",
        "clear Interactions Endpoint URL",
    ),
    Planted(
        "intent off",
        setting("DISCORD_MESSAGE_CONTENT", "true"),
        "DISCORD_MESSAGE_CONTENT",
        "Message Content Intent is switched off",
        "switch on Message Content Intent",
    ),
    Planted(
        "intent unused",
        _intent_unused,
        "DISCORD_MESSAGE_CONTENT",
        "Message Content Intent is switched on",
        "Set DISCORD_MESSAGE_CONTENT=true",
        "warning",
    ),
    Planted(
        "other commands",
        _old_command,
        "the commands",
        "/ask-all",
        "Start `council run` again",
        "warning",
    ),
    Planted(
        "no server",
        lambda s: s.discord.kick_bot(s.guild),
        "the bot",
        "on no server",
        "council invite discord",
        "warning",
    ),
    Planted(
        "role without permissions",
        _no_role,
        "Acme",
        "lack Embed Links and Attach Files",
        "Server Settings > Roles",
    ),
    Planted(
        "channel without a permission",
        lambda s: s.discord.overwrite(s.general, s.discord.bot, deny=Permission.CREATE_PUBLIC_THREADS),
        "#general on Acme",
        "lacks Create Public Threads",
        "Edit Channel > Permissions",
    ),
    Planted(
        "channel without writing",
        lambda s: s.discord.overwrite(s.general, s.discord.bot, deny=Permission.SEND_MESSAGES),
        "#general on Acme",
        "lacks Send Messages there",
        "Edit Channel > Permissions",
    ),
    Planted(
        "no channel to see",
        lambda s: s.discord.hide(s.general),
        "Acme",
        "sees no text channel",
        "View Channel",
        "warning",
    ),
    Planted(
        "allowed channel hidden",
        _hidden_though_allowed,
        "#general on Acme",
        "lacks View Channels",
        "Edit Channel > Permissions",
    ),
    Planted(
        "allowed channel unknown",
        allowed(channels=["{general}", "1" * 18]),
        "[access] in council.toml",
        "1" * 18,
        "Copy ID",
        "warning",
    ),
    Planted(
        "server not allowed",
        lambda s: allowed(workspaces=[s.slack.team.id])(s),
        "[access.allow] in council.toml",
        "leaves out every Discord server",
        "Copy Server ID",
    ),
    Planted(
        "allowed role unknown",
        allowed(roles=["2" * 18]),
        "[access] in council.toml",
        "2" * 18,
        "Correct the id",
        "warning",
    ),
    Planted(
        "permissions can't be read",
        lambda s: s.discord.api.faults.append(Fault("GET /users/@me/guilds", 503)),
        "Discord",
        "is having problems",
        "discordstatus.com",
    ),
    Planted(
        "commands can't be read",
        lambda s: s.discord.api.faults.append(Fault("GET /applications/{application_id}/commands", 503)),
        "Discord",
        "is having problems",
        "discordstatus.com",
    ),
]
