"""Why a call or a run failed, for whoever asked, and what an operator can do about it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.errors import NothingRead
from bot.view.wording.budgets import USED_UP
from council.errors import Cause, Failure, NoAnswers, RunForgotten, RunStopped
from council.profile import Member
from council.text import clip
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
INTERRUPTED = "Interrupted. Press Continue: finished calls aren't paid twice."

_CAUSES: Mapping[Cause, str] = {
    "key": "the provider refused the key",
    "no_key": "its key isn't set",
    "credit": "the account has no credit left",
    "key_limit": "the key's spending limit is reached",
    "too_dear": "it may cost more than the credit that is left",
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
    "only_thoughts": "it thought until its token limit",
    "filtered": "a content filter stopped the reply",
    "echoed_prompt": "it only repeated its instructions",
    "echoed_reviews": "it only repeated the reviews",
    "echoed_answer": "it only repeated another member's answer",
    "sent_ranking": "it sent a review instead of an answer",
    "changed_language": "it changed language",
    "declined": "it declined to answer",
    "unanswered": "it didn't answer the objections in the form that it was asked for",
    "too_small": "the model is too small to check objections",
    "over_budget": "the budget for this run is used up",
    "stopped": "it was stopped",
    "straggler": "too slow; the others went ahead",
    "stage_deadline": "the time for this stage ran out",
    "not_configured": "it is no longer configured",
    "endpoint_changed": "its endpoint has changed",
    "not_needed": "it was no longer needed",
}
_QUOTES_NOBODY: frozenset[Cause] = frozenset({"no_server", "connection", "lost"})
"""Causes whose details are the HTTP client's words, for the log only."""
_PRIVATE: frozenset[Cause] = frozenset({"too_dear", "data_policy"})
"""Causes of a single call whose details are about the account."""
_GO_ON = "Press Continue: finished calls aren't paid twice."

OPERATORS: frozenset[Cause] = frozenset(
    {
        "key",
        "no_key",
        "credit",
        "key_limit",
        "too_dear",
        "forbidden",
        "data_policy",
        "not_found",
        "no_api",
        "bad_request",
        "no_server",
        "connection",
        "only_thoughts",
        "not_configured",
        "endpoint_changed",
    }
)
"""Causes that nobody but an operator can remove."""
_WAIT = "Wait a minute, then {retry}"
_REPHRASE = "Ask again in other words."
_ADVICE: Mapping[Cause, str] = {
    "rate_limited": _WAIT,
    "unavailable": _WAIT,
    "moderated": _REPHRASE,
    "filtered": _REPHRASE,
    "too_long": "Ask again with less text.",
    "over_budget": "Have the budget raised, then {retry}",
}
"""What whoever asked can do first."""
_ASK_AGAIN = "Ask again."
_IN_ITS_LOG = "Whoever runs the council finds the cause in its log."
_ADMIN_KNOWS = "An admin of the council was told."
_TELL_THE_OPERATOR = "Ask again in a minute; if it happens again, tell whoever runs the council."
_DETAIL_LENGTH = 120


def explain(
    error: Exception,
    run_id: str,
    *,
    at_terminal: bool = False,
    is_program: bool = False,
    remedies: Sequence[str] = (),
    admin_knows: bool = False,
) -> str:
    """Return what happened and what to do; for an unknown error, show only the run's id.

    The error knows why each member failed. Only `at_terminal` are file paths and operators' `remedies`
    told; there is no button to press there, or for a program. `admin_knows` says that an admin was told.
    """
    retry = f"run: council retry {run_id}" if at_terminal else "press Continue."
    again = "Ask again to start over." if at_terminal else "Press Start over to ask again."
    go_on = f"To continue with the finished work, {retry}" if at_terminal else _GO_ON
    if is_program:
        retry, go_on = "ask again.", (again := "Ask again to start over.")
    operator = _ADMIN_KNOWS if admin_knows else _IN_ITS_LOG
    match error:
        case NoAnswers():
            told = remedies if at_terminal else ()
            advice = _advice(error.failures, told, retry, operator)
            return f"No member of the council answered. {advice}"
        case RunStopped(enough=True):
            return f"The run was stopped before there was a final answer. {go_on}"
        case RunStopped():
            return f"The run was stopped before there were enough answers. {again}"
        case NothingRead():
            return str(error)
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


def _advice(failures: Mapping[str, Failure], remedies: Sequence[str], retry: str, operator: str) -> str:
    if remedies:
        *before, last = remedies
        return f"{'. '.join(before)}. {last}. Then {retry}" if before else f"{last}, then {retry}"
    causes: set[Cause] = {why.cause for why in failures.values()}
    advice = {_ADVICE.get(each, _ASK_AGAIN) for each in causes - OPERATORS}
    if not advice:
        return f"Asking again won't help yet. {operator}"
    first = advice.pop().format(retry=retry) if len(advice) == 1 else _ASK_AGAIN
    return f"{first} {operator}" if causes & OPERATORS else first


def causes(failures: Mapping[str, Failure]) -> list[tuple[tuple[str, ...], str]]:
    """Return why members gave nothing: whom it concerns, and why.

    What is wrong with an account is said once for all its members; any other cause is one member's own.
    """
    said: dict[object, tuple[tuple[str, ...], str]] = {}
    for name, why in failures.items():
        key = why.cause if why.is_account else (name,)
        names, _ = said.get(key, ((), ""))
        said[key] = (*names, name), failure(why)
    return [*said.values()]


