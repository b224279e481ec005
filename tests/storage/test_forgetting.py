"""Forgetting: deleted data is in no file any more, and everything else is kept."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import orjson
import pytest

from council.brief import Attachment, Discussion, History, ThreadMessage, Turn
from council.calls import Reply
from council.document.conversation import Source, UserMessage, timestamp
from council.usage import Usage
from storage.atomic import staging
from storage.audit import Audit, AuditLog
from storage.database import Database
from storage.documents.conversations import Conversations
from storage.errors import ConversationNotFound, DatabaseError, FolderError, StorageError
from storage.forgetting import Forgetting, Selection
from storage.index.index import Index
from storage.index.past_answers import PastAnswers
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from storage.scope import Scope
from storage.sqlite.database import SqliteDatabase
from tests.pairs import pairs, rows
from tests.storage.examples import NOW, answer, new_id
from tests.storage.journal.test_journal import BRIEF, call
from tests.storage.test_bad_disks import room
from tests.stores import Home, quick_on_sqlite

HERE = Source(platform="discord", workspace="W", channel="C", message="M", user="ada")
BOB = HERE.model_copy(update={"user": "bob"})
SCOPE = Scope.of(HERE)
WORD = "zanzibarquux"


@dataclass(frozen=True)
class Place:
    """A data folder with everything in it."""

    home: Home
    database: Database
    store: Conversations
    audit_log: AuditLog
    index: Index
    past_answers: PastAnswers
    journal: Journal
    forgetting: Forgetting

    async def ask(
        self,
        question: str,
        *,
        source: Source = HERE,
        conversation_id: str | None = None,
        history: str = "",
        context: Discussion | None = None,
        at: datetime = NOW,
        ends: bool = True,
        picture: str = "",
        files: tuple[Attachment, ...] = (),
        earlier: tuple[Attachment, ...] = (),
    ) -> str:
        conversation = conversation_id or new_id()
        run = new_id()
        turns = (Turn(question=history, answer=history),) if history else ()
        asked = {"question": question, "history": History(turns=turns), "context": context}
        asked |= {"attachments": files, "earlier": earlier}
        brief = BRIEF.model_copy(update=asked)
        await self.journal.begin(
            RunRow(id=run, entry_key=run, conversation_id=conversation, origin=source, brief=brief),
            pictures={"0" * 64: picture} if picture else None,
        )
        row = await self.journal.get(run)
        assert row is not None
        steps = await self.journal.steps(row)
        await steps.record(
            call("stage1.1:a/one", question), Reply(text=question, usage=Usage(), latency_ms=1)
        )
        if ends:
            said = answer(f"About {question}").model_copy(
                update={"finished_at": timestamp(at), "asked_by": source.user}
            )
            title = f"On {question}"[:80]
            stored = await self.store.add_exchange(
                conversation, question, said, title=title, source=source, now=at, context=context
            )
            await self.index.upsert(stored)
            await self.journal.finish(run, "answered")
        return conversation

    async def forget(self, selection: Selection) -> None:
        await self.forgetting.forget(selection, by="ada")
        await self.forgetting.scrub()

    def bytes_hold(self, text: str) -> list[str]:
        """Name the files whose bytes hold a text, or the tables whose rows do."""
        return self.home.holding(text)

    async def count(self, table: str) -> int:
        [row] = await self.database.read(f"SELECT count(*) AS count FROM {table}")  # noqa: S608 - our own words
        return row["count"]

    def audit(self) -> list[dict[str, object]]:
        return [orjson.loads(line) for line in self.home.audit()]


@pytest.fixture
async def place(home: Home) -> AsyncIterator[Place]:
    async with opened(home) as one:
        yield one


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(Home(tmp_path)) as one:
        yield one


@asynccontextmanager
async def opened(home: Home) -> AsyncGenerator[Place]:
    async with home.open() as stores:
        database, store = stores.database, stores.documents
        index = Index(database)
        yield Place(
            home=home,
            database=database,
            store=store,
            audit_log=stores.audit,
            index=index,
            past_answers=PastAnswers(database),
            journal=(journal := Journal(database, lambda: NOW)),
            forgetting=Forgetting(journal.work, store, index, stores.audit, now=lambda: NOW),
        )


async def test_a_forgotten_conversation_is_in_no_file(place: Place) -> None:
    """Neither document, copies, rows, search text, journal nor write-ahead log contain a word of it."""
    others = [await place.ask(f"Question {number}? " * 40) for number in range(12)]
    forgotten = await place.ask(f"{WORD} " * 500)
    place.home.put_copy(forgotten, WORD.encode())
    for number in range(9):
        await place.ask(f"Follow-up {number}", conversation_id=others[number])
    in_tables = {"documents", "documents_set_aside", "search", "steps"}
    in_files = {f"{forgotten}.json", "council.db-wal"}
    assert set(place.bytes_hold(WORD)) >= (in_tables if place.home.address else in_files)

    await place.forget(await place.forgetting.select.conversation(SCOPE, forgotten))
    assert place.bytes_hold(WORD) == []
    assert place.bytes_hold(forgotten) == []
    with pytest.raises(ConversationNotFound):
        await place.store.load(forgotten)
    assert (await place.past_answers.search(SCOPE, WORD)).found == 0
    assert (await place.past_answers.search(SCOPE, "question")).found == 12
    assert await place.count("conversations") == 12
    assert (await place.index.check(place.store)).consistent
    assert await place.count("runs") == await place.count("steps") == 21
    assert place.audit() == [
        {
            "at": "2026-01-20T10:30:00.000Z",
            "forgot": "conversation",
            "by": "ada",
            "conversations": 1,
            "shared_conversations": 0,
            "heard_conversations": 0,
            "voted_conversations": 0,
            "runs": 1,
        }
    ]


@rows(
    "there",
    [
        Source(platform="discord", workspace="W", channel="D"),
        Source(platform="discord", workspace="V", channel="C"),
        Source(platform="slack", workspace="W", channel="C"),
        Source(platform="discord"),
    ],
)
async def test_another_channels_conversation_is_not_selected(place: Place, there: Source) -> None:
    """Neither its id nor the channel selects its document or its runs."""
    elsewhere = await place.ask("Why?", source=there)
    assert (await place.forgetting.select.conversation(SCOPE, elsewhere)).is_empty
    assert (await place.forgetting.select.channel(SCOPE)).is_empty
    assert (await place.forgetting.select.older_than(SCOPE, NOW + timedelta(days=999))).is_empty
    assert not (await place.forgetting.select.conversation(Scope.of(there), elsewhere)).is_empty


async def test_pictures_and_files_go_with_their_question(place: Place) -> None:
    """The same picture in another conversation is that one's own; no byte of it is left at the end."""
    first = await place.ask("What is this?", picture=f"{WORD}PICTURE" * 200)
    second = await place.ask("And this?", picture=f"{WORD}PICTURE" * 200)
    assert await place.count("pictures") == 2
    await place.forget(await place.forgetting.select.conversation(SCOPE, first))
    kept = await place.database.read("SELECT conversation_id FROM runs JOIN pictures ON run_id = id")
    assert [row["conversation_id"] for row in kept] == [second]
    await place.forget(await place.forgetting.select.conversation(SCOPE, second))
    assert await place.count("pictures") == 0
    assert place.bytes_hold(f"{WORD}PICTURE") == []


