"""Everything that can go wrong in a council, as a tree.

    CouncilError
    ├── ModelError            one call failed; the run continues
    └── RunError              the run ends without an answer
        ├── NoAnswers         not one member answered
        ├── RunStopped        somebody pressed Stop before there was a final answer
        └── RunForgotten      the question was deleted while it was being answered

A `Failure` is the same fact as data: it is journalled, replayed, counted and shown.
What a cause means, what people read of it and what follows is its row of `CAUSES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from council.usage import Usage

Cause = Literal[
    "key", "no_key", "credit", "key_limit", "no_api", "not_configured", "endpoint_changed", "no_server",
    "connection", "too_dear", "forbidden", "data_policy", "not_found", "bad_request", "only_thoughts",
    "moderated", "filtered", "too_long", "rate_limited", "unavailable", "lost", "silence", "truncated",
    "malformed", "too_large", "format_refused", "empty", "echoed_prompt", "echoed_reviews",
    "echoed_answer", "sent_ranking", "changed_language", "declined", "unanswered", "too_small",
    "deadline", "stage_deadline", "straggler", "descriptors", "over_budget", "stopped", "not_needed",
]  # fmt: skip

Concern = Literal["account", "model", "text", "request"]
"""Whom a refusal concerns: all calls of the account, all calls to the model, this text, or this call."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause: whose fault it is, what people read of it, and what follows from it.

    `clause` is for everybody, `remedy` for operators, and `advice` for the asker, unless the fault is an
    operator's. `again`: it may be gone a moment later, so the call is made again. `quotes` says who
    reads the detail: what concerns the account is for operators, and the HTTP client's words are for the
    log, unless a server had sent something that they may quote.
    """

    fault: Literal["operator", "asker", "provider", "model", "council"]
    clause: str
    remedy: str = ""
    concerns: Concern | None = None
    advice: str = "Ask again."
    again: bool = False
    quotes: Literal["everybody", "operators", "log", "nobody"] = "everybody"


_WAIT, _REPHRASE = "Wait a minute, then {retry}", "Ask again in other words."
CAUSES: Mapping[Cause, Reason] = {
    "key": Reason("operator", "the provider refused the key", "Correct {key}", "account"),
    "no_key": Reason("operator", "its key isn't set", "Set {key}", "account"),
    "credit": Reason("operator", "the account has no credit left", "Add credit to {account}", "account"),
    "key_limit": Reason("operator", "the key's spending limit is reached",
        "Raise the spending limit of {owner}", "account"),
    "no_api": Reason("operator", "there is no chat completions API at its address",
        "Correct {address} (most addresses end in /v1)", "account"),
    "not_configured": Reason("operator", "it is no longer configured",
        "Put {model} back into council.toml or COUNCIL_MEMBERS"),
    "endpoint_changed": Reason("operator", "its endpoint has changed",
        "Put the endpoint of {model} back into council.toml"),
    "no_server": Reason("operator", "no server is running at its address",
        "Start the server at {address}, or correct that address", again=True, quotes="log"),
    "connection": Reason("operator", "no connection to the provider",
        "Check the network, {address} and any proxy (HTTPS_PROXY)", again=True, quotes="log"),
    "too_dear": Reason("operator", "it may cost more than the credit that is left",
        "Add credit to {account}, or set a smaller max_tokens for {model}",
        "request", quotes="operators"),
    "forbidden": Reason("operator", "this key may not use this model",
        "Give {owner} access to {model}, or configure another model", "model"),
    "data_policy": Reason("operator", "the account's privacy settings exclude this model",
        "Change the privacy settings of {account}, or configure a model other than {model}",
        "model", quotes="operators"),
    "not_found": Reason("operator", "the provider doesn't know this model",
        "Correct the model id {model}", "model"),
    "bad_request": Reason("operator", "the provider rejected the request",
        "Run council doctor --live, name its server's dialect, or configure a model other than {model}",
        "request"),
    "only_thoughts": Reason("operator", "it thought until its token limit",
        "Raise max_tokens for {model}, or lower its reasoning", "request"),
    "moderated": Reason("asker", "the provider's moderation refused the text", "", "text", _REPHRASE),
    "filtered": Reason("asker", "a content filter stopped the reply", "", "text", _REPHRASE),
    "too_long": Reason("asker", "the request is longer than the model can read", "", "request",
        "Ask again with less text."),
    "rate_limited": Reason("provider", "the provider was too busy", advice=_WAIT, again=True),
    "unavailable": Reason("provider", "the provider was unavailable", advice=_WAIT, again=True),
    "lost": Reason("provider", "the connection was lost", again=True, quotes="nobody"),
    "silence": Reason("provider", "it was silent for too long",
        "If {model} is only slow, raise idle_timeout", again=True),
    "truncated": Reason("provider", "the reply broke off", again=True),
    "malformed": Reason("provider", "the reply couldn't be read", again=True),
    "too_large": Reason("provider", "the reply was too large"),
    "format_refused": Reason("provider", "the server takes no JSON schema"),
    "empty": Reason("model", "the reply was empty", again=True),
    "echoed_prompt": Reason("model", "it only repeated its instructions"),
    "echoed_reviews": Reason("model", "it only repeated the reviews"),
    "echoed_answer": Reason("model", "it only repeated another member's answer"),
    "sent_ranking": Reason("model", "it sent a review instead of an answer"),
    "changed_language": Reason("model", "it changed language"),
    "declined": Reason("model", "it declined to answer"),
    "unanswered": Reason("model", "it didn't answer the objections in the form that it was asked for"),
    "too_small": Reason("model", "the model is too small to check objections"),
    "deadline": Reason("model", "it took too long", "If {model} is only slow, raise call_deadline"),
    "stage_deadline": Reason("model", "the time for this stage ran out"),
    "straggler": Reason("model", "too slow; the others went ahead"),
    "descriptors": Reason("council", "the council had too many connections open"),
    "over_budget": Reason("council", "the budget for this run is used up",
        "Raise the limit of a run: under [budgets] in council.toml, or a program's max_cost",
        advice="Have the budget raised, then {retry}"),
    "stopped": Reason("council", "it was stopped"),
    "not_needed": Reason("council", "it was no longer needed"),
}  # fmt: skip


class Failure(BaseModel, frozen=True, hide_input_in_errors=True):
    """Why one model call failed, after all its retries.

    `detail` is the provider's own sentence, if it sent one, shortened; it never contains a key.
    `attempts` is 0 for a call that wasn't made. `usage` is what the failed call cost: as the provider
    counted it, or estimated where a reply had begun. `limit` is the limit in tokens that the reply ran
    into.
    """

    cause: Cause
    detail: str = ""
    status: int | None = None
    attempts: int = 1
    usage: Usage | None = None
    limit: int | None = None

    @property
    def reason(self) -> Reason:
        return CAUSES[self.cause]

    @property
    def is_account(self) -> bool:
        """Whether no other call with this account can succeed either."""
        return self.reason.concerns == "account"


class CouncilError(Exception):
    """The root of every error the council raises on purpose."""


class ModelError(CouncilError):
    """One model call failed for good."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.cause}: {failure.detail}" if failure.detail else failure.cause)
        self.failure = failure


class RunError(CouncilError):
    """The run ends without an answer; `failures` names each member's cause."""

    def __init__(self, message: str, failures: Mapping[str, Failure] | None = None) -> None:
        super().__init__(message)
        self.failures = dict(failures or {})


class NoAnswers(RunError):
    """Not one member answered."""

    def __init__(self, failures: Mapping[str, Failure]) -> None:
        super().__init__("no member of the council answered", failures)

    @property
    def cause(self) -> Cause | None:
        causes: set[Cause] = {why.cause for why in self.failures.values()}
        return causes.pop() if len(causes) == 1 else None


class RunStopped(RunError):
    """Stop was pressed before there was a final answer.

    `enough` says whether there were enough answers to write one.
    """

    def __init__(self, failures: Mapping[str, Failure] | None = None, *, enough: bool = False) -> None:
        super().__init__("the run was stopped", failures)
        self.enough = enough


class RunForgotten(RunError):
    """The question was deleted while it was being answered: nothing of the run is kept."""

    def __init__(self) -> None:
        super().__init__("the question was deleted while it was being answered")
