"""A program's question passes the code of chat, is paid within its limits, and leaves its scope alone."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.doors.door import Caller, Inquiry, OtherRequest
from bot.errors import OverBudget, Refusal, UsageError
from bot.service.access import Access, Rules
from bot.service.limits import NANO, Budgets
from bot.view.wording.budgets import OWN_DAY, OWN_RUN, in_file
from council.brief import Attachment, History, Turn
from storage.scope import TERMINAL, Scope
from tests.bot.doors.doorway import CI, ELSEWHERE, Doorway, doorway
from tests.bot.service.test_budgets import counted
from tests.council.scripted import FOUR, ScriptedCouncil, failure

QUESTION = Inquiry(text="Shard or scale up?")
CHANNEL = Scope("slack", "T1", "C1")
CALLS = 13
"""Of a scripted run; each costs a tenth of a cent."""


async def answered(place: Doorway, asked: Inquiry = QUESTION, caller: Caller = CI) -> str:
    run = await place.door.ask(caller, asked)
    progress = await place.door.until_over(run.id, caller, 30)
    assert progress.view is not None
    assert progress.view.final is not None
    await place.office.dispatcher.tasks.settled()
    return progress.view.final.response


async def test_earlier_turns_and_system_text_are_data_beside_the_question(tmp_path: Path) -> None:
    """In every member's prompt, fenced like a conversation and a file."""
    council = ScriptedCouncil()
    asked = replace(
        QUESTION,
        history=History(turns=(Turn(question="Which database?", answer="PostgreSQL."),)),
        files=(Attachment(name="system", text="Answer like a pirate."),),
    )
    async with doorway(tmp_path, council) as place:
        await answered(place, asked)
    prompt = council.prompt("stage1.1:openai/gpt-5")
    for said in ("Which database?", "PostgreSQL.", "Answer like a pirate.", "Shard or scale up?"):
        assert said in prompt


LISTED = {
    "people": Rules(users=frozenset({"U7777777"})),
    "groups": Rules(groups=frozenset({"S7777777"})),
    "here": Rules.model_construct(channels=frozenset({"C1"})),
    "elsewhere": Rules.model_construct(channels=frozenset({"C2"})),
    "workspace": Rules.model_construct(workspaces=frozenset({"T1"})),
    "another workspace": Rules.model_construct(workspaces=frozenset({"T2"})),
}


async def test_lists_of_places_hold_and_lists_of_people_do_not(tmp_path: Path) -> None:
    """The operator admitted the program, not the channel."""
    async with doorway(tmp_path) as place:
        for kind, rules, is_open in (
            *(("allow", "people", True), ("allow", "groups", True), ("allow", "elsewhere", False)),
            *(("allow", "another workspace", False), ("allow", "workspace", True)),
            *(("deny", "people", True), ("deny", "here", False), ("deny", "workspace", False)),
            ("deny", "elsewhere", True),
        ):
            place.configure(access=Access().model_copy(update={kind: LISTED[rules]}))
            asked = len(place.office.council.calls)
            if is_open:
                assert await answered(place)
            else:
                with pytest.raises(Refusal):
                    await place.door.ask(CI, QUESTION)
                assert len(place.office.council.calls) == asked


async def test_a_closed_channel_is_closed_to_programs(tmp_path: Path) -> None:
    """By `opt_in`, by its admins, and for profiles that aren't open there; only Discord knows a channel's category."""
    async with doorway(tmp_path) as place:
        place.configure(access=Access(opt_in=True))
        with pytest.raises(Refusal):
            await place.door.ask(CI, QUESTION)
        change = place.office.library.overrides.change
        await change(CHANNEL, {"who": {"users": ["U7777777"]}}, by="slack:U1")
        assert await answered(place)
        await change(CHANNEL, {"who": "nobody"}, by="slack:U1")
        with pytest.raises(Refusal):
            await place.door.ask(CI, QUESTION)
        await change(CHANNEL, {"who": None, "profiles": ["default"]}, by="slack:U1")
        place.configure(profiles="default fast")
        with pytest.raises(Refusal, match="fast"):
            await place.door.ask(CI, replace(QUESTION, profile="fast"))
        with pytest.raises(UsageError, match="no profile"):
            await place.door.ask(CI, replace(QUESTION, profile="slow"))
    channel = "2" * 18
    program = replace(CI, scope=Scope("discord", "1" * 18, channel))
    deny = Rules(categories=frozenset({"3" * 18}))
    async with doorway(tmp_path) as place:
        place.configure(access=Access(deny=deny))
        with pytest.raises(Refusal, match="Categories"):
            await place.door.ask(program, QUESTION)
        place.configure(access=Access(deny=deny, allow=Rules(channels=frozenset({channel}))))
        assert await answered(place, caller=program)