def failure(why: Failure) -> str:
    """Return why a call gave nothing, with its attempts and the start of the provider's own sentence.

    What a provider says of keys, money and settings is for the operator. For a failed connection there
    are only the HTTP client's words, which people don't read.
    """
    said = cause(why)
    if why.attempts > 1:
        said += f", after {why.attempts} attempts"
    return said if why.is_account or why.cause in _PRIVATE else said + quoted(why)


def quoted(why: Failure) -> str:
    """Quote the start of the provider's own sentence, in brackets; nothing where there is none."""
    detail = "" if why.cause in _QUOTES_NOBODY else _phrase(why.detail)
    return f" (\u201c{clip(detail, _DETAIL_LENGTH)}\u201d)" if detail else ""


def cause(why: Failure) -> str:
    """Return why a call gave nothing, in a few words."""
    if why.cause == "only_thoughts" and why.limit:
        return f"it thought until its limit of {why.limit:,} tokens"
    return _CAUSES[why.cause]


def _phrase(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


_PASSWORD = re.compile(r"//[^/?#]*@")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a call goes, in the words of the configuration.

    `key` is the variable for the key, `None` if none is named; `has_key` says whether one is sent.
    """

    model: str
    address: str
    key: str | None
    has_key: bool

    @property
    def account(self) -> str:
        return self.key or self.address


def target(member: Member, *, has_key: bool) -> Target:
    """Return where a member's call goes; `has_key` says whether the council's own key is set."""
    if member.endpoint_id is None:
        return Target(
            member.model, "the address in OPENROUTER_BASE_URL", "OPENROUTER_API_KEY", has_key=has_key
        )
    if member.endpoint:  # both a password and a query may hold a secret
        address = _PASSWORD.sub("//", member.endpoint).partition("?")[0]
    else:
        address = "its endpoint in council.toml"
    return Target(member.model, address, member.api_key_env, has_key=member.api_key_env is not None)


_REMEDIES: Mapping[Cause, str] = {
    "key": "Correct {key}",
    "no_key": "Set {key}",
    "credit": "Add credit to {account}",
    "key_limit": "Raise the spending limit of {owner}",
    "too_dear": "Add credit to {account}, or set a smaller max_tokens for {model}",
    "forbidden": "Give {owner} access to {model}, or configure another model",
    "data_policy": "Change the privacy settings of {account}, or configure a model other than {model}",
    "not_found": "Correct the model id {model}",
    "no_api": "Correct {address} (most addresses end in /v1)",
    "bad_request": "Run council doctor --live, name its server's dialect, or configure a model other"
    " than {model}",
    "no_server": "Start the server at {address}, or correct that address",
    "connection": "Check the network, {address} and any proxy (HTTPS_PROXY)",
    "silence": "If {model} is only slow, raise idle_timeout",
    "deadline": "If {model} is only slow, raise call_deadline",
    "only_thoughts": "Raise max_tokens for {model}, or lower its reasoning",
    "over_budget": "Raise the limit of a run: under [budgets] in council.toml, or a program's max_cost",
    "not_configured": "Put {model} back into council.toml or COUNCIL_MEMBERS",
    "endpoint_changed": "Put the endpoint of {model} back into council.toml",
}


def remedy(why: Failure, where: Target) -> str | None:
    """Return what to do about a failure, without a full stop; `None` if no setting helps."""
    if why.cause == "key" and not where.has_key:
        return (
            f"Set {where.key}"
            if where.key
            else f"Set api_key_env to the variable that holds the key for {where.address}"
        )
    if (said := _REMEDIES.get(why.cause)) is None:
        return None
    account = f"the account of {where.key}" if where.has_key else f"the account at {where.address}"
    return said.format(
        key=where.key,
        account=account,
        owner=where.key if where.has_key else account,
        address=where.address,
        model=where.model,
    )


def reason(why: Failure, where: Target) -> str:
    """Return why a call gave nothing, with the provider's own sentence."""
    said = "the server wants a key" if why.cause == "key" and not where.has_key else cause(why)
    return said + quoted(why)


def told(why: Failure, where: Target) -> str | None:
    """Return why a model gave nothing and what to do; `None` if no setting helps."""
    fix = remedy(why, where)
    return f"{where.model}: {reason(why, where)}. {fix}." if fix else None


@dataclass(frozen=True, slots=True)
class OperatorCause:
    """Why a model gave nothing, and the `remedy` that only an operator has, without a full stop."""

    model: str
    reason: str
    remedy: str

    def subject(self, day: str) -> str:
        """Return how the message begins, the same all day."""
        return f"Council, {day}: {self.remedy}."

    def message(self, day: str) -> str:
        return (
            f"{self.subject(day)} {self.model} gave no answer: {self.reason}. You read this once a day."
        )


def operator_cause(why: Failure, where: Target) -> OperatorCause | None:
    """Return what an operator is told of a failure; `None` if others can do something, too."""
    fix = remedy(why, where)
    if fix is None or why.cause not in OPERATORS:
        return None
    return OperatorCause(where.model, reason(why, where), fix)
