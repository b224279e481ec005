"""Forgetting on a large PostgreSQL database, beside `council run`: people are acknowledged meanwhile."""

import asyncio
import mmap
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from bot.view.wording import commands
from tests.model_server import ModelServer, council_member
from tests.ports import free_port
from tests.postgres_server import PostgresServer, serve
from tests.slack_server import SlackServer
from tests.slack_server.delivery import Delivery
from tests.storage.test_forgetting import HERE, Place, opened
from tests.stores import Home
from tests.test_program import MEMBERS, Program

WORDS = "xylophonequartz"
RUNS_A_GIGABYTE = 18_000
"""Each with 13 calls of 2 kB, a document of 20 kB, and 3 kB to search."""
ACKNOWLEDGED_SECONDS = 3.0
"""What the platforms allow."""
ASK_SECONDS = 1.0
"""Between two questions."""
FILL = (
    # Copies are as large as what they are copies of: nothing is packed.
    "ALTER TABLE documents ALTER content SET STORAGE EXTERNAL",
    "ALTER TABLE steps ALTER outcome SET STORAGE EXTERNAL",
    """
    INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at, finished_at, delivery)
    SELECT 'run-' || n, 'run-' || n, 'talk-' || n, origin, brief, status, created_at, finished_at, 'shown'
    FROM (SELECT * FROM runs WHERE strpos(brief, '{words}') = 0 LIMIT 1) AS one, generate_series(1, {runs}) AS n
    """,
    """
    INSERT INTO steps (run_id, key, outcome, recorded_at)
    SELECT 'run-' || n, 'step-' || call, repeat('word ', 400), '2026-01-01T00:00:00Z'
    FROM generate_series(1, {runs}) AS n, generate_series(1, 13) AS call
    """,
    """
    INSERT INTO documents
    SELECT 'talk-' || n, convert_to(repeat('word ', 4000), 'UTF8'), 0 FROM generate_series(1, {runs}) AS n
    """,
    """
    INSERT INTO search (rowid, words)
    SELECT 1000000 + n, array_to_tsvector(
        ARRAY(SELECT DISTINCT 'w' || (n * 7 + m * m) % 20000 FROM generate_series(1, 400) AS m)
    )
    FROM generate_series(1, {runs}) AS n
    """,
)


def gigabytes(address: str) -> float:
    with psycopg.connect(address, autocommit=True) as operator:
        row = operator.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row
    return row[0] / 1e9


def fill(address: str, size: float) -> None:
    """Add rows until the database has about so many gigabytes."""
    with psycopg.connect(address, autocommit=True) as operator:
        for statement in FILL:
            operator.execute(statement.format(words=WORDS, runs=round(size * RUNS_A_GIGABYTE)).encode())
        operator.execute("ANALYZE")
        operator.execute("CHECKPOINT")


def files_with(server: PostgresServer, text: str) -> list[str]:
    """Name the tables' files whose bytes hold a text."""
    with psycopg.connect(server.address(), autocommit=True) as operator:
        operator.execute("CHECKPOINT")
    found: list[str] = []
    for path in (server.folder / "data" / "base").rglob("*"):
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as seen:
                if seen.find(text.encode()) >= 0:
                    found.append(path.name)
    return found


@asynccontextmanager
async def asked_in_slack(folder: Path, address: str) -> AsyncGenerator[SlackServer]:
    """Run `council run` on the database until left; Slack reaches it over HTTP."""
    port, log = free_port(), bytearray()
    async with SlackServer() as slack, ModelServer(council_member) as models:
        environment = {
            "DATABASE_URL": address,
            "OPENROUTER_BASE_URL": models.base_url,
            "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
            "COUNCIL_MEMBERS": MEMBERS,
            "COUNCIL_CHAIRMAN": "chair/man",
            "SLACK_BOT_TOKEN": slack.token,
            "SLACK_SIGNING_SECRET": slack.signing_secret,
            "SLACK_HTTP_PORT": str(port),
            "SLACK_API_URL": slack.api_url,
        }
        slack.use_http(f"http://127.0.0.1:{port}/slack/events")
        process = await Program(folder, environment).start("run")
        assert process.stderr is not None
        while b"ready" not in log:
            log += await process.stderr.readline()
        reading = asyncio.create_task(process.stderr.read())
        try:
            yield slack
        finally:
            process.terminate()
            log += await reading
            await process.wait()
            assert b"Traceback" not in log, log.decode()


async def keep_asking(slack: SlackServer, until: asyncio.Event) -> list[Delivery]:
    """Have people ask until then; return how each question was delivered."""
    asked: list[Delivery] = []
    while not until.is_set():
        number = len(asked)
        channel, person = slack.add_channel(f"room-{number}"), slack.add_user(f"U{number:05}")
        asked.append(slack.slash(channel, person, "/council", f"Question {number}?"))
        await asyncio.sleep(ASK_SECONDS)
    for delivery in asked:
        await delivery
    return asked


async def withstood(folder: Path, size: float) -> list[str]:
    """Forget somebody while others ask; return the figures, having checked them."""
    with serve("fsync=on", "max_wal_size=1GB", within=None) as server:
        address = server.address()
        async with opened(Home(folder=folder, address=address)) as place:
            await place.ask("What else?")
            await place.ask(WORDS, source=HERE.model_copy(update={"user": "eve"}))
            await asyncio.to_thread(fill, address, size)
            before = gigabytes(address)
            assert await asyncio.to_thread(files_with, server, WORDS)
            async with asked_in_slack(folder, address) as slack:
                over = asyncio.Event()
                asking = asyncio.create_task(keep_asking(slack, over))
                await asyncio.sleep(2)
                seconds = await forgotten(place)
                await asyncio.sleep(2)
                over.set()
                asked = await asking
                refused = sum(commands.NOT_SAVED in one.text for one in slack.world.ephemerals)
            left = await asyncio.to_thread(files_with, server, WORDS)
    delays = sorted(delivery.latency or 99.0 for delivery in asked)
    figures = [
        f"{before:.1f} GB, rewritten in {seconds:.1f} s",
        f"{sum(one.acked for one in asked)} of {len(asked)} questions acknowledged, {refused} refused",
        f"after a median of {delays[len(delays) // 2]:.2f} s, and {delays[-1]:.2f} s at most",
    ]
    told = "\n".join([*figures, str(Counter(one.attempts[0].fault for one in asked))])
    assert left == [], told
    assert all(one.acked for one in asked), told
    assert delays[-1] < ACKNOWLEDGED_SECONDS, told
    return figures


async def forgotten(place: Place) -> float:
    """Forget one person, and rewrite every table; return the seconds that this took."""
    began = time.perf_counter()
    await place.forgetting.forget(await place.forgetting.select.user("discord", "eve"), by="eve")
    await place.forgetting.scrub(large=True)
    assert await place.count("work WHERE kind = 'scrub'") == 0
    return time.perf_counter() - began


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_people_are_acknowledged_while_five_gigabytes_are_rewritten(tmp_path: Path) -> None:
    """And no word of what was forgotten is left in the tables' files. `GIGABYTES` is another size."""
    figures = await withstood(tmp_path, float(os.environ.get("GIGABYTES", "5")))
    print("\n".join(figures))  # noqa: T201 - `pytest -s` shows them
