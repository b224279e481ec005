"""Deleting the bot's messages about what was forgotten, in virtual time and over a real database."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from typing_extensions import override

from bot.errors import NotAllowed, Unreachable, VenueError
from bot.service import work
from bot.service.work import FIRST_WAIT, WorkLoop, retracting
from council.document.conversation import Source
from storage.processes.locks import FileLocks
from storage.work import AGAIN, DAYS, Left, Work, WorkList
from tests.faults.virtual_time import VirtualLoop, run
from tests.library import open_library

NO_ACCESS = "the bot has no access to this channel"
LATE = 20.0
BEGAN = datetime(2026, 1, 20, tzinfo=UTC)


@dataclass
class Platform:
    """A platform that deletes or refuses; `asked` are the messages in order, with the time of each."""

    loop: VirtualLoop
    refuses: dict[str, VenueError] = field(default_factory=dict[str, VenueError])
    asked: list[str] = field(default_factory=list[str])
    at: list[float] = field(default_factory=list[float])

    async def retract(self, one: Work) -> None:
        """Delete a message, unless it or its channel is refused."""
        await asyncio.sleep(0.01)
        self.asked.append(one.item)
        self.at.append(self.loop.time())
        if error := self.refuses.get(one.item) or self.refuses.get(one.channel):
            raise error


class UnsureLocks(FileLocks):
    """Locks of which nobody can be sure once their database doesn't answer; `log` says who had them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.unsure = asyncio.Event()
        self.log: list[str] = []

    @override
    @asynccontextmanager
    async def acquire(
        self, name: str, *, wait: float = 0.0, shared: bool = False
    ) -> AsyncGenerator[bool]:
        self.log.append(f"took {name}")
        try:
            yield True
        finally:
            self.log.append(f"gave {name}")

    @override
    async def until_unsure(self) -> None:
        await self.unsure.wait()


@dataclass
class Scene:
    """What is listed, and what deletes it."""

    loop: VirtualLoop
    platform: Platform
    work: WorkList
    works: WorkLoop

    async def list(self, forgetting: str, channel: str, messages: Sequence[str]) -> None:
        for message in messages:
            where = Source(platform="slack", workspace="T", channel=channel)
            await self.work.retract(where, message, forgetting)

    async def soon(self, forgetting: str) -> Left:
        return await self.works.settled("slack", forgetting, LATE)


def played(
    folder: Path, play: Callable[[Scene], Awaitable[None]], locks: FileLocks | None = None
) -> None:
    """Run a test over an empty library."""

    async def main(loop: VirtualLoop) -> None:
        async with open_library(folder) as library:

            def now() -> datetime:
                return BEGAN + timedelta(seconds=loop.time())

            listed = WorkList(library.database, now)
            works = WorkLoop(listed, locks or library.locks)
            scene = Scene(loop, Platform(loop), listed, works)
            works.open({"retract": retracting(scene.platform.retract)}, "slack")
            await play(scene)
            await works.close("slack")

    run(main)


def test_what_is_listed_is_deleted_in_order_each_forgetting_beside_the_others(tmp_path: Path) -> None:
    """A small one doesn't wait for a large one."""

    async def play(scene: Scene) -> None:
        await scene.list("large", "C1", [f"1.{number}" for number in range(100)])
        await scene.list("small", "C1", ["2.0", "2.1"])
        assert await scene.soon("small") == Left()
        assert len(scene.platform.asked) < 20
        assert await scene.soon("large") == Left()
        large = [message for message in scene.platform.asked if message.startswith("1.")]
        assert large == [f"1.{number}" for number in range(100)]
        assert max(Counter(scene.platform.asked).values()) == 1

    played(tmp_path, play)


def test_without_its_database_a_process_deletes_nothing_more(tmp_path: Path) -> None:
    """Another may soon do it: the lock is given back, and taken again once its holder is known."""
    locks = UnsureLocks(tmp_path)

    async def play(scene: Scene) -> None:
        await asyncio.sleep(1)
        locks.unsure.set()
        await asyncio.sleep(1)
        locks.unsure.clear()
        assert locks.log == ["took retract-slack", "gave retract-slack"]
        await scene.list("one", "C1", ["1.0"])
        await asyncio.sleep(FIRST_WAIT)
        assert scene.platform.asked == ["1.0"]
        assert locks.log[2:] == ["took retract-slack"]

    played(tmp_path, play, locks)


