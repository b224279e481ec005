"""What programs and people may spend: tokens, made, listed and revoked; budgets, shown and corrected."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from bot.app import Library, operator_of
from bot.cli.execution import MISUSED, configured, end, usd, utf8, with_library
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
    from bot.terminal.budgets import Account

    configuration = configured()

    async def run(library: Library) -> str:
        try:
            account = Account(library, operator_of(configuration, {}), key, whose)
            counted = await (account.show() if dollars is None else account.set(dollars))
        except UsageError as error:
            end(str(error), MISUSED)
        return json.dumps(asdict(counted)) if as_json else counted.text

    say(with_library(configuration, run))
