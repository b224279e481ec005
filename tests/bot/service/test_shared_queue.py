"""The shared queue as one process uses it, and what a look at claimed runs does while the claims change."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from bot.service.limits import Durability, Limits
from bot.service.runs import Runs
from bot.service.shared_tasks import Claims, SharedTasks
from council.document.conversation import Source
from council.tasks import Stop
from storage.errors import DatabaseError
from storage.journal.rows import RunRow
from storage.postgres.jobs import Jobs
from storage.processes.coordination import Coordination, Watched
from tests.bot.sample_run import accepted


class SlowCoordination:
    """Admits what waits once it is told to."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.calls = 0
        self.open = asyncio.Event()
        self.failures: list[DatabaseError] = []

    async def admit(self, runs_per_channel: int, runs_per_user: int) -> list[str]:
        """Admit what waits at the call, after a while."""
        del runs_per_channel, runs_per_user
        self.calls += 1
        admitted, self.waiting = self.waiting, []
        await self.open.wait()
        if self.failures:
            raise self.failures.pop()
        return admitted


class Made:
    """Records which runs got a job."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    async def defer(self, run_id: str, *, after: float = 0.0) -> None:
        del after
        self.runs.append(run_id)


def shared_queue(coordination: SlowCoordination, jobs: Made) -> SharedTasks:
    journal = SimpleNamespace(work=None)
    return SharedTasks(
        cast("Runs", SimpleNamespace(costs=SimpleNamespace(journal=journal))),
        Limits(),
        Durability(),
        coordination=cast("Coordination", coordination),
        jobs=cast("Jobs", jobs),
        claims=cast("Claims", None),
        worker="here-1",
    )


async def test_a_burst_lets_in_by_few_calls() -> None:
    """Those that come while one is under way share the next, which sees what they saw."""
    coordination, jobs = SlowCoordination(), Made()
    queue = shared_queue(coordination, jobs)
    calls: list[asyncio.Task[None]] = []
    for number in range(50):
        coordination.waiting.append(str(number))
        calls.append(asyncio.create_task(queue.admit()))
        await asyncio.sleep(0)
    coordination.open.set()
    await asyncio.gather(*calls)
    assert coordination.calls == 2
    assert jobs.runs == [str(number) for number in range(50)]


async def test_who_shared_a_failed_call_tries_again() -> None:
    """Only a call that succeeded counts for others."""
    coordination, jobs = SlowCoordination(), Made()
    queue = shared_queue(coordination, jobs)
    first = asyncio.create_task(queue.admit())
    await asyncio.sleep(0)
    second = asyncio.create_task(queue.admit())
    await asyncio.sleep(0)
    coordination.waiting.append("run")
    coordination.failures.append(DatabaseError("away"))
    coordination.open.set()
    ended = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(one) for one in ended] == [DatabaseError, type(None)]
    assert jobs.runs == ["run"]


class SlowServer:
    """Answers each look when told to, with the epochs of the runs that were asked about."""

    def __init__(self, **epochs: int) -> None:
        self.epochs = epochs
        self.asked = asyncio.Event()
        self.answered = asyncio.Event()

    async def watch(self, runs: Collection[str]) -> dict[str, Watched]:
        """Return what is known of these runs, after a while."""
        found = {run: Watched(self.epochs[run], 0, "claimed") for run in runs if run in self.epochs}
        self.asked.set()
        await self.answered.wait()
        return found


def run_of(name: str, epoch: int = 1) -> RunRow:
    run = accepted(Source(platform="discord", workspace="1", channel="2", user="3"))
    return replace(run, id=name, epoch=epoch)


@pytest.fixture
def server() -> SlowServer:
    """Know of two runs, each claimed once."""
    return SlowServer(first=1, second=1)


async def looking(claims: Claims, server: SlowServer) -> asyncio.Task[None]:
    """Begin a look, up to where its answer is awaited."""
    look = asyncio.create_task(claims.look())
    await server.asked.wait()
    return look


async def test_a_run_claimed_during_a_look_continues(server: SlowServer) -> None:
    """The look hasn't asked about it, which doesn't mean that it is forgotten."""
    claims, stop = Claims(cast("Coordination", server), 90), Stop()
    claims.add(run_of("first"), Stop())
    look = await looking(claims, server)
    claims.add(run_of("second"), stop)
    server.answered.set()
    await look
    assert stop.everything.cause is None
    assert claims.remove("second")


async def test_a_run_claimed_once_more_during_a_look_continues(server: SlowServer) -> None:
    """What the look found is about the claim before."""
    claims = Claims(cast("Coordination", server), 90)
    claims.add(run_of("first"), Stop())
    look = await looking(claims, server)
    claims.remove("first")
    claims.add(run_of("first", epoch=2), Stop())
    server.answered.set()
    await look
    assert claims.remove("first")


async def test_a_forgotten_run_is_stopped(server: SlowServer) -> None:
    """The server was asked about it and has nothing."""
    claims, stop = Claims(cast("Coordination", server), 90), Stop()
    claims.add(run_of("forgotten"), stop)
    server.answered.set()
    await claims.look()
    assert stop.everything.cause == "stopped"


async def test_no_call_is_made_for_a_run_of_another(server: SlowServer) -> None:
    """Not even at once after this process was stopped for a while."""
    now = 0.0
    claims = Claims(cast("Coordination", server), 90, clock=lambda: now)
    calling = asyncio.create_task(_claim_and_call(claims))
    await asyncio.sleep(0)
    server.epochs["first"], now = 2, 100.0
    server.answered.set()
    with pytest.raises(asyncio.CancelledError):
        await calling


async def _claim_and_call(claims: Claims) -> None:
    claims.add(run_of("first"), Stop())
    await claims.wait_for_claim("first")  # it was claimed just now
    await asyncio.sleep(0)
    await claims.wait_for_claim("first")
    raise AssertionError("a call was made")
