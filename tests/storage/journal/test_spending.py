"""Months of spending that are over, and corrections, in each store."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from council.calls import Call, Reply
from council.errors import Failure
from council.profile import Member
from council.usage import Usage
from storage.database import Database, Statement, listed
from storage.errors import BudgetExceeded, ConstraintError, ReservationRefused, Used
from storage.journal import spending
from storage.journal.journal import Journal
from storage.journal.rows import BUDGETED, Allowance, Budgeted, Payer, Reservation, RunRow
from storage.journal.spending import Spending
from storage.sqlite.opening import open_folder
from tests.pairs import every_other, pairs
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
        self.record("2026-11-29")

    def record(self, day: str) -> None:
        """Set the database's clock."""
        self.patch.setattr(spending, "RECORD_DAY", RECORD.replace("database_day()", f"'{day}'"))

    async def ask(self, day: str, *, ends: bool = True) -> None:
        """Ask a question, recorded on a day by the database's clock."""
        self.asked += 1
        run = replace(RUN, id=f"run-{self.asked}", entry_key=f"key-{self.asked}")
        self.record(day)
        await self.journal.begin(run, reservation=RESERVED)
        if ends:
            await self.journal.finish(run.id, "stopped")
            await self.database.write(("UPDATE spending SET amount = 5 WHERE run = ?", (run.id,)))

    async def forget(self, *, runs: Sequence[str] = (), conversations: Sequence[str] = ()) -> None:
        """Settle and unlink what is about to be deleted."""
        values = {"runs": listed(runs), "conversations": listed(conversations)}
        await self.database.write(*((statement, values) for statement in spending.FORGET))

    async def months(self) -> list[str]:
        rows = await self.database.read("SELECT DISTINCT month FROM spending ORDER BY month")
        return [row["month"] for row in rows]

    async def parts(self, *budgeted: str) -> tuple[int, int]:
        scope, period = budgeted
        name = {"user": "u", "channel": "c", "workspace": "w"}[scope]
        return await self.spending.parts((scope, period), name, self.now)  # pyright: ignore[reportArgumentType] - named per test


@pytest.fixture
async def ledger(home: Home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ledger]:
    """Return an empty one, for each store."""
    async with home.open() as stores:
        yield Ledger(stores.database, monkeypatch)


async def test_the_dearest_of_ten_answers_is_known(ledger: Ledger) -> None:
    """The latest ten, in their channel, by their council; fewer say nothing."""
    for number in range(11):
        known = await ledger.spending.worst(RUN.origin, RUN.brief.profile)
        assert known == (5 if number == 10 else None)
        ledger.now += timedelta(minutes=1)
        await ledger.ask("2026-11-29")
        await ledger.database.write(("UPDATE runs SET status = 'answered'", ()))
    for run, amount in (("run-1", 50), ("run-2", 7)):
        await ledger.database.write(("UPDATE spending SET amount = ? WHERE run = ?", (amount, run)))
    assert await ledger.spending.worst(RUN.origin, RUN.brief.profile) == 7
    assert (
        await ledger.spending.worst(RUN.origin.model_copy(update={"channel": "D"}), RUN.brief.profile)
        is None
    )


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


async def test_the_days_of_the_month_before_end_no_month(ledger: Ledger) -> None:
    """Only days after it do, each once, whatever months a program took them for."""
    for day in ("2026-11-28", "2026-11-29", "2026-11-30"):
        await ledger.ask(day)
    for now in (DECEMBER, AHEAD, DECEMBER):
        ledger.now = now
        await ledger.ask("2026-12-01")
    assert await ledger.months() == ["2026-11", "2026-12", "2031-01"]
    assert await ledger.parts("user", "month") == (10, 0)


async def test_a_month_of_a_wrong_clock_goes_two_days_after_its_last(ledger: Ledger) -> None:
    """As the database counts days."""
    ledger.now = AHEAD
    for day in ("2026-11-28", "2026-11-29", "2026-11-30"):
        await ledger.ask(day)
    ledger.now = DECEMBER
    await ledger.ask("2026-12-01")
    await ledger.ask("2026-12-01")
    assert await ledger.months() == ["2026-12", "2031-01"]
    await ledger.ask("2026-12-02")
    assert await ledger.months() == ["2026-12"]


