"""What pydantic-ai knows of servers, beside what is known here: each difference is decided once, in `decided.toml`.

Its providers know addresses and how a server is asked, its profiles what models take. Some providers load
only with their makers' own clients; of those, the profile of the family is read.
"""

import importlib
import pkgutil
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from inspect import isclass
from pathlib import Path
from typing import Any, cast
from warnings import catch_warnings

import httpx
import pytest

from council.calls import ChatMessage
from council.models.servers import known_server
from council.reviews.ballots import ballot_schema
from tests.council.models.scene import call
from tests.model_servers.matrix import opened
from tests.model_servers.stand_in import KEY, ORIGINALS

Profile = Callable[[str], Mapping[str, Any] | None]

DECIDED = tomllib.loads((Path(__file__).parent / "decided.toml").read_text(encoding="utf-8"))
FAMILIES = {
    "anthropic": "anthropic",
    "cohere": "cohere",
    "gemini": "google",
    "groq": "groq",
    "mistral": "mistral",
    "xai": "grok",
}
"""Profiles of those whose provider wants another client, so they say nothing of a limit's name."""
FIELDS = {"reasoning", "reasoning_content"}
LIMIT = "openai_chat_supports_max_completion_tokens"


def provided() -> Iterator[tuple[str, str, Profile]]:
    """Yield the name, the server's name here and the profile of each provider that loads and has one address."""
    from pydantic_ai import providers
    from pydantic_ai.exceptions import UserError

    for module in pkgutil.iter_modules(providers.__path__):
        with suppress(ImportError), catch_warnings(action="ignore"):
            found = importlib.import_module(f"{providers.__name__}.{module.name}")
            for kind in vars(found).values():
                if (
                    isclass(kind)
                    and issubclass(kind, providers.Provider)
                    and kind.__module__ == found.__name__
                ):
                    build = cast("Callable[..., providers.Provider[Any]]", kind)
                    with suppress(TypeError, UserError):  # it wants more than a key
                        address = httpx.URL(build(api_key=KEY).base_url)
                        yield module.name, known_server(address).name, kind.model_profile


def theirs() -> dict[str, Profile]:
    """Return their profile of each server that both know."""
    known: dict[str, Profile] = {}
    for module, name, profile in provided():
        if name not in known or module == name:
            known[name] = profile
    for name, module in FAMILIES.items():
        family = importlib.import_module(f"pydantic_ai.profiles.{module}")
        known[name] = getattr(family, f"{module}_model_profile")
    return known


async def asked(name: str) -> dict[str, dict[str, Any]]:
    """Return what a server is sent first for a ballot, by model."""
    async with opened(name, KEY, is_named=True) as (server, council):
        profile = await council.client.catalog.resolve(council.profile())
        for member in profile.members:
            question: ChatMessage = {"role": "user", "content": "Rank Response A and B as JSON."}
            schema = ballot_schema(["Response A", "Response B"])
            settings: dict[str, Any] = {"deadline": 30.0, "max_tokens": 64, "schema": schema}
            await council.client.ask(call(member.model, question, member=member, **settings))
    return {str(exchange.model): exchange.request for exchange in reversed(server.history)}


def differences(name: str, request: Mapping[str, Any], profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield in what a request differs from what they would send, and where else they look for thoughts."""
    from pydantic_ai.profiles import DEFAULT_THINKING_TAGS

    by_schema = request.get("response_format", {}).get("type") == "json_schema"
    if by_schema is not profile.get("supports_json_schema_output", False):
        yield "schema here" if by_schema else "schema there"
    if name not in FAMILIES and ("max_tokens" in request) is profile.get(LIMIT, True):
        yield "max_tokens here" if "max_tokens" in request else "max_tokens there"
    field = profile.get("openai_chat_thinking_field")
    if field and ORIGINALS[name].thinks in FIELDS - {field}:
        yield f"{field} there"
    tags = profile.get("thinking_tags", DEFAULT_THINKING_TAGS)
    if tags != DEFAULT_THINKING_TAGS:
        yield f"{tags[0]} there"


@pytest.mark.soak
async def test_each_difference_is_decided() -> None:
    """By what a server is sent first; a new one, or one that is gone, fails."""
    found = {("generic", module) for module, name, _ in provided() if name == "generic"}
    for name, profile in theirs().items():
        if name not in ORIGINALS:
            continue
        models = defaultdict[str, list[str]](list)
        for model, request in (await asked(name)).items():
            for difference in differences(name, request, profile(model) or {}):
                models[difference].append(model)
        for difference, differing in models.items():
            of_some = (
                "" if {*differing} == {*ORIGINALS[name].models} else f": {', '.join(sorted(differing))}"
            )
            found.add((name, f"{difference}{of_some}"))
    decided = {(name, difference) for name, reasons in DECIDED.items() for difference in reasons}
    assert (found - decided, decided - found) == (set(), set())
