"""The outbox: everything that is posted or edited on a platform passes through it.

Requests that share one of the platform's rate limits share a lane. In a lane the most urgent request
goes first; among equals, runs take turns, each with one request under way. A request is sent until the
platform takes it, or refuses it twice: a channel that is out of reach for a second isn't gone.
"""

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import Self, TypeVar

import structlog

from bot.errors import Gone, NotAllowed, RateLimited, Revoked, Unreachable
from bot.service.metrics import Metrics
from bot.view.wording import commands as wording
from storage.errors import StorageError
from storage.processes.coordination import Coordination

log = structlog.get_logger()

T = TypeVar("T")
MaySend = Callable[[str], Awaitable[None]]
"""Returns when a request of a run may be sent. Raises `Unreachable` where that can't be known."""

MOST_REMEMBERED = 1000
"""How many runs a lane remembers to have served."""
TICK = 1e-6
"""Seconds that no timer tells apart: a wait as short is over, or a lane could wait for it for ever."""
FINISH_SECONDS = 5.0
"""How long a request under way has to end when who waits for it is cancelled."""


class Urgency(IntEnum):
    """What goes first when there isn't room for everything at once."""

    FIRST_CARD = 0
    ANSWER = 1
    PROGRESS = 2
    THREAD = 3


UrgencyNow = Urgency | Callable[[], Urgency]
"""An urgency, or what returns it whenever a turn is given: a run may be over by then."""


class Repeat(Enum):
    """Whether to repeat a request that may have been carried out.

    `FREELY` is for what shows nothing twice, `ONCE` for what does: once, and late unless it is a first
    card. `NEVER` leaves it to the caller.
    """

    FREELY = auto()
    ONCE = auto()
    NEVER = auto()


@dataclass(frozen=True, slots=True)
class Lane:
    """Requests that share a rate limit: one every `interval` seconds, `burst` at once at first.

    `name` tells lanes apart, such as a method and a channel. At most `at_once` are under way together.
    A lane `within` another also counts against that one's limit.
    """

    name: str
    interval: float = 0.0
    burst: int = 1
    at_once: int = 1
    within: "Lane | None" = None


class RateLimits:
    """How much of each lane's rate limit is left in this process.

    Each lane is a leaky bucket (GCRA, https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm).
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full_at: dict[str, float] = {}
        self._blocked_until: dict[str, float] = {}

    async def take(self, lane: Lane, urgency: Urgency) -> float:
        """Count one request against a lane's limit; if it is reached, return the seconds to wait."""
        del urgency  # a lane's requests are in order here
        now = self._clock()
        full_at = max(self._full_at.get(lane.name, now), now)
        free_at = max(
            full_at - (lane.burst - 1) * lane.interval, self._blocked_until.get(lane.name, now)
        )
        if free_at - now > TICK:
            return free_at - now
        self._forget_idle(now)
        if lane.interval:
            self._full_at[lane.name] = full_at + lane.interval
        return 0.0

    async def block(self, lane: Lane, seconds: float) -> None:
        until = self._clock() + seconds
        self._blocked_until[lane.name] = max(until, self._blocked_until.get(lane.name, until))

    def _forget_idle(self, now: float) -> None:
        for times in (self._full_at, self._blocked_until):
            for name in [name for name, at in itertools.islice(times.items(), 8) if at <= now]:
                del times[name]


