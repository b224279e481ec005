"""Documents, answers and databases that the storage tests share."""

import asyncio
import sqlite3
import tarfile
import threading
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

import orjson
import pytest

from council.document.conversation import AssistantMessage, RunUsage, peer_critiques
from council.document.results import (
    AggregateRanking,
    RankedAnswer,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    Stage3Result,
)
from council.text.json_objects import JsonObject
from council.usage import Usage
from storage.index.statistics import Figure, MemberStatistics

DATA = Path(__file__).parent / "data"
CONTRACT_EXAMPLE = (DATA / "contract_example.json").read_bytes()
CONTRACT_ID = "550e8400-e29b-41d4-a716-446655440000"
NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)


def unpack(backup: Path, folder: Path) -> Path:
    """Unpack a backup's files; return the folder. Python 3.11.2, Debian 12's, has no filter for it."""
    with tarfile.open(backup) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content
            (folder / member.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / member.name).write_bytes(content.read())
    return folder


def new_id() -> str:
    return str(uuid.uuid4())


def answer(text: str = "Paris.") -> AssistantMessage:
    """An answer that keeps every rule of the contract, with ranking, cost and time."""
    answers = [
        Stage1Result(model=model, response=f"{model} says Paris")
        for model in ("a/one", "b/two", "c/three")
    ]
    reviews = [
        Stage2Result(model=one.model, ranking=f"{one.model} reviews", parsed_ranking=["Response B"])
        for one in answers
    ]
    return AssistantMessage(
        role="assistant",
        stage1=answers,
        stage2=reviews,
        stage2_5=[
            Stage2_5Result(
                model=one.model,
                original_response=one.response,
                peer_critiques=peer_critiques(one.model, reviews),
                corrected_response=f"{one.response}, since 987",
            )
            for one in answers
        ],
        stage3=Stage3Result(model="d/chair", response=text),
        label_to_model={"Response A": "a/one", "Response B": "b/two", "Response C": "c/three"},
        aggregate_ranking=AggregateRanking(
            places=[RankedAnswer(label="Response B", model="b/two", mean_position=1.0, votes=3, wins=2)],
            agreement=1.0,
            agreement_word="strong",
            ballots=3,
        ),
        usage=RunUsage(
            run=Usage(prompt_tokens=100, completion_tokens=20, cost=0.25), stages={}, calls={}
        ),
        finished_at="2026-01-20T10:31:00.000Z",
    )


def legacy(conversation_id: str, *, unanswered: bool = False, **extra: object) -> JsonObject:
    """A document of a program without stage 2.5, with fields of its own at every level."""
    messages: list[JsonObject] = [
        {"role": "user", "content": "Why is the sky blue?", "mood": "curious"},
        {
            "role": "assistant",
            "stage1": [{"model": "a/one", "response": "Rayleigh", "temperature": 0.5}],
            "stage2": [{"model": "a/one", "ranking": "fine", "parsed_ranking": [], "votes": {"up": 3}}],
            "stage3": {"model": "a/one", "response": "Rayleigh scattering", "words": 2},
            "metadata": {"label_to_model": {"Response A": "a/one"}, "empty": None},
        },
    ]
    if unanswered:
        messages.append({"role": "user", "content": "And at dusk?"})
    return {
        "id": conversation_id,
        "created_at": "2025-11-22T10:00:00.123456",
        "title": "Sky",
        "pinned": True,
        "messages": messages,
        **extra,
    }


def put(folder: Path, document: JsonObject) -> bytes:
    content = orjson.dumps(document)
    (folder / f"{document['id']}.json").write_bytes(content)
    return content


class Clock:
    """A clock that moves a second with each reading."""

    def __init__(self) -> None:
        self.moment = NOW

    def __call__(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


def trace_sql(patch: pytest.MonkeyPatch) -> list[str]:
    """Note every statement that SQLite runs from here on."""
    seen: list[str] = []

    class Traced(sqlite3.Connection):
        def __init__(self, *args: object, **settings: object) -> None:
            super().__init__(*args, **settings)  # pyright: ignore[reportArgumentType] - handed on as they come
            self.set_trace_callback(seen.append)

    patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Traced))
    return seen


class HeldCommits:
    """A disk that takes its time: within its context, every commit waits until the context ends.

    Databases that are opened after it was made have it.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._free = threading.Event()
        self._free.set()
        self._reached = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        held = self

        class Slow(sqlite3.Connection):
            def __init__(self, *args: object, **settings: object) -> None:
                super().__init__(*args, **settings)  # pyright: ignore[reportArgumentType] - handed on as they come
                self.set_trace_callback(held._on_statement)

        patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Slow))

    def __enter__(self) -> Self:
        self._free.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._free.set()

    async def reached(self) -> None:
        """Wait until a commit waits."""
        await self._reached.wait()

    def _on_statement(self, sql: str) -> None:
        if sql in ("COMMIT", "ROLLBACK") and not self._free.is_set():
            self._loop.call_soon_threadsafe(self._reached.set)
            self._free.wait()


def did(member: str, runs: int, *figures: tuple[float | None, int]) -> MemberStatistics:
    """Write how a member did: rank, wins, changes, failures, cost and seconds, each with its runs."""
    names = "mean_rank", "win_rate", "change_rate", "failure_rate", "cost", "seconds"
    each: dict[str, Any] = {name: Figure(*figure) for name, figure in zip(names, figures, strict=True)}
    return MemberStatistics(member=member, runs=runs, **each)
