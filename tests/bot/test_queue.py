"""The queue: bounds, arrival order, fairness between channels, one run a conversation."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from bot.queue import Limits, Queue, Ticket


class Line:
    """A queue with named runs; remembers who was let in, and each one's last position."""

    def __init__(self, **limits: int) -> None:
        self.queue = Queue(Limits.model_validate(limits))
        self.started: list[str] = []
        self.positions: dict[str, list[int]] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def arrive(
        self, name: str, channel: str = "c", user: str = "", conversation: str = ""
    ) -> None:
        """Let a run take its place."""
        ticket = Ticket(channel, user or name, conversation or name)
        self._ends[name] = asyncio.Event()
        self.positions[name] = []

        async def run() -> None:
            async with self.queue.turn(ticket, self.positions[name].append):
                self.started.append(name)
                await self._ends[name].wait()

        self._tasks[name] = asyncio.create_task(run())
        await asyncio.sleep(0)

    async def end(self, name: str) -> None:
        """Let a run end."""
        self._ends[name].set()
        await self._tasks[name]
        await asyncio.sleep(0)

    async def give_up(self, name: str) -> None:
        """Cancel a run."""
        self._tasks[name].cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._tasks[name]
        await asyncio.sleep(0)

    async def close(self) -> None:
        """End everything."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def test_runs_within_the_limits_start_at_once() -> None:
    """Nobody hears a position."""
    line = Line(runs=2)
    await line.arrive("one")
    await line.arrive("two")
    assert line.started == ["one", "two"]
    assert line.positions == {"one": [], "two": []}
    await line.close()


async def test_what_waits_hears_its_position_as_it_moves_up() -> None:
    """1 is next."""
    line = Line(runs=1)
    for name in ("one", "two", "three"):
        await line.arrive(name)
    assert (line.started, line.positions["two"], line.positions["three"]) == (["one"], [1], [2])
    await line.end("one")
    assert line.started == ["one", "two"]
    assert line.positions["three"] == [2, 1]
    await line.close()


async def test_a_channel_has_its_own_bound() -> None:
    """Other channels go past it."""
    line = Line(runs_per_channel=1)
    await line.arrive("one", "a")
    await line.arrive("two", "a")
    await line.arrive("three", "b")
    assert line.started == ["one", "three"]
    await line.close()


async def test_a_user_has_a_bound_of_their_own() -> None:
    """In whatever channel they ask."""
    line = Line(runs_per_user=1)
    await line.arrive("one", "a", "ada")
    await line.arrive("two", "b", "ada")
    await line.arrive("three", "b", "bob")
    assert line.started == ["one", "three"]
    await line.end("one")
    assert line.started == ["one", "three", "two"]
    await line.close()


async def test_a_conversation_has_one_run_at_a_time() -> None:
    """The next one waits for it."""
    line = Line()
    await line.arrive("one", conversation="x")
    await line.arrive("two", conversation="x")
    assert line.started == ["one"]
    await line.end("one")
    assert line.started == ["one", "two"]
    await line.close()


async def test_channels_take_turns() -> None:
    """A channel that fills the queue doesn't keep the others out."""
    line = Line(runs=1)
    for number in range(3):
        await line.arrive(f"a{number}", "a", user=f"u{number}")
    await line.arrive("b0", "b")
    for name in ("a0", "b0", "a1"):
        await line.end(name)
    assert line.started == ["a0", "b0", "a1", "a2"]
    await line.close()


async def test_giving_up_frees_the_place() -> None:
    """Waiting or running."""
    line = Line(runs=1)
    for name in ("one", "two", "three"):
        await line.arrive(name)
    await line.give_up("two")
    assert line.positions["three"][-1] == 1
    await line.give_up("one")
    assert line.started == ["one", "three"]
    await line.close()


async def test_a_run_that_raises_leaves_its_place() -> None:
    """Its error passes through."""
    queue = Queue(Limits(runs=1))
    ticket = Ticket("c", "u", "x")
    with pytest.raises(RuntimeError):
        async with queue.turn(ticket, lambda _: None):
            raise RuntimeError
    async with AsyncExitStack() as stack:
        await asyncio.wait_for(stack.enter_async_context(queue.turn(ticket, lambda _: None)), 1)
