"""The servers of models: what each kind takes, a row each, and what was learned of one at its address.

A server that isn't listed is `generic`: it gets what most take, and what it refuses is learned
(`council.models.refusals`). The rows are from the servers' own documentation and their users' reports;
`docs/providers.md` names them.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Literal, cast

import httpx
import structlog

from council.calls import Call
from council.errors import Failure, ModelError
from council.models.refusals import KEY, RefusedCall, names_nothing, refused_part
from council.models.transport import proxy_of
from council.profile import DialectName, Reasoning
from council.text.json_objects import JsonObject
from council.text.redaction import Redaction, passwords

LimitName = Literal["max_tokens", "max_completion_tokens"]
OTHER_LIMIT: Mapping[LimitName, LimitName] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
Format = Literal["strict", "schema", "object_schema", "object"]
"""How a reply's JSON schema is asked for: a strict `json_schema`, one that need not be strict, a
`json_object` that carries the schema, and one whose schema is in the prompt."""


def format_part(kind: Format) -> str:
    """Return what a format is called among the parts of a request that a model refuses."""
    return f"response_format {kind}"


Thinking = dict[Reasoning, JsonObject]
"""The body's fields that ask a server for so much thinking."""


def _effort(off: str = "none", low: str = "low", medium: str = "medium", high: str = "high") -> Thinking:
    """Return the levels as `reasoning_effort`, as a server calls them."""
    levels: dict[Reasoning, str] = {"off": off, "low": low, "medium": medium, "high": high}
    return {level: {"reasoning_effort": effort} for level, effort in levels.items()}


def _switch(off: JsonObject, on: JsonObject) -> Thinking:
    """Return the levels of a server that only takes thinking or none."""
    return {"off": off, "low": on, "medium": on, "high": on}


