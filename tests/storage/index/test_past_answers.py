"""Past answers: people in a channel find theirs, and no other channel's."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
import pytest

from council.calls import Reply
from council.document.conversation import AssistantMessage, FailedCall, RunUsage, Source, timestamp
from council.document.results import (
    AggregateRanking,
    ChairNotes,
    RankedAnswer,
    Stage1Result,
    Stage2_5Result,
    Stage3Result,
)
from council.errors import Failure
from council.usage import Usage
from storage.database import Database
from storage.documents.conversations import Conversations
from storage.index.index import Index
from storage.index.past_answers import Cursor, PastAnswers, contexts
from storage.index.statistics import Figure, Typical
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from storage.scope import Scope
from tests.pairs import data, rows
from tests.storage.examples import NOW, answer, did, legacy, new_id
from tests.storage.journal.test_journal import BRIEF, call
from tests.stores import Home, quick_on_sqlite

HERE = Source(platform="slack", workspace="W", channel="C", user="U")
SCOPE = Scope.of(HERE)
ELSEWHERE = [
    Source(platform="slack", workspace="W", channel="D"),
    Source(platform="slack", workspace="X", channel="C"),
    Source(platform="discord", workspace="W", channel="C"),
    Source(platform="slack", workspace="WC"),
    Source(platform="slack"),
]


@dataclass(frozen=True)
class Room:
    """Past answers, and what fills their index."""

    past_answers: PastAnswers
    index: Index
    store: Conversations
    database: Database
    home: Home

    async def ask(
        self,
        question: str = "Where is it?",
        text: str = "There.",
        *,
        title: str = "A place",
        source: Source | None = HERE,
        at: datetime = NOW,
        conversation_id: str | None = None,
        message: AssistantMessage | None = None,
    ) -> str:
        """Save an answered question; return the conversation's id."""
        said = (message or answer(text)).model_copy(
            update={"started_at": timestamp(at - timedelta(seconds=9)), "finished_at": timestamp(at)}
        )
        stored = await self.store.add_exchange(
            conversation_id or new_id(), question, said, title=title, source=source, now=at
        )
        await self.index.upsert(stored)
        return stored.conversation.id

    async def found(self, words: str, scope: Scope = SCOPE) -> list[str]:
        return [row.id for row in (await self.past_answers.search(scope, words)).rows]

    async def named(self, typed: str, scope: Scope = SCOPE, *, alike: bool = False) -> list[str]:
        return [row.id for row in await self.past_answers.find(scope, typed, alike=alike)]

    async def context(self, words: str) -> tuple[tuple[str, bool], ...]:
        """Search, and return in which context the only hit has the words."""
        [found] = await self.found(words)
        return contexts(words, [await self.store.load(found)]).get(found, ())


@pytest.fixture
async def room(home: Home) -> AsyncIterator[Room]:
    async with home.open() as stores:
        database = stores.database
        past_answers = PastAnswers(database, now=lambda: NOW + timedelta(days=1))
        yield Room(past_answers, Index(database), stores.documents, database, home)


async def test_a_search_finds_the_chairmans_notes(room: Room) -> None:
    """The hit shows the words in their context."""
    said = answer("Shard by tenant.")
    notes = ChairNotes(dissent="grok would wait a year.", ask="How many tenants are there?")
    noted = said.model_copy(update={"stage3": said.stage3.model_copy(update={"notes": notes})})
    found = await room.ask(message=noted)
    assert await room.found("year shard") == [found]
    assert ("grok", True) in await room.context("grok")


async def test_the_history_pages_from_the_newest_answer(room: Room) -> None:
    """Pages have no gaps, a follow-up moves its conversation to the top, and the last page is marked."""
    ids = [await room.ask(at=NOW + timedelta(minutes=minute)) for minute in (0, 1, 1, 2, 3)]
    await room.ask(at=NOW + timedelta(minutes=9), conversation_id=ids[0])
    seen: list[str] = []
    cursor: Cursor | None = None
    for size in (2, 2, 1):
        page = await room.past_answers.history(SCOPE, before=cursor, limit=2)
        assert len(page.rows) == size
        seen += [row.id for row in page.rows]
        cursor = page.older and Cursor.parse(str(page.older))
    assert cursor is None
    assert seen == [ids[0], ids[4], ids[3], *sorted(ids[1:3], reverse=True)]


