"""What people read about the bot's access on Discord, and what Discord's errors are called."""

from collections.abc import Iterable, Mapping

from bot.view.wording.figures import listing

BUSY = "Discord is too busy"
CONTENT = "Discord doesn't accept its content"
_BLOCKED = "Discord's content filter blocked it"
_FILE = "Discord doesn't accept the file"
_KIND = "this kind of channel doesn't support it"
NOT_IN_THIS_KIND = "this kind of channel doesn't allow it"

TEMPORARY: Mapping[int, str] = {
    20016: "slow mode delays it",
    20022: BUSY,
    20028: BUSY,
    20029: BUSY,
    30034: "Discord accepts no more commands from the bot today",
    40003: "the bot opens direct messages too fast",
    40004: "Discord has turned messages off for now",
    40006: "Discord has turned this feature off for now",
    40062: BUSY,
    40333: "Discord's protection against abuse blocked it",
    110001: "the application isn't available yet",
    130000: BUSY,
}
"""What passes."""
GONE: Mapping[int, str] = {
    10001: "the account is gone",
    10002: "the bot's application is gone",
    10003: "the {place} is gone",
    10004: "the bot is no longer on this server",
    10007: "this person isn't on the server",
    10008: "the message is gone",
    10013: "this person's account no longer exists",
    10015: "the interaction has expired",
    10062: "the interaction has expired",
    10063: "the command is gone",
    50027: "the interaction has expired",
    50055: "the bot is no longer on this server",
}
"""What no longer exists."""
NOT_ALLOWED: Mapping[int, str] = {
    20009: _BLOCKED,
    20012: "the bot's application isn't authorized for it",
    20018: "only the account's owner may do it",
    20024: "the bot's account is too young",
    20026: "Discord has restricted the bot for sending too much",
    30007: "this channel has reached its limit of webhooks",
    30033: "the thread has reached its limit of members",
    40002: "the bot's account must be verified first",
    40007: "this person is banned from the server",
    40012: "the bot's connection has been revoked",
    40043: "Discord couldn't deliver the interaction",
    40058: _KIND,
    40060: "the interaction already has a response",
    40067: "posts in this forum need a tag",
    40094: "this interaction has reached its limit of responses",
    50001: "the bot has no access to this {place}",
    50002: "the bot's kind of account may not do it",
    50003: "direct messages don't allow it",
    50005: "the message isn't the bot's",
    50007: "direct messages from the bot are closed",
    50008: _KIND,
    50009: "the server's verification level keeps the bot out",
    50010: "the application has no bot",
    50013: "the bot lacks {permission}",
    50017: "the server requires two-factor authentication",
    50021: "it is one of Discord's own messages",
    50024: NOT_IN_THIS_KIND,
    50033: "the bot can't write to this person",
    50067: "Discord doesn't accept where the request came from",
    50095: "the server isn't available in the bot's location",
    50097: "the server lacks a feature for it",
    50101: "the server lacks boosts for it",
    50178: "the account must be verified first",
    50278: "the bot shares no server with this person",
    60003: "the server requires two-factor authentication",
    160002: "the bot lacks Read Message History",
    160005: "the thread is locked",
    160006: "this server has reached its limit of active threads",
    160007: "this server has reached its limit of active announcement threads",
    400001: "Discord has limited file uploads on this server",
}
"""A permission or a setting keeps the bot from it."""
MALFORMED: Mapping[int, str] = {
    20001: "bots may not ask for it",
    20002: "only bots may ask for it",
    20031: _BLOCKED,
    30015: "it has too many files",
    30032: "the bot has reached its limit of commands",
    30046: "the message is too old to be edited this often",
    40005: "it is too large",
    40041: "a command of this name already exists",
    50006: "it is empty",
    50026: "the bot's invitation lacks a scope",
    50035: CONTENT,
    50041: "Discord no longer offers this version of its API",
    50045: _FILE,
    50046: _FILE,
    50068: CONTENT,
    50080: CONTENT,
    50081: CONTENT,
    50083: "the thread is archived",
    50085: CONTENT,
    50109: CONTENT,
    50110: _FILE,
    50123: _FILE,
    50138: _FILE,
    50146: _FILE,
    50162: CONTENT,
    160004: "the message already has a thread",
    200000: _BLOCKED,
    200001: _BLOCKED,
    220003: CONTENT,
    240000: _BLOCKED,
}
"""What Discord never accepts."""
CODES: Mapping[int, str] = {**TEMPORARY, **GONE, **NOT_ALLOWED, **MALFORMED}
"""By Discord's error code; {permission} is what the request needs, {place} what it is about."""

UNREADABLE = "Discord's response can't be read"
NOT_REACHED = "Discord could not be reached"

CLOSE_CODES: Mapping[int, str] = {
    4004: "Discord refuses the bot's token; it may have been reset. Copy it again from "
    "the application's page, under Bot, into DISCORD_TOKEN, and start again.",
    4010: "Discord refuses how the connection is sharded (4010). Start again.",
    4011: "The bot is on too many servers for one connection (4011). Start again to shard it.",
    4012: "Discord no longer offers this version of its gateway (4012). Update the program.",
    4013: "Discord doesn't know an intent that the bot asks for (4013). Update the program.",
    4014: "Discord refuses an intent that the bot asks for (4014). Allow it on the application's page, "
    "under Bot, and start again.",
}
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
