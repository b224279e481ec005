"""Documents in the shapes of other programs, in our own words: what is read, what stays, and what follows."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from pydantic import TypeAdapter

from bot.transcript.html import to_html
from bot.transcript.markdown import to_markdown
from bot.view.run import run_views
from council.document.conversation import AssistantMessage, Conversation, UserMessage
from council.text.json_objects import JsonObject
from storage.documents import codec
from storage.documents.conversations import Conversations
from storage.errors import DocumentError
from storage.importing import import_from
from storage.index.index import Index
from storage.stores import Stores
from tests.pairs import rows
from tests.storage.documents.contract_reader import shown_of
from tests.storage.examples import NOW, answer, new_id
from tests.stores import Home, quick_on_sqlite

QUESTION = "At what temperature does water boil?"
BALLOT = "A is right, B is not.\n\nFINAL RANKING:\n1. Response A\n2. Response B"
LABELS = {"Response A": "lab/one", "Response B": "lab/two"}
ASKED: JsonObject = {"role": "user", "content": QUESTION}
ORIGINAL: JsonObject = {
    "role": "assistant",
    "stage1": [
        {"model": "lab/one", "response": "At 100 °C."},
        {"model": "lab/two", "response": "At 99 °C."},
    ],
    "stage2": [
        {"model": name, "ranking": BALLOT, "parsed_ranking": [*LABELS]} for name in LABELS.values()
    ],
    "stage3": {"model": "lab/one", "response": "Water boils at 100 °C at sea level."},
}
GONE = "…"
"""Marks a field that a program leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A document as a program writes it, and what is read in it; a row of `forks.json`.

    `source` is the repository and file in which the shape was looked up. `answer` and `document` change
    karpathy's answer and document.
    """

    name: str
    source: str
    content: bytes
    title: str = "Boiling point"
    final: str | None = "Water boils at 100 °C at sea level."
    members: tuple[str, ...] = ("lab/one", "lab/two")
    labels: dict[str, str] = field(default_factory=lambda: dict(LABELS))
    failed: tuple[tuple[str, str, str], ...] = ()
    """Stage, member and cause of each failed call."""
    corrected: tuple[str, ...] = ()
    created: str = "2025-11-30T09:15:00.123456"


def answered(**changes: object) -> JsonObject:
    return {name: value for name, value in {**ORIGINAL, **changes}.items() if value != GONE}


def document(*messages: object, **changes: object) -> JsonObject:
    whole: JsonObject = {
        "id": new_id(),
        "created_at": "2025-11-30T09:15:00.123456",
        "title": "Boiling point",
        "messages": [*messages] or [ASKED, answered()],
    }
    return {name: value for name, value in {**whole, **changes}.items() if value != GONE}


def written(one: JsonObject) -> bytes:
    """Return a document as Python's `json.dump(…, indent=2)` writes it: no line break at the end."""
    return orjson.dumps(one, option=orjson.OPT_INDENT_2)


def shape(row: dict[str, Any]) -> Shape:
    answer = answered(**row.get("answer", {}))
    parts = {"question": ASKED, "answer": answer}
    messages = [parts[each] if isinstance(each, str) else each for each in row.get("messages", parts)]
    text = written(document(*messages, **row.get("document", {}))).decode()
    content = text.replace(*row.get("replace", ("", ""))).encode(row.get("encoding", "utf-8"))
    said = {"name": row["name"], "source": row["source"], "content": content} | row.get("said", {})
    return TypeAdapter(Shape).validate_python(said)


SHAPES = [shape(row) for row in json.loads(Path(__file__).with_name("forks.json").read_text("utf-8"))]


def test_sixty_shapes_were_looked_up() -> None:
    """Each has a name of its own and a source."""
    assert len(SHAPES) >= 60
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
    assert all(shape.source for shape in SHAPES)


def test_documents_are_understood_and_shown_everywhere() -> None:
    """What each says, and the same in the history, as Markdown and as a page."""
    for shape in SHAPES:
        is_understood(shape)
        is_shown(shape)


def is_understood(shape: Shape) -> None:
    """Check title, question, answers, ballots by name, failed calls, corrections, the final answer."""
    conversation = codec.parse(shape.content).conversation
    assert codec.is_id(conversation.id)
    assert conversation.title == shape.title
    assert conversation.created_at == shape.created
    shown = [message for message in conversation.messages if message.role != "other"]
    asked, reply = shown
    assert isinstance(asked, UserMessage)
    assert isinstance(reply, AssistantMessage)
    assert asked.content == QUESTION
    assert tuple(each.model for each in reply.stage1) == shape.members
    assert (reply.label_to_model or {}) == shape.labels
    assert (reply.aggregate_ranking is not None) is bool(shape.labels)
    assert (
        tuple((each.stage, each.member, each.failure.cause) for each in reply.failures) == shape.failed
    )
    assert tuple(each.corrected_response for each in reply.stage2_5 or ()) == shape.corrected
    assert (reply.stage3.response or None) == shape.final
    assert reply.stage3.is_missing is (shape.final is None)


