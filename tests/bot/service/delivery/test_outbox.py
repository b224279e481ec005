"""The outbox: rate limits, order, fairness, and how long it tries, on a clock of the test's own."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
import structlog

from bot.errors import Gone, Malformed, NotAllowed, RateLimited, Unreachable, VenueError
from bot.service.delivery import outbox as module
from bot.service.delivery.outbox import (
    Lane,
    Outbox,
    Patience,
    RateLimits,
    Repeat,
    SharedRateLimits,
    Urgency,
)
from bot.service.metrics import Metrics
from storage.errors import DatabaseError
from storage.processes.coordination import Coordination

POSTS = Lane("posts:C1", interval=1.0)
FREE = Lane("edits:C1")


@dataclass
class Time:
    """A clock that jumps to the next wake-up when everybody sleeps."""

    now: float = 1000.0
    sleepers: list[tuple[float, int, asyncio.Future[None]]] = field(
        default_factory=list[tuple[float, int, asyncio.Future[None]]]
    )

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        waking = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.now + seconds, len(self.sleepers), waking))
        await waking

    async def run(self, *work: Awaitable[object]) -> list[object]:
        """Let time pass until all work is done; return the results or errors."""
        tasks = [asyncio.ensure_future(one) for one in work]
        while not all(task.done() for task in tasks):
            for _ in range(30):
                await asyncio.sleep(0)
            awake = [one for one in self.sleepers if not one[2].cancelled()]
            if all(task.done() for task in tasks) or not awake:
                continue
            first = min(awake)
            self.sleepers.remove(first)
            self.now = max(self.now, first[0])
            first[2].set_result(None)
        return await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class Platform:
    """Takes requests, or raises what a test says; records when it took each."""

    time: Time
    raises: list[VenueError] = field(default_factory=list[VenueError])
    taken: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    tried: int = 0

    def request(self, name: str) -> Callable[[], Awaitable[str]]:
        async def send() -> str:
            self.tried += 1
            if self.raises:
                raise self.raises.pop(0)
            self.taken.append((self.time.now - 1000.0, name))
            return name

        return send


def outbox(time: Time, **more: object) -> Outbox:
    """Open an outbox on the test's clock, without jitter."""
    return Outbox(clock=time, sleep=time.sleep, jitter=lambda: 1.0, **more)  # pyright: ignore[reportArgumentType] - named per test


@asynccontextmanager
async def ready(
    raises: Sequence[VenueError] = (), **more: object
) -> AsyncGenerator[tuple[Time, Platform, Outbox]]:
    """Open an outbox before a platform that raises these errors first."""
    time = Time()
    async with outbox(time, **more) as box:
        yield time, Platform(time, [*raises]), box


def always(urgency: Urgency) -> Callable[[], Urgency]:
    return lambda: urgency


async def sent(box: Outbox, request: Callable[[], Awaitable[str]], **more: object) -> str:
    """Send a request, a thread's if nothing else is said."""
    options: dict[str, object] = {"run": "r", "urgency": always(Urgency.THREAD), **more}
    lane = options.pop("lane", POSTS)
    return await box.send(lane, request, **options)  # pyright: ignore[reportArgumentType] - named per test


async def test_a_burst_goes_at_once_and_then_at_the_pace() -> None:
    """Three at first, then one every two seconds."""
    lane = Lane("updates", interval=2.0, burst=3)
    async with ready() as (time, platform, box):
        await time.run(*(sent(box, platform.request(str(n)), lane=lane) for n in range(5)))
    assert [at for at, _ in platform.taken] == [0, 0, 0, 2, 4]


async def test_lanes_within_another_share_its_rate_limit() -> None:
    """Each has its own as well; the most urgent of all goes first, and a run's lanes don't wait for each other."""
    whole = Lane("all", interval=0.5, burst=2, at_once=10)
    paced = Lane("posts", interval=3.0, within=whole)
    waiting = [Urgency.THREAD] * 3 + [Urgency.PROGRESS] * 2 + [Urgency.ANSWER]
    async with ready() as (time, platform, box):
        await time.run(
            sent(box, platform.request("paced 1"), lane=paced),
            sent(box, platform.request("paced 2"), lane=paced),
            *(
                sent(
                    box,
                    platform.request(urgency.name),
                    urgency=always(urgency),
                    lane=Lane(str(number), within=whole),
                )
                for number, urgency in enumerate(waiting)
            ),
        )
    assert [at for at, _ in platform.taken] == [0, 0, 0.5, 1, 1.5, 2, 2.5, 3]
    names = [name for _, name in platform.taken]
    assert names[:3] == ["ANSWER", "PROGRESS", "PROGRESS"]
    assert names[-1] == "paced 2"


