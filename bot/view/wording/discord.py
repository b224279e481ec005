"""What people read about the bot's access on Discord, and what Discord's errors are called."""

from collections.abc import Iterable, Mapping

from bot.view.wording.figures import listing

BUSY = "Discord is too busy"
CONTENT = "Discord doesn't accept its content"
NOT_DISCORDS = "the file isn't kept at Discord"
NO_FILE = "the file can't be fetched"
_BLOCKED = "Discord's content filter blocked it"
_FILE = "Discord doesn't accept the file"
_KIND = "this kind of channel doesn't support it"
_FLAGGED = "Discord has restricted the bot for sending too much"

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
    20026: _FLAGGED,
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
    50024: "this kind of channel doesn't allow it",
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

BAD_TOKEN = "Discord refuses the bot's token"  # noqa: S105 - words about one
FORBIDDEN = "Discord doesn't allow it"
PLACE_GONE = "the {place} is gone"
UNREADABLE = "Discord's response can't be read"
NOT_REACHED = "Discord could not be reached"
OUT_OF_ORDER = "Discord is having problems"
TOO_LARGE = "it is too large"
NO_REASON = "Discord refused it without saying why"

CONNECTION_CLOSED = "The connection to Discord was closed. Start again."
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
REPLY_HIDDEN = "Discord hides what you replied to from me. Use Ask the council in its menu, under Apps."
ROLE_HIDDEN = (
    "Discord hides your text from me if you mention my role. Mention me, the one with my picture."
)
CONNECTING = "Still connecting to Discord. Try again in a minute."
UNKNOWN_PLACE = "I can't tell which channel this is. Try another."
ON_ITS_WAY = "Your question is on its way to the council."
UNREACHED = "Discord didn't let me write to you, so nothing was asked. Try again in a minute."
CLOSED = "Your direct messages are closed to the bot, so nothing was asked. Open them and try again."
SILENT = "You can't write in this channel, so you can't share here."

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

SWITCHED_OFF = "an admin hasn't switched that on"
NO_THREADS_IN_DIRECT = "direct messages have no threads"
NO_THREADS = "this kind of channel doesn't allow it"
UNKNOWN_CHANNEL = "Discord does not show this channel to the bot right now"
COUNCIL = "Council"
DELETED_THREAD = "Deleted"
"""A thread's name where there is none."""

ASKED_IN_DIRECT = "the run was asked for in direct messages"
UNSEEN = "the bot can't tell whether the asker can still see the channel"
LEFT_SERVER = "the asker has left the server"
CHANNEL_HIDDEN = "the asker can no longer see the channel"
LEFT_THREAD = "the asker has left the thread"

REFUSED = "Discord refuses it"
COPY_TOKEN = "Copy the bot's token from the application's page, under Bot"  # noqa: S105 - words about one
CHECK_NETWORK = "Check the network and DISCORD_API_BASE_URL"
NOT_DISCORD = "the server there doesn't respond as Discord does"
UNSET_ADDRESS = (
    "Unset it, or check that it ends in /api/v10 and that no other server answers in its place"
)
NOT_A_TOKEN = "it isn't a bot token"  # noqa: S105 - words about one
COPY_FROM_PAGE = "Copy it from the application's Bot page"


NOT_POSTED = "The council can't post here: {}. Your question was cancelled."
IN_DIRECT = "The council answers in your direct messages: {}"


def lacks(permissions: Iterable[str]) -> str:
    return f"the bot lacks {' and '.join(permissions)}"


def needs(permissions: Iterable[str]) -> str:
    return (
        f"I need these permissions here: {listing(permissions)}. "
        "An admin can grant them in the channel's settings, under Permissions."
    )
