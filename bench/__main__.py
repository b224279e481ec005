"""Print the speed table's rows, each measured in this one run: `make bench`.

`python -m bench load` prints one group of rows alone.
"""

import asyncio
import logging
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from bench import peer
from bench.bombs import slowest, worst
from bench.burst import Waits, acknowledgements, beside
from bench.load import PROFILE, QUESTION, Engine, Load, measure, no_models, p99, said, silent
from bench.past_answers import CONVERSATIONS, Measurement, on_postgres
from bench.past_answers import measure as measure_past_answers
from bench.resume import resumption
from bench.streams import AT_ONCE, behind, by_bare_httpx, many, reading, served, serving
from bench.texts import comparisons, lag_over_long_reviews
from bench.workers import measure as measure_workers
from bot.app import open_library
from bot.config import logs
from bot.service.accept import Question
from bot.service.access import AT_TERMINAL
from bot.service.costs import Costs
from bot.service.runs import Runs
from council.calls import Ask, Call, Reply
from council.document.conversation import Source
from council.models.client import ModelClient
from council.models.costs import Catalog
from council.usage import Usage
from tests.bot.render.bombs import BOMBS, LENGTH
from tests.bot.render.long_answer import answer

MODELS = [member.model for member in PROFILE.members]
CHAIRMAN = PROFILE.chairman.model
CALL_SECONDS = 0.05
RUNS = 15
BESIDE = 3
QUESTIONS, QUESTION_LENGTH = 12, 5_900  # as many as one person may have, as long as Discord takes
LOG_NORMAL_RUNS = 40
STREAM_ROUNDS = 5
SHORT_EVENTS = 60
STREAMED_RUNS = (10, 25, 50)
WORKED_RUNS = (200, 1_000)
ENGINES: Mapping[Engine, str] = {
    "plain": "plain asyncio, nothing kept",
    "journal": "journal, document and index",
    "dispatcher": "the whole dispatcher, shown to a silent venue",
}


def main() -> None:
    """Print the rows of the groups named on the command line, or of all."""
    groups: dict[str, Callable[[], None]] = {
        "latency": lambda: asyncio.run(same_latency()),
        "streams": streams,
        "short-streams": short_streams,
        "log-normal": lambda: asyncio.run(log_normal()),
        "start": start,
        "burst": burst,
        "load": load,
        "resume": resume,
        "past-answers": past_answers,
        "past-answers-postgres": past_answers_postgres,
        "workers": workers,
        "texts": texts,
        "bombs": bombs,
    }
    logs.configure(level=logging.CRITICAL, secrets=())
    logging.disable(logging.CRITICAL)  # a bot that is killed at the end breaks off what it is sent
    chosen = sys.argv[1:] or [*groups]
    if unknown := {*chosen} - {*groups}:
        sys.exit(f"There is no group {', '.join(sorted(unknown))}. There is: {', '.join(groups)}.")
    print(f"{'what':<66} {'measured':>22}   at most")
    for name in chosen:
        groups[name]()


def past_answers() -> None:
    """Time the index over many past answers, and what people read there."""
    measured = asyncio.run(measure_past_answers())
    row(f"{of_size(measured)}: index rebuilt", f"{sum(measured.rebuild):.0f} s", "60 s")
    row("  its CPU, on all cores together", f"{measured.rebuild_cpu:.0f} s")
    row("  its second half against its first", f"{measured.rebuild[1] / measured.rebuild[0]:.2f} x")
    row("  the loop's lag meanwhile, p99", f"{p99(measured.lags) * 1000:.0f} ms")
    row("  size of the database", f"{measured.database_bytes / 1e6:.0f} MB")
    row("  a page of history, p99", f"{p99(measured.history) * 1000:.1f} ms", "2 ms")
    row("  a search with its contexts, p99", f"{p99(measured.search) * 1000:.1f} ms", "25 ms")
    row("  showing one, p99", f"{p99(measured.show) * 1000:.1f} ms", "5 ms")


def past_answers_postgres() -> None:
    """Time the same in PostgreSQL."""
    measured = on_postgres(CONVERSATIONS)
    row(f"{of_size(measured)}, in PostgreSQL: index rebuilt", f"{sum(measured.rebuild):.0f} s")
    row("  a page of history, p99", f"{p99(measured.history) * 1000:.1f} ms")
    row("  a search with its contexts, p99", f"{p99(measured.search) * 1000:.1f} ms")
    row("  showing one, p99", f"{p99(measured.show) * 1000:.1f} ms")


