"""Virtual time passes while nothing happens, and only then."""

import asyncio
import time

import aiosqlite

from tests.faults.virtual_time import VirtualLoop, run

LONG_WORK = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 30000)
SELECT sum(n) FROM numbers
"""


def test_an_hour_of_sleep_takes_no_time() -> None:
    """Sleeps end in order, each at its time."""
    ended: list[tuple[str, float]] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append((name, asyncio.get_running_loop().time()))

    async def main(loop: VirtualLoop) -> None:
        wall = loop.wall()
        await asyncio.gather(sleep("long", 3600), sleep("short", 60))
        assert loop.wall() == wall + 3600

    begun = time.monotonic()
    run(main)
    assert ended == [("short", 60), ("long", 3600)]
    assert time.monotonic() - begun < 10


def test_work_takes_no_time_in_it() -> None:
    """Neither computing nor another thread's work makes anything time out."""

    async def main(loop: VirtualLoop) -> float:
        async with asyncio.timeout(0.001):
            time.sleep(0.005)  # noqa: ASYNC251 - in place of computing
            await asyncio.to_thread(time.sleep, 0.005)
            async with aiosqlite.connect(":memory:") as database:
                await database.execute_fetchall(LONG_WORK)
        return loop.time()

    assert run(main) == 0.0
