"""The shared queue as one process uses it."""

import asyncio
from typing import cast

from bot.service.admission.limits import Limits
from bot.service.claimed_runs import Claims
from bot.service.runs import Runs
from bot.service.shared_queue import SharedQueue
from storage.errors import DatabaseError
from storage.journal.journal import Journal
from storage.processes.jobs import Jobs
from storage.processes.sharing import Sharing


class SlowSharing:
    """Admits what waits once it is told to."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.calls = 0
        self.open = asyncio.Event()
        self.failures: list[DatabaseError] = []

    async def let_in(self, runs_per_channel: int, runs_per_user: int) -> list[str]:
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


def shared_queue(sharing: SlowSharing, jobs: Made) -> SharedQueue:
    """Return a process's part of the queue."""
    return SharedQueue(
        sharing=cast("Sharing", sharing),
        jobs=cast("Jobs", jobs),
        claims=cast("Claims", None),
        journal=cast("Journal", None),
        runs=cast("Runs", None),
        limits=Limits(),
        worker="here-1",
    )


async def test_a_burst_lets_in_by_few_calls() -> None:
    """Those that come while one is under way share the next, which sees what they saw."""
    sharing, jobs = SlowSharing(), Made()
    queue = shared_queue(sharing, jobs)
    calls: list[asyncio.Task[None]] = []
    for number in range(50):
        sharing.waiting.append(str(number))
        calls.append(asyncio.create_task(queue.let_in()))
        await asyncio.sleep(0)
    sharing.open.set()
    await asyncio.gather(*calls)
    assert sharing.calls == 2
    assert jobs.runs == [str(number) for number in range(50)]


async def test_who_shared_a_failed_call_tries_again() -> None:
    """Only a call that succeeded counts for others."""
    sharing, jobs = SlowSharing(), Made()
    queue = shared_queue(sharing, jobs)
    first = asyncio.create_task(queue.let_in())
    await asyncio.sleep(0)
    second = asyncio.create_task(queue.let_in())
    await asyncio.sleep(0)
    sharing.waiting.append("run")
    sharing.failures.append(DatabaseError("away"))
    sharing.open.set()
    ended = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(one) for one in ended] == [DatabaseError, type(None)]
    assert jobs.runs == ["run"]
