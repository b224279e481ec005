"""Full-text search in PostgreSQL that finds and ranks what SQLite's FTS5 would.

PostgreSQL's own would not: it has other words and stems, keeps 255 places of a word and 16,383 of a
text, and has no bm25. So SQLite, in memory, makes words of each text, and an index of PostgreSQL's finds
the rows that hold them all. Phrases are looked for in the row's words, and bm25 is computed as FTS5
does (`fts5Bm25Function` in SQLite's fts5_aux.c). Contexts are cut by FTS5 itself, from the hits shown.
"""

import asyncio
import hashlib
import math
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from storage.atomic import Stamp
from storage.database import Parameters, Row, listed
from storage.documents import edits
from storage.documents.conversations import Stored
from storage.errors import DocumentError
from storage.index.rows import derive
from storage.postgres.connection import Connection
from storage.scope import Scope
from storage.search_terms import match, spaced
from storage.text_search import RANKED, SNIPPET, TEXT_COLUMNS, WEIGHTS

SEARCHED = TEXT_COLUMNS[1:]  # all but the scope
_K1, _B, _LEAST_IDF = 1.2, 0.75, 1e-6  # FTS5's own
_LONGEST_WORD = 200  # characters: an index takes no longer one than some 2,700 bytes

_ALL_WORDS = "words_of(scope, title || question || answer)"
_TOTALS = "SELECT count(*) AS total, coalesce(sum(size), 0) AS size FROM search"
_NEWEST = f"""
SELECT rowid, size, {{counts}} FROM search
WHERE {_ALL_WORDS} @> CAST(:words AS text[]) AND scope = :scope AND {{holds}}
ORDER BY rowid DESC LIMIT {RANKED}
"""  # noqa: S608 - our own words
_HITS = f"SELECT count(*) AS hits FROM search WHERE {_ALL_WORDS} @> CAST(:words AS text[]) AND {{holds}}"  # noqa: S608 - our own words
_DOCUMENTS = """
SELECT number, documents.id, content FROM conversations JOIN documents ON documents.id = conversations.id
WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(:numbers))
"""