def of_size(measured: Measurement) -> str:
    """Return how many conversations there are, and how long."""
    return f"{CONVERSATIONS:,} conversations of {measured.document_bytes / CONVERSATIONS / 1000:.0f} kB"


async def same_latency() -> None:
    """Time one run at a time, all calls of 50 ms, over HTTP; what it is measured against in turn."""
    ours: list[tuple[float, float]] = []
    usual: list[tuple[float, float]] = []
    floor: list[tuple[float, float]] = []
    async with (
        serving("tests.model_server", "--latency", str(CALL_SECONDS)) as base_url,
        ModelClient(lambda call: call.member, base_url=base_url) as client,
        httpx.AsyncClient(timeout=60) as bare,
        council(client.ask, client.catalog) as runs,
    ):
        await one_run(runs)
        await peer.run(base_url, MODELS, CHAIRMAN, QUESTION)
        for _ in range(RUNS):
            ours.append(await timed(lambda: one_run(runs)))
            usual.append(await timed(lambda: peer.run(base_url, MODELS, CHAIRMAN, QUESTION)))
            floor.append(await timed(lambda: peer.least(bare, base_url, MODELS, CHAIRMAN)))
    wall, cpu = medians(ours)
    usual_wall, usual_cpu = medians(usual)
    least_wall, least_cpu = medians(floor)
    row("run of 4 members, 4 stages, 50 ms a call: wall", f"{wall * 1000:.0f} ms")
    row("  CPU", f"{cpu * 1000:.1f} ms")
    row("  its calls by bare httpx: wall", f"{least_wall * 1000:.0f} ms")
    row("    CPU", f"{least_cpu * 1000:.1f} ms")
    row("  the usual way, 3 stages of 50 ms: wall", f"{usual_wall * 1000:.0f} ms")
    row("    CPU", f"{usual_cpu * 1000:.1f} ms")
    row("  our wall against bare httpx", f"{wall / least_wall:.2f} x", "1.15 x")
    row("  our CPU against bare httpx", f"{cpu / least_cpu:.2f} x", "1.6 x")
    row("  our CPU against the usual way", f"{cpu / usual_cpu:.3f} x", "0.15 x")


def streams() -> None:
    """Measure replies of 1,000 events: what reading them costs, and how soon their text arrives."""
    row(f"{AT_ONCE} replies of 1,000 events over 2 s: CPU an event", "")
    spent = {
        name: statistics.median(values)
        for name, values in asyncio.run(reading(1_000, 2.0, STREAM_ROUNDS)).items()
    }
    row(
        "  bare httpx and bare aiohttp, which leave it at that",
        "{httpx} and {aiohttp} µs".format(
            **{name: f"{seconds * 1e6:.0f}" for name, seconds in spent.items()}
        ),
    )
    row("  ours, which puts the reply together", f"{spent['ours'] * 1e6:.0f} µs")
    row("    against httpx", f"{spent['ours'] / spent['httpx']:.2f} x", "0.5 x")
    row("    against aiohttp", f"{spent['ours'] / spent['aiohttp']:.2f} x", "1 x")
    late = asyncio.run(behind(1_000, 2.0))
    row("  text arrives after it was sent: p50", f"{statistics.median(late) * 1000:.0f} ms")
    row("    p99", f"{p99(late) * 1000:.0f} ms", "150 ms")
    for count in STREAMED_RUNS:
        figures = asyncio.run(many(count, 1_000, 10.0))
        row(f"{count} runs at once over HTTP, 13 replies of 1,000 events over 10 s each", "")
        row("  over the ideal 40 s, p99", f"{figures.over * 1000:.0f} ms", "500 ms")
        row("  the event loop's lag, p99", f"{figures.lag * 1000:.0f} ms", "50 ms")
        row("  CPU a run", f"{figures.cpu * 1000:.0f} ms")


