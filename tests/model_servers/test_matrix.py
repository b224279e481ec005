"""A council works with every stand-in: with its dialect named, as its host would, and without."""

import pytest

from tests.model_servers.every import EVERY
from tests.model_servers.matrix import Matrix
from tests.model_servers.stand_in import StandIn

every = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.title)


@every
@pytest.mark.parametrize("is_named", [True, False], ids=["named", "unnamed"])
async def test_a_council_works_with_it(kind: type[StandIn], is_named: bool) -> None:
    """Every cell of its row is right."""
    row = await Matrix(kind, is_named).row()
    assert row.wrong == {}
