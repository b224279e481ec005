"""One model call: the request, the reply, and the record of both."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, Literal, Protocol, TypedDict, TypeVar

import orjson
from pydantic import BaseModel

from council.brief import Picture
from council.consultation import Consultation
from council.errors import Failure
from council.profile import Member
from council.text.json_objects import JsonObject
from council.usage import Usage, total


def object_schema(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


class ChatMessage(TypedDict):
    """One message in the form that chat-completion APIs accept."""

    role: Literal["system", "user", "assistant"]
    content: str


Prompt = Callable[[], tuple[ChatMessage, ...]]
"""Writes the messages of a call."""


class RetryBudget:
    """Retries that calls share; once they are used up, those of `beside` are taken."""

    def __init__(self, retries: int, beside: "RetryBudget | None" = None) -> None:
        self.left = retries
        self._beside = beside

    def spend(self) -> bool:
        if self.left > 0:
            self.left -= 1
            return True
        return self._beside is not None and self._beside.spend()


MAX_RETRIES = 12
"""The retries that all calls of a run share, so that an outage makes no storm."""


def run_retries(retries: int) -> tuple[RetryBudget, RetryBudget]:
    """Return two budgets of a run's retries: for all stages but the last, and for the last one.

    A quarter, rounded up, is reserved for the last stage, which may also use what the others leave.
    Otherwise an outage among the members could leave the chairman a single attempt, and without a
    final answer everything before it was paid for in vain.
    """
    reserve = -(-retries // 4)
    shared = RetryBudget(retries - reserve)
    return shared, RetryBudget(reserve, beside=shared)


class Meter:
    """Adds up what a call's requests cost: Stop and deadlines end calls, and what they cost counts."""

    def __init__(self) -> None:
        self._used: list[Usage] = []

    def add(self, used: Usage | None) -> None:
        """Count a request that is over; `None` is one that cost nothing."""
        if used is not None:
            self._used.append(used)

    @property
    def usage(self) -> Usage | None:
        return total(self._used) if self._used else None


@dataclass(frozen=True)
class Call:
    """A model call, ready to be sent.

    `step` is its key in the journal: stage, round and member. `prompt` is written when it is first
    needed: never where the journal has the reply. `profile` names the council that the
    member belongs to. `deadline` is wall-clock seconds for the call with all its retries,
    `idle_timeout` the seconds in which nothing may arrive, unless that is left to the client. `schema`
    asks endpoints that can for a JSON reply of that shape; `web` asks the council's own provider to
    search the web first. `pictures` are shown to the model before its prompt's text; `images` are their
    contents in Base64, in the same order, once they are loaded. `repeat_penalty` is only for
    llama.cpp's server, and replaces its own. `on_text` gets the reply as it streams, `on_retry` each
    failed attempt with the seconds until the next one (what streamed before it is void), and
    `on_withdrawn` is called when what has streamed turns out to be the model's thoughts. `meter` has
    what its requests cost, and `budget` reserves what another one may cost: it raises `ModelError` where
    that has no room.
    """

    step: str
    member: Member
    prompt: Prompt
    deadline: float
    idle_timeout: float | None = None
    profile: str = "default"
    schema: JsonObject | None = None
    web: bool = False
    pictures: tuple[Picture, ...] = ()
    images: tuple[str, ...] = field(default=(), repr=False)
    temperature: float | None = None
    max_tokens: int | None = None
    repeat_penalty: float | None = None
    retries: RetryBudget = field(default_factory=lambda: RetryBudget(12))
    on_text: Callable[[str], None] | None = None
    on_retry: Callable[[Failure, float], None] | None = None
    on_withdrawn: Callable[[], None] | None = None
    meter: Meter = field(default_factory=Meter)
    budget: Callable[[], Awaitable[None]] | None = None

    async def begin(self) -> None:
        """Return when a request may be sent: one that follows another that cost something needs room."""
        if self.budget is not None and self.meter.usage is not None:
            await self.budget()

    @cached_property
    def messages(self) -> tuple[ChatMessage, ...]:
        return self.prompt()

    @property
    def digest(self) -> str:
        """A digest of the request: 32 hexadecimal digits that differ for another prompt or shape."""
        shown = ([each.sha256 for each in self.pictures],) if self.pictures else ()
        asked = orjson.dumps((self.messages, self.schema, *shown), option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(asked, digest_size=16).hexdigest()


class Citation(BaseModel, frozen=True, hide_input_in_errors=True):
    """A page that a reply cites."""

    url: str
    title: str = ""


class Reply(BaseModel, frozen=True, hide_input_in_errors=True):
    """What a model answered.

    `truncated`: the reply was cut off by its length limit. `answered_by`: the id of the fallback
    model that answered instead of the one asked. `citations`: the pages it names as sources. If a
    consultation was asked for, `consultation` is the reply read as one and `text` its detailed
    answer; if it couldn't be read, `unstructured` says why. `unseen`: the model's server refused the
    pictures, so it answered without them.
    """

    text: str
    usage: Usage
    latency_ms: int
    truncated: bool = False
    answered_by: str | None = None
    citations: tuple[Citation, ...] = ()
    consultation: Consultation | None = None
    unstructured: str | None = None
    unseen: bool = False


Outcome = Reply | Failure

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class AskAgain(Generic[R_co]):
    """A reader's result for an unusable reply: `words` ask for it once more.

    `otherwise` is the result if the second reply is no better. What is asked for may have another
    shape and be shorter than the first time; then `read` reads it.
    """

    words: str
    otherwise: R_co
    schema: JsonObject | None = None
    max_tokens: int | None = None
    read: Callable[[Reply], Awaitable[R_co]] | None = None


Read = Callable[[Reply], Awaitable[R | Failure | AskAgain[R | Failure]]]
"""Reads a reply as the result of its stage, or as none, or has it asked for once more."""

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
    """Steps kept as long as the process runs."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}

    def recall(self, call: Call) -> Outcome | None:
        return self.outcomes.get(call.step)

    async def record(self, call: Call, outcome: Outcome) -> None:
        self.outcomes[call.step] = outcome

    def has_begun(self, stage: str) -> bool:
        return any(step.startswith(f"{stage}:") for step in self.outcomes)
