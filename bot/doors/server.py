"""`council serve` and `council mcp`: the doors, opened over a council.

A request needs a token. Its `Host` must be a name under which the port is served, so that no page that a
browser shows can reach it by another (DNS rebinding); pages of other origins are refused.
"""

import asyncio
import re
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec

import orjson
import structlog
from aiohttp import web

from bot.actions import Actions
from bot.adapters import EVERYTHING, Program
from bot.app import Library, open_council, open_dispatcher, open_lookup
from bot.checks.machine import listening
from bot.config.configuration import Configuration
from bot.doors.completions import PREFIX as MODEL
from bot.doors.completions import Rejection, Serve, complete, profile_of, refused, rejection
from bot.doors.door import Caller, Door, ProgramQueue
from bot.errors import ConfigurationError, Problem
from bot.http_server import Routes
from bot.http_server import serving as open_port
from bot.inputs.limits import MOST_PICTURES, PICTURE_BYTES
from bot.serve import HANDOVER_SECONDS, Surfaces, hold_data, serve
from bot.service.commands import RunOptions
from bot.service.dispatcher import Dispatcher
from bot.service.runs import Runs
from bot.terminal.ask import say
from bot.view.wording import doors as wording
from council.errors import CouncilError
from council.tasks import beside
from storage.errors import StorageError
from storage.tokens import PREFIX, Tokens

log = structlog.get_logger()

LOCK = "doors"
"""What the one process holds that serves programs from a folder or a database."""
DRAIN_SECONDS = 1.0
"""How long runs have once the client of `council mcp` has left: it kills what lingers for 2 s."""
LOCAL = ("localhost", "127.0.0.1", "[::1]")
"""The names that a port on this machine has."""
_BEARER = re.compile(rf"Bearer[ \t]+({PREFIX}[0-9a-f]+)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-f:.]+(?:%\w+)?\]|[^\s:/@\[\]]+)(?::\d{1,5})?", re.IGNORECASE)

STRANGERS = 2**20
"""Bytes that anybody's request may have."""
LARGEST = STRANGERS + MOST_PICTURES * PICTURE_BYTES * 4 // 3
"""Bytes of a program's request: a question with its pictures, in Base64."""


async def serve_programs(
    configuration: Configuration, library: Library, *, host: str, port: int, hosts: Iterable[str]
) -> str | None:
    """Serve programs on a port until SIGTERM or SIGINT, then let runs end, if there is time.

    Raises `ConfigurationError`, and `WriterError` as soon as nothing can be written any more.
    """
    queue = ProgramQueue(configuration.operations.limits, library.journal)
    names = host_names((*hosts, host))
    surfaces = Surfaces(
        check=lambda _: None,  # no platform is needed
        hold=_hold,
        start=partial(_start, queue=queue, host=host, port=port, hosts=names),
        behind=queue.place,
    )
    return await serve(configuration, library, EVERYTHING, surfaces)


async def _hold(configuration: Configuration, library: Library, stack: AsyncExitStack) -> None:
    """Allow one process: two would resume the same runs. Raises `ConfigurationError`."""
    await hold_data(configuration, library, stack)
    wait = configuration.operations.durability.drain_seconds + HANDOVER_SECONDS
    if not await stack.enter_async_context(library.locks.acquire(LOCK, wait=wait)):
        what = "another process serves programs from this data"
        raise ConfigurationError([Problem("council serve", what, "End that one first")])


async def _start(
    program: Program, *, queue: ProgramQueue, host: str, port: int, hosts: frozenset[str]
) -> None:
    library, stack = program.library, program.stack
    door = _open_door(program.dispatcher, library, program.council.runs, queue)
    await stack.enter_async_context(beside(door.watch()))
    mcp = None
    if has_mcp():
        from bot.doors.mcp_tools import open_mcp

        mcp = await stack.enter_async_context(open_mcp(door))
    else:
        log.warning("mcp_needs_extra", problems=wording.NO_MCP)
    endpoint = Endpoint(door, library.tokens, hosts, mcp)
    with listening("--host", host, port):
        await stack.enter_async_context(
            open_port(endpoint.routes, host, port, refuse=refused, most_bytes=endpoint.most_bytes)
        )
    log.info("programs_served", port=port)
    say(wording.serving(host, port, has_mcp=mcp is not None))
    await door.resume(stdio=False)


