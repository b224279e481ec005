"""What questions may cost: reserved before a run, settled after it, and refused with the numbers."""

import asyncio
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import ValidationError

from bot.errors import Refusal
from bot.service.channels import Operator
from bot.service.commands import RunOptions
from bot.service.limits import NANO, Budgets
from council.brief import Attachment, Discussion
from council.calls import Call, Reply
from council.document.conversation import AssistantMessage, Source
from council.profile import Member
from council.usage import Price, Usage
from storage.journal.rows import RunRow
from tests.bot.pressing import Click, press
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import TEAM, Office, office
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile

ELSEWHERE = Source(platform="slack", workspace="T1", channel="C2", user="U2")
SPENT = 0.013
"""Dollars that a scripted run costs: 13 calls."""


def prices(profile: str, member: Member) -> Price:
    del profile, member
    return Price(0.000_001, 0.000_002)


def partly(profile: str, member: Member) -> Price | None:
    return prices(profile, member) if member.model == "chair/man" else None


@dataclass
class Calendar:
    """A clock that a test sets."""

    moment: datetime = datetime(2026, 3, 31, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment


@dataclass(frozen=True)
class Spending:
    """A row of the table."""

    amount: int
    settled: int
    reserved: int


def counted(folder: Path) -> list[Spending]:
    """Read what counts toward budgets."""
    with closing(sqlite3.connect(folder / "council.db")) as database:
        found = database.execute(
            "SELECT amount, settled, reserved FROM spending ORDER BY settled, amount"
        )
        return [Spending(*row) for row in found]


async def ask(place: Office, key: str, source: Source = TEAM, **more: Any) -> RunRow:
    run = await place.ask(key, source=source, **more)
    assert run is not None
    return run


async def refused(place: Office, key: str, source: Source = TEAM, **more: Any) -> str:
    """Ask a question that is refused; return the reason."""
    with pytest.raises(Refusal) as caught:
        await place.ask(key, source=source, **more)
    return str(caught.value)


def allow(place: Office, **budgets: float) -> None:
    place.dispatcher.reconfigure(
        Operator(profiles={"default": profile()}, budgets=Budgets.model_validate(budgets))
    )


async def reserved_by_one(place: Office, folder: Path) -> int:
    run = await ask(place, "first")
    [row] = counted(folder)
    await place.show(run)
    return row.reserved


async def test_a_hundred_questions_at_once_never_reserve_more_than_a_budget(tmp_path: Path) -> None:
    """As many are accepted as fit; their cost replaces the reservation, to the billionth."""
    async with office(tmp_path, ScriptedCouncil(), prices=prices, waiting_per_user=200) as place:
        each = await reserved_by_one(place, tmp_path)
        limit = (each * 7.5 + SPENT * NANO) / NANO
        allow(place, channel_day=limit)
        asked = await asyncio.gather(
            *(place.ask(str(number)) for number in range(100)), return_exceptions=True
        )
        taken = [run for run in asked if isinstance(run, RunRow)]
        assert len(taken) == 7
        assert all(isinstance(run, RunRow | Refusal) for run in asked)
        open_, settled = counted(tmp_path)[:-1], counted(tmp_path)[-1]
        assert [row.amount for row in open_] == [each] * 7
        assert settled == Spending(round(SPENT * NANO), 1, each)
        for run in taken:
            await place.show(run)
        assert {(row.amount, row.settled) for row in counted(tmp_path)} == {(round(SPENT * NANO), 1)}
        for run in taken:
            [_, message] = (await place.library.store.load(run.conversation_id)).messages
            assert isinstance(message, AssistantMessage)
            assert message.usage is not None
            assert round(message.usage.run.cost * NANO) == round(SPENT * NANO)
        await ask(place, "there is room again")


async def test_several_processes_share_a_budget(tmp_path: Path) -> None:
    """The SQL statement decides, not a process's memory."""
    async with (
        office(tmp_path, ScriptedCouncil(), prices=prices) as one,
        office(tmp_path, ScriptedCouncil(), prices=prices) as other,
    ):
        each = await reserved_by_one(one, tmp_path)
        for place in (one, other):
            allow(place, workspace_month=(each * 3.5 + SPENT * NANO) / NANO)
        asked = await asyncio.gather(
            *(place.ask(f"{number}") for number in range(8) for place in (one, other)),
            return_exceptions=True,
        )
    assert len([run for run in asked if isinstance(run, RunRow)]) == 3


async def test_a_refusal_has_the_numbers_and_says_who_can_change_them(tmp_path: Path) -> None:
    """The question isn't kept and can be asked later."""
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        await reserved_by_one(place, tmp_path)
        allow(place, channel_day=0.05)
        said = await refused(place, "2")
        assert re.fullmatch(
            r"This channel's budget for today is \$0\.05; \$0\.01 is used or reserved, and this question needs "
            r"\$0\.\d\d\. Whoever runs the bot has set that: channel_day under \[budgets\] in council\.toml\. "
            r"A whole day hasn't room for it: ask for less, or have the budget raised\.",
            said,
        )
        assert len(counted(tmp_path)) == 1
        assert not await place.library.journal.knows("slack:2")
        allow(place)
        await ask(place, "2")


@pytest.mark.parametrize(
    ("budget", "whose", "free"),
    [
        ("user_day", "Your budget for today", ELSEWHERE),
        ("user_month", "Your budget for this month", ELSEWHERE),
        ("channel_day", "This channel's budget for today", ELSEWHERE),
        ("channel_month", "This channel's budget for this month", ELSEWHERE),
        (
            "workspace_day",
            "The budget of this server or workspace for today",
            ELSEWHERE.model_copy(update={"workspace": "T2"}),
        ),
        (
            "workspace_month",
            "The budget of this server or workspace for this month",
            ELSEWHERE.model_copy(update={"workspace": "T2"}),
        ),
    ],
)
async def test_each_budget_is_of_its_own_kind_and_time(
    tmp_path: Path, budget: str, whose: str, free: Source
) -> None:
    """Others have their own budgets; a day ends at midnight UTC, a month with its last day."""
    calendar = Calendar(datetime(2026, 3, 30, 23, 59, 59, tzinfo=UTC))
    async with office(tmp_path, ScriptedCouncil(), prices=prices, calendar=calendar) as place:
        allow(place, **{budget: 0.15})
        await ask(place, "1")
        assert (await refused(place, "2")).startswith(f"{whose} is $0.15; ")
        await ask(place, "3", free)
        calendar.moment += timedelta(seconds=1)  # the last day of March
        if budget.endswith("day"):
            await ask(place, "4")
        else:
            await refused(place, "4")
            calendar.moment += timedelta(days=1)
            await ask(place, "5")


async def test_a_thread_counts_toward_its_channel_and_a_person_is_one_on_all_of_discord(
    tmp_path: Path,
) -> None:
    """Direct messages don't evade a budget."""
    server = Source(platform="discord", workspace="1", channel="2", user="3")
    directly = Source(platform="discord", channel="9", user="3")
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        allow(place, user_day=0.15)
        await ask(place, "1", server)
        await refused(place, "2", directly)
        allow(place, channel_day=0.15)
        await refused(place, "3", server.model_copy(update={"thread": "7", "user": "4"}))


async def test_a_private_thread_has_its_channels_budget(tmp_path: Path) -> None:
    """A person who opens one more private thread gets no money with it."""
    channel = Source(platform="discord", workspace="1", channel="2", user="7")
    threads = [
        channel.model_copy(update={"channel": name, "thread": name, "parent": "2"})
        for name in ("3", "4")
    ]
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        each = await reserved_by_one(place, tmp_path)
        await place.dispatcher.channels.change(channel, {"budget_day": each * 2.5 / NANO})
        await ask(place, "1", threads[0])
        await ask(place, "2", channel)
        assert "This channel's budget for today" in await refused(place, "3", threads[1])


async def test_calls_without_a_known_price_are_bounded_by_a_stated_estimate(tmp_path: Path) -> None:
    """It is reserved, settled and shown."""
    async with office(tmp_path, ScriptedCouncil(), prices=partly) as place:
        allow(place, user_day=5, unpriced_call=0.25)
        await ask(place, "1")
        [row] = counted(tmp_path)
        assert 3 * NANO < row.reserved < 3.1 * NANO
        said = await refused(place, "2")
    assert said.startswith("Your budget for today is $5.00; $3.0")
    assert "12 calls have no known price and are assumed to cost $0.25 each." in said


async def test_a_redelivered_question_reserves_once(tmp_path: Path) -> None:
    """Even if the budget is used up by then."""
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        allow(place, user_day=0.15)
        await ask(place, "1")
        assert await place.ask("1") is None
        assert len(counted(tmp_path)) == 1


@pytest.mark.parametrize("ending", ["failed", "stopped", "too old"])
async def test_a_run_without_an_answer_settles_what_its_calls_cost(tmp_path: Path, ending: str) -> None:
    """Whatever ends it, nothing stays reserved."""
    council = ScriptedCouncil(held={"stage3.1:chair/man:chairman"})
    async with office(tmp_path, council, prices=prices) as place:
        run = await ask(place, "1")
        if ending == "failed":
            council.script = {"stage1": failure()}
        place.dispatcher.tasks.begin(run, RecordingVenue())
        if ending == "stopped":
            await council.until_called("stage3.1:chair/man:chairman")
            await place.dispatcher.tasks.halt([run.id])
        if ending == "too old":
            await council.until_called("stage3.1:chair/man:chairman")
            await place.dispatcher.tasks.drain(0)
            assert [row.settled for row in counted(tmp_path)] == [0]
            await place.runs.give_up(run)
        else:
            await place.dispatcher.tasks.settled()
    [row] = counted(tmp_path)
    assert (row.settled, row.amount) == (1, 0 if ending == "failed" else round(0.012 * NANO))


async def test_retry_reserves_again_and_pays_only_what_is_asked_again(tmp_path: Path) -> None:
    """For the person who presses; over budget it is refused, and the run stays as it was."""
    held = "stage3.1:chair/man:chairman"
    council = ScriptedCouncil(held={held})
    presser = TEAM.model_copy(update={"user": "U9"})
    async with office(tmp_path, council, prices=prices) as place:
        run = await ask(place, "1")
        place.dispatcher.tasks.begin(run, RecordingVenue())
        await council.until_called(held)
        await place.dispatcher.tasks.halt([run.id])
        await place.dispatcher.tasks.settled()
        allow(place, user_day=0.01)
        click = Click(run.id, presser)
        with pytest.raises(Refusal, match=r"Your budget for today is \$0\.01; nothing is used"):
            await press(place.dispatcher, "retry", click, lambda _: RecordingVenue())
        left = await place.row(run)
        assert (left.status, left.retries) == ("stopped", 0)
        allow(place, user_day=0.15)
        council.held.clear()
        await press(place.dispatcher, "retry", click, lambda _: RecordingVenue())
        await place.dispatcher.tasks.settled()
        assert "Your budget for today is $0.15; $0.0" in await refused(
            place, "2", presser, attachments=(Attachment(name="a", text="word " * 5_000),)
        )
    assert [(row.settled, row.amount) for row in counted(tmp_path)] == [
        (1, round(0.001 * NANO)),
        (1, round(0.012 * NANO)),
    ]


async def test_forgetting_leaves_no_id_and_resets_no_budget(tmp_path: Path) -> None:
    """Their spending this month still counts, and no byte of the file names them."""
    somebody = Source(platform="slack", workspace="T1", channel="C1", user="U0FORGOTTEN")
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        run = await ask(place, "1", somebody)
        await place.show(run)
        forgetting = place.library.forgetting
        await forgetting.forget(await forgetting.select.user("slack", "U0FORGOTTEN"), by="admin")
        await forgetting.scrub()
        [row] = counted(tmp_path)
        assert (row.settled, row.amount) == (1, round(SPENT * NANO))
        content = b"".join((tmp_path / f"council.db{end}").read_bytes() for end in ("", "-wal"))
        assert b"U0FORGOTTEN" not in content
        assert run.id.encode() not in content
        allow(place, user_month=0.013)
        assert "Your budget for this month is $0.013; $0.01 is used" in await refused(
            place, "2", somebody
        )


async def test_a_running_question_that_is_forgotten_is_settled(tmp_path: Path) -> None:
    """With what its calls have cost so far."""
    held = "stage3.1:chair/man:chairman"
    council = ScriptedCouncil(held={held})
    async with office(tmp_path, council, prices=prices) as place:
        run = await ask(place, "1")
        place.dispatcher.tasks.begin(run, RecordingVenue())
        await council.until_called(held)
        forgetting = place.library.forgetting
        await forgetting.forget(await forgetting.select.user("slack", "U1"), by="admin")
        [row] = counted(tmp_path)
        assert (row.settled, row.amount) == (1, round(0.012 * NANO))
        council.release(held)
        await place.dispatcher.tasks.settled()
        assert counted(tmp_path) == [row]


async def test_a_question_whose_thread_costs_too_much_asks_nobody(tmp_path: Path) -> None:
    """The thread is read only at its turn; the reservation is released."""

    class Long(RecordingVenue):
        async def read_discussion(self, brief: object, room: int) -> Discussion:
            del brief, room
            return Discussion.model_validate(
                {"until": "9", "messages": [{"author": "U", "name": "Ada", "text": "word " * 60_000}]}
            )

    venue = Long()
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        allow(place, channel_day=0.5)
        run = await ask(place, "1", context=Discussion(until="9"))
        place.dispatcher.tasks.begin(run, venue)
        await place.dispatcher.tasks.settled()
        assert place.council.calls == []
        assert "may cost more than the budget has room for, so no model was asked" in venue.texts[-1]
    [row] = counted(tmp_path)
    assert (row.settled, row.amount) == (1, 0)


@dataclass
class Dear(ScriptedCouncil):
    """A council whose first answers cost more than was foreseen."""

    answers_cost: float = 0.0

    async def ask(self, call: Call) -> Reply:
        """Answer by script, at that cost; all first answers are requested at the same time."""
        reply = await super().ask(call)
        if not call.step.startswith("stage1"):
            return reply
        while len(self.asked("stage1")) < len(FOUR):
            await asyncio.sleep(0)
        return reply.model_copy(update={"usage": Usage(cost=self.answers_cost)})


async def test_at_the_limit_only_the_final_answer_is_asked_for(tmp_path: Path) -> None:
    """The paid answers still lead to a final one; the others say why they weren't asked."""
    council, venue = Dear(), RecordingVenue()
    async with office(tmp_path, council, prices=prices) as place:
        foreseen = place.runs.costs.estimate_short(profile())
        limit = foreseen.cost * 1.05
        council.answers_cost = (limit - foreseen.of("stage3") - 0.001) / 4
        allow(place, run=limit)
        run = await ask(place, "1")
        place.dispatcher.tasks.begin(run, venue)
        await place.dispatcher.tasks.settled()
        [_, message] = (await place.library.store.load(run.conversation_id)).messages
    assert isinstance(message, AssistantMessage)
    assert [call.step.partition(".")[0] for call in council.calls] == ["stage1"] * 4 + ["stage3"]
    assert message.stage3.source == "chairman"
    assert {failed.failure.cause for failed in message.failures} == {"over_budget"}
    assert any("the budget for this run is used up" in text for text in venue.texts)
    [row] = counted(tmp_path)
    assert row.amount == round((council.answers_cost * 4 + 0.001) * NANO)


async def test_without_budget_for_the_final_answer_the_best_one_is_used(tmp_path: Path) -> None:
    """Calls under way may cost more than estimated; no further call is made."""
    council = Dear(answers_cost=1.0)
    async with office(tmp_path, council, prices=prices) as place:
        allow(place, run=0.15)
        run = await ask(place, "1")
        await place.show(run)
        [_, message] = (await place.library.store.load(run.conversation_id)).messages
    assert isinstance(message, AssistantMessage)
    assert (len(council.calls), message.stage3.source) == (4, "verbatim")
    assert [row.amount for row in counted(tmp_path)] == [4 * NANO]


async def test_a_run_reserves_more_while_its_budgets_have_room(tmp_path: Path) -> None:
    """The estimate isn't a limit, but others' reservations are."""
    council = Dear(answers_cost=0.1)
    async with office(tmp_path, council, prices=prices) as place:
        allow(place, channel_day=1)
        run = await ask(place, "1")
        await place.show(run)
        assert len(council.calls) == 13
        [row] = counted(tmp_path)
        assert row.amount == round(0.409 * NANO) < row.reserved
        allow(place, channel_day=0.75)
        await ask(place, "takes what is left")
        council.calls.clear()
        run = await ask(place, "2")
        await place.show(run)
        assert len(council.calls) == 4


async def test_ten_answers_say_what_the_next_one_reserves(tmp_path: Path) -> None:
    """What the dearest cost, but enough to answer: if there is no room for reviews later, there is an answer."""
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        allow(place, user_month=9)

        async def reserves(key: str, source: Source = TEAM, **more: Any) -> int:
            run = await ask(place, key, source, **more)
            [row] = [row for row in counted(tmp_path) if not row.settled]
            await place.show(run)
            return row.reserved

        full = {await reserves(str(number)) for number in range(10)}
        least = await reserves("one after ten")
        assert 0.013 * NANO < least < min(full)
        quick = RunOptions(own={"depth": "quick"})
        for number in range(10):
            assert await reserves(f"quick {number}", ELSEWHERE, options=quick) == least
        assert await reserves("elsewhere", ELSEWHERE) in full
        dearest = "UPDATE spending SET amount = ? WHERE day <> ''"
        await place.library.database.write((dearest, (least + 1,)))
        assert await reserves("dear") == least + 1
        allow(place, run=(least + 2) / NANO)
        run = await ask(place, "at the limit")
        await place.show(run)
        [*_, message] = (await place.library.store.load(run.conversation_id)).messages
    assert isinstance(message, AssistantMessage)
    assert message.stage3.source == "chairman"
    assert len(message.stage1) == len(FOUR)


async def test_a_resumed_run_has_spent_what_it_recorded(tmp_path: Path) -> None:
    """Recorded calls reserve nothing and aren't paid twice; one that was cut off counts as estimated."""
    held = "stage3.1:chair/man:chairman"
    council = ScriptedCouncil(held={held})
    async with office(tmp_path, council, prices=prices) as place:
        allow(place, run=0.15)
        run = await ask(place, "1")
        place.dispatcher.tasks.begin(run, RecordingVenue())
        await council.until_called(held)
        await place.dispatcher.tasks.drain(0)
        allowance = (await place.library.journal.steps(run)).allowance
        assert allowance is not None
        cut_off = allowance.spent - round(0.012 * NANO)
        assert 0 < cut_off < round(0.02 * NANO)
    council.held.clear()
    async with office(tmp_path, council, prices=prices) as place:
        await place.resume(RecordingVenue())
    assert [(row.settled, row.amount) for row in counted(tmp_path)] == [
        (1, round(SPENT * NANO) + cut_off)
    ]


async def settled(place: Office) -> None:
    """Wait until the budgets were looked at."""
    assert place.runs.costs.warnings
    await place.runs.costs.warnings.settled()


async def test_a_budget_that_is_nearly_used_is_logged_once(tmp_path: Path) -> None:
    """At 80 %, by its name and its numbers; nobody is named."""
    calendar = Calendar()
    async with office(tmp_path, ScriptedCouncil(), prices=prices, calendar=calendar) as place:
        each = place.runs.costs.estimate_short(profile()).cost
        allow(place, channel_day=each * 6, user_month=each * 100)
        with structlog.testing.capture_logs() as logs:
            for number in range(4):
                await ask(place, str(number))
            await settled(place)
            assert not [line for line in logs if line["event"] == "budget_nearly_used"]
            await ask(place, "5")
            await refused(place, "6")
            await settled(place)
        [line] = [line for line in logs if line["event"] == "budget_nearly_used"]
        assert place.runs.metrics.budgets_nearly_used == {("channel", "day"): 1}
    assert (line["budget"], line["log_level"]) == ("channel_day", "warning")
    assert 0.8 <= line["dollars"] / line["of_dollars"] < 1
    assert not {"C1", "U1", "T1"} & {*map(str, line.values())}


async def test_nobody_at_the_terminal_is_bounded(tmp_path: Path) -> None:
    """That person pays for the program anyway."""
    async with office(tmp_path, ScriptedCouncil(), prices=prices) as place:
        allow(place, run=0.001, user_day=0.001)
        await ask(place, "1", Source(platform="terminal", user="ada"))
        assert counted(tmp_path) == []


@pytest.mark.parametrize("table", [{"run": 0}, {"user_day": -1}, {"unpriced_call": "x"}, {"day": 1}])
def test_an_invalid_budget_is_refused(table: dict[str, object]) -> None:
    """Amounts must be positive, and keys known."""
    with pytest.raises(ValidationError):
        Budgets.model_validate(table)
