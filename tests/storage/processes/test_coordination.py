"""What several processes share: who waits, who may write, which clicks count, and what may be sent."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import LiteralString

import psycopg
import pytest

from council.document.conversation import Source
from storage.errors import BudgetExceeded, ConstraintError, QueueFull, RunSuperseded
from storage.journal.journal import Journal
from storage.journal.rows import Begun, MentionState, Payer, Reservation, RunRow
from storage.postgres.database import PostgresDatabase, open_postgres
from storage.processes.coordination import Bounds, Coordination, QueueEntry, State, Watched
from storage.stores import Stores
from tests.storage.journal.test_journal import REPLY, RUN, call
from tests.stores import Home

BOUNDS = Bounds(waiting_per_channel=12, waiting_per_user=7, cooldown=0.0)
HOUR = 3600.0
PAYER = Payer(user="u", channel="c", workspace="w")
RESERVATION = Reservation(payer=PAYER, amount=5, unpriced_call=0, limits={("user", "day"): 10})


def entry_of(run: str, user: str = "ada", channel: str = "C", conversation: str = "") -> QueueEntry:
    """A run's entry, in a conversation of its own where none is named."""
    return QueueEntry(run, channel, user, conversation or f"conversation of {run}")


@dataclass(frozen=True)
class Process:
    """One process's view of the database."""

    address: str
    database: PostgresDatabase
    journal: Journal
    coordination: Coordination

    async def begin(self, entry: QueueEntry, bounds: Bounds | None = None) -> Begun:
        run = replace(RUN, id=entry.run, entry_key=entry.run, conversation_id=entry.conversation)
        return await self.journal.begin(run, entry=entry, bounds=bounds)

    async def line_up(self, *entries: QueueEntry) -> None:
        """Begin runs that wait, one after the other."""
        for entry in entries:
            await self.begin(entry)
            assert await self.coordination.ready(entry.run)

    async def state(self, run: str) -> State | None:
        """Return the state of a run's entry, if it has one."""
        return (await self.coordination.watch([run]))[run].state

    def operate(self, sql: LiteralString) -> None:
        """Change something past the program, as the passing of time would."""
        with psycopg.connect(self.address, autocommit=True) as operator:
            operator.execute(sql)


@asynccontextmanager
async def process(address: str) -> AsyncGenerator[Process]:
    async with open_postgres(address) as database:
        yield Process(address, database, Journal(database), Coordination(database))


@pytest.fixture
async def one(postgres: str) -> AsyncIterator[Process]:
    async with process(postgres) as opened:
        yield opened


@pytest.fixture
async def other(postgres: str, one: Process) -> AsyncIterator[Process]:
    """Another process on the same database."""
    del one
    async with process(postgres) as opened:
        yield opened


# The queue


async def test_bounds_hold_between_processes(one: Process, other: Process) -> None:
    """Of forty questions at once in two processes, as many begin as may wait; the others are refused."""
    asked = await asyncio.gather(
        *((one, other)[n % 2].begin(entry_of(f"{n}", f"user {n % 2}"), BOUNDS) for n in range(40)),
        return_exceptions=True,
    )
    begun = [each.run.id for each in asked if isinstance(each, Begun)]
    refused = [each for each in asked if isinstance(each, QueueFull)]
    assert (len(begun), len(refused)) == (12, 28), asked
    assert await one.coordination.present([f"{n}" for n in range(40)]) == {*begun}
    assert max(sum(int(run) % 2 == user for run in begun) for user in (0, 1)) <= 7
    assert [row["id"] for row in await one.database.read("SELECT id FROM runs ORDER BY id")] == sorted(
        begun
    )


async def test_the_bound_that_is_reached_is_named(one: Process) -> None:
    """First the person's, then the channel's; nothing is written, and whoever is elsewhere may ask."""
    bounds = replace(BOUNDS, waiting_per_user=1, waiting_per_channel=2)
    await one.begin(entry_of("1", "ada"), bounds)
    with pytest.raises(QueueFull, match="too many questions of a user wait") as refused:
        await one.begin(entry_of("2", "ada"), bounds)
    assert (refused.value.bound, refused.value.left) == ("user", 0.0)
    await one.begin(entry_of("3", "bob"), bounds)
    with pytest.raises(QueueFull, match="too many questions of a channel wait") as refused:
        await one.begin(entry_of("4", "cyd"), bounds)
    assert refused.value.bound == "channel"
    await one.begin(entry_of("5", "cyd", "D"), bounds)
    assert [await one.journal.get(run) for run in "24"] == [None, None]


