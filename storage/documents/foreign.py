"""Documents of other llm-council programs, understood as the council's own.

A document keeps its bytes; this is only how they are read. The stages of an answer are read in
`storage.documents.foreign_answers`. What is read was looked up in the programs that write it:
`tests/storage/forks.py` has an example of each, with its source.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast
from uuid import UUID

from council.document.conversation import timestamp
from council.text import clip
from council.text.json_objects import JsonObject
from storage.documents.foreign_answers import answer, text_of

TITLE_LENGTH = 80
_ID = ("id", "conversation_id", "conversationId")
_CREATED = ("created_at", "createdAt", "created", "timestamp", "updated_at", "updatedAt", "last_updated")
_ROLE = ("role", "type", "sender")
_USER = frozenset({"user", "human"})
_ASSISTANT = frozenset({"assistant", "ai", "council", "chairman", "model", "bot"})
_STAGES = ("stage1", "stage2", "stage3")
_ASKED = ("content", "text", "question", "message", "query")
_MILLISECONDS_FROM = 10**11
"""Seconds would be in the year 5138."""


def understood(raw: JsonObject) -> JsonObject:
    """Return a document's JSON in the form of the storage contract, with as many messages.

    What can't be understood stays as it is, for validation to name it.
    """
    messages = raw.get("messages")
    read = (
        [_message(each) for each in cast("list[object]", messages)] if isinstance(messages, list) else []
    )
    return {
        **raw,
        "id": _id(raw),
        "created_at": next(_times(raw, read), ""),
        "title": _title(raw.get("title"), read),
        "messages": [] if messages is None else read if isinstance(messages, list) else messages,
    }


def _id(raw: JsonObject) -> object:
    """Return the id as the council writes a uuid: in lower case, with hyphens."""
    given = next((raw[name] for name in _ID if raw.get(name) is not None), None)
    try:
        return str(UUID(given.strip())) if isinstance(given, str) else given
    except ValueError:
        return given


def _title(given: object, messages: Sequence[object]) -> str:
    if isinstance(given, str) and given.strip():
        return given
    questions = (
        cast("JsonObject", each)["content"]
        for each in messages
        if isinstance(each, dict) and cast("JsonObject", each).get("role") == "user"
    )
    said = (" ".join(each.split()) for each in questions if isinstance(each, str))
    return clip(next(filter(None, said), ""), TITLE_LENGTH)


def _message(raw: object) -> object:
    if raw is None:
        return {"role": "other"}
    if not isinstance(raw, dict):
        return raw
    fields = cast("JsonObject", raw)
    role = next((each.lower() for name in _ROLE if isinstance(each := fields.get(name), str)), "")
    if role in _USER:
        asked = (text for name in _ASKED if (text := text_of(fields.get(name))) is not None)
        return {**fields, "role": "user", "content": next(asked, "")}
    if role in _ASSISTANT or any(stage in fields for stage in _STAGES):
        return answer(fields)
    return {**fields, "role": "other"}


def _times(raw: JsonObject, messages: Sequence[object]) -> Iterator[str]:
    """Yield when the conversation began, by every field that says it, the best first."""
    holders = [raw, *(cast("JsonObject", each) for each in messages[:1] if isinstance(each, dict))]
    for holder in holders:
        for name in _CREATED:
            if (time := _time(holder.get(name))) is not None:
                yield time


def _time(given: object) -> str | None:
    """Return a time in ISO 8601; `None` where this is none.

    Other forms are seconds or milliseconds since 1970, e-mail's, and what MongoDB and Firestore export.
    """
    match given:
        case bool():
            return None
        case int() | float():
            return _since_1970(given)
        case str() if given.strip().isdecimal():
            return _since_1970(int(given))
        case str():
            return _written(given.strip())
        case dict():
            held = cast("JsonObject", given)
            inner = (held[name] for name in ("$date", "_seconds", "seconds") if name in held)
            return _time(next(inner, None))
        case _:
            return None


def _since_1970(number: float) -> str | None:
    try:
        seconds = number / 1000 if abs(number) >= _MILLISECONDS_FROM else number
        return timestamp(datetime.fromtimestamp(seconds, UTC))
    except (OverflowError, ValueError, OSError):
        return None


def _written(text: str) -> str | None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return text
    try:
        return timestamp(parsedate_to_datetime(text))
    except (ValueError, OverflowError):
        return None
