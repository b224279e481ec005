"""Many runs at once on PostgreSQL, carried out by real `council worker` processes, beside one on SQLite.

python -m bench.workers 200 --workers 0 1 2 4 --call 0.5    prints figures as JSON, a line for each

Where there are no workers, one process does everything in a data folder. All calls go over HTTP to a
model server in a process of its own. Venues are silent: what platforms and their rate limits cost isn't
measured. The server syncs its writes, in a folder beside the data folder's.
"""

import argparse
import asyncio
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from math import ceil
from pathlib import Path
from typing import cast

import psycopg
from psycopg.rows import TupleRow
from pydantic import BaseModel

from bench.load import CHANNELS, SilentVenue, most_memory, text
from bench.streams import serving
from bot.app import open_council, open_dispatcher, open_library, open_shared_dispatcher
from bot.config import logs
from bot.config.configuration import load
from bot.errors import Refusal
from bot.serve import tune_interpreter
from bot.service.accept import Question
from bot.service.access import AT_TERMINAL
from bot.service.dispatcher import Dispatcher
from council.document.conversation import Source
from tests.discord_server import DiscordServer
from tests.postgres_server import PostgresServer, serve

MEMBERS = "openai/gpt-5,anthropic/claude,google/gemini,x-ai/grok"
ASKED_AT_ONCE = 32
LOOK_SECONDS = 0.2
IDLE_SECONDS = 10.0
STARTED_WITHIN = 120.0
SYNCING = ("fsync=on", "full_page_writes=on", "synchronous_commit=on", "autovacuum=on")
COUNTING = ("max_connections=200", "shared_preload_libraries=pg_stat_statements")
TICKS = os.sysconf("SC_CLK_TCK")

READY = "SELECT count(*) FROM procrastinate_workers"
SHOWN = """
SELECT count(*) AS bench, count(*) FILTER (WHERE status <> 'answered') FROM runs
WHERE delivery = 'shown'
"""
FAILED = "SELECT json_agg(error) FROM runs WHERE status <> 'answered' AND delivery = 'shown'"
_CALLS = "SELECT coalesce(sum(calls), 0) FROM public.pg_stat_statements"
STATEMENTS = f"{_CALLS} WHERE query NOT LIKE '%bench%'"
CONNECTED = "SELECT count(*) AS bench FROM pg_stat_activity WHERE application_name = 'council'"
TURNS = f"{_CALLS} WHERE query LIKE 'COMMIT%'"


class Figures(BaseModel):
    """What came out: seconds by the clock; milliseconds of CPU, statements and transactions a run.

    `cpu_ms` is that of all our processes, `server_ms` that of PostgreSQL. `connections` is how many
    there were at most; `memory` the most that a worker held, in MiB; `idle` the statements a second of
    a worker that has nothing to do. `refused` are questions that the database took longer to take than
    people are left waiting: they are asked again.
    """

    runs: int
    workers: int
    wall: float
    cpu_ms: float
    server_ms: float = 0.0
    statements: float = 0.0
    transactions: float = 0.0
    connections: int = 0
    idle: float = 0.0
    memory: float = 0.0
    refused: int = 0


class Order(BaseModel):
    """What a process that asks is given: how many questions, which workers there are, and the server."""

    runs: int
    workers: list[int]
    server: int


def measure(runs: int, workers: Sequence[int], call: float) -> list[Figures]:
    """Measure as many runs at once with each number of workers."""
    with serve(*SYNCING, *COUNTING, within=None) as server:
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public")
        return asyncio.run(_measure(server, runs, workers, call))


async def _measure(
    server: PostgresServer, runs: int, workers: Sequence[int], call: float
) -> list[Figures]:
    found: list[Figures] = []
    for number in workers:
        async with (
            serving("tests.model_server", "--latency", str(call)) as models,
            DiscordServer() as discord,
        ):
            with tempfile.TemporaryDirectory() as folder, server.schema() as address:
                environment = surroundings(Path(folder), runs, number, models, discord)
                if number:
                    environment |= {"DATABASE_URL": address}
                async with working(number, environment) as numbers:
                    assert server.process  # noqa: S101 - it runs
                    asked = Order(runs=runs, workers=numbers, server=server.process.pid)
                    found.append(await asking(asked, environment))
    return found


