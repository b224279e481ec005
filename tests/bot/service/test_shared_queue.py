"""The shared queue as one process uses it."""

import asyncio
from typing import cast

from bot.service.admission.limits import Limits
from bot.service.runs.runs import Runs
from bot.service.shared_queue import Claims, SharedQueue
from storage.errors import DatabaseError
from storage.journal.journal import Journal
from storage.processes.coordination import Coordination
from storage.processes.jobs import Jobs


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

    async def defer(self, run_id: str, *, after: float = 0.0, attempts: int = 0) -> None:
        """Note it."""
        del after, attempts
        self.runs.append(run_id)


def shared_queue(coordination: SlowCoordination, jobs: Made) -> SharedQueue:
    """Return a process's part of the queue."""
    return SharedQueue(
        coordination=cast("Coordination", coordination),
        jobs=cast("Jobs", jobs),
        claims=cast("Claims", None),
        journal=cast("Journal", None),
        runs=cast("Runs", None),
        limits=Limits(),
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
