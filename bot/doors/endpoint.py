"""The port for programs: who may ask on it, and where each address leads.

A request needs a token. Its `Host` must be a name under which the port is served, so that no page that a
browser shows can reach it by another (DNS rebinding); pages of other origins are refused.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

import orjson
import structlog
from aiohttp import web

from bot.doors import completions
from bot.doors.completions import PREFIX as MODEL
from bot.doors.completions import profile_of
from bot.doors.door import Caller, Door
from bot.doors.rejections import Rejected, rejection
from bot.http_server import Routes
from bot.inputs.limits import MOST_PICTURES, PICTURE_BYTES
from bot.service.options import RunOptions
from bot.view.wording import doors as wording
from council.errors import CouncilError
from storage.errors import StorageError
from storage.tokens import PREFIX, Tokens

log = structlog.get_logger()

LOCAL = ("localhost", "127.0.0.1", "[::1]")
"""The names that a port on this machine has."""
_BEARER = re.compile(rf"Bearer[ \t]+({PREFIX}[0-9a-f]+)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-f:.]+(?:%\w+)?\]|[^\s:/@\[\]]+)(?::\d{1,5})?", re.IGNORECASE)

STRANGERS = 2**20
"""Bytes that a request may have whoever sends it."""
LARGEST = STRANGERS + MOST_PICTURES * PICTURE_BYTES * 4 // 3
"""Bytes of a program's request: a question with its pictures, in Base64."""

Served = Callable[[Caller, web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request of a known caller."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Answers programs.

    `hosts` are the names of the port beside this machine's; `mcp` answers at `/mcp`, if it is installed.
    """

    door: Door
    tokens: Tokens
    hosts: frozenset[str] = frozenset()
    mcp: Served | None = None

    @property
    def routes(self) -> Routes:
        served: dict[tuple[str, str], Served] = {
            ("GET", "/v1/models"): self._models,
            ("GET", "/v1/models/"): self._models,
            ("POST", "/v1/chat/completions"): partial(completions.complete, self.door),
        }
        if self.mcp:
            served["POST", "/mcp"] = self.mcp
        return {at: self._answering(serve) for at, serve in served.items()}

    def _answering(self, serve: Served) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            try:
                # What a page could send that a browser shows is refused.
                named = request.headers.getall("Host", [])
                host = _HOST.fullmatch(named[0]) if len(named) == 1 else None
                if host is None or host[1].lower() not in {*LOCAL, *self.hosts}:
                    raise Rejected(HTTPStatus.MISDIRECTED_REQUEST, wording.NOT_HOST, "wrong_host")
                origins = request.headers.getall("Origin", [])
                if origins and origins not in ([f"http://{named[0]}"], [f"https://{named[0]}"]):
                    raise Rejected(HTTPStatus.FORBIDDEN, wording.NOT_ORIGIN, "wrong_origin")
                return await serve(await self._caller(request), request)
            except CouncilError as error:
                if isinstance(error, StorageError):
                    log.warning("program_not_answered", reason=error)
                return rejection(error).response

        return answer

    async def most_bytes(self, request: web.BaseRequest) -> int:
        """Return how many bytes a request may have: as many as its pictures need if it has a token."""
        if request.can_read_body and (request.content_length or LARGEST) > STRANGERS:
            with suppress(CouncilError):
                await self._caller(request)
                return LARGEST
        return STRANGERS

    async def _caller(self, request: web.BaseRequest) -> Caller:
        """Return whoever asks. Raises `Rejected`."""
        given = _BEARER.fullmatch(request.headers.get("Authorization", ""))
        token = await self.tokens.find(given[1]) if given else None
        if token is None or await self.tokens.is_private(token.scope):
            raise Rejected(HTTPStatus.UNAUTHORIZED, wording.UNKNOWN_BEARER, "invalid_api_key")
        return Caller.of(token)

    async def _models(self, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
        """Answer with the councils that may be asked there, or with the one that a name would ask."""
        _, _, named = request.path.partition("/v1/models/")
        here = await self.door.dispatcher.in_force(caller.place)
        names = here.open_profiles
        if named:
            asked = here.profile(RunOptions(profile=profile_of(named) or caller.profile))
            here.check(caller.place, caller.requester, asked.name)
            names = (asked.name,)
        about = {"object": "model", "created": 0, "owned_by": "council"}
        listed = [{"id": f"{MODEL}{name}", **about} for name in names]
        found = listed[0] if named else {"object": "list", "data": listed}
        return web.Response(body=orjson.dumps(found), content_type="application/json")


def host_names(given: Iterable[str]) -> frozenset[str]:
    """Return the names, without their ports, under which it is served beside this machine's."""
    bare = (name.rpartition("//")[2].rstrip("/") for name in given)
    # An address of IPv6 is typed without the brackets that it has in a header.
    found = (_HOST.fullmatch(name) or _HOST.fullmatch(f"[{name}]") for name in bare)
    return frozenset(host[1].lower() for host in found if host)
