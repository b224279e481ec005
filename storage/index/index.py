"""The index: what lists and look-ups need from each conversation, derived only from its document.

It can be rebuilt at any time. A row has the stamp of the file version it was derived from, so a check
opens only documents that have changed since.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import orjson

from council.document.conversation import Source
from council.text.json_objects import JsonObject
from storage.atomic import Stamp
from storage.database import Database, Row, Statement
from storage.documents.conversations import Conversations, DocumentProblem, FolderListing, Stored
from storage.index.rows import TABLES, IndexRow, derive, index_row
from storage.index.statistics import Spent, Typical, spent, typical
from storage.scope import Scope
from storage.text_search import TextSearch

_BATCH = 400  # documents read by one thread call and written by one transaction

# Rows come as one JSON array per statement: a statement per row would need the interpreter's lock for
# each, and would wait for the thread that reads the next batch.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_COLUMNS = (*(field.name for field in fields(IndexRow)), "scope")
_TYPES = {
    **dict.fromkeys(("position", "exchanges", "tokens", "mtime_ns", "size", "outdated"), "BIGINT"),
    **dict.fromkeys(("won", "changed", "failed", "helpful", "objections", "held"), "BIGINT"),
    **dict.fromkeys(("audited", "saved_tokens", "own_judge"), "BIGINT"),
    **dict.fromkeys(("cost", "mean_rank", "seconds", "saved_cost"), "DOUBLE PRECISION"),
}


def _given(name: str) -> str:
    """Return a row's value as its column's type: JSON has only texts, where SQLite doesn't read it."""
    value = f"new.value ->> '{name}'"
    if name == "words":
        return f"words_of(new.value ->> 'scope', {value})"
    return f"CAST({value} AS {_TYPES[name]})" if name in _TYPES else value


_VALUES = ", ".join(map(_given, _COLUMNS))
_TAKEN = ", ".join(f'"{name}" = excluded."{name}"' for name in _COLUMNS if name != "id")


def _quoted(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]  # `user` is a word of SQL


# Two answers to one conversation may reach the index in the wrong order: an older version never
# replaces a newer one, unless a rebuild has found that very version outdated (a restored backup is
# older than its row).
_UPSERT = f"""
INSERT INTO conversations ({", ".join(_quoted(_COLUMNS))})
SELECT {_VALUES}
FROM json_each(:rows) AS new LEFT JOIN conversations AS old ON old.id = new.value ->> 'id'
WHERE old.id IS NULL OR old.mtime_ns = {_given("outdated")}
    OR ({_given("mtime_ns")}, {_given("size")}) >= (old.mtime_ns, old.size)
ON CONFLICT (id) DO UPDATE SET {_TAKEN}
"""  # noqa: S608 - our own words

# The rest is derived from the same version as the row, so it is written only if the row was.
_THESE = f"""
FROM json_each(:rows) AS new JOIN conversations AS this
ON this.id = new.value ->> 'id' AND this.mtime_ns = {_given("mtime_ns")} AND this.size = {_given("size")}
"""
_CLEAR = (
    f"DELETE FROM search WHERE rowid IN (SELECT number {_THESE})",  # noqa: S608 - our own words
    f"DELETE FROM answers WHERE conversation IN (SELECT number {_THESE})",  # noqa: S608 - our own words
    f"DELETE FROM authors WHERE conversation IN (SELECT number {_THESE})",  # noqa: S608 - our own words
)


def _insertion(table: str, key: str, columns: Sequence[str]) -> str:
    given = ", ".join(map(_given, columns))
    return f"INSERT INTO {table} ({key}, {', '.join(_quoted(columns))}) SELECT number, {given} {_THESE}"


_ADD = {table: _insertion(table, "conversation", columns) for table, columns in TABLES.items()}
_REMOVE = (
    "DELETE FROM search WHERE rowid = (SELECT number FROM conversations WHERE id = ?)",
    "DELETE FROM conversations WHERE id = ?",
)