@pytest.mark.parametrize(
    ("back", "days"),
    pairs(
        [timedelta(days=1), timedelta(days=40), timedelta(days=20_000)],
        [("11-30",), ("11-29", "11-30"), ("11-01", "11-20", "11-27", "11-30")],
    ),
)
@pytest.mark.parametrize(
    "both", every_other([True, False], lambda both: "of both" if both else "of the program")
)
async def test_a_clock_that_is_set_back_opens_no_budget(
    ledger: Ledger, days: Sequence[str], back: timedelta, *, both: bool
) -> None:
    """Of a day or a month, however often it is asked: until the clock is right, the last day counts."""
    for day in days:
        ledger.now = datetime.fromisoformat(f"2026-{day}T12:00:00+00:00")
        await ledger.ask(f"2026-{day}")
    for _ in range(3):
        before = {each: await ledger.parts(*each) for each in BUDGETED}
        ledger.now = NOVEMBER - back
        assert {each: await ledger.parts(*each) for each in BUDGETED} == before
        for budgeted in BUDGETED:
            used = sum(before[budgeted])
            with pytest.raises(BudgetExceeded) as caught:
                await reserve(ledger, 10, limits={budgeted: used + 9})
            assert caught.value.used == Used(*budgeted, used + 9, used)
        await ledger.ask(f"{ledger.now:%Y-%m-%d}" if both else "2026-11-30")
    assert await ledger.parts("user", "month") == (5 * len(days) + 15, 0)
    ledger.now = DECEMBER
    await ledger.ask("2026-12-01")
    assert await ledger.parts("user", "day") == await ledger.parts("user", "month") == (5, 0)


async def test_a_clock_that_was_ahead_for_a_week_or_less_counts_on(ledger: Ledger) -> None:
    """Nobody can tell that from the days that pass: what was asked then counts until they have come."""
    await ledger.ask("2026-11-30")
    ledger.now = NOVEMBER + timedelta(days=5)
    await ledger.ask("2026-12-05")
    ledger.now = DECEMBER
    assert await ledger.parts("user", "day") == (5, 0)
    await ledger.ask("2026-12-01")
    assert await ledger.parts("user", "day") == (10, 0)
    ledger.now = NOVEMBER + timedelta(days=6)
    assert await ledger.parts("user", "day") == (0, 0)


async def test_the_day_is_the_databases(home: Home) -> None:
    """A date of UTC as days are written."""
    async with home.open() as stores:
        before = f"{datetime.now(UTC):%Y-%m-%d}"
        await stores.database.write((RECORD, ("2026-11", "")))
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
    ledger.asked += 1
    reserved = replace(RESERVED, amount=20, unpriced_call=7)
    return (await ledger.journal.begin(replace(RUN, id="run-1"), reservation=reserved)).run


def reply(cost: float = 0.0, unpriced: int = 0) -> Reply:
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
    await ledger.database.write((spending.RECEIVE, (5, run.id, 0, run.id, CALL.step, CALL.digest)))
    assert await spent(ledger, run) == 9
    await steps.record(other, reply(2e-9))
    assert await spent(ledger, run) == 5
    await steps.send(CALL.step, 5)
    await ledger.forget(runs=[run.id])
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


async def test_what_is_sent_counts_for_its_run_alone(ledger: Ledger) -> None:
    """Not for others of the same payer, and a run without a reservation counts nowhere."""
    await ledger.journal.begin(replace(RUN, id="free", entry_key="free"))
    run, other = await begun(ledger), replace(RUN, id="other", entry_key="other")
    beside = (await ledger.journal.begin(other, reservation=replace(RESERVED, amount=9))).run
    await (await ledger.journal.steps(run)).send(CALL.step, 5)
    assert (await spent(ledger, run), await spent(ledger, beside)) == (5, 0)
    assert await ledger.parts("user", "day") == (0, 29)
    assert len(await ledger.database.read("SELECT run FROM spending")) == 2


