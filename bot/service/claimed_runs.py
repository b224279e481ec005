"""The runs that this process has claimed: one that another process claims is left to it at once.

A process may be stopped, or cut off from the database, for so long that others take it for dead. So
before anything of a claimed run is posted, the claim is looked at, unless that was just done; and when
the database is away for longer than others wait, every claimed run is left.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from bot.errors import Unreachable
from bot.view.wording.commands import NOTHING_SENT
from council.cancel import Stop
from storage.errors import StorageError
from storage.journal.rows import RunRow
from storage.processes.coordination import Coordination

log = structlog.get_logger()

LOOK_SECONDS = 0.5
"""Between two looks at what became of the claimed runs: so late does a run hear of a press of Stop."""
FRESH_SECONDS = 1.5
"""How long a look counts."""
HEARTBEAT_SHARE = 0.8
"""Which part of the time after which others take over a claim lasts without the database."""


@dataclass(slots=True, eq=False)
class _Claim:
    epoch: int
    stop: Stop
    stops: int
    task: asyncio.Task[object]
    is_lost: bool = False


class Claims:
    """The runs that this process works on; `stalled_seconds` is when others take it for dead."""

    def __init__(
        self,
        coordination: Coordination,
        stalled_seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._coordination = coordination
        self._lease = HEARTBEAT_SHARE * stalled_seconds
        self._clock = clock
        self._sleep = sleep
        self._claims: dict[str, _Claim] = {}
        self._looked = clock()
        self._looking = asyncio.Lock()

    @property
    def count(self) -> int:
        """How many runs this process carries out or shows."""
        return len(self._claims)

    def add(self, run: RunRow, stop: Stop) -> None:
        """Note that the current task works on a run: posts its card, or carries it out once claimed."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in tasks
        if not self._claims:
            self._looked = self._clock()
        self._claims[run.id] = _Claim(run.epoch, stop, run.stops, task)

    def lose(self, run_id: str) -> None:
        """End what is done here for a run that another process has claimed."""
        if claim := self._claims.get(run_id):
            self._lose(claim)

    async def end(self, run_id: str) -> None:
        """End what this process itself still does for a run, as after it was stopped for a while."""
        if claim := self._claims.get(run_id):
            self._lose(claim)
            await asyncio.wait({claim.task})

    def remove(self, run_id: str) -> bool:
        """Forget a run; return whether it was this process's to the end."""
        claim = self._claims.pop(run_id, None)
        return claim is not None and not claim.is_lost

    async def may_send(self, run_id: str) -> None:
        """Return where a request of a run may be sent; of one that is another's now, none ever may.

        Raises `Unreachable` where that can't be known.
        """
        claim = self._claims.get(run_id)
        if claim is None:
            return
        if self._clock() - self._looked > FRESH_SECONDS:
            try:
                await self.look()
            except StorageError as error:
                raise Unreachable(NOTHING_SENT) from error
        if claim.is_lost:
            await asyncio.Event().wait()  # its task is being cancelled

    async def wait_for_claim(self, run_id: str) -> None:
        """Return where a call of a run may be made; of one that is another's now, none ever may."""
        while True:
            try:
                await self.may_send(run_id)
            except Unreachable:  # nobody knows
                await self._sleep(LOOK_SECONDS)
            else:
                return

    async def watch(self) -> None:
        """Look at the claimed runs until cancelled."""
        while True:
            await self._sleep(LOOK_SECONDS)
            try:
                await self.look()
            except StorageError as error:
                if self._claims and self._clock() - self._looked > self._lease:
                    log.warning("claims_given_up", runs=len(self._claims), reason=error)
                    for claim in [*self._claims.values()]:
                        self._lose(claim)

    async def look(self) -> None:
        """Look what became of the claimed runs. Raises `StorageError`."""
        async with self._looking:
            began = self._clock()
            if not self._claims:
                self._looked = began
                return
            claims = {**self._claims}
            watched = await self._coordination.watch(list(claims))
            self._looked = began
            for run_id, claim in claims.items():
                if self._claims.get(run_id) is not claim:  # ended meanwhile, perhaps claimed once more
                    continue
                now = watched.get(run_id)
                if now is None or now.state == "halted":  # forgotten, or about to be
                    claim.stop.everything.cancel("stopped")
                elif now.epoch != claim.epoch:
                    if (
                        claim.epoch
                    ):  # a run whose card alone was posted here goes to a worker as it should
                        log.warning("run_claimed_by_another", run=run_id)
                    self._lose(claim)
                else:
                    for _ in range(now.stops - claim.stops):
                        claim.stop.press()
                    claim.stops = max(claim.stops, now.stops)

    def _lose(self, claim: _Claim) -> None:
        if not claim.is_lost:
            claim.is_lost = True
            claim.task.cancel()
