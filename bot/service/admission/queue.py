"""Whose turn it is: bounds on runs at once, and a queue that is fair between channels.

Each start looks through the whole queue: a millisecond for thousands, which delays little else.
"""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.service.admission.limits import Limits
from bot.view.run import EXACT_POSITIONS

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
    turn: asyncio.Event = field(default_factory=asyncio.Event)


class Queue:
    """Admits runs by arrival, each channel in turn, and one run at a time per conversation."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._served = 0
        self._last_served: Counter[str] = Counter()  # by channel
        self._waiting: list[_Waiter] = []
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

        The first `EXACT_POSITIONS` hear every change. Further back, a position is told on arrival and
        where it reaches one of `MARKS`. In between, a run is nearer than it last heard, never farther,
        since whoever comes later queues behind it.
        """
        place = _Waiter(ticket, moved)
        self._waiting.append(place)
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
            place.turn.set()

    def _next(self) -> _Waiter | None:
        """Return whoever may start: of the channel that was served longest ago, then by arrival."""
        first: dict[str, _Waiter] = {}  # by channel
        for place in self._waiting:
            if place.ticket.channel not in first and self._may_start(place):
                first[place.ticket.channel] = place
        return min(first.values(), key=self._served_at, default=None)

    def _may_start(self, place: _Waiter) -> bool:
        ticket = place.ticket
        return (
            self._channels[ticket.channel] < self.limits.runs_per_channel
            and self._users[ticket.user] < self.limits.runs_per_user
            and ticket.conversation not in self._conversations
        )

    def _served_at(self, place: _Waiter) -> int:
        return self._last_served[place.ticket.channel]

    def _leave(self, ticket: Ticket) -> None:
        self._running -= 1
        for held, name in ((self._channels, ticket.channel), (self._users, ticket.user)):
            held[name] -= 1
            if not held[name]:
                del held[name]
        self._conversations.discard(ticket.conversation)
        self._admit()

    def _depart(self, place: _Waiter) -> None:
        """Take a place out of the queue; those behind it move up."""
        position = self._waiting.index(place)
        del self._waiting[position]
        for near, behind in enumerate(self._waiting[position:EXACT_POSITIONS], position + 1):
            behind.moved(near)
        for mark in MARKS[bisect_left(MARKS, position + 1) :]:
            if mark > len(self._waiting):
                break
            self._waiting[mark - 1].moved(mark)
