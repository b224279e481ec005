"""The documents: the contract field by field, and nothing lost to crashes or concurrent writes."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import cast

import orjson
import pytest
from filelock import FileLock

from council.brief import Attachment, Discussion, ThreadMessage
from council.document.conversation import AssistantMessage, Source, UserMessage
from council.text.json_objects import JsonObject
from storage.documents.conversations import Conversations, ConversationStore, DocumentProblem, Stored
from storage.errors import ConversationNotFound, DocumentError, FolderError
from tests.launcher import start
from tests.pairs import rows
from tests.storage.examples import CONTRACT_EXAMPLE, CONTRACT_ID, DATA, NOW, answer, legacy, new_id
from tests.stores import Home, quick_on_sqlite

NO_CONVERSATION = "it is not a conversation document"
SOURCE = Source(platform="slack", workspace="W", channel="C", thread="T", message="M", user="U")


@pytest.fixture
async def store(tmp_path: Path) -> ConversationStore:
    return await ConversationStore.open(tmp_path / "conversations")


@pytest.fixture
async def documents(home: Home) -> AsyncIterator[Conversations]:
    async with home.open() as stores:
        yield stores.documents


async def ask(
    store: Conversations,
    conversation_id: str,
    question: str = "Capital of France?",
    title: str = "France",
) -> Stored:
    return await store.add_exchange(
        conversation_id, question, answer(), title=title, source=SOURCE, now=NOW
    )


def put_in(home: Home, document: JsonObject) -> bytes:
    content = orjson.dumps(document)
    home.put(str(document["id"]), content)
    return content


def loaded(home: Home, conversation_id: str) -> JsonObject:
    return orjson.loads(home.content(conversation_id))


def messages(document: JsonObject) -> list[JsonObject]:
    return cast("list[JsonObject]", document["messages"])


async def test_the_contracts_own_example_loads(home: Home, documents: Conversations) -> None:
    """The storage contract's complete example is a conversation, with every field where the contract has it."""
    home.put(CONTRACT_ID, CONTRACT_EXAMPLE)
    conversation = await documents.load(CONTRACT_ID)
    question, reply = conversation.messages
    assert isinstance(question, UserMessage)
    assert isinstance(reply, AssistantMessage)
    assert question.content == "What is the capital of France?"
    assert reply.stage2_5 is not None
    assert [one.model for one in reply.stage2_5] == [one.model for one in reply.stage1]
    named = {*reply.dump()} - {"label_to_model", "aggregate_ranking"}
    read = [question.dump(), {name: value for name, value in reply.dump().items() if name in named}]
    assert {**conversation.dump(), "messages": read} == orjson.loads(CONTRACT_EXAMPLE)
    assert reply.label_to_model == {
        f"Response {letter}": one.model for letter, one in zip("ABC", reply.stage1, strict=False)
    }


@quick_on_sqlite
async def test_a_new_document_has_the_contracts_fields_and_types(
    home: Home, documents: Conversations
) -> None:
    """The storage contract's required fields have their names and types, and dates are UTC."""
    example = orjson.loads(CONTRACT_EXAMPLE)
    berlin = timezone(timedelta(hours=1))
    conversation_id = new_id()
    await documents.add_exchange(
        conversation_id,
        "Capital of France?",
        answer(),
        title="France",
        source=SOURCE,
        now=datetime(2026, 1, 20, 11, 30, tzinfo=berlin),
    )
    written = loaded(home, conversation_id)
    assert written["created_at"] == example["created_at"]
    assert written["schema_version"] == 1
    assert written["source"] == SOURCE.dump()
    assert shape(example) <= shape(written)


def shape(value: object, path: str = "") -> set[str]:
    """Return every path of a JSON value with its type: `.messages[].role: str`."""
    if isinstance(value, dict):
        fields = cast("JsonObject", value)
        return {f"{path}: object"}.union(*(shape(one, f"{path}.{name}") for name, one in fields.items()))
    if isinstance(value, list):
        return {f"{path}: array"}.union(
            *(shape(one, f"{path}[]") for one in cast("list[object]", value))
        )
    return {f"{path}: {type(value).__name__}"}


