"""Serve Discord, Slack and programs, connect them, and say who may spend what.

Connecting is by a manifest and an invitation, spending by tokens and budgets.
"""

import json
import logging
import os
from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlsplit

import typer

from bot.app import Library, open_library, operator_of
from bot.cli.execution import (
    LOST,
    MISUSED,
    carry_out,
    configured,
    end,
    offer_servers,
    refuse,
    usd,
    utf8,
    with_library,
)
from bot.errors import ConfigurationError, UsageError
from bot.terminal import spending
from bot.terminal.ask import say, warn
from bot.terminal.spending import DEFAULT_DAY, DEFAULT_TIME, read_limit
from bot.view.wording import doors
from storage.journal.spending import Spending

PORT = 8808
Day = Annotated[str, typer.Option(help="The most that a day (UTC) may cost, in US dollars, or none.")]


def run(
    *,
    receive_only: Annotated[
        bool,
        typer.Option("--receive-only", help="Leave the runs to council worker (needs DATABASE_URL)."),
    ] = False,
) -> None:
    """Run the Discord and Slack bot."""
    _serve(works=not receive_only)


def worker() -> None:
    """Carry out the runs that council run accepts, on this machine or another."""
    _serve(receives=False)


def _serve(*, receives: bool = True, works: bool = True) -> None:
    from bot.adapters import EVERYTHING, Role
    from bot.serve import serve

    role = Role(receives, works)

    configuration = configured(logging.INFO)
    if role != EVERYTHING and not configuration.database:
        end(
            "council worker carries out what other processes accept, so it needs their database: set "
            "DATABASE_URL. Without one, council run does it all.",
            MISUSED,
        )
    offer_servers(configuration)
    settings = configuration.settings
    if configuration.is_demonstration and settings.has_platform and not settings.council_demo:
        end(
            "No model provider is configured, so the tiny built-in model would answer a team's "
            "questions. Set one up with council init, or set COUNCIL_DEMO=1 to show how a council "
            "works.",
            MISUSED,
        )
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
    from bot.slack.client import PLACEHOLDER, app_manifest

    if url is not None and not (url.startswith("https://") and urlsplit(url).hostname):
        wanted = "the public address of your proxy, such as https://council.example.com"
        end(f"--url takes {wanted}, not {url}.", MISUSED)
    settings = configured().settings
    # The bot uses Socket Mode if it has the token for it, and then the app does, too.
    is_http = settings.slack_http_port is not None and settings.slack_app_token is None
    made = app_manifest(socket_mode=url is None and not is_http, url=url or PLACEHOLDER, threads=threads)
    say(json.dumps(made, indent=2))


def discord() -> None:
    """Print the address that invites the bot to a Discord server."""
    from bot.discord.checks import discord_invite

    token = configured().settings.discord_token
    if token is None:
        end("DISCORD_TOKEN isn't set: the address needs the application's id, which it holds.", MISUSED)
    try:
        address = discord_invite(token.get_secret_value())
    except ConfigurationError as error:
        refuse(error)
    say(address)


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
    from bot.doors.server import serve_programs

    configuration = configured(logging.INFO)
    offer_servers(configuration)
    if lost := with_library(
        configuration,
        lambda library: serve_programs(
            configuration, library, host=host, port=port, hosts=allow_host or ()
        ),
    ):
        end(lost, LOST)


def mcp(*, max_cost_day: Day = DEFAULT_DAY) -> None:
    """Serve one agent on this machine: MCP over standard input and output."""
    from bot.doors.server import has_mcp, serve_stdio

    if not has_mcp():
        end(doors.NO_MCP, MISUSED)
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


def new(
    *,
    name: Annotated[str, typer.Option(help="How the program is called.", callback=utf8)],
    scope: Annotated[str, typer.Option(help=f"{doors.TOKEN_SCOPES}.", callback=utf8)],
    max_cost_day: Day = DEFAULT_DAY,
    profile: Annotated[
        str | None, typer.Option(help="The council that answers where a question names none.")
    ] = None,
    expires: Annotated[str, typer.Option(help="Days or hours, such as 12h, or never.")] = DEFAULT_TIME,
) -> None:
    """Make a token and print it, once: its holder reads that channel's history and asks there."""
    configuration = configured()
    try:
        wanted = spending.TokenRequest.read(name, scope, max_cost_day, expires, profile)
    except UsageError as error:
        end(str(error), MISUSED)
    if profile is not None and profile not in configuration.profiles:
        names = ", ".join(configuration.profiles)
        end(f"There is no profile {profile}. There are: {names}.", MISUSED)

    async def run(library: Library) -> tuple[str, str | None]:
        try:
            made = await spending.make(library.tokens, wanted)
        except UsageError as error:
            end(str(error), MISUSED)
        [token] = [each for each in await library.tokens.all() if each.name == name]
        return made, token.expires_at

    made, expires_at = with_library(configuration, run)
    say(made)
    warn(doors.made(spending.place(wanted.scope), name, wanted.day_limit, expires_at))


def list_(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False
) -> None:
    """List the tokens: scope, expiry, last use, and what each has spent today."""

    async def run(library: Library) -> list[spending.TokenRow]:
        return await spending.list_all(library.tokens, Spending(library.database))

    listed = with_library(configured(), run)
    if as_json:
        say(json.dumps([asdict(each) for each in listed], indent=2))
        return
    for each in listed:
        used = (each.last_used, each.spent_today, each.max_cost_day)
        say(doors.listed(each.name, each.scope, each.expires_at, *used))
    if not listed:
        say("There are no tokens. `council token new --name NAME --scope SCOPE` makes one.")


def revoke(name: Annotated[str, typer.Argument(help="The token's name.", callback=utf8)]) -> None:
    """Let a token open nothing from now on; runs that it has begun end as usual."""
    if not with_library(configured(), lambda library: library.tokens.revoke(name)):
        end(f"There is no token {name}. `council token list` names them.", MISUSED)
    say(f"{name} is revoked. Runs that it has begun end as usual.")


Key = Annotated[str, typer.Argument(help="A key of [budgets], such as user_day.")]
Whose = Annotated[str, typer.Argument(metavar="ID", help="discord:ID or slack:TEAM/ID.", callback=utf8)]


def show(
    key: Key,
    whose: Whose,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the amounts as JSON.")] = False,
) -> None:
    """Show what counts toward somebody's or a place's budget today or this month."""
    _account(key, whose, as_json=as_json)


def correct(
    key: Key,
    whose: Whose,
    dollars: Annotated[float, typer.Argument(parser=usd, help="What counts as spent.")],
) -> None:
    """Correct what counts as spent today or this month; what is reserved stays reserved."""
    _account(key, whose, dollars)


def reset(key: Key, whose: Whose) -> None:
    """Let nothing count as spent today or this month."""
    _account(key, whose, 0.0)


def _account(key: str, whose: str, dollars: float | None = None, *, as_json: bool = False) -> None:
    from bot.terminal.spending import Account

    configuration = configured()

    async def run(library: Library) -> str:
        try:
            account = Account(library, operator_of(configuration, {}), key, whose)
            counted = await (account.show() if dollars is None else account.set(dollars))
        except UsageError as error:
            end(str(error), MISUSED)
        return json.dumps(asdict(counted)) if as_json else counted.text

    say(with_library(configuration, run))
