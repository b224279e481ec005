"""What people read when they may not ask, or may not do something with a run or a channel."""

WHO_CHANGES_IT = "Whoever runs the bot can change that, under [access] in council.toml."
NOT_IN_WORKSPACE = "The council isn't open to this server or workspace."
NOT_IN_CHANNEL = "The council isn't open in this channel."
NOT_THIS_PERSON = "The council isn't open to you here."
GROUPS_UNKNOWN = (
    "Slack doesn't say who is in the user groups that may ask, so your question wasn't asked. Try again "
    "in a minute; if it happens again, the app may lack the scope usergroups:read."
)
NOT_DIRECTLY = "The council isn't open to you in direct messages. Ask in a channel."

NOT_OFFERED = "This can't be done here."
NOT_HERE = "This run isn't on record here; it may have been deleted."
NOT_STOPPED = "Only the person who asked, or an admin, can stop this run."
ANSWER_NOT_FORGOTTEN = "Only the person who asked, or an admin, can delete this answer."
PERSON_NOT_FORGOTTEN = "Only an admin can delete everything somebody else asked."
CHANNEL_NOT_FORGOTTEN = "Only an admin can delete a channel's history."
CHANNEL_NOT_CONFIGURED = "Only an admin can change this channel's settings. Nothing was changed."


def not_this_profile(name: str) -> str:
    """Refuse one council; others may be open."""
    return f"The profile {name} isn't open to you here. Choose another one."


def not_an_id(value: str) -> str:
    """Say what an entry of a list should be."""
    return f"{value!r} isn't an id of that kind"