def is_shown(shape: Shape) -> None:
    """Check that the final answer, or that there is none, and each review once are shown."""
    conversation = codec.parse(shape.content).conversation
    [view] = run_views(conversation)
    assert (view.final and view.final.response) == shape.final
    shown, page = to_markdown(conversation), to_html(conversation)
    said = shape.final or ("It has no final answer." if shape.members else "It has no answer.")
    assert said in shown
    assert said in page
    for seat in view.seats:
        assert (f"### {seat.full_name}\n" in shown) is (seat.name in shape.members)
    if shape.labels:
        assert "Reviewers saw no names: Response A is " in shown
        assert shown.count(BALLOT) == shown.count("#### By ")
        assert "the result is not on record" not in shown


@quick_on_sqlite
async def test_each_is_kept_to_the_byte_until_a_question_follows(
    tmp_path: Path, home: Home, stores: Stores
) -> None:
    """Then its own fields are still there, and what follows is in the form of the contract."""
    store, index = stores.documents, Index(stores.database)
    kept: dict[str, Shape] = {}
    for number, shape in enumerate(SHAPES):
        file = tmp_path / f"{number}.json"
        file.write_bytes(shape.content)
        report = await import_from([file], store, index)
        assert report.skipped == ()
        [one] = report.imported
        assert home.content(one) == await store.content(one) == shape.content
        kept[one] = shape
    assert len(kept) == len(SHAPES)
    assert (await index.check(store)).consistent
    for one, shape in kept.items():
        await is_continued(one, shape, home, stores.documents)


async def is_continued(one: str, shape: Shape, home: Home, store: Conversations) -> None:
    """Ask another question in a conversation, and read the document again."""
    before = codec.parse(shape.content).raw
    await store.add_exchange(one, "And on Everest?", answer(), title="?", source=None, now=NOW)
    after = cast("JsonObject", orjson.loads(home.content(one)))
    old, new = cast("list[JsonObject]", before["messages"]), cast("list[JsonObject]", after["messages"])
    assert new[: len(old)] == old
    assert {**after, "messages": old} == before
    assert new[-2]["content"] == "And on Everest?"
    assert len(shown_of(new[-1])) == 10
    assert len((await store.load(one)).messages) == len(new)


@rows(
    ("content", "reason"),
    [
        (b'[{"id": "x"}]', "it has no messages"),
        (b'["x"]', "it is not a conversation document: the document isn't an object"),
        (b"\xff\xfe\x00", "it is not text in UTF-8, UTF-16 or UTF-32"),
        (written(document(messages=None)), "it has no messages"),
        (written(document(messages=[])), "it has no messages"),
        (written(document(messages=[{"role": "system", "content": "Be brief."}])), "it has no messages"),
        (
            written(document(messages={"a": 1})),
            "it is not a conversation document: messages isn't a list",
        ),
    ],
)
async def test_what_is_not_taken_is_named_in_a_line(
    content: bytes, reason: str, tmp_path: Path, stores: Stores
) -> None:
    """And nothing of it is kept."""
    file = tmp_path / "one.json"
    file.write_bytes(content)
    report = await import_from([file], stores.documents, Index(stores.database))
    assert [(problem.name, problem.reason) for problem in report.skipped] == [("one.json", reason)]
    assert not report.is_taken
    assert (await stores.documents.listing()).documents == {}


def test_the_councils_own_answers_are_read_as_they_are() -> None:
    """Even where another program's would be understood in another way."""
    own = {**answered(), "run_id": "r1", "stage1": [{"model": "a/one", "response": ""}], "stage2": []}
    conversation = codec.read(document({"role": "user", "content": "?"}, own)).conversation
    message = conversation.messages[1]
    assert isinstance(message, AssistantMessage)
    assert message.stage1[0].response == ""
    assert message.failures == []


def test_a_long_question_becomes_a_short_title() -> None:
    """In one line, cut at the end of a word."""
    asked: JsonObject = {"role": "user", "content": "How hot\n must  water " + "be " * 40}
    conversation = codec.read(document(asked, answered(), title=" ")).conversation
    assert (
        conversation.title
        == "How hot must water be be be be be be be be be be be be be be be be be be be be…"
    )


def test_labels_that_the_answers_do_not_explain_stay_labels() -> None:
    """Nobody is named by a guess."""
    ballot = {"model": "lab/one", "ranking": "…", "parsed_ranking": ["Response C", "Response A"]}
    message = codec.read(
        document({"role": "user", "content": "?"}, answered(stage2=[ballot]))
    ).conversation
    reply = Conversation.model_validate(message).messages[1]
    assert isinstance(reply, AssistantMessage)
    assert reply.label_to_model is None
    assert reply.aggregate_ranking is None
    assert reply.stage2[0].parsed_ranking == ["Response C", "Response A"]


def test_a_ballot_may_be_an_order_alone() -> None:
    """Without a text it is shown as the list that it is."""
    orders = [{"model": n, "raw": "", "ranking": ["Response B", "Response A"]} for n in ("a/1", "b/2")]
    asked: JsonObject = {"role": "user", "content": "?"}
    reply = codec.read(document(asked, answered(stage2=orders))).conversation.answers[0]
    assert reply.stage2[0].ranking == "FINAL RANKING:\n1. Response B\n2. Response A"
    assert reply.stage2[1].parsed_ranking == ["Response B", "Response A"]


def test_a_document_in_pieces_names_the_place() -> None:
    """By message and field, without a word of the text."""
    with pytest.raises(DocumentError, match=r"messages\.1 has a value that isn't allowed there$"):
        codec.read(document({"role": "user", "content": "?"}, cast("JsonObject", "secret")))