async def test_what_a_worker_has_claimed_does_not_wait(one: Process) -> None:
    """So the person may ask again."""
    bounds = replace(BOUNDS, waiting_per_user=1)
    await one.begin(entry_of("1"), bounds)
    await one.coordination.prioritize("1")
    with pytest.raises(QueueFull):
        await one.begin(entry_of("2"), bounds)
    await one.journal.claim("1", "A")
    await one.begin(entry_of("2"), bounds)


async def test_a_cooldown_counts_from_the_last_accepted_question(one: Process, other: Process) -> None:
    """A refused one doesn't prolong it; the error says how many seconds are left, at most the cooldown."""
    bounds = replace(BOUNDS, cooldown=HOUR)
    await one.begin(entry_of("1"), bounds)
    one.operate("UPDATE last_asked SET at = at - interval '30 minutes'")
    with pytest.raises(QueueFull, match="asked again too soon") as refused:
        await other.begin(entry_of("2"), bounds)
    assert refused.value.bound == "cooldown"
    assert HOUR / 2 - 300 < refused.value.left < HOUR / 2
    await other.begin(entry_of("3", "bob"), bounds)
    one.operate("UPDATE last_asked SET at = at - interval '30 minutes'")
    await other.begin(entry_of("2"), bounds)


async def test_a_question_without_room_in_the_budget_starts_no_cooldown(one: Process) -> None:
    """Nothing of it is written: neither run, entry nor the time it was asked."""
    bounds = replace(BOUNDS, cooldown=HOUR)
    dear = replace(RESERVATION, amount=11)
    entry = entry_of(RUN.id)
    with pytest.raises(BudgetExceeded):
        await one.journal.begin(RUN, reservation=dear, entry=entry, bounds=bounds)
    assert await one.coordination.present([RUN.id]) == set()
    assert (await one.journal.begin(RUN, reservation=RESERVATION, entry=entry, bounds=bounds)).created


async def test_a_redelivery_finds_its_run_whatever_the_bounds_say(one: Process, other: Process) -> None:
    """A full queue refuses new questions, not the same question again."""
    bounds = replace(BOUNDS, waiting_per_user=1, waiting_per_channel=1, cooldown=HOUR)
    first = await one.begin(entry_of("1"), bounds)
    again = await other.begin(entry_of("1"), bounds)
    assert (again.created, again.run) == (False, first.run)


async def test_two_processes_admit_no_more_than_may_run(one: Process, other: Process) -> None:
    """However often both ask at once, each run is admitted by one call, and none beyond the bounds."""
    await one.line_up(*(entry_of(f"{n:02}", f"user {n % 4}", f"channel {n % 3}") for n in range(24)))
    let_in = await asyncio.gather(*((one, other)[n % 2].coordination.admit(3, 2) for n in range(10)))
    admitted = [run for runs in let_in for run in runs]
    assert len(admitted) == len({*admitted})
    # Each of the first eight has one of the four people's two places; no channel has more than three.
    assert sorted(admitted) == [f"{n:02}" for n in range(8)]


async def test_runs_start_in_the_order_of_their_arrival(one: Process) -> None:
    """A run that a bound keeps waiting doesn't keep those of other people waiting."""
    await one.line_up(
        entry_of("1", "ada"),
        entry_of("2", "ada"),
        entry_of("3", "ada"),
        entry_of("4", "bob"),
        entry_of("5", "bob", "D"),
        entry_of("6", "cyd"),
    )
    assert await one.coordination.admit(3, 2) == ["1", "2", "4", "5"]
    assert await one.coordination.admit(3, 2) == []
    await one.coordination.leave("2", "A")
    assert await one.coordination.admit(3, 2) == ["3"]


async def test_what_is_claimed_or_halted_keeps_its_place(one: Process) -> None:
    """Only one that has left makes room."""
    await one.line_up(*(entry_of(f"{n}", f"user {n}") for n in range(5)))
    assert await one.coordination.admit(2, 2) == ["0", "1"]
    await one.journal.claim("0", "A")
    await one.coordination.halt(["0", "1"])
    assert await one.coordination.admit(2, 2) == []
    await one.coordination.leave("0", "A")
    assert await one.coordination.admit(2, 2) == ["2"]