async def test_a_request_that_waits_for_what_its_lane_is_within_is_counted_once() -> None:
    """It isn't counted any more once it is cancelled."""
    time = Time()
    hung = asyncio.Event()
    whole = Lane("all", at_once=1)

    async def hang() -> str:
        await hung.wait()
        return "at last"

    async with outbox(time) as box:
        first = asyncio.create_task(sent(box, hang, lane=Lane("a", within=whole)))
        second = asyncio.create_task(sent(box, hang, lane=Lane("b", within=whole)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert box.waiting() == {"thread": 1}
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert box.waiting() == {}
        hung.set()
        assert await first == "at last"


async def test_the_most_urgent_goes_first() -> None:
    """A first card, the answer, a running card, a thread; equals go in order of arrival."""
    waiting = [Urgency.THREAD, Urgency.PROGRESS, Urgency.ANSWER, Urgency.FIRST_CARD, Urgency.ANSWER]
    async with ready() as (time, platform, box):
        await time.run(
            *(
                sent(box, platform.request(urgency.name), urgency=always(urgency), run=str(number))
                for number, urgency in enumerate(waiting)
            )
        )
    names = [name for _, name in platform.taken]
    assert names == ["FIRST_CARD", "ANSWER", "ANSWER", "PROGRESS", "THREAD"]


async def test_an_edit_that_becomes_the_answer_moves_up() -> None:
    """Urgency is determined when the lane is free, not when the request arrives."""
    is_over = False
    async with ready() as (time, platform, box):

        async def progress() -> None:
            nonlocal is_over
            await time.sleep(1.5)
            is_over = True

        await time.run(
            *(
                sent(box, platform.request(f"edit {n}"), urgency=always(Urgency.PROGRESS), run=str(n))
                for n in range(4)
            ),
            sent(
                box,
                platform.request("answer"),
                urgency=lambda: Urgency.ANSWER if is_over else Urgency.PROGRESS,
                run="last",
            ),
            progress(),
        )
    assert [name for _, name in platform.taken].index("answer") == 2


async def test_runs_take_turns() -> None:
    """One run's twenty parts don't delay another's first."""
    time = Time()
    platform = Platform(time)

    async def thread(box: Outbox, run: str) -> None:
        for number in range(3):
            await sent(box, platform.request(f"{run}{number}"), run=run)

    async with outbox(time) as box:
        await time.run(*(thread(box, run) for run in "abc"))
    assert [name for _, name in platform.taken] == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


async def test_a_run_has_one_request_under_way() -> None:
    """A crash can leave one of its posts without a record, not two."""
    time = Time()
    under_way = most = 0
    lane = Lane("posts", at_once=8)

    async def post() -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return "posted"

    async with outbox(time) as box:
        await time.run(*(sent(box, post, lane=lane) for _ in range(4)))
        assert most == 1
        await time.run(*(sent(box, post, lane=lane, run=str(number)) for number in range(4)))
    assert most == 4


async def test_nothing_starves() -> None:
    """Behind a steady stream of answers, a thread's part goes within half a minute."""
    async with ready() as (time, platform, box):
        await time.run(
            *(
                sent(box, platform.request("answer"), urgency=always(Urgency.ANSWER), run=str(n))
                for n in range(100)
            ),
            sent(box, platform.request("part"), run="thread"),
            sent(box, platform.request("part"), run="other thread"),
        )
    assert [at for at, name in platform.taken if name == "part"] == [30, 60]


async def test_a_rate_limit_is_waited_out_without_spending_attempts() -> None:
    """However often, the whole lane waits as long as the platform says."""
    async with ready(raises=[RateLimited("too often", 30) for _ in range(100)]) as (
        time,
        platform,
        box,
    ):
        await time.run(sent(box, platform.request("a")), sent(box, platform.request("b"), run="s"))
    assert sorted(name for _, name in platform.taken) == ["a", "b"]
    assert platform.taken[0][0] == 3000


async def test_each_rate_limit_is_counted_and_logged() -> None:
    """By platform, with the seconds that it asks for."""
    time, metrics = Time(), Metrics()
    platform = Platform(time, raises=[RateLimited("too often", 30), RateLimited("too often", 5)])
    with structlog.testing.capture_logs() as logs:
        async with outbox(time, platform="slack", metrics=metrics) as box:
            await time.run(sent(box, platform.request("a")))
    assert dict(metrics.rate_limited) == {"slack": 2}
    assert [line["seconds"] for line in logs if line["event"] == "rate_limited"] == [30, 5]


async def test_temporary_errors_are_retried_with_growing_waits() -> None:
    """1, 2, 4, 8, 16, 30, 30 seconds."""
    async with ready(raises=[Unreachable("Slack is out of order") for _ in range(7)]) as (
        time,
        platform,
        box,
    ):
        await time.run(sent(box, platform.request("a"), lane=FREE))
    assert platform.taken == [(91, "a")]


async def test_lasting_errors_are_given_up_in_time() -> None:
    """After a quarter of an hour, or the caller's own limit."""
    async with ready(raises=[Unreachable("Slack is out of order") for _ in range(99)]) as (
        time,
        platform,
        box,
    ):
        [error] = await time.run(sent(box, platform.request("a"), lane=FREE))
        assert isinstance(error, Unreachable)
        assert 870 < time.now - 1000 <= 900
        begun = time.now
        [error] = await time.run(sent(box, platform.request("a"), lane=FREE, give_up=10))
        assert isinstance(error, Unreachable)
        assert time.now - begun <= 10


async def test_an_undocumented_error_is_tried_a_few_times() -> None:
    """It may be temporary, but that isn't documented."""
    async with ready(raises=[Unreachable("?", is_known=False) for _ in range(99)]) as (
        time,
        platform,
        box,
    ):
        [error] = await time.run(sent(box, platform.request("a"), lane=FREE))
    assert isinstance(error, Unreachable)
    assert platform.tried == 5


@pytest.mark.parametrize("refusal", [Gone("the card was deleted"), NotAllowed("no permission")])
async def test_a_refusal_is_believed_the_second_time(refusal: VenueError) -> None:
    """Five seconds later at the earliest."""
    async with ready(raises=[refusal]) as (time, platform, box):
        assert await time.run(sent(box, platform.request("a"), lane=FREE)) == ["a"]
        assert platform.taken == [(5, "a")]
        platform.raises = [refusal, refusal]
        assert await time.run(sent(box, platform.request("a"), lane=FREE)) == [refusal]
        platform.raises = [refusal]
        begun = time.now
        at_once = sent(box, platform.request("a"), lane=FREE, believes_at_once=True)
        assert await time.run(at_once) == [refusal]
        assert time.now == begun


async def test_a_malformed_request_is_not_sent_again() -> None:
    """It would be refused again."""
    async with ready(raises=[Malformed("invalid_blocks")]) as (time, platform, box):
        [error] = await time.run(sent(box, platform.request("a"), lane=FREE))
    assert isinstance(error, Malformed)
    assert platform.tried == 1


async def test_a_post_whose_response_was_lost_is_repeated_once() -> None:
    """A post is repeated after a minute, since it might show twice; an edit at once, and often."""
    time = Time()
    lost: list[VenueError] = [Unreachable("the response was lost", is_lost=True) for _ in range(9)]
    platform = Platform(time, raises=lost[:1])
    async with outbox(time) as box:
        await time.run(sent(box, platform.request("a"), lane=FREE, repeat=Repeat.ONCE))
        assert platform.taken == [(60, "a")]
        platform.raises, platform.tried = lost[:5], 0
        [error] = await time.run(sent(box, platform.request("a"), lane=FREE, repeat=Repeat.ONCE))
        assert isinstance(error, Unreachable)
        assert platform.tried == 2
        platform.raises, platform.tried = lost[:5], 0
        await time.run(sent(box, platform.request("a"), lane=FREE))
        assert platform.tried == 6


async def test_a_request_that_hangs_is_a_lost_response() -> None:
    """The lane is free again."""
    time = Time()
    hung = asyncio.Event()

    async def hang() -> str:
        await hung.wait()
        return "never"

    async with outbox(time, patience=Patience(request=0.005, give_up=0)) as box:
        with pytest.raises(Unreachable) as caught:
            await sent(box, hang)
        assert caught.value.is_lost
        assert await time.run(sent(box, Platform(time).request("a"))) == ["a"]


async def test_a_request_under_way_ends_although_its_caller_is_cancelled() -> None:
    """What it records while sending isn't lost; a request that only waits isn't sent."""
    time = Time()
    begun, going_on = asyncio.Event(), asyncio.Event()
    recorded: list[str] = []

    async def post() -> str:
        begun.set()
        await going_on.wait()
        recorded.append("message-1")
        return "message-1"

    async with outbox(time) as box:
        under_way = asyncio.create_task(sent(box, post, lane=FREE))
        await begun.wait()
        waiting = asyncio.create_task(sent(box, post, lane=FREE))
        await asyncio.sleep(0)
        assert box.waiting() == {"thread": 1}
        waiting.cancel()
        under_way.cancel()
        await asyncio.sleep(0)
        going_on.set()
        await asyncio.gather(under_way, waiting, return_exceptions=True)
        assert under_way.cancelled()
        assert waiting.cancelled()
        assert recorded == ["message-1"]
        assert box.waiting() == {}


async def test_rate_limits_that_fail_leave_nobody_waiting() -> None:
    """They may be shared by several processes, and out of reach."""

    class Broken(RateLimits):
        async def take(self, lane: Lane, urgency: Urgency) -> float:
            del lane, urgency
            raise RuntimeError("no database")

    time = Time()
    with structlog.testing.capture_logs() as logs:
        async with outbox(time, rate_limits=Broken(time), patience=Patience(give_up=0)) as box:
            [error] = await time.run(sent(box, Platform(time).request("a")))
    assert isinstance(error, Unreachable)
    assert [(line["event"], line["lane"]) for line in logs] == [("lane_broken", "posts:C1")]


@pytest.mark.parametrize("missing", [1e-12, 1e-9, 5e-7])
async def test_a_wait_that_no_timer_tells_apart_is_over(missing: float) -> None:
    """A timer for it fires at once: a lane whose clock stands still meanwhile would wait for ever."""
    time = Time()
    limits, lane = RateLimits(time), Lane("a", interval=2.0)
    assert await limits.take(lane, Urgency.ANSWER) == 0.0
    time.now += 2.0 - missing
    assert await limits.take(lane, Urgency.ANSWER) == 0.0
    time.now += 1.0
    assert await limits.take(lane, Urgency.ANSWER) > 0.9


async def test_idle_lanes_are_forgotten() -> None:
    """Thousands of channels leave nothing behind."""
    time = Time()
    limits = RateLimits(time)
    async with outbox(time, rate_limits=limits) as box:
        for number in range(2000):
            platform = Platform(time)
            await time.run(sent(box, platform.request("a"), lane=Lane(f"posts:{number}", interval=1)))
            time.now += 2
    assert len(limits._full_at) < 20  # pyright: ignore[reportPrivateUsage] - nothing else shows what is kept
    assert not box._queues  # pyright: ignore[reportPrivateUsage] - likewise


async def settle() -> None:
    """Let everything happen that waits for nothing."""
    for _ in range(30):
        await asyncio.sleep(0)


@dataclass
class Shared:
    """Rate limits that processes share, in reach or not."""

    is_there: bool = True
    taken: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    blocked: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])

    async def take(self, *what: object) -> float:
        """Count a request; say that the next one has to wait for three seconds."""
        if not self.is_there:
            raise DatabaseError("it is locked")
        self.taken.append(what)
        return 3.0

    async def block(self, name: str, seconds: float) -> None:
        if not self.is_there:
            raise DatabaseError("it is locked")
        self.blocked.append((name, seconds))


