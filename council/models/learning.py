"""What a server has refused, and how requests to it are changed so that it takes them.

A refusal names a field that was sent (`error.param`, the last `loc`, or words of its message): the field
is dropped, or swapped for what does the same. One that names nothing is answered by changes on trial,
one at a time, of which the one that helps is kept. What concerns credit, keys, models, length or
moderation isn't mended by other fields, and never comes here.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from pydantic import BaseModel, ConfigDict

from council.errors import Failure
from council.models.dialects import Dialect, Format, LimitName
from council.profile import THINKING_FIELDS
from council.text.json_objects import JsonObject

MOST_REFUSALS = 5
"""Refused requests that may be spent on learning what one model's server takes."""
MOST_WORDS = 4_000
"""Characters of an error that are searched for a field's name."""
OTHER_LIMIT: dict[LimitName, LimitName] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


class Traits(BaseModel):
    """What has been learned of a model at its address, or of an address alone.

    `dropped` are fields that aren't sent, `limit` the name of the length limit where it isn't the
    dialect's, `format_steps` how many of the dialect's formats were refused. `whole`: replies aren't
    streamed, none or only those in a format. `merges_system`: the system's text goes before the
    user's. `blind`: pictures aren't sent. `thinks_unmarked`: replies may begin with thoughts that only a
    closing tag ends. `prefix` is what the address lacks before `/chat/completions`. `tried`: no change
    that can be tried helps against a refusal that names nothing. `refusals` counts the refused requests.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    dropped: tuple[str, ...] = ()
    limit: LimitName | None = None
    format_steps: int = 0
    whole: bool = False
    whole_formats: bool = False
    merges_system: bool = False
    blind: bool = False
    thinks_unmarked: bool = False
    prefix: str = ""
    tried: bool = False
    refusals: int = 0

    def beside(self, other: "Traits") -> "Traits":
        """Return what both say together: of a model, and of its address."""
        return Traits(
            dropped=tuple(dict.fromkeys((*self.dropped, *other.dropped))),
            limit=self.limit or other.limit,
            format_steps=max(self.format_steps, other.format_steps),
            whole=self.whole or other.whole,
            whole_formats=self.whole_formats or other.whole_formats,
            merges_system=self.merges_system or other.merges_system,
            blind=self.blind or other.blind,
            thinks_unmarked=self.thinks_unmarked or other.thinks_unmarked,
            prefix=self.prefix or other.prefix,
            tried=self.tried or other.tried,
            refusals=self.refusals,
        )

    @property
    def form(self) -> "Traits":
        """What of it shapes a request: two calls with the same form send the same fields."""
        return self.model_copy(update={"refusals": 0, "tried": False, "thinks_unmarked": False})

    def counting(self, refusals: int) -> "Traits":
        """Return these traits with a count of refused requests."""
        return self.model_copy(update={"refusals": refusals})


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a refusal has taught; `everywhere`: it holds for every model at the address."""

    traits: Traits
    everywhere: bool = False


def named_change(
    error: object, failure: Failure, body: JsonObject, dialect: Dialect, traits: Traits
) -> Lesson | None:
    """Return the change that a refusal asks for by name; `None` where it names nothing that was sent.

    `error` is the refusal's body, `body` the request's. A field is changed only once.
    """
    if failure.cause not in _MENDABLE.get(failure.status or 0, ()):
        return None
    words = " ".join(_strings(error))[:MOST_WORDS]
    everywhere = bool(_UNKNOWN.search(words))
    if _has_system(body) and not traits.merges_system and _SYSTEM.search(words):
        return Lesson(Traits(merges_system=True))
    if _has_pictures(body) and _PICTURES.search(words):
        return Lesson(Traits(blind=True))
    for name in _named(error, words, body):
        if (changed := _without(name, body, dialect, traits)) is not None:
            # A format is a matter of the model, whatever the words.
            return Lesson(changed, everywhere and name != "response_format")
    return None


