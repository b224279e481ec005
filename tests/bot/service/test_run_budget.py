"""What one run may spend, call by call: reserved, noted as sent, and counted however the call ends."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import cast

import pytest
from pydantic import ValidationError

from bot.errors import Refusal
from bot.service.costs import Count, RunBudget
from bot.service.limits import NANO, NO_BUDGETS, Budgets, nanos, payer
from council.calls import Ask, Call, Reply
from council.document.conversation import Source
from council.errors import Failure, ModelError
from council.estimate import Estimate, StageEstimate
from council.profile import Member
from council.usage import Price, Usage
from storage.errors import BudgetExceeded, Used
from storage.journal.journal import Journal
from storage.journal.rows import Allowance, Payer, Period, Reservation
from tests.pairs import rows

HERE = Source(platform="slack", workspace="T1", channel="C1", user="U1")
TERMINAL = Source(platform="terminal", user="ada")
PRICE = Price(0.0, 1 / NANO)
"""A call of so many tokens costs as many billionths of a dollar."""


def call(tokens: int = 10, step: str = "stage1.1:a/b", model: str = "a/b") -> Call:
    return Call(
        step=step, member=Member(model=model), prompt=lambda: (), deadline=1.0, max_tokens=tokens
    )


def spent(nanodollars: int, unpriced: int = 0) -> Usage:
    return Usage(cost=nanodollars / NANO, unpriced=unpriced)


def reply(nanodollars: int, unpriced: int = 0) -> Reply:
    return Reply(text="Yes.", usage=spent(nanodollars, unpriced), latency_ms=1)


@dataclass
class Purse:
    """A run's budget, with what it asked for: `room` is the most that it may reserve in all."""

    reserved: int = 100
    spent: int = 0
    answer: int = 30
    room: int = 100
    enlarged: list[int] = field(default_factory=list[int])
    sent: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def bounded(self, ask: Ask) -> Ask:
        async def enlarge(amount: int) -> bool:
            self.enlarged.append(amount)
            return amount <= self.room

        async def send(step: str, amount: int) -> None:
            self.sent.append((step, amount))

        allowance = Allowance(reserved=self.reserved, spent=self.spent, unpriced_call=7)

        def price(member: Member) -> Price | None:
            return {"a/b": PRICE, "free/model": Price(0.0, 0.0)}.get(member.model)

        return within(RunBudget(allowance, self.answer, price, enlarge, send).room, ask)


def within(room: Callable[[Call], AbstractAsyncContextManager[tuple[Call, Count]]], ask: Ask) -> Ask:
    async def asked(call: Call) -> Reply:
        async with room(call) as (bounded, count):
            reply = await ask(bounded)
            count(reply.usage)
        return reply

    return asked


def costing(*nanodollars: int) -> Ask:
    """Return an `ask` whose replies cost this much, one after the other."""
    costs = iter(nanodollars)

    async def ask(_: Call) -> Reply:
        return reply(next(costs))

    return ask


async def refused(ask: Ask, asked: Call) -> Failure:
    with pytest.raises(ModelError) as caught:
        await ask(asked)
    return caught.value.failure


async def test_calls_are_made_while_they_fit_beside_the_final_answer() -> None:
    """What a call cost takes the place of what it reserved; the answer's share is the answer's."""
    purse = Purse()
    ask = purse.bounded(costing(20, 50, 5))
    await ask(call(70))
    await ask(call(50))
    assert purse.enlarged == []
    assert await refused(ask, call(1)) == Failure(cause="over_budget", attempts=0)
    assert purse.enlarged == [20 + 50 + 1 + 30]
    await ask(call(30, "stage3.1:a/b:chairman"))
    assert (await refused(ask, call(26, "stage3.1:c/d:chairman"))).cause == "over_budget"
    assert purse.sent == [("stage1.1:a/b", 70), ("stage1.1:a/b", 50), ("stage3.1:a/b:chairman", 30)]


async def test_what_was_spent_before_a_restart_counts() -> None:
    """As recorded."""
    purse = Purse(spent=60)
    ask = purse.bounded(costing(0, 0))
    await ask(call(10))
    assert (await refused(ask, call(11))).cause == "over_budget"


async def test_more_is_reserved_once_while_there_is_room() -> None:
    """Just as much as is missing; what was refused once may fit later."""
    purse = Purse(room=110)
    ask = purse.bounded(costing(0, 0, 0))
    await ask(call(80))
    await ask(call(80))
    assert purse.enlarged == [110]
    assert (await refused(ask, call(81))).cause == "over_budget"
    await ask(call(80))
    assert purse.enlarged == [110, 111]


