"""What each model server takes: one row a server, chosen by the host of its address.

A server that isn't listed is `generic`: it gets what most take, and what it refuses is learned
(`council.models.refusals`). The rows are from the servers' own documentation and their users' reports;
`docs/providers.md` names them.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal

import httpx

from council.profile import DialectName, Reasoning
from council.text.json_objects import JsonObject

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


Controls = Callable[[Reasoning], JsonObject]
"""Returns the body's fields that ask a server for so much thinking."""


def _effort(**spelled: str) -> Controls:
    """Return controls by `reasoning_effort`; `spelled` has the levels that a server calls otherwise."""
    return lambda level: {"reasoning_effort": spelled.get(level, "none" if level == "off" else level)}


def _openrouter(level: Reasoning) -> JsonObject:
    return {"reasoning": {"effort": "none" if level == "off" else level}}


def _together(level: Reasoning) -> JsonObject:
    return {"reasoning": {"enabled": False}} if level == "off" else {"reasoning_effort": level}


def _switch(level: Reasoning) -> JsonObject:
    return {"thinking": {"type": "disabled" if level == "off" else "enabled"}}


def _deepseek(level: Reasoning) -> JsonObject:
    efforts = {"low": "low", "medium": "high", "high": "max"}
    effort: JsonObject = {"reasoning_effort": efforts[level]} if level in efforts else {}
    return {**_switch(level), **effort}


def _dashscope(level: Reasoning) -> JsonObject:
    return {"enable_thinking": level != "off"}


def _template(level: Reasoning) -> JsonObject:
    # What a model's own chat template calls it; some templates know only one of the two.
    template: JsonObject = {"chat_template_kwargs": {"enable_thinking": False}}
    return {**_effort()(level), **(template if level == "off" else {})}


_HIGH_OR_NONE = _effort(low="high", medium="high")


_BY_EFFORT = _effort()


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one kind of server takes.

    `hosts` are ends of host names. `limit` is the name of the reply's length limit, `formats` the ways
    to ask for JSON, best first, `formats_by_model` those of models whose ids match a pattern.
    `counts`: it takes `stream_options`. `streams_formats`: a reply in a format may be streamed.
    `routes`: it takes OpenRouter's own fields. `controls` writes how much a model is to think.
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
    controls: Controls = _BY_EFFORT
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
        controls=_openrouter,
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
        controls=_HIGH_OR_NONE,
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
    Dialect("together", ("together.ai", "together.xyz"), controls=_together),
    Dialect("fireworks", ("api.fireworks.ai",), formats=("strict", "object")),
    Dialect("deepseek", ("api.deepseek.com",), formats=("object",), controls=_deepseek),
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
        controls=_HIGH_OR_NONE,
    ),
    Dialect(
        "moonshot",
        ("api.moonshot.ai", "api.moonshot.cn"),
        "max_completion_tokens",
        ("strict", "object"),
        controls=_switch,
    ),
    Dialect(
        "zai",
        ("api.z.ai", "open.bigmodel.cn"),
        formats=("object",),
        counts=False,
        controls=_switch,
    ),
    Dialect(
        "dashscope",
        ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
        formats=("strict", "object"),
        formats_by_model=((r"thinking|^qwq|^qvq|deepseek-r1", ()),),
        controls=_dashscope,
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
    Dialect("ollama", formats=_LOCAL_FORMATS),
    Dialect(
        "vllm",
        formats=_LOCAL_FORMATS,
        controls=_template,
    ),
    Dialect("sglang", formats=_LOCAL_FORMATS, controls=_template),
    Dialect("lmstudio", formats=("strict",)),
    Dialect("llamacpp", formats=_LOCAL_FORMATS, controls=_template),
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