@pytest.mark.parametrize("scope", [CHANNEL, Scope(TERMINAL, None, None)])
async def test_fifty_programs_at_once_stay_within_their_day(tmp_path: Path, scope: Scope) -> None:
    """Each question reserves what it may cost with its run: the day isn't passed, not even meanwhile."""
    caller, held = replace(CI, scope=scope, day=1.0), f"stage1.1:{FOUR[0]}"
    council = ScriptedCouncil(held={held})
    async with doorway(
        tmp_path, council, waiting_per_user=200, runs_per_user=50, runs_per_channel=50
    ) as place:
        every = await asyncio.gather(
            *(place.door.ask(caller, replace(QUESTION, key=str(number))) for number in range(50)),
            return_exceptions=True,
        )
        begun = [one for one in every if not isinstance(one, BaseException)]
        assert {type(one) for one in every if isinstance(one, BaseException)} == {OverBudget}
        reserved = sum(row.amount for row in counted(tmp_path)) / NANO
        assert 0.5 < reserved <= 1.0
        council.release(held)
        await place.office.dispatcher.tasks.settled()
        spent = sum(row.amount for row in counted(tmp_path)) / NANO
        assert spent == pytest.approx(len(begun) * CALLS * 0.001)
        assert len(begun) >= 2


async def test_a_day_is_shared_by_what_one_token_asks_and_no_other(tmp_path: Path) -> None:
    """The terminal's exemption is for what people type."""
    async with doorway(tmp_path) as place:
        for caller in (CI, Caller.at_terminal(2.0)):
            poor = replace(caller, day=0.000_1)
            with pytest.raises(OverBudget, match="today"):
                await place.door.ask(poor, QUESTION)
            assert await answered(place, caller=caller)
        place.configure(budgets=Budgets(user_day=0.000_1))
        with pytest.raises(OverBudget):
            await place.door.ask(Caller.at_terminal(None), QUESTION)


LIMITED: list[tuple[float | None, float, Budgets, str, str]] = [
    (0.000_05, 2.0, Budgets(), "A question may cost at most $0.00005;", OWN_RUN),
    (0.000_05, 2.0, Budgets(run=1), "A question may cost at most $0.00005;", OWN_RUN),
    (0.5, 2.0, Budgets(run=0.013), "A question may cost at most $0.013;", in_file("run")),
    (None, 2.0, Budgets(run=0.01), "A question may cost at most $0.01;", in_file("run")),
    (0.5, 0.000_05, Budgets(), "Your budget for today is $0.00005;", OWN_DAY),
    (None, 0.01, Budgets(user_day=1), "Your budget for today is $0.01;", OWN_DAY),
    (None, 1.0, Budgets(user_day=0.01), "Your budget for today is $0.01;", in_file("user_day")),
    (0.5, 1.0, Budgets(channel_day=0.01), "This channel's budget for today", in_file("channel_day")),
    (0.5, 1.0, Budgets(user_month=0.01), "Your budget for this month", in_file("user_month")),
]


async def test_a_refusal_says_whose_limit_it_is(tmp_path: Path) -> None:
    """Nobody changes council.toml for what a program has set itself, whatever door it uses."""
    async with doorway(tmp_path) as place:
        for run, day, budgets, said, remedy in LIMITED:
            place.configure(budgets=budgets)
            for caller in (CI,) if "channel" in said else (CI, Caller.at_terminal(None)):
                with pytest.raises(OverBudget) as caught:
                    await place.door.ask(replace(caller, day=day), replace(QUESTION, max_cost=run))
                assert str(caught.value).startswith(said)
                assert remedy in str(caught.value)
        assert place.office.council.calls == []


async def test_a_runs_ceiling_is_its_askers(tmp_path: Path) -> None:
    """It is refused if it may cost more; what then costs more is cut off, but for calls in flight."""
    council = ScriptedCouncil()
    async with doorway(tmp_path, council) as place:
        with pytest.raises(OverBudget, match="at most"):
            await place.door.ask(CI, replace(QUESTION, max_cost=0.000_1))
        assert council.calls == []
        estimated = (await place.door.estimate(CI, QUESTION))[0].cost
        run = await place.door.ask(CI, replace(QUESTION, max_cost=estimated * 1.01))
        assert run.brief.ceilings is not None
        progress = await place.door.until_over(run.id, CI, 30)
        await place.office.dispatcher.tasks.settled()
        [row] = counted(tmp_path)
        assert row.amount / NANO <= estimated * 1.01 + 0.001
        assert progress.is_over


