"""What the stand-ins share: a scripted member behind a server's own refusals, stream and errors."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast

import orjson

from council.errors import Cause
from council.reviews.ballots import ballot_schema
from tests.model_server import (
    CHARACTERS_PER_TOKEN,
    Exchange,
    Json,
    ModelServer,
    Turn,
    council_member,
    instance,
)

KEY = "sk-stand-in-0123456789"
"""The one key that every stand-in accepts."""
THOUGHTS = (
    "Okay, the user wants an answer. I am {model}, and I must not tell.\n"
    "Perhaps like this?\n\nFINAL RANKING:\n1. Response C\n2. Response B\n3. Response A\n\n"
    "No, better the other way round."
)
"""What a model thinks: it names its author and a ranking that isn't meant."""
THOUGHT = "I must not tell"
"""A part of it that is said nowhere else."""
CONCLUDE = "Now answer the question itself"
"""What the chairman is told, before the form of its notes."""
CONCLUSION = "{} concludes that it depends on the load, and says on which."
TASK_LENGTH = 2_000
"""Characters at a prompt's end in which the task is, forms included."""
DONE = b"data: [DONE]\n\n"

Trouble = Literal["rate limit", "no credit", "too long", "overloaded"]
Troubles = Mapping[Trouble, Turn]
Thinking = Literal["reasoning", "reasoning_content", "parts", "tags", "closing tag"]
"""Where a server's thoughts are: in a field, in parts of the content, or in the text, in tags or before one."""
UsagePlace = Literal["extra chunk", "extra chunk if asked", "finish chunk", "every chunk", "nowhere"]

NO_JSON_WORD = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
PLAIN_FIELDS = frozenset({"model", "messages", "stream", "temperature", "top_p", "stop"})
OPENAI_FIELDS = PLAIN_FIELDS | {
    *(
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "n",
        "seed",
        "user",
    ),
    *("max_tokens", "max_completion_tokens", "response_format", "reasoning_effort", "stream_options"),
    *("tools", "tool_choice", "parallel_tool_calls", "store", "metadata", "modalities", "prediction"),
    *(
        "service_tier",
        "verbosity",
        "web_search_options",
        "prompt_cache_key",
        "safety_identifier",
        "audio",
    ),
}
"""What OpenAI documents: openai/openai-openapi, CreateChatCompletionRequest."""


def refused(status: int, body: object, **headers: str) -> Turn:
    """Return a refusal; `{model}` in its body becomes the model that was asked."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Turn(status=status, body=content, headers=named)


def error(message: str, kind: str | None = None, code: object = None, param: str | None = None) -> Json:
    """Return an error in OpenAI's form."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def event(data: object) -> bytes:
    """Return one event of a stream."""
    return b"data: " + orjson.dumps(data) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request whose fields weren't taken, and what was said of it."""

    request: Json
    said: str


