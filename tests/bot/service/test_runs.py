"""A run with its journal, document and index: what is kept with an answer and without one, and what is counted."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import structlog.testing

from bot.app import Library
from bot.service.accept import Question
from bot.service.access import AT_TERMINAL
from bot.service.metrics import Metrics
from bot.service.runs import Runs, Sources
from council.brief import Brief, Discussion, ThreadMessage
from council.calls import Call, Reply
from council.document.conversation import Source, UserMessage
from council.errors import Cause, Failure, ModelError
from council.events import (
    ContextRead,
    Event,
    HistoryShortened,
    MemberStarted,
    RunCompleted,
    RunFailed,
    StageCompleted,
    StageStarted,
)
from council.profile import Member, Profile
from council.usage import Usage
from storage.documents.conversations import Conversations, Stored
from storage.errors import ConversationNotFound
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from tests.bot.dispatching import runs_of
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile
from tests.library import open_library

TEAM = Source(platform="slack", workspace="T1", channel="C1", user="U1")


@asynccontextmanager
async def opened(folder: Path, council: ScriptedCouncil) -> AsyncGenerator[tuple[Runs, Library]]:
    """Open runs over a data folder, their models played by a script."""
    async with open_library(folder) as library:
        yield runs_of(library, council.ask), library


def kept_elsewhere(runs: Runs, **stores: Journal | Conversations) -> Runs:
    return replace(runs, costs=replace(runs.costs, **stores))


def question(
    key: str = "event-1",
    text: str = "Shard or scale up?",
    *,
    conversation_id: str | None = None,
    seats: Profile | None = None,
) -> tuple[Question, Profile]:
    """Ask in the team's channel."""
    asked = Question(
        standing=AT_TERMINAL, text=text, source=TEAM, entry_key=key, conversation_id=conversation_id
    )
    return asked, seats or profile()


async def test_the_chairman_is_asked_for_notes_unless_the_profile_says_no(tmp_path: Path) -> None:
    """Small models can't keep them apart from the answer."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, _):
        run = (await runs.recorder.record(*question(seats=profile(chairman_notes=False)))).run
        await runs.carry_out(run, council.events.append)
    assert run.brief.notes_mark is None
    assert "DISSENT" not in council.prompt("stage3.1:chair/man:chairman")


async def test_a_run_that_was_forgotten_leaves_no_document(tmp_path: Path) -> None:
    """A question that is deleted while it runs gets no stored answer."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):
        run = (await runs.recorder.record(*question())).run

        class Forgetful:
            def __getattr__(self, name: str) -> object:
                return getattr(library.journal, name)

            async def origin(self, forgotten: RunRow) -> None:
                await library.database.write(("DELETE FROM runs WHERE id = ?", (forgotten.id,)))
                assert await library.journal.origin(forgotten) is None

        forgetful = kept_elsewhere(runs, journal=cast("Journal", Forgetful()))
        assert await forgetful.carry_out(run, council.events.append) is None
        assert isinstance(council.events[-1], RunFailed)
        with pytest.raises(ConversationNotFound):
            await library.store.load(run.conversation_id)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET brief = substr(brief, 1, 40)",
        "UPDATE runs SET brief = CAST(x'7bff' AS TEXT)",
        "UPDATE runs SET origin = '{}'",
        "UPDATE runs SET origin = CAST(x'7b22ff227d' AS TEXT)",
        "CREATE TRIGGER broken BEFORE INSERT ON conversations BEGIN SELECT RAISE(FAIL, 'no'); END",
        "CREATE TRIGGER broken BEFORE UPDATE ON runs BEGIN SELECT RAISE(FAIL, 'no'); END",
    ],
)
async def test_a_paid_answer_is_kept_whatever_the_database_does(tmp_path: Path, damage: str) -> None:
    """The document is written from memory, and the asker gets the answer: without its row, an index, an end."""
    council = ScriptedCouncil(held={"stage3.1:chair/man:chairman"})
    async with opened(tmp_path, council) as (runs, library):
        run = (await runs.recorder.record(*question())).run
        carrying = asyncio.create_task(runs.carry_out(run, council.events.append))
        await council.until_called("stage3.1:chair/man:chairman")
        indexes = ("by_place", "by_thread", "by_message", "undelivered")
        await library.database.write(*((f"DROP INDEX runs_{name}", ()) for name in indexes))
        await library.database.write((damage, ()))
        council.release("stage3.1:chair/man:chairman")
        message = await carrying
        assert message is not None
        assert council.events[-1] == RunCompleted(run.id, run.conversation_id, message)
        document = await library.store.load(run.conversation_id)
        assert document.messages[1] == message
        assert document.source == run.origin


