"""Errors as sentences and numbers as words, for people to read or hear: nowhere else.

What happened, what to do, nothing more: no raw exception, no stack trace, no apology.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from council.document.iteration import IterationState, TerminationReason
from council.errors import AccountError, Cause, Failure, NoAnswers, RunForgotten, RunStopped
from council.events import ContextRead, HistoryShortened, Stage
from council.usage import Usage
from storage.errors import ConversationNotFound, DocumentError, StorageError
from storage.statistics import Spent

NO_COST = "no cost"

UNEXPECTED = "Something unexpected went wrong. Try again; if it happens again, report this id: {}"

HELD = (
    "Paused: the council's data can't be written. Nothing is lost; the run resumes by itself once "
    "it can be. The log says why."
)
INTERRUPTED = "Interrupted. Press Retry to continue; finished work is kept."

STAGE_NAMES: Mapping[Stage, str] = {
    "stage1": "Answers",
    "stage2": "Reviews",
    "stage2_5": "Corrections",
    "stage3": "Final answer",
}

_CAUSES: Mapping[Cause, str] = {
    "key": "the provider refused the key",
    "credit": "the account has no credit left",
    "forbidden": "the provider refused this model or text",
    "not_found": "the provider doesn't know this model",
    "bad_request": "the provider rejected the request",
    "rate_limited": "the provider was too busy",
    "unavailable": "the provider was unavailable",
    "connection": "no connection to the provider",
    "deadline": "it took too long",
    "truncated": "the reply broke off",
    "malformed": "the reply couldn't be read",
    "too_large": "the reply was too large",
    "empty": "the reply was empty",
    "filtered": "a content filter stopped the reply",
    "stopped": "it was stopped",
    "straggler": "too slow; the others went ahead",
    "stage_deadline": "the time for this stage ran out",
    "not_configured": "it is no longer configured",
    "endpoint_changed": "its endpoint has changed",
    "not_needed": "it was no longer needed",
}

_GO_ON = "Press Retry to continue; finished work is kept."
# What to do first when every member fails for the same cause.
_ADVICE: Mapping[Cause, str] = {
    "connection": "Check the network and OPENROUTER_BASE_URL",
    "not_found": "Check the model ids in COUNCIL_MEMBERS",
    "rate_limited": "Wait a minute",
    "unavailable": "Wait a minute",
    "not_configured": "Put the members back into council.toml or COUNCIL_MEMBERS",
    "endpoint_changed": "Put the members' endpoints back into council.toml",
}

_AGREEMENT: Mapping[str, str] = {
    "strong": "reviewers ranked alike",
    "mixed": "reviewers ranked partly alike",
    "split": "reviewers ranked differently",
    "too few shared votes": "",
}

_NO_FURTHER_ROUND: Mapping[TerminationReason, str] = {
    TerminationReason.MAX_ROUNDS_REACHED: ", the limit",
    TerminationReason.MODELS_CONVERGED: "; then no answer changed",
    TerminationReason.NO_SIGNIFICANT_CHANGES: "; then the answers had settled",
    TerminationReason.CONTEXT_LIMIT_REACHED: "; then the token budget was used up",
    TerminationReason.USER_STOPPED: "; then the run was stopped",
    TerminationReason.ERROR_OCCURRED: "; then no correction came back",
}

_DETAIL_LENGTH = 120
_NAME_LENGTH = 32
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def explain(error: Exception, run_id: str, *, at_terminal: bool = False) -> str:
    """Say what happened and what to do; an unknown error shows the run's id and nothing else of it.

    Why each member failed isn't said here: `causes` gives that, a line a member. Where a file lies
    is said `at_terminal` alone, where there is also no button to press.
    """
    retry = f"run: council retry {run_id}" if at_terminal else "press Retry."
    match error:
        case AccountError():
            return f"{_account(error)}, then {retry}"
        case NoAnswers():
            return f"No member of the council answered. {_advice(error.failures, retry)}"
        case RunStopped(enough=True):
            go_on = f"To continue with the finished work, {retry}" if at_terminal else _GO_ON
            return f"The run was stopped before there was a final answer. {go_on}"
        case RunStopped():
            return "The run was stopped before there were enough answers. Ask again to start over."
        case RunForgotten():
            return "The question was deleted while it was being answered. Nothing of it is kept."
        case ConversationNotFound():
            return f"There is no conversation {error.conversation_id}. Check the id."
        case DocumentError():
            return (
                f"The conversation's file can't be used: {_storage(error, at_terminal)}. "
                "Repair it or move it away."
            )
        case StorageError():
            return f"The council's data can't be used: {_storage(error, at_terminal)}."
        case _:
            return (
                "Something unexpected ended the run. Ask again; if it happens again, "
                f"give this run's id to whoever runs the council: {run_id}"
            )


def _storage(error: StorageError, at_terminal: bool) -> str:
    return _phrase(str(error) if at_terminal else error.told_in_chat)


def _advice(failures: Mapping[str, Failure], retry: str) -> str:
    shared: set[Cause] = {why.cause for why in failures.values()}
    first = _ADVICE.get(shared.pop()) if len(shared) == 1 else None
    return f"{first}, then {retry}" if first else "Ask again."


def _account(error: AccountError) -> str:
    if error.failure.cause == "credit":
        return (
            "The account at the model provider has no credit left. "
            f"Add credit to the account of {error.member or 'OPENROUTER_API_KEY'}"
        )
    if error.member:
        return f"The model provider refused the key of {error.member}. Check its api_key_env"
    return "The model provider refused the key. Check OPENROUTER_API_KEY in .env"


def causes(failures: Mapping[str, Failure]) -> dict[str, str]:
    """Say of each member why it gave nothing.

    An account's refusal is said once, by `explain`, and what was called off because another call
    ended the run has no cause of its own: neither is repeated here.
    """
    return {
        name: failure(why)
        for name, why in failures.items()
        if not why.is_account and why.cause != "not_needed"
    }


def failure(why: Failure) -> str:
    """Say why a call gave nothing, with its attempts and a little of the provider's own sentence.

    What is known of a lost connection are the HTTP client's words: they are in the log.
    """
    said = cause(why)
    if why.attempts > 1:
        said += f", after {why.attempts} attempts"
    if (detail := _phrase(why.detail)) and why.cause != "connection":
        said += f" (\u201c{clip(detail, _DETAIL_LENGTH)}\u201d)"
    return said


def cause(why: Failure) -> str:
    """Say in a few words why a call gave nothing."""
    return _CAUSES[why.cause]


def _phrase(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def duration(seconds: float) -> str:
    """Say how long: `0.4 s`, `12 s`, `1 min 5 s`, `2 h 3 min`."""
    if seconds < 0.95:
        return f"{max(seconds, 0.1):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two_units(whole // 60, "min", whole % 60, "s")
    return _two_units(whole // 3600, "h", whole % 3600 // 60, "min")


def _two_units(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large} {unit} {small} {smaller}" if small else f"{large} {unit}"


def money(usage: Usage) -> str:
    """Say what was paid, and where a price is unknown that the sum isn't the whole."""
    if not usage.unpriced:
        return _dollars(usage.cost) if usage.cost else NO_COST
    calls = count(usage.unpriced, "call")
    if not usage.cost:
        return f"{calls} without a known price"
    return f"{_dollars(usage.cost)} plus {calls} without a known price"


