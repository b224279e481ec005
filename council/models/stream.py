"""Reads a model's response: a stream of events, or one whole body, whatever it is labelled.

Format: https://openrouter.ai/docs/api-reference/streaming
"""

import asyncio
import codecs
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import cast

import httpx
import orjson

from council.errors import Failure, ModelError
from council.models.event_stream import JSON_BYTES, EventReader, parse
from council.models.refusals import EXCERPT_LENGTH, RefusedCall, refused, too_large
from council.models.reply import Completion
from council.models.retries import retry_after
from council.models.transport import UNPACKED
from council.text.json_objects import JsonObject
from council.text.redaction import Redaction

ERROR_BYTES = 64 * 1024
"""As much of an error's body is read; of a longer one, the status says enough."""
_PAGE = re.compile(rb"<(?:!--|(?:!doctype|html|head|body|\?xml)\b)", re.IGNORECASE)


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
    async with aclosing(_pieces(response)) as pieces:
        first = b""
        async for piece in pieces:
            first = (first + piece).removeprefix(codecs.BOM_UTF8).lstrip()
            if first and not codecs.BOM_UTF8.startswith(first):
                break
        if first[:1] in (b"{", b"["):
            _take_body(await _joined(first, pieces, JSON_BYTES, completion.arrive), completion)
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


def _take_body(body: bytes, completion: Completion) -> None:
    """Take a body of JSON: a whole reply, or an event a line."""
    try:
        whole = parse(body)
    except ModelError:
        completion.arrive(0)
        events = EventReader()
        _take(completion, (*events.feed(body), *events.rest()))
    else:
        completion.take_body(whole)


def _take(completion: Completion, events: Iterable[JsonObject | None]) -> None:
    for event in events:
        if event is None:
            completion.end_stream()
        else:
            completion.take_chunk(event)


async def refusal(response: httpx.Response, secrets: Redaction) -> RefusedCall:
    """Return the error that a response with an error status means."""
    try:
        body = await body_of(response, ERROR_BYTES)
    except (ModelError, httpx.RequestError):
        body = b""  # the status says enough, and decides
    wait = retry_after(response.headers, datetime.now(UTC))
    return refused(_error_in(body), response.status_code, secrets, wait)


def _error_in(body: bytes) -> object:
    """Return the JSON of an error's body, or its text if that is short and no page."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body.decode(errors="replace").strip()
        return "" if text.startswith("<") or len(text) > EXCERPT_LENGTH else text


async def body_of(response: httpx.Response, most: int) -> bytes:
    """Read a whole body; raises `ModelError` (too large) before it is over `most` bytes."""
    async with aclosing(_pieces(response)) as pieces:
        return await _joined(b"", pieces, most)


def _pieces(response: httpx.Response) -> AsyncGenerator[bytes]:
    return cast("AsyncGenerator[bytes]", response.aiter_raw())


async def _joined(
    first: bytes,
    pieces: AsyncIterator[bytes],
    most: int,
    arrive: Callable[[int], None] = lambda _: None,
) -> bytes:
    body = bytearray(first)
    arrive(len(body))
    async for piece in pieces:
        body += piece
        arrive(len(body))
        if len(body) > most:
            raise too_large("the reply")
    return bytes(body)
