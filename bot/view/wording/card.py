"""What a card says: its stages, members, notes and footer, and what was read besides the question."""

from collections.abc import Iterable, Mapping

from bot.view.wording import figures
from bot.view.wording.figures import count, duration, listing, ordinal
from council.document.results import IterationState, TerminationReason
from council.events import ContextRead, HistoryShortened, Stage
from storage.index.statistics import Typical

DEMONSTRATION = (
    "Demonstration: the built-in model is tiny and often wrong. "
    "For real members, set OPENROUTER_API_KEY and COUNCIL_MEMBERS in .env."
)
ASKED = "Asked"
FINAL_ANSWER = "Final answer"
CUT_OFF = "The answer reached its length limit and ends here."
CUT_OFF_BELOW = "The answer is cut off at its length limit."
STOPPED_EARLY = "Stopped early: written from the answers so far."
NO_ANSWER = "No answer"
NOT_SAVED = "An answer that could not be saved"
NOTHING_ADDED = "Nothing was added to the conversation."
ONLY_HERE = f"{NOTHING_ADDED} The answer is kept only here; copy it if you need it."

DISSENT = "Dissent"
ONLY = "Only one said"
CHANGED = "Review changed"
ASK = "Would change the answer"
AS_CHAIRMAN = " as chairman"

WAITING = "waiting"
RUNNING = "running"
ANSWERING, REVIEWING, CORRECTING, WRITING = "answering", "reviewing", "correcting", "writing"
REVIEWED = "reviewed"
UNREADABLE = "reviewed, vote unreadable"
REVIEW_CUT_OFF = "reviewed, cut off before its vote"
CORRECTED = "corrected"
KEPT = "kept its answer"
ANSWER_FAILED = "failed"
REVIEW_FAILED = "gave no review"
CORRECTION_FAILED = "kept their answers"

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


DISSENT_BELOW = "dissent below"
OPEN_QUESTION = "one open question"
NO_OBJECTION = "no objection"


def disagree(number: int, of: int) -> str:
    return f"{number} of {of} disagree{'s' if number == 1 else ''}"


def were_corrected(names: list[str], of: int) -> str:
    return f"reviews corrected {listing(names) if len(names) < 3 else f'{len(names)} of {of}'}"


def all_kept(number: int) -> str:
    return f"{'both' if number == 2 else f'all {number}'} kept their answers"


CHANGED_IN = "Changed in {}'s answer"
BECAME = "\u201c{}\u201d \u2192 \u201c{}\u201d"
PART_OF = "{} of {}"


def asked_by(asker: str | None) -> str:
    return f"{asker} asked" if asker else ASKED


def council(profile: str | None, members: str, *, rounds: int, strategy: str) -> str:
    """Return which council was asked; the one called `default` needs no name."""
    name = "" if profile in (None, "default") else f"Council \u201c{profile}\u201d, "
    several = "" if rounds == 1 else f", up to {rounds} rounds"
    combined = "" if strategy == "consensus" else f", strategy {strategy}"
    return f"{name}{members}{several}{combined}."


def role(number: int, *, consultants: bool) -> str:
    return count(number, "consultant" if consultants else "member")


def queued(position: int, *, is_exact: bool) -> str:
    """Return how far back in the queue a run is."""
    place = ordinal(position) if is_exact else f"among the first {position:,}"
    return f"Waiting for its turn: {place} in the queue."


def expected(typical: Typical | None, estimated: float) -> str:
    said = figures.expected(typical, estimated)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


CRITERIA = "Criteria: {}."
WEB = "Members search the web."
ANSWERED = "{} of {} answered"
ONLY_ANSWER = "Only {} answered, so nobody reviewed it."


def replaced_chairman(name: str, why: str) -> str:
    return f"Written by {name}{_instead(why)}."


def verbatim(name: str, why: str, *, ranked: bool) -> str:
    """Report that a member's answer replaces the final one."""
    first = ", ranked first" if ranked else ""
    if not why:
        return f"No chairman available: {name}'s answer{first}, unedited."
    as_member = " as a member" if f"{name}{AS_CHAIRMAN}" in why else ""
    return f"{why}, so this is {name}'s answer{as_member}{first}, unedited."


