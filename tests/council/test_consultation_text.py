"""Replies that should be consultations are read, repaired, or refused with the reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.consultation import Opinion, Rebuttal, read_opinion
from council.text.json_objects import LONGEST_MENDED
from tests.council.consultations import AGAIN, DEBATE, FIRST, REPLY
from tests.pairs import rows

SCORE = '"score": 8'
WHOLE = Opinion.model_validate(REPLY)
DETAILED = WHOLE.response.detailed


def changed(part: str, **fields: object) -> str:
    """Return the reply with fields of a part changed."""
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


def test_alternatives_and_code_may_be_plain_texts() -> None:
    """Each is taken as the name or the code."""
    reply = changed("response", alternatives=["Wait"], code_snippets=["ls"])
    response = (read_opinion(reply, Opinion).opinion or WHOLE).response
    assert [(each.name, each.reason_not_chosen) for each in response.alternatives] == [("Wait", "")]
    assert [each.code for each in response.code_snippets] == ["ls"]


def test_text_with_line_ends_and_quotes_is_kept() -> None:
    """Although JSON requires escapes."""
    reply = FIRST.replace(DETAILED, 'First.\n\nThen say "no" twice.')
    opinion = read_opinion(reply, Opinion).opinion
    assert opinion
    assert opinion.response.detailed == 'First.\n\nThen say "no" twice.'


def test_a_summary_that_is_too_long_ends_at_a_word() -> None:
    """The whole is in the detailed answer."""
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
