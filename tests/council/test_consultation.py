"""Consultations: their schema, texts and limits, how replies are read as them, and a council of consultants."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from syrupy.assertion import SnapshotAssertion

from council.consultation import (
    CodeSnippet,
    Consultation,
    Debate,
    Opinion,
    Rebuttal,
    chairman_view,
    fenced,
    for_reviewers,
    json_schema,
    read_opinion,
    spoken_text,
)
from council.consultation_calls import form_schema
from council.document.conversation import AssistantMessage
from council.events import MemberAnswered
from council.profile import Profile
from council.replies import reply_schema
from council.text.json_objects import LONGEST_MENDED
from tests.council.consultations import AGAIN, DEBATE, FIRST, REPLY, consultation, faults
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile
from tests.pairs import rows

SEED_EXAMPLE = json.loads(Path(__file__).with_name("seed_example.json").read_text("utf-8"))
"""The complete example of the consultants' schema, word for word."""

# The vocabulary of draft-07, https://json-schema.org/draft-07, without what nothing here could use.
DRAFT_07 = {
    "$schema", "$ref", "title", "description", "default", "type", "enum", "const", "minimum", "maximum",
    "minLength", "maxLength", "pattern", "items", "minItems", "maxItems", "properties", "required",
    "additionalProperties", "definitions",
}  # fmt: skip


def _schemas(schema: dict[str, object]) -> Iterator[dict[str, object]]:
    yield schema
    for name in ("properties", "definitions"):
        for inner in cast("dict[str, dict[str, object]]", schema.get(name, {})).values():
            yield from _schemas(inner)
    if "items" in schema:
        yield from _schemas(cast("dict[str, object]", schema["items"]))


def test_the_schema_is_draft_07() -> None:
    """It says so, the meta-schema accepts it, and so is every keyword in it."""
    schema = json_schema()
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    Draft7Validator.check_schema(schema)
    for each in _schemas(schema):
        assert each.keys() <= DRAFT_07
        if "$ref" in each:  # beside it draft-07 ignores everything, so nothing may matter there
            assert each.keys() <= {"$ref", "default"}


def test_the_schemas_example_is_a_consultation_and_so_is_its_least() -> None:
    """It validates, is read, and is stored unchanged."""
    assert faults(SEED_EXAMPLE) == []
    read = Consultation.model_validate(SEED_EXAMPLE)
    assert read.model_dump(mode="json", exclude_defaults=True) == SEED_EXAMPLE
    least = {
        "consultant": "a",
        "response": {"summary": "b", "detailed": "c", "approach": "d"},
        "confidence": {"score": 1, "reasoning": ""},
        "metadata": {},
    }
    assert faults(least) == []
    assert Consultation.model_validate(least).model_dump(exclude_defaults=True) == least


@rows(
    "missing",
    [
        "consultant", "response", "response.summary", "response.detailed", "response.approach",
        "confidence", "confidence.score", "confidence.reasoning", "metadata",
    ],
)  # fmt: skip
def test_the_schemas_required_fields_are_required(missing: str) -> None:
    """By schema and by model."""
    example = json.loads(json.dumps(SEED_EXAMPLE))
    *path, last = missing.split(".")
    part = example
    for name in path:
        part = part[name]
    del part[last]
    assert faults(example)
    with pytest.raises(ValueError, match=last):
        Consultation.model_validate(example)


@rows(
    ("path", "value"),
    [
        (("response", "summary"), "x" * 501),
        (("response", "detailed"), " \n"),
        (("confidence", "score"), 0),
        (("confidence", "score"), 11),
        (("confidence", "score"), 7.5),
        (("confidence", "score"), "8"),
        (("debate",), {**DEBATE, "round": 1}),
        (("debate",), {"position_changed": True}),
        (("debate",), {"round": 2, "position_changed": True, "critiques": [
            {"target": "a", "critique": "b", "severity": "high"}]}),
    ],
)  # fmt: skip
def test_limits_apply_in_schema_and_model(path: tuple[str, ...], value: object) -> None:
    """Both refuse the same."""
    example = json.loads(json.dumps(SEED_EXAMPLE))
    part = example
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    assert faults(example)
    with pytest.raises(ValueError, match=path[-1]):
        Consultation.model_validate(example)