_EFFORT, _HIGH_OR_NONE = _effort(), _effort(low="high", medium="high")
_ROUTED: Thinking = {
    level: {"reasoning": {"effort": cast("str", fields["reasoning_effort"])}}
    for level, fields in _EFFORT.items()
}
_TYPE = _switch({"thinking": {"type": "disabled"}}, {"thinking": {"type": "enabled"}})
_TYPE_AND_EFFORT: Thinking = {
    level: {**_TYPE[level], **({} if level == "off" else fields)}
    for level, fields in _effort(medium="high", high="max").items()
}
_ENABLED: Thinking = {**_EFFORT, "off": {"reasoning": {"enabled": False}}}
# What a model's own chat template calls it; some templates know only one of the two.
_TEMPLATE: Thinking = {
    **_EFFORT,
    "off": {**_EFFORT["off"], "chat_template_kwargs": {"enable_thinking": False}},
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one kind of server takes.

    `hosts` are ends of host names. `limit` is the name of the reply's length limit, `formats` the ways
    to ask for JSON, best first, `formats_by_model` those of models whose ids match a pattern.
    `counts`: it takes `stream_options`. `streams_formats`: a reply in a format may be streamed.
    `routes`: it takes OpenRouter's own fields. `thinking` has, by level, how much a model is to think.
    `key_header` carries the key, after `key_prefix`. `systemless` matches ids of models that take no
    system message. `bills`: it isn't the models' last stop, so its address says nothing of the cost.
    """

    name: DialectName
    hosts: tuple[str, ...] = ()
    limit: LimitName = "max_tokens"
    formats: tuple[Format, ...] = ("strict", "schema", "object")
    formats_by_model: tuple[tuple[str, tuple[Format, ...]], ...] = ()
    counts: bool = True
    streams_formats: bool = True
    routes: bool = False
    thinking: Thinking = field(default_factory=lambda: _EFFORT)
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    systemless: str | None = None
    bills: bool = False

    def ladder(self, model: str, refused: Collection[str] = ()) -> tuple[Format, ...]:
        """Return the ways left to ask a model for JSON, best first; prose comes after the last."""
        own = (formats for pattern, formats in self.formats_by_model if re.search(pattern, model))
        return tuple(each for each in next(own, self.formats) if format_part(each) not in refused)

    def merges_system(self, model: str) -> bool:
        """Return whether a model is known to refuse a system message."""
        return self.systemless is not None and bool(re.search(self.systemless, model))


_LOCAL_FORMATS: tuple[Format, ...] = ("strict", "object")
_ROWS = (
    Dialect("generic"),
    Dialect("openai", ("api.openai.com",), "max_completion_tokens", ("strict", "object")),
    Dialect(
        "azure",
        ("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"),
        "max_completion_tokens",
        ("strict", "object"),
        key_header="api-key",
        key_prefix="",
    ),
    Dialect(
        "openrouter",
        ("openrouter.ai",),
        # Its list says which models take a schema; the others drop the field.
        formats=("strict", "object"),
        routes=True,
        thinking=_ROUTED,
        bills=True,
    ),
    Dialect("anthropic", ("api.anthropic.com",), formats=("strict",)),
    Dialect(
        "gemini",
        ("generativelanguage.googleapis.com",),
        formats=("strict", "object"),
        formats_by_model=((r"(?:^|/)gemma", ()),),
        systemless=r"(?:^|/)gemma",
    ),
    Dialect(
        "mistral",
        ("api.mistral.ai",),
        formats=("strict", "object"),
        counts=False,
        thinking=_HIGH_OR_NONE,
    ),
    Dialect(
        "groq",
        ("api.groq.com",),
        "max_completion_tokens",
        formats=("object",),
        formats_by_model=(
            (r"gpt-oss", ("strict", "object")),
            (r"llama-4|kimi-k2", ("schema", "object")),
        ),
        streams_formats=False,
    ),
    Dialect(
        "together",
        ("together.ai", "together.xyz"),
        thinking=_ENABLED,
    ),
    Dialect("fireworks", ("api.fireworks.ai",), formats=("strict", "object")),
    Dialect("deepseek", ("api.deepseek.com",), formats=("object",), thinking=_TYPE_AND_EFFORT),
    Dialect(
        "xai",
        ("api.x.ai",),
        "max_completion_tokens",
        ("strict", "object"),
    ),
    Dialect(
        "cerebras",
        ("api.cerebras.ai",),
        "max_completion_tokens",
        ("strict", "object"),
        streams_formats=False,
    ),
    Dialect("perplexity", ("api.perplexity.ai",), formats=("strict",), counts=False),
    Dialect(
        "cohere",
        ("api.cohere.ai", "api.cohere.com"),
        formats=("object_schema",),
        thinking=_HIGH_OR_NONE,
    ),
    Dialect(
        "moonshot",
        ("api.moonshot.ai", "api.moonshot.cn"),
        "max_completion_tokens",
        ("strict", "object"),
        thinking=_TYPE,
    ),
    Dialect(
        "zai",
        ("api.z.ai", "open.bigmodel.cn"),
        formats=("object",),
        counts=False,
        thinking=_TYPE,
    ),
    Dialect(
        "dashscope",
        ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
        formats=("strict", "object"),
        formats_by_model=((r"thinking|^qwq|^qvq|deepseek-r1", ()),),
        thinking=_switch({"enable_thinking": False}, {"enable_thinking": True}),
    ),
    Dialect(
        "huggingface",
        ("router.huggingface.co",),
        bills=True,
    ),
    Dialect(
        "cloudflare",
        ("api.cloudflare.com", "gateway.ai.cloudflare.com"),
        formats=("strict",),
        bills=True,
    ),
    # vercel.com/docs/ai-gateway/sdks-and-apis/openai-chat-completions
    Dialect("vercel", ("ai-gateway.vercel.sh",), thinking=_ROUTED, bills=True),
    # java.agentscope.io/v2/en/integration/model/minimax: no format is documented, and its limit is new
    Dialect(
        "minimax",
        ("api.minimax.io", "api.minimaxi.com"),
        "max_completion_tokens",
        (),
        thinking=_switch({"thinking": {"type": "disabled"}}, {"thinking": {"type": "adaptive"}}),
    ),
    # docs.tokenfactory.nebius.com/api-reference/inference/create-chat-completion
    Dialect("nebius", ("api.tokenfactory.nebius.com", "api.studio.nebius.com")),
    Dialect("ollama", formats=_LOCAL_FORMATS),
    Dialect(
        "vllm",
        formats=_LOCAL_FORMATS,
        thinking=_TEMPLATE,
    ),
    Dialect("sglang", formats=_LOCAL_FORMATS, thinking=_TEMPLATE),
    Dialect("lmstudio", formats=("strict",)),
    Dialect("llamacpp", formats=_LOCAL_FORMATS, thinking=_TEMPLATE),
    Dialect("koboldcpp", formats=("strict",)),
    Dialect(
        "litellm",
        bills=True,
    ),
)
DIALECTS: Mapping[str, Dialect] = {row.name: row for row in _ROWS}


def dialect_of(address: httpx.URL, named: DialectName | None = None) -> Dialect:
    """Return the dialect that somebody named, else that of an address's host, else `generic`."""
    if named is not None:
        return DIALECTS[named]
    host = address.host.lower().rstrip(".")
    for row in _ROWS:
        if any(host == end or host.endswith(f".{end}") for end in row.hosts):
            return row
    return DIALECTS["generic"]


_OWN_NAMES = (".local", ".internal", ".lan", ".home.arpa", ".localhost")


def is_own(address: httpx.URL) -> bool:
    """Return whether an address is on this machine or its own network, where no call is billed.

    A name without a dot is a machine or a container of that network: `ollama`, `gpu-box`.
    """
    host = address.host.lower().rstrip(".")
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_OWN_NAMES)


