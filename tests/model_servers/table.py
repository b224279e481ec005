"""What two pages have between marks: the rows of the table of servers, and what came of each server's cells.

`python -m tests.model_servers.table` writes the rows, asks every stand-in again and writes its line. The
lines of third-party servers are written by `make soak`.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from council.models.servers import SERVERS
from tests.model_servers.matrix import NONE, Row, filled_row
from tests.model_servers.stand_in import ORIGINALS

GUIDE, TRIED = (Path(__file__).parents[2] / page for page in ("docs/providers.md", "bench/servers.md"))
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

SERVERS_HEAD = "| server | `OPENROUTER_BASE_URL` | a model's id looks like |"


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
    rows = [row for row in part_of(document, part).splitlines() if row.startswith("| ")][2:]
    return {row.split(" | ", 1)[0].removeprefix("| "): row for row in rows}


def guide() -> dict[str, str]:
    """Return the parts of the guide that the table of servers makes."""
    rows = [row for row in SERVERS.values() if row.name != "generic"]
    shown = [
        f"| {title} | {f'`{at}`' if '://' in at else at} | {model} |"
        for title, at, model in (row.shown for row in rows)
    ]
    return {
        "servers": table(SERVERS_HEAD, shown),
        "dialects": ", ".join(f"`{row.name}`" for row in rows),
        "notes": "\n".join(f"- {row.note}" for row in rows if row.note),
    }


def table(head: str, rows: Iterable[str]) -> str:
    return "\n".join((head, "| --- " * head.count(" |") + "|", *rows))


def part_of(document: str, part: str) -> str:
    """Return what is between a part's marks."""
    _, _, rest = document.partition(f"<!-- {part}: begin -->\n")
    return rest.partition(f"\n<!-- {part}: end -->")[0]


def write(page: Path, parts: Mapping[str, str]) -> None:
    document = page.read_text(encoding="utf-8")
    for part, text in parts.items():
        before, begin, rest = document.partition(f"<!-- {part}: begin -->\n")
        _, end, after = rest.partition(f"<!-- {part}: end -->")
        document = f"{before}{begin}{text}\n{end}{after}"
    page.write_text(document, encoding="utf-8")


def write_lines(part: str, rows: dict[str, str]) -> None:
    """Write these lines into a table of what was tried; its other lines stay."""
    kept = lines(TRIED.read_text(encoding="utf-8"), part) | rows
    write(TRIED, {part: table(HEAD, kept.values())})


async def _write_all() -> None:
    write(GUIDE, guide())
    write_lines(STAND_INS, {each.title: line(*await both(name)) for name, each in ORIGINALS.items()})


if __name__ == "__main__":
    asyncio.run(_write_all())
