"""What people read when they may not ask."""

WHO_CHANGES_IT = "Whoever runs the bot can change that, under [access] in council.toml."
NOT_IN_WORKSPACE = "The council isn't open to this server or workspace."
NOT_IN_CHANNEL = "The council isn't open in this channel."
NOT_THIS_PERSON = "The council isn't open to you here."
GROUPS_UNKNOWN = (
    "Slack doesn't say who is in the user groups that may ask, so your question wasn't asked. Try again "
    "in a minute; if it happens again, the app may lack the scope usergroups:read."
)
NOT_DIRECTLY = "The council isn't open to you in direct messages. Ask in a channel."


def not_this_profile(name: str) -> str:
    """Refuse one council; others may be open."""
    return f"The profile {name} isn't open to you here. Choose another one."


def not_an_id(value: str) -> str:
    """Say what an entry of a list should be."""
    return f"{value!r} isn't an id of that kind"
