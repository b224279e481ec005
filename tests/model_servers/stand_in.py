"""One player for every stand-in: a scripted member behind a server's own refusals, stream and errors.

What a server says is a file in `exchanges`; what isn't said there is as OpenAI's documentation has it.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import orjson
from pydantic import BaseModel, ConfigDict

from council.errors import Cause
from council.replies import reply_schema
from council.reviews.ballots import ballot_schema
from tests.model_server import (
    CHARACTERS_PER_TOKEN,
    Exchange,
    Json,
    ModelServer,
    Turn,
    council_member,
    instance,
    mended,
)

EXCHANGES = Path(__file__).parent / "exchanges"
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

Trouble = Literal["rate limit", "no credit", "too long", "overloaded"]
Thinking = Literal["reasoning", "reasoning_content", "parts", "tags", "closing tag"]
"""Where a server's thoughts are: in a field, in parts of the content, or in the text, in tags or before one."""

PLAIN_FIELDS = frozenset({"model", "messages", "stream", "temperature", "top_p", "stop"})
"""What every server takes."""
OPENING = (
    '{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}]}'
)
ENDING = '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}'
COUNT = '{"choices": [], "usage": {usage}}'
USAGE = (
    '{"prompt_tokens": {prompt}, "completion_tokens": {completion}, "total_tokens": {total},'
    ' "completion_tokens_details": {"reasoning_tokens": {thought}}}'
)
"""Thoughts belong to the completion."""


class Recorded(BaseModel):
    """A part of a file of exchanges."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(Recorded):
    """A recorded answer: a body, or a stream under status 200; `{model}` in it is the model that was asked."""

    status: int = 200
    headers: dict[str, str] = {}
    body: str | None = None
    stream: str | None = None

    def turn(self, **known: str) -> Turn:
        """Return it with what it names put in."""
        body = None if self.body is None else filled(self.body, known).encode()
        events = None if self.stream is None else (filled(self.stream, known).encode(),)
        return Turn(status=self.status, headers=self.headers, body=body, events=events)


class When(Recorded):
    """What a server doesn't take; everything that is set must be so, `models` (a pattern) of those it serves."""

    models: str | None = None
    unknown: bool = False
    """A field that isn't among those it takes."""
    fields: tuple[str, ...] = ()
    """Any of these, `outside` a range if there is one."""
    outside: tuple[float, float] | None = None
    format: str | None = None
    keywords: tuple[str, ...] = ()
    """Any of these in a strict schema."""
    open_schema: bool = False
    """A strict schema with an object that allows, or may lack, properties."""
    no_json_word: bool = False
    """A JSON object is asked for without a word about it."""
    streamed: bool | None = None
    role: str | None = None
    no_role: str | None = None
    uneven_turns: bool = False

    def names(self, request: Json, original: "Original") -> list[str] | None:
        """Return what of a request it refuses, by name as far as it has one; `None` if this isn't the case."""
        low, high = self.outside or (0, 0)
        names = [name for name in request if self.unknown and name not in PLAIN_FIELDS | original.takes]
        names += [
            name
            for name in self.fields
            if name in request
            and (self.outside is None or not low <= cast("float", request[name]) <= high)
        ]
        schema, strict = schema_of(request)
        names += sorted(keywords_in(schema, self.keywords)) if strict else []
        roles = roles_of(request)
        turns = [role for role in roles if role != "system"]
        alternating = [("user", "assistant")[place % 2] for place in range(len(turns))]
        model = str(request["model"])
        holds = (
            bool(names) or not (self.unknown or self.fields or self.keywords),
            self.models is None or (model in original.models and bool(re.search(self.models, model))),
            self.format in (None, form_of(request)),
            not self.open_schema or (strict and not is_closed(schema)),
            not self.no_json_word or lacks_json(request),
            self.streamed in (None, bool(request.get("stream"))),
            self.role is None or self.role in roles,
            self.no_role is None or self.no_role not in roles,
            not self.uneven_turns or turns != alternating,
        )
        return names if all(holds) else None


