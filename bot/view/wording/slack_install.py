"""What people read while they install the app in a Slack workspace, and what the operator reads then."""

from collections.abc import Iterable
from pathlib import Path

from bot.view.wording.figures import count

TITLE = "Install the council"
OFFER = "Several language models answer a question, review each other, and conclude."
WHAT_LEAVES = (
    "Questions, the files that come with them and, if you allow it, the messages of the thread in which "
    "the council is asked go to the models that /council-help names. You can remove the app at any "
    "time; its tokens are then deleted at once, and its conversations {delay}."
)
BUTTON = "Add to Slack"
WITH_THREADS = "Add it, and let it read the threads in which it is asked"

INSTALLED = "The council is installed"
INVITE = "Type /invite @council in a channel, then /council and a question."
MAY_BE_CLOSED = "You can close this page."
WORKS_WITHOUT = "It works, but it has no permission to:"
NEEDS = "It can't work yet: it has no permission to:"
ALLOW_ALL = "To change that, install it again and leave every permission ticked."

FAILED = "The council wasn't installed"
NOTHING_CHANGED = "Nothing was changed here."
AGAIN = "Start again"
CANCELLED = "You cancelled it on Slack."
STATE_REFUSED = (
    "This link was used before, is older than ten minutes, or was opened in another browser, or the "
    "council was restarted since."
)
CODE_REFUSED = "Slack no longer accepts this attempt."
MISCONFIGURED = (
    "The council's settings don't fit the Slack app. Tell whoever runs the bot: its log says what "
    "is wrong."
)
NO_ANSWER = "Slack can't be reached at the moment. Try again in a few minutes."
NOT_SAVED = "The council can't save anything at the moment. Try again in a few minutes."
ORGANIZATION = (
    "You tried to install it for a whole organization, which the council doesn't support. Install it in "
    "each workspace instead."
)
ROTATING = (
    "The Slack app rotates its tokens, which the council doesn't support. Make the app from the "
    "manifest that `council manifest slack` prints."
)
OTHER_WORKSPACE = (
    "Slack named two different workspaces for this attempt, so its token was given back. Tell whoever "
    "runs the bot."
)
UNKNOWN = "Slack reported an error. Tell whoever runs the bot: its log says which."

RIGHT_KEY = (
    "Set the key that was used; if there is a new one, write both with a comma between them. If the old "
    "key is lost, delete that file and install the app again in each workspace"
)


def not_served(team: str) -> str:
    return (
        f"This council doesn't serve the workspace {team}. Whoever runs it can add {team} to the "
        "workspaces in [access.allow]."
    )


def installed_in(workspace: str) -> str:
    return f"It can be asked in {workspace}."


def what_leaves(days: int) -> str:
    return WHAT_LEAVES.format(delay=f"after {count(days, 'day')}" if days else "within hours")


def lacking(scopes: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{purpose} ({scope})" for scope, purpose in scopes]


def wrong_key(path: Path) -> str:
    return f"it isn't the key with which the tokens in {path} were encrypted"


def unusable(path: Path, why: str) -> str:
    return f"{path} can't be used: {why}"