async def test_nobody_has_spent_anything_at_first(ledger: Ledger) -> None:
    """Nothing is on record of whoever never asked."""
    assert await ledger.parts("user", "day") == (0, 0)
    await reserve(ledger, 10)
    assert await ledger.spending.parts(("user", "month"), "v", ledger.now) == (0, 0)


async def test_what_was_forgotten_goes_with_its_month(ledger: Ledger) -> None:
    """It is settled like what ended."""
    await ledger.ask("2026-11-30", ends=False)
    await ledger.forget(runs=["run-1"])
    ledger.now = DECEMBER
    for day in ("2026-12-01", "2026-12-02", "2026-12-02"):
        await ledger.ask(day)
    assert await ledger.months() == ["2026-12"]


async def test_a_correction_is_the_first_row(ledger: Ledger) -> None:
    """An operator may set what counts before anybody has asked."""
    await ledger.spending.correct(("user", "day"), "u", 7, ledger.now)
    assert await ledger.parts("user", "day") == (7, 0)
    assert await ledger.parts("user", "month") == (0, 0)


def meanwhile(ledger: Ledger, *happens: Callable[[], Awaitable[object]]) -> None:
    """Let something happen after each write that a budget refuses, before the reason is read."""
    write, waiting = ledger.database.write, iter(happens)

    async def refused(*statements: Statement, by: float | None = None) -> None:
        try:
            await write(*statements, by=by)
        except ConstraintError:
            if happening := next(waiting, None):
                await happening()
            raise

    ledger.patch.setattr(ledger.database, "write", refused)


SIXTY = replace(RESERVED, amount=60)


async def crowded(ledger: Ledger) -> Callable[[], Awaitable[object]]:
    """Reserve most of a budget for another run; return what ends that one."""
    other = replace(RUN, id="other", entry_key="other")
    await ledger.journal.begin(other, reservation=SIXTY)
    return lambda: ledger.journal.finish("other", "stopped")


async def test_a_question_takes_the_room_that_comes_while_it_is_refused(ledger: Ledger) -> None:
    """Another run is settled before anybody could say which budget had no room."""
    meanwhile(ledger, await crowded(ledger))
    assert (await ledger.journal.begin(RUN, reservation=SIXTY)).created
    assert await ledger.parts("user", "day") == (0, 60)


async def test_a_running_question_takes_the_room_that_comes_while_it_is_refused(ledger: Ledger) -> None:
    """When it needs more, and when it is asked again."""
    ends = await crowded(ledger)
    await ledger.journal.begin(RUN, reservation=replace(RESERVED, amount=40))
    meanwhile(ledger, ends)
    await ledger.journal.reserve(RUN.id, SIXTY)
    assert await ledger.parts("user", "day") == (0, 60)
    await ledger.journal.finish(RUN.id, "failed")
    third = replace(RUN, id="third", entry_key="third")
    await ledger.journal.begin(third, reservation=SIXTY)
    meanwhile(ledger, lambda: ledger.journal.finish("third", "stopped"))
    assert await ledger.journal.reopen(RUN.id, SIXTY)
    assert await ledger.parts("user", "day") == (0, 60)


async def test_a_refusal_has_its_numbers_whatever_happens_meanwhile(ledger: Ledger) -> None:
    """Room that comes and is taken by somebody else is none."""
    ends, third = await crowded(ledger), replace(RUN, id="third", entry_key="third")
    meanwhile(ledger, ends)
    database, write = ledger.database, ledger.database.write

    async def overtaken(*statements: Statement, by: float | None = None) -> None:
        if (await ledger.parts("user", "day"))[1] == 0:
            ledger.patch.setattr(database, "write", write)
            await ledger.journal.begin(third, reservation=replace(RESERVED, amount=70))
        await write(*statements, by=by)

    ledger.patch.setattr(database, "write", overtaken)
    with pytest.raises(BudgetExceeded) as caught:
        await ledger.journal.begin(RUN, reservation=SIXTY)
    assert (caught.value.used, caught.value.amount) == (Used("user", "day", 100, 70), 60)


