"""Open the doors for programs: the OpenAI-compatible endpoint and MCP."""

import logging
import os
from typing import Annotated

import typer

from bot.app import open_library
from bot.cli.execution import LOST, MISUSED, carry_out, configured, end, offer_servers, with_library
from bot.doors.tokens import DEFAULT_DAY, read_limit
from bot.errors import UsageError
from bot.view.wording import doors as wording

PORT = 8808


def serve(
    *,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = PORT,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for every one.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name by which programs reach it, such as a proxy's; may be repeated."),
    ] = None,
) -> None:
    """Serve programs: an OpenAI-compatible endpoint at /v1, and MCP at /mcp."""
    from bot.doors.serving import serve_programs

    configuration = configured(logging.INFO)
    offer_servers(configuration)
    if lost := with_library(
        configuration,
        lambda library: serve_programs(
            configuration, library, host=host, port=port, hosts=allow_host or ()
        ),
    ):
        end(lost, LOST)


def mcp(
    *,
    max_cost_day: Annotated[
        str, typer.Option(help="The most that a day (UTC) may cost, in US dollars, or none.")
    ] = DEFAULT_DAY,
) -> None:
    """Serve one agent on this machine: MCP over standard input and output."""
    from bot.doors.serving import has_mcp, serve_stdio

    if not has_mcp():
        end(wording.NO_MCP, MISUSED)
    try:
        day = read_limit(max_cost_day)
    except UsageError as error:
        end(str(error), MISUSED)
    configuration = configured()

    async def serve_one() -> None:
        folder = configuration.settings.council_data_dir
        async with open_library(folder, configuration.database) as library:
            await serve_stdio(configuration, library, day)
        # The SDK reads in a thread, which would keep the process until the client's next line.
        os._exit(0)

    carry_out(serve_one())
