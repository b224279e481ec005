"""A read-only look at the database: whether it is sound, and its journal can be read."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from storage.errors import DatabaseError, damaged
from storage.sqlite.database import damage_mark, explained
from storage.sqlite.salvage import is_damaged
from storage.sqlite.schema import known_schema, read_schema

_MOST_STEPS = 10_000
_UNREADABLE_RUNS = """
SELECT count(*) FROM runs
WHERE NOT (json_valid(origin) AND json_valid(brief) AND json_valid(ifnull(error, '{}')))
"""
_UNREADABLE_STEPS = """
SELECT count(*) FROM (SELECT outcome FROM steps ORDER BY recorded_at DESC LIMIT ?)
WHERE NOT json_valid(outcome)
"""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was seen: whether the schema is an older or a newer program's, and rows that can't be read.

    Of the model calls, the last 10,000 are looked at, and none where the schema isn't this program's.
    """

    is_older: bool = False
    is_newer: bool = False
    unreadable_runs: int = 0
    unreadable_steps: int = 0


def inspect(path: Path) -> Inspection:
    """Look at a database. Raises `DatabaseError`, of which a `DamageError` says that it is damaged."""
    if damage_mark(path).exists() or is_damaged(path):
        raise damaged(path)
    with (
        explained(path),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database,
    ):
        try:
            schema = read_schema(database)
        except ValueError as error:
            raise DatabaseError(f"{path}: {error}", path) from error
        if schema != known_schema():
            return Inspection(is_older=schema < known_schema(), is_newer=schema > known_schema())
        [(runs,)] = database.execute(_UNREADABLE_RUNS)
        [(steps,)] = database.execute(_UNREADABLE_STEPS, (_MOST_STEPS,))
        return Inspection(unreadable_runs=runs, unreadable_steps=steps)