def _instead(why: str) -> str:
    return f"; {why}" if why else ""


ANSWERED_BY = "The model {} answered in place of {}."
MEMBER_LOST = "{} failed ({})"
NO_REVIEW = "{} gave no review ({})"
NO_CORRECTION = "{}'s correction{s} failed ({})"


VOTES_LOST = {
    False: "{}'s vote{s} {were} unreadable",
    True: "{}'s review{s} {were} cut off before the vote",
}
"""By whether the review was cut off."""
WERE_STOPPED = "{} {} (they were stopped)"
NOTHING = "It has no answer."
NO_FINAL = "It has no final answer."


def sentence(facts: Iterable[str]) -> str:
    """Join facts into a sentence; it may begin with a model's name."""
    said = "; ".join(facts)
    return f"{said}." if said else ""


NOT_CORRECTED = "not corrected: the run was stopped"
FELL_BACK = "correction failed ({}); {} kept"


def agreement(word: str | None) -> str:
    return _AGREEMENT.get(word or "", "")


def rounds(iteration: IterationState) -> str:
    """Return how many rounds there were, and why no further one."""
    reason = iteration.termination_reason
    why = _NO_FURTHER_ROUND[reason] if reason else ""
    held = len(iteration.rounds)
    return f"{count(held, 'review round') if held else 'no review rounds'}{why}"


BY = f"{ASKED} by {{}}."


def stage(name: str, number: int) -> str:
    return f"{name}, round {number}" if number > 1 else name


def stage_done(seconds: float, given: int, of: int) -> str:
    return f"done in {duration(seconds)}{f', {given} of {of}' if given < of else ''}"


STAGE_RUNNING = f"{RUNNING}, {{}} of {{}} done"
IS_DOING = "{} is {}"
HAS_WRITTEN = "{} has written the answer"
MEMBER_FAILED = "failed: {}"


def member_answered(seconds: float | None, *, cut_off: bool) -> str:
    """Return what a member's line says once it answered."""
    took = "" if seconds is None else f" in {duration(seconds)}"
    return f"answered{took}{' (cut off)' if cut_off else ''}"


MEMBER_NOT_REVIEWED = "no review ({})"


def kept_answer(number: int) -> str:
    return "first answer" if number == 1 else "answer of the round before"


def again(what: str, seconds: float, why: str) -> str:
    """Report that a call is repeated, and when."""
    when = f"again in {duration(seconds)}" if seconds > 0 else "again"
    return f"{what} {when} ({why})"


def more(number: int) -> str:
    return f"{number} more"


def so_far(effort: Iterable[str]) -> str:
    spent, more, later = ", ".join(effort).partition(figures.MORE)
    return f"{spent} so far{more}{later}"


CHAIRMAN = "chairman {}"
STRATEGY = "strategy {}"
BEST_BY_CRITERIA = "best by criteria: {} ({:.1f} of 10)"


def disqualified(name: str, must_haves: Iterable[str]) -> str:
    return f"{name} disqualified ({listing(must_haves)})"


def run(run_id: str) -> str:
    return f"run {run_id[:8]}"


IN_SHORT, APPROACH = "In short", "Approach"
PROS, CONS = "Pros", "Cons"
ALTERNATIVES, CAVEATS, REFERENCES = "Alternatives", "Caveats", "References"
CONFIDENCE, UNCERTAIN = "Confidence", "Uncertain because"
DEBATE = "Debate"
POSITION_CHANGED, POSITION_KEPT = "says it changed its position", "keeps its position"
OBJECTS, TOOK_OVER = "Objects to", "Adopted"

SCORE = "{} of {}"
SCORE_BEFORE = " (before: {})"
OBJECTION = "{} ({}): {}"
IDEA = "{}: {}"
THREAD = "The thread that was read with it"


def conversation(shortened: HistoryShortened) -> str:
    """Return how much of a long conversation a follow-up's prompts repeat."""
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
    """Return how much was read of the thread in which the question was asked."""
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


def took_too_long(platform: str) -> str:
    return f"{platform} took too long"