def trials(
    failure: Failure, error: object, body: JsonObject, dialect: Dialect, traits: Traits
) -> list[Traits]:
    """Return changes to try, one at a time, after a refusal that names nothing that was sent.

    There are none where a server's refusals always name what it doesn't take, or where all were in vain.
    What a refusal says of the text, and a server that breaks down, can only be about the format.
    """
    if dialect.names_fields or traits.tried or failure.cause not in _SILENT.get(failure.status or 0, ()):
        return []
    changes: list[Traits | None] = []
    if failure.status == _BAD_REQUEST and _has_pictures(body):
        changes.append(Traits(blind=True))
    if "response_format" in body:
        changes.append(_without("response_format", body, dialect, traits))
    words = " ".join(_strings(error))[:MOST_WORDS]
    if failure.status == _BAD_REQUEST and not _CONTENT.search(words):
        fields = ("stream_options", *sorted(THINKING_FIELDS), "temperature", *OTHER_LIMIT)
        changes += [_without(name, body, dialect, traits) for name in fields if name in body]
        if _has_system(body) and not traits.merges_system:
            changes.append(Traits(merges_system=True))
    return [each for each in changes if each is not None]


def smaller_limit(failure: Failure, error: object, asked: int | None) -> int | None:
    """Return how long a reply the account can still afford, where a refusal says so.

    Source: OpenRouter's 402, "requested up to 65536 tokens, but can only afford 30104".
    """
    if failure.cause != "too_dear" or not (
        found := _AFFORD.search(" ".join(_strings(error))[:MOST_WORDS])
    ):
        return None
    affordable = int(re.sub(r"\D", "", found["after"] or found["before"]))
    return affordable if affordable >= LEAST_TOKENS and affordable < (asked or affordable + 1) else None


LEAST_TOKENS = 256
"""Tokens of a reply below which it isn't worth asking for."""
_BAD_REQUEST = 400
_MENDABLE: dict[int, tuple[str, ...]] = {
    400: ("bad_request",),
    404: ("bad_request", "not_found", "data_policy"),
    422: ("bad_request",),
    500: ("bad_request", "unavailable"),
    501: ("bad_request", "unavailable"),
}
"""Causes, by status, behind which there may be a field that a server doesn't take."""
_SILENT: dict[int, tuple[str, ...]] = {400: ("bad_request",), 500: ("unavailable",)}
"""Likewise for refusals that name nothing."""
_UNKNOWN = re.compile(
    r"unknown|unrecogni[sz]ed|\bextra\b|extra_forbidden|cannot find field|not permitted"
    r"|is unsupported|not a valid field",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    r"(?:system|developer) (?:role|messages?|prompts?|instructions?)\b.{0,40}\b(?:not|n't|un\w*ed)\b"
    r"|(?:not|n't|un\w*ed)\b.{0,40}\b(?:system|developer) (?:role|messages?|prompts?|instructions?)\b"
    r"|(?:only|must be) \W*user\W* (?:and|or) \W*(?:assistant|model)\b"
    r"|roles must alternate",
    re.IGNORECASE | re.DOTALL,
)
_PICTURES = re.compile(
    r"\bimages?\b|image_url|multi-?modal|\bvision\b"
    r"|\bcontent\b.{0,40}\b(?:must be|should be|expected|valid)\b.{0,20}\bstr(?:ing)?\b",
    re.IGNORECASE | re.DOTALL,
)
"""What servers say of pictures that a model can't read: "No endpoints found that support image input"
(OpenRouter, 404), "image input is not supported by this server" (llama.cpp, 500), "is not a multimodal
model" (vLLM), "unknown variant `image_url`, expected `text`" (DeepSeek), "content must be a string"
(Groq)."""
_CONTENT = re.compile(r"\b(?:messages?|prompt|content|role)\b", re.IGNORECASE)
"""Words of refusals that are about what was said, not about how."""
_FORMAT = re.compile(
    r"response[_ ]?format|json[_ ]?schema|structured[_ ]outputs?|guided[_ ](?:decoding|json)|\bgrammar\b"
    r"|schema fields|handle the requested parameters",
    re.IGNORECASE,
)
_STREAM = re.compile(
    r"[\"'`]stream[\"'`]"
    r"|\bstream(?:ing)?\b.{0,30}(?:not (?:supported|available|allowed|enabled)|unsupported|disabled)"
    r"|(?:n't|not|cannot|only|disable)\b(?: support)?.{0,20}\b(?:non-)?stream(?:ing)?\b",
    re.IGNORECASE | re.DOTALL,
)
_THINKING = re.compile(r"\b(?:thinking|reasoning)\b", re.IGNORECASE)
_AFFORD = re.compile(
    r"can only afford (?P<after>[\d,]+)|(?:only )?(?P<before>[\d,]+) can be afforded", re.IGNORECASE
)
_PATH = re.compile(r"[.\[/]")


