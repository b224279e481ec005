"""Reads a model's response: a stream of server-sent events, or one whole body.

Format: https://openrouter.ai/docs/api-reference/streaming
"""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import cast

import httpx
from httpx_sse import EventSource

from council.calls import JsonObject
from council.errors import Failure, ModelError
from council.models.reply import Completion, failure_of, parse_page
from council.models.retries import Refused, retry_after
from council.models.transport import too_large
from council.text.redaction import Redaction

MIB = 2**20
ERROR_BYTES = 64 * 1024
"""As much of an error's body is read; of a longer one, the status says enough."""
JSON_BYTES = 4 * MIB
"""The largest JSON text that is parsed at once: a plain reply, an event, the model list."""


async def receive(
    response: httpx.Response,
    completion: Completion,
    secrets: Redaction,
    timer: asyncio.Timeout,
    linger: float,
) -> None:
    """Read a response into a completion; its usage may follow its end by `linger` seconds.

    Raises `ModelError`, and `httpx.RequestError` when the connection is lost.
    """
    if response.status_code != HTTPStatus.OK:
        raise await refusal(response, secrets)
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ModelError(Failure(cause="malformed", detail="compressed, though asked not to be"))
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        completion.add_body(await body_of(response, JSON_BYTES))
        return
    response.encoding = "utf-8"  # as every stream of events is, whatever its header says
    clock = asyncio.get_running_loop().time
    ends_at = cast("float", timer.when())
    lingers = False
    async with aclosing(EventSource(response).aiter_sse()) as events:
        async for event in events:
            if len(event.data) > JSON_BYTES:
                raise too_large("an event of the reply")
            if event.data and event.data != "[DONE]":
                completion.add_chunk(event.data)
            if completion.finished and not lingers:
                # Read on to the stream's end, or the connection is lost for the next call.
                lingers = True
                timer.reschedule(min(ends_at, clock() + linger))


async def refusal(response: httpx.Response, secrets: Redaction) -> Refused:
    """Return the error that a response with an error status means."""
    try:
        body = parse_page(await body_of(response, ERROR_BYTES))
    except (ModelError, httpx.RequestError):
        body: JsonObject | list[object] = {}  # the status says enough, and decides
    failure = failure_of(body, response.status_code, secrets)
    return Refused(failure, retry_after(response.headers, datetime.now(UTC)), body)


async def body_of(response: httpx.Response, most: int) -> bytes:
    """Read a whole body; raises `ModelError` (too large) before it is over `most` bytes."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most:
            raise too_large("the reply")
    return bytes(body)