async def test_a_conversation_has_one_run_at_a_time(one: Process) -> None:
    """Its next question waits until the run before it has left, wherever it was asked."""
    await one.line_up(
        entry_of("1", conversation="same"),
        entry_of("2", "bob", "D", conversation="same"),
        entry_of("3", "cyd", "E"),
    )
    assert await one.coordination.admit(5, 5) == ["1", "3"]
    await one.coordination.leave("1", "A")
    assert await one.coordination.admit(5, 5) == ["2"]


async def test_an_accepted_run_waits_only_when_it_is_ready(one: Process) -> None:
    """Its card is shown first; to say so twice changes nothing."""
    await one.begin(entry_of("1"))
    assert await one.coordination.admit(5, 5) == []
    assert await one.coordination.ready("1")
    assert not await one.coordination.ready("1")
    assert await one.coordination.admit(5, 5) == ["1"]
    assert not await one.coordination.ready("1")


async def test_a_run_in_a_hurry_ignores_the_bounds(one: Process) -> None:
    """It is admitted once, and counts as started."""
    await one.line_up(entry_of("1"), entry_of("2"))
    await one.begin(entry_of("3"))
    assert [await one.coordination.prioritize(run) for run in ("2", "3", "3", "missing")] == [
        True,
        True,
        False,
        False,
    ]
    assert await one.coordination.admit(2, 2) == []


async def test_positions_count_what_nobody_has_claimed(one: Process) -> None:
    """The next has position 1; whoever is claimed or has left has none."""
    await one.line_up(*(entry_of(f"{n}") for n in range(3)))
    await one.begin(entry_of("3"))
    assert await one.coordination.admit(2, 2) == ["0", "1"]
    await one.journal.claim("0", "A")
    assert await one.coordination.positions(["0", "3", "1", "missing"]) == {"1": 1, "3": 3}


async def test_a_watched_run_tells_what_has_changed(one: Process, other: Process) -> None:
    """Presses of Stop, other claims and the state are seen by every process; a forgotten run is missing."""
    await one.line_up(entry_of("1"), entry_of("2"), entry_of("3"))
    await one.journal.claim("1", "A")
    await one.journal.press_stop("1")
    await one.coordination.leave("2", "A")
    await one.database.write(("DELETE FROM runs WHERE id = ?", ("3",)))
    assert await other.coordination.watch(["1", "2", "3"]) == {
        "1": Watched(1, 1, "claimed"),
        "2": Watched(0, 0, None),
    }


async def test_a_claim_keeps_a_halted_run_halted(one: Process) -> None:
    """Its worker is known nevertheless."""
    await one.line_up(entry_of("1"))
    await one.coordination.halt(["1"])
    await one.journal.claim("1", "B")
    [row] = await one.database.read("SELECT state, worker FROM turns")
    assert dict(row) == {"state": "halted", "worker": "B"}


async def test_a_forgotten_run_leaves_nothing_in_the_queue(one: Process) -> None:
    """Neither its entry nor when its asker last asked."""
    await one.begin(entry_of("1"), replace(BOUNDS, cooldown=HOUR))
    await one.database.write(("DELETE FROM runs WHERE id = ?", ("1",)))
    for table in ("turns", "last_asked"):
        assert await one.database.read(f"SELECT * FROM {table}") == []  # noqa: S608 - a test


# What nobody has taken up


async def test_due_are_runs_without_an_entry_and_those_long_accepted(one: Process) -> None:
    """Runs that wait, run or were shown aren't, nor the terminal's."""
    for n in range(8):
        await one.begin(entry_of(f"{n}"))
    await one.coordination.leave("0", "A")
    await one.coordination.ready("1")
    one.operate("UPDATE turns SET changed_at = changed_at - interval '31 seconds'")
    await one.coordination.prioritize("2")
    await one.coordination.leave("3", "A")
    await one.journal.finish("3", "answered")
    await one.coordination.leave("4", "A")
    await one.journal.finish("4", "answered")
    await one.journal.deliver("4", "shown")
    await one.coordination.leave("5", "A")
    await one.journal.place("5", Source(platform="terminal"))
    await one.coordination.leave("6", "A")
    await one.journal.place("6", Source(platform="slack"))
    await one.begin(entry_of("8"))
    assert await one.coordination.due("") == ["0", "3", "6", "7"]