def _without(name: str, body: JsonObject, dialect: Dialect, traits: Traits) -> Traits | None:
    """Return what is new where a field is sent otherwise or no more; `None` if nothing is left."""
    if name in OTHER_LIMIT and name in body:
        if traits.limit is None:
            return Traits(limit=OTHER_LIMIT[name])
        return Traits(dropped=(*OTHER_LIMIT,))
    if name == "response_format":
        model = str(body["model"])
        can_step = traits.format_steps < len(dialect.ladder(model))
        return Traits(format_steps=traits.format_steps + 1) if can_step else None
    if name == "stream":
        return Traits(whole_formats=True) if "response_format" in body else Traits(whole=True)
    if name in ("model", "messages") or name in traits.dropped:
        return None
    return Traits(dropped=(name,))


def _named(error: object, words: str, body: JsonObject) -> Iterator[str]:
    """Find the fields of a request that a refusal names: in `param` or `loc`, else in its words."""
    exact = [name for each in _parameters(error) if (name := _field(each, body))]
    if exact:
        yield from dict.fromkeys(exact)
        return
    if "response_format" in body and _FORMAT.search(words):
        if _STREAM.search(words):
            yield "stream"
        yield "response_format"
    for name in body:
        if name not in ("model", "messages", "stream") and _names(name).search(words):
            yield name
    if _THINKING.search(words):
        yield from (name for name in body if name in THINKING_FIELDS)
    if body.get("stream") and _STREAM.search(words):
        yield "stream"


@lru_cache(maxsize=64)
def _names(field: str) -> re.Pattern[str]:
    """Return what finds a field's name; one that is also a word must be meant as a name."""
    camel = re.sub(r"_(\w)", lambda letter: letter[1].upper(), field)
    name = rf"(?:{re.escape(field)}|{re.escape(camel)})"
    if "_" in field:
        return re.compile(rf"(?<![\w.]){name}(?!\w)", re.IGNORECASE)
    return re.compile(
        rf"[\"'`\u2018]{name}[\"'`\u2019]"
        rf"|\b(?:parameters?|arguments?|fields?|property|supplied|name|model|invalid|unsupported|unknown"
        rf"|supports?)\b\W{{1,3}}{name}\b"
        rf"|\b{name}\W{{1,3}}(?:is|isn't|are|does|doesn't|must|should|can|can't|cannot)\b",
        re.IGNORECASE,
    )


def _field(name: str, body: Collection[str]) -> str | None:
    """Return the field of a request that a name means: `reasoning.effort` and `presencePenalty`, too."""
    root = _PATH.split(name.strip())[0]
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", root).lower()
    return snake if snake in body and snake not in ("model", "messages") else None


def _parameters(error: object, depth: int = 4) -> Iterator[str]:
    """Find `param` and the last `loc` in an error's body, whatever surrounds them."""
    if isinstance(error, list) and depth:
        for each in cast("list[object]", error)[:20]:
            yield from _parameters(each, depth - 1)
    if not isinstance(error, dict) or not depth:
        return
    fields = cast("JsonObject", error)
    if isinstance(param := fields.get("param"), str):
        yield param
    loc = fields.get("loc")
    if isinstance(loc, list) and loc:
        parts = [str(part) for part in cast("list[object]", loc) if part != "body"]
        yield parts[0] if parts else ""
    for value in fields.values():
        yield from _parameters(value, depth - 1)


def _strings(error: object, depth: int = 5) -> Iterator[str]:
    if isinstance(error, str):
        yield error[:MOST_WORDS]
    elif isinstance(error, dict | list) and depth:
        inner = (
            cast("JsonObject", error).values()
            if isinstance(error, dict)
            else cast("list[object]", error)
        )
        for each in [*inner][:50]:
            yield from _strings(each, depth - 1)


def _has_system(body: JsonObject) -> bool:
    messages = cast("list[JsonObject]", body["messages"])
    return any(message["role"] == "system" for message in messages)


def _has_pictures(body: JsonObject) -> bool:
    return any(
        isinstance(message["content"], list) for message in cast("list[JsonObject]", body["messages"])
    )


def steps_left(dialect: Dialect, traits: Traits, model: str) -> tuple[Format, ...]:
    """Return the ways to ask a model for JSON that it hasn't refused, best first."""
    return dialect.ladder(model)[traits.format_steps :]