# A row without its search text is out of date.
_INDEXED = """
SELECT id, CASE WHEN number IN (SELECT id FROM search_docsize) THEN mtime_ns ELSE 0 END AS mtime_ns, size
FROM conversations
"""
_REMOVE_STRAYS = "DELETE FROM search WHERE rowid NOT IN (SELECT number FROM conversations)"

# An id has no character above f, so this range is that of the prefix, and the key's index serves it.
_FIND = "SELECT * FROM conversations WHERE id >= :first AND id < :last ORDER BY id LIMIT :limit"


@dataclass(frozen=True, slots=True)
class IndexReport:
    """How the index compares with the documents.

    `missing` documents have no row, `stale` ones have a row of another version, and `orphaned` rows have
    no readable document. `unreadable` documents are left as they are; `set_aside` are copies of those
    that a write has replaced.
    """

    documents: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    orphaned: tuple[str, ...]
    unreadable: tuple[DocumentProblem, ...]
    set_aside: tuple[str, ...]

    @property
    def consistent(self) -> bool:
        """Whether the index agrees with the documents."""
        return not (self.missing or self.stale or self.orphaned)


class Index:
    """All conversations, in the database's `conversations`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.mending = asyncio.Lock()
        """Held while rows are derived: what is forgotten meanwhile would come back with them."""

    async def upsert(self, *stored: Stored) -> None:
        """Bring the rows of these conversations up to date."""
        await self._database.write(*await asyncio.to_thread(_upserts, self._database.search, stored))

    async def remove(self, *conversation_ids: str) -> None:
        await self._database.write(*((sql, (one,)) for sql in _REMOVE for one in conversation_ids))

    async def find_as_operator(self, prefix: str, limit: int = 10) -> list[IndexRow]:
        """Return at most `limit` conversations of any channel whose id begins with a prefix.

        For the operator's command line; people in a channel have the `PastAnswers`.
        """
        first = prefix.lower()
        rows = await self._database.read(_FIND, {"first": first, "last": f"{first}g", "limit": limit})
        return [index_row(row) for row in rows]

    async def spent(self, here: Source) -> Spent:
        """Return the sum of what the runs in this place have cost."""
        return await spent(self._database, Scope.of(here))

    async def typical(self, here: Source) -> Typical | None:
        """Return what an answer took lately where something is asked; `None` if there are too few."""
        return await typical(self._database, Scope.of(here))

    async def check(self, store: Conversations) -> IndexReport:
        """Compare the index with the documents without changing anything."""
        return await self._compare(store)

    async def repair(self, store: Conversations) -> IndexReport:
        """Update the rows that don't match their document; the report says which they were."""
        async with self.mending:
            return await self._compare(store, mends=True)

    async def rebuild(self, store: Conversations) -> IndexReport:
        """Derive every row again; the report says what was wrong before.

        Each row stays until its new version is written, so others can read and write meanwhile.
        """
        async with self.mending:
            return await self._compare(store, mends=True, everything=True)

    async def _compare(
        self, store: Conversations, *, mends: bool = False, everything: bool = False
    ) -> IndexReport:
        # Rows first: a conversation that begins in between is in the listing, so it is no orphan.
        rows = await self._database.read(_INDEXED)
        comparison = _Comparison(self._database.search, await store.listing())
        # A hundred thousand rows would hold up the loop, here and in the report.
        changed = await asyncio.to_thread(comparison.begin, rows, everything)
        mending: list[Statement] = []
        for batch in (*_batches(changed), ()):
            # One batch is read while the one before is written.
            derived, _ = await asyncio.gather(
                self._derive(store, batch, comparison), self._database.write(*mending)
            )
            mending = derived if mends else []
        report = await asyncio.to_thread(comparison.report)
        if mends:
            for batch in _batches(report.orphaned):
                await self.remove(*batch)
            await self._database.write((_REMOVE_STRAYS, ()))
            if len(changed) > _BATCH:  # many segments make searches slower
                await self._database.search.merge()
        return report

    async def _derive(
        self, store: Conversations, ids: Sequence[str], comparison: "_Comparison"
    ) -> list[Statement]:
        found = await store.read(ids) if ids else []
        return await asyncio.to_thread(comparison.note, found)