def runs(spent: Spent) -> str:
    """Count a channel's runs by how they ended."""
    return (
        f"{count(spent.answered, 'answer')}, {count(spent.failed, 'run')} failed, "
        f"{count(spent.stopped, 'run')} stopped"
    )


def paid(spent: Spent) -> str:
    """Say what all of a channel's runs came to; some calls may have had no known price."""
    if spent.cost:
        return f"{_dollars(spent.cost)} where prices are known"
    return "no known cost" if spent.tokens else NO_COST


def _dollars(amount: float) -> str:
    if amount >= 1:
        return f"${amount:,.2f}"
    if amount < 0.0001:
        return "under $0.0001"
    whole, _, cents = f"{amount:.4f}".partition(".")
    return f"${whole}.{cents.rstrip('0').ljust(2, '0')}"


def tokens(usage: Usage) -> str:
    """Say how many tokens: `1,234 tokens`, `about 1,234 tokens (estimated)`."""
    number = count(usage.tokens, "token")
    return number if usage.source == "measured" else f"about {number} (estimated)"


def count(number: int, thing: str) -> str:
    """Count things: `1 call`, `2 calls`, `1,234 tokens`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def ordinal(place: int) -> str:
    """Return a place its ending: `1st`, `2nd`, `11th`."""
    ending = "th" if place % 100 in (11, 12, 13) else _ORDINALS.get(place % 10, "th")
    return f"{place}{ending}"


def history(shortened: HistoryShortened) -> str:
    """Say what of a long conversation a follow-up's prompts repeat."""
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


