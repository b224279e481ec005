"""The fake provider as others start it: a process of its own, with latencies as long-tailed as real ones."""

import asyncio
import sys

import httpx

from tests.model_server import log_normal


def test_latencies_are_the_same_for_the_same_seed() -> None:
    """Long-tailed about their median."""
    draw, again = log_normal(2.0, 0.6, 7), log_normal(2.0, 0.6, 7)
    latencies = [draw() for _ in range(999)]
    assert latencies == [again() for _ in range(999)]
    assert 1.8 < sorted(latencies)[499] < 2.2


async def test_it_serves_as_a_process_of_its_own() -> None:
    """It prints its address first."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.model_server", "--port", "0"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        address = (await process.stdout.readline()).decode().strip()
        asked = {"model": "a/b", "messages": [{"role": "user", "content": "Why?"}]}
        async with httpx.AsyncClient() as client:
            response = await client.post(f"{address}/chat/completions", json=asked)
    finally:
        process.terminate()
        await process.wait()
    assert response.json()["choices"][0]["message"]["content"].startswith("a/b thinks")
