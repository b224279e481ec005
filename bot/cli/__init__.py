"""The command line, `council`: its commands, in the order in which `council --help` lists them."""

import io
import json
import logging
import os
import resource
import sys
from pathlib import Path
from typing import cast

import typer

from bot.cli import asking, data, serving, setting_up
from bot.cli.execution import FAILED
from bot.config import logs
from bot.config.settings import given_secrets
from bot.terminal.ask import say

app = typer.Typer(
    help="A council of language models: they answer, review each other, correct themselves, and a "
    "chairman writes the final answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def schema() -> None:
    """Print the JSON Schema (draft-07) of a consultant's answer."""
    from council.consultation import json_schema

    say(json.dumps(json_schema(), indent=2))


for command in (
    asking.demo,
    asking.ask,
    asking.chat,
    setting_up.init,
    serving.run,
    setting_up.doctor,
    setting_up.config,
    data.export,
):
    app.command(command.__name__)(command)

OTHERS = (
    asking.retry,
    serving.worker,
    serving.serve,
    serving.mcp,
    schema,
    asking.eval_,
    data.import_,
    data.backup,
    data.restore,
    data.migrate,
)
for command in OTHERS:
    app.command(command.__name__.rstrip("_"), hidden=True)(command)

GROUPS = (
    ("index", "The index over all conversations.", {"check": data.check, "rebuild": data.rebuild}),
    (
        "budget",
        "What counts toward a budget.",
        {"show": serving.show, "set": serving.correct, "reset": serving.reset},
    ),
    (
        "token",
        "The tokens with which programs ask.",
        {"new": serving.new, "list": serving.list_, "revoke": serving.revoke},
    ),
    ("manifest", "App manifests of the platforms.", {"slack": serving.slack}),
    ("invite", "Addresses that invite the bot.", {"discord": serving.discord}),
)
for name, meaning, commands in GROUPS:
    group = typer.Typer(help=meaning, no_args_is_help=True)
    for title, command in commands.items():
        group.command(title)(command)
    app.add_typer(group, name=name, hidden=True)

names = [*(command.__name__.rstrip("_") for command in OTHERS), *(name for name, *_ in GROUPS)]
app.info.epilog = f"Also: {', '.join(names)}. council COMMAND --help describes each."


def main() -> None:
    # Until the configuration is read, and where it can't be.
    logs.configure(level=logging.WARNING, secrets=given_secrets())
    logs.catch_crashes()
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # memory holds keys, questions and answers
    # Whatever started it may have closed its standard input, which then reads as empty.
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open to the end
    # As standard error does: a file's name may contain bytes that aren't text.
    cast("io.TextIOWrapper[io.BufferedWriter]", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception as error:  # noqa: BLE001 - typer's own hook would print its message
        logs.log_uncaught(type(error), error, error.__traceback__)
        sys.exit(FAILED)
