"""The queue of a process that has its runs to itself: bounds on runs at once, and fair between channels.

`shared_queue` is that of several processes.
"""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter

import structlog

from bot.errors import Refusal
from bot.service.admission.limits import Limits, channel_of, user_of
from bot.service.run_tasks import HandOver, RunCounts, RunTasks, VenueOf
from bot.view.run import EXACT_POSITIONS
from bot.view.wording import commands
from council.document.conversation import Source
from council.errors import ModelError
from council.tasks import Stop
from storage.errors import StorageError
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from storage.processes.coordination import Bounds

log = structlog.get_logger()

LOOK_SECONDS = 0.05
"""Between two looks whether runs that were ended are over."""
POSITION_SECONDS = 1.0
"""Between two changes of a waiting run's place on its card: each departure moves many up."""


# Further back, a position is reported on arrival and again when it reaches one of these.
MARKS: tuple[int, ...] = tuple(step * 10**power for power in range(1, 7) for step in (2, 5, 10))


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a run counts against: its channel, its asker, its conversation."""

    channel: str
    user: str
    conversation: str


@dataclass(eq=False, slots=True)
class _Waiter:
    """A run in the queue."""

    ticket: Ticket
    moved: Callable[[int], None]
    number: int
    turn: asyncio.Event = field(default_factory=asyncio.Event)


_number = attrgetter("number")


class Queue:
    """Admits runs by arrival, each channel in turn, and one run at a time per conversation."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._served = 0
        self._last_served: Counter[str] = Counter()  # by channel
        self._arrived = 0
        self._waiting: list[_Waiter] = []
        self._queues: dict[str, list[_Waiter]] = {}  # by channel
        # The channels that may start a run: when each was served last, and who waits first in it.
        self._line: list[tuple[int, int, str]] = []
        self._lined: set[str] = set()
        self._running = 0
        self._channels: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        self._conversations: set[str] = set()

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def turn(self, ticket: Ticket, moved: Callable[[int], None]) -> AsyncGenerator[None]:
        """Wait for a turn and hold it; `moved` hears the position in the order of arrival, 1 is next.

        The first `EXACT_POSITIONS` are shown every change. Further back, a position is shown on arrival
        and where it reaches one of `MARKS`. In between, a run is nearer than was last shown, never
        farther, since later runs queue behind it.
        """
        self._arrived += 1
        place = _Waiter(ticket, moved, self._arrived)
        self._waiting.append(place)
        self._queues.setdefault(ticket.channel, []).append(place)
        self._offer(ticket.channel)
        self._admit()
        if not place.turn.is_set():
            moved(len(self._waiting))
        try:
            await place.turn.wait()
        except asyncio.CancelledError:
            if place.turn.is_set():
                self._leave(ticket)
            else:
                self._depart(place)
                self._admit()
            raise
        try:
            yield
        finally:
            self._leave(ticket)

    def _admit(self) -> None:
        while self._running < self.limits.runs and (place := self._next()):
            self._depart(place)
            ticket = place.ticket
            self._running += 1
            self._served += 1
            self._last_served[ticket.channel] = self._served
            self._channels[ticket.channel] += 1
            self._users[ticket.user] += 1
            self._conversations.add(ticket.conversation)
            self._offer(ticket.channel)
            place.turn.set()

    def _next(self) -> _Waiter | None:
        """Return the run that may start: of the channel that was served longest ago, then by arrival."""
        found: tuple[int, int, _Waiter] | None = None
        passed: list[str] = []
        while self._line and (found is None or self._line[0][:2] < found[:2]):
            served, _, channel = heappop(self._line)
            self._lined.discard(channel)
            if self._channels[channel] < self.limits.runs_per_channel:  # or else one that ends offers it
                passed.append(channel)
                first = next(filter(self._may_start, self._queues.get(channel, ())), None)
                if first and (found is None or (served, first.number) < found[:2]):
                    found = served, first.number, first
        place = found[2] if found else None
        for channel in passed:
            if place is None or channel != place.ticket.channel:
                self._offer(channel)
        return place

    def _offer(self, channel: str) -> None:
        """Put a channel in the line, if anybody waits there."""
        if channel in self._queues and channel not in self._lined:
            self._lined.add(channel)
            heappush(self._line, (self._last_served[channel], self._queues[channel][0].number, channel))

    def _may_start(self, place: _Waiter) -> bool:
        ticket = place.ticket
        is_free = ticket.conversation not in self._conversations
        return is_free and self._users[ticket.user] < self.limits.runs_per_user

    def _leave(self, ticket: Ticket) -> None:
        self._running -= 1
        for held, name in ((self._channels, ticket.channel), (self._users, ticket.user)):
            held[name] -= 1
            if not held[name]:
                del held[name]
        self._conversations.discard(ticket.conversation)
        self._offer(ticket.channel)
        self._admit()

    def _depart(self, place: _Waiter) -> None:
        """Take a place out of the queue; those behind it move up."""
        queue = self._queues[place.ticket.channel]
        position, there = (
            bisect_left(many, place.number, key=_number) for many in (self._waiting, queue)
        )
        del self._waiting[position], queue[there]
        if not queue:
            del self._queues[place.ticket.channel]
        for near, behind in enumerate(self._waiting[position:EXACT_POSITIONS], position + 1):
            behind.moved(near)
        for mark in MARKS[bisect_left(MARKS, position + 1) :]:
            if mark > len(self._waiting):
                break
            self._waiting[mark - 1].moved(mark)


