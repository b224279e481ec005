"""Which models to ask: those of servers on this machine, and the best of a provider's list.

Servers are only asked for that list (`GET /v1/models`). Nothing is asked of a model that nobody has put
into the configuration.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

from council.calls import Call
from council.errors import ModelError
from council.models.client import ModelClient
from council.models.costs import ModelListing
from council.profile import Member, Profile

PLACES: Mapping[str, int] = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080}
SECONDS = 1.0
"""How long a server may take to list its models; where none is, the answer comes at once."""
MOST_MODELS = 4
_ID = re.compile(r"[\w./:@+-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server on this machine: what it usually is, its base URL, and some of its models."""

    name: str
    endpoint: str
    models: tuple[str, ...]

    def council(self) -> Profile | None:
        """Return a council of its models; `None` where there is only one, which has no peers."""
        if len(self.models) == 1:
            return None
        members = tuple(Member(model=model, endpoint=self.endpoint) for model in self.models)
        return Profile(members=members, chairman=members[0])


async def find_servers(
    places: Mapping[str, int] = PLACES, seconds: float = SECONDS
) -> list[LocalServer]:
    """Return the servers that list models at these ports of 127.0.0.1, all asked at once."""
    async with ModelClient(_nobody) as client:
        looks = (_look(client, name, port, seconds) for name, port in places.items())
        return [found for found in await asyncio.gather(*looks) if found]


async def _look(client: ModelClient, name: str, port: int, seconds: float) -> LocalServer | None:
    endpoint = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(seconds):
            listed = await client.models(Member(model="any", endpoint=endpoint))
    except (TimeoutError, ModelError):
        return None
    ids = (str(model.get("id")) for model in listed)
    models = tuple(each for each in ids if _ID.fullmatch(each) and "embed" not in each.lower())
    return LocalServer(name, endpoint, models[:MOST_MODELS]) if models else None


def _nobody(call: Call) -> Never:
    raise AssertionError(f"{call.member.model} was asked for a list only")


MAKERS = (
    "anthropic",
    "openai",
    "google",
    "x-ai",
    "deepseek",
    "mistralai",
    "qwen",
    "moonshotai",
    "z-ai",
    "meta-llama",
)
"""Makers of large models, those to suggest first at the front; others follow as a list has them."""
MEMBERS = 3
DEAREST = 30e-6
"""Dollars for a token of the reply: a model that costs more is never suggested where another will do."""
MODEL_ID = re.compile(r"[\w./:@+~-]{1,120}", re.ASCII)
"""What an id may be made of so that every file and every prompt can hold it."""
_LESSER = re.compile(
    r"(?:^|[^a-z])(?:mini|nano|lite|flash|fast|small|tiny|haiku|air|image|audio|tts|realtime|transcribe"
    r"|voxtral|vision|vl|guard|safeguard|embed\w*|search|research|codex|coder?|codestral|devstral|oss|gemma"
    r"|distill|auto|free|beta)(?:$|[^a-z])"
)
"""Names of small, special and routed models, as makers use them."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Models for a council's seats; the chairman is none of the members unless there are too few."""

    members: tuple[str, ...]
    chairman: str


def suggest(listings: Mapping[str, ModelListing]) -> Suggestion | None:
    """Suggest three members of different makers and a chairman; `None` where nothing is listed.

    A single model takes all seats. With fewer than four makers, one is there twice.
    """
    ranked = leading(listings)
    if not ranked:
        return None
    if len(ranked) == 1:
        return Suggestion((ranked[0],) * MEMBERS, ranked[0])
    if len({*map(_maker, ranked)}) > MEMBERS:
        return Suggestion(tuple(ranked[1 : MEMBERS + 1]), ranked[0])
    chairman = ranked[MEMBERS] if len(ranked) > MEMBERS else ranked[0]
    return Suggestion(tuple(ranked[:MEMBERS]), chairman)


def leading(listings: Mapping[str, ModelListing]) -> list[str]:
    """Return all ids that can be used: each maker's leading model first, then the others alike."""
    is_priced = any(listing.price for listing in listings.values())

    def worth(model: str) -> tuple[bool, int]:
        """Return whether it is a main model at a price one would pay, and when it came out."""
        price = listings[model].price
        affordable = (0 < price.completion <= DEAREST) if price else not is_priced
        return affordable and not _LESSER.search(model.lower()), listings[model].created

    models = [model for model in listings if MODEL_ID.fullmatch(model) and "embed" not in model.lower()]
    best = sorted(models, key=worth, reverse=True)
    firsts: dict[str, str] = {}
    for model in best:
        firsts.setdefault(_maker(model), model)
    places = {maker: place for place, maker in enumerate(MAKERS)}

    def place(model: str) -> tuple[bool, int]:
        """Return where a maker's first model goes; those with lesser models alone come last."""
        return not worth(model)[0], places.get(_maker(model), len(places))

    heads = sorted(firsts.values(), key=place)
    return [*heads, *(model for model in best if model not in heads)]


def _maker(model: str) -> str:
    """Return who made a model: what precedes the slash in its id, or else the letters it begins with."""
    owner, slash, _ = model.partition("/")
    return owner if slash else (re.match("[A-Za-z]*", model) or [""])[0].lower()
