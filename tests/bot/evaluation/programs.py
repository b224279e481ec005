"""`council eval` as a process, against a provider whose models are right as often as a test says."""

import re
import zlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson

from tests.model_server import Exchange, Json, ModelServer, Turn, corrected
from tests.test_program import Ended, Program, asked

QUALITY: Mapping[str, float] = {
    "openai/gpt-5": 0.8,
    "anthropic/claude": 0.5,
    "google/gemini": 0.3,
    "chair/man": 0.9,
}
PRICES: list[Json] = [
    {"id": model, "context_length": 8_000, "pricing": {"prompt": "0.000001", "completion": "0.000002"}}
    for model in (*QUALITY, "judge/one")
]
ARMS = ("best", "self_consistency", "stage1", "second_look", "full_without_2_5", "full")


def stage_of(exchange: Exchange) -> str:
    """Return what a call is for, by what its prompt asks."""
    prompt = exchange.prompt
    if exchange.model == "judge/one":
        return "judge"
    if "Your peers reviewed your answer" in prompt or "No peer review of your answer" in prompt:
        return "correction"
    if "You are the chairman of the council" in prompt:
        return "synthesis"
    return "review" if "FINAL RANKING" in prompt else "answer"


def known(exchange: Exchange) -> Turn:
    """Answer a numbered question as well as the model can, always alike for the same prompt."""
    if stage_of(exchange) == "review":
        return Turn()
    [door, *_] = re.findall(r"code of door (\d+)", exchange.prompt)
    # Boundaries are drawn for each evaluation; without them, equal prompts are equal.
    prompt = re.sub(r"\b[0-9a-f]{16}\b", "", exchange.prompt)
    drawn = zlib.crc32(f"{exchange.model} {prompt}".encode()) % 1000 / 1000
    right = drawn < QUALITY[exchange.model]
    return Turn(corrected(exchange.prompt, f"I tried each key.\nANSWER: {door if right else 999}"))


def write_questions(folder: Path, count: int, *more: Json) -> None:
    """Write `q.jsonl` with questions whose answer is their number, and these."""
    rows = [
        {"id": f"q{number}", "input": f"What is the code of door {number}?", "target": str(number)}
        for number in range(1, count + 1)
    ]
    (folder / "q.jsonl").write_bytes(b"\n".join(orjson.dumps(row) for row in (*rows, *more)))


@asynccontextmanager
async def evaluated(
    folder: Path, database: str | None = None, *, max_tokens: int | None = 100
) -> AsyncGenerator[tuple[Program, ModelServer]]:
    """Yield the program with a provider of models of known quality and known prices."""
    async with asked(folder) as (council, server):
        server.models = PRICES
        server.always("*", known)
        environment = council.environment | {"COUNCIL_CONFIG": "council.toml"}
        if database:
            environment["DATABASE_URL"] = database
        limit = f"max_tokens = {max_tokens}\n" if max_tokens else ""
        (folder / "council.toml").write_text(f"[profiles.default]\n{limit}", encoding="utf-8")
        yield replace(council, environment=environment), server


def result(ended: Ended) -> Json:
    """Return what `--json` printed, and nothing beside it."""
    return cast("Json", orjson.loads(ended.out))


def arms_of(found: Json) -> dict[str, Json]:
    return {str(arm["name"]): arm for arm in cast("Sequence[Json]", found["arms"])}