def surroundings(
    folder: Path, runs: int, workers: int, models: str, discord: DiscordServer
) -> dict[str, str]:
    """Return the environment of every process; each worker has its share of the runs."""
    toml = folder / "council.toml"
    each = ceil(runs / max(workers, 1))
    names = ("runs_per_channel", "runs_per_user", "waiting_per_channel", "waiting_per_user")
    limits = "".join(f"{name} = {runs}\n" for name in names)
    toml.write_text(f"[limits]\nruns = {each}\n{limits}", encoding="utf-8")
    return {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")},
        "OPENROUTER_BASE_URL": models,
        "OPENROUTER_API_KEY": "none",
        "COUNCIL_MEMBERS": MEMBERS,
        "COUNCIL_DATA_DIR": str(folder / "data"),
        "COUNCIL_CONFIG": str(toml),
        "DISCORD_TOKEN": discord.world.token,
        "DISCORD_API_BASE_URL": discord.url,
    }


@asynccontextmanager
async def working(workers: int, environment: dict[str, str]) -> AsyncGenerator[list[int]]:
    """Run workers; yield their numbers."""
    async with AsyncExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        processes = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bench.workers", "work"),
                env=environment,
                stdout=log,
                stderr=log,
            )
            for _ in range(workers)
        ]
        try:
            yield [process.pid for process in processes]
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode())
            raise
        finally:
            for process in processes:
                if process.returncode is None:
                    process.terminate()
            ended = await asyncio.gather(*(process.wait() for process in processes))
        if any(ended):
            log.seek(0)
            sys.exit(f"a worker failed:\n{log.read().decode()}")


