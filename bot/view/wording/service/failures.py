"""Why something failed: what happened and what to do; no raw exception, no stack trace, no apology."""

from collections.abc import Mapping

from bot.view.wording.service.budgets import USED_UP
from council.errors import AccountError, Cause, Failure, NoAnswers, RunForgotten, RunStopped
from council.text.characters import clip
from storage.errors import BudgetExceeded, ConversationNotFound, DocumentError, StorageError

UNEXPECTED = "Something unexpected went wrong. Try again; if it happens again, report this id: {}"

HELD = (
    "Paused: the council's data can't be written. Nothing is lost; the run resumes by itself once "
    "the data can be written again. The log says why."
)
HELD_CALLS = (
    "Paused: the council has too many connections open. Nothing is lost; the run resumes by itself once "
    "some of them are closed. The log says why."
)
INTERRUPTED = "Interrupted. Press Retry to continue; finished work is kept."

_CAUSES: Mapping[Cause, str] = {
    "key": "the provider refused the key",
    "credit": "the account has no credit left",
    "key_limit": "the key's spending limit is reached",
    "too_dear": "this request may cost more than the credit that is left",
    "forbidden": "this key may not use this model",
    "data_policy": "the account's privacy settings exclude this model",
    "moderated": "the provider's moderation refused the text",
    "not_found": "the provider doesn't know this model",
    "no_api": "there is no chat completions API at its address",
    "too_long": "the request is longer than the model can read",
    "bad_request": "the provider rejected the request",
    "format_refused": "the server takes no JSON schema",
    "rate_limited": "the provider was too busy",
    "unavailable": "the provider was unavailable",
    "no_server": "no server is running at its address",
    "descriptors": "the council had too many connections open",
    "connection": "no connection to the provider",
    "lost": "the connection was lost",
    "silence": "it was silent for too long",
    "deadline": "it took too long",
    "truncated": "the reply broke off",
    "malformed": "the reply couldn't be read",
    "too_large": "the reply was too large",
    "empty": "the reply was empty",
    "only_thoughts": "it thought until its length limit and wrote no answer",
    "filtered": "a content filter stopped the reply",
    "echoed_prompt": "it only repeated its instructions",
    "echoed_reviews": "it only repeated the reviews",
    "echoed_answer": "it only repeated another member's answer",
    "sent_ranking": "it sent a review instead of an answer",
    "changed_language": "it changed language",
    "declined": "it declined to answer",
    "over_budget": "the budget for this run is used up",
    "stopped": "it was stopped",
    "straggler": "too slow; the others went ahead",
    "stage_deadline": "the time for this stage ran out",
    "not_configured": "it is no longer configured",
    "endpoint_changed": "its endpoint has changed",
    "not_needed": "it was no longer needed",
}
_OPAQUE: frozenset[Cause] = frozenset({"no_server", "connection", "lost"})
"""Causes whose details are the HTTP client's words, for the log only."""
_GO_ON = "Press Retry to continue; finished work is kept."

# What to do first when every member fails for the same cause.
_ADVICE: Mapping[Cause, str] = {
    "no_server": "Start the models' server, or correct its address",
    "connection": "Check the network and OPENROUTER_BASE_URL",
    "not_found": "Check the model ids in COUNCIL_MEMBERS",
    "rate_limited": "Wait a minute",
    "unavailable": "Wait a minute",
    "over_budget": "Have the budget raised, under [budgets] in council.toml",
    "not_configured": "Put the members back into council.toml or COUNCIL_MEMBERS",
    "endpoint_changed": "Put the members' endpoints back into council.toml",
}
_TELL_THE_OPERATOR = "Ask again in a minute; if it happens again, tell whoever runs the council."
_DETAIL_LENGTH = 120


def explain(error: Exception, run_id: str, *, at_terminal: bool = False) -> str:
    """Say what happened and what to do; for an unknown error, show only the run's id.

    `causes` says why each member failed, one line per member. Only `at_terminal` are file paths shown;
    there is no button to press there.
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
            return "The question was deleted while it was being answered. None of it is kept."
        case ConversationNotFound():
            return f"There is no conversation {error.conversation_id}. Check the id."
        case DocumentError():
            return (
                f"The conversation's file can't be used: {_storage(error, at_terminal)}. "
                "Repair it or move it away."
            )
        case BudgetExceeded():
            return USED_UP
        case StorageError():
            advice = "" if at_terminal else f" {_TELL_THE_OPERATOR}"
            return f"The council's data can't be used: {_storage(error, at_terminal)}.{advice}"
        case _:
            return (
                "Something unexpected ended the run. Ask again; if it happens again, "
                f"give this run's id to whoever runs the bot: {run_id}"
            )


def _storage(error: StorageError, at_terminal: bool) -> str:
    if at_terminal:
        return _phrase(str(error))
    what, _, _ = error.told_in_chat.partition("; ")  # then comes what the operator can do
    return _phrase(what)


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
    """Say why each member gave nothing.

    `explain` reports an account's refusal once, and a call cancelled because another one ended the run
    has no cause of its own: neither is repeated here.
    """
    return {
        name: failure(why)
        for name, why in failures.items()
        if not why.is_account and why.cause != "not_needed"
    }


def failure(why: Failure) -> str:
    """Say why a call gave nothing, with its attempts and the start of the provider's own sentence.

    For a failed connection there are only the HTTP client's words, which people don't read.
    """
    said = cause(why)
    if why.attempts > 1:
        said += f", after {why.attempts} attempts"
    if (detail := _phrase(why.detail)) and why.cause not in _OPAQUE:
        said += f" (\u201c{clip(detail, _DETAIL_LENGTH)}\u201d)"
    return said


def cause(why: Failure) -> str:
    """Say in a few words why a call gave nothing."""
    return _CAUSES[why.cause]


def _phrase(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
