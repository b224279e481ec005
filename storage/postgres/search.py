"""Full-text search in PostgreSQL that finds what SQLite's FTS5 would, in an order of its own.

The words are FTS5's: SQLite, in memory, makes stems of each text and of what is searched, and PostgreSQL
gets those as `tsvector` and `tsquery`.

A `tsvector` keeps a word's first 255 places, none beyond the 16,383rd, and at most 1 MB (PostgreSQL's
documentation, *Text Search Limitations*). What has no place is found as a word, but not in a phrase.
"""

import asyncio
import hashlib
import sqlite3
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from typing_extensions import override

from storage.database import Parameters, Row
from storage.postgres.connection import Connection
from storage.scope import Scope
from storage.text_search import RANKED, TEXTS, TOKENIZE, TextSearch, Wanted, spaced

_LONGEST_WORD = 40  # bytes: then 16,000 different words fit in a tsvector
_MOST_PLACES, _LAST_PLACE = 255, 16_382  # places beyond the last would all be 16,383
_LARGEST = 1_000_000  # bytes
_LABELS = {"title": "A", "question": "B", "answer": "D"}
_RANK = "ts_rank('{0.125, 0, 0.375, 1}', words, CAST(:any AS tsquery), 1)"
"""`WEIGHTS` as labels have them, from D to A and at most 1; of two texts, the shorter is the better."""

# In steps, as the planner would otherwise try each row by number until it has a thousand hits.
_SEARCH = f"""
WITH hits AS MATERIALIZED (SELECT rowid FROM search WHERE words @@ CAST(:all AS tsquery)),
newest AS MATERIALIZED (SELECT rowid FROM hits ORDER BY rowid DESC LIMIT {RANKED})
SELECT rowid, (SELECT count(*) FROM newest) AS found FROM newest JOIN search USING (rowid)
ORDER BY {_RANK} DESC, rowid DESC LIMIT :limit OFFSET :offset
"""  # noqa: S608 - our own words


class _Fts5:
    """FTS5 over texts in memory, for its words; one thread at a time uses it."""

    def __init__(self) -> None:
        self._using = threading.Lock()
        self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._memory.close)  # since Python 3.13, one left open is a warning
        self._memory.executescript(f"""
            CREATE VIRTUAL TABLE search USING fts5 ({", ".join(TEXTS)}, {TOKENIZE});
            CREATE VIRTUAL TABLE places USING fts5vocab (search, instance);
        """)

    def words(self, texts: Sequence[Mapping[str, str]]) -> list[dict[str, list[str]]]:
        """Return the words of each row's texts by column: stems, in order."""
        found = [dict[str, list[str]]((column, []) for column in each) for each in texts]
        with self._using:
            self._memory.executemany(
                "INSERT INTO search (rowid, title, question, answer) VALUES (?, ?, ?, ?)",
                [
                    (number, *(each.get(column, "").replace("\0", " ") for column in TEXTS))
                    for number, each in enumerate(texts)
                ],
            )
            for row, column, word in self._memory.execute(
                "SELECT doc, col, term FROM places ORDER BY doc, col, offset"
            ):
                found[int(row)][str(column)].append(_kept(word))
            self._memory.execute("DELETE FROM search")
        return found


class _Server(Protocol):
    """What a search does with its database."""

    async def read(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]: ...

    async def using(self, work: Callable[[Connection], Awaitable[Any]]) -> Any: ...  # noqa: ANN401 - as the work


class PostgresSearch(TextSearch):
    """The search in a database that processes share."""

    columns = ("words",)

    def __init__(self, database: _Server) -> None:
        self._database = database
        self._fts5 = _Fts5()

    @override
    def stored(self, scope: Scope, texts: Mapping[str, str]) -> dict[str, str]:
        [found] = self._fts5.words([{name: spaced(texts[name]) for name in TEXTS}])
        return {"words": _vector(scope, found)}

    @override
    async def ranked(
        self, scope: Scope, wanted: Wanted, limit: int, offset: int = 0
    ) -> tuple[list[int], int]:
        texts = [{"answer": spaced(one)} for one in wanted.phrases]
        stems = [one["answer"] for one in await asyncio.to_thread(self._fts5.words, texts)]
        only = "" if wanted.texts == TEXTS else "".join(_LABELS[text] for text in wanted.texts)
        last = f"{'*' * wanted.begins}{only}"
        read = [
            [*(f"'{one}':{only}" for one in words[:-1]), f"'{words[-1]}':{last}"]
            for words in stems
            if words
        ]
        if not read or (len(read) < len(stems) and not wanted.any):
            return [], 0
        phrases = (f"({' <-> '.join(words)})" for words in read)
        given = {
            "all": f"{_word_of(scope)} & ({(' | ' if wanted.any else ' & ').join(phrases)})",
            "any": " | ".join(word for words in read for word in words),
            "limit": limit,
            "offset": offset,
        }
        rows = await self._database.read(_SEARCH, given)
        return [row["rowid"] for row in rows], rows[0]["found"] if rows else 0

    @override
    async def merge(self) -> None:
        """Update the planner's statistics: an index that was empty looks useless to it."""

        async def analyze(connection: Connection) -> None:
            await connection.execute(b"ANALYZE")

        await self._database.using(analyze)


def _word_of(scope: Scope) -> str:
    """Return a scope as a word that no text has."""
    return f"'/{scope.word}'"


def _vector(scope: Scope, found: Mapping[str, Sequence[str]]) -> str:
    """Return a row's words with their places, as PostgreSQL reads a `tsvector`; none has a quote."""
    places: dict[str, list[str]] = {}
    place = size = 0
    for column, words in found.items():
        for word in words:
            place += 1
            if word not in places:
                if size > _LARGEST:
                    continue
                places[word] = []
                size += len(word.encode()) + 4
            if place <= _LAST_PLACE and len(places[word]) < _MOST_PLACES:
                places[word].append(f"{place}{_LABELS[column]}")
                size += 2
        place += 1  # a gap, so that no phrase spans two texts
    placed = (f"'{word}':{','.join(at)}" if at else f"'{word}'" for word, at in places.items())
    return " ".join((_word_of(scope), *placed))


def _kept(word: str) -> str:
    """Return a word, or the substitute for one that is too long."""
    content = word.encode()
    if len(content) <= _LONGEST_WORD:
        return word
    return hashlib.blake2b(content, digest_size=16).hexdigest()
