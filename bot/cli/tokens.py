"""Let programs ask: make, list and revoke their tokens."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from bot.app import Library
from bot.cli.execution import MISUSED, configured, end, utf8, with_library
from bot.doors import tokens
from bot.doors.tokens import DEFAULT_DAY, DEFAULT_TIME
from bot.errors import UsageError
from bot.terminal.ask import say, warn
from bot.view.wording import doors as wording
from storage.journal.spending import Spending


def new(
    *,
    name: Annotated[str, typer.Option(help="How the program is called.", callback=utf8)],
    scope: Annotated[str, typer.Option(help=f"{wording.TOKEN_SCOPES}.", callback=utf8)],
    max_cost_day: Annotated[
        str, typer.Option(help="The most that a day (UTC) may cost, in US dollars, or none.")
    ] = DEFAULT_DAY,
    profile: Annotated[
        str | None, typer.Option(help="The council that answers where a question names none.")
    ] = None,
    expires: Annotated[str, typer.Option(help="Days or hours, such as 12h, or never.")] = DEFAULT_TIME,
) -> None:
    """Make a token and print it, once: its holder reads that channel's history and asks there."""
    configuration = configured()
    try:
        wanted = tokens.TokenRequest.read(name, scope, max_cost_day, expires, profile)
    except UsageError as error:
        end(str(error), MISUSED)
    if profile is not None and profile not in configuration.profiles:
        end(wording.no_such_profile(profile, [*configuration.profiles]), MISUSED)

    async def run(library: Library) -> tuple[str, str | None]:
        try:
            made = await tokens.make(library.tokens, wanted)
        except UsageError as error:
            end(str(error), MISUSED)
        [token] = [each for each in await library.tokens.all() if each.name == name]
        return made, token.expires_at

    made, expires_at = with_library(configuration, run)
    say(made)
    warn(wording.made(tokens.place(wanted.scope), name, wanted.day_limit, expires_at))


def list_(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the tokens: scope, expiry, last use, and what each has spent today."""

    async def run(library: Library) -> list[tokens.TokenRow]:
        return await tokens.list_all(library.tokens, Spending(library.database))

    listed = with_library(configured(), run)
    if as_json:
        say(json.dumps([asdict(each) for each in listed], indent=2))
        return
    for each in listed:
        used = (each.last_used, each.spent_today, each.max_cost_day)
        say(wording.listed(each.name, each.scope, each.expires_at, *used))
    if not listed:
        say(wording.NO_TOKENS)


def revoke(
    name: Annotated[str, typer.Argument(help="The token's name.", callback=utf8)],
) -> None:
    """Let a token open nothing from now on; runs that it has begun end as usual."""
    if not with_library(configured(), lambda library: library.tokens.revoke(name)):
        end(wording.no_token(name), MISUSED)
    say(wording.revoked(name))