def short_streams() -> None:
    """Measure runs whose replies stream in 60 events beside the same calls by bare httpx."""
    for seconds, limit in ((2.0, "1.15 x"), (0.05, "1.3 x")):
        ours, bare = asyncio.run(streamed_latency(seconds))
        row(
            f"run of 4 members, 4 stages of {seconds:g} s, 60 events a reply: wall",
            f"{ours * 1000:.0f} ms",
        )
        row("  its calls by bare httpx: wall", f"{bare * 1000:.0f} ms")
        row("  our wall against bare httpx", f"{ours / bare:.2f} x", limit)
    for count in STREAMED_RUNS:
        both = [
            (
                asyncio.run(many(count, SHORT_EVENTS, 2.0)).typical,
                asyncio.run(by_bare_httpx(count, SHORT_EVENTS, 2.0)),
            )
            for _ in range(STREAM_ROUNDS)
        ]
        late, bare = medians(both)
        row(f"{count} runs at once over HTTP, 13 replies of 60 events over 2 s each", "")
        row("  over the ideal 8 s, median", f"{late * 1000:.0f} ms")
        row("    by bare httpx", f"{bare * 1000:.0f} ms")
        row("    ours against bare httpx", f"{late / bare:.2f} x", "1.5 x")


async def streamed_latency(seconds: float) -> tuple[float, float]:
    """Return the walls of a run whose replies take so long, and of its calls by bare httpx, in turn."""
    ours: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    async with (
        served(SHORT_EVENTS, seconds) as base_url,
        ModelClient(lambda call: call.member, base_url=base_url) as client,
        httpx.AsyncClient(timeout=60) as by_httpx,
        council(client.ask, client.catalog) as runs,
    ):
        await one_run(runs)
        await peer.least(by_httpx, base_url, MODELS, CHAIRMAN)
        for _ in range(STREAM_ROUNDS):
            ours.append(await timed(lambda: one_run(runs)))
            bare.append(await timed(lambda: peer.least(by_httpx, base_url, MODELS, CHAIRMAN)))
    return medians(ours)[0], medians(bare)[0]


async def log_normal() -> None:
    """Compare runs with real-looking latencies with what their data dependencies allow."""
    walls: list[float] = []
    paths: list[float] = []
    barriers: list[float] = []

    async def measured(runs: Runs, seed: int) -> None:
        began = time.perf_counter()
        await one_run(runs, seed)
        walls.append(time.perf_counter() - began)
        path, barrier = schedules(seed)
        paths.append(path)
        barriers.append(barrier)

    async with council(delayed, Catalog(no_models)) as runs:
        await asyncio.gather(*(measured(runs, seed) for seed in range(LOG_NORMAL_RUNS)))
    row(
        f"{LOG_NORMAL_RUNS} runs, log-normal latencies (median 2 s, sigma 0.6): wall",
        f"{sum(walls):.0f} s",
    )
    row("  against the critical path of the data", f"{sum(walls) / sum(paths):.3f} x", "1.03 x")
    row("  against a schedule with barriers", f"{sum(walls) / sum(barriers):.3f} x", "1 x")


def start() -> None:
    """Time a fresh process from its start to a council that could be asked."""
    ready = (
        "from bot.__main__ import command_line\n"
        "command_line()\n"
        "import asyncio, bot.terminal.ask\n"
        "from bot.app import open_council, open_library\n"
        "from bot.config.configuration import load\n"
        "async def main():\n"
        "    configuration = load()\n"
        "    async with open_library(configuration.settings.council_data_dir) as library:\n"
        "        async with open_council(configuration, library): pass\n"
        "asyncio.run(main())"
    )
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "COUNCIL_MEMBERS": "a/one,b/two",
            "OPENROUTER_API_KEY": "none",
            "COUNCIL_DATA_DIR": folder,
        }
        for _ in range(5):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", ready], check=True, env=environment)  # noqa: S603 - our own words
            times.append(time.perf_counter() - began)
    row("start of a process to ready for `council ask`", f"{statistics.median(times):.2f} s", "1.0 s")


def burst() -> None:
    """Time the acknowledgements of a burst of commands beside running councils."""
    discord, slack = asyncio.run(acknowledgements())
    row("200 commands in a burst beside 200 running councils: acknowledged", "")
    row("  on Discord, p99", f"{p99(discord) * 1000:.0f} ms", "500 ms")
    row("  on Slack, p99", f"{p99(slack) * 1000:.0f} ms", "500 ms")


