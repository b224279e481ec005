"""Everything that can go wrong in a council, as a tree.

    CouncilError
    ├── ModelError            one call failed; the run continues
    └── RunError              the run ends without an answer
        ├── NoAnswers         not one member answered
        ├── RunStopped        somebody pressed Stop before there was a final answer
        └── RunForgotten      the question was deleted while it was being answered

A `Failure` is the same fact as data: it is journalled, replayed, counted and shown.
The clauses people read of them are in `bot.view.wording.failures`, nowhere else.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from council.usage import Usage

Cause = Literal[
    "key",  # 401: the key is missing, wrong or revoked
    "no_key",  # the variable that holds the key isn't set
    "credit",  # 402: the account has no credit left
    "key_limit",  # 403: the key's own spending limit is reached
    "too_dear",  # 402 for one request: it may cost more than is left, others may not
    "forbidden",  # 403: this key may not use this model
    "data_policy",  # 404: the account's privacy settings exclude every server of this model
    "moderated",  # 403: moderation refused the text
    "not_found",  # 404: there is no such model
    "no_api",  # 404: there is no chat completions API at the address
    "too_long",  # the request is longer than the model's context window
    "bad_request",  # 400 and its like: the provider doesn't understand the call
    "format_refused",  # the server takes no JSON schema; it is asked again in plain words
    "rate_limited",  # 429, after all retries
    "unavailable",  # 408, 5xx, or an error inside a 200, after all retries
    "no_server",  # refused: nothing listens at the address, after all retries
    "descriptors",  # this process may open no further connection now; the call was never sent
    "connection",  # it couldn't be opened: the network, the name, the certificate, after all retries
    "lost",  # the connection broke before the reply's end, after all retries
    "silence",  # nothing arrived for `idle_timeout`, after all retries
    "deadline",  # the call's own wall clock ran out
    "truncated",  # the stream ended without a finish reason
    "malformed",  # the reply isn't what the API promises
    "too_large",  # the reply is over the size limit
    "empty",  # no text, or nothing but white space
    "only_thoughts",  # it thought until its length limit and wrote no answer
    "filtered",  # a content filter stopped the reply
    "echoed_prompt",  # a correction that repeats its prompt
    "echoed_reviews",  # one that repeats the reviews it was given
    "echoed_answer",  # one that repeats another member's answer
    "sent_ranking",  # one that ranks or reviews instead of answering
    "changed_language",  # one in neither the question's language nor its author's
    "declined",  # one that declines to answer
    "unanswered",  # one that doesn't answer the objections in the form that it was asked for
    "too_small",  # the model can't check objections, so it isn't asked to correct its answer
    "over_budget",  # what is left for the run is reserved for the final answer, or used up
    "stopped",  # somebody pressed Stop
    "straggler",  # cut off by the profile's `straggler_grace`
    "stage_deadline",  # the stage's wall clock ran out
    "not_configured",  # the configuration no longer has this member
    "endpoint_changed",  # the configuration now has another address for this member
    "not_needed",  # the run ended before its title was there
]

Concern = Literal["account", "model", "text", "request"]
"""Whom a refusal concerns: all calls of the account, all calls to the model, this text, or this call."""

_CONCERNS: Mapping[Cause, Concern] = {
    "key": "account",
    "no_key": "account",
    "credit": "account",
    "key_limit": "account",
    "no_api": "account",
    "forbidden": "model",
    "data_policy": "model",
    "not_found": "model",
    "moderated": "text",
    "filtered": "text",
    "too_dear": "request",
    "too_long": "request",
    "bad_request": "request",
    "only_thoughts": "request",
}


class Failure(BaseModel):
    """Why one model call failed, after all its retries.

    `detail` is the provider's own sentence, if it sent one, shortened; it never contains a key.
    `attempts` is 0 for a call that wasn't made. `usage` is what the failed call cost: as the provider
    counted it, or estimated where a reply had begun. `limit` is the limit in tokens that the reply ran
    into.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    cause: Cause
    detail: str = ""
    status: int | None = None
    attempts: int = 1
    usage: Usage | None = None
    limit: int | None = None

    @property
    def concerns(self) -> Concern | None:
        """Whom the refusal concerns; `None` for what isn't a refusal: a lost connection, a deadline."""
        return _CONCERNS.get(self.cause)

    @property
    def is_account(self) -> bool:
        """Whether no other call with this account can succeed either."""
        return self.concerns == "account"


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
        """The cause that all members share."""
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
