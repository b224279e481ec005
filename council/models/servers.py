"""The servers of models: what each kind takes, a row each, and the body of a request to it.

A server that isn't listed is `generic`: it gets what most take, and what it refuses is learned
(`council.models.client`). The rows are from the servers' own documentation and their users' reports;
`docs/providers.md` names them.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal, cast

import httpx
import orjson

from council.calls import Call, ChatMessage
from council.models.refusals import FORMATTED_STREAM, PICTURES, SYSTEM
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
class Server:
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
    Server("generic"),
    Server("openai", ("api.openai.com",), "max_completion_tokens", ("strict", "object")),
    Server(
        "azure",
        ("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"),
        "max_completion_tokens",
        ("strict", "object"),
        key_header="api-key",
        key_prefix="",
    ),
    Server(
        "openrouter",
        ("openrouter.ai",),
        # Its list says which models take a schema; the others drop the field.
        formats=("strict", "object"),
        routes=True,
        thinking=_ROUTED,
        bills=True,
    ),
    Server("anthropic", ("api.anthropic.com",), formats=("strict",)),
    Server(
        "gemini",
        ("generativelanguage.googleapis.com",),
        formats=("strict", "object"),
        formats_by_model=((r"(?:^|/)gemma", ()),),
        systemless=r"(?:^|/)gemma",
    ),
    Server(
        "mistral",
        ("api.mistral.ai",),
        formats=("strict", "object"),
        counts=False,
        thinking=_HIGH_OR_NONE,
    ),
    Server(
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
    Server(
        "together",
        ("together.ai", "together.xyz"),
        thinking=_ENABLED,
    ),
    Server("fireworks", ("api.fireworks.ai",), formats=("strict", "object")),
    Server("deepseek", ("api.deepseek.com",), formats=("object",), thinking=_TYPE_AND_EFFORT),
    Server(
        "xai",
        ("api.x.ai",),
        "max_completion_tokens",
        ("strict", "object"),
    ),
    Server(
        "cerebras",
        ("api.cerebras.ai",),
        "max_completion_tokens",
        ("strict", "object"),
        streams_formats=False,
    ),
    Server("perplexity", ("api.perplexity.ai",), formats=("strict",), counts=False),
    Server(
        "cohere",
        ("api.cohere.ai", "api.cohere.com"),
        formats=("object_schema",),
        thinking=_HIGH_OR_NONE,
    ),
    Server(
        "moonshot",
        ("api.moonshot.ai", "api.moonshot.cn"),
        "max_completion_tokens",
        ("strict", "object"),
        thinking=_TYPE,
    ),
    Server(
        "zai",
        ("api.z.ai", "open.bigmodel.cn"),
        formats=("object",),
        counts=False,
        thinking=_TYPE,
    ),
    Server(
        "dashscope",
        ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
        formats=("strict", "object"),
        formats_by_model=((r"thinking|^qwq|^qvq|deepseek-r1", ()),),
        thinking=_switch({"enable_thinking": False}, {"enable_thinking": True}),
    ),
    Server(
        "huggingface",
        ("router.huggingface.co",),
        bills=True,
    ),
    Server(
        "cloudflare",
        ("api.cloudflare.com", "gateway.ai.cloudflare.com"),
        formats=("strict",),
        bills=True,
    ),
    # vercel.com/docs/ai-gateway/sdks-and-apis/openai-chat-completions
    Server("vercel", ("ai-gateway.vercel.sh",), thinking=_ROUTED, bills=True),
    # java.agentscope.io/v2/en/integration/model/minimax: no format is documented, and its limit is new
    Server(
        "minimax",
        ("api.minimax.io", "api.minimaxi.com"),
        "max_completion_tokens",
        (),
        thinking=_switch({"thinking": {"type": "disabled"}}, {"thinking": {"type": "adaptive"}}),
    ),
    # docs.tokenfactory.nebius.com/api-reference/inference/create-chat-completion
    Server("nebius", ("api.tokenfactory.nebius.com", "api.studio.nebius.com")),
    Server("ollama", formats=_LOCAL_FORMATS),
    Server(
        "vllm",
        formats=_LOCAL_FORMATS,
        thinking=_TEMPLATE,
    ),
    Server("sglang", formats=_LOCAL_FORMATS, thinking=_TEMPLATE),
    Server("lmstudio", formats=("strict",)),
    Server("llamacpp", formats=_LOCAL_FORMATS, thinking=_TEMPLATE),
    Server("koboldcpp", formats=("strict",)),
    Server(
        "litellm",
        bills=True,
    ),
)
SERVERS: Mapping[str, Server] = {row.name: row for row in _ROWS}


def known_server(address: httpx.URL, named: DialectName | None = None) -> Server:
    """Return the row whose dialect somebody named, else that of an address's host, else `generic`."""
    if named is not None:
        return SERVERS[named]
    host = address.host.lower().rstrip(".")
    for row in _ROWS:
        if any(host == end or host.endswith(f".{end}") for end in row.hosts):
            return row
    return SERVERS["generic"]


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