async def test_a_refusal_that_no_budget_explains_is_an_error(ledger: Ledger) -> None:
    """Whatever is wrong then, nobody waits for it for ever."""
    tries = 0

    async def refused(*_: Statement, by: float | None = None) -> None:
        del by
        nonlocal tries
        tries += 1
        raise ReservationRefused("the database")

    ledger.patch.setattr(ledger.database, "write", refused)
    with pytest.raises(ReservationRefused):
        await ledger.journal.begin(RUN, reservation=RESERVED)
    assert 3 <= tries <= 20


def paying(user: str = "u", channel: str = "c", workspace: str = "w") -> Payer:
    return Payer(user=user, channel=channel, workspace=workspace)


async def reserve(
    ledger: Ledger, amount: int, payer: Payer = PAYER, limits: dict[Budgeted, int] | None = None
) -> str:
    """Begin a run that reserves an amount; return its id."""
    ledger.asked += 1
    run = replace(RUN, id=f"run-{ledger.asked}", entry_key=f"key-{ledger.asked}")
    reservation = Reservation(payer=payer, amount=amount, unpriced_call=7, limits=limits or {})
    await ledger.journal.begin(run, reservation=reservation)
    return run.id


async def test_each_budget_has_room_for_what_is_left_of_it(ledger: Ledger) -> None:
    """What others, other days or another month used isn't its own; a refusal has the numbers."""
    await reserve(ledger, 10)
    for payer, amount in ((paying("x"), 100), (paying(channel="x"), 200), (paying(workspace="x"), 400)):
        await reserve(ledger, amount, payer)
    ledger.now = NOVEMBER - timedelta(days=1)
    await reserve(ledger, 20)
    ledger.now = DECEMBER
    await reserve(ledger, 800)
    ledger.now = NOVEMBER
    used: dict[Budgeted, int] = {
        ("user", "day"): 10 + 200 + 400,
        ("user", "month"): 10 + 200 + 400 + 20,
        ("channel", "day"): 10 + 100 + 400,
        ("channel", "month"): 10 + 100 + 400 + 20,
        ("workspace", "day"): 10 + 100 + 200,
        ("workspace", "month"): 10 + 100 + 200 + 20,
    }
    asking = Reservation(payer=PAYER, amount=0, unpriced_call=0, limits=dict.fromkeys(used, 1_000))
    assert await ledger.journal.used(asking) == [
        Used(*budgeted, 1_000, amount) for budgeted, amount in used.items()
    ]
    for budgeted, amount in used.items():
        with pytest.raises(BudgetExceeded) as caught:
            await reserve(ledger, 1_001 - amount, limits={budgeted: 1_000})
        assert caught.value.used == Used(*budgeted, 1_000, amount)
        assert caught.value.amount == 1_001 - amount
        run = await reserve(ledger, 1_000 - amount, limits={budgeted: 1_000})
        await ledger.journal.finish(run, "stopped")
    with pytest.raises(BudgetExceeded) as caught:
        await reserve(ledger, 400, limits={("user", "day"): 1_010, ("channel", "month"): 900})
    assert caught.value.used == Used("channel", "month", 900, 530)