class LocalQueue:
    """The queue of a process that has its runs to itself; a `bot.service.run_tasks.RunQueue`."""

    bounds: Bounds | None = None
    hand_over: HandOver | None = None
    is_shared = False

    def __init__(self, limits: Limits, journal: Journal) -> None:
        self.limits = limits
        self._journal = journal
        self._queue = Queue(limits)
        self._moved: dict[str, Callable[[], None]] = {}

    @asynccontextmanager
    async def turn(self, run: RunRow, stop: Stop, moved: Callable[[int], None]) -> AsyncGenerator[None]:
        """Wait for a run's turn and hold it; `moved` hears its place on arrival, then once a second."""
        ticket = Ticket(channel_of(run.origin), user_of(run.origin), run.conversation_id)
        hear = moved

        def place(position: int) -> None:
            nonlocal hear
            hear(position)
            hear = later

        def later(position: int) -> None:
            if not self._moved:
                asyncio.get_running_loop().call_later(POSITION_SECONDS, self._show_places)
            self._moved[run.id] = partial(moved, position)

        async with AsyncExitStack() as stack:
            turn = stack.enter_async_context(self._queue.turn(ticket, place))
            with suppress(ModelError):  # stopped while it waited: it ends without a turn
                await stop.members.guard(turn)
            self._moved.pop(run.id, None)
            yield

    def _show_places(self) -> None:
        moved, self._moved = self._moved, {}
        for show in moved.values():
            show()

    async def retry(self, tasks: RunTasks, run: RunRow, venue_of: VenueOf, by: Source) -> str:
        if run.id in tasks:  # reopened now, it would be overwritten by its ending
            raise Refusal(commands.IN_PROGRESS)
        venue = venue_of(run)
        if venue is None:
            raise Refusal(commands.ANSWERED)
        await tasks.reopen(run, venue, by)
        return commands.RESUMING

    async def stop(self, tasks: RunTasks, run_id: str) -> str:
        stop = tasks.stops.get(run_id)
        if stop is None:
            raise Refusal(commands.OVER)
        again = stop.pressed
        stop.press()
        try:
            await self._journal.press_stop(run_id)
        except StorageError:  # it is stopped in any case; only a restart now would forget it
            log.exception("stop_not_recorded", run=run_id)
        return commands.ENDING if again else commands.STOPPING

    async def end(self, tasks: RunTasks, run_ids: Sequence[str], within: float) -> None:
        for run_id in run_ids:
            if stop := tasks.stops.get(run_id):
                stop.everything.cancel("stopped")
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while any(run_id in tasks for run_id in run_ids):  # noqa: ASYNC110 - it is soon over
                    await asyncio.sleep(LOOK_SECONDS)

    async def is_first(self, click: str) -> bool:
        """Return that no other process has seen a click."""
        del click
        return True

    def counts(self, tasks: RunTasks) -> RunCounts:
        return RunCounts(self._queue.running, self._queue.waiting, len(tasks.undelivered_ids))

    def close(self) -> None:
        """Do nothing: whoever waits here is interrupted with the process."""