async def test_an_asker_who_could_not_be_told_is_due_for_a_while(one: Process) -> None:
    """Since the given time, from the question or the press of Retry on."""
    await one.begin(entry_of("1"))
    await one.coordination.leave("1", "A")
    await one.journal.finish("1", "failed")
    await one.journal.deliver("1", "untold")
    assert await one.coordination.due("2000") == ["1"]
    assert await one.coordination.due("9000") == []
    assert await one.journal.reopen("1")
    assert await one.coordination.due("9000") == ["1"]


async def test_started_runs_are_found_again(one: Process, other: Process) -> None:
    """A process that admitted runs and ended leaves them to be found, once they have been there a while."""
    await one.line_up(*(entry_of(f"{n}", f"user {n}") for n in range(4)))
    await one.coordination.admit(3, 3)
    await one.journal.claim("0", "A")
    await one.coordination.halt(["1"])
    assert await other.coordination.started() == []
    one.operate("UPDATE turns SET changed_at = changed_at - interval '31 seconds'")
    assert await other.coordination.started() == ["0", "1", "2"]


# Claims

Write = Callable[[Journal, RunRow], Awaitable[object]]


async def _record_step(journal: Journal, run: RunRow) -> None:
    await (await journal.steps(run)).record(call("stage1.1:b/two"), REPLY)


async def _record_post(journal: Journal, run: RunRow) -> None:
    await (await journal.posts(run)).record("answer.2", "Paris", "M2")


WRITES: dict[str, Write] = {
    "steps.record": _record_step,
    "posts.record": _record_post,
    "place": lambda journal, run: journal.place(run.id, Source(platform="slack", message="card")),
    "prepare": lambda journal, run: journal.prepare(
        run.id, run.brief.model_copy(update={"seed": 99}), replace(RESERVATION, amount=6)
    ),
    "finish": lambda journal, run: journal.finish(run.id, "answered"),
    "deliver": lambda journal, run: journal.deliver(run.id, "shown"),
    "record_mention": lambda journal, run: journal.record_mention(run.id, MentionState(begun=1)),
    "reserve": lambda journal, run: journal.reserve(run.id, replace(RESERVATION, amount=7)),
}


async def kept(stores: Stores) -> list[list[dict[str, object]]]:
    return [
        [
            {key: row[key] for key in row.keys()}  # noqa: SIM118 - a row isn't a mapping
            for row in await stores.database.read(f"SELECT * FROM {table}")  # noqa: S608 - a test
        ]
        for table in ("runs", "steps", "posts", "spending")
    ]


@pytest.mark.parametrize("write", WRITES)
async def test_a_claim_ends_what_an_earlier_worker_may_write(home: Home, write: str) -> None:
    """Before, it writes; after, nothing of it is written, and the error says why."""
    async with home.open() as stores:
        journals = Journal(stores.database), Journal(stores.database)
        await journals[0].begin(RUN, reservation=RESERVATION)
        first = await journals[0].claim(RUN.id, "A")
        assert first
        second = await journals[1].claim(RUN.id, "B")
        assert second
        assert (first.epoch, second.epoch) == (1, 2)
        before = await kept(stores)
        with pytest.raises(RunSuperseded, match=f"another worker has taken up run {RUN.id}"):
            await WRITES[write](journals[0], first)
        assert await kept(stores) == before
        await WRITES[write](journals[1], second)
        assert await kept(stores) != before


async def test_a_claim_in_another_process_ends_the_steps_that_were_loaded_before(
    one: Process, other: Process
) -> None:
    """What the dead worker's successor has recorded is all that is recorded."""
    await one.line_up(entry_of("1"))
    run = await one.journal.claim("1", "A")
    assert run
    steps = await one.journal.steps(run)
    await steps.record(call("stage1.1:a/one"), REPLY)
    await other.journal.claim("1", "B")
    with pytest.raises(RunSuperseded):
        await steps.record(call("stage1.1:b/two"), REPLY)
    recorded = await other.database.read("SELECT key FROM steps")
    assert [row["key"] for row in recorded] == ["stage1.1:a/one"]


