"""Both stores find the same conversations and show the same of them, whatever is written and typed."""

import random
from pathlib import Path
from uuid import UUID

import pytest

from council.document.conversation import Source, timestamp
from council.text import set_apart
from storage.database import Migration, known_migrations
from storage.documents.conversations import Stored
from storage.index.index import Index
from storage.index.past_answers import PastAnswers
from storage.scope import Scope
from tests.postgres_server import PostgresServer
from tests.storage.examples import NOW, answer, new_id
from tests.stores import Home

HERE = Source(platform="slack", workspace="W", channel="C")
THERE = Source(platform="slack", workspace="W", channel="D")
WORDS = [
    "shard", "shards", "sharding", "sharded", "tenant", "tenants", "database", "databases", "café",
    "cafe", "CAFÉ", "naïve", "über", "straße", "ha", "running", "run", "runs", "2024", "1.5",
    "c++", "it's", "e-mail", "x_y", "GPT-5", "北京", "北京的", "数据库", "日本語", "カタカナ", "한국어", "เวลา",
    "привет", "ёлка", "ΣΊΣΥΦΟΣ", "Ǆungla", "ﬁn", "Ⅷ", "½", "٣", "👍", "👍🏽", "ฐานข้อมูล", "ฐาน",
    "ខ្មែរ", "🏳️\u200d🌈", "\x00", "\u200b", "𞤀", "ª", "a̐", "İstanbul", "\u017f", "ﬀ",
]  # fmt: skip
QUERIES = (
    *WORDS, "shard tenant", '"shard tenant"', '"ha ha"', '"ha ha ha" ha', "北京的 run", '"数据库 run"',
    "tenants café cafe", "ha ha ha", '"running tenants" shard', "x" * 300, "y" * 40_000, "sha ten", "shard x",
)  # fmt: skip


def text(rng: random.Random, most: int) -> str:
    """Write some words; a few come often."""
    return " ".join(
        rng.choices(WORDS, [1 / (place + 1) for place in range(len(WORDS))], k=rng.randint(0, most))
    )


async def keep(home: Home, corpus: list[Stored]) -> dict[tuple[str, str], list[list[str]]]:
    """Index a corpus; return what is found in two channels, whose order is each store's own."""
    found: dict[tuple[str, str], list[list[str]]] = {}
    async with home.open() as stores:
        index = Index(stores.database)
        for place, stored in enumerate(corpus):
            content = stored.conversation
            home.put(
                content.id,
                content.model_dump_json(exclude_none=True).encode(),
                mtime_ns=place // 10,  # as by a coarse clock
            )
        await index.rebuild(stores.documents)
        past_answers = PastAnswers(stores.database)
        for query in QUERIES:
            for here in (HERE, THERE):
                scope = Scope.of(here)
                rows = (await past_answers.search(scope, query, limit=50)).rows
                named = [
                    await past_answers.find(scope, query, 50, alike=alike) for alike in (False, True)
                ]
                found[query, str(here.channel)] = [
                    sorted(row.id for row in each) for each in (rows, *named)
                ]
    return found


@pytest.mark.parametrize(
    ("seed", "documents"),
    [(0, 14), *(pytest.param(seed, 40, marks=pytest.mark.soak) for seed in (0, 1, 2))],
)
async def test_both_stores_find_the_same(
    tmp_path: Path, postgres: str, seed: int, documents: int
) -> None:
    """Words of every script, stems, phrases, repeated and huge words."""
    rng = random.Random(seed)  # noqa: S311 - a corpus
    corpus: list[Stored] = []
    async with Home(tmp_path / "corpus").open() as stores:
        for number in range(documents):
            title, question, said = (text(rng, most) for most in (6, 30, 120))
            if number == 7:
                said += " " + "x" * 300 + " " + "ha " * 400
            finished = answer(said or "-").model_copy(update={"finished_at": timestamp(NOW)})
            conversation_id, source = (
                str(UUID(int=rng.getrandbits(128), version=4)),
                rng.choice((HERE, THERE)),
            )
            stored = await stores.documents.add_exchange(
                conversation_id, question, finished, title=title, source=source, now=NOW
            )
            corpus.append(stored)
    folder = await keep(Home(tmp_path / "folder"), corpus)
    server = await keep(Home(tmp_path, postgres), corpus)
    assert sum(len(ids) for ids, *_ in folder.values()) > 12 * documents
    for asked, expected in folder.items():
        assert server[asked] == expected, asked


