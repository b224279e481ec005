"""Serve Discord, Slack and programs, and connect them: manifest and invitation."""

import json
import logging
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from bot.cli.execution import LOST, MISUSED, configured, end, offer_servers, refuse, with_library
from bot.errors import ConfigurationError
from bot.terminal.ask import say
from bot.view.wording import cli as wording

if TYPE_CHECKING:
    from bot.serve import Role
import os

from bot.app import open_library
from bot.cli.execution import carry_out
from bot.doors.tokens import DEFAULT_DAY, read_limit
from bot.errors import UsageError
from bot.view.wording.doors import NO_MCP


def run(
    *,
    receive_only: Annotated[
        bool,
        typer.Option("--receive-only", help="Leave the runs to council worker (needs DATABASE_URL)."),
    ] = False,
) -> None:
    """Run the Discord and Slack bot."""
    from bot.serve import Role

    _serve(Role(works=not receive_only))


def worker() -> None:
    """Carry out the runs that council run accepts, on this machine or another."""
    from bot.serve import Role

    _serve(Role(receives=False))


def _serve(role: "Role") -> None:
    from bot.serve import EVERYTHING, serve

    configuration = configured(logging.INFO)
    if role != EVERYTHING and not configuration.database:
        end(wording.NEEDS_DATABASE, MISUSED)
    offer_servers(configuration)
    settings = configuration.settings
    if configuration.is_demonstration and settings.has_platform and not settings.council_demo:
        end(wording.NO_PROVIDER, MISUSED)
    if lost := with_library(configuration, lambda library: serve(configuration, library, role)):
        end(lost, LOST)


def slack(
    *,
    threads: Annotated[
        bool, typer.Option("--threads", help="Let it read the thread in which it is asked.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(help="For HTTP instead of Socket Mode: the public https address of your proxy."),
    ] = None,
) -> None:
    """Print the manifest for creating the Slack app."""
    from bot.slack.manifest import PLACEHOLDER, app_manifest

    if url is not None and not (url.startswith("https://") and urlsplit(url).hostname):
        end(wording.no_public_address(url), MISUSED)
    settings = configured().settings
    # The bot uses Socket Mode if it has the token for it, and then the app does, too.
    is_http = settings.slack_http_port is not None and settings.slack_app_token is None
    made = app_manifest(socket_mode=url is None and not is_http, url=url or PLACEHOLDER, threads=threads)
    say(json.dumps(made, indent=2))


def discord() -> None:
    """Print the address that invites the bot to a Discord server."""
    from bot.discord.invite import discord_invite

    token = configured().settings.discord_token
    if token is None:
        end(wording.NO_TOKEN, MISUSED)
    try:
        address = discord_invite(token.get_secret_value())
    except ConfigurationError as error:
        refuse(error)
    say(address)


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
        end(NO_MCP, MISUSED)
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
