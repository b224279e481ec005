"""The result of an evaluation in words."""

from bot.evaluation.summary import table
from tests.bot.evaluation.sample import sample
from tests.council.evaluation.known import numbered


async def test_the_table_has_a_row_for_each_arm() -> None:
    """And below it what came out, in sentences; few questions are counted, not divided."""
    many, few = table(await sample(12)), table(await sample(4, items=numbered(4)))
    rows = many.splitlines()
    assert rows[0].split() == ["arm", "score", "against", "best", "cost", "tokens", "seconds", "words"]
    assert [row.split()[0] for row in rows[1:11]][-3:] == ["stage1", "full_without_2_5", "full"]
    assert "12 questions can't show a difference below about" in rows[-1]
    assert "%" not in few
    assert few.endswith("4 questions can't show a difference; from ten on one can be decided.")
