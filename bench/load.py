"""Many runs at once in one process: how far from the ideal, and at what price.

Each configuration is a process of its own, so that its memory is its own:

    python -m bench.load dispatcher 1000 --call 10 --spread 10 --waiting 5000

`plain` is the same council on plain asyncio, without journal, documents and index; `journal` has
those; `dispatcher` is all that a chat platform's question passes through, shown to a silent venue.
"""

import argparse
import asyncio
import logging
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, cast

import orjson
from pydantic import BaseModel

from bot.app import Library, open_library
from bot.config import logs
from bot.errors import Refusal
from bot.serve import tune_interpreter
from bot.service.accept import Question, utc_now
from bot.service.access import AT_TERMINAL
from bot.service.channels import Channels, Operator
from bot.service.costs import Costs
from bot.service.delivery.chat import Card, File, Part
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import Mention, Sent
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Dispatcher
from bot.service.limits import Limits
from bot.service.run_tasks import RunTasks
from bot.service.runs import Runs
from bot.view.message import Message
from council.brief import Brief, Discussion, SentFile
from council.calls import Ask, Call, MemorySteps, Reply
from council.document.conversation import Source
from council.events import Event
from council.models.costs import Catalog
from council.profile import Profile
from council.run import deliberate
from council.usage import Usage

Engine = Literal["plain", "journal", "dispatcher"]
Carry = Callable[[int], Awaitable[None]]

STAGES = 4
CHANNELS = 50
TICK_SECONDS = 0.01
QUESTION = "Should we shard now or buy a bigger machine?"
PROFILE = Profile.model_validate(
    {
        "members": ["openai/gpt-5", "anthropic/claude", "google/gemini", "x-ai/grok"],
        "chairman": "chair/man",
    }
)
ANSWER = "It depends on the load, on the team, and on how long the machine will last. " * 16
BALLOT = "\n\nFINAL RANKING:\n1. Response A\n2. Response B\n3. Response C\n4. Response D"


class Load(BaseModel):
    """What is measured: `runs` at once, begun over `spread` seconds, `waiting` behind them."""

    engine: Engine
    runs: int
    call: float
    spread: float = 0.0
    waiting: int = 0


class Figures(BaseModel):
    """What came out: seconds, milliseconds of CPU, and the most memory held, in MiB.

    `over` is a run's time above the ideal; `handed_over` the time from the end of a run to the
    first call of the one that waited for its turn. `refused` are questions that the journal took
    longer to take than people are left waiting.
    """

    wall: float
    over_p50: float
    over_p99: float
    cpu_ms: float
    lag_p99: float
    memory: float
    handed_over_p99: float = 0.0
    refused: int = 0


class Models:
    """Plays every model: each call takes the same time, and begins a run when it is its first."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun: dict[str, float] = {}

    async def ask(self, call: Call) -> Reply:
        """Answer after the time that every call takes."""
        if call.step.startswith("stage1."):
            self.begun.setdefault(asked(call), time.perf_counter())
        await asyncio.sleep(self.seconds)
        return Reply(text=said(call.step), usage=Usage(), latency_ms=round(self.seconds * 1000))


def said(step: str, answer: str = ANSWER) -> str:
    """Return a reply in the form that its step asks for: in another, it would be asked for again."""
    if step.startswith("stage2_5."):
        return orjson.dumps({"replies": [], "answer": answer}).decode()
    return answer + BALLOT if step.startswith("stage2.") else answer


class SilentVenue(Venue):
    """Takes everything and shows nothing; tells when the asker would have been notified."""

    def __init__(self) -> None:
        self.notified = asyncio.Event()

    async def read_discussion(self, brief: Brief, room: int) -> Discussion:
        """Return a thread without messages."""
        del brief, room
        return Discussion(until="0")

    async def fetch(self, file: SentFile) -> bytes:
        """Return an empty file."""
        del file
        return b""

    async def post_card(self, newest: Callable[[], Card], sent: Sent) -> str:
        """Take the card."""
        newest()
        await sent("card")
        return "card"

    async def edit_card(
        self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
    ) -> bool:
        """Take the card's new state."""
        del moved
        newest()
        urgency()
        return True

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        """Open a thread."""
        del title
        return "thread", None

    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        """Find the card that the process before has posted."""
        del posted, found
        return True

    async def parts(self, message: Message) -> Sequence[Part]:
        """Leave a message whole."""
        return [Part(message.key)]

    async def post(self, part: Part, key: str, sent: Sent, urgency: Urgency = Urgency.THREAD) -> str:
        """Take a message."""
        del part, urgency
        await sent(key)
        return key

    async def attach(self, note: str, sent: Sent, *files: File) -> str:
        """Take files."""
        del files
        await sent(note)
        return note

    async def mention(self, mention: Mention, digest: Part | None = None, *, link: bool = True) -> None:
        """Tell the asker."""
        del digest, link
        self.notified.set()
        await mention.sent(mention.text)

    async def repost(self, card: Card, mention: Mention, placed: Sent) -> bool:
        """Take a new card."""
        del card
        await placed(mention.text)
        await mention.sent(mention.text)
        return True

    async def direct(self, card: Card, mention: Mention) -> None:
        """Take a direct message."""
        del card
        await mention.sent(mention.text)


def measure(load: Load) -> Figures:
    """Measure one configuration in a process of its own."""
    arguments = [load.engine, str(load.runs), "--call", str(load.call), "--spread", str(load.spread)]
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "bench.load", *arguments, "--waiting", str(load.waiting)],
        check=True,
        stdout=subprocess.PIPE,
    )
    return Figures.model_validate_json(done.stdout)


