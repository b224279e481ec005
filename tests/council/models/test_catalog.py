"""What the provider's model list says and what happens without one; endpoints and keys are today's configuration's."""

import asyncio
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from council.accounts import Directory
from council.brief import Brief
from council.calls import Call
from council.demonstration import WINDOW
from council.errors import Cause, Failure, ModelError
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
    """In every seat; a model the list doesn't know gets plain text, and a member with its own endpoint keeps its setting."""
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


HERE = "http://127.0.0.1:11434/v1"
THERE = "http://127.0.0.1:8000/v1"
OWN = Member(model="llama", endpoint=HERE, api_key_env="LLAMA_KEY")
ROUTED = Member(model="openai/gpt-5", fallbacks=("x-ai/grok", "meta/llama"))
TODAY = Profile(members=(OWN, ROUTED), chairman=ROUTED)


def call(member: Member, profile: str = "default") -> Call:
    """Call a member as a run does: without what only the configuration may say."""
    return Call(step="stage1.1:a", member=member.in_a_run(), prompt=tuple, deadline=1.0, profile=profile)


def refused(called: Call, *profiles: Profile) -> Cause:
    """Look a member up in vain."""
    with pytest.raises(ModelError) as caught:
        Directory(profiles or (TODAY,)).find(called)
    assert caught.value.failure.attempts == 0
    return caught.value.failure.cause


def test_a_member_has_the_endpoint_and_the_key_of_today() -> None:
    """Whatever a row says beside its model; it can't have a question sent to a model that nobody configured."""
    today = TODAY.model_copy(update={"members": (OWN.model_copy(update={"api_key_env": "NEW"}),)})
    found = Directory([today]).find(call(OWN))
    assert (found.endpoint, found.api_key_env) == (HERE, "NEW")
    crafted = ROUTED.model_copy(update={"endpoint": THERE, "api_key_env": "DISCORD_TOKEN"})
    found = Directory([TODAY]).find(Call("stage1.1:a", crafted, tuple, 1.0))
    assert (found.endpoint, found.api_key_env) == (None, None)
    seats = [
        Member(model=name, endpoint=f"http://127.0.0.1:{port}/v1") for port, name in enumerate("abcd", 1)
    ]
    today = Profile(
        members=(seats[0],), chairman=seats[1], chairman_fallbacks=(seats[2],), title_model=seats[3]
    )
    directory = Directory([today])
    assert [directory.find(call(seat)).endpoint for seat in seats] == [seat.endpoint for seat in seats]
    crafted = ROUTED.model_copy(update={"fallbacks": ("evil/model", "meta/llama")})
    assert Directory([TODAY]).find(call(crafted)).fallbacks == ("meta/llama",)
    plain = Member(model="openai/gpt-5")
    both = Profile(members=(ROUTED,), chairman=plain)
    assert Directory([both]).find(call(ROUTED)).fallbacks == ROUTED.fallbacks


@rows(
    ("called", "cause"),
    [
        (call(Member(model="x-ai/grok")), "not_configured"),
        (call(OWN, profile="another"), "not_configured"),
        (call(Member(model="llama", endpoint=THERE)), "endpoint_changed"),
        (call(Member(model="llama")), "endpoint_changed"),
        (call(Member(model="openai/gpt-5", endpoint=HERE)), "endpoint_changed"),
    ],
)
def test_a_model_that_is_not_configured_is_not_asked(called: Call, cause: Cause) -> None:
    """A model that isn't on this council, or isn't served where the run has it."""
    assert refused(called) == cause


def test_a_changed_configuration_serves_the_runs_before_it_too() -> None:
    """Until the process ends: what it leaves out was configured when they began."""
    directory = Directory([TODAY])
    directory.add([Profile(members=(Member(model="llama", endpoint=THERE),), chairman=ROUTED)])
    assert directory.find(call(OWN)).endpoint == HERE
    assert directory.find(call(Member(model="llama", endpoint=THERE))).endpoint == THERE


@pytest.mark.parametrize("endpoint", ["http://ada:hunter2@127.0.0.1:11434/v1", f"{HERE}/"])
def test_an_endpoint_is_known_without_its_password(endpoint: str) -> None:
    """A new password doesn't make it another server, and it can't be guessed from the digest."""
    assert Member(model="llama", endpoint=endpoint).endpoint_id == OWN.endpoint_id


def test_a_brief_contains_no_endpoint_and_no_variable() -> None:
    """Neither in memory nor in its row; the endpoint's digest tells another one."""
    brief = Brief(question="Why?", profile=TODAY, seed=1, boundary="b0undary")
    assert [(seat.endpoint, seat.api_key_env) for seat in brief.profile.seats] == [(None, None)] * 3
    row = brief.model_dump_json()
    assert HERE not in row
    assert "LLAMA_KEY" not in row
    assert "api_key_env" not in row
    loaded = Brief.model_validate_json(row)
    assert loaded == brief
    assert loaded.profile.members[0].endpoint_id == OWN.endpoint_id


def test_endpoints_in_rows_of_earlier_versions_are_not_used() -> None:
    """Rows used to contain address and variable; only the endpoint's digest is left."""
    row = orjson.loads(
        Brief(question="Why?", profile=TODAY, seed=1, boundary="b0undary").model_dump_json()
    )
    row["profile"]["members"][0] = {"model": "llama", "endpoint": THERE, "api_key_env": "DISCORD_TOKEN"}
    [member, _] = Brief.model_validate(row).profile.members
    assert (member.endpoint, member.api_key_env) == (None, None)
    assert member.endpoint_id == Member(model="llama", endpoint=THERE).endpoint_id