_NOT_SHOWN = "The pictures that the question names can't be shown to you. Say so where it matters."
_FOLLOWS_SCHEMA = "Reply with one JSON object that follows this JSON schema, and nothing else:"


def body_of_call(call: Call, server: Server, refused: Collection[str] = ()) -> JsonObject:
    """Return a request's body: what every server needs, and of the rest only what somebody set.

    `refused` are the parts of earlier requests that its model didn't take (`refused_part`).
    """
    member = call.member
    chosen = _format(call, server, refused)
    is_whole = chosen and (FORMATTED_STREAM in refused or not server.streams_formats)
    streams = "stream" not in refused and not is_whole
    body: JsonObject = {
        "model": member.model,
        "messages": _messages(call, server, refused, chosen),
        "stream": streams,
    }
    if streams and server.counts:
        body["stream_options"] = {"include_usage": True}
    if server.routes:
        if member.fallbacks:
            body["models"] = [member.model, *member.fallbacks]
        if call.web:
            body["plugins"] = [{"id": "web"}]
    if call.temperature is not None:
        body["temperature"] = call.temperature
    if call.max_tokens is not None:
        limit = OTHER_LIMIT[server.limit] if server.limit in refused else server.limit
        body[limit] = call.max_tokens
    if call.repeat_penalty is not None:
        body["repeat_penalty"] = call.repeat_penalty
    if member.reasoning is not None:
        body |= server.thinking[member.reasoning]
    if chosen and call.schema:
        body["response_format"] = _response_format(chosen, call.schema)
    body |= cast("JsonObject", orjson.loads(member.extra))
    return {name: value for name, value in body.items() if name not in refused or name == "stream"}


def _format(call: Call, server: Server, refused: Collection[str]) -> Format | None:
    if call.schema is None or not call.member.structured:
        return None
    return next(iter(server.ladder(call.member.model, refused)), None)


def _response_format(chosen: Format, schema: JsonObject) -> JsonObject:
    match chosen:
        case "object":
            return {"type": "json_object"}
        case "object_schema":
            return {"type": "json_object", "schema": schema}
        case "schema":
            return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        case "strict":
            shape = {"name": "reply", "strict": True, "schema": schema}
            return {"type": "json_schema", "json_schema": shape}


def _messages(
    call: Call, server: Server, refused: Collection[str], chosen: Format | None
) -> Sequence[ChatMessage]:
    messages = call.messages
    if chosen == "object":
        # Servers that take a bare `json_object` refuse prompts without the word JSON.
        schema = orjson.dumps(call.schema).decode()
        messages = _with_system(messages, f"{_FOLLOWS_SCHEMA}\n{schema}")
    if call.pictures and (PICTURES in refused or not call.images):
        messages = _with_system(messages, _NOT_SHOWN)
    if SYSTEM in refused or server.merges_system(call.member.model):
        messages = _merged(messages)
    if call.images and PICTURES not in refused:
        messages = _showing(call, messages)
    return messages


def _showing(call: Call, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return messages whose first user text has the pictures before it.

    Each is a part of its own; the text comes last, since it ends in its task.
    Source: https://platform.openai.com/docs/guides/images-vision
    """
    place = next(i for i, message in enumerate(messages) if message["role"] == "user")
    parts: list[JsonObject] = [
        {"type": "image_url", "image_url": {"url": f"data:{picture.media};base64,{image}"}}
        for picture, image in zip(call.pictures, call.images, strict=True)
    ]
    parts.append({"type": "text", "text": messages[place]["content"]})
    shown = cast("ChatMessage", {"role": "user", "content": parts})
    return (*messages[:place], shown, *messages[place + 1 :])


def _with_system(messages: Sequence[ChatMessage], words: str) -> tuple[ChatMessage, ...]:
    """Return messages whose system message ends in these words: the last one ends in its task."""
    first, *others = messages
    if first["role"] != "system":
        return ({"role": "system", "content": words}, *messages)
    return ({"role": "system", "content": f"{first['content']}\n\n{words}"}, *others)


def _merged(messages: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return messages whose system texts precede the first user's."""
    texts = [message["content"] for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    if not texts or not others:
        return tuple(messages)
    first = {**others[0], "content": "\n\n".join((*texts, others[0]["content"]))}
    return (cast("ChatMessage", first), *others[1:])
