"""Examples as runs: what `council demo` plays, and what `council chat` shows where no model is set up.

Their texts were written by hand (`bot/demo/texts`); they are never in the data folder.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.app import Council, Library, open_library, operator_of
from bot.config.configuration import Configuration
from bot.demo import scenario
from bot.demo.player import Player
from bot.service.admission.access import AT_TERMINAL
from bot.service.admission.channels import Channels
from bot.service.admission.costs import Costs
from bot.service.requests.question import Question
from bot.service.runs.runs import Runs, build_runs
from bot.terminal.ask import person
from bot.view.wording import terminal as wording
from council.calls import Call, Reply
from council.errors import Failure, ModelError
from council.models.catalog import Catalog
from council.models.directory import Directory
from council.text.json_objects import JsonObject
from storage.journal.rows import RunRow

_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it


def folder() -> "TemporaryDirectory[str]":
    """Return a folder that is deleted afterwards; in memory, where the system has such a place."""
    in_memory = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    return TemporaryDirectory(prefix="council-examples-", dir=_MEMORY if in_memory else None)


@asynccontextmanager
async def open_examples() -> AsyncGenerator[Library]:
    """Open a library that holds all examples, marked as such by their titles."""
    with folder() as name:
        async with open_library(Path(name)) as library:
            for each in scenario.NAMES:
                example = scenario.example(each)
                title = wording.example(example.cast.title)
                marked = replace(example, cast=example.cast.model_copy(update={"title": title}))
                player = Player(marked, sleep=_at_once)
                runs = runs_of(player, library)
                run = await record(runs, player)
                await runs.carry_out(run, lambda event: None)  # noqa: ARG005 - nobody watches
                await library.journal.deliver(run.id, "shown")
            yield library


def runs_of(player: Player, library: Library) -> Runs:
    """Return runs whose calls are answered by a player."""
    costs = Costs(catalog=Catalog(_no_models), journal=library.journal, store=library.store)
    return build_runs(player.ask, costs, library.index)


async def record(runs: Runs, player: Player) -> RunRow:
    """Record a player's question as a run."""
    asked = Question(
        standing=AT_TERMINAL,
        text=player.example.question,
        source=person(),
        entry_key=f"example {player.example.name}",
    )
    return (await runs.recorder.record(asked, player.profile)).run


def nobody(configuration: Configuration, library: Library) -> Council:
    """Return a council without anybody to ask, for a channel whose answers are only read."""

    async def ask(call: Call) -> Reply:
        raise ModelError(Failure(cause="no_server", detail=call.member.model))

    costs = Costs(
        catalog=Catalog(_no_models),
        journal=library.journal,
        store=library.store,
        channels=Channels(operator_of(configuration, {}), library.overrides),
    )
    return Council({}, build_runs(ask, costs, library.index), Directory(()))


async def _at_once(seconds: float) -> None:
    del seconds
    await asyncio.sleep(0)


async def _no_models() -> list[JsonObject]:
    return []
