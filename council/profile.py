"""The members of a council, and the settings of its runs."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
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
DialectName = Literal[
    "generic",
    "openai",
    "azure",
    "openrouter",
    "anthropic",
    "gemini",
    "mistral",
    "groq",
    "together",
    "fireworks",
    "deepseek",
    "xai",
    "cerebras",
    "perplexity",
    "cohere",
    "moonshot",
    "zai",
    "dashscope",
    "huggingface",
    "cloudflare",
    "databricks",
    "deepinfra",
    "sambanova",
    "vercel",
    "minimax",
    "nebius",
    "ollama",
    "vllm",
    "sglang",
    "lmstudio",
    "llamacpp",
    "koboldcpp",
    "litellm",
]
"""The kinds of servers whose requests differ; `council.models.servers` says how."""
SENT_FIELDS = frozenset(
    {
        "model",
        "models",
        "messages",
        "stream",
        "stream_options",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "plugins",
        "n",
    }
)
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


class Persona(BaseModel):
    """A point of view that a member is asked to take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    prompt: Text

    @property
    def slug(self) -> str:
        """The name in lower case, its words joined by hyphens: `the-devils-advocate`."""
        words = re.findall(r"\w+", self.name.lower().replace("'", "").replace("\u2019", ""))
        return "-".join(words)


class Member(BaseModel):
    """One model with a seat on the council.

    `endpoint` is the base URL of an OpenAI-compatible server, `None` the council's own;
    `api_key_env` names the environment variable that holds that server's key. Both belong to the
    configuration: they are never stored, and a run's members (`in_a_run`) don't have them.
    `endpoint_id` and `account_id` are digests that a run keeps, of the endpoint, and of the endpoint
    with the key's variable; they are `None` for the council's own. `structured` says whether the
    endpoint takes a JSON schema for the reply; where the configuration doesn't say, it is looked up when
    a run starts, or tried, and stored with the run.

    `vision` says whether the model is sent pictures; where the configuration doesn't say, the provider's
    list does when a run starts, and a model that it says nothing of gets none.

    `temperature`, `max_tokens` and `reasoning` are sent only if they are set here or, the first two, in
    the profile. `dialect` names the kind of server where its address doesn't tell; `extra` are fields
    of the request's body that are sent as they are. Both belong to today's configuration, too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Text
    persona: Persona | None = None
    fallbacks: tuple[Text, ...] = ()
    endpoint: str | None = Field(default=None, exclude=True)
    api_key_env: str | None = Field(default=None, exclude=True)
    endpoint_id: str | None = None
    account_id: str | None = None
    structured: bool | None = None
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    max_tokens: Count | None = None
    reasoning: Reasoning | None = None
    vision: bool | None = None
    dialect: DialectName | None = Field(default=None, exclude=True)
    extra: JsonText = Field(default="{}", exclude=True, repr=False)
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
        """Return the member without what only today's configuration may name, such as its endpoint."""
        return self.model_copy(update=_TODAYS)


_TODAYS: Mapping[str, object] = {"endpoint": None, "api_key_env": None, "dialect": None, "extra": "{}"}
"""What only today's configuration may say of a member, as a run keeps it."""


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


class Profile(BaseModel, frozen=True):
    """A council's members and the settings of its runs, times in seconds.

    It is stored with every run, so that a resumed run keeps the settings it started with.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: Text = "default"
    members: tuple[Seat, ...] = Field(min_length=1, max_length=MAX_MEMBERS)
    chairman: Seat
    chairman_fallbacks: tuple[Seat, ...] = ()
    title_model: Seat | None = None
    judge_model: Seat | None = None
    """The model that compares answers, without names: see `judge`."""

    quorum: Count = 2
    chairman_notes: bool = True
    """Whether the chairman adds notes for the team below its answer."""
    critique_mode: Literal["full", "extracted"] = "full"
    max_rounds: int = Field(default=1, ge=1, le=MOST_ROUNDS)
    depth: Depth = "full"
    depth_audit: float = Field(default=0.1, ge=0, le=1)
    """The share of the runs that `auto` would skip that is reviewed all the same: see what it loses."""
    strategy: Strategy = "consensus"
    criteria: EvaluationCriteria | None = None
    web: bool = False
    """Whether members answer and correct with the provider's web search; it costs, and the question
    leaves further."""
    links: bool | None = None
    """Whether the pages that a question links to are fetched and read. Unset, they aren't, but a
    channel's admins may allow it; the sites learn that this server asked."""
    context: Literal["thread", "message"] = "thread"
    """`thread`: a question asked in a human thread is read with the messages before it."""
    thread: Literal["digest", "full"] = "digest"
    """`digest`: the thread shows how each corrected response begins; `full`: all of it."""
    answer_format: Literal["plain", "structured"] = "plain"
    """`structured`: answers and corrections are consultations (the consultants' schema)."""

    call_deadline: PositiveFloat = 120.0
    idle_timeout: PositiveFloat | None = None
    """How long a reply may be silent. Unset, the client decides: a server of one's own may think until
    the deadline."""
    stage_deadline: PositiveFloat = 300.0
    straggler_grace: float | None = Field(default=None, ge=0)

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: Count | None = None

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
    def judged_by_a_member(self) -> bool:
        """Whether the judge is the model of a member, which every figure has to say."""
        return self.judge is not None and self._is_a_members(self.judge)

    def _is_a_members(self, seat: Member) -> bool:
        return any(
            (seat.model, seat.endpoint_id) == (member.model, member.endpoint_id)
            for member in self.members
        )

    def in_a_run(self) -> "Profile":
        """Return the settings as a run stores them: without addresses and keys' variables."""
        return self.model_copy(
            update={
                "members": tuple(member.in_a_run() for member in self.members),
                "chairman": self.chairman.in_a_run(),
                "chairman_fallbacks": tuple(member.in_a_run() for member in self.chairman_fallbacks),
                "title_model": self.title_model and self.title_model.in_a_run(),
                "judge_model": self.judge_model and self.judge_model.in_a_run(),
            }
        )


def _by_model(member: Member) -> Member:
    return member.model_copy(update={"name": member.model})


def _seat_name(member: Member, seats: Counter[str]) -> str:
    if seats[member.model] == 1 or member.persona is None:
        return member.model
    return f"{member.model}#{member.persona.slug}"
