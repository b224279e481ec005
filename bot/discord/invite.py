"""Addresses that invite the bot."""

import base64
import binascii

from bot.errors import ConfigurationError, Problem

PERMISSIONS = 309237763072
"""View, send, send in threads, create public threads, embed links, attach files, read history."""


def discord_invite(token: str) -> str:
    """Return the address that adds the bot with just the permissions it needs.

    Raises `ConfigurationError` if it isn't a bot token.
    """
    return (
        "https://discord.com/oauth2/authorize"
        f"?client_id={application_id(token)}&scope=bot+applications.commands&permissions={PERMISSIONS}"
    )


def application_id(token: str) -> str:
    """Return the application's id, the beginning of a bot token. Raises `ConfigurationError`."""
    head = token.partition(".")[0]
    try:
        application = base64.b64decode(head + "=" * (-len(head) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        application = ""
    if not application.isdigit():
        raise ConfigurationError(
            [Problem("DISCORD_TOKEN", "it isn't a bot token", "Copy it from the application's Bot page")]
        )
    return application
