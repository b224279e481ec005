"""100,000 conversations of 20 kB: how fast is the index made, and how fast are past answers found?

python -m bench.past_answers 10000 [--postgres]    prints figures of fewer, in a folder or PostgreSQL
"""

import argparse
import asyncio
import itertools
import logging
import os
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

import orjson
import psycopg

from bot.app import open_stores
from bot.serve import tune_interpreter
from council.document.conversation import Source
from council.text.json_objects import JsonObject
from storage.index.index import Index
from storage.index.past_answers import PastAnswers
from storage.scope import Scope
from tests.postgres_server import serve

T = TypeVar("T")

CONVERSATIONS = 100_000
CHANNELS = 20
ASKED = 300
SYLLABLES = ["ka", "lo", "mi", "ter", "son", "ver", "tion", "ing", "pre", "con", "dis", "ra", "ne", "vu"]
SYNCING = ("fsync=on", "full_page_writes=on", "synchronous_commit=on", "autovacuum=on")
MODELS = ["openai/gpt-5", "anthropic/claude", "google/gemini", "x-ai/grok"]


@dataclass
class Measurement:
    """Seconds: of the rebuild by part of the documents, of each read, and the loop's lag meanwhile.

    `rebuild_cpu` is that of all threads together, which compares between busy machines.
    """

    rebuild: list[float] = field(default_factory=list[float])
    rebuild_cpu: float = 0.0
    lags: list[float] = field(default_factory=list[float])
    history: list[float] = field(default_factory=list[float])
    search: list[float] = field(default_factory=list[float])
    show: list[float] = field(default_factory=list[float])
    database_bytes: int = 0
    document_bytes: int = 0


