"""Runs as Procrastinate's jobs: any worker takes the next one, and others get those of a dead worker.

A run has at most one job that waits. The job of a worker that has sent no heartbeat for a while is
replaced by a new one. What keeps two workers from carrying out one run is its claim, not this.

Source: https://procrastinate.readthedocs.io/en/stable/howto/production/retry_stalled_jobs.html
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeVar

import psycopg
import structlog
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.connector import Notify
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Status
from psycopg_pool import PoolTimeout
from tenacity import AsyncRetrying, retry_if_exception, wait_random_exponential

from storage.errors import DatabaseError
from storage.postgres.connection import NO_ANSWER, explain_postgres, settings

log = structlog.stdlib.get_logger()
logging.getLogger("procrastinate").setLevel(logging.CRITICAL)  # what matters is logged here

T = TypeVar("T")

RUNS, UPKEEP = "council.runs", "council.upkeep"
RUN, SWEEP = "council.run", "council.sweep"
CONNECTIONS = 4
"""At most for jobs; two more listen for new ones."""
LONGEST_WAIT = 3.0
POLL_SECONDS = 2.0
"""How often new jobs are looked for if nobody told of them."""
READ_ONLY = "25006"
"""What a primary says that has just become a standby."""
HEARTBEATS = 9
"""How many heartbeats a worker may miss before others get its runs."""
REMEMBERED_SECONDS = 24 * 3600.0
"""How long a silent worker is known: one that is forgotten can't take a job, should it continue."""
EVERY = "* * * * * */5"
"""When what no worker has is looked for: cron's form, with seconds as its last field."""


class _PatientConnector(PsycopgConnector):
    """A connector that waits for a database that is away, until `is_ending`: it outlives a restart."""

    is_ending = False

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:  # noqa: ANN401 - as its base has it
        execute = super().execute_query_async
        await self._patiently(lambda: execute(query, **arguments))

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - as its base has it
        execute = super().execute_query_one_async
        return await self._patiently(lambda: execute(query, **arguments))

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as its base has it
        execute = super().execute_query_all_async
        return await self._patiently(lambda: execute(query, **arguments))

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        listen = super().listen_notify
        await self._patiently(lambda: listen(on_notification, channels))

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        async def attempt() -> T:
            return await work()

        # What was done before a connection broke is done again: of a job that is fetched twice that way,
        # the sweep finds the run, and one that is there already isn't deferred.
        retrying = AsyncRetrying(
            retry=retry_if_exception(self._is_away), wait=wait_random_exponential(0.5, LONGEST_WAIT)
        )
        found: T = await retrying(attempt)
        return found

    def _is_away(self, error: BaseException) -> bool:
        if self.is_ending:
            return False
        cause = error.__cause__ if isinstance(error, ConnectorException) else None
        is_standby = isinstance(cause, psycopg.Error) and cause.sqlstate == READ_ONLY
        return is_standby or isinstance(cause, NO_ANSWER)


