"""The journal: a redelivered question finds its run, and a recorded step is never asked again."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from council.brief import Brief, Turn
from council.calls import Outcome, Reply
from council.conversation import Source
from council.errors import Failure
from council.profile import Member, Persona, Profile
from council.usage import Usage
from storage.database import Database, open_database
from storage.errors import DatabaseError
from storage.journal import Journal, NewRun, RunRow
from tests.storage.examples import Clock, trace_sql

BRIEF = Brief(
    question="Kännst du 北京?",
    profile=Profile(
        members=(
            Member(model="a/one", persona=Persona(name="The Architect", prompt="Think in structures.")),
            Member(model="a/one", persona=Persona(name="The Pragmatist", prompt="Think of Monday.")),
        ),
        chairman=Member(model="c/chair", fallbacks=("d/spare",)),
    ),
    seed=42,
    boundary="b0undary",
    history=(Turn(question="Before?", answer="Yes."),),
)
RUN = NewRun(
    id="run-1",
    entry_key="discord:interaction:1",
    conversation_id="conversation-1",
    origin=Source(platform="discord", workspace="W", channel="C", thread="T", message="M", user="U"),
    brief=BRIEF,
)
REPLY = Reply(text="Paris", usage=Usage(prompt_tokens=3, cost=0.5), latency_ms=70, truncated=True)
FAILURE = Failure(cause="rate_limited", detail="slow down", status=429, attempts=3)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A new database."""
    async with open_database(tmp_path / "council.db") as opened:
        yield opened


async def test_a_run_is_kept_as_it_began(database: Database) -> None:
    """The row holds origin and brief to the last field, whatever the configuration says later."""
    journal = Journal(database, Clock())
    begun = await journal.begin(RUN)
    assert begun.created
    assert begun.run == RunRow(
        id=RUN.id,
        entry_key=RUN.entry_key,
        conversation_id=RUN.conversation_id,
        origin=RUN.origin,
        brief=BRIEF,
        status="running",
        error=None,
        created_at="2026-01-20T10:30:01.000Z",
        finished_at=None,
    )
    assert await journal.get("run-1") == begun.run
    assert await journal.get("run-2") is None


async def test_a_redelivery_finds_the_run(database: Database) -> None:
    """The same entry key begins no second run, even when both come at once."""
    journal = Journal(database)
    first, second = await asyncio.gather(journal.begin(RUN), journal.begin(replace(RUN, id="run-2")))
    assert (first.created, second.created) == (True, False)
    assert first.run == second.run


async def test_a_used_id_is_no_redelivery(database: Database) -> None:
    """Another question under an id that is taken is an error, not that other run."""
    journal = Journal(database)
    await journal.begin(RUN)
    with pytest.raises(DatabaseError, match=r"UNIQUE constraint failed: runs\.id"):
        await journal.begin(replace(RUN, entry_key="discord:interaction:2"))


@pytest.mark.parametrize(
    "outcome", [REPLY, FAILURE, Failure(cause="empty", usage=Usage(prompt_tokens=9))]
)
async def test_a_recorded_outcome_comes_back_in_the_next_process(
    tmp_path: Path, outcome: Outcome
) -> None:
    """Replies and failures alike are recalled, to the last field."""
    async with open_database(tmp_path / "council.db") as database:
        journal = Journal(database)
        await journal.begin(RUN)
        steps = await journal.steps("run-1")
        assert steps.recall("stage1.1:a/one") is None
        await steps.record("stage1.1:a/one", outcome)
        assert steps.recall("stage1.1:a/one") == outcome
    async with open_database(tmp_path / "council.db") as database:
        steps = await Journal(database).steps("run-1")
        assert steps.recall("stage1.1:a/one") == outcome
        assert steps.recall("stage1.1:b/two") is None


async def test_the_first_record_of_a_step_stands(database: Database) -> None:
    """A late second outcome changes neither memory nor journal."""
    journal = Journal(database)
    await journal.begin(RUN)
    steps = await journal.steps("run-1")
    await asyncio.gather(steps.record("title", REPLY), steps.record("title", FAILURE))
    assert steps.recall("title") == REPLY
    assert (await journal.steps("run-1")).recall("title") == REPLY


async def test_a_step_needs_its_run(database: Database) -> None:
    """A step of a run that was never begun is refused."""
    steps = await Journal(database).steps("nobody's")
    with pytest.raises(DatabaseError, match="FOREIGN KEY constraint failed"):
        await steps.record("title", REPLY)


async def test_steps_of_many_runs_share_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty members answering at once cost one wait for the disk."""
    seen = trace_sql(monkeypatch)
    async with open_database(tmp_path / "council.db") as database:
        journal = Journal(database)
        await journal.begin(RUN)
        steps = await journal.steps("run-1")
        seen.clear()
        await asyncio.gather(*(steps.record(f"stage1.1:{number}", REPLY) for number in range(50)))
        assert seen.count("COMMIT") == 1


async def test_a_run_ends_once(database: Database) -> None:
    """The first end stands, with its time and its reason."""
    journal = Journal(database, Clock())
    await journal.begin(RUN)
    await journal.finish("run-1", "failed", "no member answered")
    await journal.finish("run-1", "answered")
    run = await journal.get("run-1")
    assert run is not None
    assert (run.status, run.error, run.finished_at) == (
        "failed",
        "no member answered",
        "2026-01-20T10:30:02.000Z",
    )
