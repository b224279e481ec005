"""What people read about past answers: lists, searches, one answer and its parts."""

from bot.view.wording.figures import count

OPEN = "Open"
"""The label of a link to where something is."""

NO_SUCH = "There is no such answer here."
SEVERAL = "Several match. Type more of the title, or the id from /council-history."
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


def shared(by: str) -> str:
    """Say who shares a past answer."""
    return f"{by} shared this from the council's past answers."


def results(words: str) -> str:
    """Head a search's results."""
    return f"Results for \u201c{words}\u201d"


def page(first: int, last: int, found: int, ranked: int) -> str:
    """Say which results these are; of many, only some are `ranked`."""
    if found >= ranked:
        return f"Results {first} to {last} of more than {ranked:,}; only the newest are ranked"
    if (first, last) == (1, found):
        return count(found, "result")
    some = f"Result {first}" if first == last else f"Results {first} to {last}"
    return f"{some} of {found}"


def too_many_words(most: int) -> str:
    """Say how long a search may be."""
    return f"That is more than {most} characters. Search for the words that matter."


def similar(wanted: str) -> str:
    """Head the answers that match what somebody typed."""
    return f"Answers like \u201c{wanted}\u201d"


def several(number: int, *, more: bool) -> str:
    """Ask somebody to choose, or to type more."""
    return f"{f'More than {number}' if more else 'Several'} match. Pick one, or type more."


def question(number: int, of: int) -> str:
    """Say which question of a conversation it is."""
    return f"Question {number} of {of}."


def asked_by(asker: str) -> str:
    """Say who asked."""
    return f"{ASKED} by {asker}."


def started_by(asker: str) -> str:
    """Say who began a conversation."""
    return f"Started by {asker}."


def members_left_out(shown: int, of: int) -> str:
    """Say that there are more members than buttons."""
    return f"Buttons show {shown} of {of} members; the transcript has them all."


def title(number: int, name: str) -> str:
    """Return an answer's title in a list."""
    return f"{number}. {name}"


def members(number: int) -> str:
    """Count those who answered."""
    return count(number, "member")


def answers(number: int) -> str:
    """Count a conversation's answers."""
    return count(number, "answer") if number else UNANSWERED


def short_id(conversation_id: str) -> str:
    """Return the beginning of a conversation's id, enough to tell it from others."""
    return f"id {conversation_id[:8]}"