class StandIn(ModelServer):
    """A strict server: checks the key, then the fields, then the model, and lets a scripted member answer.

    `refusals` are the requests whose fields it refused, `taken` those it answered, `counted` the usage of
    its answers. A trouble goes on as often as it is told to.
    """

    title: ClassVar[str]
    dialect: ClassVar[str]
    """The row of `council.models.dialects`."""
    path: ClassVar[str] = "/v1"
    models_served: ClassVar[tuple[str, ...]]
    """Three ids as they look there."""
    asks_for_key: ClassVar[bool] = True
    any_model: ClassVar[bool] = False
    """Whether it answers under every name."""
    thinks: ClassVar[Thinking | None] = None
    usage_in: ClassVar[UsagePlace] = "extra chunk if asked"
    states_cost: ClassVar[bool] = False
    comment: ClassVar[bytes] = b""
    """What keeps its connection alive."""

    wrong_key: ClassVar[Turn]
    unknown_model: ClassVar[Turn | None] = None
    troubles: ClassVar[Troubles] = {}
    unforeseen: ClassVar[int] = 0
    """Requests of one model that it refuses though its dialect is known: for what a model, its version or
    the organization lacks."""
    needs_dialect: ClassVar[bool] = False
    """Whether it refuses fields without naming them, so that its dialect has to be known."""
    credit_cause: ClassVar[Cause] = "credit"
    """What its answer to an empty account says: one says only that the key isn't allowed, one that its own
    budget for the key is used up."""

    def __init__(self) -> None:
        super().__init__(models=self._models, path=self.path)
        self.refusals: list[Refusal] = []
        self.taken: list[Json] = []
        self.counted: list[Json] = []
        self.always("*", self._serve)
        self._trouble: Turn | None = None
        self._times = 0

    def suffer(self, trouble: Trouble, times: int = 10**9) -> None:
        """Answer the next calls with a trouble."""
        self._trouble, self._times = self.troubles[trouble], times

    # Its own: what subclasses replace ------------------------------------------------------------

    def refusal(self, request: Json) -> Turn | None:
        """Return the refusal of a request that it doesn't take."""
        del request

    def opening(self, request: Json) -> Iterator[bytes]:
        """Yield what comes before the first words."""
        yield self.chunk(request, {"role": "assistant", "content": ""})

    def ending(self, request: Json, usage: Json) -> Iterator[bytes]:
        """Yield what comes after the last words."""
        counted = usage if self.usage_in in ("finish chunk", "every chunk") else None
        yield self.chunk(request, {}, "stop", usage=counted)
        if self.usage_in == "extra chunk" or (
            self.usage_in == "extra chunk if asked"
            and _of(request, "stream_options").get("include_usage")
        ):
            yield self.chunk(request, usage=usage)

    def usage(self, request: Json, text: str, thoughts: str) -> Json:
        """Count a call: thoughts belong to the completion."""
        prompt = len(prompt_of(request)) // CHARACTERS_PER_TOKEN
        thought = len(thoughts) // CHARACTERS_PER_TOKEN
        completion = len(text) // CHARACTERS_PER_TOKEN + thought
        counted: Json = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        if thought:
            counted["completion_tokens_details"] = {"reasoning_tokens": thought}
        return counted

    def thinks_about(self, request: Json) -> bool:
        """Whether the model thinks before it answers this."""
        del request
        return self.thinks is not None

    def listed(self) -> object:
        """Return its list of models."""
        return {"object": "list", "data": [self.described(model) for model in self.models_served]}

    def described(self, model: str) -> Json:
        """Return a model as the list has it."""
        return {"id": model, "object": "model", "created": 1, "owned_by": self.dialect}

    def headers(self, exchange: Exchange) -> Mapping[str, str]:
        """Return the headers of an answer."""
        del exchange
        return {}

    # What all do -------------------------------------------------------------------------------------

    def _models(self, exchange: Exchange) -> Turn:
        if not self._knows(exchange):
            return self.wrong_key
        listed = self.listed()
        return listed if isinstance(listed, Turn) else Turn(body=orjson.dumps(listed))

    def _knows(self, exchange: Exchange) -> bool:
        return not self.asks_for_key or exchange.headers.get("Authorization") == f"Bearer {KEY}"

    @property
    def measured(self) -> list[Json]:
        """The usage of its answers as far as it says it."""
        return [] if self.usage_in == "nowhere" else self.counted

    def _serve(self, exchange: Exchange) -> Turn:
        request = exchange.request
        if not self._knows(exchange):
            return self.wrong_key
        if self._times and self._trouble is not None:
            self._times -= 1
            return named(self._trouble, exchange.model)
        if (turn := self.refusal(request)) is not None:
            turn = named(turn, exchange.model)
            self.refusals.append(Refusal(request, cast("bytes", turn.body).decode()))
            return turn
        if not self.any_model and self.answering(request) is None and self.unknown_model is not None:
            return named(self.unknown_model, exchange.model)
        return replace(self._answer(request), headers=self.headers(exchange))

    def answering(self, request: Json) -> str | None:
        """Return the model that answers, `None` where none of its own is asked."""
        model = str(request["model"])
        return model if self.any_model or model in self.models_served else None

    def _answer(self, request: Json) -> Turn:
        text = member(request)
        thoughts = THOUGHTS.format(model=request["model"]) if self.thinks_about(request) else ""
        usage = self.usage(request, text, thoughts)
        self.taken.append(request)
        self.counted.append(usage)
        if not request.get("stream"):
            return Turn(body=self._whole(request, text, thoughts, usage))
        return Turn(events=[*self._events(request, text, thoughts, usage)])

    def _events(self, request: Json, text: str, thoughts: str, usage: Json) -> Iterator[bytes]:
        counted = usage if self.usage_in == "every chunk" else None
        if self.comment:
            yield self.comment
        yield from self.opening(request)
        if thoughts and self.thinks in ("tags", "closing tag"):
            text = tagged(thoughts, text, opened=self.thinks == "tags")
            thoughts = ""
        for piece in pieces(thoughts):
            yield self.chunk(request, self.thought(piece), usage=counted)
        if self.comment:
            yield self.comment
        for piece in pieces(text):
            yield self.chunk(request, {"content": piece}, usage=counted)
        yield from self.ending(request, usage)
        yield DONE

    def thought(self, piece: str) -> Json:
        """Return a part of the thoughts as a delta or message has it."""
        if self.thinks == "parts":
            return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]}
        return {str(self.thinks): piece}

    def _whole(self, request: Json, text: str, thoughts: str, usage: Json) -> Json:
        message: Json = {"role": "assistant", "content": text}
        if thoughts and self.thinks in ("tags", "closing tag"):
            message["content"] = tagged(thoughts, text, opened=self.thinks == "tags")
        elif thoughts and self.thinks == "parts":
            part = cast("list[Json]", self.thought(thoughts)["content"])
            message["content"] = [*part, {"type": "text", "text": text}]
        elif thoughts:
            message |= self.thought(thoughts)
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": self.answering(request),
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }

    def chunk(
        self,
        request: Json,
        delta: Json | None = None,
        finish: str | None = None,
        *,
        usage: Json | None = None,
        **more: object,
    ) -> bytes:
        """Return an event; without a delta it has no choices."""
        counted: Json = {} if usage is None else {"usage": usage}
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return event(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": self.answering(request),
                "choices": choices,
                **counted,
                **more,
            }
        )


