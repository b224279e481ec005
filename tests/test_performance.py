"""The page on performance has the figures of today's prompts."""

from bench import tokens


async def test_the_pages_tables_are_those_of_todays_prompts() -> None:
    """Whoever changes a prompt counts again: `python -m bench.tokens --write`."""
    page = tokens.PAGE.read_text(encoding="utf-8")
    assert page.partition(tokens.BEGIN)[2].partition(tokens.END)[0] == await tokens.tables()


async def test_a_run_never_sends_more_than_the_usual_way() -> None:
    """Four members, answers of 4,000 characters: the bound that the project promises."""
    ours = await tokens.counted(4, 4_000)
    assert ours.total <= sum(tokens.usual(4, 4_000).values())