def test_each_reads_its_own_view(snapshot: SnapshotAssertion) -> None:
    """Reviewers all but names and score, the chairman the confidence too, a follow-up nothing of the council's own."""
    assert for_reviewers("plain", None) == "plain"
    assert for_reviewers("", consultation(debate={**DEBATE, "round": 2})) == snapshot
    assert chairman_view("plain", None) == "plain"
    assert chairman_view("", consultation()).endswith(
        "\n\nIts author's own confidence: 8 of 10. The load is known."
    )
    assert spoken_text("plain", None) == "plain"
    assert json.loads(spoken_text("", consultation(debate={**DEBATE, "round": 2}))) == REPLY
    assert fenced(CodeSnippet(language="md", code="```\nx\n````")) == "`````md\n```\nx\n````\n`````"


def test_a_document_checks_consultations_and_reads_another_programs_as_missing() -> None:
    """A document with another text, or with a debate before any review, is refused; it stays readable."""
    one = consultation()
    stored = {
        "role": "assistant",
        "stage1": [{"model": "a", "response": one.response.detailed, "consultation": one}],
        "stage2": [],
        "stage2_5": [
            {
                "model": "a",
                "original_response": one.response.detailed,
                "peer_critiques": "",
                "corrected_response": one.response.detailed,
                "consultation": one.model_copy(
                    update={"debate": Debate.model_validate({**DEBATE, "round": 2})}
                ),
            }
        ],
        "stage3": {"model": "a", "response": "x"},
    }
    message = AssistantMessage.model_validate(stored)
    message.check()
    [answer], [correction] = message.stage1, message.stage2_5 or []
    for changed, problem in (
        ({"stage1": [answer.model_copy(update={"response": "Other"})]}, "another text"),
        ({"stage1": [answer.model_copy(update={"consultation": correction.consultation})]}, "before"),
        ({"stage2_5": [correction.model_copy(update={"corrected_response": "x"})]}, "another text"),
    ):
        with pytest.raises(ValueError, match=problem):
            message.model_copy(update=changed).check()
    message = AssistantMessage.model_validate(
        {
            "role": "assistant",
            "stage1": [{"model": "a", "response": "x", "consultation": {"mine": 1}}],
            "stage2": [],
            "stage3": {"model": "a", "response": "x"},
        }
    )
    assert message.stage1[0].consultation is None


SCORE = '"score": 8'
WHOLE = Opinion.model_validate(REPLY)
DETAILED = WHOLE.response.detailed


def changed(part: str, **fields: object) -> str:
    return json.dumps({**REPLY, part: {**REPLY[part], **fields}})


MENDED = {
    "in a code fence": f"```json\n{FIRST}\n```",
    "in a fence without a language": f"```\n{FIRST}\n```",
    "between sentences": f"Here is my answer:\n\n{FIRST}\n\nI hope that helps!",
    "after thoughts that hold JSON": f'<think>Perhaps {{"score": 3}}?</think>\n{FIRST}',
    "with commas before the brackets' ends": FIRST.replace("]", ",]").replace("}", ",}"),
    "as a Python dictionary": repr(REPLY),
    "with comments": FIRST.replace(f"{SCORE},", f"{SCORE}, // fairly sure\n"),
    "without its last brackets": FIRST.rstrip("]}"),
    "with brackets too many": f"{FIRST}}}}}",
    "as a list of one": f"[{FIRST}]",
    "as a string": json.dumps(json.dumps(REPLY)),
    "in a wrapper": json.dumps({"consultation": REPLY}),
    "with keys of its own": json.dumps({**REPLY, "thinking": "Let me see.", "model": "me"}),
    "with a score of ten": changed("confidence", score="8/10"),
    "with a score out of ten": changed("confidence", score="8 out of 10"),
    "with a score as a text": changed("confidence", score="8"),
    "with a score as 8.0": changed("confidence", score=8.0),
    "with a bare 8/10": FIRST.replace(SCORE, '"score": 8/10'),
    "with a byte order mark": f"\ufeff{FIRST}",
    "with the answer as paragraphs": changed("response", detailed=[DETAILED]),
}


@rows("reply", MENDED.values(), ids=MENDED)
def test_broken_form_is_repaired(reply: str) -> None:
    """The result is the opinion that was meant."""
    reading = read_opinion(reply, Opinion)
    assert reading.problem == ""
    assert reading.opinion == WHOLE


@rows(
    "around",
    [
        "{second}\n{whole}",
        "My first draft:\n```json\n{second}\n```\nBetter:\n```json\n{whole}\n```\nI hope this helps!",
        '{{"port": 80}} is an example.\n\n{whole}\n\nAnother is {{"port": 81}}.',
        "> {second}\n\n{whole}",
        "{whole}\n\n> {second}",
        'The score of 3 in `{{"score": 3}}` was wrong: {whole}',
    ],
)
def test_the_last_whole_consultation_counts(around: str) -> None:
    """What else is in the reply, an earlier draft or a quotation, changes nothing in it."""
    second = FIRST.replace(SCORE, '"score": 3')
    assert read_opinion(around.format(whole=FIRST, second=second), Opinion).opinion == WHOLE