def load() -> None:
    """Measure many runs at once, each configuration in a process of its own."""
    for runs in (200, 1_000):
        row(f"{runs:,} runs at once, calls of 0.5 s, begun together", "")
        for engine in ("plain", "journal"):
            short = measure(Load(engine=engine, runs=runs, call=0.5))
            row(f"  {ENGINES[engine]}: wall, ideal 2.0 s", f"{short.wall:.1f} s")
            row("    CPU a run", f"{short.cpu_ms:.1f} ms")
    for runs in (200, 1_000):
        row(f"{runs:,} runs at once, calls of 10 s, begun over 10 s", "")
        for engine in ("plain", "journal", "dispatcher"):
            load_rows(Load(engine=engine, runs=runs, call=10, spread=10))
    row("1,000 runs at once and 5,000 waiting, calls of 10 s, asked over 10 s", "")
    load_rows(Load(engine="dispatcher", runs=1_000, call=10, spread=10, waiting=5_000))


def workers() -> None:
    """Measure many runs at once that workers share, beside one process with a data folder."""
    for runs in WORKED_RUNS:
        row(f"{runs:,} runs at once, calls of 0.5 s over HTTP, asked as fast as they are taken", "")
        alone, *shared = measure_workers(runs, (0, 1, 2, 4), 0.5)
        row("  one process, a data folder: wall", f"{alone.wall:.1f} s")
        row("    CPU a run", f"{alone.cpu_ms:.0f} ms")
        for one in shared:
            row(f"  {one.workers} workers on PostgreSQL: wall", f"{one.wall:.1f} s")
            row("    against one process", f"{one.wall / alone.wall:.2f} x")
            row("    CPU a run, its server's too", f"{one.cpu_ms:.0f} + {one.server_ms:.0f} ms")
            row("    CPU against one process", f"{one.cpu_ms / alone.cpu_ms:.2f} x")
            row("    statements a run", f"{one.statements:.0f}")
            row("    connections at most", f"{one.connections}")
            row("    questions refused at first, as it was busy", f"{one.refused}")


def load_rows(what: Load) -> None:
    """Print one configuration's rows; the limits are those of what people use, the dispatcher."""
    figures, limited = measure(what), what.engine == "dispatcher" and not what.waiting
    row(f"  {ENGINES[what.engine]}: over the ideal 40 s, p50", f"{figures.over_p50 * 1000:.0f} ms")
    row("    p99", f"{figures.over_p99 * 1000:.0f} ms", "500 ms" if limited else "")
    row("    CPU a run", f"{figures.cpu_ms:.1f} ms")
    row("    the event loop's lag, p99", f"{figures.lag_p99 * 1000:.0f} ms", "50 ms" if limited else "")
    row("    memory", f"{figures.memory:.0f} MiB", "300 MiB" if limited else "")
    if what.waiting:
        row(
            "    from a run's end to the next one's first call, p99",
            f"{figures.handed_over_p99 * 1000:.0f} ms",
        )
        row("    questions refused for a slow journal", f"{figures.refused}", "0")


def resume() -> None:
    """Time how soon interrupted runs continue."""
    measured = resumption(1_000)
    row("1,000 interrupted runs, 8 steps of each in the journal", "")
    row("  from opening the journal to the last one's first new call", f"{measured.wall:.2f} s", "2 s")
    row("    CPU", f"{measured.cpu:.2f} s")


def texts() -> None:
    """Time what is done with long texts."""
    for kind, seconds in comparisons().items():
        row(f"a correction compared, {kind}: CPU", f"{seconds * 1000:.0f} ms", "50 ms")
    row(
        "a run over reviews of 30 kB, by their points: the loop's longest lag",
        f"{asyncio.run(lag_over_long_reviews()) * 1000:.0f} ms",
    )


