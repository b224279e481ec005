"""Past answers as people in a channel find them. Every read takes the scope of that channel."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from council.document.conversation import Conversation
from storage.database import Database, listed
from storage.index.rows import IndexRow, index_row, texts_of
from storage.index.statistics import Statistics, statistics
from storage.scope import Scope
from storage.text_search import TOKENIZE, Wanted, joined, phrases, spaced

_HISTORY = """
SELECT * FROM conversations
WHERE scope = :scope AND (updated_at, id) < (:time, :id)
ORDER BY updated_at DESC, id DESC LIMIT :limit
"""
_BACK = """
SELECT * FROM conversations
WHERE scope = :scope AND (updated_at, id) > (:time, :id)
ORDER BY updated_at, id LIMIT :limit
"""
_AFTER_ALL = "~"  # sorts after every time and every id
_GET = "SELECT * FROM conversations WHERE id = :id AND scope = :scope"
_BY_ID = """
SELECT * FROM conversations WHERE scope = :scope AND id >= :id AND id < :id_end
ORDER BY id LIMIT :limit
"""
# By number alone: SQLite would rather look through all of the channel.
_SHOWN = """
SELECT * FROM conversations WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(:numbers))
"""
_AFTER_HEX = "g"  # sorts after what an id can go on with
_BEGINS = 8  # characters of an id, of which no word has as many
_NAMED = ("title", "question")
_HIT = re.compile("\x02([^\x02\x03]*)\x03")
# A table's head, the line below it, and its rows, as GitHub's Markdown has them.
_TABLE = re.compile(r"^[^|\n]*\|.*\n(?=[ \t:|]*-)[ \t:|-]+$(?:\n[^|\n]*\|.*$)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page of the history begins or ends. Its text fits into a button's value."""

    updated_at: str
    id: str

    def __str__(self) -> str:
        return f"{self.updated_at}/{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a cursor's text. Whatever it says, it reaches nothing outside the scope."""
        updated_at, _, conversation_id = text.partition("/")
        return cls(updated_at, conversation_id)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the history, newest first; `older` and `newer` are where the pages beside it begin."""

    rows: tuple[IndexRow, ...]
    older: Cursor | None
    newer: Cursor | None = None


@dataclass(frozen=True, slots=True)
class Hits:
    """A page of what was found, best first; `found` is how many there are, counted up to a thousand."""

    rows: tuple[IndexRow, ...]
    found: int


class PastAnswers:
    """The conversations in the index, a scope at a time."""

    def __init__(
        self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._now = now

    async def history(self, scope: Scope, *, before: Cursor | None = None, limit: int = 10) -> Page:
        """Return the latest conversations, newest answer first."""
        found = await self._page(_HISTORY, scope, before or Cursor(_AFTER_ALL, _AFTER_ALL), limit)
        rows = found[:limit]
        return Page(
            rows,
            older=_cursor(rows[-1]) if len(found) > limit else None,
            newer=_cursor(rows[0]) if before and rows else None,
        )

    async def back(self, scope: Scope, after: Cursor, *, limit: int = 10) -> Page:
        """Return the conversations just newer than a page's first, or the whole first page."""
        found = await self._page(_BACK, scope, after, limit)
        if len(found) <= limit:
            return await self.history(scope, limit=limit)
        rows = found[:limit][::-1]
        return Page(rows, older=_cursor(rows[-1]), newer=_cursor(rows[0]))

    async def get(self, scope: Scope, conversation_id: str) -> IndexRow | None:
        """Return the conversation with this id, or `None` if this scope has none."""
        found = await self._database.read(_GET, {"scope": scope.word, "id": conversation_id})
        return index_row(found[0]) if found else None

    async def find(
        self, scope: Scope, typed: str, limit: int = 25, *, alike: bool = False
    ) -> list[IndexRow]:
        """Return the conversations that fit best what somebody types, the best first.

        Those whose title and questions hold all the words; without any, those where all begin a word;
        without any, those where one does. `alike`: of each kind, in this order. An id, or eight
        characters of its beginning, finds its own. Without words, the newest are found.
        """
        wanted, begins = phrases(typed), typed.strip().lower()
        if not begins:
            return [*(await self.history(scope, limit=limit)).rows]
        if len(begins) >= _BEGINS:
            ids = {"scope": scope.word, "id": begins, "id_end": begins + _AFTER_HEX, "limit": limit}
            if by_id := await self._database.read(_BY_ID, ids):
                return [*map(index_row, by_id)]
        found: dict[int, None] = {}
        for any_, begin in ((False, False), (False, True), (True, True)):
            if wanted and (alike or not found) and len(found) < limit:
                one = Wanted(wanted, _NAMED, any=any_, begins=begin)
                found |= dict.fromkeys((await self._database.search.ranked(scope, one, limit))[0])
        return await self._rows(scope, [*found][:limit])

    async def search(self, scope: Scope, words: str, *, limit: int = 20, offset: int = 0) -> Hits:
        """Find conversations by words in their title, questions, final answers and notes, best first.

        All words must occur; double quotes enclose a phrase. The newest thousand hits are ranked, by
        bm25. Without words, nothing is found.
        """
        if not (wanted := phrases(words)):
            return Hits((), 0)
        numbers, found = await self._database.search.ranked(scope, Wanted(wanted), limit, offset)
        return Hits((*await self._rows(scope, numbers),), found)

    async def _rows(self, scope: Scope, numbers: Sequence[int]) -> list[IndexRow]:
        """Return these conversations in this order; some may have been forgotten by now."""
        shown = await self._database.read(_SHOWN, {"numbers": listed(numbers)})
        rows = {row["number"]: index_row(row) for row in shown if row["scope"] == scope.word}
        return [rows[number] for number in numbers if number in rows]

    async def _page(self, sql: str, scope: Scope, cursor: Cursor, limit: int) -> tuple[IndexRow, ...]:
        found = await self._database.read(
            sql, {"scope": scope.word, "time": cursor.updated_at, "id": cursor.id, "limit": limit + 1}
        )
        return tuple(map(index_row, found))

    async def statistics(self, scope: Scope, *, days: int | None = None) -> Statistics:
        return await statistics(self._database, scope, days=days, now=self._now())