async def measure(conversations: int = CONVERSATIONS, address: str | None = None) -> Measurement:
    """Write the documents, half of them first, index each half, then read what people would.

    With an address, all of it is in that PostgreSQL database.
    """
    tune_interpreter()
    measured = Measurement()
    rng = random.Random(7)  # noqa: S311 - a benchmark
    words = Words(rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        async with open_stores(path, address) as stores:
            store, index, past = stores.documents, Index(stores.database), PastAnswers(stores.database)
            written = path / ("written" if address else "conversations")
            written.mkdir(exist_ok=True)
            for _ in range(2):
                size = await asyncio.to_thread(write, written, words, conversations // 2)
                measured.document_bytes += size
                if address:
                    await asyncio.to_thread(load, written, address)
                async with lag_of_the_loop(measured.lags):
                    began, cpu = time.perf_counter(), time.process_time()
                    await index.repair(store)
                    measured.rebuild.append(time.perf_counter() - began)
                    measured.rebuild_cpu += time.process_time() - cpu
            if address is None:
                measured.database_bytes = (path / "council.db").stat().st_size
            # Two gigabytes of documents are still on their way to the disk, which no bot writes at once.
            await asyncio.to_thread(settle, address)
            for number in range(ASKED):
                scope = Scope.of(channel(number % 2))  # the busiest channel every other time
                page = await timed(measured.history, lambda s=scope: past.history(s))
                query = words.query(number)
                await timed(measured.search, lambda s=scope, q=query: past.search(s, q))
                chosen = rng.choice(page.rows)

                async def show(scope: Scope, conversation_id: str) -> object:
                    await past.find(scope, conversation_id[:8])
                    return await store.load(conversation_id)

                await timed(measured.show, lambda s=scope, c=chosen.id: show(s, c))
    return measured


def load(folder: Path, address: str) -> None:
    """Move the documents of a folder into a database."""
    with (
        psycopg.connect(address, autocommit=True) as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY documents (id, content, mtime_ns) FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.set_types(["text", "bytea", "int8"])
        for file in folder.iterdir():
            copy.write_row((file.stem, file.read_bytes(), file.stat().st_mtime_ns))
            file.unlink()


def settle(address: str | None) -> None:
    """Wait until what was written is on the disk, and counted, which PostgreSQL does by itself later."""
    if address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
    os.sync()


class Words:
    """Text whose words are as uneven as a language's: a few are everywhere, most are rare."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        vocabulary = {"".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(60_000)}
        self._vocabulary = sorted(vocabulary)
        rng.shuffle(self._vocabulary)
        weights = itertools.accumulate(1 / (place + 5) for place in range(len(self._vocabulary)))
        self._pool = rng.choices(self._vocabulary, cum_weights=[*weights], k=1_000_000)
        self._cjk = [chr(0x4E00 + rng.randrange(3_000)) for _ in range(5_000)]

    def text(self, length: int) -> str:
        """Draw that many characters, and in one text of ten a few Chinese ones."""
        count = length // 6
        start = self._rng.randrange(len(self._pool) - count)
        text = " ".join(self._pool[start : start + count])[:length]
        if self._rng.random() < 0.1:
            start = self._rng.randrange(4_980)
            text += "".join(self._cjk[start : start + 20])
        return text

    def query(self, number: int) -> str:
        """Draw what people might type: everywhere words, rarer ones, two, Chinese."""
        some = self._vocabulary
        return [
            some[number % 5],
            some[50 + number],
            some[5_000 + number],
            f"{some[number % 9]} {some[20 + number]}",
            "".join(self._cjk[number * 7 : number * 7 + 2]),
        ][number % 5]


def channel(number: int) -> Source:
    """Name a channel: one of them holds half of everything."""
    return Source(platform="discord", workspace="1", channel=str(1_000 + number), user="7")


def write(folder: Path, words: Words, conversations: int) -> int:
    """Write documents as a run leaves them, about 20 kB each; returns their bytes."""
    size = 0
    for number in range(conversations):
        conversation_id = str(uuid.uuid4())
        place = channel(0 if number % 2 else 1 + number % CHANNELS).dump()
        answers = {model: words.text(900) for model in MODELS}
        reviews = {model: words.text(700) for model in MODELS}
        document: JsonObject = {
            "id": conversation_id,
            "created_at": "2026-01-20T10:30:00.000Z",
            "title": words.text(50),
            "source": place,
            "messages": [
                {"role": "user", "content": words.text(200)},
                {
                    "role": "assistant",
                    "stage1": [{"model": model, "response": text} for model, text in answers.items()],
                    "stage2": [
                        {"model": model, "ranking": text, "parsed_ranking": []}
                        for model, text in reviews.items()
                    ],
                    "stage2_5": [
                        {
                            "model": model,
                            "original_response": text,
                            "peer_critiques": "\n\n".join(reviews[one] for one in MODELS[:2]),
                            "corrected_response": text,
                        }
                        for model, text in answers.items()
                    ],
                    "stage3": {"model": MODELS[0], "response": words.text(1_500)},
                    "started_at": "2026-01-20T10:30:00.000Z",
                    "finished_at": f"2026-01-{1 + number % 28:02}T10:31:00.000Z",
                },
            ],
        }
        content = orjson.dumps(document)
        (folder / f"{conversation_id}.json").write_bytes(content)
        size += len(content)
    return size


async def timed(times: list[float], work: Callable[[], Awaitable[T]]) -> T:
    """Note how long some work takes."""
    began = time.perf_counter()
    result = await work()
    times.append(time.perf_counter() - began)
    return result


@asynccontextmanager
async def lag_of_the_loop(lags: list[float]) -> AsyncGenerator[None]:
    """Note how late the event loop comes round, every hundredth of a second."""

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            lags.append(time.perf_counter() - began - 0.01)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


def on_postgres(conversations: int) -> Measurement:
    """Measure in a PostgreSQL that syncs its writes."""
    with serve(*SYNCING, within=None) as server, server.schema() as address:
        return asyncio.run(measure(conversations, address))


def main() -> None:
    """Print the figures of so many conversations, in milliseconds."""
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("conversations", type=int)
    parser.add_argument("--postgres", action="store_true")
    given = cast("dict[str, object]", vars(parser.parse_args()))
    count = cast("int", given["conversations"])
    measured = on_postgres(count) if given["postgres"] else asyncio.run(measure(count))
    print(f"rebuilt in {sum(measured.rebuild):.1f} s")
    for name in ("history", "search", "show"):
        times: list[float] = getattr(measured, name)
        late = statistics.quantiles(times, n=100)[98]
        print(f"{name}: {statistics.median(times) * 1000:.1f}, p99 {late * 1000:.1f}")


if __name__ == "__main__":
    main()
