"""The members of a council, and the settings of its runs."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    model_validator,
)

from council.criteria import EvaluationCriteria

Count = Annotated[int, Field(gt=0, lt=2**63)]
"""A whole number above zero, no larger than what keeps it can hold."""
Text = Annotated[str, Field(min_length=1)]
Strategy = Literal[
    "consensus", "coverage", "risk_averse", "security_first", "cost_capped", "compare_only"
]
"""How the chairman makes one answer of many; `council.prompts` says what each asks for."""
Depth = Literal["quick", "auto", "full"]
"""`quick`: answers and the chairman; `full`: all stages; `auto`: full unless the answers agree."""
Reasoning = Literal["off", "low", "medium", "high"]
"""How much a model is to think before it answers; each server has its own words for it."""
# fmt: off
DialectName = Literal[
    "generic", "openai", "azure", "openrouter", "anthropic", "gemini", "mistral", "groq",
    "together", "fireworks", "deepseek", "xai", "cerebras", "perplexity", "cohere", "moonshot",
    "zai", "dashscope", "huggingface", "cloudflare", "databricks", "deepinfra", "sambanova",
    "vercel", "minimax", "nebius", "ollama", "vllm", "sglang", "lmstudio", "llamacpp",
    "koboldcpp", "litellm",
]
"""The kinds of servers whose requests differ; `council.models.servers` says how."""
SENT_FIELDS = frozenset({
    "model", "models", "messages", "stream", "stream_options", "temperature", "max_tokens",
    "max_completion_tokens", "response_format", "plugins", "n"
})
# fmt: on
"""Fields of a request that the program writes itself, or whose reply it can't read."""
THINKING_FIELDS = frozenset(
    {"reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template_kwargs"}
)
"""What servers call the control of a model's thinking; written where a member's `reasoning` is set."""
MOST_ROUNDS = 5
MAX_MEMBERS = 26  # one letter each: Response A to Response Z


def _json_text(value: object) -> object:
    if not isinstance(value, dict):
        return value
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):  # a date, which TOML has and JSON hasn't
        raise ValueError("it holds a value that JSON doesn't have, such as a date") from None


def _is_object(text: str) -> str:
    if not text.startswith("{"):
        raise ValueError("it isn't a table; write extra = { top_k = 40 }")
    return text


JsonText = Annotated[str, BeforeValidator(_json_text), AfterValidator(_is_object)]
"""A table of the configuration, kept as the text of a JSON object: it can be compared and hashed."""


class Persona(BaseModel, frozen=True, extra="forbid"):
    """A point of view that a member is asked to take."""

    name: Text
    prompt: Text

    @property
    def slug(self) -> str:
        words = re.findall(r"\w+", self.name.lower().replace("'", "").replace("\u2019", ""))
        return "-".join(words)


