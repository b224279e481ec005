"""SQL as the rest of `storage` writes it, in PostgreSQL's words."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from storage.database import Parameters, SqlValue

_PARAMETER = re.compile(r"'(?:[^']|'')*'|\?|(?<!:):([a-z]\w*)")


def statement(sql: str, parameters: Parameters) -> tuple[bytes, Sequence[SqlValue]]:
    """Return a statement with numbered parameters, and their values in that order."""
    query, names = _numbered(sql)
    if isinstance(parameters, Mapping):
        return query, [parameters[name] for name in names]
    return query, parameters


@lru_cache(maxsize=1_000)
def _numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if found[0] == "?":
            names.append("?")
            return f"${len(names)}"
        if name is None:  # a text between quotes
            return found[0]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PARAMETER.sub(number, sql).encode(), tuple(names)