@quick_on_sqlite
async def test_files_of_a_forgotten_question_go_from_its_follow_ups(place: Place) -> None:
    """They were read again with those of somebody else."""
    file = Attachment(name="plan.pdf", text=WORD, kind="pdf", pages=1)
    conversation = await place.ask("Does it hold?", files=(file,))
    await place.ask("Still?", source=BOB, conversation_id=conversation, earlier=(file,))
    assert place.bytes_hold(WORD) != []
    await place.forget(await place.forgetting.select.user("discord", "ada"))
    assert place.bytes_hold(WORD) == []
    assert await place.count("runs") == 1


@quick_on_sqlite
async def test_a_run_without_answer_is_forgotten_too(place: Place) -> None:
    """A conversation with only an unfinished or failed run is found by the journal."""
    going = await place.ask(WORD, ends=False)
    selection = await place.forgetting.select.conversation(SCOPE, going)
    assert (selection.conversations, len(selection.runs)) == ((), 1)
    assert selection.running == selection.runs
    await place.forget(selection)
    assert await place.count("runs") == await place.count("steps") == 0
    assert place.bytes_hold(WORD) == []


async def test_everything_of_a_user_goes_and_what_others_asked_stays(place: Place) -> None:
    """In a shared conversation, only the user's questions are deleted, with answers and context."""
    alone = await place.ask(f"{WORD} alone")
    elsewhere = await place.ask(f"{WORD} there", source=HERE.model_copy(update={"channel": "D"}))
    shared = await place.ask(f"{WORD} first")
    await place.ask("Bob's turn?", conversation_id=shared, source=BOB, history=f"{WORD} first")
    bobs = await place.ask("Bob alone?", source=BOB)
    assert len(place.bytes_hold(WORD)) >= 4

    selection = await place.forgetting.select.user("discord", "ada", workspace="W")
    assert set(selection.conversations) == {alone, elsewhere}
    assert selection.shared == (shared,)
    assert len(selection.runs) == 3
    await place.forget(selection)

    assert place.bytes_hold(WORD) == []
    row = await place.past_answers.get(SCOPE, shared)
    assert row is not None
    assert (row.title, row.question, row.user, row.exchanges) == (
        "Bob's turn?",
        "Bob's turn?",
        None,
        1,
    )
    left = {row.id for row in (await place.past_answers.history(SCOPE)).rows}
    assert left == {shared, bobs}
    assert (await place.index.check(place.store)).consistent
    assert (await place.forgetting.select.user("discord", "ada")).is_empty


