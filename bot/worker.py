"""Carries out runs that this process or another has accepted; `council worker` does nothing else."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn
from weakref import WeakValueDictionary

import structlog

from bot.app import Library
from bot.config.configuration import Configuration, Operations
from bot.service.dispatcher import Dispatcher
from bot.service.run_tasks import REDELIVERY_DAYS, VenueOf
from bot.service.runs.runs import Runs
from bot.service.shared_queue import Claims, SharedQueue
from council.task_group import beside
from storage.errors import StorageError
from storage.journal.rows import RunRow
from storage.processes.jobs import WorkRules

log = structlog.get_logger()

AGAIN_SECONDS = 60.0
"""How long a run waits that this process can't show: another may be configured for its platform."""
MOST_DRAIN = 0.5
"""Which part of the time after which others take over its runs a worker may take to end them."""
MAKE_SECONDS = 30.0
"""How long a start waits while another makes the jobs' tables."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Takes up runs; `venues` returns the place of a run by its platform."""

    dispatcher: Dispatcher
    queue: SharedQueue
    venues: dict[str, VenueOf] = field(default_factory=dict[str, VenueOf])
    _taking: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary[str, asyncio.Lock]
    )

    @asynccontextmanager
    async def working(self, rules: Operations) -> AsyncGenerator[Callable[[], Awaitable[NoReturn]]]:
        """Take up runs while entered; yields what waits until that fails, and raises why."""
        durability, jobs = rules.durability, self.queue.jobs
        working = WorkRules(
            name=self.queue.worker,
            runs=rules.limits.runs,
            stalled_seconds=durability.stalled_seconds,
            # A worker that ends sends no heartbeats: others would take its runs away meanwhile.
            drain_seconds=min(durability.drain_seconds, MOST_DRAIN * durability.stalled_seconds),
        )
        work = jobs.work(working, self.take_up, self.queue.sweep)
        async with beside(self.queue.claims.watch()), work as failed:
            yield failed

    async def take_up(self, run_id: str, attempts: int) -> None:
        """Claim a run, carry it out and show it; what can't be shown is tried again later."""
        claims, journal = self.queue.claims, self.queue.journal
        await claims.end(run_id)
        # One at a time: the journal and the claims know a run by its id alone.
        async with self._taking.setdefault(run_id, asyncio.Lock()):
            try:
                run = await journal.claim(run_id, self.queue.worker, partial(claims.lose, run_id))
            except StorageError as error:  # a sweep finds it
                log.warning("run_not_claimed", run=run_id, reason=error)
                return
            if run is None:  # forgotten
                return
            try:
                await self._carry_out(run, attempts)
            finally:
                journal.unclaim(run_id)

    async def _carry_out(self, run: RunRow, attempts: int) -> None:
        if run.delivery == "shown":
            await self.queue.leave(run.id)
            return
        venue_of = self.venues.get(run.origin.platform)
        venue = venue_of(run) if venue_of else None
        if venue is None:
            log.error("run_of_another_place", run=run.id)
            await self._leave_to_others(run, attempts)
            return
        try:
            delivery = await self.dispatcher.tasks.take_up(run, venue, self.queue.claims.add)
        except asyncio.CancelledError:
            if self.queue.claims.remove(run.id):  # the process ends: others continue it
                with suppress(StorageError):
                    await asyncio.shield(self.queue.jobs.defer(run.id, attempts=attempts))
            raise
        is_ours = self.queue.claims.remove(run.id)
        self.queue.delivered(run.id)
        is_fresh = self.queue.runs.recorder.age(run) <= REDELIVERY_DAYS * 24 * 3600
        if is_ours and delivery != "shown" and is_fresh:
            await self.queue.try_later(run.id, attempts)

    async def _leave_to_others(self, run: RunRow, attempts: int) -> None:
        """Leave a run to another worker, for as long as an interrupted run may continue."""
        if self.queue.runs.recorder.age(run) <= self.dispatcher.tasks.within:
            await self.queue.jobs.defer(run.id, after=AGAIN_SECONDS, attempts=attempts)
            return
        if not run.is_over:
            await self.queue.runs.endings.give_up(run)
        await self.queue.leave(run.id)


@asynccontextmanager
async def open_shared_queue(
    configuration: Configuration, library: Library, runs: Runs
) -> AsyncGenerator[SharedQueue]:
    """Open what processes on one database share. Raises `StorageError`."""
    coordination = library.coordination
    if coordination is None or configuration.database is None:
        raise ValueError("a folder has one process")
    from storage.postgres.connection import server
    from storage.postgres.jobs import open_jobs

    address = configuration.database
    async with AsyncExitStack() as stack:
        async with library.locks.acquire("jobs", wait=MAKE_SECONDS):  # nobody else makes their tables
            opened = await stack.enter_async_context(open_jobs(address, server(address)))
        claims = Claims(coordination, configuration.operations.durability.stalled_seconds)
        runs.wait_for_claim = claims.wait_for_claim
        yield SharedQueue(
            coordination=coordination,
            jobs=opened,
            claims=claims,
            journal=library.journal,
            runs=runs,
            limits=configuration.operations.limits,
            worker=f"{socket.gethostname()}-{os.getpid()}",
        )
