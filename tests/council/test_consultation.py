"""Consultations: their schema, texts and limits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from jsonschema import Draft7Validator
from syrupy.assertion import SnapshotAssertion

from council.consultation import (
    CodeSnippet,
    Consultation,
    Debate,
    chairman_view,
    fenced,
    for_reviewers,
    json_schema,
    spoken_text,
)
from council.document.conversation import AssistantMessage
from tests.council.consultations import DEBATE, REPLY, consultation, faults
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


def test_a_document_checks_consultations_against_their_texts() -> None:
    """A document with another text, or with a debate before any review, is refused."""
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


def test_another_programs_consultation_is_read_as_missing() -> None:
    """The document stays readable."""
    message = AssistantMessage.model_validate(
        {
            "role": "assistant",
            "stage1": [{"model": "a", "response": "x", "consultation": {"mine": 1}}],
            "stage2": [],
            "stage3": {"model": "a", "response": "x"},
        }
    )
    assert message.stage1[0].consultation is None
