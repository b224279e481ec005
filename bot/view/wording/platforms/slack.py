"""What only Slack's people read: hints, and what the bot couldn't do or read."""

from collections.abc import Iterable, Mapping

from bot.view.wording.names import listing
from bot.view.wording.platforms.slack_errors import lacks_scope

DESCRIPTION = "Several language models answer, review each other, and conclude"
"""What the app's page says."""
NOT_AFTER_MENTION = "There is no question. Write it after the mention: @council Should we shard now?"
TOO_SLOW = "Slack took too long to open your direct messages. Nothing was done. Try again."
IN_DIRECT = "The transcript is in your direct messages with the council."
IN_PRIVATE = "The council will answer in your direct messages."
SEE_THE_CARD = "See the card"

SCOPES: Mapping[str, str] = {
    "app_mentions:read": "receive mentions",
    "chat:write": "post and edit cards and threads",
    "commands": "offer slash commands and the message action",
    "files:write": "post transcripts",
    "channels:read": "check that an asker is still in a public channel before a direct message is sent, "
    "and call channels by their names",
    "chat:write.public": "answer in public channels without being invited",
    "files:read": "read the text files of a message the council is asked about",
    "groups:read": "check that an asker is still in a private channel before a direct message is sent",
    "im:history": "take questions in direct messages",
    "im:write": "open a direct message for a private run, for an answer whose channel is lost, or to an "
    "admin when a budget is nearly used up",
    "usergroups:read": "let only members of a user group ask, where [access] names one, and call groups "
    "by their names",
    "users:read": "tell who is an admin, and call people by their names",
    "channels:history": "read the thread in which it is asked, in public channels",
    "groups:history": "read the thread in which it is asked, in private channels",
}
"""What each of the app's scopes is for."""
NO_FILES_SCOPE = lacks_scope("files:read")
FILES_NOT_ALLOWED = f"The message's files were left out: {NO_FILES_SCOPE}."
FILES_TOO_SLOW = "The message's files were left out: Slack took too long to provide them."
TOO_LONG = "it is too long"
ASKED_IN_DIRECT = "it was asked in direct messages"
NOT_IN_CHANNEL = "the asker is no longer in the channel"


def lacks_scopes(scopes: Iterable[str]) -> str:
    """Say which scopes are missing, as a reason."""
    return f"the scopes {listing(scopes)} are missing"


def cannot_answer(why: str) -> str:
    """Tell an asker why there is no card."""
    return f"The council can't answer here: {why}."


def impossible(why: str) -> str:
    """Say why a request is impossible."""
    return f"That isn't possible: {why}."


def access_lost(why: str) -> str:
    """Say that Slack refuses the bot for good, and what to do."""
    return (
        f"Slack no longer accepts the bot, because {why}: install the app to the workspace again, "
        "set its tokens, and start the council."
    )