def bombs() -> None:
    """Time the rendering of texts that are made to be slow."""
    row(f"the slowest of {len(BOMBS)} crafted texts of {LENGTH:,} characters: CPU", "")
    for surface, (seconds, kind, ordinary) in slowest().items():
        row(f"  {surface} ({kind})", f"{seconds * 1000:.0f} ms", "50 ms")
        row("    an ordinary answer of that length", f"{ordinary * 1000:.0f} ms")
    asked: dict[str, list[str]] = {
        "without such questions": [],
        "ordinary ones of that length": [answer(QUESTION_LENGTH)[:QUESTION_LENGTH]] * QUESTIONS,
        "crafted ones, answered in kind": worst(QUESTIONS, QUESTION_LENGTH),
    }
    row(f"other people's commands beside {QUESTIONS} questions of one person on each platform", "")
    waits: dict[str, list[Waits]] = {kind: [] for kind in asked}
    for _ in range(BESIDE):  # in turn, so that a busy machine slows all of them
        for kind, texts in asked.items():
            waits[kind].append(asyncio.run(beside(texts)))
    found = {
        kind: [
            statistics.median(map(p99, each))
            for each in zip(*((one.discord, one.slack, one.cpu) for one in some), strict=True)
        ]
        for kind, some in waits.items()
    }
    *_, crafted = found.values()
    for kind, (discord, slack, cpu) in found.items():
        row(f"  {kind}: acknowledged on Discord, p99", f"{discord * 1000:.0f} ms", "500 ms")
        row("    on Slack, p99", f"{slack * 1000:.0f} ms", "500 ms")
        row("    the bot's CPU until then, p99", f"{cpu * 1000:.0f} ms")
    for against, figures in [*found.items()][:2]:
        ratios = (f"{mine / other:.1f}" for mine, other in zip(crafted, figures, strict=True))
        row(f"  crafted against {against}: Discord, Slack, CPU", f"{', '.join(ratios)} x")


@asynccontextmanager
async def council(ask: Ask, catalog: Catalog) -> AsyncGenerator[Runs]:
    """Open a council over a data folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_library(Path(folder) / "data") as library:
            costs = Costs(catalog=catalog, journal=library.journal, store=library.store)
            yield Runs(ask, costs, library.index)


async def one_run(runs: Runs, seed: int = 0) -> None:
    """Ask once, into a silent sink. The seed travels in the asker's name, for `delayed`."""
    question = Question(
        standing=AT_TERMINAL,
        text=f"{QUESTION} [{seed}]",
        source=Source(platform="bench"),
        entry_key=str(uuid.uuid4()),
    )
    message = await runs.carry_out((await runs.recorder.record(question, PROFILE)).run, silent)
    if message is None or message.failures:
        sys.exit("a run of the benchmark failed")


async def timed(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Return the wall and CPU seconds of some work."""
    began, busy = time.perf_counter(), time.process_time()
    await work()
    return time.perf_counter() - began, time.process_time() - busy


def medians(samples: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the medians of wall and CPU."""
    walls, cpus = zip(*samples, strict=True)
    return statistics.median(walls), statistics.median(cpus)


def latency(seed: int, step: str) -> float:
    """Draw the seconds that a step of a run takes: log-normal, the same whenever it is asked."""
    return 2.0 * random.Random(f"{seed} {step}").lognormvariate(0.0, 0.6)  # noqa: S311 - a benchmark


async def delayed(call: Call) -> Reply:
    """Answer after the step's latency."""
    text = call.messages[1]["content"]
    seed = int(text.partition(f"{QUESTION} [")[2].partition("]")[0])
    seconds = latency(seed, call.step)
    await asyncio.sleep(seconds)
    text = said(call.step, f"{call.step} says yes.")
    return Reply(text=text, usage=Usage(), latency_ms=round(seconds * 1000))


def schedules(seed: int) -> tuple[float, float]:
    """Return the seconds a run takes by its data dependencies, and with a barrier after each stage."""
    answers = max(latency(seed, f"stage1.1:{name}") for name in MODELS)
    reviews = {name: latency(seed, f"stage2.1:{name}") for name in MODELS}
    corrections = {name: latency(seed, f"stage2_5.1:{name}") for name in MODELS}
    corrected = max(
        corrections[name] + max(reviews[peer] for peer in MODELS if peer != name) for name in MODELS
    )
    synthesis = latency(seed, f"stage3.1:{CHAIRMAN}:chairman")
    path = answers + max(corrected, *reviews.values()) + synthesis
    barriers = answers + max(reviews.values()) + max(corrections.values()) + synthesis
    return path, barriers


def row(what: str, measured: str, limit: str = "") -> None:
    """Print one row."""
    print(f"{what:<66} {measured:>22}   {limit}")


if __name__ == "__main__":
    main()