async def test_concurrent_claims_have_different_epochs(one: Process, other: Process) -> None:
    """One of ten workers is the last, and only it may write."""
    await one.line_up(entry_of("1"))
    journals = [Journal((one, other)[n % 2].database) for n in range(10)]
    claimed = await asyncio.gather(*(each.claim("1", f"{n}") for n, each in enumerate(journals)))
    assert sorted(run.epoch for run in claimed if run) == [*range(1, 11)]
    outcomes = await asyncio.gather(
        *(each.deliver("1", "shown") for each in journals), return_exceptions=True
    )
    written = [run.epoch for run, each in zip(claimed, outcomes, strict=True) if run and each is None]
    assert written == [10]
    assert sum(isinstance(each, RunSuperseded) for each in outcomes) == 9


async def test_what_is_anybodys_is_written_after_another_claim(home: Home) -> None:
    """Presses of Stop and Retry, and new questions."""
    async with home.open() as stores:
        journal, worker = Journal(stores.database), Journal(stores.database)
        await journal.begin(RUN)
        await journal.claim(RUN.id, "A")
        await worker.claim(RUN.id, "B")
        await journal.press_stop(RUN.id)
        await worker.finish(RUN.id, "stopped")
        assert await journal.reopen(RUN.id)
        assert not (await journal.begin(RUN)).created


async def test_a_run_that_was_not_claimed_here_is_written_without_a_check(home: Home) -> None:
    """Nor is one whose claim has been dropped."""
    async with home.open() as stores:
        journal, worker = Journal(stores.database), Journal(stores.database)
        await journal.begin(RUN)
        await worker.claim(RUN.id, "B")
        await journal.deliver(RUN.id, "untold")
        await journal.claim(RUN.id, "A")
        await worker.claim(RUN.id, "B")
        journal.unclaim(RUN.id)
        await journal.deliver(RUN.id, "shown")
        run = await journal.get(RUN.id)
        assert run
        assert (run.delivery, run.epoch) == ("shown", 3)


async def test_other_errors_of_a_claimed_run_are_told_as_they_are(home: Home) -> None:
    """A budget without room, and a run that was forgotten."""
    async with home.open() as stores:
        journal = Journal(stores.database)
        await journal.begin(RUN, reservation=RESERVATION)
        run = await journal.claim(RUN.id, "A")
        assert run
        with pytest.raises(BudgetExceeded):
            await journal.reserve(RUN.id, replace(RESERVATION, amount=11))
        await stores.database.write(("DELETE FROM runs WHERE id = ?", (RUN.id,)))
        with pytest.raises(ConstraintError) as forgotten:
            await _record_step(journal, run)
        assert not isinstance(forgotten.value, RunSuperseded)


# Clicks and rate limits


async def test_the_first_of_several_deliveries_counts(one: Process, other: Process) -> None:
    """Delivered to two processes at once, one of them hears that it is the first; never one later."""
    firsts = await asyncio.gather(*((one, other)[n % 2].coordination.first("click") for n in range(10)))
    assert sum(firsts) == 1
    assert not await other.coordination.first("click")
    assert await one.coordination.first("another")


async def test_a_delivery_stays_the_first_where_its_answer_was_lost(one: Process) -> None:
    """The same call, repeated on a new connection, isn't taken for a second delivery."""
    coordination = Coordination(one.database, lambda: "the same call")
    assert await coordination.first("click")
    assert await coordination.first("click")
    assert not await one.coordination.first("click")


async def test_expired_rows_are_deleted(one: Process) -> None:
    """Keys older than a day, lanes whose limit is free again, and those who waited for them."""
    for key in ("old", "new"):
        await one.coordination.first(key)
    for lane in ("idle", "full", "blocked"):
        await one.coordination.take(lane, HOUR, 1, 1, "A")
        await one.coordination.take(lane, HOUR, 1, 1, "A")
    one.operate("UPDATE lanes SET full_at = 0 WHERE lane <> 'full'")
    one.operate("UPDATE lane_waiters SET until = 0 WHERE lane <> 'full'")
    await one.coordination.block("blocked", HOUR)
    one.operate("UPDATE seen SET at = at - interval '25 hours' WHERE key = 'old'")
    await one.coordination.tidy()
    assert [row["key"] for row in await one.database.read("SELECT key FROM seen")] == ["new"]
    lanes = await one.database.read("SELECT lane FROM lanes ORDER BY lane")
    assert [row["lane"] for row in lanes] == ["blocked", "full"]
    waiters = await one.database.read("SELECT lane FROM lane_waiters")
    assert [row["lane"] for row in waiters] == ["full"]


