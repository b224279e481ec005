"""The queue: bounds, arrival order, fairness between channels, one run a conversation."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.service.limits import Limits
from bot.service.turns import MARKS, Queue
from bot.view.run import EXACT_POSITIONS
from storage.processes.coordination import QueueEntry


class Line:
    """A queue with named runs that records who was admitted, and each one's last position."""

    def __init__(self, **limits: int) -> None:
        self.queue = Queue(Limits.model_validate(limits))
        self.started: list[str] = []
        self.positions: dict[str, list[int]] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def arrive(
        self, name: str, channel: str = "c", user: str = "", conversation: str = ""
    ) -> None:
        ticket = QueueEntry("run", channel, user or name, conversation or name)
        self._ends[name] = asyncio.Event()
        self.positions[name] = []

        async def run() -> None:
            async with self.queue.turn(ticket, self.positions[name].append):
                self.started.append(name)
                await self._ends[name].wait()

        self._tasks[name] = asyncio.create_task(run())
        await asyncio.sleep(0)

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await asyncio.sleep(0)

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def test_a_waiting_run_hears_its_position_as_it_moves_up() -> None:
    """1 is next."""
    line = Line(runs=1)
    for name in ("one", "two", "three"):
        await line.arrive(name)
    assert (line.started, line.positions["two"], line.positions["three"]) == (["one"], [1], [2])
    await line.end("one")
    assert line.started == ["one", "two"]
    assert line.positions["three"] == [2, 1]
    await line.close()


async def test_a_run_that_raises_leaves_its_place() -> None:
    """Its error passes through."""
    queue = Queue(Limits(runs=1))
    ticket = QueueEntry("run", "c", "u", "x")
    with pytest.raises(RuntimeError):
        async with queue.turn(ticket, lambda _: None):
            raise RuntimeError
    async with AsyncExitStack() as stack:
        await asyncio.wait_for(stack.enter_async_context(queue.turn(ticket, lambda _: None)), 1)


async def test_a_run_far_back_hears_few_positions() -> None:
    """Its position on arrival, then the marks; near the front, every step."""
    line = Line(runs=1, runs_per_channel=1)
    names = [str(number) for number in range(61)]
    for name in names:
        await line.arrive(name)
    for name in names[:-1]:
        await line.end(name)
    assert line.positions["60"] == [60, 50, 20, *range(10, 0, -1)]
    await line.close()


async def test_a_change_in_a_long_queue_notifies_few() -> None:
    """However many wait, a departure notifies a bounded number."""
    line = Line(runs=1, runs_per_channel=1)
    for number in range(600):
        await line.arrive(str(number))
    told = sum(map(len, line.positions.values()))
    await line.end("0")
    news = sum(map(len, line.positions.values())) - told
    assert news == EXACT_POSITIONS + len([mark for mark in MARKS if mark < 600])
    await line.close()


@dataclass
class Model:
    """The same queue in a few lines, without any optimization."""

    limits: Limits
    waiting: list[tuple[int, QueueEntry]] = field(default_factory=list[tuple[int, QueueEntry]])
    running: dict[int, QueueEntry] = field(default_factory=dict[int, QueueEntry])
    started: list[int] = field(default_factory=list[int])
    last_served: Counter[str] = field(default_factory=Counter[str])

    def let_in(self) -> None:
        """Start runs, first of the channel that was served longest ago, then by arrival."""
        while len(self.running) < self.limits.runs:
            held = self.running.values()
            free = [
                (number, ticket)
                for number, ticket in self.waiting
                if sum(one.channel == ticket.channel for one in held) < self.limits.runs_per_channel
                and sum(one.user == ticket.user for one in held) < self.limits.runs_per_user
                and all(one.conversation != ticket.conversation for one in held)
            ]
            if not free:
                return
            number, ticket = min(free, key=lambda one: self.last_served[one[1].channel])
            self.waiting.remove((number, ticket))
            self.running[number] = ticket
            self.started.append(number)
            self.last_served[ticket.channel] = len(self.started)

    def leave(self, number: int) -> None:
        """Remove a waiting or running run."""
        self.waiting = [one for one in self.waiting if one[0] != number]
        self.running.pop(number, None)


SMALL = st.integers(1, 3)
TICKETS = st.builds(QueueEntry, *map(st.sampled_from, ("r", "abcd", "uvw", "12345")))
STEPS = st.lists(st.one_of(TICKETS, st.integers(0, 40)), max_size=60)


@given(
    limits=st.builds(Limits, runs=st.integers(1, 5), runs_per_channel=SMALL, runs_per_user=SMALL),
    steps=STEPS,
)
def test_it_agrees_with_the_plain_model(limits: Limits, steps: list[QueueEntry | int]) -> None:
    """Whoever arrives, ends or gives up, in whatever order: the same runs start, in the same order.

    A ticket arrives; a number ends the run that arrived in that place, waiting or running. The last
    position that each one heard is never nearer than where it is, and exact near the front.
    """

    async def play() -> None:
        model, queue = Model(limits), Queue(limits)
        started: list[int] = []
        heard: dict[int, int] = {}
        tasks: list[asyncio.Task[None]] = []

        async def run(number: int, ticket: QueueEntry) -> None:
            def moved(position: int) -> None:
                heard[number] = position

            async with queue.turn(ticket, moved):
                started.append(number)
                await asyncio.Event().wait()

        for step in steps:
            if isinstance(step, QueueEntry):
                number = len(tasks)
                tasks.append(asyncio.create_task(run(number, step)))
                model.waiting.append((number, step))
            elif step < len(tasks):
                tasks[step].cancel()
                await asyncio.wait({tasks[step]})
                model.leave(step)
            model.let_in()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert started == model.started
            for position, (number, _) in enumerate(model.waiting, 1):
                if position <= EXACT_POSITIONS:
                    assert heard[number] == position
                assert heard[number] >= position
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(play())
