"""Full-text search in PostgreSQL that finds what SQLite's FTS5 does, in an order of its own.

Words are told apart here, as FTS5 does: letters, digits and private characters, without case and
accents. Those that aren't ASCII are written in hexadecimal, so that the server's locale has no say in
it. The server makes stems of the others.

A `tsvector` keeps a word's first 255 places, none beyond the 16,383rd, and at most 1 MB (PostgreSQL's
documentation, *Text Search Limitations*). What has no place is found as a word, but not in a phrase.
"""

import hashlib
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import orjson
from typing_extensions import override

from storage.database import Parameters, Row
from storage.postgres.connection import Connection
from storage.scope import Scope
from storage.text_search import RANKED, TEXTS, TextSearch, Wanted, spaced

_WORD = re.compile("(?:[^\\W_]|[\ue000-\uf8ff\U000f0000-\U0010ffff])+")
_ACCENT = re.compile("[\u0300-\u036f]")
_LONGEST_WORD = 40  # bytes: then 16,000 different words fit in a tsvector
_MOST_PLACES = 16_380  # and the gaps between texts; all beyond the last would be 16,383
_LARGEST = 900_000  # bytes
_LABELS = {"title": "A", "question": "B", "answer": "D"}
_RANK = "ts_rank('{0.125, 0, 0.375, 1}', words, to_tsquery('council', :any), 1)"
"""`WEIGHTS` as labels have them, from D to A and at most 1; of two texts, the shorter is the better."""

# In steps, as the planner would otherwise try each row by number until it has a thousand hits.
_SEARCH = f"""
WITH hits AS MATERIALIZED (SELECT rowid FROM search WHERE words @@ to_tsquery('council', :all)),
newest AS MATERIALIZED (SELECT rowid FROM hits ORDER BY rowid DESC LIMIT {RANKED})
SELECT rowid, (SELECT count(*) FROM newest) AS found FROM newest JOIN search USING (rowid)
ORDER BY {_RANK} DESC, rowid DESC LIMIT :limit OFFSET :offset
"""  # noqa: S608 - our own words


class _Server(Protocol):
    """What a search does with its database."""

    async def read(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]: ...

    async def using(self, work: Callable[[Connection], Awaitable[Any]]) -> Any: ...  # noqa: ANN401 - as the work


class PostgresSearch(TextSearch):
    """The search in a database that processes share."""

    columns = ("words",)

    def __init__(self, database: _Server) -> None:
        self._database = database

    @override
    def stored(self, scope: Scope, texts: Mapping[str, str]) -> dict[str, str]:
        parts: dict[str, list[str]] = {name: [] for name in (*TEXTS, "rest")}
        seen: set[str] = set()
        places = size = 0
        for name in TEXTS:
            for word in _words(texts[name]):
                places += 1
                if word not in seen:
                    size += len(word) + 8
                    if size > _LARGEST:
                        continue
                    seen.add(word)
                parts[name if places < _MOST_PLACES else "rest"].append(word)
        joined = {name: " ".join(words) for name, words in parts.items()}
        return {"words": orjson.dumps(joined).decode()}

    @override
    async def ranked(
        self, scope: Scope, wanted: Wanted, limit: int, offset: int = 0
    ) -> tuple[list[int], int]:
        found = [[*_words(phrase)] for phrase in wanted.phrases]
        only = "" if wanted.texts == TEXTS else "".join(_LABELS[text] for text in wanted.texts)
        last = f"{'*' * wanted.begins}{only}"
        read = [
            [*(f"'{one}':{only}" for one in words[:-1]), f"'{words[-1]}':{last}"]
            for words in found
            if words
        ]
        if not read or (len(read) < len(found) and not wanted.any):
            return [], 0
        phrases = (f"({' <-> '.join(words)})" for words in read)
        given = {
            "all": f"'/{scope.word}' & ({(' | ' if wanted.any else ' & ').join(phrases)})",
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


def _words(text: str) -> Iterator[str]:
    """Return a text's words, in order, each of ASCII letters and digits."""
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", spaced(text).casefold()))
    for word in _WORD.findall(unicodedata.normalize("NFC", bare)):
        content = word.encode("utf-8", "replace")
        if len(content) > _LONGEST_WORD:
            yield f"u0{hashlib.blake2b(content, digest_size=16).hexdigest()}"
        elif word.isascii():
            yield word
        else:
            yield f"u0{content.hex()}"
