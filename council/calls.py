"""One model call: what is asked, what comes back, and what remembers it."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypedDict, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict

from council.consultation import Consultation
from council.errors import Failure
from council.profile import Member
from council.usage import Usage

JsonObject = dict[str, object]


class ChatMessage(TypedDict):
    """One message in the form that chat-completion APIs take."""

    role: Literal["system", "user", "assistant"]
    content: str


class RetryBudget:
    """Retries that calls share; once they are used up, those of `beside` are taken."""

    def __init__(self, retries: int, beside: "RetryBudget | None" = None) -> None:
        self.left = retries
        self._beside = beside

    def spend(self) -> bool:
        """Take one retry; return false when none is left."""
        if self.left > 0:
            self.left -= 1
            return True
        return self._beside is not None and self._beside.spend()


def run_retries(retries: int) -> tuple[RetryBudget, RetryBudget]:
    """Return two budgets of a run's retries: for all stages but the last, and for the last one.

    A quarter, rounded up, is reserved for the last stage, which may also use what the others leave.
    Otherwise an outage among the members could leave the chairman a single attempt, and without a
    final answer everything before it was paid for in vain.
    """
    reserve = -(-retries // 4)
    shared = RetryBudget(retries - reserve)
    return shared, RetryBudget(reserve, beside=shared)


@dataclass(frozen=True, slots=True)
class Call:
    """A model call, ready to be sent.

    `step` is its key in the journal: stage, round and member. `profile` names the council that the
    member belongs to. `deadline` is wall-clock seconds for the call with all its retries. `schema`
    asks endpoints that can for a JSON reply of that shape; `web` asks the council's own provider to
    search the web first. `on_text` gets the reply as it streams, `on_retry` each failed attempt with
    the seconds until the next one (what streamed before it is void).
    """

    step: str
    member: Member
    messages: tuple[ChatMessage, ...]
    deadline: float
    profile: str = "default"
    schema: JsonObject | None = None
    web: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    retries: RetryBudget = field(default_factory=lambda: RetryBudget(12))
    on_text: Callable[[str], None] | None = None
    on_retry: Callable[[Failure, float], None] | None = None

    @property
    def digest(self) -> str:
        """A digest of what is asked: 32 hexadecimal digits that differ for another prompt or shape."""
        asked = orjson.dumps((self.messages, self.schema), option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(asked, digest_size=16).hexdigest()


class Citation(BaseModel):
    """A page that a reply cites."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    url: str
    title: str = ""


class Reply(BaseModel):
    """What a model answered.

    `truncated`: the reply was cut off by its length limit. `answered_by`: the id of the fallback
    model that answered instead of the one asked. `citations`: the pages it names as sources. If a
    consultation was asked for, `consultation` is the reply read as one and `text` its detailed
    answer; if it couldn't be read, `unstructured` says why.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    text: str
    usage: Usage
    latency_ms: int
    truncated: bool = False
    answered_by: str | None = None
    citations: tuple[Citation, ...] = ()
    consultation: Consultation | None = None
    unstructured: str | None = None


Outcome = Reply | Failure

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class AskAgain(Generic[R]):
    """What a reader makes of a reply that isn't what was asked for: `messages` ask for it once more.

    `otherwise` is the result if that gives nothing better.
    """

    messages: tuple[ChatMessage, ...]
    otherwise: R


Read = Callable[[Reply], Awaitable[R | AskAgain[R]]]
"""Reads a reply as the result of its stage, or has it asked for once more."""

Ask = Callable[[Call], Awaitable[Reply]]
"""Makes one call to its end, retries included; raises `ModelError` when it fails for good."""


class Steps(Protocol):
    """What a run remembers of its own calls: a replayed run asks nothing twice."""

    def recall(self, call: Call) -> Outcome | None:
        """Return the recorded outcome of a call's step, or `None` where it hasn't ended yet."""
        ...

    async def record(self, call: Call, outcome: Outcome) -> None:
        """Keep the outcome of a call's step; return when it is durable."""
        ...

    def has_begun(self, stage: str) -> bool:
        """Return whether any step of a stage's round (`stage2.1`) has ended."""
        ...


class MemorySteps:
    """Steps that live as long as the process."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}

    def recall(self, call: Call) -> Outcome | None:
        """Return the recorded outcome of a call's step, or `None`."""
        return self.outcomes.get(call.step)

    async def record(self, call: Call, outcome: Outcome) -> None:
        """Keep the outcome of a call's step."""
        self.outcomes[call.step] = outcome

    def has_begun(self, stage: str) -> bool:
        """Return whether any step of a stage's round has ended."""
        return any(step.startswith(f"{stage}:") for step in self.outcomes)
