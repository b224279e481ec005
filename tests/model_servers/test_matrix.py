"""A council works with every stand-in: with its dialect named, as its host would, and without."""

from typing import get_args

import pytest

from council.profile import DialectName
from tests.model_servers import table
from tests.model_servers.stand_in import ORIGINALS

QUICK = {
    "anthropic",
    "deepseek",
    "gemini",
    "litellm",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "vllm",
}
SLOW = dict.fromkeys({*ORIGINALS} - QUICK, pytest.mark.soak)


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in ORIGINALS])
async def test_a_council_works_with_it(name: str) -> None:
    """Every cell of its row is right, and bench/servers.md says so."""
    named, unnamed = await table.both(name)
    assert (named.wrong, unnamed.wrong) == ({}, {})
    document = table.TRIED.read_text(encoding="utf-8")
    shown = table.lines(document, table.STAND_INS)
    assert shown.get(named.server) == table.line(named, unnamed), "python -m tests.model_servers.table"


def test_every_dialect_has_a_stand_in() -> None:
    """And the table no other lines."""
    assert {original.dialect for original in ORIGINALS.values()} == {*get_args(DialectName)} - {
        "generic"
    }
    document = table.TRIED.read_text(encoding="utf-8")
    titles = {original.title for original in ORIGINALS.values()}
    assert table.lines(document, table.STAND_INS).keys() == titles