class Member(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """One model with a seat on the council: a row says what a key is, as `docs/configuration.md` has it.

    `endpoint`, `api_key_env`, `dialect` and `extra` belong to today's configuration: they are never
    stored, and a run's members (`in_a_run`) don't have them. `endpoint_id` and `account_id` are digests
    that a run keeps, of the endpoint, and of the endpoint with the key's variable; they are `None` for
    the council's own. `structured` and `vision` are looked up when a run starts, or tried, where the
    configuration doesn't say, and stored with the run.
    """

    model: Text
    """the provider's id of the model"""
    persona: Persona | None = None
    """name from `[personas]`, or a built-in one; required where one model has two seats"""
    fallbacks: tuple[Text, ...] = ()
    """models asked in this order if this one can't answer"""
    endpoint: str | None = Field(default=None, exclude=True)
    """address of an OpenAI-compatible server (Ollama, vLLM, …) for this model"""
    api_key_env: str | None = Field(default=None, exclude=True)
    """variable with that server's key, one per model and endpoint; never a platform's token"""
    endpoint_id: str | None = None
    account_id: str | None = None
    structured: bool | None = None
    """whether that server takes a JSON schema; unset, it is looked up or tried"""
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    """instead of the profile's"""
    max_tokens: Count | None = None
    """instead of the profile's; thoughts count"""
    reasoning: Reasoning | None = None
    """how much it thinks first: `off`, `low`, `medium` or `high`; unset, as the server does"""
    vision: bool | None = None
    """whether it is sent pictures; unset, as the provider's list says"""
    dialect: DialectName | None = Field(default=None, exclude=True)
    """that server's kind, as in `OPENROUTER_DIALECT`"""
    extra: JsonText = Field(default="{}", exclude=True, repr=False)
    """table of further fields of the request: `{ top_k = 40 }`; none that the council sends"""
    name: str = ""
    """How documents, step keys and people call this seat: the model's id, and where the same id
    occurs twice, `{id}#{persona-slug}`. The profile sets it."""

    @model_validator(mode="after")
    def _sends_nothing_twice(self) -> Self:
        ours = SENT_FIELDS | THINKING_FIELDS if self.reasoning else SENT_FIELDS
        if twice := sorted(ours & json.loads(self.extra).keys()):
            raise ValueError(f"extra can't set {', '.join(twice)}: the council sends it itself")
        return self

    @model_validator(mode="after")
    def _identify_the_endpoint(self) -> Self:
        if self.endpoint:
            object.__setattr__(self, "endpoint_id", _digest(self.endpoint))
            object.__setattr__(self, "account_id", _digest(self.endpoint, self.api_key_env or ""))
        return self

    def in_a_run(self) -> "Member":
        return Member.model_validate(self.model_dump())


def _digest(endpoint: str, *more: str) -> str:
    """Return what identifies an endpoint; a password in its address isn't part of it."""
    address = re.sub(r"//[^/?#]*@", "//", endpoint).rstrip("/")
    said = "\n".join((address, *more))
    return hashlib.blake2b(said.encode(errors="replace"), digest_size=8).hexdigest()


def _seat(value: object) -> object:
    return {"model": value} if isinstance(value, str) else value


Seat = Annotated[Member, BeforeValidator(_seat)]
"""A member, or only its model's id."""


CONSTANTS: Mapping[str, str] = {
    "ballot_retry": "on",
    "context_budget": "500,000 tokens",
    "corrections": "on",
    "critiques_with_ranking": "off",
    "depth_shadow": "off",
    "max_critique_tokens": "6,000",
    "max_critiques": "5",
    "max_retries": "12 a run",
    "min_change_threshold": "0.1",
    "self_review": "off",
}
"""Settings that profiles had, and what each is now for every council."""


@dataclass(frozen=True, slots=True)
class Override:
    """Marks a key of a profile that a channel's admins can set, too, and an asker where `question` is.

    The `label` stands beside its value; the options' descriptions have at most 100 characters.
    """

    label: str
    channel: str
    question: str = ""
    values: Mapping[str, str] = field(default_factory=dict[str, str])


class Profile(BaseModel, frozen=True):
    """A council's members and the settings of its runs, times in seconds: each key is one row.

    Its sentences are those of `docs/configuration.md`. It is stored with every run, so that a resumed
    run keeps the settings it started with.
    """

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    name: Text = "default"
    members: tuple[Seat, ...] = Field(min_length=1, max_length=MAX_MEMBERS)
    """1 to 26 seats: each a model id, or a table as below"""
    chairman: Seat
    """writes the final answer; unset, the first member's model"""
    chairman_fallbacks: tuple[Seat, ...] = ()
    """models that write it if the chairman fails, in this order"""
    title_model: Seat | None = None
    """writes titles; unset, the question's first words serve"""
    judge_model: Seat | None = None
    """compares answers; unset, the title model, unless that is a member"""
    quorum: Count = 2
    """answers that are enough when a run is stopped or stragglers are cut off"""
    chairman_notes: bool = True
    """the chairman adds notes for the team; `false` for very small models, which mix them in"""
    critique_mode: Literal["full", "extracted"] = "full"
    """`full`: peers' reviews; `extracted`: only their points about an answer, gravest first"""
    max_rounds: int = Field(default=1, ge=1, le=MOST_ROUNDS)
    """rounds of review and correction, 1 to 5; a second rarely helps and costs as much"""
    depth: Annotated[
        Depth,
        Override(
            "How deep a question is taken",
            channel="How deep questions go here: quick, auto or full",
            question="quick: no reviews; auto: reviews where the answers differ; full: all stages",
        ),
    ] = "full"
    """how much is reviewed: `full`, `quick`, or `auto`, which needs a judge"""
    depth_audit: float = Field(default=0.1, ge=0, le=1)
    """share of what `auto` would skip that is reviewed all the same, to see the loss"""
    strategy: Strategy = "consensus"
    """how the chairman combines the answers, as below"""
    criteria: EvaluationCriteria | None = None
    """what answers are judged by, as below"""
    web: bool = False
    """members answer and correct with OpenRouter's web search, which costs"""
    context: Annotated[
        Literal["thread", "message"],
        Override(
            "What is read with a question",
            channel="thread: read the thread around a question; message: only the question",
            values={"thread": "the thread it is asked in", "message": "nothing else"},
        ),
    ] = "thread"
    """`thread`: a question in people's thread is sent with the messages before it; `message`: alone"""
    thread: Annotated[
        Literal["digest", "full"],
        Override(
            "What the thread shows",
            channel="digest: members only below first questions; full: whole responses everywhere",
            values={"digest": "the digest, and how each response begins", "full": "whole responses"},
        ),
    ] = "digest"
    """below cards: `digest`, and below a first question's how responses begin; `full`, all responses"""
    links: Annotated[
        bool | None,
        Override(
            "Links that are read",
            channel="on: read the pages that a question links to; their sites see that the bot asks",
        ),
    ] = None
    """linked pages are read, whose sites learn it; unset, if a channel's admins allow it"""
    answer_format: Literal["plain", "structured"] = "plain"
    """`plain`, or `structured`: members answer as consultants, as below"""
    call_deadline: PositiveFloat = 120.0
    """seconds for one call with all its retries"""
    idle_timeout: PositiveFloat | None = None
    """seconds of silence before a call is tried again; unset, 45, on your own network none"""
    stage_deadline: PositiveFloat = 300.0
    """seconds for one stage"""
    straggler_grace: float | None = Field(default=None, ge=0)
    """seconds to wait for the others once the quorum has answered"""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """sampling temperature of every call"""
    max_tokens: Count | None = None
    """length limit of every reply"""

    demonstration: bool = False
    """Whether the models are the built-in ones, good for a demonstration only."""
    example: bool = False
    """Whether its replies are texts written by hand: no model is asked."""
    corrects: bool = True
    """Whether members correct their answers; an evaluation also asks without."""

    @model_validator(mode="before")
    @classmethod
    def _without_constants(cls, given: object) -> object:
        """Leave out what earlier runs have stored of settings that are constants now."""
        if not isinstance(given, dict):
            return given
        return {
            key: value for key, value in cast("dict[str, object]", given).items() if key not in CONSTANTS
        }

    @model_validator(mode="after")
    def _name_the_seats(self) -> Self:
        seats = Counter(member.model for member in self.members)
        named = tuple(
            member.model_copy(update={"name": _seat_name(member, seats)}) for member in self.members
        )
        for name, times in Counter(member.name for member in named).items():
            if times > 1:
                raise ValueError(
                    f"{name} sits on the council {times} times; give each seat a persona of its own"
                )
        object.__setattr__(self, "members", named)
        object.__setattr__(self, "chairman", _by_model(self.chairman))
        object.__setattr__(self, "chairman_fallbacks", tuple(map(_by_model, self.chairman_fallbacks)))
        return self

    @property
    def seats(self) -> tuple[Member, ...]:
        """Everybody who may be asked: members, chairman, its fallbacks, title model, judge."""
        others = filter(None, (self.title_model, self.judge_model))
        return (*self.members, self.chairman, *self.chairman_fallbacks, *others)

    @property
    def critique_tokens(self) -> int:
        """How many tokens of critiques an author reads at most; the built-in model's room is small."""
        return 240 if self.demonstration else 6_000

    @property
    def judge(self) -> Member | None:
        """Who compares answers: the judge model, else the title model unless that is a member's.

        A member may have to judge its own answer, so only `judge_model` can name one.
        """
        if self.judge_model:
            return self.judge_model
        titles = self.title_model
        return titles if titles and not self._is_a_members(titles) else None

    @property
    def asks_judge(self) -> bool:
        return self.depth == "auto"

    @property
    def lacks_judge(self) -> bool:
        return self.asks_judge and self.judge is None

    @property
    def rounds(self) -> int:
        return 0 if self.depth == "quick" else self.max_rounds

    @property
    def judged_by_a_member(self) -> bool:
        return self.judge is not None and self._is_a_members(self.judge)

    def _is_a_members(self, seat: Member) -> bool:
        return any(
            (seat.model, seat.endpoint_id) == (member.model, member.endpoint_id)
            for member in self.members
        )

    def in_a_run(self) -> "Profile":
        return Profile.model_validate(self.model_dump())


def _by_model(member: Member) -> Member:
    return member.model_copy(update={"name": member.model})


def _seat_name(member: Member, seats: Counter[str]) -> str:
    if seats[member.model] == 1 or member.persona is None:
        return member.model
    return f"{member.model}#{member.persona.slug}"


PRESETS = tuple(
    Persona(name=name, prompt=f"You sit on the council as {name}. Look {focus}.")
    for name, focus in {
        "The Architect": "at the whole and at the years to come: structure, boundaries, what will last "
        "and what will have to change",
        "The Pragmatist": "for the least that solves the problem now with the people, time and money "
        "there are",
        "The Devil's Advocate": "for what will go wrong, which assumption nobody has checked, and the "
        "case against the favourite",
        "The Innovator": "for the way nobody has named yet, and for what has become possible lately",
    }.items()
)
