"""Both ways to keep everything, for tests that hold for each."""

import os
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql as names

from storage.postgres.opening import open_server
from storage.sqlite.opening import open_folder
from storage.stores import Stores

TABLES: LiteralString = """
SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1
"""

quick_on_sqlite = pytest.mark.parametrize(
    "home", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)], indirect=True
)
"""For what is the same code in both stores, where other tests try its statements on PostgreSQL."""


@dataclass(frozen=True)
class Home:
    """Where everything is kept: a data folder, or an address where that is in PostgreSQL.

    What isn't the program's doing is done past it: by another program, an operator or a fault.
    """

    folder: Path
    address: str | None = None

    def open(self) -> AbstractAsyncContextManager[Stores]:
        return open_server(self.address) if self.address else open_folder(self.folder)

    def put(self, conversation_id: str, content: bytes, *, mtime_ns: int | None = None) -> None:
        if self.address is None:
            (self.folder / "conversations").mkdir(exist_ok=True)
            file = self._file(conversation_id)
            file.write_bytes(content)
            if mtime_ns is not None:
                os.utime(file, ns=(mtime_ns, mtime_ns))
        else:
            self._run("DELETE FROM documents WHERE id = %s", conversation_id)
            self._run(
                "INSERT INTO documents VALUES (%s, %s, %s)",
                conversation_id,
                content,
                time.time_ns() if mtime_ns is None else mtime_ns,
            )

    def put_copy(self, conversation_id: str, content: bytes) -> None:
        """Put a copy there, as of a document that couldn't be read."""
        if self.address is None:
            (self.folder / "conversations" / f"{conversation_id}.json.broken-20260101").write_bytes(
                content
            )
        else:
            self._run(
                "INSERT INTO documents_set_aside VALUES (%s, '20260101', %s)", conversation_id, content
            )

    def content(self, conversation_id: str) -> bytes:
        if self.address is None:
            return self._file(conversation_id).read_bytes()
        [(content,)] = self._run("SELECT content FROM documents WHERE id = %s", conversation_id)
        return bytes(content)

    def delete(self, conversation_id: str) -> None:
        if self.address is None:
            self._file(conversation_id).unlink()
        else:
            self._run("DELETE FROM documents WHERE id = %s", conversation_id)

    def holding(self, word: str) -> list[str]:
        """Name the files, or the tables, in which a word is."""
        if self.address is None:
            return [
                path.name
                for path in self.folder.rglob("*")
                if path.is_file() and word.encode() in path.read_bytes()
            ]
        with psycopg.connect(self.address, autocommit=True) as connection:
            tables = [name for (name,) in connection.execute(TABLES).fetchall()]
            return [
                name
                for name in tables
                if any(
                    word in str(value) or (isinstance(value, bytes) and word.encode() in value)
                    for row in connection.execute(names.SQL("SELECT * FROM {}").format(_name(name)))
                    for value in row
                )
            ]

    def audit(self) -> list[bytes]:
        if self.address is None:
            return (self.folder / "audit.jsonl").read_bytes().splitlines()
        return [bytes(line).rstrip() for (line,) in self._run("SELECT line FROM audit ORDER BY number")]

    def _file(self, conversation_id: str) -> Path:
        return self.folder / "conversations" / f"{conversation_id}.json"

    def _run(self, sql: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        assert self.address
        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []


def _name(name: str) -> names.Identifier:
    return names.Identifier(name)
