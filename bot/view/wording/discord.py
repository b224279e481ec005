"""What people read about the bot's access on Discord, and what Discord's errors are called."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from bot.view.wording.figures import listing

_TABLES = tomllib.loads(Path(__file__).with_name("discord.toml").read_text("utf-8"))


def _codes(table: str) -> dict[int, str]:
    return {code: words for words, codes in _TABLES[table].items() for code in codes}


TEMPORARY, GONE = _codes("temporary"), _codes("gone")
NOT_ALLOWED, MALFORMED = _codes("not_allowed"), _codes("malformed")
CODES: Mapping[int, str] = {**TEMPORARY, **GONE, **NOT_ALLOWED, **MALFORMED}
"""By Discord's error code; {permission} is what the request needs, {place} what it is about."""

BUSY, CONTENT, NOT_IN_THIS_KIND = TEMPORARY[130000], MALFORMED[50035], NOT_ALLOWED[50024]
UNREADABLE = "Discord's response can't be read"
NOT_REACHED = "Discord could not be reached"

CLOSE_CODES = _codes("close")
"""The close codes after which a bot shouldn't reconnect."""


HINT = "Ask with /council and your question, or mention me with it. /council-help says more."

PERMISSIONS: Mapping[str, str] = {
    "view_channel": "View Channel",
    "send_messages": "Send Messages",
    "send_messages_in_threads": "Send Messages in Threads",
    "embed_links": "Embed Links",
    "attach_files": "Attach Files",
    "create_public_threads": "Create Public Threads",
    "read_message_history": "Read Message History",
}
"""Permissions as Discord's settings call them."""
A_PERMISSION = "a permission"
CHANNEL, THREAD = "channel", "thread"


UNSEEN = "the bot can't tell whether the asker can still see the channel"

NOT_DISCORD = "the server there doesn't respond as Discord does"


def lacks(permissions: Iterable[str]) -> str:
    return f"the bot lacks {' and '.join(permissions)}"


def needs(permissions: Iterable[str]) -> str:
    return (
        f"I need these permissions here: {listing(permissions)}. "
        "An admin can grant them in the channel's settings, under Permissions."
    )