def thread(*authors: str, word: str = WORD) -> Discussion:
    """A thread of several people; Ada writes the word, also in a file."""
    return Discussion(
        until="99",
        messages=tuple(
            ThreadMessage(
                author=author,
                name=author.title(),
                text=word if author == "ada" else f"{author} was here",
                files=(Attachment(name="a.txt", text=word),) if author == "ada" else (),
            )
            for author in authors
        ),
    )


async def test_what_a_user_wrote_in_a_thread_goes_from_others_runs(place: Place) -> None:
    """From document, journal row, steps and file bytes; the question and other people's words are kept."""
    read = await place.ask("Whose?", source=BOB, context=thread("ada", "cleo", "ada"))
    failed = await place.ask("Failed?", source=BOB, context=thread("bob", "ada"), ends=False)
    other = await place.ask("Untouched?", source=BOB, context=thread("cleo"))
    held = {"documents", "runs"} if place.home.address else {"council.db-wal", f"{read}.json"}
    assert held <= {*place.bytes_hold(WORD)}

    selection = await place.forgetting.select.user("discord", "ada")
    assert (selection.conversations, selection.shared, selection.runs) == ((), (), ())
    assert selection.heard == (read,)
    assert len(selection.read) == 2
    await place.forget(selection)

    assert place.bytes_hold(WORD) == []
    question, said = (await place.store.load(read)).messages
    assert isinstance(question, UserMessage)
    assert question.context is not None
    assert [(each.author, each.text) for each in question.context.messages] == [
        ("cleo", "cleo was here")
    ]
    assert said.role == "assistant"
    rows = await place.database.read("SELECT conversation_id AS id, brief FROM runs")
    briefs = {row["id"]: orjson.loads(row["brief"]) for row in rows}
    assert [each["author"] for each in briefs[read]["context"]["messages"]] == ["cleo"]
    assert [each["author"] for each in briefs[failed]["context"]["messages"]] == ["bob"]
    assert [each["author"] for each in briefs[other]["context"]["messages"]] == ["cleo"]
    assert await place.count("authors") == 2
    assert await place.count("runs") == 3
    assert (await place.forgetting.select.user("discord", "ada")).is_empty
    assert (await place.index.check(place.store)).consistent
    assert place.audit()[0]["heard_conversations"] == 1


