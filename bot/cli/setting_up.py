"""Set the program up, show its settings, and say what is wrong."""

import asyncio
import logging
import sys
from shutil import get_terminal_size
from typing import Annotated

import typer

from bot.checks.check import MOST_COLUMNS
from bot.cli.execution import FAILED, MISUSED, configured, end, refuse
from bot.config import logs
from bot.config.report import in_force
from bot.config.settings import given_secrets
from bot.errors import ConfigurationError
from bot.terminal.ask import say
from bot.view.wording import cli as wording


def config() -> None:
    """Show the settings in force and where each comes from; secrets are masked."""
    configuration = configured()
    for line in in_force(configuration):
        say(line)


def doctor(
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Also ask each member for one word, which costs a little.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check tokens, permissions, models and data, and say how to fix what is wrong."""
    from bot.doctor import diagnose

    # The findings are complete; a check's own failure is logged without values.
    logs.configure(level=logging.CRITICAL, secrets=given_secrets())
    examination = asyncio.run(diagnose(live=live))
    columns = get_terminal_size().columns if sys.stdout.isatty() else MOST_COLUMNS
    say(examination.to_json() if as_json else examination.text(columns))
    if not examination.is_well:
        raise typer.Exit(FAILED)


def init() -> None:
    """Set up a council of your own: a few questions, then `.env` is written."""
    from bot.terminal.init.dialogue import init as set_up

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        end(wording.NO_TERMINAL, MISUSED)
    # What is typed says it all; a log line would fall between the questions, and may have a new key.
    logs.configure(level=logging.CRITICAL, secrets=given_secrets())
    logging.disable()
    try:
        is_done = set_up()
    except ConfigurationError as error:
        refuse(error)
    if not is_done:
        raise typer.Exit(FAILED)
