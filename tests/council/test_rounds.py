"""Rounds: what each one hands on, why they end, and what the document contains of them."""

from collections.abc import Callable

from council.calls import Call, MemorySteps
from council.document.conversation import AssistantMessage
from council.document.results import IterationState, TerminationReason
from tests.council.scripted import FOUR, Script, ScriptedCouncil, failure, labels_in, profile
from tests.pairs import rows

MEMBERS = FOUR[:3]
SAID = {
    "1": "Caches answer most reads quickly, so put one before the database first.",
    "2": "Shards split your writes evenly; choose the tenant as their key.",
    "3": "Queues smooth each burst while a bigger machine buys half a year.",
}


def another(call: Call) -> str:
    """Answer differently in every round."""
    number = call.step.partition(":")[0][-1]
    return f"{call.member.name} says this{number}. {SAID[number]} That is more{number}."


def critical(call: Call) -> str:
    """Find fault with the first answer that is shown, and vote."""
    labels = labels_in(call)
    ranking = "\n".join(f"{place}. {label}" for place, label in enumerate(labels, 1))
    return f"{labels[0]} lacks any numbers. {labels[1]} is good.\n\nFINAL RANKING:\n{ranking}"


def iteration(message: AssistantMessage) -> IterationState:
    assert message.iteration is not None
    return message.iteration


def stop_in(council: ScriptedCouncil, then: Callable[[Call], str]) -> Callable[[Call], str]:
    """Press Stop while a call is under way."""

    def press(call: Call) -> str:
        council.stop.press()
        return then(call)

    return press


def reasons() -> list[tuple[TerminationReason, dict[str, Script], dict[str, object], int]]:
    """Return a script and settings for each reason, with the number of rounds."""
    return [
        (TerminationReason.MAX_ROUNDS_REACHED, {"stage2_5": another}, {}, 3),
        (TerminationReason.MODELS_CONVERGED, {}, {}, 2),
        (TerminationReason.ERROR_OCCURRED, {"stage2_5": failure()}, {}, 1),
        (TerminationReason.ERROR_OCCURRED, {"stage2": failure()}, {"critique_mode": "extracted"}, 1),
    ]


@rows(("reason", "script", "settings", "rounds"), reasons())
async def test_every_reason_ends_the_rounds(
    reason: TerminationReason, script: dict[str, Script], settings: dict[str, object], rounds: int
) -> None:
    """The reason is stored with the rounds, and there is always an answer."""
    council = ScriptedCouncil(script=script)
    message = (await council.run(profile(*MEMBERS, max_rounds=3, **settings))).message
    assert iteration(message).termination_reason == reason
    assert len(iteration(message).rounds) == iteration(message).current_round == rounds
    assert message.stage3.source == "chairman"
    message.check()


@rows(("step", "rounds"), [("stage2.2:openai/gpt-5", 2), ("stage2_5.1:google/gemini", 1)])
async def test_stop_ends_the_rounds(step: str, rounds: int) -> None:
    """No further round begins; the chairman gets what there is."""
    council = ScriptedCouncil()
    council.script = {"stage2_5": another, step: stop_in(council, another)}
    message = (await council.run(profile(*MEMBERS, max_rounds=3))).message
    assert iteration(message).termination_reason == TerminationReason.USER_STOPPED
    assert len(iteration(message).rounds) == rounds
    assert message.stage3.stopped_early
    message.check()


async def test_a_round_that_fails_keeps_the_answers_before_it() -> None:
    """A member that fails in round 2 keeps its correction of round 1, and people are told so."""
    council = ScriptedCouncil(
        script={"stage2_5": another, "stage2_5.2:openai/gpt-5": failure("deadline")}
    )
    message = (await council.run(profile(*MEMBERS, max_rounds=2))).message
    [correction] = [each for each in message.stage2_5 or [] if each.model == "openai/gpt-5"]
    assert "this1" in correction.corrected_response
    assert correction.fallback is None
    assert iteration(message).rounds[1].fallbacks["openai/gpt-5"].cause == "deadline"
    assert [(each.round, each.member) for each in message.failures] == [(2, "openai/gpt-5")]


@rows("mode", ["full", "extracted"])
async def test_a_replay_of_rounds_asks_nothing(mode: str) -> None:
    """With all steps recorded, the same message results without a call; else only missing calls are made."""
    seats = profile(*MEMBERS, max_rounds=3, critique_mode=mode)
    first = ScriptedCouncil(script={"stage2": critical, "stage2_5": another})
    whole = (await first.run(seats)).message
    again = ScriptedCouncil(steps=first.steps)
    assert (await again.run(seats)).message.dump() == whole.dump()
    assert again.calls == []
    steps = MemorySteps()
    missing = {"stage2.2:google/gemini", "stage3.1:chair/man:chairman"}
    steps.outcomes = {
        key: outcome for key, outcome in reversed(first.steps.outcomes.items()) if key not in missing
    }
    rest = ScriptedCouncil(script=first.script, steps=steps)
    assert (await rest.run(seats)).message.dump() == whole.dump()
    assert {call.step for call in rest.calls} == missing
    for call in rest.calls:
        assert rest.prompt(call.step) == first.prompt(call.step)


async def test_extracted_critiques_are_handed_over_point_by_point() -> None:
    """Each with source and severity, never the member's own; without points nobody is asked."""
    council = ScriptedCouncil(script={"stage2": critical})
    message = (await council.run(profile(*MEMBERS, critique_mode="extracted"))).message
    message.check()
    assert message.stage2_5 is not None
    points = iteration(message).rounds[0].critiques
    labels = message.label_to_model or {}
    assert {*points} == {*labels}
    asked = set(council.asked("stage2_5"))
    for result in message.stage2_5:
        label = next(label for label, name in labels.items() if name == result.model)
        assert (result.model in asked) == bool(points[label]) == (not result.maintained)
        if points[label]:
            assert result.peer_critiques.startswith("1. [medium] Response ")
            prompt = council.prompt(f"stage2_5.1:{result.model}")
            assert "corrected answer" in prompt[-600:]
            assert points[label][0].critique_text in prompt
        else:
            assert (result.peer_critiques, result.corrected_response) == ("", result.original_response)
        for point in points[label]:
            assert point.source_model != result.model