async def test_what_is_saved_is_what_loads(documents: Conversations) -> None:
    """The returned conversation and its stamp are those on the disk."""
    conversation_id = new_id()
    stored = await ask(documents, conversation_id)
    assert await documents.load(conversation_id) == stored.conversation
    assert await documents.read([conversation_id]) == [stored]
    assert (await documents.listing()).documents == {conversation_id: stored.stamp}


@quick_on_sqlite
async def test_a_follow_up_goes_to_the_end(documents: Conversations) -> None:
    """Questions and answers are appended in pairs; title, date and source don't change."""
    conversation_id = new_id()
    first = await ask(documents, conversation_id)
    second = await documents.add_exchange(
        conversation_id,
        "And of Spain?",
        answer("Madrid."),
        title="Other",
        source=None,
        now=datetime(2027, 1, 1, tzinfo=UTC),
    )
    assert second.conversation == first.conversation.model_copy(
        update={
            "messages": [
                *first.conversation.messages,
                UserMessage(role="user", content="And of Spain?"),
                answer("Madrid."),
            ]
        }
    )


async def test_a_runs_answer_is_added_once(home: Home) -> None:
    """A run that continues after a crash finds its saved answer."""
    conversation_id = new_id()
    for run in ("run-1", "run-1", "run-2"):
        async with home.open() as stores:
            said = answer().model_copy(update={"run_id": run})
            await stores.documents.add_exchange(
                conversation_id, "Why?", said, title="?", source=SOURCE, now=NOW
            )
    async with home.open() as stores:
        kept = (await stores.documents.load(conversation_id)).messages
    assert [message.role for message in kept] == ["user", "assistant"] * 2


async def test_files_are_private_and_for_people(store: ConversationStore) -> None:
    """Folder 0700, files 0600, indented JSON, unescaped text, a final newline, no temporary files."""
    conversation_id = new_id()
    await ask(store, conversation_id, "北京?")
    path = store.folder / f"{conversation_id}.json"
    text = path.read_text("utf-8")
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert text.startswith(f'{{\n  "id": "{conversation_id}",\n')
    assert '"content": "北京?"' in text
    assert text.endswith("}\n")
    assert {file.name for file in store.folder.iterdir()} == {".locks", path.name}


async def test_unknown_fields_survive_a_write(home: Home, documents: Conversations) -> None:
    """Other programs' fields are kept at every level, in their order; none is added."""
    document = legacy(new_id(), tags=["a", {"b": None}], snowflake=1234567890123456789)
    put_in(home, document)
    stored = await ask(documents, str(document["id"]), "Again?")
    written = loaded(home, str(document["id"]))
    assert written == {**document, "messages": [*messages(document), *messages(written)[2:]]}
    assert [*written] == [*document]
    assert "stage2_5" not in messages(written)[1]
    assert len(stored.conversation.messages) == 4


@quick_on_sqlite
async def test_the_contracts_write_function_keeps_its_order(
    home: Home, documents: Conversations
) -> None:
    """`add_assistant_message(id, stage1, stage2, stage2_5, stage3)` answers the waiting question."""
    document = legacy(new_id(), unanswered=True)
    put_in(home, document)
    example = answer()
    given = example.dump()
    stored = await documents.add_assistant_message(
        str(document["id"]),
        cast("list[object]", given["stage1"]),
        example.stage2,
        example.stage2_5,
        given["stage3"],
    )
    assert messages(loaded(home, str(document["id"])))[-1] == {
        name: given[name] for name in ("role", "stage1", "stage2", "stage2_5", "stage3")
    }
    assert len(stored.conversation.messages) == 4


@quick_on_sqlite
async def test_without_corrections_the_field_is_left_out(home: Home, documents: Conversations) -> None:
    """`stage2_5=None` writes no `stage2_5` (the data model's example message has one, and loads too)."""
    document = legacy(new_id(), unanswered=True)
    put_in(home, document)
    example = orjson.loads((DATA / "data_model_message.json").read_bytes())
    await documents.add_assistant_message(
        str(document["id"]), example["stage1"], example["stage2"], None, example["stage3"]
    )
    del example["stage2_5"]
    assert messages(loaded(home, str(document["id"])))[-1] == example
    AssistantMessage.model_validate(orjson.loads((DATA / "data_model_message.json").read_bytes()))