async def test_processes_share_a_lane_that_has_an_interval() -> None:
    """Another one is only ever blocked, and each process learns that by itself."""
    shared = Shared()
    limits = SharedRateLimits(cast("Coordination", shared), "p1")
    assert await limits.take(POSTS, Urgency.ANSWER) == 3.0
    assert shared.taken == [("posts:C1", 1.0, 1, Urgency.ANSWER, "p1")]
    assert await limits.take(FREE, Urgency.ANSWER) == 0.0
    for lane in (POSTS, FREE):
        await limits.block(lane, 9.0)
    assert shared.blocked == [("posts:C1", 9.0)]
    assert 8 < await limits.take(FREE, Urgency.ANSWER) <= 9
    assert len(shared.taken) == 1


async def test_a_process_cut_off_from_the_others_keeps_its_own_limits() -> None:
    """A refusal has to reach its asker; the log says that the others are unknown."""
    limits = SharedRateLimits(cast("Coordination", Shared(is_there=False)), "p1")
    with structlog.testing.capture_logs() as logs:
        assert await limits.take(POSTS, Urgency.ANSWER) == 0.0
        assert 0 < await limits.take(POSTS, Urgency.ANSWER) <= 1
    assert [line["event"] for line in logs] == ["rate_limits_unknown"] * 2
    await limits.block(POSTS, 9.0)
    assert 8 < await limits.take(POSTS, Urgency.ANSWER) <= 9


