"""How soon a new process continues the runs that an earlier one left: each in its own process.

python -m bench.resume leave FOLDER 1000    until 8 calls of each run are in the journal, then dies
python -m bench.resume go-on FOLDER 1000    prints how long that took, as JSON
"""

import argparse
import asyncio
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

from pydantic import BaseModel

from bench.load import SilentVenue, asked, dispatcher_of, place, said, text
from bot.app import open_library
from bot.config import logs
from bot.serve import tune_interpreter
from bot.service.accept import Question
from bot.service.access import AT_TERMINAL
from council.calls import Call, Reply
from council.usage import Usage

FINISHED = ("stage1.", "stage2.")


class Resumption(BaseModel):
    """Seconds from opening the data to the last run's first new call: by the clock, and of CPU."""

    wall: float
    cpu: float


class _Arguments(BaseModel):
    part: str
    folder: Path
    runs: int


def resumption(runs: int) -> Resumption:
    """Measure how interrupted runs continue."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [
            subprocess.run(  # noqa: S603 - our own words
                [sys.executable, "-m", "bench.resume", part, folder, str(runs)],
                check=True,
                stdout=subprocess.PIPE,
            )
            for part in ("leave", "go-on")
        ]
        return Resumption.model_validate_json(parts[-1].stdout)


async def leave(folder: Path, runs: int) -> None:
    """Bring runs as far as their corrections, and die."""
    reached: set[str] = set()
    all_there = asyncio.Event()

    async def ask(call: Call) -> Reply:
        if call.step.startswith(FINISHED):
            return Reply(text=said(call.step), usage=Usage(), latency_ms=1)
        reached.add(asked(call))
        if len(reached) == runs:
            all_there.set()
        return await asyncio.Future[Reply]()

    async with open_library(folder) as library:
        dispatcher = dispatcher_of(library, ask, runs)
        # All are loaded before the first begins: only their continuation is measured.
        accepted = [
            await dispatcher.accept(
                Question(
                    standing=AT_TERMINAL,
                    text=text(number),
                    source=place(number),
                    entry_key=str(number),
                    asker="Ada",
                )
            )
            for number in range(runs)
        ]
        for run in filter(None, accepted):
            dispatcher.tasks.begin(run, SilentVenue())
        await all_there.wait()
        os._exit(0)  # as a kill: nothing is drained


async def go_on(folder: Path, runs: int) -> Resumption:
    """Continue them until each has asked something new."""
    reached: set[str] = set()
    all_there = asyncio.Future[Resumption]()

    async def ask(call: Call) -> Reply:
        if call.step.startswith(FINISHED):
            sys.exit(f"{call.step} was in the journal and is asked again")
        reached.add(asked(call))
        if len(reached) == runs and not all_there.done():
            wall, cpu = time.perf_counter() - began, time.process_time() - busy
            all_there.set_result(Resumption(wall=wall, cpu=cpu))
        return await asyncio.Future[Reply]()

    tune_interpreter()
    began, busy = time.perf_counter(), time.process_time()
    async with open_library(folder) as library:
        dispatcher = dispatcher_of(library, ask, runs)
        await dispatcher.tasks.resume(
            await dispatcher.tasks.undelivered("bench"), lambda _: SilentVenue()
        )
        measured = await all_there
        await dispatcher.tasks.drain(0)
    return measured


def main() -> None:
    """Do one of the two parts."""
    logs.configure(level=logging.ERROR, secrets=())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("leave", "go-on"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("runs", type=int)
    arguments = _Arguments.model_validate(cast("dict[str, object]", vars(parser.parse_args())))
    if arguments.part == "leave":
        asyncio.run(leave(arguments.folder, arguments.runs))
    else:
        print(asyncio.run(go_on(arguments.folder, arguments.runs)).model_dump_json())


if __name__ == "__main__":
    main()
