"""Months of spending that are over, and corrections, in each store."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from council.calls import Call, Reply
from council.profile import Member
from council.usage import Usage
from storage.database import Database
from storage.errors import Used
from storage.journal import spending
from storage.journal.journal import Journal
from storage.journal.rows import Budgeted, Payer, Reservation, RunRow
from storage.journal.spending import Spending
from tests.storage.journal.test_journal import RUN
from tests.stores import Home

PAYER = Payer(user="u", channel="c", workspace="w")
RESERVED = Reservation(payer=PAYER, amount=5, unpriced_call=0, limits={("user", "day"): 100})
NOVEMBER, DECEMBER = datetime(2026, 11, 30, 12, tzinfo=UTC), datetime(2026, 12, 1, 12, tzinfo=UTC)
AHEAD = datetime(2031, 1, 5, 12, tzinfo=UTC)

RECORD = spending.RECORD_DAY


@dataclass
class Ledger:
    """Questions and what counts for them, on days of the database's choice."""

    database: Database
    patch: pytest.MonkeyPatch
    now: datetime = NOVEMBER
    asked: int = 0

    def __post_init__(self) -> None:
        self.journal = Journal(self.database, lambda: self.now)
        self.spending = Spending(self.database)

    async def ask(self, day: str, *, ends: bool = True) -> None:
        """Ask a question, recorded on a day by the database's clock."""
        self.asked += 1
        run = replace(RUN, id=f"run-{self.asked}", entry_key=f"key-{self.asked}")
        self.patch.setattr(spending, "RECORD_DAY", RECORD.replace("database_day()", f"'{day}'"))
        await self.journal.begin(run, reservation=RESERVED)
        if ends:
            await self.journal.finish(run.id, "stopped")
            await self.database.write(("UPDATE spending SET amount = 5 WHERE run = ?", (run.id,)))

    async def months(self) -> list[str]:
        """Return the months of which anything is kept."""
        rows = await self.database.read("SELECT DISTINCT month FROM spending ORDER BY month")
        return [row["month"] for row in rows]

    async def parts(self, *budgeted: str) -> tuple[int, int]:
        """Return what was spent and what is reserved."""
        scope, period = budgeted
        name = {"user": "u", "channel": "c", "workspace": "w"}[scope]
        return await self.spending.parts((scope, period), name, self.now)  # pyright: ignore[reportArgumentType] - named per test


@pytest.fixture
async def ledger(home: Home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ledger]:
    """Return an empty one, for each store."""
    async with home.open() as stores:
        yield Ledger(stores.database, monkeypatch)


async def test_a_month_goes_after_questions_on_two_days_of_another(ledger: Ledger) -> None:
    """The second of these days is the first that proves that the month is over."""
    await ledger.ask("2026-11-30")
    ledger.now = DECEMBER
    await ledger.ask("2026-12-01")
    await ledger.ask("2026-12-01")
    assert await ledger.months() == ["2026-11", "2026-12"]
    await ledger.ask("2026-12-02")
    assert await ledger.months() == ["2026-12"]


async def test_a_clock_that_jumps_ahead_deletes_nothing_that_counts(ledger: Ledger) -> None:
    """However many questions come until it is set right: they are all of one day."""
    await ledger.ask("2026-11-29")
    ledger.now = AHEAD
    for _ in range(5):
        await ledger.ask("2031-01-05")
    ledger.now = NOVEMBER
    assert await ledger.parts("user", "month") == (5, 0)
    await ledger.ask("2026-11-30")
    assert await ledger.parts("user", "month") == (10, 0)


async def test_a_program_with_a_wrong_clock_deletes_nothing(ledger: Ledger) -> None:
    """The database's clock is right: for days, what the program takes for 2031 is November's."""
    await ledger.ask("2026-11-28")
    ledger.now = AHEAD
    for day in ("2026-11-29", "2026-11-30"):
        await ledger.ask(day)
    ledger.now = NOVEMBER
    await ledger.ask("2026-11-30")
    assert await ledger.parts("user", "month") == (10, 0)


async def test_the_day_is_the_databases(home: Home) -> None:
    """A date of UTC as days are written."""
    async with home.open() as stores:
        before = f"{datetime.now(UTC):%Y-%m-%d}"
        await stores.database.write((RECORD, ("2026-11",)))
        [row] = await stores.database.read("SELECT day FROM spending_days")
        assert before <= row["day"] <= f"{datetime.now(UTC):%Y-%m-%d}"


async def test_what_still_runs_is_kept(ledger: Ledger) -> None:
    """It goes with the first question after it is over."""
    await ledger.ask("2026-11-30", ends=False)
    ledger.now = DECEMBER
    for day in ("2026-12-01", "2026-12-02", "2026-12-03"):
        await ledger.ask(day)
    assert await ledger.months() == ["2026-11", "2026-12"]
    await ledger.journal.finish("run-1", "stopped")
    await ledger.ask("2026-12-03")
    await ledger.ask("2026-12-03")
    assert await ledger.months() == ["2026-12"]
    assert [row["month"] for row in await ledger.database.read("SELECT month FROM spending_days")] == [
        "2026-12"
    ] * 3


