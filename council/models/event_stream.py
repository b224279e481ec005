"""Reads the events of a stream, as servers write them.

The format is that of https://html.spec.whatwg.org/multipage/server-sent-events.html, but a line of data
that is JSON by itself is an event, whether or not an empty line follows. Comments, keep-alives and lines
of no known kind are passed over.
"""

import json
import re
from collections.abc import Iterator
from typing import cast

import orjson

from council.errors import Failure, ModelError
from council.models.refusals import too_large
from council.text.json_objects import JsonObject

MIB = 2**20
JSON_BYTES = 4 * MIB
"""The largest JSON text that is parsed at once: a plain reply, an event, the model list."""
DONE = b"[DONE]"
_CHUNK = re.compile(rb'choices|chat\.completion|content|delta|"(?:id|model|object)"')
"""What tells the rest of a chunk, which may have held text, from that of a keep-alive."""


class EventReader:
    """Takes a stream's bytes and yields its events, `None` for `[DONE]`.

    Raises `ModelError` for an event that is too large, or broken where text may be missing.
    """

    __slots__ = ("_after_return", "_data", "_kind", "_line", "_size")

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._size = 0  # of the line's beginning, and of the event's data
        self._data: list[bytes] = []
        self._kind = b""
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[JsonObject | None]:
        """Yield the events that a piece completes."""
        if b"\r" in piece or self._after_return:
            if self._after_return:
                piece = piece.removeprefix(b"\n")
            self._after_return = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = piece.split(b"\n")
        for line in lines:
            if self._line:
                line = b"".join((*self._line, line))  # noqa: PLW2901 - its beginning came before
                self._line = []
            yield from self._take(line)
        if rest:
            self._line.append(rest)
            self._grow(len(rest))

    def rest(self) -> Iterator[JsonObject | None]:
        """Yield the events that the stream's end completes."""
        line, self._line = b"".join(self._line), []
        yield from self._take(line)
        yield from self._take(b"")

    def _take(self, line: bytes) -> Iterator[JsonObject | None]:
        if not line:
            if self._data:
                data, self._data = b"\n".join(self._data), []
                yield from self._joined(data)
            self._size, self._kind = 0, b""
        elif line.startswith(b"data:"):
            yield from self._take_data(line[5:].strip())
        elif line.startswith(b"event:"):
            self._kind = line[6:].strip()
        elif line.startswith((b"{", DONE)):  # without its label
            yield from self._take_data(line.strip())

    def _take_data(self, data: bytes) -> Iterator[JsonObject | None]:
        if data == DONE:
            yield None
        elif self._data:
            self._continue(data)
        elif data.startswith((b"{", b"[")):
            self._check(len(data))
            try:
                event = _parsed(data)
            except ModelError:
                self._continue(data)
                return
            self._size = 0
            if isinstance(event, list):  # Gemini's errors come in one
                event = next(iter(cast("list[object]", event)), None)
            if isinstance(event, dict):
                yield self._event(cast("JsonObject", event))

    def _joined(self, data: bytes) -> Iterator[JsonObject]:
        try:
            event = parse(data)
        except ModelError:
            if _CHUNK.search(data):
                raise
            return  # a broken keep-alive
        yield self._event(event)

    def _continue(self, data: bytes) -> None:
        self._data.append(data)
        self._grow(len(data))

    def _grow(self, size: int) -> None:
        self._size += size
        self._check(self._size)

    def _check(self, size: int) -> None:
        if size > JSON_BYTES:
            raise too_large("an event of the reply")

    def _event(self, event: JsonObject) -> JsonObject:
        return {"error": event} if self._kind == b"error" and "error" not in event else event


def parse(data: str | bytes) -> JsonObject:
    """Return the JSON object in a text, or in a list's first place.

    Raises `ModelError` (malformed) for anything else.
    """
    value = _parsed(data)
    if isinstance(value, list):
        value = next(iter(cast("list[object]", value)), None)
    if not isinstance(value, dict):
        raise ModelError(Failure(cause="malformed", detail="not a JSON object"))
    return cast("JsonObject", value)


def parse_page(data: str | bytes) -> JsonObject | list[object]:
    """Return the JSON object or array in a text; raises `ModelError` (malformed) for anything else."""
    value = _parsed(data)
    if isinstance(value, dict):
        return cast("JsonObject", value)
    if isinstance(value, list):
        return cast("list[object]", value)
    raise ModelError(Failure(cause="malformed", detail="not a JSON object or array"))


def _parsed(data: str | bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _leniently(data)


def _leniently(data: str | bytes) -> object:
    # orjson refuses the lone half of a surrogate pair, which is legal JSON, and what isn't UTF-8.
    text = data if isinstance(data, str) else data.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(Failure(cause="malformed", detail="not JSON")) from error
