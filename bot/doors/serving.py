"""`council serve` and `council mcp`: the doors, opened over a council."""

import asyncio
import signal
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from importlib.util import find_spec

import structlog

from bot.actions import Actions
from bot.app import Council, Library, open_council, open_dispatcher, open_lookup
from bot.config.configuration import Configuration
from bot.config.ports import listening
from bot.doors.door import Caller, Door, ProgramQueue
from bot.doors.endpoint import Endpoint, host_names
from bot.doors.rejections import refused
from bot.errors import ConfigurationError, Problem
from bot.http_server import serving as open_port
from bot.program import EVERYTHING, Program
from bot.serve import HANDOVER_SECONDS, Surfaces, hold_data, serve
from bot.service.dispatcher import Dispatcher
from bot.terminal.ask import say
from bot.view.wording import doors as wording

log = structlog.get_logger()

LOCK = "doors"
"""What the one process holds that serves programs from a folder or a database."""
DRAIN_SECONDS = 1.0
"""How long runs have once the client of `council mcp` has left: it kills what lingers for 2 s."""


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
        queue=queue,
    )
    return await serve(configuration, library, EVERYTHING, surfaces)


async def _hold(configuration: Configuration, library: Library, stack: AsyncExitStack) -> None:
    """Allow one process: two would resume the same runs. Raises `ConfigurationError`."""
    await hold_data(configuration, library, stack)
    wait = configuration.operations.durability.drain_seconds + HANDOVER_SECONDS
    if not await stack.enter_async_context(library.locks.acquire(LOCK, wait=wait)):
        raise ConfigurationError([Problem("council serve", wording.HELD, wording.END_OTHER)])


async def _start(
    program: Program,
    council: Council,
    *,
    queue: ProgramQueue,
    host: str,
    port: int,
    hosts: frozenset[str],
) -> None:
    library, stack = program.library, program.stack
    door = _open_door(program.dispatcher, library, council, queue)
    watching = asyncio.create_task(door.watch())
    stack.callback(watching.cancel)
    mcp = None
    if has_mcp():
        from bot.doors.mcp_tools import open_mcp

        mcp = await stack.enter_async_context(open_mcp(door))
    else:
        log.warning("mcp_needs_extra", problems=wording.NO_MCP)
    endpoint = Endpoint(door, library.tokens, hosts, mcp)
    with listening(("--host", "--port"), host, port):
        await stack.enter_async_context(
            open_port(endpoint.routes, host, port, refuse=refused, most_bytes=endpoint.most_bytes)
        )
    log.info("programs_served", port=port)
    say(wording.serving(host, port, has_mcp=mcp is not None))
    await door.resume(stdio=False)


def _open_door(
    dispatcher: Dispatcher,
    library: Library,
    council: Council,
    queue: ProgramQueue,
    *,
    holds: bool = False,
) -> Door:
    # This process is connected to no platform that could open an answer.
    actions = Actions(dispatcher, open_lookup(library), lambda _: None)
    return Door(dispatcher, actions, library, council.runs, queue=queue, holds=holds)


def has_mcp() -> bool:
    """Return whether the extra `doors` is installed."""
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
    async with AsyncExitStack() as stack:
        await hold_data(configuration, library, stack)
        council = await stack.enter_async_context(open_council(configuration, library))
        queue = ProgramQueue(configuration.operations.limits, library.journal)
        dispatcher = open_dispatcher(configuration, library, council, queue)
        door = _open_door(dispatcher, library, council, queue, holds=True)
        await door.resume(stdio=True)
        server = Tools(door, lambda _: caller).server()

        async def answer() -> None:
            async with stdio_server() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())

        serving = {asyncio.create_task(answer()), asyncio.create_task(ended.wait())}
        watching = asyncio.create_task(door.watch())
        try:
            await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*serving, watching):
                task.cancel()
            await dispatcher.tasks.drain(DRAIN_SECONDS)
