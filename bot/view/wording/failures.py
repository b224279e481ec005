"""Why a call or a run failed, for the asker, and what an operator can do about it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.errors import NothingRead
from council.errors import Failure, NoAnswers, RunForgotten, RunStopped
from council.profile import Member
from council.text import clip
from storage.errors import BudgetExceeded, ConversationNotFound, DocumentError, StorageError

UNEXPECTED = "Something unexpected went wrong. Try again; if it happens again, report this id: {}"


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
    shown; there is no button to press there, or for a program. `admin_knows`: an admin was notified.
    """
    retry = f"run: council retry {run_id}" if at_terminal else "press Continue."
    again = "Ask again to start over." if at_terminal else "Press Start over to ask again."
    go_on = "Press Continue: finished calls aren't paid twice."
    if at_terminal:
        go_on = f"To continue with the finished work, {retry}"
    if is_program:
        retry, go_on = "ask again.", (again := "Ask again to start over.")
    operator = "Whoever runs the council finds the cause in its log."
    if admin_knows:
        operator = "An admin of the council was told."
    match error:
        case NoAnswers():
            shown = remedies if at_terminal else ()
            advice = _advice(error.failures, shown, retry, operator)
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
            return (
                "The question, with the messages and files that are read with it, may cost more than "
                "the budget has room for, so no model was asked. Press Continue once there is room, or "
                "ask with less text."
            )
        case StorageError():
            advice = (
                ""
                if at_terminal
                else " Ask again in a minute; if it happens again, tell whoever runs the council."
            )
            return f"The council's data can't be used: {_storage(error, at_terminal)}.{advice}"
        case _:
            return (
                "Something unexpected ended the run. Ask again; if it happens again, "
                f"give this run's id to whoever runs the bot: {run_id}"
            )


def _storage(error: StorageError, at_terminal: bool) -> str:
    if at_terminal:
        return _phrase(str(error))
    what, _, _ = error.for_chat.partition("; ")  # then comes what the operator can do
    return _phrase(what)


def _advice(failures: Mapping[str, Failure], remedies: Sequence[str], retry: str, operator: str) -> str:
    if remedies:
        *before, last = remedies
        return f"{'. '.join(before)}. {last}. Then {retry}" if before else f"{last}, then {retry}"
    reasons = {why.reason for why in failures.values()}
    advice = {each.advice for each in reasons if each.fault != "operator"}
    if not advice:
        return f"Asking again won't help yet. {operator}"
    said = advice.pop().format(retry=retry) if len(advice) == 1 else "Ask again."
    return f"{operator} {said}" if any(each.fault == "operator" for each in reasons) else said


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

    What a provider says of keys, money and settings is for the operator.
    """
    said = f"{cause(why)}, after {why.attempts} attempts" if why.attempts > 1 else cause(why)
    return said if why.is_account or why.reason.quotes == "operators" else said + _quoted(why)


def _quoted(why: Failure) -> str:
    detail = _phrase(why.detail) if why.reason.quotes in ("everybody", "operators") else ""
    return f" (\u201c{clip(detail, _DETAIL_LENGTH)}\u201d)" if detail else ""


def cause(why: Failure) -> str:
    if why.cause == "only_thoughts" and why.limit:
        return f"it thought until its limit of {why.limit:,} tokens"
    return why.reason.clause


def _phrase(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


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
        address = re.sub("//[^/?#]*@", "//", member.endpoint).partition("?")[0]
    else:
        address = "its endpoint in council.toml"
    return Target(member.model, address, member.api_key_env, has_key=member.api_key_env is not None)


def remedy(why: Failure, where: Target) -> str | None:
    """Return what to do about a failure, without a full stop; `None` if no setting helps."""
    if why.cause == "key" and not where.has_key:
        of_it = f"api_key_env to the variable that holds the key for {where.address}"
        return f"Set {where.key or of_it}"
    account = f"the account of {where.key}" if where.has_key else f"the account at {where.address}"
    said = why.reason.remedy.format(
        key=where.key,
        account=account,
        owner=where.key if where.has_key else account,
        address=where.address,
        model=where.model,
    )
    return said or None


def reason(why: Failure, where: Target) -> str:
    """Return why a call gave nothing, with the provider's own sentence."""
    said = "the server wants a key" if why.cause == "key" and not where.has_key else cause(why)
    return said + _quoted(why)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do about a model's failure, without a full stop; `is_operators`: only they can do it."""

    model: str
    reason: str
    remedy: str
    is_operators: bool

    @property
    def sentence(self) -> str:
        return f"{self.model}: {self.reason}. {self.remedy}."

    def subject(self, day: str) -> str:
        """Return how the message to an admin begins, the same all day."""
        return f"Council, {day}: {self.remedy}."

    def message(self, day: str) -> str:
        return (
            f"{self.subject(day)} {self.model} gave no answer: {self.reason}. You read this once a day."
        )