async def test_other_processes_see_the_most_urgent_request_that_may_be_sent() -> None:
    """What has waited for half a minute counts as the most urgent of all."""
    seen: list[tuple[float, Urgency]] = []

    class Seeing(RateLimits):
        async def take(self, lane: Lane, urgency: Urgency) -> float:
            seen.append((time.now - 1000, urgency))
            return await super().take(lane, urgency)

    time = Time()
    platform, slow = Platform(time), Lane("slow", interval=15.0)
    async with outbox(time, rate_limits=Seeing(time)) as box:
        await time.run(
            *(
                sent(box, platform.request("a"), lane=slow, run=str(number), urgency=always(urgency))
                for number, urgency in enumerate(
                    (Urgency.THREAD, Urgency.PROGRESS, Urgency.ANSWER, Urgency.THREAD)
                )
            )
        )
    assert seen == [
        (0, Urgency.ANSWER),
        (0, Urgency.PROGRESS),
        (15, Urgency.PROGRESS),
        (15, Urgency.THREAD),
        (30, Urgency.FIRST_CARD),
        (30, Urgency.FIRST_CARD),
        (45, Urgency.FIRST_CARD),
    ]


async def test_a_late_request_is_counted_and_logged() -> None:
    """From half a minute on, by its urgency."""
    time, metrics = Time(), Metrics()
    platform, slow = Platform(time), Lane("slow", interval=15.0)
    with structlog.testing.capture_logs() as logs:
        async with outbox(time, platform="slack", metrics=metrics) as box:
            waiting = [sent(box, platform.request("a"), lane=slow, run=str(n)) for n in range(4)]
            await time.run(*waiting)
    assert dict(metrics.sent_late) == {("slack", "thread"): 2}
    late = [line for line in logs if line["event"] == "sent_late"]
    assert [(line["lane"], line["urgency"], line["seconds"]) for line in late] == [
        ("slow", "THREAD", 30),
        ("slow", "THREAD", 45),
    ]