async def test_the_history_pages_back_the_same_way(room: Room) -> None:
    """From any page; near the newest, the whole first page is returned."""
    for minute in range(5):
        await room.ask(at=NOW + timedelta(minutes=minute))
    first = await room.past_answers.history(SCOPE, limit=2)
    second = await room.past_answers.history(SCOPE, before=first.older, limit=2)
    third = await room.past_answers.history(SCOPE, before=second.older, limit=2)
    assert first.newer is None
    assert third.newer
    assert second.newer
    assert await room.past_answers.back(SCOPE, third.newer, limit=2) == second
    assert await room.past_answers.back(SCOPE, second.newer, limit=2) == first
    whole = await room.past_answers.history(SCOPE, limit=4)
    assert await room.past_answers.back(SCOPE, second.newer, limit=4) == whole


async def test_a_search_finds_title_question_and_answer(room: Room) -> None:
    """All words must occur, in any field; a hit in the title comes first."""
    told = await room.ask(text="Postgres shards well, and Zürich is far.")
    titled = await room.ask(title="Shards or replicas")
    asked = await room.ask("Should we SHARD now?", "No.")
    assert await room.found("shards") == [titled, asked, told]
    assert await room.found("postgres zurich") == [told]
    assert await room.found("postgres replicas") == []
    assert await room.found('"shards well"') == [told]
    assert await room.found('"well shards"') == []


async def test_text_after_a_nul_is_kept(room: Room) -> None:
    """It is stored and found; the six characters of its JSON escape are plain text."""
    found = await room.ask(
        "Why one\0shard?", "Because\0load, \\u0000 or \\\0bytes.", title="Nul\0and void"
    )
    for word in ("void", "shard", "load", "u0000", "bytes"):
        rows = (await room.past_answers.search(SCOPE, word)).rows
        assert [row.id for row in rows] == [found], word
        assert (word, True) in await room.context(word) or word == "void"
    assert rows[0].title == "Nul and void"


@quick_on_sqlite
async def test_a_hit_is_shown_in_its_context(room: Room) -> None:
    """The context is the text around the words, which are marked."""
    await room.ask(text="First buy memory. Then shard by tenant. 我们应该分片数据库吗。" + " etc." * 90)
    assert await room.context("tenant") == (
        ("…Then shard by ", False),
        ("tenant", True),
        (". 我们应该分片数据库吗。 etc. etc. etc. etc. etc. etc. etc. etc. etc. etc…", False),
    )
    parts = await room.context("分片")
    assert ("分片", True) in parts
    assert "\u200b" not in text_of(parts)


@quick_on_sqlite
async def test_a_hit_in_the_title_shows_the_text_below_it(room: Room) -> None:
    """If the words occur only in the title, there is no context."""
    await room.ask("Should we shard?", "No.", title="Replicas or not")
    assert await room.context("shard") == (("Should we ", False), ("shard", True), ("?", False))
    assert await room.context("replicas") == ()


@quick_on_sqlite
@pytest.mark.parametrize(
    "table",
    [
        "| Store | Cost |\n| --- | ---: |\n| Redis | 3 |\n| Kafka | 4 |",
        "Store | Cost\n:-- | --:\nRedis | 3\nKafka | 4",
        "| Redis |\n|-|\n| Kafka |",
        "|Redis|\n|:-:|",
    ],
)
async def test_tables_are_left_out_of_contexts(room: Room, table: str) -> None:
    """Their words are found; another place shows them, or none."""
    found = await room.ask(text=f"Take Redis.\n\n{table}\n\nNot a table: ls | grep.")
    parts = text_of(await room.context("redis"))
    assert parts == "Take Redis.\n\n\n\nNot a table: ls | grep."
    if "Kafka" in table:
        assert await room.found("kafka") == [found]
        assert await room.context("kafka") == ()


