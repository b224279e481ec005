"""The plumbing of the REST side: routes, tokens, bodies, rate limits, injected failures, the log."""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from aiohttp import BodyPartReader, web

from tests.breaking import break_off, page

from . import errors
from .errors import ApiError
from .faults import BY_GUILD, Fault, Limit, about
from .posting import Upload
from .state import Json, World

Handler = Callable[["Call"], Any]
PLENTY = 1000
"""The bucket size told to the client where a test sets no limit."""


@dataclass(slots=True)
class Call:
    """One request as an endpoint sees it."""

    world: World
    parameters: dict[str, str]
    query: dict[str, str]
    body: Any = None
    uploads: dict[int, Upload] = field(default_factory=dict[int, Upload])

    def id(self, name: str) -> int:
        """Return an id from the path; refuse anything but digits."""
        text = self.parameters[name]
        if not text.isdecimal():
            raise errors.invalid(name, "NUMBER_TYPE_COERCE", f'Value "{text}" is not snowflake.')
        return int(text)


@dataclass(slots=True, eq=False)
class Request:
    """A line of the log; `started` and `ended` are `time.perf_counter()` seconds.

    A `status` of 499 means that the answer was withheld or lost.
    """

    route: str
    path: str
    body: Any
    at: float
    started: float
    ended: float = 0.0
    status: int = 0
    code: int = 0


ROUTES: dict[str, tuple[Handler, bool]] = {}
ASKED: set[str] = set()
"""The routes that every server of this process was asked for so far."""


def route(line: str, *, token: bool = True) -> Callable[[Handler], Handler]:
    """Register an endpoint (`"GET /users/@me"`); without `token`, the path itself authorizes."""

    def register(handler: Handler) -> Handler:
        ROUTES[line] = (handler, token)
        return handler

    return register