async def test_a_run_replaces_what_it_has_reserved(ledger: Ledger) -> None:
    """Its own reservation isn't in its way, others' are; once it is over, nothing is reserved any more."""
    await reserve(ledger, 50)
    run = await reserve(ledger, 40)
    row = await ledger.journal.get(run)
    assert row is not None
    assert (await ledger.journal.steps(row)).allowance is None
    limited = Reservation(payer=PAYER, amount=50, unpriced_call=9, limits={("user", "day"): 100})
    await ledger.journal.reserve(run, limited)
    assert (await ledger.journal.steps(row)).allowance == Allowance(50, 0, 9)
    assert await ledger.parts("user", "day") == (0, 100)
    with pytest.raises(BudgetExceeded) as caught:
        await ledger.journal.reserve(run, replace(limited, amount=51))
    assert (caught.value.used, caught.value.amount) == (Used("user", "day", 100, 50), 51)
    await ledger.journal.reserve(run, replace(limited, amount=30, limits={}, is_bound=True))
    assert (await ledger.journal.steps(row)).allowance == Allowance(30, 0, 9)
    await ledger.journal.finish(run, "stopped")
    await ledger.journal.reserve(run, limited)
    assert await ledger.parts("user", "day") == (0, 50)
    assert (await ledger.journal.steps(row)).allowance is None


async def test_a_retry_is_paid_for_by_whoever_presses(ledger: Ledger) -> None:
    """The first attempt's costs stay its asker's; the second has a reservation of its own."""
    run = await begun(ledger)
    await (await ledger.journal.steps(run)).record(CALL, reply(12e-9))
    await ledger.journal.finish(run.id, "failed")
    bound = Reservation(payer=paying("v"), amount=30, unpriced_call=5, limits={("user", "day"): 30})
    with pytest.raises(BudgetExceeded) as caught:
        await ledger.journal.reopen(run.id, replace(bound, amount=31))
    assert caught.value.used == Used("user", "day", 30, 0)
    again = await ledger.journal.reopen(run.id, bound)
    assert again is not None
    assert await ledger.parts("user", "day") == (12, 0)
    assert await ledger.parts("channel", "day") == (12, 30)
    steps = await ledger.journal.steps(again)
    assert steps.allowance == Allowance(30, 0, 5)
    await steps.send("stage1.1:c/d", 4)
    assert await spent(ledger, again) == 4
    await steps.record(replace(CALL, step="stage1.1:c/d"), reply(3e-9))
    assert await spent(ledger, again) == 3
    await ledger.journal.reserve(run.id, replace(bound, amount=20))
    assert await ledger.parts("channel", "day") == (12, 20)
    await ledger.journal.finish(run.id, "answered")
    assert await ledger.parts("channel", "day") == (15, 0)
    assert await ledger.journal.reopen(run.id, bound) is None
    assert await ledger.parts("channel", "day") == (15, 0)


async def test_a_run_costs_what_its_own_steps_did(ledger: Ledger) -> None:
    """Replies and failures alike; up to $1,000,000 each is believed, and another run's are its own."""
    run = await begun(ledger)
    other = await reserve(ledger, 1)
    row = await ledger.journal.get(other)
    assert row is not None
    await (await ledger.journal.steps(row)).record(CALL, reply(100e-9))
    steps = await ledger.journal.steps(run)
    lost = Failure(cause="lost", usage=Usage(cost=4e-9, unpriced=2), attempts=1)
    await steps.record(CALL, lost)
    assert await spent(ledger, run) == 4 + 2 * 7
    await steps.record(replace(CALL, step="stage1.1:c/d"), Failure(cause="deadline", attempts=1))
    assert await spent(ledger, run) == 4 + 2 * 7
    await steps.record(replace(CALL, step="stage1.1:e/f"), reply(1_000_000.0))
    assert await spent(ledger, run) == 10**15 + 18
    await ledger.journal.finish(run.id, "answered")
    assert await ledger.parts("user", "day") == (10**15 + 18, 1)


async def test_a_forgotten_conversations_runs_still_count(ledger: Ledger) -> None:
    """With what they cost so far, under names that lead to nobody's run; other runs stay open."""
    run = await begun(ledger)
    await (await ledger.journal.steps(run)).send(CALL.step, 5)
    elsewhere = replace(RUN, id="elsewhere", entry_key="elsewhere", conversation_id="another")
    await ledger.journal.begin(elsewhere, reservation=replace(RESERVED, amount=30))
    await ledger.forget(conversations=[RUN.conversation_id])
    assert await ledger.parts("user", "day") == (5, 30)
    names = {row["run"] for row in await ledger.database.read("SELECT run FROM spending")}
    assert len(names) == 2
    assert names > {"elsewhere"}
    assert "run-1" not in names