async def test_a_lane_remembers_whom_it_served_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was served longest ago is forgotten first, and then goes first."""
    monkeypatch.setattr(module, "MOST_REMEMBERED", 3)
    time, lane = Time(), Lane("updates", at_once=2)
    platform, ends = Platform(time), asyncio.Event()

    async def hold() -> str:
        await ends.wait()
        return "held"

    async with outbox(time) as box:
        holding = [asyncio.create_task(sent(box, hold, lane=lane, run="y"))]
        await settle()  # a lane that nobody uses is forgotten
        for run in "abac":
            await sent(box, platform.request(run), lane=lane, run=run)
        holding.append(asyncio.create_task(sent(box, hold, lane=lane, run="z")))
        await settle()
        later = [
            asyncio.create_task(sent(box, platform.request(f"{run} again"), lane=lane, run=run))
            for run in "ab"
        ]
        await settle()
        ends.set()
        await asyncio.gather(*holding, *later)
    assert [name for _, name in platform.taken[4:]] == ["b again", "a again"]


async def test_what_waits_to_be_sent_again_is_counted() -> None:
    """Until it is sent."""
    async with ready(raises=[Unreachable("Slack is out of order")]) as (time, platform, box):
        sending = asyncio.create_task(sent(box, platform.request("a"), lane=FREE))
        await settle()
        assert box.waiting() == {"thread": 1}
        assert await time.run(sending) == ["a"]
        assert box.waiting() == {}


async def test_a_request_that_comes_later_goes_beside_one_that_hangs() -> None:
    """Where several may be under way; elsewhere it waits."""
    time, hung = Time(), asyncio.Event()
    wide = Lane("updates", at_once=2)

    async def hang() -> str:
        await hung.wait()
        return "at last"

    async with outbox(time) as box:
        for lane, taken in ((wide, ["a"]), (FREE, [])):
            platform = Platform(time)
            hanging = asyncio.create_task(sent(box, hang, lane=lane, run="hanging"))
            await settle()
            other = asyncio.create_task(sent(box, platform.request("a"), lane=lane))
            await settle()
            assert [name for _, name in platform.taken] == taken
            hung.set()
            assert await asyncio.gather(hanging, other) == ["at last", "a"]
            hung.clear()


async def test_nothing_runs_once_the_outbox_is_closed() -> None:
    """Not even for a request that hangs."""
    time, before = Time(), asyncio.all_tasks()
    async with outbox(time) as box:
        hanging = asyncio.create_task(sent(box, asyncio.Event().wait, lane=FREE))  # pyright: ignore[reportArgumentType] - never done
        await settle()
        pumps = {task for task in asyncio.all_tasks() - before if "_pump" in repr(task)}
        assert len(pumps) == 1
    assert all(task.done() for task in pumps)
    hanging.cancel()


async def test_a_hanging_request_whose_caller_is_cancelled_has_some_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then it is cancelled, too."""
    assert 1 <= module.FINISH_SECONDS <= 10
    monkeypatch.setattr(module, "FINISH_SECONDS", 0.001)
    cancelled = asyncio.Event()

    async def hang() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    async with outbox(Time()) as box:
        sending = asyncio.create_task(sent(box, hang, lane=FREE))
        await settle()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await asyncio.wait_for(cancelled.wait(), 1)


