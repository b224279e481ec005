"""The body of a request, as the server that it goes to takes it."""

from collections.abc import Collection, Iterable, Sequence
from typing import cast

import orjson

from council.calls import Call, ChatMessage
from council.models.refusals import FORMATTED_STREAM, PICTURES, SYSTEM
from council.models.servers import OTHER_LIMIT, Dialect, Format
from council.text.json_objects import JsonObject

_NOT_SHOWN = "The pictures that the question names can't be shown to you. Say so where it matters."
_FOLLOWS_SCHEMA = "Reply with one JSON object that follows this JSON schema, and nothing else:"


def body_of_call(call: Call, dialect: Dialect, refused: Collection[str] = ()) -> JsonObject:
    """Return a request's body: what every server needs, and of the rest only what somebody set.

    `refused` are the parts of earlier requests that its model didn't take (`refused_part`).
    """
    member = call.member
    chosen = _format(call, dialect, refused)
    is_whole = chosen and (FORMATTED_STREAM in refused or not dialect.streams_formats)
    streams = "stream" not in refused and not is_whole
    body: JsonObject = {
        "model": member.model,
        "messages": _messages(call, dialect, refused, chosen),
        "stream": streams,
    }
    if streams and dialect.counts:
        body["stream_options"] = {"include_usage": True}
    if dialect.routes:
        if member.fallbacks:
            body["models"] = [member.model, *member.fallbacks]
        if call.web:
            body["plugins"] = [{"id": "web"}]
    if call.temperature is not None:
        body["temperature"] = call.temperature
    if call.max_tokens is not None:
        limit = OTHER_LIMIT[dialect.limit] if dialect.limit in refused else dialect.limit
        body[limit] = call.max_tokens
    if call.repeat_penalty is not None:
        body["repeat_penalty"] = call.repeat_penalty
    if member.reasoning is not None:
        body |= dialect.thinking[member.reasoning]
    if chosen and call.schema:
        body["response_format"] = _response_format(chosen, call.schema)
    body |= cast("JsonObject", orjson.loads(member.extra))
    return {name: value for name, value in body.items() if name not in refused or name == "stream"}


def _format(call: Call, dialect: Dialect, refused: Collection[str]) -> Format | None:
    if call.schema is None or not call.member.structured:
        return None
    return next(iter(dialect.ladder(call.member.model, refused)), None)


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
    call: Call, dialect: Dialect, refused: Collection[str], chosen: Format | None
) -> Sequence[ChatMessage]:
    messages = call.messages
    if chosen == "object":
        # Servers that take a bare `json_object` refuse prompts without the word JSON.
        schema = orjson.dumps(call.schema).decode()
        messages = _with_system(messages, f"{_FOLLOWS_SCHEMA}\n{schema}")
    if call.pictures and (PICTURES in refused or not call.images):
        messages = _with_system(messages, _NOT_SHOWN)
    if SYSTEM in refused or dialect.merges_system(call.member.model):
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
