"""`.env` and `council.toml` with some settings changed and every other line as it was."""

import io
import re
import tomllib
from collections.abc import Mapping
from typing import Any, cast

from dotenv import dotenv_values
from dotenv.parser import parse_stream

_PLAIN = re.compile(r"[\w./:@+,~=-]*", re.ASCII)


def with_variables(text: str, values: Mapping[str, str]) -> str:
    """Return the text of a `.env` in which the variables have these values.

    A variable is changed where it is, and added at the end where it isn't. Raises `ValueError` for a
    value that the file can't hold.
    """
    wanted = {name.lower(): (name, value) for name, value in values.items()}
    left = dict(wanted)
    lines: list[str] = []
    for binding in parse_stream(io.StringIO(text, newline="")):
        original, name = binding.original.string, (binding.key or "").lower()
        if name not in wanted:
            lines.append(original)
        elif name in left:  # a second line of it, which would count instead, is left out
            before = re.match(r"\s*(?:export[^\S\r\n]+)?", original)
            lines.append((before[0] if before else "") + _line(*left.pop(name)))
    changed = "".join(lines)
    added = "".join(_line(name, value) for name, value in left.values() if value)
    last = "\n" if left and changed and not changed.endswith("\n") else ""
    # Below a quotation mark that is never closed, the value's own marks would close it.
    for written in (f"{changed}{last}{added}", f"{added}{changed}"):
        read = dotenv_values(stream=io.StringIO(written))
        if all((read.get(name) or "") == value for name, value in values.items()):
            return written
    raise ValueError


def _line(name: str, value: str) -> str:
    if not _PLAIN.fullmatch(value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        value = f"'{escaped}'"
    return f"{name}={value}\n"


def with_table(text: str, table: tuple[str, ...], keys: Mapping[str, str]) -> str:
    """Return the text of a TOML file in which a table has these keys, with values as TOML writes them.

    Raises `ValueError` where the file says them in a way that can't be changed without touching
    anything else.
    """
    before = tomllib.loads(text)
    lines = text.splitlines(keepends=True)
    header = _header(lines, table)
    if header is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        changed = f"{text}{gap}[{'.'.join(table)}]\n" + "".join(_pairs(keys))
    else:
        kept = _without(lines, header + 1, keys)
        changed = "".join([*lines[: header + 1], *_pairs(keys), *kept])
    inner = before
    for name in table:
        inner = cast("dict[str, Any]", inner.setdefault(name, {}))
    inner.update({key: tomllib.loads(f"x = {value}")["x"] for key, value in keys.items()})
    if tomllib.loads(changed) != before:
        raise ValueError
    return changed


def _pairs(keys: Mapping[str, str]) -> list[str]:
    return [f"{key} = {value}\n" for key, value in keys.items()]


def _header(lines: list[str], table: tuple[str, ...]) -> int | None:
    name = r"\s*\.\s*".join(table)
    pattern = re.compile(rf"\s*\[\s*{name}\s*\]\s*(#.*)?$")
    return next((number for number, line in enumerate(lines) if pattern.match(line)), None)


def _without(lines: list[str], first: int, keys: Mapping[str, str]) -> list[str]:
    """Return the lines from `first` on, without those of a table's keys; a value may take several."""
    kept: list[str] = []
    number = first
    while number < len(lines) and not re.match(r"\s*\[", lines[number]):
        size = _size(lines, number)
        if not keys.keys() & tomllib.loads("".join(lines[number : number + size])).keys():
            kept += lines[number : number + size]
        number += size
    return [*kept, *lines[number:]]


def _size(lines: list[str], first: int) -> int:
    """Count the lines that one key and its value take: the fewest that are TOML by themselves."""
    for size in range(1, len(lines) - first + 1):
        try:
            tomllib.loads("".join(lines[first : first + size]))
        except tomllib.TOMLDecodeError:
            continue
        return size
    raise ValueError