class SharedRateLimits:
    """How much of each lane's rate limit all processes have left; `process` is this one's name.

    The most urgent request of all goes first. A lane without an interval is only ever blocked: each
    process learns that by itself.
    """

    def __init__(self, coordination: Coordination, process: str) -> None:
        self._coordination = coordination
        self._process = process
        self._own = RateLimits()

    async def take(self, lane: Lane, urgency: Urgency) -> float:
        """Count one request against a lane's limit; if it is reached, return the seconds to wait."""
        if not lane.interval:
            return await self._own.take(lane, urgency)
        try:
            return await self._coordination.take(
                lane.name, lane.interval, lane.burst, urgency, self._process
            )
        except StorageError as error:
            # A refusal has to reach its asker now; what belongs to a claimed run waits in any case.
            log.warning("rate_limits_unknown", lane=lane.name, reason=error)
            return await self._own.take(lane, urgency)

    async def block(self, lane: Lane, seconds: float) -> None:
        await self._own.block(lane, seconds)
        if lane.interval:
            with suppress(StorageError):  # the platform says it again to who sends
                await self._coordination.block(lane.name, seconds)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the outbox waits, in seconds.

    `request`: for a response. `recheck`: before a refusal is believed. `first` and `longest`: between
    attempts that failed, doubling. `lost`: before a post is repeated whose response was never seen; a
    first card, for which somebody waits, after `lost_card`.
    `give_up`: until a request that fails again and again is given up; `unknown_attempts` counts those
    that end in an undocumented error. `starving`: behind more urgent requests, before one of the same
    urgency goes first.
    """

    request: float = 30.0
    recheck: float = 5.0
    first: float = 1.0
    longest: float = 30.0
    lost: float = 60.0
    lost_card: float = 3.0
    give_up: float = 15 * 60.0
    starving: float = 30.0
    unknown_attempts: int = 5


@dataclass(eq=False, slots=True)
class _Waiting:
    run: str
    urgency: Callable[[], Urgency]
    since: float
    number: int
    turn: asyncio.Future[None]
    is_through: bool = False


@dataclass(eq=False, slots=True)
class _Queue:
    """One lane's requests that wait, and who was served when."""

    starving: float
    waiting: list[_Waiting] = field(default_factory=list[_Waiting])
    under_way: list[str] = field(default_factory=list[str])
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    served: dict[str, int] = field(default_factory=dict[str, int])
    sent: dict[Urgency, float] = field(default_factory=dict[Urgency, float])

    def ready(self) -> list[_Waiting]:
        """Return the requests that may be sent: of each run one at a time, so that its order is kept."""
        return [
            one for one in self.waiting if one.run not in self.under_way and not one.turn.cancelled()
        ]

    def most_urgent(self, now: float) -> Urgency:
        """Return the urgency that other processes see: of what may be sent, or has waited for long."""
        ready = self.ready()
        if any(now - one.since >= self.starving for one in ready):
            return min(Urgency)
        return min(one.urgency() for one in ready)

    def take_next(self, now: float, number: int) -> _Waiting | None:
        """Remove and return the request whose turn it is."""
        urgencies = {one: one.urgency() for one in self.ready()}
        if not urgencies:
            return None
        oldest: dict[Urgency, float] = {}
        for one, urgency in urgencies.items():
            oldest[urgency] = min(one.since, oldest.get(urgency, one.since))
        chosen = min(oldest)
        for urgency, since in oldest.items():
            if now - max(since, self.sent.get(urgency, since)) >= self.starving:
                chosen = max(chosen, urgency)
        equals = (one for one, urgency in urgencies.items() if urgency is chosen)
        following = min(equals, key=lambda one: (self.served.get(one.run, 0), one.number))
        self.waiting.remove(following)
        self.sent[chosen] = now
        self.served.pop(following.run, None)
        self.served[following.run] = number
        if len(self.served) > MOST_REMEMBERED:
            del self.served[next(iter(self.served))]
        return following


