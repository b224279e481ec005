"""Clients that others wrote ask a council: each question is paid once, whatever its client does meanwhile."""

import asyncio
import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.model_server import Exchange, Turn
from tests.model_servers.third_party import NODE, ROOT, installed
from tests.ports import free_port
from tests.test_program import Program, asked
from tests.test_programs_served import CHAIR, NO_LIMIT, served

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]

HERE = Path(__file__).parent / "clients"
PYTHON: Mapping[tuple[str, ...], tuple[str, ...]] = {
    (
        "openai-agents==0.24.0",
        "openai==3.57.0",
        "langchain-openai==1.7.4",
        "litellm==1.110.2",
        "dspy==3.4.1",
    ): ("openai", "openai_stream", "langchain", "langchain_stream", "dspy", "litellm", "agents"),
    ("llama-index-llms-openai-like==0.8.1", "openai==2.54.0"): ("llama_index",),
}
JAVASCRIPT = ("openai_js", "ai", "ai_stream", "langchain_js", "langchain_js_stream")
CLIENTS = (*(client for clients in PYTHON.values() for client in clients), *JAVASCRIPT)
NO_TIMEOUT = ("ai", "ai_stream")
"""Those that don't ask again after a time-out of their own."""
ASKS_ON = "Client langchain_js asks a refused question: shard?"
"""It asks six times more after a status of 502, for 63 to 126 s: longer than a failure is kept."""
IMPATIENT_SECONDS = 4
CALLS = 4
"""Of a run, one after the other: answers, reviews, corrections, the final answer."""
LATENCIES = {"quick": 6 / CALLS, "slow": 320 / CALLS, "impatient": 6 / CALLS, "one of ten": 6 / CALLS}
FAILURES = {"broken": 500, "refused": 404}
CONCLUDES = "concludes that it depends on the load"
_ENVIRONMENT = {"PATH": os.environ["PATH"], "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
LIMITS = """
[limits]
runs = 400
runs_per_user = 40
runs_per_channel = 400
waiting_per_user = 40
waiting_per_channel = 400
"""


def habit(exchange: Exchange) -> Turn:
    """Answer as long after the question as it says itself, or not at all."""
    for kind, status in FAILURES.items():
        if f"asks a {kind} question" in exchange.prompt:
            return Turn(status=status)
    [latency] = [s for kind, s in LATENCIES.items() if f"asks a {kind} question" in exchange.prompt]
    return Turn(latency=latency)


def questions(client: str, place: int) -> list[tuple[str, float, float | None]]:
    """Write what a client asks: each question, after how many seconds, and its time-out.

    All clients ask at the same times but for the ten, so that this machine has time for all of it.
    """
    asking: list[tuple[str, float, float | None]] = [
        (f"Client {client} asks a {kind} question: shard?", 20 * number, None)
        for number, kind in enumerate(("slow", "quick", *FAILURES))
    ]
    if client not in NO_TIMEOUT:
        asking.append((f"Client {client} asks a impatient question: shard?", 80, IMPATIENT_SECONDS))
    return asking + [
        (f"Client {client} asks a one of ten question: shard {number}?", 110 + 15 * place, None)
        for number in range(10)
    ]


async def test_each_question_is_paid_once(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Answered at once, after five minutes, or not at all; asked alone, side by side, or again."""
    if NODE is None:
        pytest.skip("node isn't installed")
    (tmp_path / "council.toml").write_text(LIMITS)
    programs = [
        ((str(await installed(*packages) / "python"), str(HERE / "ask.py")), clients)
        for packages, clients in PYTHON.items()
    ]
    programs.append(((NODE, str(await _javascript() / "ask.mjs")), JAVASCRIPT))
    async with asked(tmp_path) as (council, server):
        server.always("*", habit)
        number = free_port()
        async with served(council, number):
            base = f"http://127.0.0.1:{number}/v1"
            asking = [_ask(council, base, command, clients) for command, clients in programs]
            replies = [reply for each in await asyncio.gather(*asking) for reply in each]
    runs = _runs(tmp_path)
    for text, answer, seconds in sorted(replies):
        record_property(text, f"{runs[text]} run, {seconds} s, {answer[:120]}")
    asked_for = {text for each in CLIENTS for text, _, _ in questions(each, 0)}
    assert {text for text, _, _ in replies} == asked_for
    assert {text for text, count in runs.items() if count > 1} <= {ASKS_ON}
    assert set(runs) == asked_for
    for text, answer, _ in replies:
        is_failure = any(f"asks a {kind} question" in text for kind in FAILURES)
        assert (CONCLUDES in answer) is not is_failure, (text, answer)
    concluded = Counter(
        text
        for text in asked_for
        for each in server.history
        if text in each.prompt and each.model == CHAIR
    )
    assert concluded == Counter(text for text, answer, _ in replies if CONCLUDES in answer)
    record_property("runs paid", f"{runs.total()} for {len(asked_for)} questions")


async def _ask(
    council: Program, base: str, command: Sequence[str], clients: Sequence[str]
) -> list[tuple[str, str, float]]:
    """Let these clients ask, each with a token of its own; return question, answer and seconds."""
    tokens: dict[str, str] = {}
    for client in clients:
        made = await council("token", "new", "--name", client, "--scope", "terminal", *NO_LIMIT)
        tokens[client] = made.out.strip()
    asking = {each: questions(each, CLIENTS.index(each)) for each in clients}
    given = {"base": base, "tokens": tokens, "questions": asking}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=council.folder, env=_ENVIRONMENT, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate(json.dumps(given).encode())
    assert process.returncode == 0, err.decode()[-4000:]
    return json.loads(out.splitlines()[-1])


async def _javascript() -> Path:
    """Install the clients from npm into an environment of their own, unless they are there."""
    place = ROOT / ".tools" / "npm-clients"
    place.mkdir(parents=True, exist_ok=True)
    locked = (HERE / "package-lock.json").read_bytes()
    made = place / ".made"
    if not made.exists() or made.read_bytes() != locked:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, place)
        process = await asyncio.create_subprocess_exec("npm", "ci", "--silent", cwd=place)
        assert await process.wait() == 0
        made.write_bytes(locked)
    shutil.copy(HERE / "ask.mjs", place)
    return place


def _runs(folder: Path) -> Counter[str]:
    with closing(sqlite3.connect(folder / "data" / "council.db")) as database:
        return Counter(text for (text,) in database.execute("SELECT brief ->> 'question' FROM runs"))
