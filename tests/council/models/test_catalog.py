"""What the provider's model list says, and what happens without one."""

import asyncio
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from council.demonstration import WINDOW
from council.errors import Failure, ModelError
from council.models.costs import UNKNOWN_WINDOW, Catalog, find_listing, read_listings
from council.profile import Member, Profile
from council.text.json_objects import JsonObject
from council.usage import Price
from tests.pairs import rows

LIST: list[JsonObject] = [
    {
        "id": "openai/gpt-5",
        "pricing": {"prompt": "0.00000125", "completion": "0.00001"},
        "supported_parameters": ["temperature", "structured_outputs"],
    },
    {"id": "x-ai/grok-4", "supported_parameters": ["temperature"]},
    {"id": "llama3", "object": "model"},
]
ROWS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("read.toml").read_text(encoding="utf-8")
)["lists"]


class Provider:
    """A model list with a memory; `models=None` has none."""

    def __init__(self, models: Sequence[JsonObject] | None = None) -> None:
        self.models = models
        self.asked = 0

    async def fetch(self) -> Sequence[JsonObject]:
        """Return the list as the client would."""
        self.asked += 1
        await asyncio.sleep(0)
        if self.models is None:
            raise ModelError(Failure(cause="not_found", detail="no such page"))
        return self.models


def profile(**changes: object) -> Profile:
    """Seat a listed model with schemas, one without, and one that isn't listed."""
    fields: dict[str, object] = {
        "members": [Member(model="openai/gpt-5"), Member(model="x-ai/grok-4"), Member(model="unknown")],
        "chairman": Member(model="openai/gpt-5"),
        **changes,
    }
    return Profile.model_validate(fields)


@rows("row", ROWS, ids=[row["server"] for row in ROWS])
def test_a_list_is_read_as_its_server_writes_it(row: dict[str, Any]) -> None:
    """What isn't stated is unknown: never a price of zero, never a large window."""
    name, listed = row["name"], read_listings([row["listed"]])
    listing = find_listing(listed, name)
    assert (listing and listing.price) == (Price(*row["price"]) if "price" in row else None)
    assert (listing and listing.window) == row.get("window")
    assert (listing and listing.structured) == row.get("structured")
    assert (listing and listing.vision) == row.get("vision")
    assert find_listing(listed, f"x-{name}") is None


async def test_members_learn_whether_their_model_takes_a_schema() -> None:
    """In every seat; a model the list doesn't know gets plain text."""
    seats = profile(
        chairman_fallbacks=[Member(model="x-ai/grok-4", structured=True)],
        title_model=Member(model="openai/gpt-5"),
    )
    resolved = await Catalog(Provider(LIST).fetch).resolve(seats)
    assert [member.structured for member in resolved.members] == [True, False, False]
    assert [member.name for member in resolved.members] == [member.name for member in seats.members]
    assert resolved.chairman.structured
    assert not resolved.chairman_fallbacks[0].structured
    assert resolved.title_model is not None
    assert resolved.title_model.structured


async def test_the_smallest_window_among_the_models_counts() -> None:
    """Fallbacks, the chair and its line included; an unknown one is assumed to be small."""
    listed: list[JsonObject] = [
        {"id": "openai/gpt-5", "context_length": 400_000},
        {"id": "x-ai/grok-4", "context_length": 256_000},
        {"id": "small/one", "context_length": 32_000},
        {"id": "odd/one", "context_length": -1},
    ]
    catalog = Catalog(Provider(listed).fetch)
    large = profile(members=[Member(model="openai/gpt-5")])
    assert catalog.window(large) == UNKNOWN_WINDOW  # the list isn't there yet
    await catalog.refresh()
    assert catalog.window(large) == 400_000
    two = [Member(model="openai/gpt-5"), Member(model="x-ai/grok-4:nitro")]
    assert catalog.window(profile(members=two)) == 256_000
    last = Member(model="openai/gpt-5", fallbacks=("small/one",))
    assert catalog.window(profile(members=two, chairman_fallbacks=[last])) == 32_000
    # So is that of one's own server taken, whatever the list says about a model of that name.
    own = Member(model="openai/gpt-5", endpoint="http://127.0.0.1:1/v1")
    for small in (Member(model="odd/one"), Member(model="unknown"), own):
        assert catalog.window(profile(members=[small])) == UNKNOWN_WINDOW
    assert catalog.window(profile(members=[own]).in_a_run()) == UNKNOWN_WINDOW
    assert catalog.window(profile(demonstration=True)) == WINDOW


async def test_the_list_is_about_the_councils_own_provider() -> None:
    """A member with its own endpoint keeps its setting; the built-in model must need no network."""
    own = [
        Member(model=f"own/{said}", endpoint="http://127.0.0.1:1/v1", structured=said)
        for said in (True, False)
    ]
    resolved = await Catalog(Provider(LIST).fetch).resolve(profile(members=own))
    assert [member.structured for member in resolved.members] == [True, False]
    provider = Provider(LIST)
    own = Member(model="smollm2", endpoint="http://127.0.0.1:1/v1")
    seats = profile(members=[own], chairman=own)
    await Catalog(provider.fetch).resolve(seats)
    assert provider.asked == 0


async def test_the_server_decides_told_what_the_list_says() -> None:
    """Yes, no, or nothing; of an endpoint's models, the provider's list says nothing."""
    own, other, elsewhere = (
        Member(model=model, endpoint=f"http://127.0.0.1:{port}/v1")
        for model, port in (("llama3", 1), ("qwen3", 1), ("llama3", 2))
    )

    heard: dict[str, bool | None] = {}

    async def takes_schema(member: Member, listed: bool | None) -> bool:
        heard[member.model] = listed
        return member.model != own.model

    catalog = Catalog(Provider(LIST).fetch, takes_schema)
    resolved = await catalog.resolve(Profile(members=(own, other), chairman=elsewhere))
    assert [seat.structured for seat in resolved.seats] == [False, True, False]
    assert heard == {"llama3": None, "qwen3": None}
    await catalog.resolve(profile())
    assert heard | {"openai/gpt-5": True} == heard


async def test_a_list_is_fetched_once_and_stays_in_use_when_it_goes_missing() -> None:
    """One fetch at a time, kept for its time to live; old prices are better than none."""
    provider, now = Provider(LIST), [1000.0]
    catalog = Catalog(provider.fetch, time_to_live=60.0, clock=lambda: now[0])
    await asyncio.gather(*(catalog.resolve(profile()) for _ in range(5)))
    assert provider.asked == 1
    now[0] += 61
    await catalog.resolve(profile())
    assert provider.asked == 2
    provider, now = Provider(LIST), [1000.0]
    catalog = Catalog(provider.fetch, time_to_live=60.0, clock=lambda: now[0])
    await catalog.refresh()
    provider.models = None
    now[0] += 61
    await catalog.refresh()
    assert catalog.price("openai/gpt-5") is not None


async def test_without_a_list_only_prices_and_schemas_are_missing() -> None:
    """The log says so once, and the list is tried again after a minute."""
    provider, now = Provider(), [1000.0]
    catalog = Catalog(provider.fetch, clock=lambda: now[0])
    with capture_logs() as logs:
        resolved = await catalog.resolve(profile())
        await catalog.resolve(profile())
        now[0] += 61
        await catalog.resolve(profile())
    assert not any(member.structured for member in resolved.members)
    assert catalog.price("openai/gpt-5") is None
    assert provider.asked == 2
    assert [(line["event"], line["log_level"]) for line in logs] == [("model_list_missing", "info")]
