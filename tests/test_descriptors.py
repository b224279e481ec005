"""`council run` while connections are short: a stranger takes them, or the limit is low."""

import asyncio
import resource
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from tests.model_server import ModelServer, council_member
from tests.ports import free_port
from tests.slack_server import SlackServer
from tests.slack_server.delivery import Delivery
from tests.test_program import MEMBERS, Process, Program

_, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
FEW, MANY = 1024, min(65_536, HARD)
MOST_LOGGED = 100_000


def limited(descriptors: int) -> str:
    """Return code that bounds a process's descriptors; what it may use at first is less."""
    return (
        "import resource; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({min(descriptors, 512)}, {descriptors}))"
    )


@dataclass(slots=True)
class Served:
    """A program that serves Slack over HTTP, and what it logs."""

    folder: Path
    process: Process
    slack: SlackServer
    port: int
    status_port: int
    logged: bytearray = field(default_factory=bytearray)

    async def get(self, page: str) -> tuple[int, float]:
        """Ask the status port for a page; return its status, and the seconds it took."""
        began = time.perf_counter()
        url = f"http://127.0.0.1:{self.status_port}/{page}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            await answer.read()
            return answer.status, time.perf_counter() - began

    async def read(self) -> None:
        assert self.process.stderr is not None
        while said := await self.process.stderr.read(1 << 16):
            self.logged += said

    async def ended(self, runs: int) -> Counter[str]:
        """Wait until that many runs have ended; return how they did."""
        with closing(sqlite3.connect(self.folder / "data" / "council.db")) as database:
            while True:
                found = Counter(status for (status,) in database.execute("SELECT status FROM runs"))
                if found.total() - found["running"] >= runs:
                    return found
                await asyncio.sleep(0.05)

    def open_connections(self) -> int:
        """Return how many files and connections the process has open."""
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])


@asynccontextmanager
async def served(folder: Path, descriptors: int, latency: float = 0.0) -> AsyncGenerator[Served]:
    """Start the program with so many descriptors, and wait until it is ready.

    Models take `latency` seconds to reply.
    """
    port, status_port = free_port(), free_port()
    async with SlackServer() as slack, ModelServer(council_member, latency=lambda: latency) as models:
        environment = {
            "OPENROUTER_BASE_URL": models.base_url,
            "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
            "COUNCIL_MEMBERS": MEMBERS,
            "COUNCIL_CHAIRMAN": "chair/man",
            "SLACK_BOT_TOKEN": slack.token,
            "SLACK_SIGNING_SECRET": slack.signing_secret,
            "SLACK_HTTP_PORT": str(port),
            "SLACK_API_URL": slack.api_url,
            "COUNCIL_STATUS_PORT": str(status_port),
        }
        slack.use_http(f"http://127.0.0.1:{port}/slack/events")
        process = await Program(folder, environment, limited(descriptors)).start("run")
        place = Served(folder, process, slack, port, status_port)
        reading = asyncio.create_task(place.read())
        try:
            async with asyncio.timeout(60):
                while not await is_ready(place):
                    await asyncio.sleep(0.01)
            yield place
        finally:
            process.terminate()
            await process.wait()
            await reading


async def is_ready(place: Served) -> bool:
    """Return whether the program takes questions."""
    try:
        return (await place.get("readyz"))[0] == 200
    except aiohttp.ClientError:
        return False


async def flood(port: int, connections: int, seconds: float) -> asyncio.subprocess.Process:
    """Start somebody who leaves requests unfinished; it ends by itself."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.flood", str(port), str(connections), str(seconds)),
        stdout=asyncio.subprocess.PIPE,
    )


async def ask(place: Served, questions: int, seconds: float) -> list[Delivery]:
    """Have people ask questions, spread over some seconds; return how each was delivered."""
    asked: list[Delivery] = []
    for number in range(questions):
        person = place.slack.add_user(f"U{number:04}")
        channel = place.slack.add_channel(f"room-{number}")
        asked.append(place.slack.slash(channel, person, "/council", f"Question {number}?"))
        await asyncio.sleep(seconds / questions)
    for delivery in asked:
        await delivery
    return asked


async def health(place: Served, until: asyncio.Event) -> list[float]:
    """Ask each half second whether the program lives; return how long each answer took."""
    took: list[float] = []
    while not until.is_set():
        status, seconds = await place.get("livez")
        assert status == 200
        took.append(seconds)
        await asyncio.sleep(0.5)
    return took


async def withstood(
    folder: Path, *, descriptors: int, connections: int, seconds: float, questions: int
) -> Sequence[str]:
    """Flood the program while people ask; return the figures, having checked them."""
    async with served(folder, descriptors) as place:
        stranger = await flood(place.port, connections, seconds)
        over = asyncio.Event()
        living = asyncio.create_task(health(place, over))
        await asyncio.sleep(seconds / 10)
        asked = await ask(place, questions, seconds * 0.7)
        most = place.open_connections()
        over.set()
        lived = await living
        made, _ = await stranger.communicate()
        before = len(place.logged)
    delays = sorted(delivery.latency or 99.0 for delivery in asked)
    figures = [
        f"{descriptors} descriptors, {connections} connections, {seconds:g} s",
        f"{int(made)} connections opened",
        f"{sum(delivery.acked for delivery in asked)} of {questions} acknowledged",
        f"after a median of {delays[len(delays) // 2]:.2f} s, and {delays[-1]:.2f} s at most",
        f"livez: {len(lived)} answers, slowest {max(lived):.2f} s",
        f"{before} bytes logged, {most} descriptors in use",
    ]
    faults = Counter(delivery.attempts[0].fault for delivery in asked)
    figures.append(f"faults: {dict(faults)}")
    told = "\n".join(figures)
    assert all(delivery.acked for delivery in asked), told
    assert before < MOST_LOGGED, told
    assert b"Traceback" not in place.logged, told
    return figures


@pytest.mark.soak
async def test_with_few_descriptors_questions_take_turns(tmp_path: Path) -> None:
    """Calls leave room for files; everything is answered."""
    async with served(tmp_path, descriptors=80, latency=0.3) as place:
        asked = await ask(place, 30, 1)
        assert all(delivery.acked for delivery in asked)
        assert await place.ended(30) == {"answered": 30}
    assert b"run_held" not in place.logged


@pytest.mark.soak
async def test_a_run_waits_while_no_connection_can_be_opened(tmp_path: Path) -> None:
    """It continues by itself once one can, and fails no call; the log says what it waits for."""
    async with served(tmp_path, FEW, latency=0.2) as place:
        asked = await ask(place, 5, 0.1)
        assert all(delivery.acked for delivery in asked)
        _, hard = resource.prlimit(place.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(place.process.pid, resource.RLIMIT_NOFILE, (3, hard))
        while b"run_held" not in place.logged:
            await asyncio.sleep(0.005)
        resource.prlimit(place.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert await place.ended(5) == {"answered": 5}
    assert b"call_failed" not in place.logged


@pytest.mark.soak
@pytest.mark.parametrize("descriptors", [FEW, MANY])
async def test_five_thousand_unfinished_requests_stop_nobody(tmp_path: Path, descriptors: int) -> None:
    """For a minute, each replaced as soon as it is closed, beside fifty questions."""
    figures = await withstood(
        tmp_path, descriptors=descriptors, connections=5000, seconds=60, questions=50
    )
    print("\n".join(figures))  # noqa: T201 - `pytest -s` shows them