async def test_words_without_spaces_are_found_inside_sentences(room: Room) -> None:
    """Chinese, Japanese and Korean words of one to four characters are found; others are not."""
    found = await room.ask("我在北京的公司用GPT模型、カタカナ도 한국어도")
    await room.ask("东京的模型")
    for word in ("北京", "在北京", "在北京的", "カタ", "한국", "GPT模型"):
        assert await room.found(word) == [found], word
    assert len(await room.found("京")) == 2
    assert await room.found("京北") == []


@pytest.mark.parametrize(
    ("said", "found", "others"),
    data(__file__, "emoji_and_scripts_without_spaces_are_found"),
)
async def test_emoji_and_scripts_without_spaces_are_found(
    room: Room, said: str, found: list[str], others: list[str]
) -> None:
    """Inside a sentence, to the sign; the context shows them as they were written."""
    asked = await room.ask(text=said)
    for word in found:
        assert await room.found(word) == [asked], word
        assert text_of(await room.context(word)).strip("…") in said, word
    for word in others:
        assert await room.found(word) == [], word


TYPED = (
    '"', '""', "*", "scope : x", "a AND", "NOT", "NEAR(", "^", "{title}:", "\0", "-", "(", "' --", "c++",
    "tenant*", 'say "tenant', "𐀀 tenant", "👍", "", "   ", "\ud800", "x" * 9_000, "\U0001e6c0 tenant",
)  # fmt: skip


async def test_whatever_is_typed_is_only_words(room: Room) -> None:
    """Nothing typed is an operator or an error."""
    await room.ask(text="tenant")
    for words in TYPED:
        assert len(await room.found(words)) <= 1, words
    assert await room.found(f"scope : {SCOPE.word}") == []


async def test_hits_page_and_are_counted(room: Room) -> None:
    """Of equally good hits the newest come first; the count is over all pages."""
    ids = [await room.ask() for _ in range(5)]
    first = await room.past_answers.search(SCOPE, "there", limit=3)
    rest = await room.past_answers.search(SCOPE, "there", limit=3, offset=3)
    assert [row.id for row in (*first.rows, *rest.rows)] == ids[::-1]
    assert (first.found, rest.found) == (5, 5)


@pytest.fixture
async def shelf(room: Room) -> dict[str, str]:
    asked = {
        "title": ("Which cache?", "Redis or Memcached"),
        "question": ("Do we keep sessions in Redis, or in Postgres?", "Sessions"),
        "answer": ("Which queue?", "Queues"),
        "german": ("Wohin mit der Kundendatenbank?", "Umzug nach Zürich"),
        "japanese": ("データベースを分割すべきですか。", "分割の是非"),
        "later": ("Which?", "100% uptime"),
    }
    found = {
        name: await room.ask(question, "Redis does it.", title=title, at=NOW + timedelta(minutes=n))
        for n, (name, (question, title)) in enumerate(asked.items())
    }
    await room.ask("And with Celery?", conversation_id=found["later"], at=NOW + timedelta(hours=1))
    return found


@rows(
    ("typed", "best"),
    data(__file__, "any_word_of_title_or_question_finds_an_answer"),
)
async def test_any_word_of_title_or_question_finds_an_answer(
    room: Room, shelf: dict[str, str], typed: str, best: list[str]
) -> None:
    """Best are those that hold all words, then those in which all begin one, then those with one."""
    names = {one: name for name, one in shelf.items()}
    assert [names[one] for one in await room.named(typed)] == best


async def test_while_somebody_types_what_fits_less_follows(room: Room, shelf: dict[str, str]) -> None:
    """Each kind after the better one, and nothing twice."""
    told = await room.ask(title="Rediscover sessions", at=NOW + timedelta(minutes=1))
    assert await room.named("redis", alike=True) == [shelf["title"], shelf["question"], told]


