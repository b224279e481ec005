"""The table in docs/providers.md: what came of each server's cells.

`python -m tests.model_servers.table` asks every stand-in again and writes its line. The lines of
third-party servers are written by `make soak`.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.model_servers.matrix import NONE, Row, filled_row
from tests.model_servers.stand_in import ORIGINALS

DOCUMENT = Path(__file__).parents[2] / "docs" / "providers.md"
STAND_INS = "stand-ins"
THIRD_PARTIES = "third-party servers"
CELLS = (
    *("answers", "ballots_by_schema", "ballots_in_prose", "corrections", "preview", "usage_and_cost"),
    *("thoughts_hidden", "wrong_key", "unknown_model", "rate_limit", "no_credit"),
)
HEAD = (
    "| server | answers | ballots by schema | in prose | corrections | preview | usage, cost | thoughts "
    "hidden | wrong key | unknown model | rate limit | no credit | learned by |"
)


async def both(name: str) -> tuple[Row, Row]:
    """Return a server's rows: in its dialect, and as any server, which one that names nothing can't be."""
    named, unnamed = [await filled_row(name, is_named=is_named) for is_named in (True, False)]
    if ORIGINALS[name].needs_dialect:
        causes = {cell: why for cell, why in unnamed.wrong.items() if "bad_request" not in why}
        cells = named.cells | {"answers": "with its `dialect`"}
        unnamed = replace(named, cells=cells, wrong=causes)
    return named, unnamed


def line(named: Row, unnamed: Row) -> str:
    """Return a server's line: in its dialect, and in parentheses what differs where that isn't known."""
    cells = [_cell(named.cells.get(cell, NONE), unnamed.cells.get(cell, NONE)) for cell in CELLS]
    return (
        f"| {named.server} | {' | '.join(cells)} | {_cell(str(named.learning), str(unnamed.learning))} |"
    )


def _cell(named: str, unnamed: str) -> str:
    return named if named == unnamed else f"{named} ({unnamed})"


def lines(document: str, part: str) -> dict[str, str]:
    """Return a part's lines of the table in the document, by server."""
    _, _, rest = document.partition(f"<!-- {part}: begin -->\n")
    inner, _, _ = rest.partition(f"<!-- {part}: end -->")
    rows = [row for row in inner.splitlines() if row.startswith("| ")][2:]
    return {row.split(" | ", 1)[0].removeprefix("| "): row for row in rows}


def with_lines(document: str, part: str, rows: Iterable[str]) -> str:
    """Return the document with these lines in a part of it."""
    begin, end = f"<!-- {part}: begin -->\n", f"<!-- {part}: end -->"
    before, _, rest = document.partition(begin)
    _, _, after = rest.partition(end)
    rule = "| --- " * HEAD.count(" |") + "|"
    return f"{before}{begin}{HEAD}\n{rule}\n" + "".join(f"{row}\n" for row in rows) + f"{end}{after}"


def write(part: str, rows: dict[str, str]) -> None:
    """Write these lines into the document; other lines of the part stay."""
    document = DOCUMENT.read_text(encoding="utf-8")
    kept = lines(document, part) | rows
    DOCUMENT.write_text(with_lines(document, part, kept.values()), encoding="utf-8")


async def _write_stand_ins() -> None:
    write(STAND_INS, {each.title: line(*await both(name)) for name, each in ORIGINALS.items()})


if __name__ == "__main__":
    asyncio.run(_write_stand_ins())
