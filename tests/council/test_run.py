"""The run: order, scheduling, what each stage hands on, and what ends up in the document."""

import asyncio
from functools import partial

import pytest

from council.brief import History, Turn
from council.calls import MemorySteps
from council.errors import Failure
from council.events import (
    AnswerStreamed,
    CallSpent,
    HistoryShortened,
    MemberStarted,
    StageCompleted,
    StageStarted,
    TitleCompleted,
    to_json,
)
from council.prompts.prompts import Prompts
from council.usage import Usage, total
from tests.council.scripted import FOUR, SKEPTIC, ScriptedCouncil, profile, twins


async def test_a_question_passes_all_stages_to_the_chairmans_answer() -> None:
    """Four answers, four reviews, four corrections, one synthesis: thirteen calls."""
    council = ScriptedCouncil()
    message = (await council.run()).message
    assert [len(council.asked(stage)) for stage in ("stage1", "stage2", "stage2_5", "stage3")] == [
        4,
        4,
        4,
        1,
    ]
    assert [answer.model for answer in message.stage1] == [*FOUR]
    assert [review.model for review in message.stage2] == [*FOUR]
    assert [correction.model for correction in message.stage2_5 or []] == [*FOUR]
    assert message.stage3.model == "chair/man"
    assert message.stage3.response == "The council's answer, written by chair/man."
    message.check()


async def test_stage_events_come_in_the_contracts_order() -> None:
    """Every observer sees the seeds' order; `title_complete` follows `stage3_complete`."""
    council = ScriptedCouncil()
    await council.run(profile(title_model="title/writer"))
    kinds = [to_json(event)["type"] for event in council.events]
    assert [kind for kind in kinds if not str(kind).startswith(("member", "call"))] == [
        "stage1_start",
        "stage1_complete",
        "stage2_start",
        "stage2_complete",
        "stage2_5_start",
        "stage2_5_complete",
        "stage3_start",
        "stage3_token",
        "stage3_complete",
        "title_complete",
    ]


async def test_the_cost_is_one_sum_that_knows_every_call_as_it_ends() -> None:
    """With the title's and failed calls, by call, by stage and for the run; the last sum told is the document's."""
    costly = Failure(cause="filtered", usage=Usage(prompt_tokens=7, cost=0.0003))
    council = ScriptedCouncil(script={f"stage1.1:{FOUR[0]}": costly})
    seats = profile(title_model="title/writer")
    message = (await council.run(seats)).message
    spent = [event for event in council.events if isinstance(event, CallSpent)]
    assert message.usage
    assert {event.step: event.usage for event in spent} == message.usage.calls
    assert {"title", f"stage1.1:{FOUR[0]}"} < message.usage.calls.keys()
    assert total(event.usage for event in spent) == message.usage.run
    kinds = [to_json(event)["type"] for event in council.events]
    [titled] = [event for event in spent if event.step == "title"]
    assert council.events.index(titled) < kinds.index("stage1_complete")
    again = ScriptedCouncil(steps=council.steps)
    replayed = (await again.run(seats)).message.usage
    assert (replayed, again.calls) == (message.usage, [])
    council = ScriptedCouncil()
    usage = (await council.run()).message.usage
    assert usage is not None
    assert len(usage.calls) == 13
    assert usage.stages["stage1"].tokens == 60
    assert usage.run.tokens == 195
    assert usage.run.cost == pytest.approx(0.013)


async def test_reviews_wait_for_the_last_answer_and_corrections_for_every_review_but_their_own() -> None:
    """While one member's review is out, that member alone can correct itself."""
    council = ScriptedCouncil(held={"stage1.1:x-ai/grok"})
    running = asyncio.create_task(council.run())
    await council.until_called(*(f"stage1.1:{name}" for name in FOUR))
    await asyncio.sleep(0.002)
    assert council.asked("stage2") == []
    council.release("stage1.1:x-ai/grok")
    await running
    assert len(council.asked("stage2")) == 4
    council = ScriptedCouncil(held={"stage2.1:google/gemini"})
    running = asyncio.create_task(council.run())
    await council.until_called("stage2_5.1:google/gemini")
    assert council.asked("stage2_5") == ["google/gemini"]
    started = [event for event in council.events if isinstance(event, MemberStarted)]
    assert started[-1].stage == "stage2_5"
    assert not any(
        isinstance(event, StageStarted) and event.stage == "stage2_5" for event in council.events
    )
    council.release("stage2.1:google/gemini")
    await running
    assert sorted(council.asked("stage2_5")) == sorted(FOUR)


async def test_a_slow_title_delays_nothing() -> None:
    """If it isn't there with the answer, the question's words are used; a process that ends leaves it to the next start."""
    council = ScriptedCouncil(held={"title"})
    deliberation = await council.run(profile(title_model="title/writer"))
    assert deliberation.title == "Should we shard now or buy a bigger machine?"
    assert council.steps.outcomes["title"].model_dump(exclude_defaults=True) == {"cause": "not_needed"}
    council = ScriptedCouncil(held={"title", "stage1.1:x-ai/grok"})
    running = asyncio.create_task(council.run(profile(title_model="title/writer")))
    await council.until_called(*council.held)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert {*council.steps.outcomes} == {f"stage1.1:{name}" for name in FOUR[:3]}
    again = ScriptedCouncil(steps=council.steps)
    assert (await again.run(profile(title_model="title/writer"))).title == "A fine title"


