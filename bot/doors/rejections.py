"""Why a request isn't answered, in the shape in which OpenAI's clients read it.

Source: https://platform.openai.com/docs/guides/error-codes; what the clients send again by themselves,
and the header that keeps them from it: `_should_retry` in `openai/_base_client.py`. Others go by the
status alone (`isRetryable` of `@ai-sdk/provider`, `async_caller.js` of `@langchain/core`).
"""

from collections.abc import Mapping
from http import HTTPStatus

import orjson
from aiohttp import web

from bot.doors.door import OtherRequest
from bot.errors import NoProfile, OverBudget, OverLimit, Refusal, Unavailable, UsageError
from bot.http_server import NO_ROUTE, RequestRefused
from bot.view.wording import doors as wording
from council.calls import JsonObject
from council.errors import CouncilError

AGAIN_SECONDS = 5
"""When to try again what is over a limit, or came while the council restarts."""
_TYPES: Mapping[HTTPStatus, str] = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.PAYMENT_REQUIRED: "insufficient_quota",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
    HTTPStatus.BAD_GATEWAY: "server_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "server_error",
}
_COME_AGAIN = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class Rejected(CouncilError):
    """A request isn't answered; the message says why, `code` for programs, `param` names the field."""

    def __init__(self, status: HTTPStatus, message: str, code: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param

    @property
    def body(self) -> JsonObject:
        return {
            "error": {
                "message": str(self),
                "type": _TYPES.get(self.status, "invalid_request_error"),
                "param": self.param,
                "code": self.code,
            }
        }

    @property
    def response(self) -> web.Response:
        """The whole response; only what helps a second time is asked for a second time."""
        again = self.status in _COME_AGAIN
        headers = {"x-should-retry": "true" if again else "false"}
        if again:
            headers["Retry-After"] = str(AGAIN_SECONDS)
        if self.status is HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        body = orjson.dumps(self.body)
        return web.Response(
            status=self.status, body=body, content_type="application/json", headers=headers
        )


def rejection(error: CouncilError) -> Rejected:
    """Return how a refusal is told to a program."""
    if isinstance(error, Rejected):
        return error
    for kind, status, code in (
        (OtherRequest, HTTPStatus.CONFLICT, "idempotency_key_reused"),
        (OverBudget, HTTPStatus.PAYMENT_REQUIRED, "over_budget"),
        (OverLimit, HTTPStatus.TOO_MANY_REQUESTS, "over_limit"),
        (NoProfile, HTTPStatus.NOT_FOUND, "model_not_found"),
        (UsageError, HTTPStatus.BAD_REQUEST, "invalid_request"),
        (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
        (Refusal, HTTPStatus.FORBIDDEN, "not_allowed"),
    ):
        if isinstance(error, kind):
            return Rejected(status, str(error), code)
    return Rejected(HTTPStatus.SERVICE_UNAVAILABLE, wording.STORAGE, "unavailable")


def refused(error: RequestRefused) -> web.Response:
    """Return what is answered to what isn't a whole request."""
    if error.cause == "too_large":
        status, said = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, wording.TOO_LARGE
    elif error.cause == NO_ROUTE:
        status, said = error.status, wording.NO_ROUTE
    else:
        status, said = error.status, wording.NO_REQUEST
    return Rejected(status, said, error.cause).response
