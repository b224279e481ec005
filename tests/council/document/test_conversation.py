"""The conversation document: lenient to read, strict to write."""

import pytest
from pydantic import ValidationError

from council.document.conversation import AssistantMessage, Conversation, exchanges, peer_critiques
from council.document.results import ChairNotes, Stage2_5Result, Stage2Result
from tests.council.scripted import ScriptedCouncil
from tests.pairs import rows

PLAIN = {
    "role": "assistant",
    "stage1": [{"model": "a/one", "response": "Paris."}],
    "stage2": [],
    "stage3": {"model": "a/one", "response": "Paris."},
}


def test_a_document_of_the_contract_alone_is_read_and_unknown_fields_survive() -> None:
    """Neither `stage2_5` nor any field of ours is needed; nothing is written that wasn't there, and nothing is lost."""
    message = AssistantMessage.model_validate(PLAIN)
    assert message.stage2_5 is None
    assert message.dump() == PLAIN
    message = AssistantMessage.model_validate({**PLAIN, "loading": {"stage1": False}})
    assert message.dump()["loading"] == {"stage1": False}
    conversation = Conversation.model_validate(
        {"id": "x", "created_at": "2026", "title": "t", "messages": [], "starred": True}
    )
    assert conversation.dump()["starred"] is True
    reviews = [
        Stage2Result(model=name, ranking=f"Review by {name}.", parsed_ranking=[])
        for name in ("a", "b", "c")
    ]
    assert peer_critiques("b", reviews) == (
        "Peer evaluation from a:\nReview by a.\n\nPeer evaluation from c:\nReview by c."
    )


def test_each_question_is_paired_with_its_answer() -> None:
    """One without an answer stays alone, an answer without a question has an empty one, and others are none."""
    asked = [{"role": "user", "content": text} for text in ("Capital?", "And of Italy?", "Why?")]
    system = {"role": "other", "content": "Be brief."}
    messages = [PLAIN, asked[0], system, PLAIN, asked[1], asked[2]]
    document = {"id": "1", "created_at": "2026-01-20T10:30:00.000Z", "title": "", "messages": messages}
    conversation = Conversation.model_validate(document)
    assert [(each.question, each.answer is not None) for each in exchanges(conversation)] == [
        ("", True),
        ("Capital?", True),
        ("And of Italy?", False),
        ("Why?", False),
    ]
    assert conversation.answers == [each.answer for each in exchanges(conversation) if each.answer]


@rows(
    "strange",
    [
        {"usage": {"total": 5}},
        {"settings": "fast"},
        {"aggregate_ranking": [{"model": "a/one", "average_rank": 1.0}]},
        {"label_to_model": ["a/one"]},
        {"failures": {"a/one": "timeout"}},
    ],
)
def test_another_programs_field_of_the_same_name_is_read_as_missing(strange: dict[str, object]) -> None:
    """The document is kept."""
    message = AssistantMessage.model_validate(PLAIN | strange)
    assert message.dump() == PLAIN


def test_the_chairmans_notes_are_stored_beside_its_answer() -> None:
    """Only those that it wrote; a document without any, or with another program's, reads as before."""
    final = {"model": "a/one", "response": "Paris."}
    noted = final | {"notes": {"dissent": "a/two holds Lyon.", "ask": "Which year?"}}
    message = AssistantMessage.model_validate(PLAIN | {"stage3": noted})
    assert message.stage3.notes == ChairNotes(dissent="a/two holds Lyon.", ask="Which year?")
    assert message.dump()["stage3"] == noted
    for other in (final, final | {"notes": "see page 3"}):
        assert AssistantMessage.model_validate(PLAIN | {"stage3": other}).dump()["stage3"] == final


def test_a_broken_contract_field_is_an_error() -> None:
    """`stage2_5` may be missing, but not broken."""
    for broken in (
        *({"stage1": "Paris."}, {"stage2_5": [{"model": "a/one"}]}, {"stage3": None}),
        {"stage3": {"model": "a/one"}},
    ):
        with pytest.raises(ValidationError):
            AssistantMessage.model_validate(PLAIN | broken)


async def changed(**correction: object) -> AssistantMessage:
    """Return a valid message with a changed first correction."""
    message = (await ScriptedCouncil().run()).message
    first, *rest = message.stage2_5 or []
    fields = {**first.model_dump(), **correction}
    return message.model_copy(update={"stage2_5": [Stage2_5Result.model_validate(fields), *rest]})


@pytest.mark.parametrize(
    ("tampered", "rule"),
    [
        ({"model": "nobody/knows"}, "who is not in stage1"),
        ({"original_response": "Another."}, "is not its stage1 response"),
        ({"corrected_response": "  "}, "is empty"),
        ({"peer_critiques": ""}, "are not its peers' reviews"),
    ],
)
async def test_what_is_written_keeps_the_contracts_rules(tampered: dict[str, object], rule: str) -> None:
    """The storage contract's validation rules, each with its own words."""
    with pytest.raises(ValueError, match=rule):
        (await changed(**tampered)).check()


async def test_a_ballot_ranks_known_labels_only() -> None:
    """A label that no answer has is refused before a write."""
    message = (await ScriptedCouncil().run()).message
    ballot = message.stage2[0].model_copy(update={"parsed_ranking": ["Response A", "Response Z"]})
    with pytest.raises(ValueError, match="ranks unknown labels"):
        message.model_copy(update={"stage2": [ballot, *message.stage2[1:]]}).check()
    unnamed = {"stage2": [ballot, *message.stage2[1:]], "label_to_model": None, "iteration": None}
    with pytest.raises(ValueError, match="ranks unknown labels"):
        message.model_copy(update=unnamed).check()