@quick_on_sqlite
async def test_an_answer_needs_a_question(home: Home, documents: Conversations) -> None:
    """An answer without a question would break the order user, assistant."""
    document = legacy(new_id())
    content = put_in(home, document)
    with pytest.raises(DocumentError, match="no question that waits for an answer"):
        await documents.add_assistant_message(str(document["id"]), [], [], None, answer().stage3)
    with pytest.raises(ConversationNotFound):
        await documents.add_assistant_message(new_id(), [], [], None, answer().stage3)
    assert home.content(str(document["id"])) == content


@quick_on_sqlite
async def test_an_answer_that_breaks_a_rule_is_not_written(documents: Conversations) -> None:
    """The storage contract's validation rules hold before the write."""
    good = answer()
    assert good.stage2_5 is not None
    silent = good.stage2_5[0].model_copy(update={"corrected_response": " "})
    bad = good.model_copy(update={"stage2_5": [silent]})
    with pytest.raises(DocumentError) as caught:
        await documents.add_exchange(new_id(), "?", bad, title="?", source=None, now=NOW)
    assert str(caught.value) == (
        "the answer breaks the document's contract: stage2_5's corrected response of a/one is empty"
    )
    with pytest.raises(DocumentError) as caught:
        await documents.add_assistant_message(new_id(), [{"model": "a/one"}], [], None, None)
    assert str(caught.value) == (
        "the answer is not an assistant message: stage1.0.response is missing; stage3 isn't an object"
    )
    assert (await documents.listing()).documents == {}


@rows(
    "conversation_id",
    ["../secrets", "", "latest", CONTRACT_ID.upper(), CONTRACT_ID.replace("-", ""), CONTRACT_ID + "\n"],
)
async def test_only_a_uuid_becomes_a_path(documents: Conversations, conversation_id: str) -> None:
    """No other id reaches the file system."""
    with pytest.raises(DocumentError, match="not a uuid"):
        await documents.load(conversation_id)
    with pytest.raises(DocumentError, match="not a uuid"):
        await ask(documents, conversation_id)


async def test_a_missing_conversation_is_reported(store: ConversationStore) -> None:
    """The error names the id and the folder."""
    with pytest.raises(ConversationNotFound) as caught:
        await store.load(CONTRACT_ID)
    assert str(caught.value) == f"there is no conversation {CONTRACT_ID} in {store.folder}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is not JSON (see its line 1)"),
        (CONTRACT_EXAMPLE[:9], "it is not JSON (see its line 2)"),
        (b"[]", "it is a list, not one conversation"),
        (
            b'{"id": 1, "title": "", "messages": [{"role": "user"}]}',
            f"{NO_CONVERSATION}: id isn't a text",
        ),
        (
            orjson.dumps(legacy("00000000-0000-4000-8000-000000000000")),
            "the id in it is not the one in its name",
        ),
    ],
)
async def test_an_unreadable_document_is_named_with_its_problem(
    store: ConversationStore, content: bytes, reason: str
) -> None:
    """Loading names the file and the problem; reading many reports it and continues."""
    path = store.folder / f"{CONTRACT_ID}.json"
    path.write_bytes(content)
    good = await ask(store, new_id())
    with pytest.raises(DocumentError) as caught:
        await store.load(CONTRACT_ID)
    assert str(caught.value) == f"{path}: {reason}"
    found = await store.read([CONTRACT_ID, new_id(), good.conversation.id])
    assert found == [DocumentProblem(path.name, reason), good]
    assert path.read_bytes() == content


async def test_a_folder_under_a_documents_name_is_a_problem(store: ConversationStore) -> None:
    """It is reported like broken JSON, and the others are read."""
    path = store.folder / f"{CONTRACT_ID}.json"
    path.mkdir()
    with pytest.raises(FolderError, match="there is a folder where the file should be"):
        await store.load(CONTRACT_ID)
    [problem] = await store.read([CONTRACT_ID])
    assert isinstance(problem, DocumentProblem)
    assert problem.name == path.name