async def test_two_processes_share_a_rate_limit(one: Process, other: Process) -> None:
    """Of many requests at once, a burst goes through; the others hear how long to wait."""
    waits = await asyncio.gather(
        *((one, other)[n % 2].coordination.take("lane", HOUR, 3, 1, "AB"[n % 2]) for n in range(20))
    )
    assert sorted(waits)[:3] == [0.0] * 3
    assert all(HOUR - 60 < wait <= HOUR for wait in sorted(waits)[3:])
    assert await one.coordination.take("another lane", HOUR, 1, 1, "A") == 0.0


async def test_the_rate_is_never_exceeded(one: Process, other: Process) -> None:
    """In whatever time has passed, no more requests were let through than it has room for."""
    interval, burst = 0.01, 2
    begun = await now(one)

    async def send(process: Process, name: str) -> int:
        counted = 0
        while await now(process) < begun + 0.1:
            counted += await process.coordination.take("lane", interval, burst, 1, name) == 0.0
        return counted

    counted = sum(await asyncio.gather(*(send((one, other)[n % 2], f"{n}") for n in range(4))))
    passed = await now(one) - begun
    assert 1 <= counted <= passed / interval + burst


async def now(process: Process) -> float:
    [row] = await process.database.read("SELECT seconds_now() AS now")
    return row["now"]


async def test_a_lane_without_an_interval_is_only_blocked(one: Process, other: Process) -> None:
    """A block holds for every process, and a shorter one doesn't end it."""
    for _ in range(5):
        assert await one.coordination.take("lane", 0.0, 1, 1, "A") == 0.0
    await one.coordination.block("lane", HOUR)
    await one.coordination.block("lane", 1.0)
    assert HOUR - 60 < await other.coordination.take("lane", 0.0, 1, 1, "B") <= HOUR


async def test_a_more_urgent_request_of_another_process_goes_first(one: Process, other: Process) -> None:
    """What is less urgent waits briefly, until the other has had its turn."""
    lane = "lane", HOUR, 2
    assert await one.coordination.take(*lane, 1, "A") == 0.0
    assert await one.coordination.take(*lane, 1, "A") == 0.0
    assert await other.coordination.take(*lane, 0, "B") > 0.0
    one.operate("UPDATE lanes SET full_at = 0")
    assert await one.coordination.take(*lane, 1, "A") == 0.05
    assert await other.coordination.take(*lane, 0, "B") == 0.0
    assert await one.coordination.take(*lane, 1, "A") == 0.0


async def test_what_is_as_urgent_or_of_the_same_process_is_not_waited_for(
    one: Process, other: Process
) -> None:
    """A process orders its own requests, and equals go as they come."""
    lane = "lane", HOUR, 1
    assert await one.coordination.take(*lane, 0, "A") == 0.0
    assert await one.coordination.take(*lane, 0, "A") > 0.0
    one.operate("UPDATE lanes SET full_at = 0")
    assert await one.coordination.take(*lane, 3, "A") == 0.0
    one.operate("UPDATE lanes SET full_at = 0")
    assert await other.coordination.take(*lane, 0, "B") == 0.0


async def test_whoever_does_not_ask_again_is_not_waited_for(one: Process, other: Process) -> None:
    """A second after it was told to come back, it has died or has nothing to send any more."""
    lane = "lane", HOUR, 1
    await one.coordination.take(*lane, 1, "A")
    wait = await other.coordination.take(*lane, 0, "B")
    [row] = await one.database.read("SELECT until - seconds_now() AS left FROM lane_waiters")
    assert wait < row["left"] <= wait + 1
    one.operate("UPDATE lanes SET full_at = 0; UPDATE lane_waiters SET until = seconds_now() - 0.001")
    assert await one.coordination.take(*lane, 1, "A") == 0.0


async def test_a_clock_that_is_set_back_blocks_no_lane(one: Process) -> None:
    """A bucket is never fuller than full."""
    await one.coordination.take("lane", 2.0, 3, 1, "A")
    one.operate("UPDATE lanes SET full_at = full_at + 1000000")
    assert 0 < await one.coordination.take("lane", 2.0, 3, 1, "A") <= 2.0