@quick_on_sqlite
async def test_a_users_own_question_and_messages_go_together(place: Place) -> None:
    """Both leave a shared conversation; what others asked and wrote is kept."""
    shared = await place.ask(f"{WORD}?", context=thread("ada", "bob"))
    await place.ask("And?", source=BOB, conversation_id=shared, context=thread("ada", "bob"))
    await place.forget(await place.forgetting.select.user("discord", "ada"))
    assert place.bytes_hold(WORD) == []
    question, _ = (await place.store.load(shared)).messages
    assert isinstance(question, UserMessage)
    assert question.content == "And?"
    assert question.context is not None
    assert [each.author for each in question.context.messages] == ["bob"]


async def test_a_users_words_are_deleted_in_one_workspace_only(place: Place) -> None:
    """The same id elsewhere may be somebody else."""
    there = BOB.model_copy(update={"workspace": "V"})
    here = await place.ask("Here?", source=BOB, context=thread("ada"))
    await place.ask("There?", source=there, context=thread("ada"))
    selection = await place.forgetting.select.user("discord", "ada", workspace="W")
    assert (selection.heard, len(selection.read)) == ((here,), 1)
    assert len((await place.forgetting.select.user("discord", "ada")).heard) == 2
    assert (await place.forgetting.select.user("slack", "ada")).is_empty
    for platform, workspace in (("discord", "W"), ("discord", "V"), ("slack", "W"), ("discord", None)):
        await place.ask("Why?", source=Source(platform=platform, workspace=workspace, user="ada"))
    assert len((await place.forgetting.select.user("discord", "ada", workspace="W")).conversations) == 1
    assert len((await place.forgetting.select.user("discord", "ada")).conversations) == 3


@quick_on_sqlite
async def test_a_document_whose_row_is_gone_is_found_by_the_index(place: Place) -> None:
    """As after a restore, or when the journal was damaged."""
    read = await place.ask("Whose?", source=BOB, context=thread("ada"))
    await place.database.write(("DELETE FROM runs", ()))
    await place.index.rebuild(place.store)
    selection = await place.forgetting.select.user("discord", "ada")
    assert (selection.heard, selection.read) == ((read,), ())
    await place.forget(selection)
    assert place.bytes_hold(WORD) == []


@quick_on_sqlite
async def test_a_shared_document_that_cannot_be_read_goes_whole(place: Place) -> None:
    """What can't be cut can't keep what was to be forgotten."""
    shared = await place.ask(WORD)
    await place.ask("And?", conversation_id=shared, source=BOB)
    place.home.put(shared, f'{{"{WORD}": '.encode())
    await place.forget(await place.forgetting.select.user("discord", "ada"))
    assert place.bytes_hold(WORD) == []
    assert await place.count("conversations") == 0


async def test_a_damaged_document_that_the_journal_knows_goes_too(place: Place) -> None:
    """The index has lost it; one with a younger run is kept for now."""
    damaged = await place.ask(WORD)
    place.home.put(damaged, f'{{"{WORD}": '.encode())
    await place.index.repair(place.store)
    select = place.forgetting.select
    by_age = await select.older_than(SCOPE, NOW + timedelta(days=1))
    for selection in (await select.user("discord", "ada"), await select.channel(SCOPE), by_age):
        assert damaged in (*selection.conversations, *selection.shared)
    assert (await select.older_than(SCOPE, NOW)).is_empty
    assert (await select.channel(Scope.of(None))).is_empty
    await place.forget(by_age)
    assert place.bytes_hold(WORD) == []


@quick_on_sqlite
async def test_a_damaged_document_that_others_continued_goes_too(place: Place) -> None:
    """Their answers are in a new document; the old one was set aside."""
    shared = await place.ask(WORD)
    place.home.put(shared, f'{{"{WORD}": '.encode())
    await place.ask("And?", conversation_id=shared, source=BOB, history=WORD)
    await place.forget(await place.forgetting.select.user("discord", "ada"))
    assert place.bytes_hold(WORD) == []
    assert len((await place.store.load(shared)).messages) == 2
    assert (await place.index.check(place.store)).consistent


