"""`council mcp`: MCP over standard input and output, for one person on their machine."""

import asyncio
import signal
from contextlib import AsyncExitStack
from typing import Any

from mcp.server.stdio import stdio_server

from bot.app import Library, open_council, open_dispatcher
from bot.config.configuration import Configuration
from bot.doors.door import Caller
from bot.doors.mcp_tools import Tools
from bot.doors.queue import ProgramQueue
from bot.doors.serving import open_door
from bot.serve import hold_data

DRAIN_SECONDS = 1.0
"""How long runs have to end once the client has left: it kills a server that lingers for 2 s."""


async def serve_stdio(configuration: Configuration, library: Library, day: float | None) -> None:
    """Serve until the input ends; its runs continue at the next start. Raises `ConfigurationError`.

    `day` is the most that all of it may cost in a day, in US dollars.
    """
    caller = Caller.at_terminal(day)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        await hold_data(configuration, library, stack)
        council = await stack.enter_async_context(open_council(configuration, library))
        queue = ProgramQueue(configuration.operations.limits, library.journal)
        dispatcher = open_dispatcher(configuration, library, council, queue)
        door = open_door(dispatcher, library, council, queue, holds=True)
        await door.resume(stdio=True)
        server = Tools(door, lambda _: caller).server()
        serving = {
            asyncio.create_task(_serve(server)),
            asyncio.create_task(ended.wait()),
        }
        watching = asyncio.create_task(door.watch())
        try:
            await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*serving, watching):
                task.cancel()
            await dispatcher.tasks.drain(DRAIN_SECONDS)


async def _serve(server: Any) -> None:  # noqa: ANN401 - the SDK's server is generic in what we don't use
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
