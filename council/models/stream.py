"""Reads a model's response: a stream of events, or one whole body, whatever it is labelled.

Events are those of https://html.spec.whatwg.org/multipage/server-sent-events.html, but a line of data
that is JSON by itself is an event, whether or not an empty line follows. Comments, keep-alives and lines
of no known kind are passed over. Chunks: https://openrouter.ai/docs/api-reference/streaming
"""

import asyncio
import codecs
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import cast

import httpx
import orjson

from council.errors import Failure, ModelError
from council.models.refusals import EXCERPT_LENGTH, RefusedCall, refused, retry_after, too_large
from council.models.reply import Completion
from council.models.transport import UNPACKED
from council.text.json_objects import JsonObject
from council.text.redaction import Redaction

JSON_BYTES = 4 * 2**20
"""The largest JSON text that is parsed at once: a plain reply, an event, the model list."""
ERROR_BYTES = 64 * 1024
"""As much of an error's body is read; of a longer one, the status says enough."""
_PAGE = re.compile(rb"<(?:!--|(?:!doctype|html|head|body|\?xml)\b)", re.IGNORECASE)
_DONE = b"[DONE]"
_CHUNK = re.compile(rb'choices|chat\.completion|content|delta|"(?:id|model|object)"')
"""What tells the rest of a chunk, which may have held text, from that of a keep-alive."""


async def receive(
    response: httpx.Response,
    completion: Completion,
    secrets: Redaction,
    timer: asyncio.Timeout,
    linger: float,
) -> None:
    """Read a response into a completion; its usage may follow its end by `linger` seconds.

    The first bytes tell a stream from a body: servers label either as they like. Raises `ModelError`,
    and `httpx.RequestError` when the connection is lost.
    """
    if response.status_code != HTTPStatus.OK:
        raise await refusal(response, secrets)
    if response.headers.get("content-encoding", "identity").lower() not in UNPACKED:
        raise ModelError(Failure(cause="malformed", detail="compressed, though asked not to be"))
    completion.begin(response.headers, secrets)
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_raw())) as pieces:
        first = b""
        async for piece in pieces:
            first = (first + piece).removeprefix(codecs.BOM_UTF8).lstrip()
            if first and not codecs.BOM_UTF8.startswith(first):
                break
        if first[:1] in (b"{", b"["):
            body = await _joined(first, pieces, JSON_BYTES, completion.arrive)
            try:
                whole = parse(body)
            except ModelError:  # an event a line
                completion.arrive(0)
                events = EventReader()
                _take(completion, (*events.feed(body), *events.rest()))
            else:
                completion.take_body(whole)
        elif _PAGE.match(first):
            raise ModelError(Failure(cause="no_api", detail="it answers with a web page"))
        else:
            await _take_events(first, pieces, completion, timer, linger)


async def _take_events(
    first: bytes,
    pieces: AsyncIterator[bytes],
    completion: Completion,
    timer: asyncio.Timeout,
    linger: float,
) -> None:
    clock = asyncio.get_running_loop().time
    ends_at = cast("float", timer.when())
    events = EventReader()
    lingers = False
    piece: bytes | None = first
    while piece is not None:
        _take(completion, events.feed(piece))
        if completion.finished and not lingers:
            # Read on to the stream's end, or the connection is lost for the next call.
            lingers = True
            timer.reschedule(min(ends_at, clock() + linger))
        piece = await anext(pieces, None)
    _take(completion, events.rest())


def _take(completion: Completion, events: Iterable[JsonObject | None]) -> None:
    for event in events:
        if event is None:
            completion.end_stream()
        else:
            completion.take_chunk(event)


class EventReader:
    """Takes a stream's bytes and yields its events, `None` for `[DONE]`.

    Raises `ModelError` for an event that is too large, or broken where text may be missing.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._size = 0  # of the line's beginning, and of the event's data
        self._data: list[bytes] = []
        self._kind = b""
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[JsonObject | None]:
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
            yield from self._read(line)
        if rest:
            self._line.append(rest)
            self._grow(len(rest))

    def rest(self) -> Iterator[JsonObject | None]:
        return self.feed(b"\n\n")

    def _read(self, line: bytes) -> Iterator[JsonObject | None]:
        if not line:
            yield from self._joined()
        elif line.startswith(b"event:"):
            self._kind = line[6:].strip()
        elif line.startswith((b"data:", b"{", _DONE)):  # with its label, or without
            data = line.removeprefix(b"data:").strip()
            if data == _DONE:
                yield None
            elif self._data:
                self._data.append(data)
                self._grow(len(data))
            elif data.startswith((b"{", b"[")):
                self._size = 0  # counted already, if it came in pieces
                self._grow(len(data))
                try:
                    event = self._event(data)
                except ModelError:  # it may go on in the next line
                    self._data.append(data)
                else:
                    self._size = 0
                    yield event

    def _joined(self) -> Iterator[JsonObject]:
        """Yield the event whose data came in several lines."""
        data = b"\n".join(self._data)
        try:
            if data:
                yield self._event(data)
        except ModelError:
            if _CHUNK.search(data):
                raise
            # A keep-alive that is broken costs nothing.
        self._data, self._size, self._kind = [], 0, b""

    def _event(self, data: bytes) -> JsonObject:
        event = parse(data)
        return {"error": event} if self._kind == b"error" and "error" not in event else event

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > JSON_BYTES:
            raise too_large("an event of the reply")


def parse(data: bytes) -> JsonObject:
    """Return the JSON object in a text, or in a list's first place: Gemini sends errors in one.

    Raises `ModelError` (malformed) for anything else.
    """
    value = parse_page(data)
    first = next(iter(cast("list[object]", value)), None) if isinstance(value, list) else value
    if not isinstance(first, dict):
        raise ModelError(Failure(cause="malformed", detail="not a JSON object"))
    return cast("JsonObject", first)


def parse_page(data: bytes) -> object:
    """Return what a JSON text says; raises `ModelError` (malformed) where it is none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # orjson refuses half a surrogate pair, which is legal, a byte order mark, and what isn't UTF-8.
        try:
            return json.loads(data.decode("utf-8-sig", errors="replace"))
        except (ValueError, RecursionError) as error:
            raise ModelError(Failure(cause="malformed", detail="not JSON")) from error


async def refusal(response: httpx.Response, secrets: Redaction) -> RefusedCall:
    try:
        body = await body_of(response, ERROR_BYTES)
    except (ModelError, httpx.RequestError):
        body = b""  # the status says enough, and decides
    try:
        error = parse_page(body)
    except ModelError:
        text = body.decode(errors="replace").strip()
        error = "" if text.startswith("<") or len(text) > EXCERPT_LENGTH else text
    wait = retry_after(response.headers, datetime.now(UTC))
    return refused(error, response.status_code, secrets, wait)


async def body_of(response: httpx.Response, most: int) -> bytes:
    """Read a whole body; raises `ModelError` (too large) before it is over `most` bytes."""
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_raw())) as pieces:
        return await _joined(b"", pieces, most)


async def _joined(
    first: bytes, pieces: AsyncIterator[bytes], most: int, arrive: Callable[[int], None] = lambda _: None
) -> bytes:
    body = bytearray(first)
    arrive(len(body))
    async for piece in pieces:
        body += piece
        arrive(len(body))
        if len(body) > most:
            raise too_large("the reply")
    return bytes(body)