class _Fts5:
    """FTS5 over texts in memory, for its words and its contexts; one thread at a time uses it."""

    def __init__(self) -> None:
        self._using = threading.Lock()
        self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        columns = ", ".join(TEXT_COLUMNS)
        self._memory.executescript(f"""
            CREATE VIRTUAL TABLE search USING fts5 (
                {columns}, tokenize = 'porter unicode61 remove_diacritics 2'
            );
            CREATE VIRTUAL TABLE places USING fts5vocab (search, instance);
        """)

    def words(self, texts: Sequence[Mapping[str, str]]) -> list[dict[str, list[str]]]:
        """Return the words of each row's texts by column: stems, in order."""
        found = [dict[str, list[str]]((column, []) for column in each) for each in texts]
        with self._using:
            self._fill(enumerate(texts))
            for row, column, word in self._memory.execute(
                "SELECT doc, col, term FROM places ORDER BY doc, col, offset"
            ):
                found[int(row)][str(column)].append(_kept(word))
            self._memory.execute("DELETE FROM search")
        return found

    def snippets(self, texts: Mapping[int, Mapping[str, str]], wanted: str) -> dict[int, str]:
        """Return the contexts of what is wanted, an expression of FTS5's, in rows of texts by number."""
        with self._using:
            self._fill(texts.items())
            cut = f"SELECT rowid, {SNIPPET} FROM search WHERE search MATCH ?"  # noqa: S608 - our own words
            found = dict(self._memory.execute(cut, (wanted,)).fetchall())
            self._memory.execute("DELETE FROM search")
        return found

    def _fill(self, rows: Iterable[tuple[int, Mapping[str, str]]]) -> None:
        self._memory.executemany(
            "INSERT INTO search (rowid, title, question, answer) VALUES (?, ?, ?, ?)",
            [
                (number, *(texts.get(column, "").replace("\0", " ") for column in SEARCHED))
                for number, texts in rows
            ],
        )


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase to be found; its parameter `name` is its words as they are stored in a row."""

    name: str
    words: tuple[str, ...]

    @property
    def is_there(self) -> str:
        """A condition that a row has it in one of its texts; its words are there in any case."""
        if len(self.words) == 1:
            return "TRUE"
        return f"({' OR '.join(f'strpos({column}, :{self.name}) > 0' for column in SEARCHED)})"

    @property
    def counts(self) -> str:
        """Expressions for how often a row has it in each text."""
        replaced = "octet_length(replace({column}, :{name}, ''))"
        count = f"(octet_length({{column}}) - {replaced}) / octet_length(:{{name}})"
        if self._overlaps_itself:
            count = "(SELECT count(*) FROM regexp_matches({column}, :{name}_again, 'g'))"
        return ", ".join(
            f"{count.format(column=column, name=self.name)} AS {column}_{self.name}"
            for column in SEARCHED
        )

    @property
    def parameters(self) -> dict[str, str]:
        """What the expressions name."""
        first, *rest = (f" {word} " for word in self.words)
        stored = {self.name: "".join((first, *rest))}
        return stored | {f"{self.name}_again": f"{first}(?={''.join(rest)})"}

    @property
    def _overlaps_itself(self) -> bool:
        """Whether it may begin again before it ends, as `a a` does in `a a a`."""
        return any(self.words[n:] == self.words[:-n] for n in range(1, len(self.words)))


class _Server(Protocol):
    """What a search does with its database."""

    async def read(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]: ...

    async def using(self, work: Callable[[Connection], Awaitable[Any]]) -> Any: ...  # noqa: ANN401 - as the work


class PostgresSearch:
    """A `storage.text_search.TextSearch` in PostgreSQL."""

    def __init__(self, database: _Server) -> None:
        self._database = database
        self._fts5 = _Fts5()

    def stored(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return texts, by column, as stems with a space on each side."""
        [found] = self._fts5.words([{name: spaced(text) for name, text in texts.items()}])
        return {name: "".join(f" {word} " for word in words) for name, words in found.items()}

    async def ranked(
        self, scope: Scope, wanted: Sequence[str], limit: int, offset: int
    ) -> tuple[list[int], int]:
        """Return the numbers of the best hits, and how many there are."""
        read = await asyncio.to_thread(self._fts5.words, [{"answer": spaced(one)} for one in wanted])
        phrases = [_Phrase(f"p{place}", tuple(one["answer"])) for place, one in enumerate(read)]
        if not all(phrase.words for phrase in phrases):
            return [], 0
        newest, [totals] = await asyncio.gather(
            self._newest(scope, phrases), self._database.read(_TOTALS)
        )
        if not newest:
            return [], 0
        # Rows come and go between the reads.
        total = max(totals["total"], len(newest))
        weights = await self._idf(phrases, total)
        average = totals["size"] / total or 1.0
        scores = {row["rowid"]: _bm25(row, weights, average) for row in newest}
        best = sorted(scores, key=lambda number: (scores[number], -number))
        return best[offset : offset + limit], len(newest)

    async def snippets(self, wanted: Sequence[str], numbers: Sequence[int]) -> dict[int, str]:
        """Return the hits' contexts, from their documents."""
        given = {"numbers": listed(numbers)}
        rows = await self._database.read(_DOCUMENTS, given)
        text = f"{{question answer}} : ({match(wanted, 'OR')})"

        def cut() -> dict[int, str]:
            texts = {row["number"]: found for row in rows if (found := _texts(row)) is not None}
            return self._fts5.snippets(texts, text)

        return await asyncio.to_thread(cut)

    async def merge(self) -> None:
        """Update the planner's statistics: an index that was empty looks useless to it."""

        async def analyze(connection: Connection) -> None:
            await connection.execute(b"ANALYZE")

        await self._database.using(analyze)

    async def _newest(self, scope: Scope, phrases: Sequence[_Phrase]) -> Sequence[Row]:
        counts = ", ".join(phrase.counts for phrase in phrases)
        holds = " AND ".join(phrase.is_there for phrase in phrases)
        words = {word for phrase in phrases for word in phrase.words}
        given = {"words": _array([f"/{scope.word}", *sorted(words)]), "scope": scope.word}
        for phrase in phrases:
            given |= phrase.parameters
        return await self._database.read(_NEWEST.format(counts=counts, holds=holds), given)

    async def _idf(self, phrases: Sequence[_Phrase], total: int) -> list[float]:
        """Return how much each phrase weighs: the more, the fewer rows have it."""
        if len(phrases) == 1:  # whatever it weighs, the order is the same
            return [1.0]
        found = await asyncio.gather(*(self._hits(phrase) for phrase in phrases))
        weights = (math.log((max(total - hits, 0) + 0.5) / (hits + 0.5)) for hits in found)
        return [idf if idf > 0 else _LEAST_IDF for idf in weights]

    async def _hits(self, phrase: _Phrase) -> int:
        given = {"words": _array(sorted({*phrase.words})), **phrase.parameters}
        [row] = await self._database.read(_HITS.format(holds=phrase.is_there), given)
        return int(row["hits"])


def _bm25(row: Row, weights: Sequence[float], average: float) -> float:
    """Return a row's score, the best being the least; each step as in FTS5, so that ties are ties."""
    score = 0.0
    for place, idf in enumerate(weights):
        counts = zip(SEARCHED, WEIGHTS[1:], strict=True)
        often = sum(row[f"{column}_p{place}"] * weight for column, weight in counts)
        score += idf * ((often * (_K1 + 1.0)) / (often + _K1 * (1 - _B + _B * row["size"] / average)))
    return -1.0 * score


def _texts(row: Row) -> dict[str, str] | None:
    """Return the texts of a document, as FTS5 has them; `None` if it can't be read by now."""
    content = bytes(row["content"])
    try:
        conversation = edits.read(row["id"], content).conversation
    except DocumentError:
        return None
    texts = derive(Stored(conversation, Stamp(0, len(content)))).texts
    return {column: spaced(getattr(texts, column)) for column in SEARCHED}


def _kept(word: str) -> str:
    """Return a word, or the substitute for one that is too long."""
    if len(word) <= _LONGEST_WORD:
        return word
    return hashlib.blake2b(word.encode(), digest_size=16).hexdigest()


def _array(words: Sequence[str]) -> str:
    """Return an array's text form; no word has what would end its quotes."""
    return "{" + ",".join(f'"{word}"' for word in words) + "}"