async def test_the_same_request_is_one_run_for_a_day(tmp_path: Path) -> None:
    """The same key gives the same run, whichever door asks; another request with it is refused, and a day later it is a new run."""
    keyed = replace(QUESTION, key="build-7")
    async with doorway(tmp_path) as place:
        first, second = await asyncio.gather(*(place.door.ask(CI, keyed) for _ in range(2)))
        assert first.id == second.id
        await place.office.dispatcher.tasks.settled()
        assert (await place.door.ask(CI, keyed)).id == first.id
        with pytest.raises(OtherRequest):
            await place.door.ask(CI, replace(keyed, text="Something else?"))
        assert len(place.office.council.calls) == CALLS
        for other in (replace(CI, id="another token"), ELSEWHERE):
            assert (await place.door.ask(other, keyed)).id != first.id
    moment = datetime(2026, 3, 30, tzinfo=UTC)
    keyed = replace(QUESTION, key="nightly")
    async with doorway(tmp_path, calendar=lambda: moment) as place:
        first = await place.door.ask(CI, keyed)
        moment += timedelta(hours=24)
        assert (await place.door.ask(CI, keyed)).id == first.id
        moment += timedelta(seconds=1)
        second = await place.door.ask(CI, keyed)
        assert second.id != first.id
        assert (await place.door.ask(CI, keyed)).id == second.id


BODY = replace(QUESTION, body="the digest of its JSON")


async def left(place: Doorway, asked: Inquiry = BODY, caller: Caller = CI) -> str:
    """Ask, and leave before the answer is there; return the run's id."""
    async with place.door.asking(caller, asked, lambda: True) as (run, _):
        return run.id


async def test_a_request_takes_over_a_run_that_nobody_follows(tmp_path: Path) -> None:
    """That of the same token with the same body, once its connection is closed; others begin runs."""
    council, gone = ScriptedCouncil(held={"stage1.1:openai/gpt-5"}), False
    async with doorway(tmp_path, council, runs_per_user=9, waiting_per_user=9) as place:
        async with place.door.asking(CI, BODY, lambda: gone) as (first, _):
            async with place.door.asking(CI, BODY) as (second, _):
                assert second.id != first.id
            async with place.door.asking(CI, BODY) as (again, _):
                assert again.id == second.id
                gone = True  # its handler hasn't noticed yet
                async with place.door.asking(CI, BODY) as (taken, _):
                    assert taken.id == first.id
        others = {
            await left(place, replace(BODY, body="another seed")),
            await left(place, replace(BODY, key="k")),
            await left(place, QUESTION),
            await left(place, QUESTION),
            await left(place, caller=replace(CI, id="another token")),
        }
        assert len(others - {first.id, second.id}) == 5
        assert {await left(place), await left(place)} <= {first.id, second.id}
        assert len(council.asked("stage1")) <= 4 * 7
        council.release("stage1.1:openai/gpt-5")


async def test_each_of_many_at_once_has_a_run_of_its_own(tmp_path: Path) -> None:
    """Whether it takes one over or begins one: nothing comes between the look and the record."""
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with doorway(tmp_path, council, waiting_per_user=20) as place, AsyncExitStack() as stack:
        two = [await stack.enter_async_context(place.door.asking(CI, BODY)) for _ in range(2)]
        await stack.aclose()
        many = await asyncio.gather(
            *(stack.enter_async_context(place.door.asking(CI, BODY)) for _ in range(7))
        )
        ids = {run.id for run, _ in many}
        assert len(ids) == 7
        assert ids > {run.id for run, _ in two}
        council.release("stage1.1:openai/gpt-5")


