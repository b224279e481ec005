"""Full-text search by SQLite's FTS5."""

import sqlite3
from collections.abc import Mapping
from typing import Protocol

from typing_extensions import override

from storage.database import Parameters
from storage.scope import Scope
from storage.text_search import RANKED, TEXTS, WEIGHTS, TextSearch, Wanted, spaced

_MERGE_PAGES = 256  # of the search index in one transaction, some ten milliseconds

_SEARCH = f"""
WITH newest AS MATERIALIZED (
    SELECT rowid AS number, bm25(search, 0.0, {", ".join(map(str, WEIGHTS))}) AS score
    FROM search WHERE search MATCH :match ORDER BY rowid DESC LIMIT {RANKED}
)
SELECT number, score, (SELECT count(*) FROM newest) AS found
FROM newest ORDER BY score, number DESC LIMIT :limit OFFSET :offset
"""  # noqa: S608 - our own numbers


class _File(Protocol):
    """What a search does with its database."""

    async def read(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]: ...

    async def exclusively(self, *statements: str) -> list[list[sqlite3.Row]]: ...


class SqliteSearch(TextSearch):
    """The search in a database file."""

    columns = ("scope", *TEXTS)

    def __init__(self, database: _File) -> None:
        self._database = database

    @override
    def stored(self, scope: Scope, texts: Mapping[str, str]) -> dict[str, str]:
        return {"scope": scope.word} | {name: spaced(texts[name]) for name in TEXTS}

    @override
    async def ranked(
        self, scope: Scope, wanted: Wanted, limit: int, offset: int = 0
    ) -> tuple[list[int], int]:
        match = f"scope : {scope.word} AND {wanted.expression}"
        given = {"match": match, "limit": limit, "offset": offset}
        rows = await self._database.read(_SEARCH, given)
        return [row["number"] for row in rows], rows[0]["found"] if rows else 0

    @override
    async def merge(self) -> None:
        """Merge the search index's segments into one, piece by piece, so that writes get their turn."""
        # A negative number begins a merge of everything; positive ones continue it.
        await self._merge(-_MERGE_PAGES)
        while await self._merge(_MERGE_PAGES):
            pass

    async def _merge(self, pages: int) -> bool:
        merge = f"INSERT INTO search (search, rank) VALUES ('merge', {pages})"  # noqa: S608 - our own number
        count = "SELECT total_changes()"
        [(before,)], _, [(after,)] = await self._database.exclusively(count, merge, count)
        # The command itself counts as a change (SQLite's documentation of FTS5, "merge").
        return after - before >= 2
