"""A council works with every stand-in: with its dialect named, as its host would, and without."""

import pytest

from council.models.dialects import DIALECTS
from tests.model_servers import table
from tests.model_servers.every import EVERY
from tests.model_servers.stand_in import StandIn


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.title)
async def test_a_council_works_with_it(kind: type[StandIn]) -> None:
    """Every cell of its row is right, and docs/providers.md says so."""
    named, unnamed = await table.both(kind)
    assert (named.wrong, unnamed.wrong) == ({}, {})
    document = table.DOCUMENT.read_text(encoding="utf-8")
    shown = table.lines(document, table.STAND_INS)
    assert shown.get(kind.title) == table.line(named, unnamed), "python -m tests.model_servers.table"


def test_every_dialect_has_a_stand_in() -> None:
    """And the table no other lines."""
    assert {kind.dialect for kind in EVERY} == DIALECTS.keys() - {"generic"}
    document = table.DOCUMENT.read_text(encoding="utf-8")
    assert [*table.lines(document, table.STAND_INS)] == [kind.title for kind in EVERY]
