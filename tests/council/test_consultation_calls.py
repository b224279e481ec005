"""A council of consultants, from question to answer, with a scripted model."""

import asyncio
import json
import re

from council.consultation import Opinion, Rebuttal
from council.consultation_calls import form_schema
from council.events import MemberAnswered
from council.profile import Member, Persona, Profile
from council.replies import reply_schema
from tests.council.consultations import AGAIN, DEBATE, FIRST, REPLY, faults
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile

GPT = "openai/gpt-5"
BAD_SCORE = json.dumps({**REPLY, "confidence": {"score": "high", "reasoning": "I know it."}})
DETAILED = str(REPLY["response"]["detailed"])


def consultants(*models: str, **settings: object) -> Profile:
    """Seat consultants."""
    return profile(*models, answer_format="structured", **settings)


def council(**script: object) -> ScriptedCouncil:
    """Script a council whose members reply in form unless a step says otherwise."""
    return ScriptedCouncil({"stage1": FIRST, "stage2_5": AGAIN, **script})  # pyright: ignore[reportArgumentType] - a test's steps


async def test_answers_and_corrections_are_consultations() -> None:
    """The council's own facts are filled in, and the detailed answer is the response."""
    seats = Profile(
        members=(
            Member(model=GPT, persona=Persona(name="The Architect", prompt="Look at the whole.")),
            Member(model="anthropic/claude"),
        ),
        chairman=Member(model="chair/man"),
        answer_format="structured",
    )
    message = (await council().run(seats)).message
    message.check()
    assert [answer.response for answer in message.stage1] == [DETAILED, DETAILED]
    first = message.stage1[0].consultation
    assert first
    assert first.model_dump(mode="json", exclude_defaults=True) == {
        "consultant": GPT,
        "model": GPT,
        "persona": "The Architect",
        **REPLY,
        "metadata": {
            "tokens_used": 15,
            "latency_ms": 5,
            "model_version": GPT,
            "timestamp": first.metadata.timestamp,
        },
    }
    assert first.metadata.timestamp.startswith("2026-01-20T10:30:")
    assert message.stage2_5
    second = message.stage2_5[0].consultation
    assert message.stage2_5[0].corrected_response == DETAILED
    assert second
    assert second.debate
    assert second.debate.model_dump() == {**DEBATE, "round": 2}
    stored = json.loads(json.dumps(message.dump()))
    for result in (*stored["stage1"], *stored["stage2_5"]):
        assert faults(result["consultation"]) == []


async def test_each_reads_what_it_needs_of_a_consultation() -> None:
    """Reviewers neither name nor score, authors their own JSON and who their critics are, the chairman all."""
    scripted = council()
    await scripted.run(consultants())
    prompt = scripted.prompt(f"stage2.1:{GPT}")
    assert "Pros:\n- No new moving parts" in prompt
    assert not [said for said in ('"score"', "8 of 10", *FOUR) if said in prompt]
    [call] = [call for call in scripted.calls if call.step == f"stage2_5.1:{GPT}"]
    said = [message["content"] for message in call.messages if message["role"] == "assistant"]
    assert [json.loads(text) for text in said] == [REPLY]
    assert call.schema == reply_schema(form_schema(Rebuttal, FOUR[1:]))
    prompt = scripted.prompt("stage3.1:chair/man:chairman")
    assert prompt.count("Its author's own confidence: 8 of 10. The load is known.") == 4


async def test_a_reply_that_is_not_in_form_is_asked_for_once_more() -> None:
    """With what was wrong, as a step of its own whose tokens count."""
    scripted = council(
        **{f"stage1.1:{GPT}": BAD_SCORE, f"stage1.1:{GPT}:again": f"```json\n{FIRST}\n```"}
    )
    message = (await scripted.run(consultants())).message
    answer = message.stage1[0]
    assert answer.consultation
    assert answer.unstructured is None
    assert answer.consultation.metadata.tokens_used == 30
    assert answer.consultation.metadata.latency_ms == 10
    [call] = [call for call in scripted.calls if call.step == f"stage1.1:{GPT}:again"]
    assert [message["role"] for message in call.messages] == ["system", "user", "assistant", "user"]
    assert call.messages[2]["content"] == BAD_SCORE
    assert call.messages[3]["content"] == (
        "That reply can't be used: confidence.score: input should be a valid integer. Send it again, "
        "the whole JSON object in the form that was asked for, and nothing else."
    )
    assert call.schema == form_schema(Opinion)
    assert message.usage
    assert message.usage.calls.keys() >= {f"stage1.1:{GPT}", f"stage1.1:{GPT}:again"}
    [told] = [
        event
        for event in scripted.events
        if isinstance(event, MemberAnswered) and (event.stage, event.member) == ("stage1", GPT)
    ]
    assert told.usage.tokens == 30


