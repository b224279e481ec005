"""Replies as providers send them: an event for each token, spread over the time that a model takes.

`python -m bench.streams 1000 2` serves replies of 1,000 events over 2 seconds on 127.0.0.1 and
prints the base URL. Each event is a chunk and a packet of its own, and holds the time it was sent.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import aiohttp
import httpx
import orjson

from bench import peer
from bench.load import PROFILE, STAGES, dispatcher_of, p99, shown, watch
from bot.app import open_library
from council.calls import Call
from council.models.client import ModelClient
from tests.model_server import council_member

AT_ONCE = 4
"""Streams that are read side by side, as in a stage of a run."""
TICK = 0.002
"""Seconds between two packets of a stream, at least."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
Read = Callable[[str], Awaitable[object]]


class Runs(NamedTuple):
    """What many runs at once came to: seconds over the ideal, of lag, and of CPU for each run."""

    over: float
    typical: float
    """The median of the seconds over the ideal; `over` is what one in a hundred exceeds."""
    lag: float
    cpu: float


async def serve(events: int, seconds: float) -> None:
    """Serve until the process is ended; print the base URL."""
    streams: set[Stream] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0] or 0)
                sent = reply(orjson.loads(await reader.readexactly(length) or b"{}"), events)
                writer.write(HEAD)
                stream = Stream(sent, writer, time.perf_counter())
                streams.add(stream)
                await stream.over.wait()
                streams.remove(stream)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    while server.is_serving():
        await asyncio.sleep(TICK)
        for stream in streams:
            stream.send(seconds)


class Stream:
    """A reply on its way."""

    def __init__(self, events: list[bytes], writer: asyncio.StreamWriter, began: float) -> None:
        self.over = asyncio.Event()
        self._events = events
        self._writer = writer
        self._began = began
        self._sent = 0

    def send(self, seconds: float) -> None:
        """Send what is due by now of a reply that takes so many seconds."""
        now = time.perf_counter()
        due = min(len(self._events), round((now - self._began) / seconds * len(self._events)))
        for event in self._events[self._sent : due]:
            stamped = event.replace(b"@", b"%.6f" % now, 1)
            self._writer.write(b"%x\r\n%s\r\n" % (len(stamped), stamped))
        self._sent = due
        if due == len(self._events) and not self.over.is_set():
            self._writer.write(b"0\r\n\r\n")
            self.over.set()


def reply(request: dict[str, object], events: int) -> list[bytes]:
    """Return a reply's events: blanks up to its length, then what a member says on lines of its own."""
    padding = " " if "response_format" in request else "@ "
    pieces = [*([padding] * (events - 2)), f"\n{council_member(request)}", ""]
    choices = [
        {"index": 0, "delta": {"content": piece}, "finish_reason": None if piece else "stop"}
        for piece in pieces
    ]
    frame = {
        "id": "gen-1764000000-abcdefgh",
        "object": "chat.completion.chunk",
        "provider": "Bench",
        "model": request.get("model"),
    }
    return [b"data: %s\n\n" % orjson.dumps({**frame, "choices": [choice]}) for choice in choices]


def served(events: int, seconds: float) -> AbstractAsyncContextManager[str]:
    """Serve in a process of its own; yield the base URL."""
    return serving("bench.streams", str(events), str(seconds))