async def test_whoever_counts_most_is_known_without_a_name(ledger: Ledger) -> None:
    """Of each scope and period, in dollars; a correction of one budget is nobody's elsewhere."""
    assert await ledger.spending.largest(ledger.now) == dict.fromkeys(BUDGETED, (0.0, 0.0))
    await ledger.ask("2026-11-29")
    await reserve(ledger, 5)
    await reserve(ledger, 7, paying("v", "d"))
    ledger.now = NOVEMBER - timedelta(days=1)
    await reserve(ledger, 20, paying("v", "d"))
    ledger.now = DECEMBER
    await reserve(ledger, 800)
    ledger.now = NOVEMBER
    one, other = (5e-9, 5e-9), (27e-9, 0.0)
    assert await ledger.spending.largest(ledger.now) == {
        ("user", "day"): one,
        ("user", "month"): other,
        ("channel", "day"): one,
        ("channel", "month"): other,
        ("workspace", "day"): (12e-9, 5e-9),
        ("workspace", "month"): (32e-9, 5e-9),
    }
    await ledger.spending.correct(("user", "month"), "u", 90, ledger.now)
    largest = await ledger.spending.largest(ledger.now)
    assert largest["user", "month"] == (5e-9, 90e-9)
    assert largest["channel", "month"] == other


async def test_a_correction_replaces_what_its_budget_counted(ledger: Ledger) -> None:
    """Neither another day's, another month's or another person's; what is written beside it is written."""
    for day, user in ((-1, "u"), (0, "u"), (0, "v"), (1, "u")):
        ledger.now = NOVEMBER + timedelta(days=day)
        run = await reserve(ledger, 1, paying(user))
        row = await ledger.journal.get(run)
        assert row is not None
        await (await ledger.journal.steps(row)).record(CALL, reply(10e-9))
        await ledger.journal.finish(run, "answered")
    ledger.now = NOVEMBER
    beside = (spending.RECORD_DAY, ("beside", ""))
    await ledger.spending.correct(("user", "day"), "u", 4, ledger.now, beside)
    assert await ledger.parts("user", "day") == (4, 0)
    assert await ledger.parts("user", "month") == (20, 0)
    await ledger.spending.correct(("user", "month"), "u", 50, ledger.now)
    assert await ledger.parts("user", "day") == (4, 0)
    assert await ledger.parts("user", "month") == (50, 0)
    assert await ledger.spending.parts(("user", "month"), "v", ledger.now) == (10, 0)
    assert await ledger.spending.parts(("user", "month"), "u", DECEMBER) == (10, 0)
    assert await ledger.parts("channel", "month") == (30, 0)
    days = await ledger.database.read("SELECT month FROM spending_days WHERE month = 'beside'")
    assert len(days) == 1


async def test_two_processes_never_make_two_keys(tmp_path: Path) -> None:
    """With two, a person would have two budgets: whoever comes second reads the first one's."""
    payer_at = Reservation(payer=PAYER, amount=1, unpriced_call=0, limits={})
    async with open_folder(tmp_path) as stores:
        one, other = Spending(stores.database), Spending(stores.database)
        first, second = [await each.reserve("run", payer_at, NOVEMBER) for each in (one, other)]
        await stores.database.write(*first)
        await stores.database.write(*first)  # an answer that was lost
        with pytest.raises(ConstraintError):
            await stores.database.write(*second)
        await stores.database.write(*await other.reserve("run", payer_at, NOVEMBER))
        assert await one.digest("u", "2026-11-30") == await other.digest("u", "2026-11-29")
        whose = ("u", "2026-11-30"), ("v", "2026-11-30"), ("u", "2026-12-01")
        names = {await one.digest(*who) for who in whose}
        assert [len(name) for name in names] == [32] * 3
