"""Past answers as people in a channel find them. Every read takes the scope of that channel."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from storage.database import Database, listed
from storage.index.rows import LONGEST_PREFIX, IndexRow, index_row
from storage.index.statistics import Statistics, statistics
from storage.scope import Scope
from storage.search_terms import joined, phrases

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
_FIND = """
SELECT * FROM (
    SELECT * FROM conversations WHERE scope = :scope AND id >= :id AND id < :id_end
    ORDER BY id LIMIT :limit
) AS by_id
UNION
SELECT * FROM (
    SELECT * FROM conversations WHERE scope = :scope AND folded >= :title AND folded < :title_end
    ORDER BY folded LIMIT :limit
) AS by_title
ORDER BY updated_at DESC, id DESC LIMIT :limit
"""
# By number alone: SQLite would rather look through all of the channel.
_SHOWN = """
SELECT * FROM conversations WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(:numbers))
"""
_AFTER_HEX, _AFTER_TEXT = "g", "\U0010ffff"  # sort after what an id, and a title, can go on with
_HIT = re.compile("\x02([^\x02\x03]*)\x03")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page of the history begins or ends. Its text fits into a button's value."""

    updated_at: str
    id: str

    def __str__(self) -> str:
        """Return the text that `Cursor.parse` reads."""
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
class Hit:
    """A conversation that a search found, with the words in their context.

    `context` is the text in parts; those that were searched for are marked. It is empty if they are
    found only in the title.
    """

    row: IndexRow
    context: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Hits:
    """A page of hits, best first; `found` is how many there are, counted up to a thousand."""

    hits: tuple[Hit, ...]
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

    async def find(self, scope: Scope, prefix: str, limit: int = 25) -> list[IndexRow]:
        """Return the conversations whose id or title begins with a prefix, newest first.

        Case is ignored, and an empty prefix matches all. If more than `limit` match, any of them may be
        returned.
        """
        if not prefix.strip():
            return [*(await self.history(scope, limit=limit)).rows]
        text = prefix.strip()
        found = await self._database.read(
            _FIND,
            {
                "scope": scope.word,
                "id": text.lower(),
                "id_end": text.lower() + _AFTER_HEX,
                "title": text.casefold()[:LONGEST_PREFIX],
                "title_end": text.casefold()[:LONGEST_PREFIX] + _AFTER_TEXT,
                "limit": limit,
            },
        )
        return [index_row(row) for row in found]

    async def search(self, scope: Scope, words: str, *, limit: int = 20, offset: int = 0) -> Hits:
        """Find conversations by words in their title, questions, final answers and notes, best first.

        All words must occur; double quotes enclose a phrase. The newest thousand hits are ranked, by
        bm25. Without words, nothing is found.
        """
        wanted = phrases(words)
        if not wanted:
            return Hits((), 0)
        search = self._database.search
        numbers, found = await search.ranked(scope, wanted, limit, offset)
        shown = await self._database.read(_SHOWN, {"numbers": listed(numbers)})
        snippets = await search.snippets(wanted, numbers)
        by_number = {row["number"]: row for row in shown if row["scope"] == scope.word}
        # A conversation may have been forgotten between these reads.
        hits = tuple(
            Hit(index_row(by_number[number]), _context(snippets.get(number, "")))
            for number in numbers
            if number in by_number
        )
        return Hits(hits, found)

    async def _page(self, sql: str, scope: Scope, cursor: Cursor, limit: int) -> tuple[IndexRow, ...]:
        found = await self._database.read(
            sql,
            {"scope": scope.word, "time": cursor.updated_at, "id": cursor.id, "limit": limit + 1},
        )
        return tuple(map(index_row, found))

    async def statistics(self, scope: Scope, *, days: int | None = None) -> Statistics:
        """Add up the last days, or all time."""
        return await statistics(self._database, scope, days=days, now=self._now())


def _cursor(row: IndexRow) -> Cursor:
    return Cursor(row.updated_at, row.id)


def _context(snippet: str) -> tuple[tuple[str, bool], ...]:
    """Cut a snippet into its parts: every second one is a hit."""
    parts = _HIT.split(joined(snippet))
    return tuple((text, place % 2 == 1) for place, text in enumerate(parts) if text)
