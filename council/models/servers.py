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
from urllib.parse import urlsplit

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
_TEMPLATE_OFF: JsonObject = {"chat_template_kwargs": {"enable_thinking": False}}
_TEMPLATE: Thinking = {**_EFFORT, "off": {**_EFFORT["off"], **_TEMPLATE_OFF}}
_EVERY_FORMAT: tuple[Format, ...] = ("strict", "schema", "object")


@dataclass(frozen=True, slots=True)
class Server:
    """What one kind of server takes, and how `docs/providers.md` shows it.

    `shown` are its title, its address and what a model's id looks like, `note` what else people should
    know of it. `others` are ends of further host names. `limit` is the name of the reply's length limit,
    `formats` the ways to ask for JSON, best first, `formats_by_model` those of models whose ids match a
    pattern. `counts`: it takes `stream_options`. `streams_formats`: a reply in a format may be streamed.
    `routes`: it takes OpenRouter's own fields. `thinking` has, by level, how much a model is to think.
    `key_header` carries the key, after `key_prefix`. `systemless` matches ids of models that take no
    system message. `bills`: it isn't the models' last stop, so its address says nothing of the cost.
    """

    name: DialectName
    shown: tuple[str, str, str] = ("", "", "")
    others: tuple[str, ...] = ()
    limit: LimitName = "max_tokens"
    formats: tuple[Format, ...] = ("strict", "object")
    formats_by_model: tuple[tuple[str, tuple[Format, ...]], ...] = ()
    counts: bool = True
    streams_formats: bool = True
    routes: bool = False
    thinking: Thinking = field(default_factory=lambda: _EFFORT)
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    systemless: str | None = None
    bills: bool = False
    note: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Ends of its host names; none of a server that runs on a machine of one's own."""
        host = urlsplit(self.shown[1]).hostname
        return (*self.others, host) if host and host != "127.0.0.1" else self.others

    def ladder(self, model: str, refused: Collection[str] = ()) -> tuple[Format, ...]:
        """Return the ways left to ask a model for JSON, best first; prose comes after the last."""
        own = (formats for pattern, formats in self.formats_by_model if re.search(pattern, model))
        return tuple(each for each in next(own, self.formats) if format_part(each) not in refused)


