"""Tables for platforms without tables."""

import pytest

from bot.discord.text import DIALECT
from bot.render.splitting import split
from bot.render.tables import drawn, grid
from bot.view.message import Table
from tests.bot.shown import written


def shown(table: Table, width: int) -> str:
    """Return a table as a message shows it."""
    return "".join(split([drawn(grid(table, DIALECT), DIALECT, width)], 2_000, len))


def test_a_narrow_table_is_aligned_code() -> None:
    """Wide letters count as two columns."""
    table = Table(("Rank", "Member"), (("1st", "\u6f22\u5b57"), ("2nd", "a|b")))
    assert shown(table, 12) == "```\nRank  Member\n----  ------\n1st   \u6f22\u5b57\n2nd   a|b\n```"


def test_a_wide_table_is_a_list() -> None:
    """The columns' names are above it, once; what a row is about is bold."""
    table = Table(("Rank", "", "Why"), (("1st", "gpt_5*", "good"), ("2nd", "b", "")))
    assert shown(table, 11) == (
        "**Rank** \u00b7  \u00b7 **Why**\n- **1st** \u00b7 gpt_5\\* \u00b7 good\n- **2nd** \u00b7 b \u00b7 "
    )


def test_a_long_table_repeats_its_head() -> None:
    """Every part says what its columns are."""
    table = Table(("No", "Name"), tuple((str(number), "x" * 8) for number in range(10, 20)))
    parts = split([drawn(grid(table, DIALECT), DIALECT, 60)], 85, len)
    assert len(parts) == 3
    assert all(part.startswith("```\nNo  Name\n--  --------\n1") for part in parts)
    assert all(part.endswith("\n```") for part in parts)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("[docs](https://x.example/d)", "[docs](<https://x.example/d>)"),
        ("![plan](https://x.example/p.png)", "[plan](<https://x.example/p.png>)"),
        ("[**a** `b`](https://x.example)", "[**a** `b`](<https://x.example>)"),
        ("[Ada](mailto:ada@x.example)", "Ada (mailto:ada@x.example)"),
        ("[x.example](https://y.example)", "x.example (<https://y.example>)"),
        ("[d][1]", "[d](<https://z.example>)"),
    ],
)
def test_a_table_with_links_is_a_list(cell: str, shown: str) -> None:
    """Code would hide where they lead; what shows its address is code."""
    table = f"| No | Where |\n|---|---|\n| 1 | {cell} |\n\n[1]: https://z.example"
    assert written(table, DIALECT) == f"**No** \u00b7 **Where**\n- **1** \u00b7 {shown}"
    assert shown not in written(table.replace(cell, "https://x.example"), DIALECT)
    assert written(table.replace(cell, "<https://x.example>"), DIALECT).startswith("```\nNo  Where")


def test_a_table_without_rows_names_its_columns() -> None:
    """If they are too wide, they are a line that can be cut."""
    table = Table(("Rank", "Member"), ())
    assert shown(table, 12) == "```\nRank  Member\n----  ------\n```"
    assert shown(table, 5) == "**Rank** \u00b7 **Member**"