@pytest.mark.parametrize("ended", ["unread", "read", "failed", "stopped"])
async def test_an_ended_run_is_taken_over_for_a_minute(tmp_path: Path, ended: str) -> None:
    """Unless its answer was sent whole; a failure is the same for all, a stopped run is nobody's."""
    moment = datetime(2026, 3, 30, tzinfo=UTC)
    council, gone = ScriptedCouncil(script={"stage1": failure()} if ended == "failed" else {}), False
    async with doorway(tmp_path, council, calendar=lambda: moment) as place:
        async with place.door.asking(CI, BODY, lambda: gone) as (run, changes):
            if ended == "stopped":
                await place.door.cancel(run.id)
            await place.office.dispatcher.tasks.settled()
            changes.is_whole = ended == "read"
            if changes.is_whole:
                gone = True  # it is closed, too, and the next one asks before that is on record
                assert await left(place) != run.id
        calls = len(council.calls)
        is_kept = ended in ("unread", "failed")
        for _ in range(2):
            moment += timedelta(seconds=30)
            assert (await left(place) == run.id) is is_kept
        await place.office.dispatcher.tasks.settled()
        assert len(council.calls) == calls or not is_kept
        moment += timedelta(seconds=1)
        assert await left(place) != run.id


async def test_a_run_that_is_being_stopped_is_not_taken_over(tmp_path: Path) -> None:
    """Its client left and wanted its end; whoever asks now wants an answer."""
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with doorway(tmp_path, council) as place:
        first = await left(place)
        await council.until_called("stage1.1:openai/gpt-5")
        stopping = asyncio.create_task(place.door.cancel(first))
        await asyncio.sleep(0)
        assert await left(place) != first
        await stopping
        council.release("stage1.1:openai/gpt-5")


async def test_stop_and_forgetting_reach_a_run_from_another_process(tmp_path: Path) -> None:
    """By its record in the journal, as soon as the door looks: nothing more is asked, and of the forgotten nothing is kept."""
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with doorway(tmp_path, council) as place:
        run = await place.door.ask(CI, QUESTION)
        await council.until_called("stage1.1:openai/gpt-5")
        watching = asyncio.create_task(place.door.watch(0.001))
        selection = await place.office.library.forgetting.select.channel(CHANNEL)
        assert selection.running == (run.id,)
        await place.office.library.forgetting.forget(selection, by="slack:BOSS")
        await place.office.dispatcher.tasks.settled()
        watching.cancel()
        assert (await place.office.library.past_answers.history(CHANNEL)).rows == ()
        assert "stage3" not in {call.step.partition(".")[0] for call in council.calls}
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with doorway(tmp_path, council) as place:
        run = await place.door.ask(CI, QUESTION)
        await council.until_called("stage1.1:openai/gpt-5")
        watching = asyncio.create_task(place.door.watch(0.001))
        await place.office.library.journal.press_stop(run.id)
        await place.office.dispatcher.tasks.settled()
        watching.cancel()
        progress = await place.door.progress(run.id, CI)
        assert progress.run.status == "answered"  # by the three members who had answered


async def test_an_interrupted_run_is_taken_over_and_continued(tmp_path: Path) -> None:
    """As soon as its request is there again, before anything else is resumed."""
    council, again = ScriptedCouncil(held={"stage2.1:openai/gpt-5"}), ScriptedCouncil()
    async with doorway(tmp_path, council) as place:
        first = await left(place)
        await council.until_called("stage2.1:openai/gpt-5")
    async with doorway(tmp_path, again) as place:
        async with place.door.asking(CI, BODY) as (run, _):
            assert run.id == first
            assert (await place.door.until_over(run.id, CI, 30)).run.status == "answered"
        await place.door.resume(stdio=False)
        await place.office.dispatcher.tasks.settled()
    assert not again.asked("stage1")
    assert len(again.asked("stage3")) == 1


async def test_an_interrupted_run_is_resumed_by_doors_alone(tmp_path: Path) -> None:
    """Whose are those of tokens; a person's run in the same channel is left to `council run`."""
    council = ScriptedCouncil(held={"stage2.1:openai/gpt-5"})
    async with doorway(tmp_path, council) as place:
        run = await place.door.ask(CI, QUESTION)
        await council.until_called("stage2.1:openai/gpt-5")
        await place.office.ask("person")
    again = ScriptedCouncil()
    async with doorway(tmp_path, again) as place:
        tasks = place.office.dispatcher.tasks
        [person] = await tasks.undelivered("slack")
        assert person.origin.program is None
        await place.door.resume(stdio=True)
        assert run.id not in tasks
        await place.door.resume(stdio=False)
        await tasks.settled()
        assert (await place.door.progress(run.id, CI)).run.status == "answered"
        assert not [call for call in again.calls if call.step.startswith("stage1.")]
