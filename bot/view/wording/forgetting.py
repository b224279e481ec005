"""What people read before and after they delete what the council stores."""

from bot.view.wording.figures import count
from bot.view.wording.names import listing

REMAINS = (
    "Cards and threads remain in the channel; "
    "whoever may delete the bot's messages there can remove them."
)
SHARED = "Where others have asked in the same conversation, their questions and answers stay."
STOPPED_FIRST = "Runs in progress will be stopped first."
SETTINGS_STAY = "The channel's settings stay; /council-config resets them."
FOR_GOOD = "This can't be undone."
NOTHING = "There is nothing to delete."

ALL_OF_MINE = "everything you asked"
ALL_OF_CHANNEL = "this channel's whole history"
_WORKSPACES = {"discord": " on this server", "slack": " in this workspace"}


def all_of(name: str, platform: str | None) -> str:
    """Name what somebody else asked, within one workspace of a `platform`."""
    return f"everything {name} asked{_WORKSPACES.get(platform or '', '')}"


def one(title: str) -> str:
    """Name one conversation."""
    return f"\u201c{title}\u201d"


def ask(what: str) -> str:
    """Ask whether to delete something."""
    return f"Delete {what}?"


def extent(conversations: int, runs: int) -> str:
    """Say how much would be deleted."""
    counted = listing((count(conversations, "conversation"), count(runs, "run")))
    return f"That is {counted}: questions, answers, and everything the models wrote."


def read_by_others(questions: int, *, beside: bool) -> str:
    """Say that messages read for others' questions are deleted, `beside` what is listed above."""
    asked = f"{count(questions, 'question')} asked by others"
    said = f"Thread messages that were read for {asked} will be deleted"
    return f"{said}, too." if beside else f"{said}."


def done(what: str, *, cards_remain: bool) -> str:
    """Say what was deleted, and what remains."""
    return f"Deleted {what}. {REMAINS}" if cards_remain else f"Deleted {what}."