@pytest.mark.parametrize("stage", ["title", "stage1", "stage2", "stage2_5", "stage3"])
async def test_a_run_that_is_forgotten_while_it_runs_says_so(tmp_path: Path, stage: str) -> None:
    """Whichever calls are in flight, their replies find no row."""
    step = {"title": "title", "stage3": "stage3.1:chair/man:chairman"}.get(stage, f"{stage}.1:{FOUR[0]}")
    council = ScriptedCouncil(held={step})
    seats = profile(title_model="some/titles")
    async with opened(tmp_path, council) as (runs, library):
        run = (await runs.recorder.record(*question(seats=seats))).run
        carrying = asyncio.create_task(runs.carry_out(run, council.events.append))
        await council.until_called(step)
        await library.database.write(("DELETE FROM runs WHERE id = ?", (run.id,)))
        council.release(step)
        with structlog.testing.capture_logs() as logs:
            assert await carrying is None
        with pytest.raises(ConversationNotFound):
            await library.store.load(run.conversation_id)
    assert council.events[-1] == RunFailed(
        run.id, "The question was deleted while it was being answered. None of it is kept.", {}
    )
    assert [line["event"] for line in logs if line["log_level"] == "error"] == []


async def test_the_log_says_what_to_change_once_and_quotes_nobody(tmp_path: Path) -> None:
    """With the model, the account's name, the cause and the status; the asker reads none of it."""
    said = failure("credit", "Add credit. You wrote: the secret question").model_copy(
        update={"status": 402}
    )
    council = ScriptedCouncil(script={"stage1": said})
    with structlog.testing.capture_logs() as logs:
        async with opened(tmp_path, council) as (runs, _):
            run = (await runs.recorder.record(*question())).run
            assert await runs.carry_out(run, council.events.append) is None
    [line] = [entry for entry in logs if entry["event"] == "member_failed"]
    assert line == {
        "event": "member_failed",
        "log_level": "warning",
        "model": FOUR[0],
        "account": "OPENROUTER_API_KEY",
        "cause": "credit",
        "status": 402,
        "remedy": "Add credit to the account of OPENROUTER_API_KEY.",
    }
    assert isinstance(told := council.events[-1], RunFailed)
    assert told.message == (
        "No member of the council answered. Asking again won't help yet. "
        "Whoever runs the council finds the cause in its log."
    )
    assert {why.cause for why in told.failures.values()} == {"credit"}


async def test_an_unexpected_error_shows_the_runs_id_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the rest."""

    def broken(*_: object) -> None:
        raise RuntimeError("the secret insides")

    monkeypatch.setattr("council.run.counted", broken)
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, _):
        run = (await runs.recorder.record(*question())).run
        assert await runs.carry_out(run, council.events.append) is None
    [told] = [event for event in council.events if isinstance(event, RunFailed)]
    assert run.id in told.message
    assert "secret insides" not in told.message
    assert "the secret insides" in capsys.readouterr().out


async def test_a_long_conversations_prompts_are_bounded(tmp_path: Path) -> None:
    """The first decision is still known by its title; a replay asks exactly the same."""
    council = ScriptedCouncil(script={"stage3": "A long and reasoned answer. " * 300})
    replay = ScriptedCouncil(script=council.script)
    longest: list[int] = []
    async with opened(tmp_path, council) as (runs, library):
        first = (await runs.recorder.record(*question(text="Do we move to PostgreSQL?"))).run
        await runs.carry_out(first, council.events.append)
        last = first
        for number in range(2, 13):
            council.calls.clear()
            council.events.clear()
            key, text = f"event-{number}", f"And what about part {number}?"
            asked = question(key, text, conversation_id=first.conversation_id)
            last = (await runs.recorder.record(*asked)).run
            await runs.carry_out(last, council.events.append)
            longest.append(max(len(council.prompt(call.step)) for call in council.calls))
        prepared = await library.journal.get(last.id)
        assert prepared is not None
        await library.database.write(("DELETE FROM steps", ()))
        await replace(runs, ask=replay.ask).carry_out(prepared, replay.events.append)
    prompt = council.prompt(f"stage1.1:{FOUR[0]}")
    assert "\nEarlier questions, answers not repeated:\n" in prompt
    assert "\n- Do we move to PostgreSQL?\n- And what about part 2?\n" in prompt
    assert prompt.count("\nThe council's answer:\n") == 3
    assert max(longest) < 16_000 * 4
    assert max(longest[3:]) - min(longest[3:]) < 1000
    assert HistoryShortened(answers=3, titles=8) in council.events
    assert HistoryShortened(answers=3, titles=8) in replay.events
    assert {call.step: call.digest for call in replay.calls} == {
        call.step: call.digest for call in council.calls
    }


async def test_a_follow_up_without_an_answer_before_it_begins_the_conversation(tmp_path: Path) -> None:
    """The runs before it may all have failed."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):
        conversation_id = str(uuid.uuid4())
        run = (await runs.recorder.record(*question(conversation_id=conversation_id))).run
        await runs.carry_out(run, council.events.append)
        document = await library.store.load(conversation_id)
    assert document.title == "Shard or scale up?"
    assert len(document.messages) == 2


