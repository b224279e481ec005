"""What a card says: its stages, members, notes and footer, and what was read besides the question."""

from collections.abc import Iterable, Mapping

from bot.view.wording.figures import MORE, count, listing
from council.document.results import IterationState, TerminationReason
from council.events import ContextRead, HistoryShortened, Stage

DEMONSTRATION = (
    "Demonstration: the built-in model is tiny and often wrong. "
    "For real members, set OPENROUTER_API_KEY and COUNCIL_MEMBERS in .env."
)
ASKED = "Asked"
NOTHING_ADDED = "Nothing was added to the conversation."

DISSENT = "Dissent"
ONLY = "Only one said"
CHANGED = "Review changed"
ASK = "Would change the answer"
AS_CHAIRMAN = " as chairman"
RUNNING = "running"

IN_THREAD, BELOW = "continues in the thread", "continues below"
"""What a card says where it ends before its answer does."""

STAGE_NAMES: Mapping[Stage, str] = {
    "stage1": "Answers",
    "stage2": "Reviews",
    "stage2_5": "Corrections",
    "stage3": "Final answer",
}

_AGREEMENT: Mapping[str, str] = {
    "strong": "reviewers ranked alike",
    "split": "reviewers ranked differently",
}

_NO_FURTHER_ROUND: Mapping[TerminationReason, str] = {
    TerminationReason.MAX_ROUNDS_REACHED: ", the limit",
    TerminationReason.MODELS_CONVERGED: "; then no answer changed",
    TerminationReason.NO_SIGNIFICANT_CHANGES: "; then the answers had settled",
    TerminationReason.CONTEXT_LIMIT_REACHED: "; then the token budget was used up",
    TerminationReason.USER_STOPPED: "; then the run was stopped",
    TerminationReason.ERROR_OCCURRED: "; then no correction came back",
}


def verbatim(name: str, why: str, *, ranked: bool) -> str:
    first = ", ranked first" if ranked else ""
    if not why:
        return f"No chairman available: {name}'s answer{first}, unedited."
    as_member = " as a member" if f"{name}{AS_CHAIRMAN}" in why else ""
    return f"{why}, so this is {name}'s answer{as_member}{first}, unedited."


MEMBER_LOST = "{} failed ({})"


VOTES_LOST = {
    False: "{}'s vote{s} {were} unreadable",
    True: "{}'s review{s} {were} cut off before the vote",
}
"""By whether the review was cut off."""


def sentence(facts: Iterable[str]) -> str:
    said = "; ".join(facts)
    return f"{said}." if said else ""


def agreement(word: str | None) -> str:
    return _AGREEMENT.get(word or "", "")


def rounds(iteration: IterationState) -> str:
    reason = iteration.termination_reason
    why = _NO_FURTHER_ROUND[reason] if reason else ""
    held = len(iteration.rounds)
    return f"{count(held, 'review round') if held else 'no review rounds'}{why}"


def kept_answer(number: int) -> str:
    return "first answer" if number == 1 else "answer of the round before"


def so_far(effort: Iterable[str]) -> str:
    spent, more, later = ", ".join(effort).partition(MORE)
    return f"{spent} so far{more}{later}"


def conversation(shortened: HistoryShortened) -> str:
    read: list[str] = []
    if shortened.cut:
        read.append("the beginning of the last answer")
    elif shortened.answers:
        last = "answer" if shortened.answers == 1 else f"{shortened.answers:,} answers"
        read.append(f"the last {last}")
    if shortened.titles:
        titles = "title" if shortened.titles == 1 else "titles"
        read.append(f"the {titles} of {count(shortened.titles, 'earlier question')}")
    said = (
        "The conversation is too long to repeat in full. "
        f"The members read {listing(read or ['none of it'])}."
    )
    if not shortened.left_out or not read:
        return said
    were = "was" if shortened.left_out == 1 else "were"
    return f"{said} {count(shortened.left_out, 'question')} before that {were} left out."


def thread(read: ContextRead) -> str:
    if read.unread:
        return f"Read only the question, not this thread: {read.unread}."
    messages = count(read.messages, "message")
    said = f"Read {messages} of this thread."
    if read.left_out or read.more:
        which = "the last message" if read.messages == 1 else f"the last {messages}"
        is_one = read.left_out == 1 and not read.more
        ones, were = ("one", "was") if is_one else ("ones", "were")
        or_more = "or more " if read.more else ""
        left_out = f"{read.left_out:,} {or_more}older" if read.left_out else "older"
        said = f"Read {which} of this thread; {left_out} {ones} {were} left out."
    if not read.files_left_out:
        return said
    were = "was" if read.files_left_out == 1 else "were"
    return f"{said} {count(read.files_left_out, 'file')} {were} left out."