async def test_a_reply_that_stays_out_of_form_is_kept_as_text() -> None:
    """There is no third try; the first reply is kept and marked, and reviewers read it. The member hasn't failed."""
    scripted = council(**{f"stage1.1:{GPT}": "Just buy it.", f"stage1.1:{GPT}:again": "I said buy it."})
    message = (await scripted.run(consultants())).message
    answer = message.stage1[0]
    assert (answer.response, answer.consultation) == ("Just buy it.", None)
    assert answer.unstructured == "it is not a JSON object"
    assert scripted.asked("stage1").count(GPT) == 2
    assert "Just buy it." in scripted.prompt("stage2.1:google/gemini")
    message.check()
    scripted = council(**{f"stage1.1:{GPT}": BAD_SCORE, f"stage1.1:{GPT}:again": failure()})
    message = (await scripted.run(consultants())).message
    assert message.stage1[0].response == DETAILED
    assert message.stage1[0].unstructured == "confidence.score: input should be a valid integer"
    assert message.failures == []


async def test_a_correction_that_fails_keeps_the_first_consultation() -> None:
    """Like the first answer; a correction in plain text has no consultation."""
    scripted = council(
        **{
            f"stage2_5.1:{GPT}": failure(),
            "stage2_5.1:google/gemini": "Plain.",
            "stage2_5.1:google/gemini:again": "Plain again.",
        }
    )
    message = (await scripted.run(consultants())).message
    message.check()
    corrections = {result.model: result for result in message.stage2_5 or []}
    assert corrections[GPT].consultation == message.stage1[0].consultation
    plain = corrections["google/gemini"]
    assert (plain.corrected_response, plain.consultation) == ("Plain.", None)
    assert plain.unstructured == "it is not a JSON object"


async def test_a_stop_ends_the_second_try_too() -> None:
    """It is under the same cancellation as the first."""
    scripted = council(**{f"stage1.1:{GPT}": BAD_SCORE})
    scripted.held.add(f"stage1.1:{GPT}:again")
    scripted.script["stage3"] = "Done."
    running = asyncio.ensure_future(scripted.run(consultants()))
    await scripted.until_called(f"stage1.1:{GPT}:again")
    while sum(step.startswith("stage1.1:") for step in scripted.steps.outcomes) < 4:
        await asyncio.sleep(0)
    scripted.stop.press()
    message = (await running).message
    assert message.stage1[0].unstructured
    assert message.stage3.stopped_early


def test_the_form_is_within_the_strict_subset() -> None:
    """Every field is required, no other is allowed, and only grammars have lengths."""
    plain = json.dumps(form_schema(Rebuttal, ["a/b", "c/d"]))
    assert "maxLength" not in plain
    assert "maxItems" not in plain
    for kind, reply in ((Opinion, FIRST), (Rebuttal, AGAIN)):
        schema = form_schema(kind, ["anthropic/claude", "google/gemini"])
        assert faults(json.loads(reply), schema) == []
        assert faults({**json.loads(reply), "consultant": "me"}, schema)
    texts = re.findall(
        r'{"type": "string"[^{}]*}', json.dumps(form_schema(Rebuttal, is_demonstration=True))
    )
    assert len(texts) > 12
    assert all("maxLength" in text or "enum" in text for text in texts)


async def test_every_round_debates_again() -> None:
    """A correction of council round n is round n + 1 of the debate, from the consultation before."""
    said = json.loads(AGAIN)

    def correction(text: str) -> str:
        return json.dumps({**said, "response": {**said["response"], "detailed": text}})

    scripted = council(
        **{f"stage2_5.1:{name}": correction(f"Shard by tenant, says {name}.") for name in FOUR},
        **{
            f"stage2_5.2:{name}": correction("Keep both machines for a whole month.")
            for name in FOUR[:3]
        },
        **{f"stage2_5.2:{FOUR[3]}": failure()},
    )
    message = (await scripted.run(consultants(max_rounds=2))).message
    message.check()
    corrections = [result.consultation for result in message.stage2_5 or []]
    assert [each.debate.round for each in corrections if each and each.debate] == [3, 3, 3, 2]
    [call] = [call for call in scripted.calls if call.step == f"stage2_5.2:{GPT}"]
    [before] = [json.loads(each["content"]) for each in call.messages if each["role"] == "assistant"]
    assert before["response"]["detailed"] == f"Shard by tenant, says {GPT}."