async def test_a_changed_configuration_never_mixes_into_a_run(tmp_path: Path) -> None:
    """The run's row has the settings it began with."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, _):
        run = (await runs.recorder.record(*question())).run
        other: Profile = profile("x/one", "x/two")
        again = await runs.recorder.record(*question(seats=other))
        assert again.run.brief.profile == run.brief.profile
        await runs.carry_out(again.run, council.events.append)
    assert sorted(council.asked("stage1")) == sorted(FOUR)


IN_A_THREAD = Discussion(until="99")
READ = Discussion(
    until="99",
    messages=(
        ThreadMessage(author="U7", name="Ada", text="Should we shard?"),
        ThreadMessage(author="U8", name="Bob", text="Not yet."),
    ),
    left_out=1,
)


def asked_in_a_thread() -> tuple[Question, Profile]:
    asked, seats = question()
    return replace(asked, context=IN_A_THREAD), seats


async def reading(brief: Brief, room: int) -> Discussion:
    assert brief.context == IN_A_THREAD
    assert room > 1000
    return READ


async def test_a_thread_is_read_once_and_written_down_before_the_first_call(tmp_path: Path) -> None:
    """After a restart the prompts are the same, whatever has been written there since."""
    council = ScriptedCouncil()
    replay = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):
        run = (await runs.recorder.record(*asked_in_a_thread())).run
        await runs.carry_out(run, council.events.append, None, Sources(reading))
        prepared = await library.journal.get(run.id)
        assert prepared is not None
        assert prepared.brief.context == READ
        await library.database.write(("DELETE FROM steps", ()))

        async def never(brief: Brief, room: int) -> Discussion:
            raise AssertionError(brief, room)

        again = replace(runs, ask=replay.ask)
        await again.carry_out(prepared, replay.events.append, None, Sources(never))
    told = ContextRead(messages=2, left_out=1)
    assert told in council.events
    assert told in replay.events
    assert {call.digest for call in council.calls} == {call.digest for call in replay.calls}
    prompt = council.prompt(f"stage1.1:{FOUR[0]}")
    assert prompt.index("Message by Ada") < prompt.index("Message by Bob") < prompt.index("Question:")


async def test_a_history_that_is_forgotten_meanwhile_is_in_no_row(tmp_path: Path) -> None:
    """Somebody deletes a question at the moment when a follow-up has read it."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):
        first = (await runs.recorder.record(*question("1", "Zanzibar?"))).run
        await runs.carry_out(first, council.events.append)
        ben = TEAM.model_copy(update={"user": "U2"})
        for key in ("2", "3"):
            asked, seats = question(key, "And now?", conversation_id=first.conversation_id)
            follow_up = (await runs.recorder.record(replace(asked, source=ben), seats)).run
            if key == "2":
                await runs.carry_out(follow_up, council.events.append)
        prepare = library.journal.prepare

        class Slow:
            def __getattr__(self, name: str) -> object:
                return getattr(library.journal, name)

            async def prepare(self, *given: Any) -> None:
                if (own := await library.forgetting.select.user("slack", str(TEAM.user))).runs:
                    await library.forgetting.forget(own, by="ada")
                await prepare(*given)

        council.calls.clear()
        forgetful = kept_elsewhere(runs, journal=cast("Journal", Slow()))
        assert await forgetful.carry_out(follow_up, council.events.append) is not None
        row = await library.journal.get(follow_up.id)
    assert row is not None
    assert "Zanzibar" not in row.brief.model_dump_json()
    assert not any("Zanzibar" in str(call.messages) for call in council.calls)


