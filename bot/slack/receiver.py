"""What arrives from Slack over HTTP: verified before anything reads it.

Bolt parses a request before it verifies it, and raises where a header isn't what it expects, but
strangers can send anything. Source: https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier

from bot.http_server import Handler, RequestRefused

UNREADABLE = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What Bolt raises over a body that isn't one of Slack's."""
_STAMP = re.compile("[0-9]{1,12}")
_SIGNATURE = re.compile("v0=[0-9a-f]{64}")

Answer = Callable[[AsyncBoltRequest], Awaitable[BoltResponse]]


def receiver(signing_secret: str, answer: Answer) -> Handler:
    """Return what passes Slack's requests on; it raises `Refused` for others."""
    verifier = SignatureVerifier(signing_secret)

    async def receive(request: web.BaseRequest) -> web.Response:
        body = await request.read()
        # Slack looks at the certificate now and then, without a signature.
        if b"ssl_check=1" in body.split(b"&"):
            return web.Response()
        if cause := _distrusted(verifier, request, body):
            raise RequestRefused(HTTPStatus.UNAUTHORIZED, cause)
        try:
            received = await bolt_request(request)
        except UNREADABLE as error:
            raise RequestRefused(HTTPStatus.BAD_REQUEST, "unreadable") from error
        return await to_aiohttp_response(await answer(received))

    return receive


async def bolt_request(request: web.BaseRequest) -> AsyncBoltRequest:
    """Return a request as Bolt takes it. Raises what is in `UNREADABLE`."""
    # Bolt's adapter reads only what every request of aiohttp's has.
    return await to_bolt_request(cast("web.Request", request))


def _distrusted(verifier: SignatureVerifier, request: web.BaseRequest, body: bytes) -> str | None:
    """Return why a request may not be Slack's; `None` if it is."""
    stamp = request.headers.get("X-Slack-Request-Timestamp", "")
    signature = request.headers.get("X-Slack-Signature", "")
    if not _STAMP.fullmatch(stamp):
        return "timestamp"
    if not _SIGNATURE.fullmatch(signature):
        return "signature"
    try:
        return None if verifier.is_valid(body, stamp, signature) else "signature"
    except UnicodeDecodeError:
        return "not_text"
