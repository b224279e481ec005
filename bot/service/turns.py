"""Whose turn it is in a process that has its runs to itself: how many may wait, and who is next.

Several processes on one database count and queue in it (`storage.processes.coordination`).
"""

import asyncio
import time
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import attrgetter

from bot.errors import OverLimit
from bot.service.limits import Limits, channel_of, user_of
from bot.view.run import EXACT_POSITIONS
from bot.view.wording import commands
from council.document.conversation import Source
from storage.processes.coordination import QueueEntry


class Backlog:
    """Counts the questions that are accepted and have no turn yet, each by its entry key.

    Nothing here awaits, so no number of questions at once gets past a limit. When each person last
    asked is remembered while the process runs.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._asked: OrderedDict[str, float] = OrderedDict()  # who must wait, by time
        self._sources: dict[str, Source] = {}
        self._users: Counter[str] = Counter()
        self._channels: Counter[str] = Counter()

    @contextmanager
    def admitted(self, key: str, source: Source) -> Generator[bool]:
        """Count a question while it is recorded, and from then on unless that fails.

        Yields whether it is new, not counted already. Raises `OverLimit`.
        """
        is_new = key not in self._sources
        if is_new:
            self._check(source)
            self.count(key, source)
            self._asked[user_of(source)] = self._clock()
        try:
            yield is_new
        except BaseException:
            if is_new:
                self.release(key)
                self._asked.pop(user_of(source), None)
            raise

    def count(self, key: str, source: Source) -> None:
        """Count a question that is accepted already, whatever the limits say."""
        if key not in self._sources:
            self._sources[key] = source
            self._users[user_of(source)] += 1
            self._channels[channel_of(source)] += 1

    def release(self, key: str) -> None:
        """Stop counting a question: it has its turn, or will never need one."""
        if source := self._sources.pop(key, None):
            for counts, name in ((self._users, user_of(source)), (self._channels, channel_of(source))):
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]

    def _check(self, source: Source) -> None:
        if self._users[user_of(source)] >= self._limits.waiting_per_user:
            raise OverLimit(commands.too_many_of_person(self._limits.waiting_per_user))
        if self._channels[channel_of(source)] >= self._limits.waiting_per_channel:
            raise OverLimit(commands.too_many_of_channel(self._limits.waiting_per_channel))
        while self._asked and self._left(next(iter(self._asked))) <= 0:
            self._asked.popitem(last=False)
        if user_of(source) in self._asked:
            raise OverLimit(commands.too_soon(self._left(user_of(source))))

    def _left(self, user: str) -> float:
        return self._asked[user] + self._limits.cooldown - self._clock()


# Further back, a position is reported on arrival and again when it reaches one of these.
MARKS: tuple[int, ...] = tuple(step * 10**power for power in range(1, 7) for step in (2, 5, 10))


@dataclass(eq=False, slots=True)
class _Waiter:
    """A run in the queue."""

    ticket: QueueEntry
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
    async def turn(self, ticket: QueueEntry, moved: Callable[[int], None]) -> AsyncGenerator[None]:
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

    def _leave(self, ticket: QueueEntry) -> None:
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