async def test_an_answer_and_an_unreadable_document_are_both_kept(store: ConversationStore) -> None:
    """Writing to a broken document sets a copy aside, says where, and begins a new one."""
    broken = CONTRACT_EXAMPLE[:500]
    (store.folder / f"{CONTRACT_ID}.json").write_bytes(broken)
    stored = await ask(store, CONTRACT_ID)
    aside = store.folder / f"{CONTRACT_ID}.json.broken-20260120T103000000Z"
    assert stored.set_aside == aside
    assert aside.read_bytes() == broken
    assert await store.load(CONTRACT_ID) == stored.conversation
    listing = await store.listing()
    assert listing.set_aside == [aside.name]
    assert [*listing.documents] == [CONTRACT_ID]


async def test_the_listing_reports_files_that_are_no_documents(store: ConversationStore) -> None:
    """JSON files with other names are reported; other files are ignored."""
    for name in (
        "notes.json",
        "README.txt",
        f"{CONTRACT_ID}.json~",
        f".{CONTRACT_ID}.json.12345678.tmp",
    ):
        (store.folder / name).write_bytes(b"")
    listing = await store.listing()
    assert [problem.name for problem in listing.misnamed] == ["notes.json"]
    assert (listing.documents, listing.set_aside) == ({}, [])


async def test_concurrent_exchanges_are_all_kept(documents: Conversations) -> None:
    """Runs that end at the same time are all in the conversation, each question before its answer."""
    conversation_id = new_id()
    questions = [f"Question {number}?" for number in range(8)]
    await asyncio.gather(*(ask(documents, conversation_id, question) for question in questions))
    conversation = await documents.load(conversation_id)
    assert [message.role for message in conversation.messages] == ["user", "assistant"] * 8
    asked = [message.content for message in conversation.messages if isinstance(message, UserMessage)]
    assert sorted(asked) == sorted(questions)


ANOTHER_PROCESS = """
import asyncio, os, signal, sys
from pathlib import Path
from storage.documents.conversations import ConversationStore
from tests.storage.examples import NOW, answer

async def main(folder, conversation_id, times):
    store = await ConversationStore.open(Path(folder))
    for number in range(int(times)):
        question = f"other {number}"
        await store.add_exchange(conversation_id, question, answer(), title="", source=None, now=NOW)

"""
WRITES = ANOTHER_PROCESS + "asyncio.run(main(*sys.argv[1:]))"
DIES_BEFORE_THE_RENAME = (
    ANOTHER_PROCESS
    + "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nasyncio.run(main(*sys.argv[1:]))"
)


async def other_process(script: str, *arguments: str) -> int:
    process = await start(*arguments, cwd=Path(__file__).parents[3], env={}, code=script)
    await process.communicate()
    assert process.returncode is not None
    return process.returncode


async def test_concurrent_processes_lose_nothing(store: ConversationStore) -> None:
    """Two processes that write to the same conversation wait for each other."""
    conversation_id = new_id()
    other = asyncio.create_task(other_process(WRITES, str(store.folder), conversation_id, "3"))
    mine = 0
    while not other.done():
        await ask(store, conversation_id, "mine")
        mine += 1
    assert other.result() == 0
    conversation = await store.load(conversation_id)
    assert [message.role for message in conversation.messages] == ["user", "assistant"] * (mine + 3)
    asked = [message.content for message in conversation.messages if isinstance(message, UserMessage)]
    assert [one for one in asked if one != "mine"] == [f"other {number}" for number in range(3)]