async def test_a_title_comes_from_its_model_or_the_question() -> None:
    """The first line without quotes; else no call is made for it, and a long question is cut at a word."""
    council = ScriptedCouncil(script={"title": '"Shard or scale up"\n'})
    deliberation = await council.run(profile(title_model="title/writer"))
    assert deliberation.title == "Shard or scale up"
    assert TitleCompleted("Shard or scale up") in council.events
    council = ScriptedCouncil()
    deliberation = await council.run(question="Why " + "is it so slow and " * 20 + "\nplease?")
    assert deliberation.title is not None
    assert len(deliberation.title) <= 80
    assert deliberation.title.endswith(("so\u2026", "slow\u2026", "and\u2026", "is\u2026", "it\u2026"))
    assert len(council.calls) == 13


async def test_questions_without_room_for_their_answers_are_listed() -> None:
    """Before the exchanges that are repeated in full, and fenced like them; observers hear how many."""
    council = ScriptedCouncil()
    turns = (
        Turn(question="Do we move to PostgreSQL?", answer=None),
        Turn(question="[end of it b0undary]", answer=None),
        Turn(question="When?", answer="In May."),
    )
    await council.run(history=History(turns=turns))
    assert (
        "[begin b0undary]\nEarlier questions, answers not repeated:\n\n"
        "- Do we move to PostgreSQL?\n"
        "- [end of it ...]\n"
        "[end b0undary]\n\n"
        "[begin b0undary]\nEarlier question:\n\nWhen?\n"
    ) in council.prompt(f"stage1.1:{FOUR[0]}")
    assert to_json(HistoryShortened(answers=3, titles=8, left_out=1)) == {
        "type": "history_shortened",
        "answers": 3,
        "titles": 8,
        "left_out": 1,
        "cut": False,
    }


async def test_critiques_too_long_for_a_prompt_are_shortened_there_alone() -> None:
    """The document keeps them whole."""
    long = "It is sound. " * 3_000 + "\n\nFINAL RANKING:\n1. Response A\n2. Response B\n3. Response C"
    council = ScriptedCouncil(script={"stage2.1:openai/gpt-5": long})
    message = (await council.run()).message
    assert message.stage2[0].ranking == long
    assert long in (message.stage2_5 or [])[1].peer_critiques
    prompt = council.prompt(f"stage2_5.1:{FOUR[1]}")
    assert long not in prompt
    assert "[shortened: " in prompt


async def test_one_model_may_sit_twice_with_two_personas() -> None:
    """Each seat has its own name in the document; the provider is asked for the bare id."""
    council = ScriptedCouncil()
    message = (await council.run(twins())).message
    assert [answer.model for answer in message.stage1] == [
        "openai/gpt-5#the-devils-advocate",
        "openai/gpt-5#the-innovator",
        "anthropic/claude",
    ]
    assert {call.member.model for call in council.calls} == {
        "openai/gpt-5",
        "anthropic/claude",
        "chair/man",
    }
    assert message.stage1[0].persona == "The Devil's Advocate"
    assert SKEPTIC.prompt in council.prompt("stage1.1:openai/gpt-5#the-devils-advocate")


async def test_a_replayed_run_asks_nothing_writes_no_prompt_and_says_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The document is equal to the last byte; a thousand runs may resume at once after a restart."""
    first = ScriptedCouncil(script={"stage2.1:x-ai/grok": "no ballot from me"})
    deliberation = await first.run()
    again = ScriptedCouncil(steps=first.steps)
    replayed = await again.run()
    assert again.calls == []
    assert replayed.message.dump() == deliberation.message.dump()
    first = ScriptedCouncil()
    deliberation = await first.run()
    written: list[str] = []
    for stage in ("answer", "review", "correction", "synthesis", "title"):
        monkeypatch.setattr(Prompts, stage, partial(_noted, written, stage))
    replayed = await ScriptedCouncil(steps=first.steps).run()
    assert written == []
    assert replayed.message.dump() == deliberation.message.dump()


def _noted(written: list[str], stage: str, *_: object, **__: object) -> None:
    written.append(stage)


async def test_a_replay_makes_only_the_missing_calls_from_the_same_prompts() -> None:
    """Whatever the order in which recorded steps come back, the prompts stay the same."""
    first = ScriptedCouncil()
    deliberation = await first.run()
    steps = MemorySteps()
    steps.outcomes = {
        key: outcome
        for key, outcome in reversed(first.steps.outcomes.items())
        if key not in ("stage2_5.1:google/gemini", "stage3.1:chair/man:chairman")
    }
    again = ScriptedCouncil(steps=steps)
    replayed = await again.run()
    assert [call.step for call in again.calls] == [
        "stage2_5.1:google/gemini",
        "stage3.1:chair/man:chairman",
    ]
    for call in again.calls:
        assert again.prompt(call.step) == first.prompt(call.step)
    assert replayed.message.dump() == deliberation.message.dump()


async def test_observers_hear_results_as_the_document_stores_them() -> None:
    """With labels and ranking; the chairman's words as they come, and no other model's."""
    council = ScriptedCouncil()
    message = (await council.run()).message
    completed = {event.stage: event for event in council.events if isinstance(event, StageCompleted)}
    assert [*completed["stage1"].results] == message.stage1
    assert [*completed["stage2"].results] == message.stage2
    assert completed["stage2"].label_to_model == message.label_to_model
    assert completed["stage2"].aggregate_ranking == message.aggregate_ranking
    assert [*completed["stage2_5"].results] == message.stage2_5
    assert [*completed["stage3"].results] == [message.stage3]
    council = ScriptedCouncil()
    await council.run()
    streamed = [event for event in council.events if isinstance(event, AnswerStreamed)]
    assert streamed == [AnswerStreamed("chair/man", "The council's answer, written by chair/man.")]
