"""What `council doctor` says about Discord, in the words of its developer portal and its settings."""

from collections.abc import Iterable

from bot.view.wording.doctor.doctor import Advice
from bot.view.wording.figures import count
from bot.view.wording.names import listing

_GENERAL = "discord.com/developers/applications > your application > General Information"
_BOT = "discord.com/developers/applications > your application > Bot"
DISCORD_SHAPE = Advice(
    "it isn't a bot token: a bot token has three parts separated by dots, unlike a client secret",
    f"{_BOT} > Reset Token, then copy the token into DISCORD_TOKEN",
)
DISCORD_REFUSES = Advice(
    "Discord refuses the token; it may have been reset",
    f"{_BOT} > Reset Token, then copy the token into DISCORD_TOKEN",
)
DISCORD_UNREACHABLE = Advice(
    "Discord doesn't answer",
    "Check the network, any proxy, and that DISCORD_API_BASE_URL is unset or right",
)
NOT_DISCORD = Advice(
    "the server there doesn't respond as Discord does",
    "Unset DISCORD_API_BASE_URL, or check that it ends in /api/v10",
)
PUBLIC_BOT = Advice(
    "Public Bot is switched on: strangers can add the bot to their servers and spend your credit",
    f"{_BOT} > switch off Public Bot (if Discord objects: Installation > Install Link > None first)",
)
CODE_GRANT = Advice(
    "Requires OAuth2 Code Grant is switched on, so the bot can't be invited",
    f"{_BOT} > switch off Requires OAuth2 Code Grant",
)
INTENT_OFF = Advice(
    "it is set to true, but Message Content Intent is switched off: Discord closes the bot's connection",
    f"{_BOT} > switch on Message Content Intent, or remove DISCORD_MESSAGE_CONTENT",
)
INTENT_UNUSED = Advice(
    "it isn't set to true, but Message Content Intent is switched on: no thread is read",
    f"Set DISCORD_MESSAGE_CONTENT=true, or {_BOT} > switch off Message Content Intent",
)
ENDPOINT_SET = Advice(
    "Interactions Endpoint URL is set: Discord sends commands there, and the bot never receives them",
    f"{_GENERAL} > clear Interactions Endpoint URL",
)
APPLICATION_WELL = "Public Bot is off, no Interactions Endpoint URL, intents as configured"
NOT_REGISTERED = "none registered yet; `council run` does it"
COMMANDS_MATCH = "registered, as this version has them"
NO_SERVER = Advice(
    "the bot is on no server",
    "Open the address that `council invite discord` prints, and choose a server",
)
SEES_NO_CHANNEL = Advice(
    "the bot sees no text channel",
    "Edit Channel > Permissions > add the bot with View Channel, where it should answer",
)


def discord_trouble(reason: str) -> Advice:
    """Say that Discord is having problems."""
    return Advice(
        f"Discord didn't answer as expected: {reason}",
        "Wait and run `council doctor` again; discordstatus.com may say more",
    )


def signed_in(name: str) -> str:
    """Say who the bot is."""
    return f"accepted; the bot is {name}"


def commands_differ(names: Iterable[str]) -> Advice:
    """Say that Discord has other commands than this version."""
    return Advice(
        f"Discord's commands differ from this version's: {listing(names)}",
        "Start `council run` again: it registers them",
    )


def role_lacks(permissions: Iterable[str]) -> Advice:
    """Say which permissions the bot lacks on a whole server."""
    return Advice(
        f"the bot's roles lack {listing(permissions)}",
        "Server Settings > Roles > the bot's role > Permissions, or invite it again with "
        "`council invite discord`",
    )


def channel_lacks(permissions: Iterable[str]) -> Advice:
    """Say which permissions the bot lacks in one channel."""
    return Advice(
        f"the bot lacks {listing(permissions)} there",
        "Edit Channel > Permissions > the bot or its role > allow them",
    )


SERVERS_NOT_ALLOWED = Advice(
    "its list of workspaces leaves out every Discord server that the bot is on: nobody there may ask",
    "Add the server's id (Discord's settings > Developer Mode; right-click > Copy Server ID)",
)


def not_on_discord(number: str) -> Advice:
    """Say that an id in the lists of who may ask is nowhere to be found."""
    return Advice(
        f"it names {number}, which isn't one of the bot's servers, or a channel, category or role there",
        "Correct the id (Discord's settings > Developer Mode; right-click > Copy ID), or invite the bot",
    )


def role_gone(number: str) -> Advice:
    """Say that a role which may ask in a channel is nowhere to be found."""
    return Advice(
        f"its setting who names role {number}, which the server no longer has; that entry lets nobody "
        "ask",
        "Set who there with /council-config, or reset it",
    )


def on_servers(servers: int, channels: int, left_out: int) -> str:
    """Say where the bot can answer."""
    said = f"{count(channels, 'channel')} on {count(servers, 'server')}"
    if not left_out:
        return said
    return f"{said}; {count(left_out, 'more server')} {'was' if left_out == 1 else 'were'} not checked"
