"""Set the program up, show its settings, and say what is wrong."""

import asyncio
import logging
import re
import sys
from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from typing import Annotated, cast

import typer
from pydantic import SecretStr

from bot.checks.check import MOST_COLUMNS
from bot.cli.execution import FAILED, MISUSED, configured, end, refuse
from bot.config import logs
from bot.config.configuration import INNER_KEYS, Configuration
from bot.config.settings import POSTGRES, given_secrets
from bot.errors import ConfigurationError
from bot.terminal.ask import say
from council.profile import Member
from council.text.redaction import Redaction


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
    from bot.terminal.init import init as set_up

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        end(
            "`council init` asks questions, so it needs a terminal. Without one, copy .env.example to "
            ".env, fill it in, and run `council doctor`.",
            MISUSED,
        )
    # What is typed says it all; a log line would fall between the questions, and may have a new key.
    logs.configure(level=logging.CRITICAL, secrets=given_secrets())
    logging.disable()
    try:
        is_done = set_up()
    except ConfigurationError as error:
        refuse(error)
    if not is_done:
        raise typer.Exit(FAILED)


HIDDEN = "\u2022" * 4
NOT_SET = "not set"
LONG_SECRET = 16  # characters: its last four identify it and reveal little


def in_force(configuration: Configuration) -> Iterator[str]:
    hide = Redaction(configuration.secrets).hide

    def line(name: str, value: object, source: str, width: int = 22) -> str:
        shown = hide(_shown(value))
        return f"{name:<{width}} {shown}" + ("" if shown == NOT_SET else f"  ({source})")

    names = [*type(configuration.settings).model_fields]
    longest = max(map(len, names))
    for name in names:
        value = getattr(configuration.settings, name)
        yield line(name.upper(), value, configuration.origins[name.upper()], longest)
    for name, profile in configuration.profiles.items():
        yield f"\n[profiles.{name}]"
        for key, value in profile:
            if key not in INNER_KEYS:
                yield line(key, value, configuration.origins.get(f"profiles.{name}.{key}", "default"))
    for name, operations in configuration.operations.tables():
        yield f"\n[{name}]"
        for key, value in operations:
            yield line(key, value, configuration.origins.get(f"{name}.{key}", "default"))
    if configuration.is_demonstration:
        yield "\nNo provider or member is configured: the built-in demonstration model answers."


def _shown(value: object) -> str:
    match value:
        case None | ():
            return NOT_SET
        case SecretStr():
            secret = value.get_secret_value()
            if secret.startswith(POSTGRES):
                # A database's address may be seen, its password not.
                return re.sub(r"^(\w+://[^:@/]*:).*@", rf"\g<1>{HIDDEN}@", secret)
            return HIDDEN + (secret[-4:] if len(secret) >= LONG_SECRET else "")
        case frozenset():
            return ", ".join(sorted(cast("frozenset[str]", value))) or NOT_SET
        case list() | tuple():
            return ", ".join(map(_shown, cast("Iterable[object]", value)))
        case Member():
            persona = value.persona.name if value.persona else None
            named = f" as {persona}" if persona else ""
            return f"{value.model}{named}{f' at {value.endpoint}' if value.endpoint else ''}"
        case _:
            return str(value)