APP_TITLE = "Council for team chat"
MAX_PORT = 2**16 - 1
EVERY_MODEL = ""
"""The model under which is kept what holds for all models at an address."""
MOST_REFUSALS = 5
"""Refused requests that may be spent on learning what one model's server takes."""
VERSION = "/v1"
_HAS_VERSION = re.compile(r"/v\d")

log = structlog.stdlib.get_logger()


@dataclass(slots=True)
class Server:
    """An address, what every call to it carries, what it takes, and a limit on concurrent calls."""

    base: httpx.URL
    headers: httpx.Headers
    secrets: Redaction
    dialect: Dialect
    is_own: bool
    """Whether it is on this machine or its own network, where no call is billed."""
    places: asyncio.Semaphore
    prefix: str = ""
    """What the address lacks before its pages."""
    thinks_unmarked: set[str] = field(default_factory=set[str])
    """Models whose replies may begin with thoughts that only a closing tag ends."""
    requests: Counter[str] = field(default_factory=Counter[str])
    """Refused requests that were spent on each model."""
    _refused: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def page(self, path: str) -> httpx.URL:
        """Return the address of a page, `models` or `chat/completions`; a query stays at its end."""
        before = self.base.path.rstrip("/").removesuffix("/chat/completions")
        return _at_path(self.base, f"{before}{self.prefix}/{path}")

    def may_lack_version(self, failure: Failure) -> bool:
        """Return whether the address may need `/v1` at its end, which most servers' have."""
        return failure.cause == "no_api" and not _HAS_VERSION.search(self.page("").path)

    def refused(self, model: str) -> tuple[str, ...]:
        """Return what a model, or all models there, don't take of a request."""
        return (*self._refused.get(EVERY_MODEL, ()), *self._refused.get(model, ()))

    def learn(self, model: str, *parts: str, everywhere: bool = False) -> None:
        """Remember what a refused request has taught."""
        where = EVERY_MODEL if everywhere else model
        self._refused.setdefault(where, {}).update(dict.fromkeys(parts))
        self.requests[model] += 1
        log.info("server_learned", server=self.base.host, model=model, learned=parts)

    def has_no_format(self, call: Call) -> bool:
        """Return whether a call wants JSON by a schema and every way to ask for it was refused."""
        model = call.member.model
        wants = call.schema is not None and bool(call.member.structured)
        return wants and not self.dialect.ladder(model, self.refused(model))

    def learn_from(
        self, refused: RefusedCall, model: str, body: JsonObject, *, has_stepped: bool
    ) -> bool:
        """Take in what a refusal says of its request; return whether the format was given up on a guess.

        One that names nothing is about the format, if it is about any part: the next one is asked for,
        once. Raises the refusal where nothing is left to be learned of it.
        """
        left = [format_part(each) for each in self.dialect.ladder(model, self.refused(model))]
        if self.requests[model] >= MOST_REFUSALS:
            raise refused
        if named := refused_part(refused.error, refused.failure, body):
            part, is_everywhere = named
            part = left[0] if part == "response_format" else part
            self.learn(model, part, everywhere=is_everywhere)
            return has_stepped
        is_hosted = bool(self.dialect.hosts)
        if "response_format" not in body or not names_nothing(refused.failure, is_hosted=is_hosted):
            raise refused
        self.learn(model, *(left if has_stepped else left[:1]))
        return True


def server_at(base_url: str, key: str, dialect: DialectName | None, calls_at_once: int) -> Server:
    """Return the server at an address. Raises `ModelError` if that is no http address."""
    base = _address(base_url)
    spoken = dialect_of(base, dialect)
    headers = {
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",  # so that the bytes counted are the bytes unpacked
        "Content-Type": "application/json",
        "User-Agent": "council-bot",
    }
    if spoken.routes:
        headers |= {"HTTP-Referer": "https://council-bot.invalid", "X-Title": APP_TITLE}
    if key:
        headers[spoken.key_header] = f"{spoken.key_prefix}{key}"
    secrets = Redaction((key, *passwords(base_url), *passwords(proxy_of(base) or "")), KEY)
    places = asyncio.Semaphore(calls_at_once)
    return Server(base, httpx.Headers(headers), secrets, spoken, is_own(base), places)


@lru_cache
def _at_path(base: httpx.URL, path: str) -> httpx.URL:
    return base.copy_with(path=path)  # as slow as parsing it


def _address(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL, UnicodeError):
        address = httpx.URL(url)
        if address.scheme in ("http", "https") and address.host and (address.port or 0) <= MAX_PORT:
            return address
    raise ModelError(Failure(cause="no_api", detail="its endpoint is no http address", attempts=0))
