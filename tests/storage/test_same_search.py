"""Both stores find the same conversations and show them in the same order, whatever is written and typed."""

import random
from pathlib import Path
from uuid import UUID

import pytest

from council.document.conversation import Source, timestamp
from storage.documents.conversations import Stored
from storage.index.index import Index
from storage.index.past_answers import Hits, PastAnswers
from storage.scope import Scope
from tests.storage.examples import NOW, answer
from tests.stores import Home

HERE = Source(platform="slack", workspace="W", channel="C")
THERE = Source(platform="slack", workspace="W", channel="D")
WORDS = [
    "shard",
    "shards",
    "sharding",
    "sharded",
    "tenant",
    "tenants",
    "database",
    "databases",
    "café",
    "cafe",
    "CAFÉ",
    "naïve",
    "über",
    "straße",
    "ha",
    "running",
    "run",
    "runs",
    "2024",
    "1.5",
    "c++",
    "it's",
    "e-mail",
    "x_y",
    "GPT-5",
    "北京",
    "北京的",
    "数据库",
    "日本語",
    "カタカナ",
    "한국어",
    "เวลา",
    "привет",
    "ёлка",
    "ΣΊΣΥΦΟΣ",
    "Ǆungla",
    "ﬁn",
    "Ⅷ",
    "½",
    "٣",
    "👍",
    "🏳️\u200d🌈",
    "\x00",
    "\u200b",
    "𞤀",
    "ª",
    "a̐",
    "İstanbul",
    "\u017f",
    "ﬀ",
]
QUERIES = (
    *WORDS,
    "shard tenant",
    '"shard tenant"',
    '"ha ha"',
    '"ha ha ha" ha',
    "北京的 run",
    '"数据库 run"',
    "tenants café cafe",
    "ha ha ha",
    '"running tenants" shard',
    "x" * 300,
    "y" * 40_000,
)


def text(rng: random.Random, most: int) -> str:
    """Write some words; a few come often."""
    return " ".join(
        rng.choices(WORDS, [1 / (place + 1) for place in range(len(WORDS))], k=rng.randint(0, most))
    )


async def keep(home: Home, corpus: list[Stored]) -> dict[tuple[str, str], Hits]:
    """Index a corpus, and search it for everything in two channels."""
    found: dict[tuple[str, str], Hits] = {}
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
                found[query, str(here.channel)] = await past_answers.search(
                    Scope.of(here), query, limit=50
                )
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2))])
async def test_both_stores_find_the_same_in_the_same_order(
    tmp_path: Path, postgres: str, seed: int
) -> None:
    """Words of every script, stems, phrases, repeated and huge words; and so are the contexts."""
    rng = random.Random(seed)  # noqa: S311 - a corpus
    corpus: list[Stored] = []
    async with Home(tmp_path / "corpus").open() as stores:
        for number in range(40):
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
    assert sum(hits.found for hits in folder.values()) > 500
    for asked, expected in folder.items():
        assert seen(server[asked]) == seen(expected), asked


def seen(hits: Hits) -> list[object]:
    """What people see of hits."""
    return [hits.found, *((hit.row.id, hit.context) for hit in hits.hits)]