class Refusal(Answer):
    """How it refuses what it doesn't take.

    Beside the model it may name the refused: `{name}` the first, `{value}` and `{json}` what that was, `{names}` and
    `{quoted}` all, `{s}` of a plural, or `{each}`, with `between` between.
    """

    when: tuple[When, ...]
    each: str = ""
    between: str = ""
    sent: dict[str, object]
    """The fields of a request that is refused so, for a test."""

    def refused(self, request: Json, original: "Original") -> Turn | None:
        """Return the answer to a request that this is the refusal of."""
        found = (when.names(request, original) for when in self.when)
        if (names := next((names for names in found if names is not None), None)) is None:
            return None

        def known(name: str) -> dict[str, str]:
            value = request.get(name)
            return {"name": name, "value": in_json(repr(value)), "json": orjson.dumps(value).decode()}

        return self.turn(
            **known(names[0] if names else ""),
            names=", ".join(names),
            quoted=in_json(", ".join(map(repr, names))),
            s="s" if len(names) > 1 else "",
            each=self.between.join(filled(self.each, known(name)) for name in names),
            model=in_json(str(request["model"])),
        )


class Original(Recorded):
    """A server as it was seen to behave: one file of exchanges. `like` names the file that it follows where it is silent."""

    title: str
    page: str
    """Where it was seen: documentation, source, or an issue."""
    dialect: str
    path: str = "/v1"
    models: tuple[str, str, str]
    keyless: bool = False
    key_header: str | None = None
    """What may carry the key beside `Authorization`."""
    any_model: bool = False
    """Whether it answers under every name."""
    fallbacks: bool = False
    """Whether it asks the next of the request's `models`."""
    takes: frozenset[str] = frozenset()
    thinks: Thinking | None = None
    thinking_models: str = ""
    """The pattern of those that think."""
    grammar_silences: bool = False
    """Whether a format leaves no room for thoughts."""
    json_in_thoughts: bool = False
    window: int = 10**9
    """Tokens of a prompt that it reads; what is longer is cut silently."""
    usage: str = USAGE
    comment: str = ""
    """What keeps its connection alive."""
    opening: tuple[str, ...] = (OPENING,)
    counts_along: bool = False
    """Whether each chunk has the usage so far."""
    ending: tuple[str, ...] = (ENDING,)
    asked: tuple[str, ...] = (COUNT,)
    """What follows if `stream_options` ask for the usage."""
    whole_headers: dict[str, str] = {}
    model_row: str = '{"id": "{model}", "object": "model", "created": 1}'
    model_list: Answer = Answer(body='{"object": "list", "data": [{rows}]}')
    wrong_key: Answer
    unknown_model: Answer | None = None
    refuses: tuple[Refusal, ...] = ()
    troubles: Mapping[Trouble, Answer] = {}
    unforeseen: int = 0
    """Requests of one model that it refuses though its dialect is known: for what a model, its version or
    the organization lacks."""
    needs_dialect: bool = False
    """Whether it refuses fields without naming them, so that its dialect has to be known."""
    credit_cause: Cause = "credit"
    """What its answer to an empty account says: one says only that the key isn't allowed, one that its own
    budget for the key is used up."""

    @property
    def states_cost(self) -> bool:
        """Whether replies say what they cost."""
        return any('"cost' in text for text in (self.usage, *self.ending, *self.asked))

    @property
    def counts(self) -> bool:
        """Whether a stream says its usage."""
        return self.counts_along or any("usage" in text for text in (*self.ending, *self.asked))

    def thinks_about(self, request: Json) -> bool:
        """Whether the model thinks before it answers this."""
        silenced = self.grammar_silences and form_of(request) != "text"
        named = re.search(self.thinking_models, str(request["model"]))
        return self.thinks is not None and not silenced and named is not None

    def answering(self, request: Json) -> str | None:
        """Return the model that answers, `None` where none of its own is asked."""
        more = cast("list[object]", request.get("models") or []) if self.fallbacks else []
        asked = map(str, (request["model"], *more))
        return next((model for model in asked if self.any_model or model in self.models), None)


def _read(name: str) -> Json:
    fields: Json = tomllib.loads((EXCHANGES / f"{name}.toml").read_text(encoding="utf-8"))
    like = cast("str | None", fields.pop("like", None))
    return ({} if like is None else _read(like)) | fields