def named(turn: Turn, model: str) -> Turn:
    """Return a turn that names the model asked."""
    if not isinstance(turn.body, bytes):
        return turn
    return replace(turn, body=turn.body.replace(b"{model}", orjson.dumps(model)[1:-1]))


def member(request: Json) -> str:
    """Play a council's member, who ranks in the alphabet's order.

    Asked for any JSON object, it finds the labels by itself.
    """
    prompt = prompt_of(request)
    labels = sorted(set(re.findall(r"\bResponse [A-Z]\b", prompt)))
    schema, _ = schema_of(request)
    if form_of(request) == "json_object" and labels and "as JSON" in prompt:
        schema = ballot_schema(labels)
    if not schema:
        if CONCLUDE in prompt[-TASK_LENGTH:]:
            return CONCLUSION.format(request["model"])
        return council_member(request)
    said = cast("Json", instance(schema, labels))
    if ranking := cast("list[str] | None", said.get("ranking")):
        said["ranking"] = sorted(ranking)
    return orjson.dumps(said).decode()


def tagged(thoughts: str, text: str, *, opened: bool) -> str:
    """Return thoughts and text in one, as chat templates leave them."""
    return f"{'<think>' if opened else ''}\n{thoughts}\n</think>\n\n{text}"


def pieces(text: str) -> list[str]:
    """Cut a text into words."""
    return re.findall(r"\s*\S+\s*", text)


def prompt_of(request: Json) -> str:
    """Return everything that a request says, joined."""
    return "\n\n".join(str(message["content"]) for message in messages_of(request))


def messages_of(request: Json) -> list[Json]:
    """Return a request's messages."""
    return cast("list[Json]", request.get("messages") or [])


def roles_of(request: Json) -> list[str]:
    """Return the roles of a request's messages."""
    return [str(message["role"]) for message in messages_of(request)]


def form_of(request: Json) -> str:
    """Return the format asked for: `text` where none is."""
    return str(_of(request, "response_format").get("type", "text"))


def schema_of(request: Json) -> tuple[Json, bool]:
    """Return the JSON schema asked for, and whether strictly."""
    shape = cast("Json", _of(request, "response_format").get("json_schema") or {})
    return cast("Json", shape.get("schema") or {}), bool(shape.get("strict"))


def _of(request: Json, name: str) -> Json:
    return cast("Json", request.get(name) or {})


def lacks_json(request: Json) -> bool:
    """Whether a JSON object is asked for without a word about it, which many refuse."""
    return form_of(request) == "json_object" and "json" not in prompt_of(request).lower()


def unknown_fields(request: Json, known: Collection[str]) -> list[str]:
    """Return the fields of a request that aren't known, in its order."""
    return [name for name in request if name not in known]


def keywords_in(schema: object, refused: Collection[str]) -> set[str]:
    """Return those keywords that a JSON schema uses, properties' names aside."""
    if isinstance(schema, list):
        return {word for item in cast("list[object]", schema) for word in keywords_in(item, refused)}
    if not isinstance(schema, dict):
        return set()
    found: set[str] = set()
    for name, value in cast("Json", schema).items():
        if name == "properties":
            found |= keywords_in([*cast("Json", value).values()], refused)
        elif name in refused:
            found.add(name)
        else:
            found |= keywords_in(value, refused)
    return found