async def test_an_id_finds_its_own_answer(room: Room) -> None:
    """Whole or from eight characters on, in any case; fewer are a word."""
    asked = await room.ask("Why does it say deadbeef?")
    for typed in (asked, asked.upper(), asked[:8], asked[:9]):
        assert await room.named(f" {typed} ") == [asked]
    assert await room.named("deadbee") == [asked]
    assert await room.named(asked[:7]) == []


@rows("there", ELSEWHERE)
async def test_nothing_of_another_channel_is_found(room: Room, there: Source) -> None:
    """No id, prefix, cursor or word reaches another channel, workspace or platform."""
    secret = await room.ask("Merger?", "Yes, on Friday.", title="Merger", source=there)
    scope = Scope.of(there)
    assert [row.id for row in (await room.past_answers.history(scope)).rows] == [secret]
    assert await room.found("merger", scope) == [secret]

    assert (await room.past_answers.history(SCOPE)).rows == ()
    assert (await room.past_answers.history(SCOPE, before=Cursor("~", secret))).rows == ()
    assert await room.past_answers.get(SCOPE, secret) is None
    for typed in (secret, secret[:8], "Mer", "merger", "merger?", f"merger {scope.word}", scope.word):
        assert await room.named(typed, alike=True) == []
        assert (await room.named(typed, scope) == [secret]) == (typed != scope.word)
    for words in ("merger", f"merger {scope.word}", f'" OR scope : {scope.word} OR "'):
        assert await room.found(words) == []
    assert (await room.past_answers.statistics(SCOPE)).answered == 0


async def test_another_programs_documents_belong_to_the_terminal(room: Room) -> None:
    """A document without a source is found where it was imported, whatever the form of its time."""
    document = legacy(new_id())
    room.home.put(str(document["id"]), orjson.dumps(document))
    await room.index.rebuild(room.store)
    scope = Scope.of(Source(platform="terminal"))
    [row] = (await room.past_answers.history(scope)).rows
    assert row.created_at == "2025-11-22T10:00:00.123Z"
    assert await room.found("rayleigh", scope) == [row.id]
    assert await room.found("rayleigh") == []


async def test_a_follow_up_is_found_with_the_old_text_in_one_hit(room: Room) -> None:
    """An updated conversation is one hit, by its old and its new words."""
    asked = await room.ask("First?", "Alpha.")
    await room.ask("Second?", "Beta.", conversation_id=asked)
    assert await room.found("alpha beta") == [asked]
    assert await room.found("first") == [asked]
    await room.index.remove(asked)
    assert await room.found("alpha") == []
    for table in ("conversations", "search", "answers", "seats"):
        [row] = await room.database.read(f"SELECT count(*) AS left FROM {table}")  # noqa: S608 - our own words
        assert row["left"] == 0