@pytest.mark.parametrize("moment", ["while it runs", "while it is written"])
async def test_what_is_forgotten_meanwhile_is_not_in_the_document(tmp_path: Path, moment: str) -> None:
    """Words that a run has read are deleted before its answer is stored."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):
        run = (await runs.recorder.record(*asked_in_a_thread())).run

        async def forget() -> None:
            await library.forgetting.forget(await library.forgetting.select.user("slack", "U7"), by="U7")

        class Store:
            def __getattr__(self, name: str) -> object:
                return getattr(library.store, name)

            async def add_exchange(self, *given: Any, **named: Any) -> Stored:
                stored = await library.store.add_exchange(*given, **named)
                if moment == "while it is written":
                    await forget()
                return stored

        if moment == "while it runs":
            council.held |= {"stage3.1:chair/man:chairman"}
        writing = kept_elsewhere(runs, store=cast("Conversations", Store()))
        carrying = asyncio.create_task(
            writing.carry_out(run, council.events.append, None, Sources(reading))
        )
        if moment == "while it runs":
            await council.until_called("stage3.1:chair/man:chairman")
            await forget()
            council.release("stage3.1:chair/man:chairman")
        assert await carrying is not None
        first, _ = (await library.store.load(run.conversation_id)).messages
        assert (await library.index.check(library.store)).consistent
        assert (await library.forgetting.select.user("slack", "U7")).is_empty
    assert isinstance(first, UserMessage)
    assert first.context is not None
    assert [each.author for each in first.context.messages] == ["U8"]


USED = Usage(prompt_tokens=10, completion_tokens=5, cost=0.5)
CALL = Call(step="stage1.1:a/one", member=Member(model="a/one"), prompt=tuple, deadline=1.0)


async def test_a_call_is_counted() -> None:
    """Its tokens, cost and time."""
    metrics = Metrics()
    reply = Reply(text="Yes.", usage=USED, latency_ms=1_500)

    async def ask(call: Call) -> Reply:
        assert call is CALL
        return reply

    with metrics.of_call(CALL) as answered:
        answered(await ask(CALL))
    assert metrics.calls == {("a/one", "answered"): 1}
    assert metrics.tokens == {("a/one", "prompt"): 10, ("a/one", "completion"): 5}
    assert metrics.cost == {"a/one": 0.5}
    assert metrics.call_times["a/one"].seconds == 1.5


@pytest.mark.parametrize(("cause", "counted"), [("rate_limited", 1), ("over_budget", 0)])
async def test_a_failed_call_is_counted_by_its_cause(cause: Cause, counted: int) -> None:
    """One that no budget had room for was never made."""
    metrics = Metrics()

    async def ask(call: Call) -> Reply:
        raise ModelError(Failure(cause=cause, detail=call.member.model))

    with pytest.raises(ModelError), metrics.of_call(CALL):
        await ask(CALL)
    assert metrics.calls[("a/one", cause)] == counted
    assert not metrics.call_times


def test_only_stages_that_asked_are_timed() -> None:
    """One whose calls are all recalled took no time."""
    metrics, shown = Metrics(), list[Event]()
    clock = iter((1.0, 2.0, 4.5))
    emit = metrics.of_events(shown.append, lambda: next(clock))
    events = [
        StageStarted("stage1", ("a/one",)),
        StageCompleted("stage1", ()),
        StageStarted("stage2", ("a/one",)),
        MemberStarted("stage2", "a/one"),
        StageCompleted("stage2", ()),
    ]
    for event in events:
        emit(event)
    assert shown == events
    assert {stage: times.seconds for stage, times in metrics.stages.items()} == {"stage2": 2.5}