async def test_calls_in_flight_hold_what_they_reserved() -> None:
    """Until they end, in whatever way."""
    purse, gates = Purse(), [asyncio.Event() for _ in range(3)]
    waiting = iter(gates)

    async def ask(_: Call) -> Reply:
        await next(waiting).wait()
        return reply(3)

    bounded = purse.bounded(ask)
    first, second = (asyncio.ensure_future(bounded(call(30))) for _ in range(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (await refused(bounded, call(11))).cause == "over_budget"
    gates[0].set()
    await first
    gates[2].set()
    await bounded(call(37))
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert (await refused(bounded, call(65))).cause == "over_budget"
    assert purse.enlarged == [101, 101]


@pytest.mark.parametrize("ends", ["fails", "is cancelled"])
async def test_a_call_without_a_reply_counts_with_what_it_cost(ends: str) -> None:
    """Also the part without a known price."""
    purse = Purse()

    async def ask(asked: Call) -> Reply:
        if asked.max_tokens == 1:
            return reply(0)
        asked.meter.add(spent(20, unpriced=1))
        if ends == "fails":
            raise ModelError(Failure(cause="lost", usage=asked.meter.usage))
        raise asyncio.CancelledError

    bounded = purse.bounded(ask)
    with pytest.raises(ModelError if ends == "fails" else asyncio.CancelledError):
        await bounded(call(50))
    assert (await refused(bounded, call(44))).cause == "over_budget"
    assert purse.enlarged == [20 + 7 + 44 + 30]
    await bounded(call(1))


async def test_a_further_attempt_reserves_again() -> None:
    """What the failed one cost is spent, and the call reserves as much as before."""
    purse = Purse(room=104)

    async def ask(asked: Call) -> Reply:
        for _ in range(3):
            await asked.begin()
            asked.meter.add(spent(34))
        return Reply(text="Yes.", usage=asked.meter.usage or Usage(), latency_ms=1)

    bounded = purse.bounded(ask)
    assert (await refused(bounded, call(40))).cause == "over_budget"
    assert purse.enlarged == [34 + 40 + 30, 68 + 40 + 30]
    assert purse.sent == [("stage1.1:a/b", 40)] * 2


async def test_attempts_are_counted_once() -> None:
    """In the order in which they end, and again in the reply, which has the sum."""
    purse = Purse(reserved=1000)

    async def ask(asked: Call) -> Reply:
        for cost in (20, 30):
            await asked.begin()
            asked.meter.add(spent(cost))
        return Reply(text="Yes.", usage=asked.meter.usage or Usage(), latency_ms=1)

    bounded = purse.bounded(ask)
    await bounded(call(100))
    assert (await refused(bounded, call(1000 - 50 - 30 + 1))).cause == "over_budget"
    assert purse.enlarged == [1001]


async def test_a_call_without_a_known_price_reserves_the_stated_amount() -> None:
    """And counts as it."""
    purse = Purse(reserved=50, room=50)

    async def ask(_: Call) -> Reply:
        return reply(0, unpriced=1)

    bounded = purse.bounded(ask)
    await bounded(call(model="x/y"))
    await bounded(call(model="x/y"))
    assert (await refused(bounded, call(model="x/y"))).cause == "over_budget"
    assert purse.sent == [("stage1.1:a/b", 7)] * 2
    assert purse.enlarged == [51]


async def test_a_free_call_is_always_made() -> None:
    """Nothing is noted for it."""
    purse = Purse(reserved=0, room=0)
    assert (await purse.bounded(costing(0))(call(model="free/model"))).text == "Yes."
    assert (purse.enlarged, purse.sent) == ([], [])


def cost(dollars: float) -> Estimate:
    return Estimate((StageEstimate("stage1", 1, 0, 0, dollars, 0),), 2_000, 0.1)


def test_a_question_may_cost_as_much_as_any_may() -> None:
    """The whole budget of a run, and no more."""
    budgets = Budgets(run=0.5, user_day=1)
    found = budgets.reservation(cost(0.5), HERE)
    assert found is not None
    assert (found.amount, found.is_bound, found.unpriced_call) == (NANO // 2, True, NANO // 10)
    assert found.limits == {("user", "day"): NANO}
    with pytest.raises(Refusal):
        budgets.reservation(cost(0.500_000_001), HERE)
    assert budgets.reserving(NANO // 2, HERE) == found
    assert budgets.reserving(NANO // 2 + 1, HERE) is None
    unbound = Budgets(user_day=1).reserving(7, HERE)
    assert unbound is not None
    assert (unbound.amount, unbound.is_bound) == (7, False)


def test_nothing_is_reserved_at_the_terminal() -> None:
    """Also for a question that could cost more than any may."""
    assert Budgets(run=0.5).reservation(cost(9), TERMINAL) is None


def test_budgets_are_set_by_any_limit() -> None:
    """What an unpriced call counts as is none."""
    assert Budgets(run=1).are_set is True
    assert Budgets(workspace_month=1).are_set is True
    assert Budgets().are_set is False
    assert Budgets(unpriced_call=5).are_set is False
    assert NO_BUDGETS.are_set is False


@rows("dollars", [0, 1_000_000.01, float("inf"), float("nan"), "much", "1_0", "\u0661"])
@rows("key", ["run", "user_day", "workspace_month"])
def test_a_budget_is_an_amount_that_somebody_may_mean(key: str, dollars: object) -> None:
    """Up to a million."""
    with pytest.raises(ValidationError):
        Budgets.model_validate({key: dollars})
    assert Budgets.model_validate({key: 1_000_000, "unpriced_call": 0}).are_set


def test_a_call_without_a_price_may_be_taken_for_free() -> None:
    """Or for up to a million, but nothing else."""
    assert Budgets(unpriced_call=1_000_000).unpriced_call == 1_000_000
    for amount in (-0.01, 1_000_000.01, float("inf"), "1_0"):
        with pytest.raises(ValidationError):
            Budgets.model_validate({"unpriced_call": amount})


def test_budgets_change_with_the_configuration_alone() -> None:
    """They are shared by all that runs."""
    with pytest.raises(ValidationError):
        Budgets(run=1).run = 2


async def test_what_is_used_is_asked_of_budgets_in_force() -> None:
    """Nothing bounds whoever asks at the terminal, and without limits there is nothing to know."""
    found = [Used("user", "day", NANO, 7)]
    asked: list[Reservation] = []

    class Counting:
        async def used(self, reservation: Reservation) -> list[Used]:
            asked.append(reservation)
            return found

    journal = cast("Journal", Counting())
    assert await Budgets(user_day=1).used(HERE, journal) == found
    assert [(each.amount, each.payer) for each in asked] == [(0, payer(HERE))]
    assert await Budgets(user_day=1).used(TERMINAL, journal) == []
    assert await Budgets(run=1).used(HERE, journal) == []
    assert len(asked) == 1


def test_a_refusal_has_the_budgets_numbers() -> None:
    """In dollars."""
    ends: dict[Period, str] = {"day": "at 00:00 UTC", "month": "on the 1st, at 00:00 UTC"}
    for period, when in ends.items():
        used = Used("channel", period, 2 * NANO, NANO // 2)
        said = str(NO_BUDGETS.refusal(BudgetExceeded("the database", used, 2 * NANO), cost(3.0)))
        assert "is $2.00; $0.50 is used or reserved, and this question needs $2.00. " in said
        assert said.endswith(
            f"Whoever runs the bot has set that: channel_{period} under [budgets] in council.toml. "
            f"There is room again {when} at the latest."
        )
        never = str(NO_BUDGETS.refusal(BudgetExceeded("the database", used, 3 * NANO), cost(3.0)))
        assert never.endswith(
            f"A whole {period} hasn't room for it: ask for less, or have the budget raised."
        )


def test_each_budget_is_somebodys() -> None:
    """By a name that nobody else has; a thread counts toward its channel."""
    assert payer(HERE) == Payer(user="slack/T1/U1", channel="slack/T1/C1", workspace="slack/T1")
    thread = Source(platform="discord", workspace="1", channel="9", parent="2", user="3")
    assert payer(thread) == Payer(user="discord/3", channel="discord/1/2", workspace="discord/1")


def test_dollars_are_whole_billionths() -> None:
    """Rounded, so that they add up exactly."""
    assert nanos(5.0) == 5_000_000_000
    assert [nanos(dollars) for dollars in (0.1, 0.000_000_001_4, 0.000_000_001_6)] == [10**8, 1, 2]
