"""Whose turn it is: bounds on runs at once, and a queue that is fair between channels."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, PositiveInt


class Limits(BaseModel):
    """How many runs there may be at once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: PositiveInt = 32
    runs_per_channel: PositiveInt = 4
    runs_per_user: PositiveInt = 2


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a run counts against: its channel, its asker, its conversation."""

    channel: str
    user: str
    conversation: str


@dataclass(eq=False, slots=True)
class _Place:
    ticket: Ticket
    moved: Callable[[int], None]
    turn: asyncio.Event = field(default_factory=asyncio.Event)
    told: int = 0


class Queue:
    """Lets runs in by arrival, each channel in turn; one run at a time for a conversation."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._waiting: list[_Place] = []
        self._running: list[Ticket] = []
        self._last_served: Counter[str] = Counter()
        self._served = 0

    @asynccontextmanager
    async def turn(self, ticket: Ticket, moved: Callable[[int], None]) -> AsyncGenerator[None]:
        """Wait for a turn and hold it; `moved` hears the position whenever it changes, 1 is next."""
        place = _Place(ticket, moved)
        self._waiting.append(place)
        self._let_in()
        try:
            await place.turn.wait()
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
                self._let_in()
            else:
                self._leave(ticket)
            raise
        try:
            yield
        finally:
            self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        self._running.remove(ticket)
        self._let_in()

    def _let_in(self) -> None:
        while place := self._next():
            self._waiting.remove(place)
            self._running.append(place.ticket)
            self._served += 1
            self._last_served[place.ticket.channel] = self._served
            place.turn.set()
        for position, place in enumerate(self._waiting, 1):
            if place.told != position:
                place.told = position
                place.moved(position)

    def _next(self) -> _Place | None:
        """Give who may start now: the first of the channel that was served longest ago."""
        if len(self._running) >= self.limits.runs:
            return None
        channels = Counter(ticket.channel for ticket in self._running)
        users = Counter(ticket.user for ticket in self._running)
        busy = {ticket.conversation for ticket in self._running}
        free = [
            place
            for place in self._waiting
            if channels[place.ticket.channel] < self.limits.runs_per_channel
            and users[place.ticket.user] < self.limits.runs_per_user
            and place.ticket.conversation not in busy
        ]
        return min(free, key=lambda place: self._last_served[place.ticket.channel], default=None)