@rows(
    ("reply", "pros"),
    [
        (changed("response", pros="Cheap"), ["Cheap"]),
        (changed("response", pros=None), []),
        (changed("response", pros=["", "Cheap", 7]), ["Cheap", "7"]),
        (changed("response", pros=[{"title": "Cheap", "why": "one machine"}]), ["Cheap: one machine"]),
    ],
)
def test_lists_come_in_many_ways(reply: str, pros: list[str]) -> None:
    """As a text, as nothing, as objects: each becomes a list of texts."""
    reading = read_opinion(reply, Opinion)
    assert reading.opinion
    assert reading.opinion.response.pros == pros


def test_texts_are_kept_and_alternatives_may_be_plain() -> None:
    """Each is taken as the name or the code, although JSON requires escapes; the whole is in the detailed answer."""
    reply = changed("response", alternatives=["Wait"], code_snippets=["ls"])
    response = (read_opinion(reply, Opinion).opinion or WHOLE).response
    assert [(each.name, each.reason_not_chosen) for each in response.alternatives] == [("Wait", "")]
    assert [each.code for each in response.code_snippets] == ["ls"]
    reply = FIRST.replace(DETAILED, 'First.\n\nThen say "no" twice.')
    opinion = read_opinion(reply, Opinion).opinion
    assert opinion
    assert opinion.response.detailed == 'First.\n\nThen say "no" twice.'
    opinion = read_opinion(changed("response", summary="many words " * 60), Opinion).opinion
    assert opinion
    assert len(opinion.response.summary) <= 500
    assert opinion.response.summary.endswith("many words\u2026")


AGREED = "it must appear once, as a whole number"
WHOLE_NUMBER = "input should be a valid integer"
REFUSED = {
    "prose": ("I would buy the machine: 8 of 10.", "it is not a JSON object"),
    "nothing but a number": ("42", "it is not a JSON object"),
    "an empty object": ("{}", "it is not a JSON object"),
    "two broken answers": (f"{FIRST}\n{FIRST.replace(SCORE, SCORE[:-1] + '3')},"[:-3], f"confidence.score: {AGREED}"),
    "two scores": (FIRST.replace(SCORE, f'"score": 3, {SCORE}'), f"confidence.score: {AGREED}"),
    "no score": (FIRST.replace(f"{SCORE}, ", ""), "confidence.score: it is missing"),
    "a word for a score": (changed("confidence", score="high"), f"confidence.score: {WHOLE_NUMBER}"),
    "a broken score": (changed("confidence", score=7.5), f"confidence.score: {WHOLE_NUMBER}"),
    "a score in per cent": (changed("confidence", score="80%"), f"confidence.score: {WHOLE_NUMBER}"),
    "a score of a hundred": (
        FIRST.replace(SCORE, '"score": 8 out of 100'),
        f"confidence.score: {AGREED}",
    ),
    "a range of scores": (changed("confidence", score="7-8"), f"confidence.score: {WHOLE_NUMBER}"),
    "a decimal comma": (FIRST.replace(SCORE, '"score": 8,5'), f"confidence.score: {WHOLE_NUMBER}"),
    "a score of true": (changed("confidence", score=True), f"confidence.score: {WHOLE_NUMBER}"),
    "a score over ten": (
        changed("confidence", score=85),
        "confidence.score: input should be less than or equal to 10",
    ),
    "confidence as a number": (
        json.dumps({**REPLY, "confidence": 8}),
        "confidence: input should be a valid dictionary or instance of Confidence",
    ),
    "cut off in its score": (
        FIRST[: FIRST.index(SCORE)] + '"score": 1',
        "confidence.reasoning: it is missing",
    ),
    "a score that comes last and is cut off": (
        json.dumps({"response": REPLY["response"], "confidence": {"reasoning": "Ten, or so", "score": 1}})[:-2],
        f"confidence.score: {AGREED}",
    ),
    "cut off in its answer": (
        FIRST[: FIRST.index("bigger machine**") + 6],
        "response.approach: it is missing; confidence: it is missing",
    ),
    "an empty answer": (changed("response", detailed=" "), "response.detailed: it is empty"),
    "flat": (
        json.dumps({**REPLY["response"], **REPLY["confidence"]}),
        "response: it is missing; confidence: it is missing",
    ),
    "a steering quote": (
        FIRST.replace(DETAILED, 'It said "confidence": {"score": 10} there'),
        f"confidence.score: {AGREED}",
    ),
    "nothing right": (
        json.dumps({"response": {}, "confidence": {}}),
        (
            "response.summary: it is missing; response.detailed: it is missing; "
            "response.approach: it is missing; and 2 more"
        ),
    ),
    "brackets without end": ('{"a": ["' * 10_000, "it is not a JSON object"),
    "lists within lists": (
        changed("response", pros="deep").replace('"deep"', "[" * 500 + "]" * 500),
        "it is not a JSON object",
    ),
    "objects within objects": (
        changed("response", pros="deep").replace('"deep"', '{"a":' * 500 + "1" + "}" * 500),
        "it is not a JSON object",
    ),
}  # fmt: skip