@pytest.mark.parametrize(
    ("budgeted", "changed"),
    [
        (("user", "day"), {("user", "day")}),
        (("user", "month"), {("user", "month")}),
        (("workspace", "day"), {("workspace", "day")}),
    ],
)
async def test_a_correction_changes_one_budget(
    ledger: Ledger, budgeted: Budgeted, changed: set[Budgeted]
) -> None:
    """What is reserved stays reserved, and no other sum changes."""
    await ledger.ask("2026-11-30")
    await ledger.ask("2026-11-30", ends=False)
    name = {"user": "u", "channel": "c", "workspace": "w"}[budgeted[0]]
    for amount in (3, 40, 0):
        await ledger.spending.correct(budgeted, name, amount, ledger.now)
        for scope in ("user", "channel", "workspace"):
            for period in ("day", "month"):
                spent = amount if (scope, period) in changed else 5
                assert await ledger.parts(scope, period) == (spent, 5), (scope, period)
    largest = await ledger.spending.largest(ledger.now)
    assert largest["channel", "day"] == (5e-9, 5e-9)


CALL = Call(
    step="stage1.1:a/b",
    member=Member(model="a/b"),
    prompt=lambda: ({"role": "user", "content": "?"},),
    deadline=1.0,
)


async def begun(ledger: Ledger) -> RunRow:
    """Begin a run that a budget bounds."""
    reserved = replace(RESERVED, amount=20, unpriced_call=7)
    return (await ledger.journal.begin(replace(RUN, id="run-1"), reservation=reserved)).run


def reply(cost: float = 0.0, unpriced: int = 0) -> Reply:
    """Return a reply that cost so much."""
    return Reply(text="Yes.", usage=Usage(cost=cost, unpriced=unpriced), latency_ms=1)


async def spent(ledger: Ledger, run: RunRow) -> int:
    """Return what a process that takes up the run now is told that it has spent."""
    allowance = (await ledger.journal.steps(run)).allowance
    assert allowance is not None
    return allowance.spent


async def test_what_was_in_flight_when_a_process_was_killed_counts(ledger: Ledger) -> None:
    """The next one makes the call again, and both are paid for."""
    run = await begun(ledger)
    killed = await ledger.journal.steps(run)
    await killed.send(CALL.step, 5)
    await killed.send(CALL.step, 5)  # a further attempt
    assert await spent(ledger, run) == 10
    resumed = await ledger.journal.steps(run)
    await resumed.send(CALL.step, 5)
    await resumed.record(CALL, reply(3e-9))
    assert await spent(ledger, run) == 13
    await ledger.journal.finish(run.id, "answered")
    assert await ledger.parts("user", "day") == (13, 0)


async def test_what_is_recorded_is_no_longer_in_flight(ledger: Ledger) -> None:
    """Its cost counts instead, once, however often it is written."""
    run = await begun(ledger)
    steps = await ledger.journal.steps(run)
    other = replace(CALL, step="stage1.1:c/d")
    await steps.send(CALL.step, 5)
    await steps.send(other.step, 6)
    await steps.record(CALL, reply(3e-9))
    assert await spent(ledger, run) == 9
    await ledger.database.write(spending.receive(run.id, 0, 5, CALL.step, CALL.digest))
    assert await spent(ledger, run) == 9
    await steps.record(other, reply(2e-9))
    assert await spent(ledger, run) == 5
    await steps.send(CALL.step, 5)
    await ledger.database.write(*spending.forget(run.id))
    assert await ledger.parts("user", "day") == (10, 0)
    await steps.send(CALL.step, 5)
    assert await ledger.parts("user", "day") == (10, 0)


@pytest.mark.parametrize("cost", [2e10, 1e300, 1_000_000.01])
async def test_a_recorded_cost_that_cannot_be_ends_its_run(ledger: Ledger, cost: float) -> None:
    """It counts as a call without a known price, and nobody is kept out."""
    run = await begun(ledger)
    steps = await ledger.journal.steps(run)
    await steps.record(CALL, reply(cost))
    await steps.record(replace(CALL, step="stage1.1:c/d"), reply(2e-9, unpriced=1))
    assert await spent(ledger, run) == 16
    await ledger.journal.finish(run.id, "answered")
    assert await ledger.parts("workspace", "month") == (16, 0)
    assert await ledger.journal.used(replace(RESERVED, limits={("user", "day"): 100})) == [
        Used("user", "day", 100, 16)
    ]


async def test_a_correction_is_the_first_row(ledger: Ledger) -> None:
    """An operator may set what counts before anybody has asked."""
    await ledger.spending.correct(("user", "day"), "u", 7, ledger.now)
    assert await ledger.parts("user", "day") == (7, 0)
    assert await ledger.parts("user", "month") == (0, 0)