async def test_statistics_say_how_each_member_did(room: Room) -> None:
    """Every figure is a mean over the runs that have it; runs without an answer count toward the cost."""
    await room.ask(message=told(places=["a/one", "b/two"], changed={"a/one": True, "b/two": False}))
    await room.ask(message=told(places=["b/two", "a/one"], changed={"a/one": False}))
    await room.ask(message=told(places=[], changed={}, failed=["a/one"]))
    await room.ask(source=ELSEWHERE[0])
    journal = Journal(room.database, now=lambda: NOW)
    for name, status, origin in (
        ("x", "failed", HERE),
        ("y", "stopped", HERE),
        ("z", "failed", ELSEWHERE[0]),
    ):
        await journal.begin(
            RunRow(id=name, entry_key=name, conversation_id=name, origin=origin, brief=BRIEF)
        )
        row = await journal.get(name)
        assert row is not None
        steps = await journal.steps(row)
        paid = Usage(prompt_tokens=4, completion_tokens=1, cost=0.125)
        await steps.record(call("stage1.1:a/one"), Reply(text="Yes.", usage=paid, latency_ms=1))
        await steps.record(call("stage1.1:b/two"), Failure(cause="empty", usage=paid))
        await steps.record(call("stage1.1:c/three"), Failure(cause="connection"))
        await journal.finish(name, "failed" if status == "failed" else "stopped")

    statistics = await room.past_answers.statistics(SCOPE)
    assert (statistics.answered, statistics.failed, statistics.stopped) == (3, 1, 1)
    assert statistics.cost == pytest.approx(0.75 + 4 * 0.125)
    assert statistics.tokens == 30 + 4 * 5
    spent = await room.index.spent(HERE)
    assert (spent.answered, spent.failed, spent.stopped) == (3, 1, 1)
    assert (spent.cost, spent.tokens) == (statistics.cost, statistics.tokens)
    assert spent.typical == Typical(3, 9.0, 0.25)
    assert statistics.seconds == Figure(9.0, 3)
    assert statistics.members == (
        did("a/one", 3, (1.5, 2), (0.5, 2), (0.5, 2), (1 / 3, 3), (0.125, 3), (1.5, 3)),
        did("b/two", 3, (1.5, 2), (0.5, 2), (0.0, 1), (0.0, 3), (None, 0), (None, 0)),
    )


async def test_statistics_of_some_days_leave_out_what_is_older(room: Room) -> None:
    """The days end now."""
    await room.ask(at=NOW - timedelta(days=9))
    await room.ask(at=NOW)
    assert (await room.past_answers.statistics(SCOPE, days=7)).answered == 1
    assert (await room.past_answers.statistics(SCOPE, days=30)).answered == 2
    empty = await room.past_answers.statistics(Scope.of(ELSEWHERE[0]))
    assert (empty.answered, empty.seconds, empty.members) == (0, Figure(None, 0), ())


def told(
    *, places: list[str], changed: dict[str, bool], failed: list[str] | None = None
) -> AssistantMessage:
    """An answer of two members; only a/one's calls have a price and a time."""
    return AssistantMessage(
        role="assistant",
        stage1=[Stage1Result(model=one, response="Yes") for one in ("a/one", "b/two")],
        stage2=[],
        stage2_5=[
            Stage2_5Result(
                model=one,
                original_response="Yes",
                peer_critiques="",
                corrected_response="Yes",
                changed=changed.get(one, False),
                fallback=None if one in changed else Failure(cause="empty"),
            )
            for one in ("a/one", "b/two")
        ],
        stage3=Stage3Result(model="d/chair", response="Yes"),
        aggregate_ranking=AggregateRanking(
            places=[
                RankedAnswer(label=one, model=one, mean_position=place, votes=1, wins=0)
                for place, one in enumerate(places, start=1)
            ],
            agreement=None,
            ballots=1,
        ),
        usage=RunUsage(
            run=Usage(prompt_tokens=10, cost=0.25),
            stages={},
            calls={
                "title": Usage(cost=9.0),
                "stage1.1:a/one": Usage(cost=0.0625),
                "stage2.1:a/one": Usage(cost=0.0625),
                "stage1.1:b/two": Usage(cost=0.06, unpriced=1),
                "stage3.1:a/one:chairman": Usage(cost=9.0),
            },
            latencies={"stage1.1:a/one": 1000, "stage2.1:a/one": 2000, "stage3.1:a/one:chairman": 9000},
        ),
        failures=[
            *(
                FailedCall(stage="stage2", member=one, failure=Failure(cause="deadline"))
                for one in failed or []
            ),
            FailedCall(stage="stage2", member="b/two", failure=Failure(cause="stopped")),
            FailedCall(stage="stage2", member="b/two", failure=Failure(cause="over_budget")),
        ],
    )


def text_of(parts: tuple[tuple[str, bool], ...]) -> str:
    return "".join(text for text, _ in parts)
