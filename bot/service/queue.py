"""Whose turn it is: bounds on runs at once, and a queue that is fair between channels.

Thousands may wait: a change costs a handful of look-ups in sorted lists, never a pass over the queue.
"""

import asyncio
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.service.limits import Limits
from bot.view.state import EXACT_POSITIONS

# Further back, a position is told on arrival and again where it reaches one of these.
MARKS: tuple[int, ...] = tuple(step * 10**power for power in range(1, 7) for step in (2, 5, 10))


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a run counts against: its channel, its asker, its conversation."""

    channel: str
    user: str
    conversation: str


@dataclass(eq=False, slots=True)
class _Place:
    """Somebody in the queue; places sort by arrival."""

    number: int
    ticket: Ticket
    moved: Callable[[int], None]
    turn: asyncio.Event = field(default_factory=asyncio.Event)

    def __lt__(self, other: "_Place") -> bool:
        return self.number < other.number


@dataclass(eq=False, slots=True)
class _Lane:
    """What a user waits for in a channel and could have now; the first is `offered` to the channel."""

    places: list[_Place] = field(default_factory=list[_Place])
    offered: _Place | None = None


@dataclass(eq=False, slots=True)
class _User:
    running: int = 0
    lanes: defaultdict[str, _Lane] = field(default_factory=lambda: defaultdict(_Lane))


@dataclass(eq=False, slots=True)
class _Channel:
    """A channel's first place that could start is `candidates[0]`; `rank` is its place in the order."""

    running: int = 0
    last_served: int = 0
    candidates: list[_Place] = field(default_factory=list[_Place])
    rank: tuple[int, int, str] | None = None


@dataclass(eq=False, slots=True)
class _Conversation:
    running: bool = False
    waiting: list[_Place] = field(default_factory=list[_Place])


class Queue:
    """Lets runs in by arrival, each channel in turn; one run at a time for a conversation."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._arrived = 0
        self._served = 0
        self._running = 0
        self._waiting: list[_Place] = []
        self._users: defaultdict[str, _User] = defaultdict(_User)
        self._conversations: defaultdict[str, _Conversation] = defaultdict(_Conversation)
        self._channels: defaultdict[str, _Channel] = defaultdict(_Channel)
        # The channels that could have a run started now, the one served longest ago first.
        self._order: list[tuple[int, int, str]] = []

    @asynccontextmanager
    async def turn(self, ticket: Ticket, moved: Callable[[int], None]) -> AsyncGenerator[None]:
        """Wait for a turn and hold it; `moved` hears the position in the order of arrival, 1 is next.

        The first `EXACT_POSITIONS` hear every change. Further back, a position is told on arrival and
        where it reaches one of `MARKS`. In between, a run is nearer than it last heard, never farther,
        since whoever comes later queues behind it.
        """
        self._arrived += 1
        place = _Place(self._arrived, ticket, moved)
        self._arrive(place)
        self._let_in()
        if not place.turn.is_set():
            moved(len(self._waiting))
        try:
            await place.turn.wait()
        except asyncio.CancelledError:
            if place.turn.is_set():
                self._leave(ticket)
            else:
                self._depart(place)
                self._let_in()
            raise
        try:
            yield
        finally:
            self._leave(ticket)

    def _let_in(self) -> None:
        while self._running < self.limits.runs and self._order:
            _, _, channel = self._order[0]
            self._start(self._channels[channel].candidates[0])

    def _start(self, place: _Place) -> None:
        ticket = place.ticket
        self._depart(place)
        self._running += 1
        self._served += 1
        channel = self._channels[ticket.channel]
        channel.running += 1
        channel.last_served = self._served
        self._rank(ticket.channel)
        self._count_user(ticket.user, 1)
        conversation = self._conversations[ticket.conversation]
        for other in conversation.waiting:
            self._withdraw(other)
        conversation.running = True
        place.turn.set()

    def _leave(self, ticket: Ticket) -> None:
        self._running -= 1
        self._channels[ticket.channel].running -= 1
        self._rank(ticket.channel)
        self._count_user(ticket.user, -1)
        conversation = self._conversations[ticket.conversation]
        conversation.running = False
        for other in conversation.waiting:
            self._put_up(other)
        self._forget_idle(ticket)
        self._let_in()

    def _arrive(self, place: _Place) -> None:
        self._waiting.append(place)
        conversation = self._conversations[place.ticket.conversation]
        conversation.waiting.append(place)
        if not conversation.running:
            self._put_up(place)

    def _depart(self, place: _Place) -> None:
        """Take a place out of the queue; those behind it move up."""
        position = bisect_left(self._waiting, place)
        del self._waiting[position]
        conversation = self._conversations[place.ticket.conversation]
        conversation.waiting.remove(place)
        if not conversation.running:
            self._withdraw(place)
        self._forget_idle(place.ticket)
        for near, behind in enumerate(self._waiting[position:EXACT_POSITIONS], position + 1):
            behind.moved(near)
        for mark in MARKS[bisect_left(MARKS, position + 1) :]:
            if mark > len(self._waiting):
                break
            self._waiting[mark - 1].moved(mark)

    def _put_up(self, place: _Place) -> None:
        insort(self._users[place.ticket.user].lanes[place.ticket.channel].places, place)
        self._offer(place.ticket.user, place.ticket.channel)

    def _withdraw(self, place: _Place) -> None:
        places = self._users[place.ticket.user].lanes[place.ticket.channel].places
        del places[bisect_left(places, place)]
        self._offer(place.ticket.user, place.ticket.channel)

    def _count_user(self, name: str, change: int) -> None:
        user = self._users[name]
        had_room = user.running < self.limits.runs_per_user
        user.running += change
        if had_room != (user.running < self.limits.runs_per_user):
            for channel in [*user.lanes]:
                self._offer(name, channel)

    def _offer(self, name: str, channel: str) -> None:
        """Let the channel know the first place that the user could have there now."""
        user, candidates = self._users[name], self._channels[channel].candidates
        lane = user.lanes[channel]
        first = lane.places[0] if lane.places else None
        offered = first if user.running < self.limits.runs_per_user else None
        if offered is not lane.offered:
            if lane.offered:
                del candidates[bisect_left(candidates, lane.offered)]
            if offered:
                insort(candidates, offered)
            lane.offered = offered
            self._rank(channel)
        if not lane.places:
            del user.lanes[channel]

    def _rank(self, name: str) -> None:
        """Bring the channel to its place in the order, or out of it when it could start nothing."""
        channel = self._channels[name]
        rank = None
        if channel.candidates and channel.running < self.limits.runs_per_channel:
            rank = (channel.last_served, channel.candidates[0].number, name)
        if rank != channel.rank:
            if channel.rank:
                del self._order[bisect_left(self._order, channel.rank)]
            if rank:
                insort(self._order, rank)
            channel.rank = rank

    def _forget_idle(self, ticket: Ticket) -> None:
        # A channel is kept: when it was last served is what fairness goes by.
        user, conversation = self._users[ticket.user], self._conversations[ticket.conversation]
        if not (user.running or user.lanes):
            del self._users[ticket.user]
        if not (conversation.running or conversation.waiting):
            del self._conversations[ticket.conversation]