def context(read: ContextRead) -> str:
    """Say what was read of the thread in which the question was asked."""
    if read.unread:
        return f"Read only the question, not this thread: {read.unread}."
    messages = count(read.messages, "message")
    said = f"Read {messages} of this thread."
    if read.left_out or read.more:
        which = "the last message" if read.messages == 1 else f"the last {messages}"
        left_out = f"{read.left_out:,} older" if read.left_out else "older ones"
        were = "was" if read.left_out == 1 and not read.more else "were"
        or_more = " or more" if read.left_out and read.more else ""
        said = f"Read {which} of this thread; {left_out}{or_more} {were} left out."
    if not read.files_left_out:
        return said
    were = "was" if read.files_left_out == 1 else "were"
    return f"{said} {count(read.files_left_out, 'file')} {were} left out."


def agreement(word: str) -> str:
    """Say how alike the reviewers ranked; nothing where that can't be measured."""
    return _AGREEMENT[word]


def rounds(iteration: IterationState) -> str:
    """Say how many rounds there were, and why no further one."""
    reason = iteration.termination_reason
    why = _NO_FURTHER_ROUND[reason] if reason else ""
    held = len(iteration.rounds)
    return f"{count(held, 'review round') if held else 'no review round'}{why}"


def position(mean: float | None) -> str:
    """Return a mean position: `1`, `1.33`; a dash where there is none."""
    return "\u2013" if mean is None else f"{mean:.2f}".rstrip("0").rstrip(".")


def listing(items: Iterable[str]) -> str:
    """Join as people do: `a`, `a and b`, `a, b and c`."""
    *firsts, last = items
    return f"{', '.join(firsts)} and {last}" if firsts else last


def moment(timestamp: str) -> str:
    """Write a document's timestamp for people: `2026-01-20 10:30 UTC`; unchanged if it is none."""
    try:
        return when(datetime.fromisoformat(timestamp))
    except ValueError:
        return timestamp


def when(moment: datetime) -> str:
    """Write a moment for readers whose time isn't known."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def clip(text: str, length: int) -> str:
    """Shorten to `length` characters, at a word's end where there is one."""
    if len(text) <= length:
        return text
    cut = text[: length - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}\u2026"


def short_names(members: Iterable[str], personas: Mapping[str, str] | None = None) -> dict[str, str]:
    """Call members what people call them: `gpt-5` for `openai/gpt-5`, its persona in brackets.

    A model keeps its provider where two would otherwise read alike.
    """
    names = {member: _short_name(member, (personas or {}).get(member)) for member in members}
    twice = {name for name, times in Counter(names.values()).items() if times > 1}
    return {member: member if name in twice else name for member, name in names.items()}


def _short_name(member: str, persona: str | None) -> str:
    model, _, seat = member.partition("#")
    base = model.rsplit("/", 1)[-1] or model
    if len(base) > _NAME_LENGTH:
        # Families stand at the front of an id, versions at its end; the middle says least.
        base = f"{base[: _NAME_LENGTH - 11]}\u2026{base[-10:]}"
    said = persona or seat
    return f"{base} ({said})" if said else base
