"""What people read of past answers: lists, statistics, and what deleting one says before and after."""

from collections.abc import Sequence

from bot.view.wording.figures import count, duration, listing, runs
from storage.index.statistics import Statistics
from storage.work import Left

OPEN = "Open"
"""The label of a button that shows an answer; its number in the list follows."""
THERE = "Go to it"
"""The label of a link to where something is."""

NO_SUCH = "There is no such answer here."
NO_WORDS = "There are no words to search for."
HISTORY = "Past answers"
NONE_YET = "There is no answer here yet. Ask with /council."
NOTHING_HERE = "There is nothing here."
NOTHING_FOUND = "No answer in this channel has all these words."
NO_MORE = "No more results."
NO_ANSWER = "It has no answer."
NOT_ON_RECORD = "This is not on record for this answer."
ASKED = "Asked"
UNANSWERED = "no answer"
CUT = "This isn't all of it. The rest is in the transcript."
"""Where a sheet has no room for more."""
TOO_MANY_WORDS = "That is more than {} characters. Search for the words that matter."
STARTED_BY = "Started by {}."
MEMBERS_LEFT_OUT = "Buttons show {shown} of {of} members; the transcript has them all."
SHARED_BY = "{} shared this from the council's past answers."
RESULTS = "Results for \u201c{}\u201d"


def page(first: int, last: int, found: int, ranked: int) -> str:
    """Return which results these are; of many, only some are `ranked`."""
    if found >= ranked:
        return f"Results {first} to {last} of more than {ranked:,}; only the newest are ranked"
    if (first, last) == (1, found):
        return count(found, "result")
    some = f"Result {first}" if first == last else f"Results {first} to {last}"
    return f"{some} of {found}"


def several(number: int, *, more: bool) -> str:
    return f"{f'More than {number}' if more else number} answers fit. Pick one, or type more words."


QUESTION = "Question {} of {}."
ASKED_BY = f"{ASKED} by {{}}."


def answers(number: int) -> str:
    return count(number, "answer") if number else UNANSWERED


def short_id(conversation_id: str) -> str:
    return f"id {conversation_id[:8]}"


NOTHING_ASKED = "Nothing was asked here in this period."
HEADER = ("Member", "Runs", "Average vote", "Cost")
HOW_TO_READ = (
    "Average vote: the mean place that the reviewers gave its answers, 1 is best. Cost: per run."
)
TOO_FEW = "too few to compare"
UNKNOWN = "\u2013"
REST = ("Member", "First", "Changed", "Failed", "Time")
REST_READ = "First: ranked first. Changed: its answer, after reviews. Failed: in a call. Time: per call."


def statistics_title(days: int) -> str:
    return f"Statistics of this channel, {'last day' if days == 1 else f'last {days:,} days'}"


def totals(found: Statistics) -> str:
    said = [f"{runs(found)}."]
    if found.tokens:
        said.append(f"{count(found.tokens, 'token')}.")
    if found.seconds.value is not None:
        half = behind(duration(found.seconds.value), found.seconds.runs)
        said.append(f"Half of the answers took less than {half}.")
    return " ".join(said)


def behind(value: str, number: int) -> str:
    return f"{value} ({number:,})"


MESSAGES_TOO = (
    "The council's own messages about it are deleted, too: cards, threads, and what was shared. "
    "What people have written stays, and so do transcripts that somebody has saved, and backups."
)
NOTHING_DELETED = "Nothing was deleted."
SHARED = "Where others have asked in the same conversation, their questions and answers stay."
STOPPED_FIRST = "Runs in progress will be stopped first."
SETTINGS_STAY = "The channel's settings stay; /council-config resets them."
FOR_GOOD = "This can't be undone."
NOTHING = "There is nothing to delete."
ALL_OF_MINE = "everything you asked"
ALL_OF_CHANNEL = "this channel's whole history"
_WORKSPACES = {"discord": " on this server", "slack": " in this workspace"}


def all_of(name: str, platform: str | None) -> str:
    return f"everything {name} asked{_WORKSPACES.get(platform or '', '')}"


ONE_ANSWER = "\u201c{}\u201d"
ASK = "Delete {}?"


def extent(conversations: int, runs: int) -> str:
    counted = listing((count(conversations, "conversation"), count(runs, "run")))
    return f"That is {counted}: questions, answers, and everything the models wrote."


def revoked(tokens: Sequence[str]) -> str:
    return f"{count(len(tokens), 'token')} of programs will be revoked: {listing(tokens)}."


def read_by_others(questions: int, *, beside: bool) -> str:
    asked = f"{count(questions, 'question')} asked by others"
    said = f"Thread messages that were read for {asked} will be deleted"
    return f"{said}, too." if beside else f"{said}."


def done(what: str, left: Left | None = None) -> str:
    """Return what was deleted, and which of the council's messages are still there.

    `left` is `None` where there are no messages.
    """
    if left is None:
        return f"Deleted {what}."
    refused = sum(left.refused.values())
    if not (left.waiting or refused):
        return f"Deleted {what} and the council's messages about it."
    said = [f"Deleted {what}."]
    if left.waiting:
        still = "message is" if left.waiting == 1 else "messages are"
        said.append(f"{left.waiting:,} of the council's {still} still being deleted.")
    if refused:
        said.append(f"{count(refused, 'message')} couldn't be deleted: {listing(left.refused)}.")
        said.append(
            "The council tries again every hour for seven days; "
            "whoever may delete its messages there can remove them."
        )
    return " ".join(said)