async def asking(asked: Order, environment: dict[str, str]) -> Figures:
    """Ask in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.workers", "ask", asked.model_dump_json()),
        env=environment,
        stdout=subprocess.PIPE,
    )
    out, _ = await process.communicate()
    if process.returncode:
        sys.exit("questions of the benchmark failed")
    return Figures.model_validate_json(out)


def work() -> None:
    """Be a `council worker` whose venues are silent."""
    from bot.cli import main as council
    from bot.discord.bot import DiscordBot

    def silent(*_: object) -> SilentVenue:
        return SilentVenue()

    DiscordBot.venue_of = silent  # pyright: ignore[reportAttributeAccessIssue] - as much as a worker needs
    sys.argv = ["council", "worker"]
    council()


async def ask(asked: Order) -> Figures:
    """Ask all questions, and measure until every run is shown."""
    configuration = load()
    tune_interpreter()
    async with AsyncExitStack() as stack:
        library = await stack.enter_async_context(
            open_library(configuration.settings.council_data_dir, configuration.database)
        )
        council = await stack.enter_async_context(open_council(configuration, library))
        if address := configuration.database:
            dispatcher, _ = await stack.enter_async_context(
                open_shared_dispatcher(configuration, library, council.runs)
            )
            kind = psycopg.AsyncConnection[TupleRow]
            counting = await stack.enter_async_context(
                await kind.connect(address, autocommit=True, application_name="bench")
            )
            shared = await on_postgres(asked, dispatcher, counting)
        else:
            dispatcher = open_dispatcher(configuration, library, council)
            shared = await on_sqlite(asked, dispatcher)
        await dispatcher.tasks.drain(0)
    return shared


async def on_sqlite(asked: Order, dispatcher: Dispatcher) -> Figures:
    """Measure one process that does everything."""
    venues = [SilentVenue() for _ in range(asked.runs)]
    began, busy = time.perf_counter(), time.process_time()
    refused = await ask_all(dispatcher, venues)
    await asyncio.gather(*(venue.notified.wait() for venue in venues))
    await dispatcher.tasks.settled()
    return Figures(
        runs=asked.runs,
        workers=0,
        wall=time.perf_counter() - began,
        cpu_ms=(time.process_time() - busy) / asked.runs * 1000,
        memory=most_memory(),
        refused=refused,
    )


async def on_postgres(
    asked: Order, dispatcher: Dispatcher, counting: "psycopg.AsyncConnection[TupleRow]"
) -> Figures:
    """Measure workers that are processes of their own, and the one that asks."""

    async def look(sql: str) -> TupleRow:
        row = await (await counting.execute(sql.encode())).fetchone()
        assert row  # noqa: S101 - counts have one
        return row

    async with asyncio.timeout(STARTED_WITHIN):
        while (await look(READY))[0] < 2 * len(asked.workers):  # noqa: ASYNC110 - other processes are ready
            await asyncio.sleep(LOOK_SECONDS)
    await asyncio.sleep(2)
    await look("SELECT public.pg_stat_statements_reset()")
    await asyncio.sleep(IDLE_SECONDS)
    idle = float((await look(STATEMENTS))[0]) / IDLE_SECONDS / len(asked.workers)

    await look("SELECT public.pg_stat_statements_reset()")
    most, shown = 0, 0
    server, workers = server_cpu(asked.server), sum(map(cpu, asked.workers))
    began, busy = time.perf_counter(), time.process_time()
    venues = [SilentVenue() for _ in range(asked.runs)]
    asking = asyncio.create_task(ask_all(dispatcher, venues))
    while shown < asked.runs:
        await asyncio.sleep(LOOK_SECONDS)
        shown, failed = await look(SHOWN)
        if failed:
            said = await look(FAILED)
            sys.exit(f"{failed} runs of the benchmark failed: {said[0]}")
        if asking.done():
            asking.result()
        most = max(most, (await look(CONNECTED))[0])
    wall = time.perf_counter() - began
    spent = time.process_time() - busy + sum(map(cpu, asked.workers)) - workers
    return Figures(
        runs=asked.runs,
        workers=len(asked.workers),
        wall=wall,
        cpu_ms=spent / asked.runs * 1000,
        server_ms=(server_cpu(asked.server) - server) / asked.runs * 1000,
        statements=float((await look(STATEMENTS))[0]) / asked.runs,
        transactions=float((await look(TURNS))[0]) / asked.runs,
        connections=most,
        idle=idle,
        memory=max(map(memory, asked.workers)),
        refused=await asking,
    )


async def ask_all(dispatcher: Dispatcher, venues: Sequence[SilentVenue]) -> int:
    """Ask one question for each venue, as fast as they are taken; return how often one was refused."""
    room = asyncio.Semaphore(ASKED_AT_ONCE)

    async def one(number: int, venue: SilentVenue) -> int:
        question = Question(
            standing=AT_TERMINAL,
            text=text(number),
            source=place(number),
            entry_key=str(number),
            asker="Ada",
        )
        for refused in count():
            async with room:
                with suppress(Refusal):
                    if run := await dispatcher.accept(question):
                        dispatcher.tasks.begin(run, venue)
                    return refused
        raise AssertionError

    return sum(await asyncio.gather(*(one(number, venue) for number, venue in enumerate(venues))))


def place(number: int) -> Source:
    """Spread the runs over channels that workers can show; everybody asks once."""
    channel = str(1_000 + number % CHANNELS)
    return Source(platform="discord", workspace="1", channel=channel, user=str(5_000 + number))


def cpu(process: int) -> float:
    """Return the CPU seconds that a process has used."""
    # https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def server_cpu(process: int) -> float:
    """Return the CPU seconds of a server, with those of its processes, ended ones too."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / TICKS
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()
    return cpu(process) + ended + sum(map(cpu, map(int, children)))


def memory(process: int) -> float:
    """Return the most memory that a process has held, in MiB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    """Measure, or be one of the processes that are measured."""
    if sys.argv[1] == "work":
        work()
        return
    logs.configure(level=logging.ERROR, secrets=())
    if sys.argv[1] == "ask":
        print(asyncio.run(ask(Order.model_validate_json(sys.argv[2]))).model_dump_json())
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--call", type=float, default=0.5)
    given = cast("dict[str, object]", vars(parser.parse_args()))
    workers = cast("list[int]", given["workers"])
    for one in workers:
        for shared in measure(cast("int", given["runs"]), [one], cast("float", given["call"])):
            print(shared.model_dump_json(), flush=True)


if __name__ == "__main__":
    main()