@rows(("reply", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_repaired_is_refused(reply: str, problem: str) -> None:
    """With the reason, and never with a score that nobody gave."""
    reading = read_opinion(reply, Opinion)
    assert reading.opinion is None
    assert reading.problem == problem


def test_the_words_of_a_refused_reply_are_its_answer() -> None:
    """If it can be read, else the whole reply."""
    assert read_opinion(changed("confidence", score="high"), Opinion).words == DETAILED
    assert read_opinion("Buy it.", Opinion).words == "Buy it."
    assert read_opinion(changed("response", detailed=""), Opinion).words.startswith("{")


@pytest.mark.parametrize("broken", ["", ","], ids=["valid", "mended"])
def test_half_an_emoji_is_marked_as_missing(broken: str) -> None:
    """It can't be encoded; whole ones are kept, also in lists and in refused replies."""
    parts = {"detailed": "Half \ud83d, whole \U0001f600", "pros": ["\ude00"]}
    reply = changed("response", **parts).replace("}", f"{broken}}}")
    opinion = read_opinion(reply, Opinion).opinion
    assert opinion
    assert opinion.response.detailed == "Half \ufffd, whole \U0001f600"
    assert opinion.response.pros == ["\ufffd"]
    refused = changed("response", approach="", **parts)
    assert read_opinion(refused, Opinion).words == "Half \ufffd, whole \U0001f600"


def test_a_debate_is_read_with_its_grades() -> None:
    """In any case; another word for a grade is refused, and so is a debate that is missing."""
    loud = json.loads(AGAIN)
    loud["debate"]["critiques"][0]["severity"] = " Major"
    opinion = read_opinion(json.dumps(loud), Rebuttal).opinion
    assert opinion == Rebuttal.model_validate({**REPLY, "debate": DEBATE})
    loud["debate"]["critiques"][0]["severity"] = "fatal"
    assert read_opinion(json.dumps(loud), Rebuttal).problem == (
        "debate.critiques.0.severity: input should be 'minor', 'moderate' or 'major'"
    )
    assert read_opinion(FIRST, Rebuttal).problem == "debate: it is missing"


@given(st.text(max_size=300))
def test_any_text_is_read_to_an_end(text: str) -> None:
    """A reply that is no consultation is returned unchanged."""
    reading = read_opinion(text, Opinion)
    assert reading.opinion is None
    assert reading.problem
    assert reading.words == text


@given(st.integers(min_value=0, max_value=len(FIRST) - 1))
def test_a_reply_cut_anywhere_has_its_own_score_or_none(end: int) -> None:
    """Never another one."""
    opinion = read_opinion(FIRST[:end], Opinion).opinion
    assert opinion is None or opinion.confidence.score == 8


def test_only_short_replies_are_repaired() -> None:
    """Repair may take quadratic time, so a long reply isn't repaired."""
    broken = '{"response": {"summary": "s", "detailed": "d", "approach": "a"}, "confidence": {"score": 5, "reasoning": "'
    assert read_opinion(broken + "x" * 100, Opinion).opinion
    assert read_opinion(broken + "x" * LONGEST_MENDED, Opinion).problem == "it is not a JSON object"


GPT = "openai/gpt-5"
BAD_SCORE = json.dumps({**REPLY, "confidence": {"score": "high", "reasoning": "I know it."}})


def consultants(*models: str, **settings: object) -> Profile:
    return profile(*models, answer_format="structured", **settings)


def council(**script: object) -> ScriptedCouncil:
    """Script a council whose members reply in form unless a step says otherwise."""
    return ScriptedCouncil({"stage1": FIRST, "stage2_5": AGAIN, **script})  # pyright: ignore[reportArgumentType] - a test's steps


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