async def found(home: Home, said: str, *wanted: str, title: str = "-") -> list[int]:
    """Store one answer there; return how many conversations each search finds."""
    async with home.open() as stores:
        stored = await stores.documents.add_exchange(
            new_id(), "?", answer(said), title=title, source=HERE, now=NOW
        )
        await Index(stores.database).upsert(stored)
        past_answers = PastAnswers(stores.database)
        return [(await past_answers.search(Scope.of(HERE), words)).found for words in wanted]


async def test_up_to_16_000_words_both_stores_find_all_phrases(tmp_path: Path, postgres: str) -> None:
    """Also where every word is another one, and long, or the 255th of its kind."""
    wanted = '"w15998 w15999"', '"w0 w1"', "w15999", '"w1 w0"'
    for home in (Home(tmp_path / "folder"), Home(tmp_path, postgres)):
        every = " ".join(f"w{number}{'x' * 50 if number % 2 else ''}" for number in range(16_000))
        assert await found(home, every, '"w15996 w15997' + "x" * 50 + '"', "w15998") == [1, 1]
        every = " ".join(f"w{number}" for number in range(16_000))
        assert await found(home, every, *wanted) == [1, 1, 1, 0]
        assert await found(home, "ha ho " * 254 + "ha he", '"ha he"', '"he ha"') == [1, 0]


async def test_beyond_that_postgresql_finds_words(tmp_path: Path, postgres: str) -> None:
    """Phrases are found where they are early enough; no size is refused."""
    home = Home(tmp_path, postgres)
    long = " ".join(f"w{number}" for number in range(20_000))
    wanted = '"w1 w2"', "w19999", '"w19998 w19999"', '"w16381 w19999"'
    assert await found(home, long, *wanted) == [1, 1, 0, 0]
    assert await found(home, "ha ho " * 255 + "ha he", "ha he", '"ha he"') == [1, 0]
    huge = " ".join(f"{number:040}" for number in range(40_000))
    assert await found(home, huge, "tittle", "0" * 40, title="tittle") == [1, 1]


async def test_postgresql_shows_titles_first_and_then_the_newest(tmp_path: Path, postgres: str) -> None:
    """The order is its own: by where the words are, how often, and in how long a text."""
    async with Home(tmp_path, postgres).open() as stores:
        index, ids = Index(stores.database), [new_id() for _ in range(5)]
        texts = ("--s", "--s", "-s-", "s--", "---")
        for conversation_id, each in zip(ids, texts, strict=True):
            title, question, said = (char.replace("s", "shard") for char in each)
            await index.upsert(
                await stores.documents.add_exchange(
                    conversation_id, question, answer(said), title=title, source=HERE, now=NOW
                )
            )
        hits = await PastAnswers(stores.database).search(Scope.of(HERE), "shard")
    assert [row.id for row in hits.rows] == [ids[3], ids[2], ids[1], ids[0]]


@pytest.mark.parametrize("on_server", [False, True], ids=["folder", "server"])
async def test_what_an_older_program_indexed_is_found_by_its_signs(
    tmp_path: Path, postgres_server: PostgresServer, on_server: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The migration empties the index of texts; comparing it with the documents fills it."""

    def before(store: str = "storage.sqlite") -> tuple[Migration, ...]:
        return tuple(each for each in known_migrations(store) if each.name != "signs")

    def apart(text: str) -> str:
        return set_apart(text, "\u200b")

    with postgres_server.schema() as address:
        home = Home(tmp_path, address if on_server else "")
        with monkeypatch.context() as older:
            for store in ("sqlite.database", "postgres.database"):
                older.setattr(f"storage.{store}.known_migrations", before)
            for store in ("sqlite.database", "postgres.search"):
                older.setattr(f"storage.{store}.spaced", apart)
            assert await found(home, "ย้ายฐานข้อมูล 🚀", "ฐานข้อมูล", "🚀") == [0, 0]
        async with home.open() as stores:
            index, past_answers = Index(stores.database), PastAnswers(stores.database)
            assert len((await index.repair(stores.documents)).stale) == 1
            hits = [await past_answers.search(Scope.of(HERE), each) for each in ("ฐานข้อมูล", "🚀")]
    assert [each.found for each in hits] == [1, 1]