ORIGINALS = {
    path.stem: Original.model_validate(_read(path.stem)) for path in sorted(EXCHANGES.glob("*.toml"))
}
"""Every server, by the name of its file."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request whose fields weren't taken, and what was said of it."""

    request: Json
    said: str


class StandIn(ModelServer):
    """A strict server: checks the key, then the fields, then the model, and lets a scripted member answer.

    `refusals` are the requests whose fields it refused, `taken` those it answered, `counted` the usage of
    its answers. A trouble goes on as often as it is told to.
    """

    def __init__(self, name: str) -> None:
        self.original = ORIGINALS[name]
        super().__init__(models=self._models, path=self.original.path)
        self.refusals: list[Refused] = []
        self.taken: list[Json] = []
        self.counted: list[Json] = []
        self.always("*", self._serve)
        self._trouble: Answer | None = None
        self._times = 0

    def suffer(self, trouble: Trouble, times: int = 10**9) -> None:
        """Answer the next calls with a trouble."""
        self._trouble, self._times = self.original.troubles[trouble], times

    @property
    def measured(self) -> list[Json]:
        """The usage of its answers as far as it says it."""
        return self.counted if self.original.counts else []

    def _models(self, exchange: Exchange) -> Turn:
        if not self._knows(exchange):
            return self.original.wrong_key.turn()
        rows = [
            filled(self.original.model_row, {"model": model, "bare": model.partition(":")[0]})
            for model in self.original.models
        ]
        return self.original.model_list.turn(rows=", ".join(rows))

    def _knows(self, exchange: Exchange) -> bool:
        own = self.original.key_header
        return (
            self.original.keyless
            or exchange.headers.get("Authorization") == f"Bearer {KEY}"
            or (own is not None and exchange.headers.get(own) == KEY)
        )

    def _serve(self, exchange: Exchange) -> Turn:
        request, original = exchange.request, self.original
        asked = in_json(exchange.model)
        if not self._knows(exchange):
            return original.wrong_key.turn()
        if self._times and self._trouble is not None:
            self._times -= 1
            return self._trouble.turn(model=asked)
        for refusal in original.refuses:
            if (turn := refusal.refused(request, original)) is not None:
                self.refusals.append(Refused(request, cast("bytes", turn.body).decode()))
                return turn
        if original.answering(request) is None and original.unknown_model is not None:
            return original.unknown_model.turn(model=asked)
        return self._answer(request)

    def _answer(self, request: Json) -> Turn:
        original = self.original
        text = member(request)
        thoughts = THOUGHTS.format(model=request["model"]) if original.thinks_about(request) else ""
        prompt = min(len(prompt_of(request)) // CHARACTERS_PER_TOKEN, original.window)
        said, thought = (len(each) // CHARACTERS_PER_TOKEN for each in (text, thoughts))
        numbers = {"prompt": prompt, "text": said, "thought": thought, "completion": said + thought}
        known = {name: str(number) for name, number in numbers.items()}
        known["total"] = str(prompt + said + thought)
        known["usage"] = filled(original.usage, known)
        self.taken.append(request)
        self.counted.append(orjson.loads(known["usage"]))
        if original.json_in_thoughts and form_of(request) == "json_schema":
            thoughts, text = text, ""
        if original.thinks in ("tags", "closing tag") and thoughts:
            opening = "<think>" if original.thinks == "tags" else ""
            thoughts, text = "", f"{opening}\n{thoughts}\n</think>\n\n{text}"
        if request.get("stream"):
            return Turn(events=[*self._events(request, text, thoughts, known)])
        message = self._thought(thoughts) if thoughts else {}
        parts = cast("list[Json]", message.get("content") or [])
        said_whole = [*parts, {"type": "text", "text": text}] if parts else text
        choice = {"message": {"role": "assistant", **message, "content": said_whole}}
        choices = [{"index": 0, "finish_reason": "stop", **choice}]
        body = self._enveloped(request, {"choices": choices, "usage": self.counted[-1]}, "")
        return Turn(body=body, headers=original.whole_headers)

    def _events(
        self, request: Json, text: str, thoughts: str, known: Mapping[str, str]
    ) -> Iterator[bytes]:
        original = self.original
        comment = [original.comment.encode()] if original.comment else []
        yield from comment
        yield from (self._event(request, orjson.loads(chunk)) for chunk in original.opening)
        counted = {"usage": self.counted[-1]} if original.counts_along else {}
        for piece in re.findall(r"\s*\S+\s*", thoughts):
            yield self._event(request, {"choices": [_choice(self._thought(piece))], **counted})
        yield from comment
        for piece in re.findall(r"\s*\S+\s*", text):
            yield self._event(request, {"choices": [_choice({"content": piece})], **counted})
        options = cast("Json", request.get("stream_options") or {})
        for text in (*original.ending, *(original.asked if options.get("include_usage") else ())):
            yield self._event(request, orjson.loads(filled(text, known)))
        yield b"data: [DONE]\n\n"

    def _event(self, request: Json, chunk: Json) -> bytes:
        return b"data: " + orjson.dumps(self._enveloped(request, chunk, ".chunk")) + b"\n\n"

    def _enveloped(self, request: Json, content: Json, kind: str) -> Json:
        model = self.original.answering(request)
        return {"id": "1", "object": f"chat.completion{kind}", "created": 1, "model": model, **content}

    def _thought(self, piece: str) -> Json:
        """Return a part of the thoughts as a delta or message has it."""
        if self.original.thinks == "parts":
            return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]}
        return {self.original.thinks or "": piece}


