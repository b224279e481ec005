"""A conversation document between its bytes and its model: read, lengthened, and written.

A document is rewritten from the JSON that was read, not from the model, so that fields of other programs
are kept.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import cast

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from council.document.conversation import AssistantMessage, Conversation
from council.text.json_objects import JsonObject
from storage.documents.foreign import conversations, understood
from storage.errors import DocumentError

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PROBLEMS_SHOWN = 3
_WRONG = {
    "missing": "is missing",
    "string_type": "isn't a text",
    "list_type": "isn't a list",
    "tuple_type": "isn't a list",
    "dict_type": "isn't an object",
    "model_type": "isn't an object",
    "int_type": "isn't a whole number",
    "float_type": "isn't a number",
    "bool_type": "isn't true or false",
}


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is in its file, and as the council reads it."""

    raw: JsonObject
    conversation: Conversation


def is_id(text: str) -> bool:
    """Whether this is a uuid in its canonical form: lower case, with hyphens."""
    return _ID.fullmatch(text) is not None


def parse(content: bytes) -> Document:
    """Read a document. Raises `DocumentError` with the reason, which never quotes the text."""
    return read(_json(content))


def contents(content: bytes) -> list[bytes]:
    """Return the conversations in another program's file, each as a document of its own.

    A single one keeps its bytes, unless it needs another id. Raises `DocumentError`.
    """
    raw = _json(content)
    found = conversations(raw)
    return [content] if found == [raw] else [written(each) for each in found]


def read(raw: object) -> Document:
    """Read a document's JSON, the council's own or another program's. Raises `DocumentError`."""
    if isinstance(raw, list):
        raise DocumentError("it is a list, not one conversation")
    try:
        conversation = Conversation.model_validate(
            understood(cast("JsonObject", raw)) if isinstance(raw, dict) else raw
        )
    except ValidationError as error:
        raise DocumentError(f"it is not a conversation document: {_problems(error)}") from error
    return Document(cast("JsonObject", raw), conversation)


def messages_of(document: Document) -> list[object]:
    """Return the messages as they are in the file, one for each that the council reads."""
    return cast("list[object]", document.raw.get("messages") or [])


def written(raw: object) -> bytes:
    """Return a document's JSON as its file holds it. Raises `DocumentError`."""
    try:
        return orjson.dumps(raw, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError as error:
        raise DocumentError(f"it can't be written as JSON: {error}") from error


def answer_of(
    stage1: Sequence[object], stage2: Sequence[object], stage2_5: Sequence[object] | None, stage3: object
) -> AssistantMessage:
    """Return an assistant message made of its stages, which are models or their JSON form."""
    fields: Mapping[str, object] = {
        "role": "assistant",
        "stage1": stage1,
        "stage2": stage2,
        "stage2_5": stage2_5,
        "stage3": stage3,
    }
    try:
        return AssistantMessage.model_validate(fields)
    except ValidationError as error:
        raise DocumentError(f"the answer is not an assistant message: {_problems(error)}") from error


def check(answer: AssistantMessage) -> None:
    """Check a new answer against the contract. Raises `DocumentError` naming the rule it breaks."""
    try:
        answer.check()
    except ValueError as error:
        raise DocumentError(f"the answer breaks the document's contract: {error}") from error


def _json(content: bytes) -> object:
    """Read JSON as strictly as possible, and as Python and JavaScript write it where that fails.

    Those write `NaN`, numbers of any size, and the half of an emoji that a title was cut in.
    """
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError as error:
        raise DocumentError("it is not text in UTF-8, UTF-16 or UTF-32") from error
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        try:
            return _without_halves(json.loads(text))
        except (ValueError, RecursionError):
            raise DocumentError(f"it is not JSON (see its line {error.lineno})") from error


def _without_halves(value: object) -> object:
    """Replace what isn't a character or a number of JSON, so that it can be written again."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case float() if not isfinite(value):
            return None
        case int() if not -(2**63) <= value < 2**64:
            return float(value)
        case list():
            return [_without_halves(each) for each in cast("list[object]", value)]
        case dict():
            items = cast("JsonObject", value).items()
            return {str(_without_halves(name)): _without_halves(each) for name, each in items}
        case _:
            return value


def _problems(error: ValidationError) -> str:
    """Return what is wrong in a document, and where: `messages.1.stage3 is missing`."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [_problem(".".join(map(str, one["loc"])), one) for one in found[:_PROBLEMS_SHOWN]]
    if len(found) > _PROBLEMS_SHOWN:
        shown.append(f"and {len(found) - _PROBLEMS_SHOWN} more")
    return "; ".join(shown)


def _problem(where: str, error: ErrorDetails) -> str:
    if error["type"] == "value_error":  # a check of our own
        said = error["msg"].removeprefix("Value error, ")
        return f"{where}: {said}" if where else said
    said = _WRONG.get(error["type"], "has a value that isn't allowed there")
    return f"{where or 'the document'} {said}"