async def under(load: Load) -> Figures:
    """Put the load on, and measure until the first `load.runs` runs have ended."""
    models = Models(load.call)
    ended: list[float] = []
    over: list[float] = []
    every = load.runs + load.waiting
    refused: list[int] = []
    done = asyncio.Event()

    async def one(number: int) -> None:
        await asyncio.sleep(number * load.spread / every)
        began = time.perf_counter()
        try:
            await carry(number)
        except Refusal:
            refused.append(number)
        else:
            ended.append(time.perf_counter())
            over.append(ended[-1] - began - STAGES * load.call)
        if len(ended) == load.runs or len(ended) + len(refused) == every:
            done.set()

    async with opened(load, models) as carry:
        lags: list[float] = []
        watching = asyncio.create_task(watch(lags))
        began, busy = time.perf_counter(), time.process_time()
        tasks = [asyncio.create_task(one(number)) for number in range(every)]
        await done.wait()
        wall, cpu = time.perf_counter() - began, time.process_time() - busy
        later: list[float] = []
        if load.waiting:
            await asyncio.sleep(1)
            calls = sorted(models.begun.values())[load.runs :]
            later = [call - end for end, call in zip(sorted(ended), calls, strict=False)]
        watching.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return Figures(
        wall=wall,
        over_p50=statistics.median(over),
        over_p99=p99(over),
        cpu_ms=cpu / load.runs * 1000,
        lag_p99=p99(lags),
        memory=most_memory(),
        handed_over_p99=p99(later) if later else 0.0,
        refused=len(refused),
    )


@asynccontextmanager
async def opened(load: Load, models: Models) -> AsyncGenerator[Carry]:
    """Open what carries a run out, from the question to its end."""
    if load.engine == "plain":
        yield lambda number: alone(models, number)
        return
    with tempfile.TemporaryDirectory() as folder:
        async with open_library(Path(folder) / "data") as library:
            runs = runs_of(library, models.ask)
            if load.engine == "journal":
                yield lambda number: journalled(runs, number)
                return
            dispatcher = dispatcher_of(library, models.ask, load.runs)
            yield lambda number: shown(dispatcher, number)
            await dispatcher.tasks.drain(0)


def runs_of(library: Library, ask: Ask) -> Runs:
    """Build what carries runs out."""
    costs = Costs(
        catalog=Catalog(no_models),
        journal=library.journal,
        store=library.store,
        channels=Channels(Operator(profiles={"default": PROFILE}), library.overrides),
    )
    return Runs(ask, costs, library.index)


def dispatcher_of(library: Library, ask: Ask, at_once: int) -> Dispatcher:
    """Build a dispatcher for this many runs at once, for any asker and place."""
    limits = Limits.model_validate(dict.fromkeys(Limits.model_fields, at_once))
    return Dispatcher(RunTasks(runs_of(library, ask), limits))


async def alone(models: Models, number: int) -> None:
    """Carry a run out in memory."""
    boundary = f"{random.getrandbits(64):016x}"
    brief = Brief(question=text(number), profile=PROFILE, seed=number, boundary=boundary)
    await deliberate(brief, ask=models.ask, steps=MemorySteps(), emit=silent, now=utc_now)


async def journalled(runs: Runs, number: int) -> None:
    """Carry a run out with its journal, its document and its row in the index."""
    question = Question(
        standing=AT_TERMINAL, text=text(number), source=place(number), entry_key=str(number)
    )
    if await runs.carry_out((await runs.recorder.record(question, PROFILE)).run, silent) is None:
        sys.exit("a run of the benchmark failed")


async def shown(dispatcher: Dispatcher, number: int) -> None:
    """Carry a run out as on a platform: accepted, queued, shown, the asker notified."""
    venue = SilentVenue()
    run = await dispatcher.accept(
        Question(
            standing=AT_TERMINAL,
            text=text(number),
            source=place(number),
            entry_key=str(number),
            asker="Ada",
        )
    )
    if run is None:
        sys.exit("a question of the benchmark was taken for another")
    dispatcher.tasks.begin(run, venue)
    await venue.notified.wait()


async def watch(lags: list[float]) -> None:
    """Note how late the event loop wakes a sleeper, until cancelled."""
    while True:
        due = time.perf_counter() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        lags.append(time.perf_counter() - due)


def text(number: int) -> str:
    """Return a question of its own to each run."""
    return f"{QUESTION} [{number}]"


def asked(call: Call) -> str:
    """Return which run's question a call is about."""
    return call.messages[1]["content"].partition(f"{QUESTION} [")[2].partition("]")[0]


def place(number: int) -> Source:
    """Spread the runs over channels; everybody asks once."""
    return Source(platform="bench", workspace="T", channel=f"C{number % CHANNELS}", user=f"U{number}")


def silent(_: Event) -> None:
    """Hear nothing."""


async def no_models() -> list[dict[str, object]]:
    """List no models."""
    return []


def p99(values: list[float]) -> float:
    """Return the value that 99 of 100 stay under."""
    return statistics.quantiles(values, n=100)[98]


def most_memory() -> float:
    """Return the most memory this process has held, in MiB."""
    # getrusage would also count what the parent held before it became this program.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    """Print the figures of one configuration as JSON."""
    logs.configure(level=logging.ERROR, secrets=())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("plain", "journal", "dispatcher"))
    parser.add_argument("runs", type=int)
    parser.add_argument("--call", type=float, default=10.0)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--waiting", type=int, default=0)
    arguments = cast("dict[str, object]", vars(parser.parse_args()))
    tune_interpreter()  # as the bot does
    print(asyncio.run(under(Load.model_validate(arguments))).model_dump_json())


if __name__ == "__main__":
    main()