def _cursor(row: IndexRow) -> Cursor:
    return Cursor(row.updated_at, row.id)


def contexts(
    words: str, conversations: Iterable[Conversation]
) -> dict[str, tuple[tuple[str, bool], ...]]:
    """Return, by id, where questions or answers hold any of these words: 24 of the text's, in parts.

    Those that were searched for are marked. Tables are left out, and what holds them nowhere else.
    """
    numbered = dict(enumerate(conversations))
    texts = ((number, texts_of(each)) for number, each in numbered.items())
    rows = [
        (
            number,
            *(spaced(_TABLE.sub("", said[name].replace("\0", " "))) for name in ("question", "answer")),
        )
        for number, said in texts
    ]
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute(f"CREATE VIRTUAL TABLE search USING fts5 (question, answer, {TOKENIZE})")
        memory.executemany("INSERT INTO search (rowid, question, answer) VALUES (?, ?, ?)", rows)
        match = Wanted(phrases(words), ("question", "answer"), any=True).expression
        snippet = "snippet(search, -1, char(2), char(3), '…', 24)"
        cut = f"SELECT rowid, {snippet} FROM search WHERE search MATCH ?"  # noqa: S608 - our own words
        found = dict(memory.execute(cut, (match,)).fetchall())
    # Every second part is a hit.
    parts = {number: enumerate(_HIT.split(joined(text))) for number, text in found.items()}
    return {
        numbered[number].id: tuple((text, place % 2 == 1) for place, text in each if text)
        for number, each in parts.items()
    }