@dataclass(slots=True, eq=False)
class Api:
    """Every endpoint, and what a test has set to go wrong."""

    world: World
    changed: Callable[[], None]
    requests: list[Request] = field(default_factory=list[Request])
    faults: list[Fault] = field(default_factory=list[Fault])
    limits: dict[str, Limit] = field(default_factory=dict[str, Limit])
    overall: Limit | None = None

    def mount(self, app: web.Application) -> None:
        """Put the endpoints under /api/v10; whatever isn't one is logged and refused."""
        for line, (handler, token) in ROUTES.items():
            method, path = line.split(" ")
            app.router.add_route(method, f"/api/v10{path}", self._endpoint(line, handler, token=token))
        refuse = self._endpoint("unknown", _refuse, token=False)
        app.router.add_route("*", "/api/v10/{path:.*}", refuse)

    def _endpoint(
        self, line: str, handler: Handler, *, token: bool
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            entry = Request(
                line, request.path, None, self.world.clock.now(), started=time.perf_counter()
            )
            self.requests.append(entry)
            ASKED.add(line)
            response = await self._answer(request, line, handler, entry, token=token)
            entry.status, entry.ended = response.status, time.perf_counter()
            self.changed()
            return response

        return answer

    async def _answer(
        self, request: web.Request, line: str, handler: Handler, entry: Request, *, token: bool
    ) -> web.Response:
        headers = {"Via": "1.1 google", "Content-Type": "application/json"}
        try:
            call = await self._read(request, token=token)
            entry.body = call.body
            headers |= self._rate(line, call, token=token)
            if fault := await self._fault(line, call):
                if fault.applied:
                    with suppress(ApiError):  # the answer is lost, a refusal as well
                        handler(call)
                if fault.breaks:
                    return await break_off(request, fault.breaks, fault.over)
                raise _failure(fault)
            reply = handler(call)
        except ApiError as error:
            entry.code = error.code
            if error.is_html:
                return page(error.status)
            if error.retry_after is not None:
                headers |= _exhausted(error.retry_after, is_global=error.is_global)
            return web.Response(status=error.status, headers=headers, body=orjson.dumps(error.body()))
        if reply is None:
            del headers["Content-Type"]
            return web.Response(status=204, headers=headers)
        return web.Response(headers=headers, body=orjson.dumps(reply))

    async def _read(self, request: web.Request, *, token: bool) -> Call:
        """Read path, query and body; refuse a wrong bot token."""
        if token and request.headers.get("Authorization") != f"Bot {self.world.token}":
            await request.read()
            raise errors.ApiError(*errors.UNAUTHORIZED)
        call = Call(self.world, dict(request.match_info), dict(request.query))
        if request.content_type.startswith("multipart/"):
            await read_parts(request, call)
        elif raw := await request.read():
            try:
                call.body = orjson.loads(raw)
            except orjson.JSONDecodeError:
                raise ApiError(400, 50109, "The request body contains invalid JSON.") from None
        return call

    def _rate(self, line: str, call: Call, *, token: bool) -> dict[str, str]:
        """Count the request against its limits; return the headers, or refuse with a 429."""
        now = self.world.clock.now()
        if token and self.overall is not None:
            remaining, wait = self.overall.take((), now)
            if remaining < 0:
                raise errors.rate_limited(wait, is_global=True)
        limit = self.limits.get(line)
        if limit is None:
            return _bucket(line, PLENTY, PLENTY - 1, 1.0)
        remaining, wait = limit.take((line, *self._majors(line, call)), now)
        if remaining < 0:
            raise errors.rate_limited(wait)
        return _bucket(line, limit.requests, remaining, wait)

    def _majors(self, line: str, call: Call) -> list[str]:
        """Return the resource that a route's rate limit belongs to."""
        if line in BY_GUILD:
            channel = self.world.channels.get(int(call.parameters["channel_id"]))
            return [str(channel.guild.id) if channel and channel.guild else ""]
        majors = ("channel_id", "guild_id", "webhook_id", "token")
        return [call.parameters.get(name, "") for name in majors]

    async def _fault(self, line: str, call: Call) -> Fault | None:
        """Return the fault set for this request, after waiting at its gate."""
        if not self.faults:
            return None
        now, concerned = self.world.clock.now(), about(self.world, call.parameters, call.body)
        fault = next((fault for fault in self.faults if fault.covers(line, concerned, now)), None)
        if fault is None:
            return None
        fault.meet(now)
        if fault.gate is not None:
            self.changed()
            await fault.gate.wait()
        return fault if fault.status is not None or fault.breaks else None


def _refuse(_: Call) -> None:
    raise errors.ApiError(*errors.NOT_FOUND)


async def read_parts(request: web.Request, call: Call) -> None:
    """Read a multipart body: `payload_json`, then `files[n]`."""
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        name = part.name or ""
        data = bytes(await part.read())
        if name == "payload_json":
            call.body = orjson.loads(data)
        elif name.startswith("files["):
            kind = part.headers.get("Content-Type", "application/octet-stream")
            call.uploads[int(name[6:-1])] = Upload(part.filename or "file", data, kind)


def _failure(fault: Fault) -> ApiError:
    assert fault.status is not None
    if fault.status == 429:
        return errors.rate_limited(fault.retry_after, is_global=fault.is_global, code=fault.code)
    error = ApiError(fault.status, fault.code, fault.message or f"{fault.status}: injected")
    error.is_html = fault.html
    return error


def _bucket(line: str, limit: int, remaining: int, reset_after: float) -> dict[str, str]:
    return {
        "X-RateLimit-Bucket": f"{hash(line) & 0xFFFFFFFF:08x}",
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(remaining),
        "X-RateLimit-Reset": f"{time.time() + reset_after:.3f}",
        "X-RateLimit-Reset-After": f"{reset_after:.3f}",
    }


def _exhausted(retry_after: float, *, is_global: bool) -> dict[str, str]:
    headers = {
        "Retry-After": str(int(retry_after) + 1),
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset-After": f"{retry_after:.3f}",
        "X-RateLimit-Reset": f"{time.time() + retry_after:.3f}",
        "X-RateLimit-Scope": "global" if is_global else "user",
    }
    return headers | {"X-RateLimit-Global": "true"} if is_global else headers


def body_of(call: Call) -> Json:
    body: object = call.body
    if not isinstance(body, dict):
        raise ApiError(400, 50109, "The request body contains invalid JSON.")
    return cast("Json", body)