def test_a_refusal_is_tried_again_each_hour_and_at_a_start(tmp_path: Path) -> None:
    """After three in a row in a channel, the rest of it isn't asked for."""

    async def play(scene: Scene) -> None:
        scene.platform.refuses["C1"] = NotAllowed(NO_ACCESS)
        await scene.list("one", "C1", [f"1.{number}" for number in range(50)])
        await scene.list("one", "C2", ["2.0"])
        left = await scene.soon("one")
        assert left == Left(0, {NO_ACCESS: 50})
        assert scene.platform.asked == ["1.0", "1.1", "1.2", "2.0"]
        await asyncio.sleep(AGAIN.total_seconds() + 60)
        assert len(scene.platform.asked) == 7
        scene.platform.refuses.clear()
        await scene.works.close("slack")
        scene.works.open({"retract": retracting(scene.platform.retract)}, "slack")
        await asyncio.sleep(LATE)
        assert await scene.soon("one") == Left()

    played(tmp_path, play)


def test_a_platform_out_of_reach_is_asked_again_for_the_same_message(tmp_path: Path) -> None:
    """It is no refusal: whoever waits hears that it isn't done yet."""

    async def play(scene: Scene) -> None:
        scene.platform.refuses["1.1"] = Unreachable("no answer")
        await scene.list("one", "C1", ["1.0", "1.1", "1.2"])
        assert await scene.soon("one") == Left(2)
        scene.platform.refuses.clear()
        await asyncio.sleep(FIRST_WAIT)
        assert await scene.soon("one") == Left()
        assert scene.platform.asked == ["1.0", "1.1", "1.1", "1.2"]

    played(tmp_path, play)


def test_after_seven_days_the_log_names_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has been tried, those of a channel that is closed to the bot too; and nothing is any more."""
    monkeypatch.setattr(work, "LOOK_SECONDS", AGAIN.total_seconds() / 2)

    async def play(scene: Scene) -> None:
        scene.platform.refuses["C1"] = NotAllowed(NO_ACCESS)
        listed = [f"1.{number}" for number in range(6)]
        await scene.list("one", "C1", listed)
        with capture_logs() as logs:
            await asyncio.sleep(timedelta(days=DAYS).total_seconds() + 2 * AGAIN.total_seconds())
        [said] = [entry for entry in logs if entry["event"] == "messages_not_deleted"]
        assert (said["channel"], said["messages"]) == ("C1", listed)
        assert {*scene.platform.asked} == {*listed}
        assert await scene.soon("one") == Left()
        before = len(scene.platform.asked)
        await asyncio.sleep(2 * AGAIN.total_seconds())
        assert len(scene.platform.asked) == before

    played(tmp_path, play)


@pytest.mark.parametrize("refused", [set[str](), {"1.4"}])
def test_what_no_process_tried_for_seven_days_is_tried(tmp_path: Path, refused: set[str]) -> None:
    """After a time off, or by a clock that is ahead: only what is refused then is given up."""

    async def play(scene: Scene) -> None:
        scene.platform.refuses = dict.fromkeys(refused, NotAllowed(NO_ACCESS))
        await scene.works.close("slack")
        listed = [f"1.{number}" for number in range(6)]
        await scene.list("one", "C1", listed)
        await asyncio.sleep(timedelta(days=DAYS + 1).total_seconds())
        with capture_logs() as logs:
            scene.works.open({"retract": retracting(scene.platform.retract)}, "slack")
            assert await scene.soon("one") == Left()
        assert scene.platform.asked == listed
        named = [entry["messages"] for entry in logs if entry["event"] == "messages_not_deleted"]
        assert named == [[*refused]] * len(refused)

    played(tmp_path, play)


def test_a_start_continues_where_an_earlier_process_stopped(tmp_path: Path) -> None:
    """What is deleted isn't asked for again, but for the one request whose record was lost."""

    async def play(scene: Scene) -> None:
        await scene.list("one", "C1", [f"1.{number}" for number in range(10)])
        waiting = asyncio.create_task(scene.soon("one"))
        while len(scene.platform.asked) < 2:
            await asyncio.sleep(0.001)
        waiting.cancel()
        await scene.works.close("slack")
        scene.works.open({"retract": retracting(scene.platform.retract)}, "slack")
        assert await scene.soon("one") == Left()
        assert {*scene.platform.asked} == {f"1.{number}" for number in range(10)}
        assert len(scene.platform.asked) <= 11

    played(tmp_path, play)