async def test_a_request_cancelled_when_its_turn_has_come_frees_the_lane() -> None:
    """Before it could be sent."""
    tasks: list[asyncio.Task[str]] = []

    class Cancelling(RateLimits):
        async def take(self, lane: Lane, urgency: Urgency) -> float:
            asyncio.get_running_loop().call_soon(tasks[0].cancel)
            return await super().take(lane, urgency)

    time = Time()
    platform = Platform(time)
    async with outbox(time, rate_limits=Cancelling(time)) as box:
        tasks.append(asyncio.create_task(sent(box, platform.request("a"), lane=FREE)))
        await settle()
        assert tasks[0].cancelled()
        other = asyncio.create_task(sent(box, platform.request("b"), lane=FREE))
        await settle()
        assert other.done()
    assert [name for _, name in platform.taken] == ["b"]


async def test_attempts_of_several_do_not_come_back_together() -> None:
    """Chance takes up to half of each wait."""
    time = Time()
    platform = Platform(time, raises=[Unreachable("Slack is out of order") for _ in range(3)])
    async with Outbox(clock=time, sleep=time.sleep, jitter=lambda: 0.0) as box:
        await time.run(sent(box, platform.request("a"), lane=FREE))
    assert platform.taken == [(3.5, "a")]


async def test_a_request_is_sent_only_while_its_run_may() -> None:
    """That is asked again before each attempt, once its turn has come."""
    time = Time()
    platform, asked = Platform(time), list[str]()

    async def may_send(run: str) -> None:
        asked.append(run)
        if len(asked) == 1:
            raise Unreachable("the database is away")

    async with outbox(time, may_send=may_send) as box:
        await time.run(sent(box, platform.request("a"), lane=FREE, run="r"))
    assert asked == ["r", "r"]
    assert (platform.tried, platform.taken) == (1, [(1, "a")])


async def test_a_caller_may_decide_itself_whether_to_repeat_a_lost_post() -> None:
    """What was certainly not carried out is repeated all the same."""
    async with ready(raises=[Unreachable("the response was lost", is_lost=True)]) as (
        time,
        platform,
        box,
    ):
        post = sent(box, platform.request("a"), lane=FREE, repeat=Repeat.NEVER)
        assert [type(error) for error in await time.run(post)] == [Unreachable]
        assert platform.tried == 1
        platform.raises = [Unreachable("Slack is out of order", is_known=True)]
        post = sent(box, platform.request("b"), lane=FREE, repeat=Repeat.NEVER)
        assert await time.run(post) == ["b"]


async def test_how_long_a_lane_is_held_back_is_counted() -> None:
    """All of its waits, by platform."""
    time, metrics = Time(), Metrics()
    platform = Platform(time)
    async with outbox(time, platform="slack", metrics=metrics) as box:
        await time.run(*(sent(box, platform.request("a"), run=str(number)) for number in range(3)))
    assert metrics.held_seconds == {"slack": 2.0}


async def test_a_request_may_be_tried_until_its_last_second() -> None:
    """A wait that ends with it is still worth it."""
    async with ready(raises=[Unreachable("Slack is out of order")]) as (time, platform, box):
        assert await time.run(sent(box, platform.request("a"), lane=FREE, give_up=1)) == ["a"]
