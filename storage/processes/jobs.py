"""Runs as jobs that several processes share out among themselves; only a shared database has them."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NoReturn, Protocol

TakeUp = Callable[[str, int], Awaitable[None]]
"""Carries out a run to where it needs no worker, given its id and how often that was tried in vain."""
Sweep = Callable[[], Awaitable[None]]
"""Defers what no worker has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRules:
    """How a process works on runs: `runs` at once; times in seconds.

    After `stalled_seconds` without a heartbeat, its runs are given to others. When it ends, its runs
    have `drain_seconds`.
    """

    name: str
    runs: int
    stalled_seconds: float
    drain_seconds: float


class Jobs(Protocol):
    """The jobs of all processes. Methods may raise `DatabaseError`."""

    async def defer(self, run_id: str, *, after: float = 0.0, attempts: int = 0) -> None:
        """Queue a run for a worker, now or `after` this many seconds.

        A run has one job that waits, at most: the sooner one.
        """
        ...

    async def live(self, *, now: bool = False) -> set[str]:
        """Return the runs that have a job, waiting or under way; with `now`, not those for later."""
        ...

    def work(
        self, working: WorkRules, take_up: TakeUp, sweep: Sweep
    ) -> AbstractAsyncContextManager[Callable[[], Awaitable[NoReturn]]]:
        """Take up runs while entered, and sweep every few seconds.

        Yields what waits until that has failed, and raises why. On exit, runs have their time to end;
        then their tasks are cancelled.
        """
        ...