async def test_a_kill_in_mid_write_leaves_the_old_document(store: ConversationStore) -> None:
    """A kill before the rename loses only the new version; the next start removes its temporary file."""
    conversation_id = new_id()
    await ask(store, conversation_id)
    path = store.folder / f"{conversation_id}.json"
    before = path.read_bytes()
    killed = await other_process(DIES_BEFORE_THE_RENAME, str(store.folder), conversation_id, "1")
    assert killed == -signal.SIGKILL
    assert path.read_bytes() == before
    assert len([*store.folder.glob(".*.tmp")]) == 1
    assert [*(await store.listing()).documents] == [conversation_id]
    again = await ConversationStore.open(store.folder)
    assert [*store.folder.glob(".*.tmp")] == []
    assert len((await ask(again, conversation_id)).conversation.messages) == 4


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A file in place of the folder is an error that names the path."""
    path = tmp_path / "conversations"
    path.write_bytes(b"")
    with pytest.raises(
        FolderError, match=f"{re.escape(str(path))} can't be used: there is a file where"
    ):
        await ConversationStore.open(path)


async def test_a_lock_held_too_long_is_named(tmp_path: Path) -> None:
    """A write waits for another process for a limited time."""
    store = await ConversationStore.open(tmp_path, lock_timeout=0.0)
    with (
        FileLock(tmp_path / ".locks" / "55.lock"),
        pytest.raises(FolderError, match=r"55\.lock has been held by another process for 0 s"),
    ):
        await ask(store, CONTRACT_ID)
    await ask(store, CONTRACT_ID)


@quick_on_sqlite
async def test_text_that_is_not_unicode_is_refused(documents: Conversations) -> None:
    """Half a surrogate pair can't be written as JSON, and the error says so."""
    with pytest.raises(DocumentError, match="it can't be written as JSON: str is not valid UTF-8"):
        await ask(documents, new_id(), "\ud800")
    assert (await documents.listing()).documents == {}


async def test_a_document_is_exported_byte_for_byte(home: Home, documents: Conversations) -> None:
    """With numbers too precise for a float, and in another program's formatting."""
    conversation_id = new_id()
    content = orjson.dumps(legacy(conversation_id))
    odd = content.replace(b'"pinned":true', b'"pinned" : 123456789012345678901234567890')
    home.put(conversation_id, odd)
    assert await documents.content(conversation_id) == odd
    home.put(conversation_id, odd[:-9])
    with pytest.raises(DocumentError, match="it is not JSON"):
        await documents.content(conversation_id)


async def test_a_named_pipe_is_never_waited_for(store: ConversationStore) -> None:
    """It is reported as a document that can't be read."""
    conversation_id = new_id()
    os.mkfifo(store.folder / f"{conversation_id}.json")
    async with asyncio.timeout(5):
        [problem] = await store.read([conversation_id])
    assert isinstance(problem, DocumentProblem)
    assert problem.reason.endswith("can't be used: it is not a regular file")


@quick_on_sqlite
async def test_the_thread_that_was_read_is_kept_with_its_question(documents: Conversations) -> None:
    """Word for word, with its authors' ids, in its own field; its files aren't kept."""
    conversation_id = new_id()
    file = Attachment(name="notes.md", text="Two terabytes.")
    said = ThreadMessage(author="U1", name="Ada", text="Should we shard?", files=(file,))
    context = Discussion(until="99", messages=(said,), left_out=3)
    await documents.add_exchange(
        conversation_id, "So?", answer(), title="?", source=SOURCE, now=NOW, context=context
    )
    raw = orjson.loads(await documents.content(conversation_id))
    assert messages(raw)[0] == {
        "role": "user",
        "content": "So?",
        "context": {
            "until": "99",
            "messages": [{"author": "U1", "name": "Ada", "text": "Should we shard?"}],
            "left_out": 3,
        },
    }
    question, _ = (await documents.load(conversation_id)).messages
    assert isinstance(question, UserMessage)
    assert question.context == context.model_copy(
        update={"messages": (said.model_copy(update={"files": ()}),)}
    )


@quick_on_sqlite
async def test_another_programs_context_is_kept_and_not_read(
    home: Home, documents: Conversations
) -> None:
    """It may use the name for something else."""
    conversation_id = new_id()
    await ask(documents, conversation_id)
    raw = loaded(home, conversation_id)
    messages(raw)[0]["context"] = "a whole text"
    home.put(conversation_id, orjson.dumps(raw))
    question, _ = (await documents.load(conversation_id)).messages
    assert isinstance(question, UserMessage)
    assert question.context is None
    await ask(documents, conversation_id)
    assert messages(loaded(home, conversation_id))[0]["context"] == "a whole text"
