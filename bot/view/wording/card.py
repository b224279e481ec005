"""What the card says, from the first second to the answer or the error."""

from collections.abc import Iterable

DEMONSTRATION = (
    "Demonstration: the built-in model is tiny and often wrong. "
    "For real members, set OPENROUTER_API_KEY and COUNCIL_MEMBERS in .env."
)
ASKED = "Asked"
FINAL_ANSWER = "Final answer"
CUT_OFF = "The answer reached its length limit and ends here."
CUT_OFF_BELOW = "The answer is cut off at its length limit."
STOPPED_EARLY = "Stopped early, from the answers so far."
NO_ANSWER = "No answer"
NOT_SAVED = "An answer that could not be saved"
NOTHING_ADDED = "Nothing was added to the conversation."
ONLY_HERE = f"{NOTHING_ADDED} The answer is kept only here; copy it if you need it."

DISSENT = "Dissent"
ONLY = "Only one said"
CHANGED = "Review changed"
ASK = "Would change the answer"

WAITING = "waiting"
REVIEWED = "reviewed"
UNREADABLE = "reviewed, vote unreadable"
REVIEW_CUT_OFF = "reviewed, cut off before its vote"
CORRECTED = "corrected"
KEPT = "kept its answer"


def asked_by(asker: str | None) -> str:
    """Say who asked, before the question."""
    return f"{asker} asked" if asker else ASKED


def council(profile: str | None, members: str, *, rounds: int, strategy: str) -> str:
    """Say which council was asked."""
    several = "" if rounds == 1 else f", up to {rounds} rounds"
    combined = "" if strategy == "consensus" else f", strategy {strategy}"
    return f"Council \u201c{profile}\u201d, {members}{several}{combined}."


def queued(position: str) -> str:
    """Say how far back in the queue a run is."""
    return f"Waiting for its turn: {position} in the queue."


def criteria(names: object) -> str:
    """Name what the answers are weighed by."""
    return f"Criteria: {names}."


WEB = "Members search the web."


def answered(number: int, members: str) -> str:
    """Say how many of the members answered."""
    return f"{number} of {members} answered"


def only_answer(name: str) -> str:
    """Say that one model alone answered."""
    return f"Only {name} answered, so nobody reviewed it."


def replaced_chairman(name: str, why: str) -> str:
    """Say who wrote the answer instead of the chairman."""
    return f"Written by {name}{_instead(why)}."


def verbatim(name: str, why: str, *, ranked: bool) -> str:
    """Say that a member's answer stands in for the final one."""
    first = ", ranked first" if ranked else ""
    if not why:
        return f"No chairman available: {name}'s answer{first}, unedited."
    return f"{why}, so this is {name}'s answer{first}, unedited."


def _instead(why: str) -> str:
    return f"; {why}" if why else ""


def answered_by(model: str, name: str) -> str:
    """Say which model answered for another."""
    return f"The model {model} answered in place of {name}."


def failed(name: str, why: str) -> str:
    """Say that a call of somebody's failed."""
    return f"{name} failed ({why})"


def no_review(name: str, why: str) -> str:
    """Say that somebody gave no review."""
    return f"{name} gave no review ({why})"


def no_correction(name: str, why: str) -> str:
    """Say that somebody's answer could not be corrected."""
    return f"{name}'s correction failed ({why})"


def vote_lost(name: str, *, truncated: bool) -> str:
    """Say that somebody's vote isn't counted."""
    return f"{name}'s {'review was cut off before its vote' if truncated else 'vote was unreadable'}"


def were_stopped(members: str, what: str) -> str:
    """Count those who were only stopped."""
    return f"{members} {what} (they were stopped)"


def sentence(facts: Iterable[str]) -> str:
    """Join facts into a sentence; it may begin with a model's name."""
    said = "; ".join(facts)
    return f"{said}." if said else ""


def correction_failed(why: str, kept: str) -> str:
    """Say on a running card that an answer could not be corrected."""
    return f"correction failed ({why}); {kept} kept"