class _Comparison:
    """What a check or a rebuild has found so far."""

    def __init__(self, search: TextSearch, listing: FolderListing) -> None:
        self._search = search
        self._listing = listing
        self._indexed: dict[str, Stamp] = {}
        self._readable: set[str] = set()
        self._missing: list[str] = []
        self._stale: list[str] = []
        self._unreadable = [*listing.misnamed]

    def begin(self, rows: Sequence[Row], everything: bool) -> list[str]:
        """Return the documents to read: all of them, or those whose stamp differs from their row's."""
        self._indexed = {row["id"]: Stamp(row["mtime_ns"], row["size"]) for row in rows}
        documents = self._listing.documents
        changed = [one for one in documents if everything or self._indexed.get(one) != documents[one]]
        # The newest get the highest numbers, and a search ranks those. Among documents of one time, as
        # coarse clocks give, the id decides: hits of one score keep their order.
        changed.sort(key=lambda one: (documents[one].mtime_ns, one))
        self._readable = documents.keys() - set(changed)
        return changed

    def note(self, found: Sequence[Stored | DocumentProblem]) -> list[Statement]:
        """Note how these documents differ from their rows; return the statements that would fix that."""
        readable: list[Stored] = []
        for one in found:
            if isinstance(one, DocumentProblem):
                self._unreadable.append(one)
                continue
            readable.append(one)
            conversation_id = one.conversation.id
            version = self._indexed.get(conversation_id)
            self._readable.add(conversation_id)
            if version is None:
                self._missing.append(conversation_id)
            elif version != one.stamp:
                self._stale.append(conversation_id)
        return _upserts(self._search, readable, self._indexed)

    def report(self) -> IndexReport:
        return IndexReport(
            documents=len(self._readable),
            missing=tuple(sorted(self._missing)),
            stale=tuple(sorted(self._stale)),
            orphaned=tuple(sorted(self._indexed.keys() - self._readable)),
            unreadable=tuple(sorted(self._unreadable, key=lambda problem: problem.name)),
            set_aside=tuple(sorted(self._listing.set_aside)),
        )


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))


def _upserts(
    search: TextSearch, stored: Sequence[Stored], replaced: Mapping[str, Stamp] | None = None
) -> list[Statement]:
    """Return the statements that bring these conversations' rows up to date.

    `replaced` holds the versions that may be replaced by an older one.
    """
    rows: list[JsonObject] = []
    texts: list[JsonObject] = []
    added: dict[str, list[JsonObject]] = {table: [] for table in TABLES}
    for derived in map(derive, stored):
        row = derived.row
        # `asdict` copies each value, which took most of a rebuild's time.
        cells = {name: getattr(row, name) for name in row.__slots__}
        outdated = (replaced or {}).get(row.id)
        this: JsonObject = {"id": row.id, "mtime_ns": row.mtime_ns, "size": row.size}
        this["scope"] = derived.scope.word
        rows.append(this | cells | {"outdated": outdated and outdated.mtime_ns})
        texts.append(this | search.stored(derived.scope, derived.texts))
        for table, found in derived.rows.items():
            added[table] += (this | one for one in found)
    given = {"rows": _json(rows)}
    return [
        (_UPSERT, given),
        *((sql, given) for sql in _CLEAR),
        (_insertion("search", "rowid", search.columns), {"rows": _json(texts)}),
        *((sql, {"rows": _json(added[table])}) for table, sql in _ADD.items()),
    ]


def _json(rows: Sequence[JsonObject]) -> str:
    # SQLite takes a NUL for the end of the text, and PostgreSQL takes none.
    return _NUL.sub(r"\1 ", orjson.dumps(rows).decode())