_ROWS = (
    Server("generic", formats=_EVERY_FORMAT),
    # Its list says which models take a schema; the others drop the field.
    Server(
        "openrouter",
        ("OpenRouter", "leave it out", "`openai/gpt-5.1`"),
        ("openrouter.ai",),
        routes=True,
        thinking=_ROUTED,
        bills=True,
    ),
    Server(
        "openai",
        ("OpenAI", "https://api.openai.com/v1", "`gpt-5.1`"),
        limit="max_completion_tokens",
        note="**OpenAI** streams some models only to verified organizations. The others get their "
        "replies whole, so the final answer appears at once.",
    ),
    Server(
        "azure",
        ("Azure OpenAI", "https://RESOURCE.openai.azure.com/openai/v1", "the deployment's name"),
        ("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"),
        limit="max_completion_tokens",
        key_header="api-key",
        key_prefix="",
    ),
    Server(
        "anthropic",
        ("Anthropic", "https://api.anthropic.com/v1", "`claude-sonnet-4-5`"),
        formats=("strict",),
    ),
    Server(
        "gemini",
        ("Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "`gemini-2.5-pro`"),
        formats_by_model=((r"(?:^|/)gemma", ()),),
        systemless=r"(?:^|/)gemma",
        note="**Gemma** on Gemini takes neither system messages nor JSON. Its instructions go before "
        "the question, its ballots are prose.",
    ),
    Server(
        "mistral",
        ("Mistral", "https://api.mistral.ai/v1", "`mistral-large-latest`"),
        counts=False,
        thinking=_HIGH_OR_NONE,
        note="**Mistral** answers a used-up quota as it answers a wrong key. If the key is right, look "
        "at the billing page.",
    ),
    Server(
        "groq",
        ("Groq", "https://api.groq.com/openai/v1", "`openai/gpt-oss-120b`"),
        limit="max_completion_tokens",
        formats=("object",),
        formats_by_model=(
            (r"gpt-oss", ("strict", "object")),
            (r"llama-4|kimi-k2", ("schema", "object")),
        ),
        streams_formats=False,
    ),
    Server(
        "together",
        ("Together", "https://api.together.ai/v1", "`meta-llama/Llama-3.3-70B-Instruct-Turbo`"),
        ("together.ai", "together.xyz"),
        formats=_EVERY_FORMAT,
        thinking=_ENABLED,
    ),
    Server(
        "fireworks",
        (
            "Fireworks",
            "https://api.fireworks.ai/inference/v1",
            "`accounts/fireworks/models/deepseek-r1`",
        ),
    ),
    Server(
        "deepseek",
        ("DeepSeek", "https://api.deepseek.com/v1", "`deepseek-chat`"),
        formats=("object",),
        thinking=_TYPE_AND_EFFORT,
    ),
    Server("xai", ("xAI", "https://api.x.ai/v1", "`grok-4-fast`"), limit="max_completion_tokens"),
    Server(
        "cerebras",
        ("Cerebras", "https://api.cerebras.ai/v1", "`gpt-oss-120b`"),
        limit="max_completion_tokens",
        streams_formats=False,
    ),
    Server(
        "perplexity",
        ("Perplexity", "https://api.perplexity.ai", "`sonar-pro`"),
        formats=("strict",),
        counts=False,
    ),
    Server(
        "cohere",
        ("Cohere", "https://api.cohere.ai/compatibility/v1", "`command-a-03-2025`"),
        ("api.cohere.com",),
        formats=("object_schema",),
        thinking=_HIGH_OR_NONE,
    ),
    Server(
        "moonshot",
        ("Moonshot (Kimi)", "https://api.moonshot.ai/v1", "`kimi-k2.6`"),
        ("api.moonshot.cn",),
        limit="max_completion_tokens",
        thinking=_TYPE,
        note="**Moonshot** keeps keys of `api.moonshot.ai` and `api.moonshot.cn` apart.",
    ),
    Server(
        "zai",
        ("Z.ai (GLM)", "https://api.z.ai/api/paas/v4", "`glm-5.1`"),
        ("open.bigmodel.cn",),
        formats=("object",),
        counts=False,
        thinking=_TYPE,
        note="**Z.ai** keeps keys of its coding plan apart: its address is "
        "`https://api.z.ai/api/coding/paas/v4`. It says of no field that it refuses it: behind another "
        "name it answers only if its dialect is named.",
    ),
    Server(
        "dashscope",
        (
            "DashScope (Qwen)",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            "`qwen-plus`",
        ),
        ("dashscope.aliyuncs.com", "dashscope-us.aliyuncs.com"),
        formats_by_model=((r"thinking|^qwq|^qvq|deepseek-r1", ()),),
        thinking=_switch({"enable_thinking": False}, {"enable_thinking": True}),
    ),
    Server(
        "huggingface",
        ("Hugging Face", "https://router.huggingface.co/v1", "`openai/gpt-oss-120b:cerebras`"),
        formats=_EVERY_FORMAT,
        bills=True,
    ),
    Server(
        "cloudflare",
        (
            "Cloudflare",
            "https://api.cloudflare.com/client/v4/accounts/ACCOUNT/ai/v1",
            "`@cf/openai/gpt-oss-120b`",
        ),
        ("gateway.ai.cloudflare.com",),
        formats=("strict",),
        bills=True,
    ),
    # docs.databricks.com/aws/en/machine-learning/foundation-model-apis/api-reference, and
    # …/model-serving/structured-outputs; stream_options are no field of it: anomalyco/opencode#4698
    Server(
        "databricks",
        (
            "Databricks",
            "https://WORKSPACE.cloud.databricks.com/serving-endpoints",
            "`databricks-gpt-oss-120b`",
        ),
        ("cloud.databricks.com", "azuredatabricks.net"),
        counts=False,
    ),
    # docs.deepinfra.com/api-reference/openai-chat-completions-1; deepinfra.com/docs/advanced/json_mode
    Server(
        "deepinfra",
        ("DeepInfra", "https://api.deepinfra.com/v1/openai", "`openai/gpt-oss-120b`"),
        formats=("object",),
        thinking=_ENABLED,
    ),
    # sambanova/sambanova-python: src/sambanova/types/chat/completion_create_params.py
    Server(
        "sambanova",
        ("SambaNova", "https://api.sambanova.ai/v1", "`Meta-Llama-3.3-70B-Instruct`"),
        formats=_EVERY_FORMAT,
        thinking={**_EFFORT, "off": _TEMPLATE_OFF},
    ),
    # vercel.com/docs/ai-gateway/sdks-and-apis/openai-chat-completions
    Server(
        "vercel",
        ("Vercel AI Gateway", "https://ai-gateway.vercel.sh/v1", "`anthropic/claude-sonnet-4.5`"),
        formats=_EVERY_FORMAT,
        thinking=_ROUTED,
        bills=True,
    ),
    # java.agentscope.io/v2/en/integration/model/minimax: no format is documented, and its limit is new
    Server(
        "minimax",
        ("MiniMax", "https://api.minimax.io/v1", "`MiniMax-M3`"),
        ("api.minimaxi.com",),
        limit="max_completion_tokens",
        formats=(),
        thinking=_switch({"thinking": {"type": "disabled"}}, {"thinking": {"type": "adaptive"}}),
    ),
    # docs.tokenfactory.nebius.com/api-reference/inference/create-chat-completion
    Server(
        "nebius",
        (
            "Nebius Token Factory",
            "https://api.tokenfactory.nebius.com/v1",
            "`Qwen/Qwen3-235B-A22B-Instruct-2507`",
        ),
        ("api.studio.nebius.com",),
        formats=_EVERY_FORMAT,
    ),
    Server(
        "ollama",
        ("Ollama", "http://127.0.0.1:11434/v1", "`llama3.2:latest`"),
        note="**Ollama** cuts long prompts silently. Its window is often 4,096 tokens, and reviews are "
        "longer than that. Raise it: `OLLAMA_CONTEXT_LENGTH=16384`.",
    ),
    Server("vllm", ("vLLM", "http://127.0.0.1:8000/v1", "`Qwen/Qwen3-30B-A3B`"), thinking=_TEMPLATE),
    Server(
        "sglang", ("SGLang", "http://127.0.0.1:30000/v1", "`Qwen/Qwen3-30B-A3B`"), thinking=_TEMPLATE
    ),
    Server(
        "lmstudio",
        ("LM Studio", "http://127.0.0.1:1234/v1", "`qwen/qwen3-8b`"),
        formats=("strict",),
        note="**LM Studio and other servers of your own** work on one reply at a time unless told "
        "otherwise. Give slow ones time, below `[profiles.default]` in `council.toml`: "
        "`call_deadline = 600`, `stage_deadline = 1200`. `COUNCIL_MEMBERS` may stay in `.env`.",
    ),
    Server(
        "llamacpp",
        ("llama.cpp", "http://127.0.0.1:8080/v1", "the file's name; any"),
        thinking=_TEMPLATE,
    ),
    Server(
        "koboldcpp",
        ("KoboldCpp", "http://127.0.0.1:5001/v1", "any"),
        formats=("strict",),
        note="**KoboldCpp** cuts long prompts silently, too: raise its window by `--contextsize`.",
    ),
    Server(
        "litellm",
        ("LiteLLM proxy", "http://127.0.0.1:4000/v1", "a `model_name` of its configuration"),
        formats=_EVERY_FORMAT,
        bills=True,
        note="**LiteLLM** without a database can't tell a wrong key: it says *No connected db.* Use its "
        "`master_key`.",
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
    wants_json = call.schema is not None and member.structured
    chosen = next(iter(server.ladder(member.model, refused)), None) if wants_json else None
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


def _response_format(chosen: Format, schema: JsonObject) -> JsonObject:
    carried: JsonObject = {"schema": schema}
    if chosen in ("object", "object_schema"):
        return {"type": "json_object"} | (carried if chosen == "object_schema" else {})
    strict: JsonObject = {"strict": True} if chosen == "strict" else {}
    return {"type": "json_schema", "json_schema": {"name": "reply"} | strict | carried}


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
    if SYSTEM in refused or (server.systemless and re.search(server.systemless, call.member.model)):
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