@quick_on_sqlite
async def test_a_document_that_is_not_indexed_yet_keeps_what_others_asked(place: Place) -> None:
    """While a lost index is rebuilt, the document itself says who asked."""
    shared = await place.ask(WORD)
    await place.ask("And?", conversation_id=shared, source=BOB)
    await place.index.remove(shared)
    await place.forget(await place.forgetting.select.user("discord", "ada"))
    assert place.bytes_hold(WORD) == []
    assert [message.role for message in (await place.store.load(shared)).messages] == [
        "user",
        "assistant",
    ]


class Killed(BaseException):
    """The process dies here."""


@pytest.mark.parametrize(
    ("moment", "what"), pairs(["remove", "upsert", "add"], ["user", "conversation"])
)
async def test_a_forgetting_that_was_killed_is_finished_by_the_next_start(
    place: Place, monkeypatch: pytest.MonkeyPatch, moment: str, what: str
) -> None:
    """At any point; the index may have been repaired before."""
    alone, shared = await place.ask(WORD), await place.ask(f"{WORD} shared")
    await place.ask("And?", conversation_id=shared, source=BOB, history=WORD)
    selection = await place.forgetting.select.user("discord", "ada")
    if what == "conversation":
        await place.forget(await place.forgetting.select.conversation(SCOPE, shared))
        selection = await place.forgetting.select.conversation(SCOPE, alone)

    async def dies(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(type(place.audit_log) if moment == "add" else Index, moment, dies)
        with pytest.raises(Killed):
            await place.forgetting.forget(selection, by="ada")
    assert place.bytes_hold(WORD) != []
    await place.index.repair(place.store)
    await place.forgetting.finish()
    await place.forgetting.scrub()
    assert place.bytes_hold(WORD) == []
    assert place.bytes_hold(alone) == []
    await place.forgetting.finish()
    assert len(place.audit()) == (2 if what == "conversation" else 1)


async def test_a_file_that_cannot_be_deleted_delays_nothing_else(files: Place) -> None:
    """It is tried again, and each failure is reported."""
    stuck, gone = await files.ask("Why?"), await files.ask(WORD)
    path = files.home.folder / "conversations" / f"{stuck}.json"
    path.unlink()
    path.mkdir()
    with pytest.raises(FolderError):
        await files.forgetting.forget(await files.forgetting.select.conversation(SCOPE, stuck), by="ada")
    with pytest.raises(FolderError):
        await files.forgetting.forget(await files.forgetting.select.conversation(SCOPE, gone), by="ada")
    await files.forgetting.scrub()
    assert files.bytes_hold(WORD) == []
    path.rmdir()
    await files.forgetting.finish()
    assert await files.count("runs") == 0


async def test_a_channel_is_forgotten_and_the_others_stay(place: Place) -> None:
    """Its threads are part of it."""
    await place.ask(WORD)
    await place.ask(WORD, source=HERE.model_copy(update={"thread": "T"}))
    there = await place.ask("Why?", source=HERE.model_copy(update={"channel": "D"}))
    await place.forget(await place.forgetting.select.channel(SCOPE))
    assert place.bytes_hold(WORD) == []
    assert [*(await place.store.listing()).documents] == [there]
    assert place.audit()[0]["forgot"] == "channel"


async def test_old_conversations_are_selected_unless_a_run_adds_to_them(place: Place) -> None:
    """The age is that of the last answer."""
    old = await place.ask("Old?", at=NOW - timedelta(days=40))
    kept = await place.ask("Old too?", at=NOW - timedelta(days=40))
    await place.ask("Followed up", conversation_id=kept, at=NOW - timedelta(days=2))
    busy = await place.ask("Old three?", at=NOW - timedelta(days=40))
    await place.ask("Now?", conversation_id=busy, ends=False)
    selection = await place.forgetting.select.older_than(SCOPE, NOW - timedelta(days=30))
    assert selection.conversations == (old,)
    await place.forgetting.forget(selection, by="retention")
    assert {row.id for row in (await place.past_answers.history(SCOPE)).rows} == {kept, busy}


@pytest.mark.parametrize("ends", [False, True])
async def test_what_is_followed_up_meanwhile_is_not_old(place: Place, *, ends: bool) -> None:
    """Thousands of documents take a while to delete; what is asked or answered by then is kept."""
    old = await place.ask("Old?", at=NOW - timedelta(days=40))
    revived = await place.ask("Old too?", at=NOW - timedelta(days=40))
    selection = await place.forgetting.select.older_than(SCOPE, NOW - timedelta(days=30))
    assert {*selection.conversations} == {old, revived}
    await place.ask("And now?", conversation_id=revived, ends=ends)
    await place.forgetting.forget(selection, by="retention")
    assert [row.id for row in (await place.past_answers.history(SCOPE)).rows] == [revived]
    assert len((await place.store.load(revived)).messages) == (4 if ends else 2)
    assert await place.count("runs") == 2
    with pytest.raises(ConversationNotFound):
        await place.store.load(old)
    assert place.audit()[0]["conversations"] == 1


async def test_scrubbing_is_remembered_across_a_crash(place: Place) -> None:
    """Forgotten data is overwritten by the next call; without any, that is quick."""
    await place.forgetting.forget(
        await place.forgetting.select.conversation(SCOPE, await place.ask(WORD)), by="ada"
    )
    assert await place.count("work WHERE kind = 'scrub'") == 1
    await place.forgetting.scrub()
    assert await place.count("work WHERE kind = 'scrub'") == 0
    assert place.bytes_hold(WORD) == []
    await place.forgetting.scrub()


async def test_a_scrub_without_room_is_repeated(files: Place) -> None:
    """Rewriting the database needs its size in free space; until then, forgotten data may remain."""
    for number in range(9):
        await files.ask(f"Question {number}? " * 2000)
    forgotten = await files.ask(WORD)
    assert isinstance(files.database, SqliteDatabase)
    await files.database.exclusively("PRAGMA wal_checkpoint (TRUNCATE)")
    await files.forgetting.forget(await files.forgetting.select.conversation(SCOPE, forgotten), by="ada")
    with room(500_000), pytest.raises(DatabaseError, match="disk"):
        await files.forgetting.scrub()
    await files.forgetting.scrub()
    assert files.bytes_hold(WORD) == []


async def test_a_killed_backups_copy_is_deleted(files: Place) -> None:
    """A running backup keeps its copy, and finished files belong to the operator."""
    forgotten = await files.ask(WORD)
    left = files.home.folder / ".staging-0"
    left.mkdir()
    (left / "council.db").write_text(WORD)
    with staging(files.home.folder) as busy:
        (busy / "council.db").touch()
        await files.forget(await files.forgetting.select.conversation(SCOPE, forgotten))
        assert files.bytes_hold(WORD) == []
        assert [*files.home.folder.glob(".staging-*")] == [busy]
    assert not busy.exists()


async def test_the_audit_is_private_and_append_only(tmp_path: Path) -> None:
    """Its file is 0600; a folder that can't be written is named."""
    audit = Audit(tmp_path / "audit.jsonl")
    await audit.add({"at": "now"})
    await audit.add({"at": "later"})
    assert (tmp_path / "audit.jsonl").read_bytes() == b'{"at":"now"}\n{"at":"later"}\n'
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FolderError, match=r"audit\.jsonl can't be used"):
        await Audit(tmp_path / "none" / "audit.jsonl").add({})


@quick_on_sqlite
async def test_ids_from_elsewhere_name_no_file(place: Place) -> None:
    """A restored database may contain anything: an id that is a path reaches no file."""
    kept = place.home.folder / "kept.json"
    kept.touch()
    aimed = '{"what":"user","by":"x","conversations":["../kept"],"shared":[],"user":null,"runs":[]}'
    forgotten = await place.ask(WORD)
    mine = aimed.replace("../kept", forgotten)
    for key, selection in enumerate((aimed, "{", '{"what":"all"}', mine)):
        await place.database.write(place.journal.work.add("forget", selection, str(key)))
    with pytest.raises(StorageError):
        await place.forgetting.finish()
    assert kept.exists()
    assert forgotten not in (await place.store.listing()).documents