def _open_door(
    dispatcher: Dispatcher, library: Library, runs: Runs, queue: ProgramQueue, *, holds: bool = False
) -> Door:
    # This process is connected to no platform that could open an answer.
    actions = Actions(dispatcher, open_lookup(library), lambda _: None)
    return Door(dispatcher, actions, library, runs, queue=queue, holds=holds)


def has_mcp() -> bool:
    return find_spec("mcp") is not None


async def serve_stdio(configuration: Configuration, library: Library, day: float | None) -> None:
    """Serve until the input ends; its runs continue at the next start. Raises `ConfigurationError`.

    `day` is the most that all of it may cost in a day, in US dollars.
    """
    from mcp.server.stdio import stdio_server

    from bot.doors.mcp_tools import Tools

    caller = Caller.at_terminal(day)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with local_door(configuration, library) as door:
        await door.resume(stdio=True)
        server = Tools(door, lambda _: caller).server()

        async def answer() -> None:
            async with stdio_server() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())

        serving = {asyncio.create_task(answer()), asyncio.create_task(ended.wait())}
        try:
            await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in serving:
                task.cancel()


@asynccontextmanager
async def local_door(configuration: Configuration, library: Library) -> AsyncGenerator[Door]:
    """Open a door for one program on this machine. Raises `ConfigurationError`."""
    async with AsyncExitStack() as stack:
        await hold_data(configuration, library, stack)
        council = await stack.enter_async_context(open_council(configuration, library))
        queue = ProgramQueue(configuration.operations.limits, library.journal)
        dispatcher = open_dispatcher(configuration, library, council, behind=queue.place)
        door = _open_door(dispatcher, library, council.runs, queue, holds=True)
        try:
            async with beside(door.watch()):
                yield door
        finally:
            await dispatcher.tasks.drain(DRAIN_SECONDS)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Answers programs.

    `hosts` are the names of the port beside this machine's; `mcp` answers at `/mcp`, if it is installed.
    """

    door: Door
    tokens: Tokens
    hosts: frozenset[str] = frozenset()
    mcp: Serve | None = None

    @property
    def routes(self) -> Routes:
        served: dict[tuple[str, str], Serve] = {
            ("GET", "/v1/models"): self._models,
            ("GET", "/v1/models/"): self._models,
            ("POST", "/v1/chat/completions"): partial(complete, self.door),
        }
        if self.mcp:
            served["POST", "/mcp"] = self.mcp
        return {at: self._answering(serve) for at, serve in served.items()}

    def _answering(self, serve: Serve) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            try:
                # What a page could send that a browser shows is refused.
                named = request.headers.getall("Host", [])
                host = _HOST.fullmatch(named[0]) if len(named) == 1 else None
                if host is None or host[1].lower() not in {*LOCAL, *self.hosts}:
                    said = "This host isn't served here. `council serve --allow-host NAME` allows it."
                    raise Rejection(HTTPStatus.MISDIRECTED_REQUEST, said, "wrong_host")
                origins = request.headers.getall("Origin", [])
                if origins and origins not in ([f"http://{named[0]}"], [f"https://{named[0]}"]):
                    said = "Pages of other origins can't ask here."
                    raise Rejection(HTTPStatus.FORBIDDEN, said, "wrong_origin")
                return await serve(await self._caller(request), request)
            except CouncilError as error:
                if isinstance(error, StorageError):
                    log.warning("program_not_answered", reason=error)
                return rejection(error).response

        return answer

    async def most_bytes(self, request: web.BaseRequest) -> int:
        if request.can_read_body and (request.content_length or LARGEST) > STRANGERS:
            with suppress(CouncilError):
                await self._caller(request)
                return LARGEST
        return STRANGERS

    async def _caller(self, request: web.BaseRequest) -> Caller:
        """Return the caller whose token a request has. Raises `Rejection`."""
        given = _BEARER.fullmatch(request.headers.get("Authorization", ""))
        token = await self.tokens.find(given[1]) if given else None
        if token is None or await self.tokens.is_private(token.scope):
            raise Rejection(
                HTTPStatus.UNAUTHORIZED,
                "This token opens nothing. Send one that is valid as Authorization: Bearer "
                "council_\u2026; `council token list` names those that aren't revoked.",
                "invalid_api_key",
            )
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
    bare = (name.rpartition("//")[2].rstrip("/") for name in given)
    # An address of IPv6 is typed without the brackets that it has in a header.
    found = (_HOST.fullmatch(name) or _HOST.fullmatch(f"[{name}]") for name in bare)
    return frozenset(host[1].lower() for host in found if host)