def _choice(delta: Json) -> Json:
    return {"index": 0, "delta": delta, "finish_reason": None}


def filled(text: str, known: Mapping[str, str]) -> str:
    """Return a text with what it names in braces put in."""
    return re.sub(r"\{(\w+)\}", lambda found: known.get(found[1], found[0]), text)


def in_json(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]


def member(request: Json) -> str:
    """Play a council's member, who ranks in the alphabet's order.

    Asked for any JSON object, it finds the labels by itself.
    """
    prompt = prompt_of(request)
    labels = sorted(set(re.findall(r"\bResponse [A-Z]\b", prompt)))
    schema, _ = schema_of(request)
    if form_of(request) == "json_object" and labels and "as JSON" in prompt:
        schema = ballot_schema(labels)
    elif form_of(request) == "json_object" and "Under `replies`" in prompt:
        schema = reply_schema(None)
    if not schema:
        if CONCLUDE in prompt[-TASK_LENGTH:]:
            return CONCLUSION.format(request["model"])
        return council_member(request)
    said = cast("Json", instance(schema, labels))
    if "replies" in said:
        said = mended(said, request)
    if ranking := cast("list[str] | None", said.get("ranking")):
        said["ranking"] = sorted(ranking)
    return orjson.dumps(said).decode()


def prompt_of(request: Json) -> str:
    return "\n\n".join(str(message["content"]) for message in messages_of(request))


def messages_of(request: Json) -> list[Json]:
    return cast("list[Json]", request.get("messages") or [])


def roles_of(request: Json) -> list[str]:
    return [str(message["role"]) for message in messages_of(request)]


def form_of(request: Json) -> str:
    """Return the format asked for: `text` where none is."""
    return str(cast("Json", request.get("response_format") or {}).get("type", "text"))


def schema_of(request: Json) -> tuple[Json, bool]:
    """Return the JSON schema asked for, and whether strictly."""
    form = cast("Json", request.get("response_format") or {})
    shape = cast("Json", form.get("json_schema") or {})
    return cast("Json", shape.get("schema") or {}), bool(shape.get("strict"))


def lacks_json(request: Json) -> bool:
    """Whether a JSON object is asked for without a word about it, which many refuse."""
    return form_of(request) == "json_object" and "json" not in prompt_of(request).lower()


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


def is_closed(schema: object) -> bool:
    """Whether every object of a schema is closed and wants all its properties, as OpenAI's strict ones do."""
    if isinstance(schema, list):
        return all(map(is_closed, cast("list[object]", schema)))
    if not isinstance(schema, dict):
        return True
    fields = cast("Json", schema)
    properties = cast("Json", fields.get("properties") or {})
    if fields.get("type") == "object" and (
        fields.get("additionalProperties") is not False or fields.get("required") != [*properties]
    ):
        return False
    return all(is_closed(value) for value in [*fields.values(), *properties.values()])
