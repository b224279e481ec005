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
    wanted = tomllib.loads(text)
    lines, pairs = text.splitlines(keepends=True), [f"{key} = {value}\n" for key, value in keys.items()]
    name = r"\s*\.\s*".join(table)
    header = re.compile(rf"\s*\[\s*{name}\s*\]\s*(#.*)?$")
    at = next((number for number, line in enumerate(lines, 1) if header.match(line)), None)
    if at is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        changed = "".join([f"{text}{gap}[{'.'.join(table)}]\n", *pairs])
    else:
        changed = "".join([*lines[:at], *pairs, *_without(lines[at:], keys)])
    inner = wanted
    for part in table:
        inner = cast("dict[str, Any]", inner.setdefault(part, {}))
    inner.update(tomllib.loads("".join(pairs)))
    if tomllib.loads(changed) != wanted:
        raise ValueError
    return changed


def _without(lines: list[str], keys: Mapping[str, str]) -> list[str]:
    """Return the lines of a table, and what follows it, without those of some keys."""
    kept: list[str] = []
    entry = ""  # a value may take several lines: the fewest that are TOML by themselves
    for number, line in enumerate(lines):
        if not entry and re.match(r"\s*\[", line):
            return [*kept, *lines[number:]]
        entry += line
        try:
            read = tomllib.loads(entry)
        except tomllib.TOMLDecodeError:
            continue
        if not keys.keys() & read.keys():
            kept.append(entry)
        entry = ""
    if entry:
        raise ValueError
    return kept
