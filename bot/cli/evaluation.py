"""Measure what a council is worth on questions of one's own."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from bot.app import Library
from bot.cli.execution import FAILED, MISUSED, configured, end, offer_servers, usd, utf8, with_library
from bot.errors import Refusal
from bot.view.wording.evaluation import NO_EXTRA


def eval_(
    file: Annotated[Path | None, typer.Argument(help="The questions: CSV, JSON or JSON lines.")] = None,
    *,
    profile: Annotated[str, typer.Option(help="The council.")] = "default",
    arms: Annotated[
        str | None,
        typer.Option(
            help="What is compared, separated by commas, where that isn't the usual.", callback=utf8
        ),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="The model that judges what can't be checked.", callback=utf8)
    ] = None,
    baseline: Annotated[str, typer.Option(help="The arm that others are compared with.")] = "best",
    margin: Annotated[
        float, typer.Option(min=0, max=1, help="The difference in score that doesn't matter.")
    ] = 0.05,
    pilot: Annotated[
        int, typer.Option(min=1, help="How many questions choose the best single member.")
    ] = 20,
    max_cost: Annotated[
        float | None,
        typer.Option(parser=usd, help="US dollars that it may cost, earlier times included."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before it begins.")] = False,
    seed: Annotated[int, typer.Option(help="Another seed is another evaluation.")] = 0,
    from_history: Annotated[
        bool,
        typer.Option("--from-history", help="Take this terminal's past questions that people voted on."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure on your own questions what the council is worth beside its best member.

    The same command continues what was interrupted, and pays for nothing twice. Exit codes: 0 finished,
    1 stopped or no valid arm, 2 a file or an option can't be used.
    """
    if find_spec("inspect_ai") is None:
        end(NO_EXTRA, MISUSED)
    from bot.evaluation.command import EvalOptions, evaluate

    options = EvalOptions(
        file=file,
        profile=profile,
        arms=arms,
        judge=judge,
        baseline=baseline,
        margin=margin,
        pilot=pilot,
        max_cost=max_cost,
        yes=yes,
        seed=seed,
        from_history=from_history,
        as_json=as_json,
    )
    configuration = offer_servers(configured())

    async def run(library: Library) -> bool:
        try:
            return await evaluate(configuration, library, options)
        except Refusal as error:
            end(str(error), MISUSED)

    if not with_library(configuration, run):
        raise typer.Exit(FAILED)