class Jobs:
    """The jobs in a database, by two of Procrastinate's workers: one for runs, one to sweep.

    `name` is what errors call the database. Methods may raise `DatabaseError`.
    """

    def __init__(self, deferring: App, working: App, connector: _PatientConnector, name: str) -> None:
        self._deferring = deferring
        self._working = working
        self._connector = connector
        self._name = name

    async def defer(self, run_id: str, *, after: float = 0.0) -> None:
        """Queue a run for a worker, now or `after` this many seconds.

        A run has one job that waits, at most: the sooner one.
        """
        manager, when = self._deferring.job_manager, {"seconds": round(after)} if after else None
        job = self._deferring.configure_task(RUN, queue=RUNS, queueing_lock=run_id, schedule_in=when)
        for _ in range(3):
            try:
                await self._explaining(job.defer_async(run=run_id))
            except AlreadyEnqueued:
                if after:  # it waits already, perhaps for less
                    return
                waiting = manager.list_jobs_async(queueing_lock=run_id, status="todo")
                for other in await self._explaining(waiting):
                    await self._explaining(
                        manager.cancel_job_by_id_async(other.id or 0, delete_job=True)
                    )
            else:
                return

    async def live(self, *, now: bool = False) -> set[str]:
        """Return the runs that have a job, waiting or under way; with `now`, not those for later."""
        # One query: a job that changes between two would be in neither.
        jobs = await self._explaining(self._deferring.job_manager.list_jobs_async(task=RUN))
        live = (Status.TODO.value, Status.DOING.value)
        return {
            str(job.task_kwargs["run"])
            for job in jobs
            if job.status in live and not (now and job.status == Status.TODO.value and job.scheduled_at)
        }

    @asynccontextmanager
    async def work(
        self,
        take_up: Callable[[str], Awaitable[None]],
        sweep: Callable[[], Awaitable[None]],
        *,
        name: str,
        runs: int,
        stalled_seconds: float,
        drain_seconds: float,
    ) -> AsyncGenerator[Callable[[], Awaitable[NoReturn]]]:
        """Take up so many runs at once while entered, each by its id, and sweep every few seconds.

        After `stalled_seconds` without a heartbeat, this process's runs are given to others. Yields what
        waits until that has failed, and raises why. On exit, runs have `drain_seconds` to end; then
        their tasks are cancelled.
        """
        app, running = self._working, set[int]()

        @app.task(name=RUN, queue=RUNS, pass_context=True)
        async def carry_out(context: JobContext, run: str, attempts: int = 0) -> None:
            del attempts  # a job of an earlier version has them
            number = context.job.id or 0
            running.add(number)
            try:
                await take_up(run)
            finally:
                running.discard(number)

        @app.periodic(cron=EVERY)
        @app.task(name=SWEEP, queue=UPKEEP, queueing_lock=SWEEP)
        async def look(timestamp: int) -> None:
            del timestamp
            await self._replace_stalled(stalled_seconds)
            await self._forget_ended()
            await sweep()

        workers = [
            asyncio.create_task(
                app.run_worker_async(
                    queues=[queue],
                    name=name,
                    concurrency=at_once,
                    install_signal_handlers=False,
                    fetch_job_polling_interval=POLL_SECONDS,
                    update_heartbeat_interval=stalled_seconds / HEARTBEATS,
                    stalled_worker_timeout=REMEMBERED_SECONDS,
                    shutdown_graceful_timeout=drain_seconds,
                    delete_jobs="always",
                )
            )
            for queue, at_once in ((RUNS, runs), (UPKEEP, 1))
        ]

        async def failed() -> NoReturn:
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            for worker in done:
                await worker
            raise DatabaseError(f"{self._name}: the jobs ended by themselves; start the program again")

        try:
            yield failed
        finally:
            self._connector.is_ending = True
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _replace_stalled(self, seconds: float) -> None:
        manager = self._deferring.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=seconds):
            try:
                await manager.finish_job(job, Status.FAILED, delete_job=True)
            except ConnectorException:  # its worker ends it just now
                continue
            if job.task_name == RUN:
                run_id = str(job.task_kwargs["run"])
                log.warning("worker_stalled", run=run_id)
                await self.defer(run_id)

    async def _forget_ended(self) -> None:
        """Delete jobs that are over: one stays where its worker loses the database just then."""
        await self._deferring.job_manager.delete_old_jobs(
            nb_hours=1, include_failed=True, include_cancelled=True, include_aborted=True
        )

    async def _explaining(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except ConnectorException as error:
            raise _explained(self._name, error) from None


@asynccontextmanager
async def open_jobs(address: str, name: str) -> AsyncGenerator[Jobs]:
    """Open the jobs in the database at an address, making their tables if they are missing.

    Nobody else may make them meanwhile. Raises `DatabaseError`.
    """
    deferring = App(connector=PsycopgConnector(**_pool(address)))
    connector = _PatientConnector(**_pool(address))
    working = App(connector=connector)
    try:
        async with deferring.open_async(), working.open_async():
            if not await deferring.check_connection_async():
                await deferring.schema_manager.apply_schema_async()
            yield Jobs(deferring, working, connector, name)
    except (ConnectorException, PoolTimeout) as error:
        raise _explained(name, error) from None


def _explained(name: str, error: Exception) -> DatabaseError:
    cause = error.__cause__
    return explain_postgres(name, cause if isinstance(cause, Exception) else error)


def _pool(address: str) -> dict[str, Any]:
    # Its own cursors and its own types: Procrastinate's SQL isn't ours.
    taken = ("cursor_factory", "autocommit")
    kept = {key: value for key, value in settings(address).items() if key not in taken}
    return {"conninfo": address, "kwargs": kept, "min_size": 1, "max_size": CONNECTIONS, "timeout": 5.0}
