"""How a command is carried out: its configuration, its data, and how it ends.

Exit codes: 0 answered or done, 1 failed, 2 usage or configuration, 78 a platform refuses the program for
good (`council run`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import NoReturn, TypeVar

import typer

from bot.app import Library, open_library
from bot.config import logs
from bot.config.configuration import Configuration, load
from bot.config.settings import given_secrets
from bot.errors import ConfigurationError
from bot.terminal.ask import warn
from bot.view.wording import terminal as wording
from bot.view.wording.failures import explain
from bot.view.wording.figures import listing
from council.errors import CouncilError
from council.text.redaction import Redaction

FAILED, MISUSED = 1, 2
LOST = 78  # EX_CONFIG of sysexits.h: a restart would only fail again


T = TypeVar("T")


def utf8(given: str | None) -> str | None:
    """Refuse an argument whose bytes aren't text: it can't be stored or sent."""
    try:
        (given or "").encode()
    except UnicodeEncodeError:
        raise typer.BadParameter("it isn't UTF-8 text.") from None
    return given


def usd(given: str) -> float:
    """Read an amount, which Python's own reading of numbers would take as inf, nan or 1_0 too."""
    from bot.service.limits import dollars_in

    if (amount := dollars_in(given)) is None:
        raise typer.BadParameter("it isn't an amount in US dollars from 0 to 1,000,000, such as 2.50.")
    return amount


def configured(level: int = logging.WARNING, *, for_people: bool = False) -> Configuration:
    """Return the configuration, and log from now on; end if it has a problem.

    What is logged beside text that is written `for_people` is text, too.
    """
    try:
        configuration = load()
    except ConfigurationError as error:
        refuse(error)
    secrets = [*given_secrets(), *configuration.secrets]
    logs.configure(level=level, secrets=secrets, for_people=for_people)
    return configuration


def offer_servers(configuration: Configuration, *, may_ask: bool = False) -> Configuration:
    """If no model is configured, name the model servers on this machine.

    Where a person `may_ask` a server's models for once and wants to, return a configuration with them.
    """
    if not configuration.is_demonstration:
        return configuration
    from council.suggestion import find_servers

    servers = asyncio.run(find_servers())
    for server in servers:
        if may_ask and (council := server.council()):
            # Ollama lists what runs in its cloud, too: https://docs.ollama.com/cloud
            is_here = not any(each.endswith("cloud") for each in server.models)
            named = listing(each.removesuffix(":latest") for each in server.models)
            if typer.confirm(f"Ask {named} on {server.name}?", default=is_here):
                return replace(configuration, profiles={council.name: council})
        else:
            warn(wording.offer(server, str(configuration.settings.council_config)))
    return configuration


def with_library(configuration: Configuration, work: Callable[[Library], Awaitable[T]]) -> T:

    async def run() -> T:
        folder = configuration.settings.council_data_dir
        async with open_library(folder, configuration.database) as library:
            return await work(library)

    return carry_out(run())


def carry_out(work: Coroutine[object, object, T]) -> T:
    try:
        return asyncio.run(work)
    except ConfigurationError as error:
        refuse(error)
    except CouncilError as error:
        end(explain(error, run_id="none", at_terminal=True), FAILED)


def refuse(error: ConfigurationError) -> NoReturn:
    end("\n".join(["The configuration can't be used:", *map(str, error.problems)]), MISUSED)


def end(message: str, code: int) -> NoReturn:
    """End with an exit code and a message on standard error, without secrets."""
    warn(Redaction(given_secrets()).hide(message))
    raise typer.Exit(code)