class Outbox:
    """Sends one platform's requests; to be used with `async with`.

    `rate_limits` holds what is left of the platform's limits, `metrics` counts under the platform's
    name. `may_send` is asked before each request of a run. Times are in seconds of `clock`.
    """

    def __init__(
        self,
        platform: str = "",
        *,
        metrics: Metrics | None = None,
        rate_limits: RateLimits | SharedRateLimits | None = None,
        may_send: MaySend | None = None,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.patience = patience or Patience()
        self._rate_limits = rate_limits or RateLimits(clock)
        self._may_send = may_send
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._numbers = itertools.count(1)
        self._platform = platform
        self._metrics = metrics or Metrics()
        self._metrics.waiting[platform] = self.waiting
        self._queues: dict[str, _Queue] = {}
        self._paused: list[Callable[[], Urgency]] = []
        self._pumps: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def waiting(self) -> Counter[str]:
        """Count the requests that wait for their turn, or to be sent again, by urgency."""
        queued = [one.urgency for queue in self._queues.values() for one in queue.waiting]
        return Counter(urgency().name.lower() for urgency in (*queued, *self._paused))

    async def send(
        self,
        lane: Lane,
        request: Callable[[], Awaitable[T]],
        *,
        run: str,
        urgency: UrgencyNow,
        believes_at_once: bool = False,
        repeat: Repeat = Repeat.FREELY,
        give_up: float | None = None,
    ) -> T:
        """Send a request when its turn has come, until the platform takes it; return its result.

        A `request` raises the errors of `bot.errors`. It ends on its own even if who waits
        for it is cancelled, so what it records beside sending isn't lost.
        Raises `Gone`, `NotAllowed` or `Revoked` when refused twice, at `believes_at_once` the first
        time; `Malformed`; and `Unreachable` after `give_up` seconds, by default the patience's, or
        where `repeat` allows no further attempt.
        """
        patience = self.patience
        current = urgency if callable(urgency) else lambda: urgency
        ends = self._clock() + (patience.give_up if give_up is None else give_up)
        failed = lost = unknown = 0
        refused = False
        while True:
            try:
                async with self._turns(lane, run, current):
                    if self._may_send:
                        await self._may_send(run)
                    return await self._finish(request())
            except RateLimited as limited:
                await self._rate_limits.block(lane, limited.after)
                self._metrics.rate_limited[self._platform] += 1
                log.info("rate_limited", lane=lane.name, seconds=limited.after)
                continue
            except (Gone, NotAllowed, Revoked):
                if refused or believes_at_once:
                    raise
                refused, wait = True, patience.recheck
            except Unreachable as error:
                if error.may_be_done and repeat is Repeat.NEVER:
                    raise
                failed += 1
                unknown += not error.is_known
                wait = min(patience.first * 2 ** (failed - 1), patience.longest)
                wait *= 0.5 + self._jitter() / 2
                if error.may_be_done and repeat is Repeat.ONCE:
                    lost += 1
                    is_card = current() is Urgency.FIRST_CARD
                    wait = patience.lost_card if is_card else patience.lost
                now = self._clock()
                if lost > 1 or unknown >= patience.unknown_attempts or now + wait > ends:
                    raise
            self._paused.append(current)
            try:
                await self._sleep(wait)
            finally:
                self._paused.remove(current)

    async def _finish(self, request: Awaitable[T]) -> T:
        """Await a request; one that is cancelled meanwhile still has its time to end."""

        async def timed() -> T:
            try:
                async with asyncio.timeout(self.patience.request):
                    return await request
            except TimeoutError as error:
                raise Unreachable(wording.NO_RESPONSE, is_lost=True) from error

        sending = asyncio.ensure_future(timed())
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            await asyncio.wait({sending}, timeout=FINISH_SECONDS)
            if not sending.done():
                sending.cancel()
            raise

    @asynccontextmanager
    async def _turns(self, lane: Lane, run: str, urgency: Callable[[], Urgency]) -> AsyncGenerator[None]:
        """Wait for a turn in a lane, and then in what it is within."""
        async with self._turn(lane, run, urgency):
            if lane.within is None:
                yield
                return
            # A run's requests in several lanes don't wait for each other.
            async with self._turns(lane.within, f"{lane.name} {run}", urgency):
                yield

    @asynccontextmanager
    async def _turn(self, lane: Lane, run: str, urgency: Callable[[], Urgency]) -> AsyncGenerator[None]:
        now = self._clock()
        queue = self._queues.get(lane.name)
        if queue is None:
            queue = self._queues[lane.name] = _Queue(self.patience.starving)
            pump = asyncio.create_task(self._pump(lane, queue))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)
        me = _Waiting(run, urgency, now, next(self._numbers), asyncio.get_running_loop().create_future())
        queue.waiting.append(me)
        queue.freed.set()
        try:
            await me.turn
        except Unreachable:
            queue.waiting.remove(me)
            raise
        except asyncio.CancelledError:
            if me.is_through:
                self._free(queue, run)
            else:
                queue.waiting.remove(me)
            raise
        try:
            yield
        finally:
            self._free(queue, run)

    def _free(self, queue: _Queue, run: str) -> None:
        queue.under_way.remove(run)
        queue.freed.set()

    async def _pump(self, lane: Lane, queue: _Queue) -> None:
        """Send a lane's requests one after the other until none is left."""
        try:
            while queue.waiting or queue.under_way:
                queue.freed.clear()
                if not queue.ready() or len(queue.under_way) >= lane.at_once:
                    await queue.freed.wait()
                elif wait := await self._rate_limits.take(lane, queue.most_urgent(self._clock())):
                    self._metrics.held_seconds[self._platform] += wait
                    await self._sleep(wait)
                elif following := queue.take_next(self._clock(), next(self._numbers)):
                    urgency, waited = following.urgency().name, self._clock() - following.since
                    if waited >= self.patience.starving:
                        self._metrics.sent_late[self._platform, urgency.lower()] += 1
                        log.info("sent_late", lane=lane.name, urgency=urgency, seconds=round(waited))
                    queue.under_way.append(following.run)
                    following.is_through = True
                    following.turn.set_result(None)
        except Exception:
            # Whatever the limits raise, nobody may wait for a lane without a pump.
            log.exception("lane_broken", lane=lane.name)
            for one in queue.waiting:
                if not one.turn.done():
                    one.turn.set_exception(Unreachable(wording.NOTHING_SENT))
        finally:
            del self._queues[lane.name]
