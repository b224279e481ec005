"""Show and correct what counts toward a budget."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from bot.app import Library, operator_of
from bot.cli.execution import MISUSED, configured, end, usd, utf8, with_library
from bot.errors import UsageError
from bot.terminal.ask import say

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
