"""The servers of models: what each kind takes, a row each, and the body of a request to it.

A server that isn't listed is `generic`: it gets what most take, and what it refuses is learned
(`council.models.client`). The rows, in `servers.toml`, are from the servers' own documentation and their
users' reports; `docs/providers.md` names them.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar, Literal, cast
from urllib.parse import urlsplit

import httpx
import orjson
from pydantic import TypeAdapter

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

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    name: DialectName
    thinking: Thinking
    shown: tuple[str, str, str] = ("", "", "")
    others: tuple[str, ...] = ()
    limit: LimitName = "max_tokens"
    formats: tuple[Format, ...] = ("strict", "object")
    formats_by_model: tuple[tuple[str, tuple[Format, ...]], ...] = ()
    counts: bool = True
    streams_formats: bool = True
    routes: bool = False
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


def _rows() -> dict[str, Server]:
    tables = tomllib.loads(Path(__file__).with_name("servers.toml").read_text("utf-8"))
    thinking = tables["thinking"]
    rows = {
        name: {"name": name, **row, "thinking": thinking[row.get("thinking", "effort")]}
        for name, row in tables["servers"].items()
    }
    return TypeAdapter(dict[str, Server]).validate_python(rows)


SERVERS: Mapping[str, Server] = _rows()


def known_server(address: httpx.URL, named: DialectName | None = None) -> Server:
    """Return the row whose dialect somebody named, else that of an address's host, else `generic`."""
    if named is not None:
        return SERVERS[named]
    host = address.host.lower().rstrip(".")
    for row in SERVERS.values():
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
        carried: JsonObject = {"schema": call.schema}
        body["response_format"] = {"type": "json_object"} | (
            carried if chosen == "object_schema" else {}
        )
        if chosen in ("strict", "schema"):
            strict: JsonObject = {"strict": True} if chosen == "strict" else {}
            named = {"name": "reply"} | strict | carried
            body["response_format"] = {"type": "json_schema", "json_schema": named}
    body |= cast("JsonObject", orjson.loads(member.extra))
    return {name: value for name, value in body.items() if name not in refused or name == "stream"}


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
    texts = [message["content"] for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    if not texts or not others:
        return tuple(messages)
    first = {**others[0], "content": "\n\n".join((*texts, others[0]["content"]))}
    return (cast("ChatMessage", first), *others[1:])
