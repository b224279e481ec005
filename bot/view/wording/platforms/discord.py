"""What only Discord's people read: hints, permissions, and what is wrong with the bot's access."""

from collections.abc import Iterable, Mapping

from bot.view.wording.names import listing

HINT = "Ask with /council and your question, or mention me with it. /council-help says more."
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


def in_direct(link: str) -> str:
    """Say where a private question is answered."""
    return f"The council answers in your direct messages: {link}"


def not_posted(why: str) -> str:
    """Tell an asker that a question was cancelled."""
    return f"The council can't post here: {why}. Your question was cancelled."


def lacks(permissions: Iterable[str]) -> str:
    """Say which permissions the bot lacks, as a reason."""
    return f"the bot lacks {' and '.join(permissions)}"


def needs(permissions: Iterable[str]) -> str:
    """Say which permissions the bot needs, and who can grant them."""
    return (
        f"I need these permissions here: {listing(permissions)}. "
        "An admin can grant them in the channel's settings, under Permissions."
    )
