"""The matrix's last result in `bench/faults.json`, and the tables of it in `bench/faults.md`.

`python -m tests.faults.stored` writes the tables again.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel

from tests.faults.cases import EVENTS
from tests.faults.playing import Result

BENCH = Path(__file__).parents[2] / "bench"
STORED, TABLES = BENCH / "faults.json", BENCH / "faults.md"
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
MINUTE, HOUR = 60, 3600


class Row(BaseModel):
    """What became of the cases of one target and one group of troubles.

    `once` to `kept` divide them; `wrong` ones are among these. `unsure` are those in which Slack lost a
    response to what it carried out, `most` is how often an asker was told, `alike` how often the same was
    posted. `longest` is in seconds.
    """

    platform: str
    target: str
    group: str
    cases: int
    unsure: int
    once: int
    twice: int
    restart: int
    refused: int
    kept: int
    wrong: int
    most: int
    alike: int
    longest: int


class Stored(BaseModel):
    """The result of the whole matrix."""

    rows: list[Row]

    def write(self) -> None:
        """Store it, one row per line."""
        lines = ",\n".join(f"    {row.model_dump_json()}" for row in self.rows)
        STORED.write_text(f'{{\n  "rows": [\n{lines}\n  ]\n}}\n')


def summarized(results: Iterable[Result]) -> Stored:
    """Return a matrix's cases, summed up."""

    def key(result: Result) -> tuple[str, str, str]:
        target = result.case.target
        return target.platform, target.title, result.case.trouble.group

    ordered = sorted(results, key=key)
    return Stored(rows=[_row(*about, [*cases]) for about, cases in groupby(ordered, key)])


def _row(platform: str, target: str, group: str, results: Sequence[Result]) -> Row:
    def count(condition: Callable[[Result], bool]) -> int:
        return sum(map(condition, results))

    return Row(
        platform=platform,
        target=target,
        group=group,
        cases=len(results),
        unsure=count(lambda one: one.is_unsure),
        once=count(lambda one: one.outcome == "told" and one.times == 1),
        twice=count(lambda one: one.times > 1),
        restart=count(lambda one: one.outcome == "told after a restart" and one.times == 1),
        refused=count(lambda one: one.outcome == "refused"),
        kept=count(lambda one: one.outcome == "kept"),
        wrong=count(lambda one: not one.is_right),
        most=max((one.times for one in results), default=0),
        alike=max((one.alike for one in results), default=0),
        longest=round(max((one.seconds or 0.0 for one in results), default=0.0)),
    )


def tables(stored: Stored) -> str:
    """Return the tables: by what fails, and by how it fails."""
    head = "cases | told once | told twice | after a restart | refused | kept | longest wait |"
    lines = [f"| what fails | {head}", "| --- |" + " ---: |" * 7]
    for platform, title, rows in _grouped(stored, lambda row: row.target):
        lines.append(f"| {platform}: {_code(title)} | {_cells(rows)} |")
    lines += ["", f"| how it fails | {head}", "| --- |" + " ---: |" * 7]
    for platform, group, rows in _grouped(stored, lambda row: row.group):
        lines.append(f"| {platform}: {group} | {_cells(rows)} |")
    return "\n".join(lines)


def _grouped(stored: Stored, by: Callable[[Row], str]) -> Iterable[tuple[str, str, list[Row]]]:
    ordered = sorted(stored.rows, key=lambda row: (row.platform, by(row)))
    for (platform, name), rows in groupby(ordered, lambda row: (row.platform, by(row))):
        yield platform, name, [*rows]


def _code(title: str) -> str:
    name, opening, part = title.partition(" (")
    return title if name in EVENTS else f"`{name}`{opening}{part}"


def _cells(rows: Sequence[Row]) -> str:
    names = ("cases", "once", "twice", "restart", "refused", "kept")
    cells = [f"{sum(getattr(row, name) for row in rows):,}" for name in names]
    return " | ".join([*cells, _time(max(row.longest for row in rows))])


def _time(seconds: int) -> str:
    if seconds >= HOUR:
        return f"{seconds / HOUR:.1f} h"
    return f"{round(seconds / MINUTE)} min" if seconds >= 2 * MINUTE else f"{seconds} s"


def with_tables(text: str, stored: Stored) -> str:
    """Return a document with the tables between their marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(stored)}\n{END}{after}"


def read() -> Stored:
    return Stored.model_validate_json(STORED.read_bytes())


def write_tables() -> None:
    TABLES.write_text(with_tables(TABLES.read_text(), read()))


if __name__ == "__main__":
    write_tables()
