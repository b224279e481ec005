"""JSON objects in what models write: bare, in a block, among words, cut off, or slightly broken.

An object begins with a brace and its first key, perhaps with comments between them, and ends where
its braces balance. One that never ends, or is too deep, was cut off: it reaches to the end of its code
block, or of the text. A line that begins with `>` is a quotation, and no object begins in it. What an
object contains is no object of the text.

Nothing here takes time with the square of a text: it is read to its end a few times at most.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, cast

from pydantic_core import from_json

JsonObject = dict[str, object]

MOST_UNFINISHED = 8  # objects without an end, after which nothing more is looked for
MOST_MENDED = 8  # broken objects of a text, the last ones first
LONGEST_MENDED = 20_000  # characters; repair may take time with the square of them
DEEPEST = 30  # no form of ours is that deep; code in an answer may count, too

TOKEN = re.compile(r'[{}]|"(?:[^"\\]|\\.)*+(?:"|\Z)|(?<![:\w])//[^\n]*+', re.DOTALL)
"""What is counted of an object: its braces, outside its strings and comments."""

_COMMENT = r"(?://[^\n]{,300}+\n|/\*[^*]{,300}+\*/)"
_BEGIN = re.compile(rf"""\{{(?=\s*+(?:{_COMMENT}\s*+){{,4}}+(?:["'\u201c]|[^\W\d]\w*+\s*+:))""")
_STRING = re.compile(
    r'\s*+(?:```(?:json)?[ \t]*\n\s*+)?("(?:[^"\\]|\\.)*+")\s*+(?:```\s*+)?', re.DOTALL | re.IGNORECASE
)
_FENCE = re.compile(r"^[ \t]*+(?:`{3}|~{3})", re.MULTILINE)
_QUOTED = re.compile(r"[ \t]*+>")
_ESCAPES = re.compile(
    r"\\u(?:d[89ab]\w\w\\ud[c-f]|(?P<half>d[89a-f]))\w\w|\\.", re.IGNORECASE | re.DOTALL
)


def as_object(value: object) -> JsonObject:
    """Return a JSON object's fields; none if the value is something else."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Return a JSON list's items; none if the value is something else."""
    return cast("list[object]", value) if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class Span:
    """Where an object is in a text; `closed` unless it was cut off."""

    start: int
    end: int
    closed: bool = True


class FoundObject(NamedTuple):
    """An object, and where in its text it is."""

    span: Span
    fields: JsonObject


def objects(text: str, *, mends: int = MOST_MENDED) -> Iterator[FoundObject]:
    """Yield the objects of a text, the last one first, as many broken ones as that repaired.

    Repairs are slow: call it in a thread.
    """
    mended = 0
    for span in reversed(spans(text)):
        said = text[span.start : span.end]
        value = _parsed(said)
        if value is None and mended < mends:
            mended += 1
            value = mend(_encodable(said))
        if isinstance(value, dict):
            yield FoundObject(span, cast("JsonObject", value))


def object_in(text: str, fields: Collection[str]) -> str | None:
    """Return the text of the last object that has all of these fields, `None` without one.

    It may be cut off, but isn't broken.
    """
    found = (each.span for each in objects(text, mends=0) if each.fields.keys() >= {*fields})
    return next((text[span.start : span.end] for span in found), None)


def out_of_string(text: str) -> str:
    """Return the object that a text holds as a JSON string, in a block or not; else the text."""
    found = _STRING.fullmatch(text)
    value = _parsed(found[1]) if found else None
    return value if isinstance(value, str) and _BEGIN.match(value.lstrip()) else text


def spans(text: str) -> list[Span]:
    found: list[Span] = []
    at = seen = line = 0
    unfinished = 0
    while (begin := _BEGIN.search(text, at)) and unfinished < MOST_UNFINISHED:
        start, at = begin.span()
        line = max(line, text.rfind("\n", seen, start) + 1)
        seen = start
        if _QUOTED.match(text, line):
            continue
        if end := _end(text, start):
            found.append(Span(start, end))
            at = end
        else:
            unfinished += 1
            fence = _FENCE.search(text, start)
            found.append(Span(start, fence.start() if fence else len(text), closed=False))
    return found


def mend(text: str) -> object:
    """Return what is in broken JSON, `None` where a repair would take long or finds nothing."""
    if len(text) > LONGEST_MENDED or any(_depth(text, *kind) > DEEPEST for kind in ("()", "[]", "{}")):
        return None
    import json_repair

    try:
        return json_repair.loads(text, skip_json_loads=True)
    except ValueError:
        return None


def parsed(text: str) -> object:
    """Return the value that a text begins with, as far as it goes; raises `ValueError` without one."""
    return from_json(_encodable(text), allow_partial=True)


def _parsed(text: str) -> object:
    try:
        return parsed(text)
    except ValueError:
        return None


def _encodable(text: str) -> str:
    # Half of a surrogate pair is legal JSON, but the reader refuses it, and no encoding has it.
    return _ESCAPES.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)


def _end(text: str, start: int) -> int | None:
    depth = 0
    for token in TOKEN.finditer(text, start):
        sign = text[token.start()]
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return token.end()
        if depth > DEEPEST:
            break
    return None


def _depth(text: str, opening: str, closing: str) -> int:
    """Return how deep brackets of a kind are nested: repair takes time with the square of it."""
    steps = ((sign == opening) - (sign == closing) for sign in text)
    return max(accumulate(steps, lambda depth, step: max(0, depth + step)), default=0)
