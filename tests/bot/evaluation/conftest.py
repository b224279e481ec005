"""What Inspect changes in asyncio, so that loops nest, lasts for a test: later ones would leave their loops open."""

import asyncio
from collections.abc import Iterator

import pytest

CHANGED = (asyncio, asyncio.events, asyncio.futures, asyncio.tasks, asyncio.SelectorEventLoop)


@pytest.fixture(autouse=True)
def nested(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("inspect_ai._util._async._initialised_nest_asyncio", False)
    before = [(owner, dict(vars(owner))) for owner in CHANGED]
    yield
    for owner, names in before:
        for name in {*vars(owner)} - {*names}:
            delattr(owner, name)
        for name in (each for each in names if vars(owner)[each] is not names[each]):
            setattr(owner, name, names[name])
