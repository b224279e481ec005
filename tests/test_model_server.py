"""The fake provider itself: what it plays, and that it runs as a process of its own."""

import asyncio
import json
import sys

import httpx
import pytest

from council.reviews.ballots import ballot_schema, read_ballot
from tests.model_server import Json, ModelServer, council_member, log_normal

LABELS = ("Response A", "Response B", "Response C")
ANSWERS = "\n".join(f"{label}: an answer" for label in LABELS)


def prompt(text: str, **fields: object) -> Json:
    """Write a request with one message."""
    return {"model": "a/b", "messages": [{"role": "user", "content": text}], **fields}


def test_a_text_ballot_ranks_the_labels_it_is_shown() -> None:
    """Where a prompt's end asks for one."""
    text = council_member(prompt(f"{ANSWERS}\nEnd with FINAL RANKING: and a list."))
    assert read_ballot(text, LABELS).ranking == LABELS


def test_a_json_ballot_follows_its_schema() -> None:
    """Where the request asks for JSON."""
    form = {"type": "json_schema", "json_schema": {"name": "b", "schema": ballot_schema(LABELS)}}
    text = council_member(prompt(ANSWERS, response_format=form))
    assert json.loads(text)["ranking"] == [*LABELS]
    assert read_ballot(text, LABELS).ranking == LABELS


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("Answer the question.", "a/b thinks that it depends on the load."),
        ("Give the whole corrected answer.", "a/b holds, having read its peers, that it depends"),
        ("Write the final answer.", "a/b concludes that it depends on the load"),
        ("Write the answer first, then the notes.", "a/b concludes that it depends on the load"),
        ("Give it a title.", "It depends on the load"),
    ],
)
def test_each_stage_gets_words_of_its_own(task: str, expected: str) -> None:
    """So that a test sees which is which; a ranking quoted further up asks for nothing."""
    quoted = f"FINAL RANKING:\n1. Response A\n{'x' * 400}"
    assert council_member(prompt(f"{ANSWERS}\n{quoted}\n{task}")).startswith(expected)


async def test_it_remembers_what_it_was_asked() -> None:
    """With arrival and completion."""
    async with ModelServer() as server, httpx.AsyncClient() as client:
        await client.post(f"{server.base_url}/chat/completions", json=prompt("Why?"))
    (exchange,) = server.history
    assert (exchange.model, exchange.prompt, exchange.abandoned) == ("a/b", "Why?", False)
    assert exchange.completed is not None
    assert exchange.completed >= exchange.arrived


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
        async with httpx.AsyncClient() as client:
            response = await client.post(f"{address}/chat/completions", json=prompt("Why?"))
    finally:
        process.terminate()
        await process.wait()
    assert response.json()["choices"][0]["message"]["content"].startswith("a/b thinks")
