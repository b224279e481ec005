"""Continues the runs that an earlier process left: unfinished, or with an asker who wasn't told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta

import structlog

from bot.service.delivery.presenter import Presenter
from bot.service.delivery.venue import Venue
from bot.service.runs.runs import Runs
from bot.service.work import wait_after
from council.cancel import Stop
from storage.errors import StorageError
from storage.journal.journal import Journal
from storage.journal.rows import Delivery, RunRow

log = structlog.get_logger()

CATCH_UP_SECONDS = 3.0
"""How long resumed runs may take to catch up before their cards are edited."""
REDELIVERY_DAYS = 7
"""How long an answer that couldn't be delivered is tried again; the channel's history keeps it."""

Together = asyncio.Barrier
"""Where resumed runs wait for each other: calls first, then cards."""
VenueOf = Callable[[RunRow], Venue | None]
"""Returns the place where a run is shown; `None` where that isn't this bot's."""
Start = Callable[[RunRow, Venue, Together], None]
"""Carries out a run and shows it, in a task of its own, unless that is being done already."""


class Stops(dict[str, Stop]):
    """What stops each run of this process, by the run's id; a run that is over has none."""

    def of(self, run: RunRow) -> Stop:
        """Return what stops a run, pressed as often as it was before a restart."""
        stop = self.get(run.id)
        if stop is None:
            stop = self[run.id] = Stop()
            for _ in range(run.stops):
                stop.press()
        return stop


class Resuming:
    """Finds interrupted runs after a restart, and starts again what wasn't shown to its end.

    Runs that were interrupted longer than `within` seconds ago are closed, to be retried by hand. Where
    several processes share the runs, a start leaves them to whoever has them.
    """

    def __init__(
        self,
        runs: Runs,
        journal: Journal,
        stops: Stops,
        start: Start,
        *,
        within: float,
        sleep: Callable[[float], Awaitable[object]],
        is_shared: bool = False,
    ) -> None:
        self._is_shared = is_shared
        self._runs = runs
        self._journal = journal
        self._stops = stops
        self._start = start
        self.within = within
        self._sleep = sleep
        self._attempts: dict[str, int] = {}
        self._undelivered: set[str] = set()
        self._waiting: set[asyncio.Task[None]] = set()

    @property
    def undelivered_count(self) -> int:
        """How many runs have an asker who couldn't be told yet."""
        return len(self._undelivered)

    async def undelivered(self, platform: str) -> list[RunRow]:
        """Return the runs that an earlier process didn't finish; call it before listening.

        From then on, they can be stopped.
        """
        if self._is_shared:
            return []
        since = self._runs.recorder.ago(days=REDELIVERY_DAYS)
        runs = await self._journal.undelivered(platform, since)
        for run in runs:
            if not run.is_over:
                self._stops.of(run)
        return runs

    async def resume(self, runs: Sequence[RunRow], venue_of: VenueOf) -> None:
        """Resume interrupted runs, the oldest first; close those that are too old, to be retried."""
        resumed: list[tuple[RunRow, Venue]] = []
        for run in runs:
            venue = venue_of(run)
            if venue is None:
                log.warning("run_of_another_workspace", run=run.id, workspace=run.origin.workspace)
                self._stops.pop(run.id, None)
                continue
            resumed.append((await self.unless_too_old(run), venue))
        if resumed:
            together = Together(len(resumed))
            for run, venue in resumed:
                self._restart(run, venue, together)
            log.info("runs_resumed", runs=len(resumed))

    async def unless_too_old(self, run: RunRow) -> RunRow:
        """Return a run; one that was interrupted too long ago is closed."""
        is_too_old = not run.is_over and self._runs.recorder.age(run) > self.within
        return await self._runs.endings.give_up(run) if is_too_old else run

    def shown(self, run: RunRow, venue: Venue, delivery: Delivery | None, *, is_last: bool) -> None:
        """Note how a run's showing ended; unless it is the process's last, it is repeated later.

        `delivery` is `None` where the showing was cut off.
        """
        if delivery == "untold":
            self._undelivered.add(run.id)
        else:
            self._undelivered.discard(run.id)
        if delivery == "shown":
            self._attempts.pop(run.id, None)
        elif is_last or self._runs.recorder.age(run) > timedelta(days=REDELIVERY_DAYS).total_seconds():
            self._undelivered.discard(run.id)
        else:
            self._show_later(run, venue)

    async def close(self) -> None:
        """Leave everything that still waits to the next start."""
        waiting = [*self._waiting]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _restart(self, run: RunRow, venue: Venue, together: Together) -> None:
        if run.delivery == "untold":
            self._undelivered.add(run.id)
        self._start(run, venue, together)

    def _show_later(self, run: RunRow, venue: Venue) -> None:
        attempts = self._attempts[run.id] = self._attempts.get(run.id, 0) + 1
        wait = wait_after(attempts - 1)
        log.warning("run_not_shown", run=run.id, attempts=attempts, again_in=wait)

        async def show_again() -> None:
            await self._sleep(wait)
            try:
                found = await self._journal.get(run.id)
            except StorageError:
                log.exception("run_left_to_the_next_start", run=run.id)
                return
            if found and found.delivery != "shown":
                self._restart(found, venue, Together(1))
            else:  # forgotten, or shown after a Retry
                self._undelivered.discard(run.id)

        task = asyncio.create_task(show_again())
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)


async def catch_up(presenter: Presenter, together: Together) -> None:
    """Wait until every resumed run has made its next call: calls come first, then cards."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CATCH_UP_SECONDS):
            await presenter.caught_up()
            await together.wait()