@asynccontextmanager
async def serving(module: str, *arguments: str) -> AsyncGenerator[str]:
    """Run a server's module in a process of its own; yield the base URL that it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments), stdout=asyncio.subprocess.PIPE
    )
    try:
        if process.stdout:
            yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


async def reading(events: int, seconds: float, rounds: int) -> dict[str, list[float]]:
    """Return seconds of CPU for each event: by bare httpx, by bare aiohttp, by us; in turn."""
    readers: dict[str, Read] = {"httpx": by_httpx, "aiohttp": by_aiohttp, "ours": by_us}
    spent: dict[str, list[float]] = {name: [] for name in readers}
    async with served(events, seconds) as url:
        for _ in range(rounds):
            for name, read in readers.items():
                busy = time.process_time()
                await read(url)
                spent[name].append((time.process_time() - busy) / events / AT_ONCE)
    return spent


async def by_httpx(url: str) -> None:
    """Read the lines of a stage's replies, and leave it at that."""
    async with httpx.AsyncClient(timeout=60) as client:

        async def one() -> None:
            async with client.stream("POST", f"{url}/chat/completions", json={}) as response:
                async for _ in response.aiter_lines():
                    pass

        await asyncio.gather(*(one() for _ in range(AT_ONCE)))


async def by_aiohttp(url: str) -> None:
    """Read the lines of a stage's replies, and leave it at that."""
    async with aiohttp.ClientSession() as client:

        async def one() -> None:
            async with client.post(f"{url}/chat/completions", json={}) as response:
                async for _ in response.content:
                    pass

        await asyncio.gather(*(one() for _ in range(AT_ONCE)))


async def by_us(url: str) -> None:
    """Ask as a stage does: the text of a reply is put together and passed on piece by piece."""
    await _ask(url, lambda _: None)


async def behind(events: int, seconds: float) -> list[float]:
    """Return how many seconds each piece of a stage's replies arrived after it was sent."""
    late: list[float] = []

    def hear(piece: str) -> None:
        with suppress(ValueError):
            late.append(time.perf_counter() - float(piece))

    async with served(events, seconds) as url:
        await _ask(url, hear)
    return late


async def _ask(url: str, hear: Callable[[str], None]) -> None:
    async with ModelClient(lambda call: call.member, base_url=url) as client:
        call = Call(
            step="stage1",
            member=PROFILE.chairman,
            prompt=lambda: ({"role": "user", "content": "Shard?"},),
            deadline=120.0,
            on_text=hear,
        )
        await asyncio.gather(*(client.ask(call) for _ in range(AT_ONCE)))


def ideal(events: int, seconds: float) -> float:
    """Return how long four stages take if nothing is late: a reply ends half an event early."""
    return STAGES * seconds * (1 - 0.5 / events)


async def by_bare_httpx(runs: int, events: int, seconds: float) -> float:
    """Make the calls of as many runs, begun likewise, by one client that keeps nothing.

    Return the median of the seconds over the ideal.
    """
    over: list[float] = []
    models = [member.model for member in PROFILE.members]
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with (
        served(events, seconds) as url,
        httpx.AsyncClient(timeout=60, limits=limits) as client,
    ):

        async def one(number: int) -> None:
            await asyncio.sleep(number * seconds / runs)
            began = time.perf_counter()
            await peer.least(client, url, models, PROFILE.chairman.model)
            over.append(time.perf_counter() - began - ideal(events, seconds))

        await asyncio.gather(*(one(number) for number in range(runs)))
    return statistics.median(over)


async def many(runs: int, events: int, seconds: float) -> Runs:
    """Carry out runs at once, begun over the time of one reply, as on a platform, over HTTP."""
    over: list[float] = []
    lags: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with (
            served(events, seconds) as url,
            open_library(Path(folder) / "data") as library,
            ModelClient(lambda call: call.member, base_url=url, calls_at_once=10_000) as client,
        ):
            dispatcher = dispatcher_of(library, client.ask, runs)

            async def one(number: int) -> None:
                await asyncio.sleep(number * seconds / runs)
                began = time.perf_counter()
                await shown(dispatcher, number)
                over.append(time.perf_counter() - began - ideal(events, seconds))

            watching = asyncio.create_task(watch(lags))
            busy = time.process_time()
            await asyncio.gather(*(one(number) for number in range(runs)))
            cpu = time.process_time() - busy
            watching.cancel()
            await dispatcher.tasks.drain(0)
    return Runs(over=p99(over), typical=statistics.median(over), lag=p99(lags), cpu=cpu / runs)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
