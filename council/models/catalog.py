"""What the provider's model list says: prices, context windows, and which models accept a JSON schema.

Format: https://openrouter.ai/docs/api-reference/list-available-models; servers that list models
without these fields leave prices unknown and ballots in plain text.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

import structlog

from council.demonstration import WINDOW
from council.errors import ModelError
from council.profile import Member, Profile
from council.text.json_objects import JsonObject
from council.usage import Price

HOUR = 3600.0
MINUTE = 60.0
UNKNOWN_WINDOW = 16_000
"""Tokens that a model is taken to read where nothing says how many."""

log = structlog.stdlib.get_logger()


@dataclass(frozen=True, slots=True)
class ModelListing:
    """One model of the list; `price` and `window` (in tokens) are `None` if none is named.

    `structured` says whether it takes a JSON schema, `None` where the list says nothing of that.
    `vision` says whether it reads pictures, `None` likewise. `created` is when the model came out, in
    seconds since 1970; 0 where that isn't said.
    """

    price: Price | None
    structured: bool | None
    window: int | None = None
    created: int = 0
    vision: bool | None = None


TakesSchema = Callable[[Member, bool | None], Awaitable[bool]]


class Catalog:
    """The model list, fetched at most once an hour and by one caller at a time.

    `takes_schema` says whether a member's server takes a JSON schema, told what the list says of that.
    Without a list nothing fails, but prices are unknown.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Iterable[JsonObject]]],
        takes_schema: TakesSchema | None = None,
        *,
        time_to_live: float = HOUR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._takes_schema: TakesSchema = takes_schema or _as_listed
        self._time_to_live = time_to_live
        self._clock = clock
        self._listings: dict[str, ModelListing] = {}
        self._fresh_until = float("-inf")
        self._fetching = asyncio.Lock()
        self._missed = False

    async def resolve(self, profile: Profile) -> Profile:
        """Return the profile with `structured` set, by the list and by what is known of servers.

        What the configuration says of an endpoint stays as it is.
        """
        if not all(seat.endpoint_id for seat in profile.seats):
            await self.refresh()
        title_model, judge_model = profile.title_model, profile.judge_model
        return profile.model_copy(
            update={
                "members": tuple([await self._informed(each) for each in profile.members]),
                "chairman": await self._informed(profile.chairman),
                "chairman_fallbacks": tuple(
                    [await self._informed(each) for each in profile.chairman_fallbacks]
                ),
                "title_model": title_model and await self._informed(title_model),
                "judge_model": judge_model and await self._informed(judge_model),
            }
        )

    def price(self, model: str) -> Price | None:
        """Return a model's price as far as it is known; nothing is fetched."""
        listing = self._listing(model)
        return listing.price if listing else None

    async def unlisted(self, profiles: Iterable[Profile]) -> dict[str, str | None]:
        """Return the provider's models of these profiles that its list doesn't have.

        Each comes with the listed one that may be meant. Without a list, none is returned.
        """
        seats = (seat for profile in profiles for seat in profile.seats if seat.endpoint_id is None)
        models = dict.fromkeys(model for seat in seats for model in (seat.model, *seat.fallbacks))
        if not models:
            return {}
        await self.refresh()
        unknown = [model for model in models if self._listings and not self._listing(model)]
        return {model: most_like(model, self._listings) for model in unknown}

    def window(self, profile: Profile) -> int:
        """Return the smallest context window among a council's models, in tokens.

        A window that the list doesn't name counts as `UNKNOWN_WINDOW`. Nothing is fetched.
        """
        if profile.demonstration:
            return WINDOW
        models = ((seat, model) for seat in profile.seats for model in (seat.model, *seat.fallbacks))
        return min(self._window(seat, model) for seat, model in models)

    def _window(self, seat: Member, model: str) -> int:
        # The list is about the provider's own models.
        listing = None if seat.endpoint_id else self._listing(model)
        return (listing and listing.window) or UNKNOWN_WINDOW

    async def refresh(self) -> None:
        """Fetch the list unless it is fresh. If that fails, the last list stays in use."""
        async with self._fetching:
            if self._clock() < self._fresh_until:
                return
            try:
                models = await self._fetch()
            except ModelError as error:
                self._fresh_until = self._clock() + min(MINUTE, self._time_to_live)
                if not self._missed:
                    log.info("model_list_missing", reason=error)
                self._missed = True
                return
            self._listings = read_listings(models)
            self._fresh_until = self._clock() + self._time_to_live
            self._missed = False

    async def _informed(self, member: Member) -> Member:
        # The list is about the provider's own models.
        listing = None if member.endpoint_id else self._listing(member.model)
        if member.vision is None and listing and listing.vision is not None:
            member = member.model_copy(update={"vision": listing.vision})
        if member.endpoint_id is not None and member.structured is not None:
            return member
        takes = await self._takes_schema(member, listing.structured if listing else None)
        return member.model_copy(update={"structured": takes})

    def _listing(self, model: str) -> ModelListing | None:
        return find_listing(self._listings, model)


async def _as_listed(member: Member, listed: bool | None) -> bool:
    return bool(member.endpoint_id or listed)


def read_listings(models: Iterable[JsonObject]) -> dict[str, ModelListing]:
    """Read a provider's model list, by the models' ids."""
    return dict(_read(models))


def find_listing(listings: Mapping[str, ModelListing], model: str) -> ModelListing | None:
    """Return what a list says of a model; `None` where it doesn't have it."""
    # Variants that only route differently (`:nitro`, `:floor`) aren't listed separately; Gemini's list
    # has `models/gemini-2.5-pro` for `gemini-2.5-pro`; Ollama's `llama3.2:latest` for `llama3.2`
    # (https://github.com/ollama/ollama/blob/main/docs/api.md#model-names).
    names = (model, model.partition(":")[0], f"models/{model}", f"{model}:latest")
    return next((listings[name] for name in names if name in listings), None)


def most_like(model: str, listed: Collection[str]) -> str | None:
    """Return the id of a list that somebody may have meant by one that isn't on it."""
    by_name = {one.rpartition("/")[2]: one for one in listed}
    if "/" not in model and (near := get_close_matches(model, by_name, 1, cutoff=0.75)):
        return by_name[near[0]]
    return next(iter(get_close_matches(model, listed, 1)), None)


def _read(models: Iterable[JsonObject]) -> Iterable[tuple[str, ModelListing]]:
    for model in models:
        if isinstance(name := model.get("id"), str):
            takes = model.get("supported_parameters")
            named = {*map(str, cast("list[object]", takes))} if isinstance(takes, list) else None
            structured = None if named is None else "structured_outputs" in named
            created = model.get("created")
            since = created if isinstance(created, int) else 0
            price = _price(model.get("pricing"))
            yield name, ModelListing(price, structured, _window(model), since, _sees(model))


def _sees(model: JsonObject) -> bool | None:
    """Return whether a model reads pictures, as OpenRouter or Mistral name it."""
    about = model.get("architecture")
    reads = cast("JsonObject", about).get("input_modalities") if isinstance(about, dict) else None
    if isinstance(reads, list):
        return "image" in cast("list[object]", reads)
    can = model.get("capabilities")
    sees = cast("JsonObject", can).get("vision") if isinstance(can, dict) else None
    return sees if isinstance(sees, bool) else None


_WINDOWS = ("context_length", "max_model_len", "max_context_length", "context_window")


def _window(model: JsonObject) -> int | None:
    """Return a model's window as OpenRouter, vLLM, Mistral, Groq or llama.cpp's server name it."""
    meta = model.get("meta")
    of_slots = cast("JsonObject", meta).get("n_ctx") if isinstance(meta, dict) else None
    named = (*(model.get(name) for name in _WINDOWS), of_slots)
    return next((each for each in named if isinstance(each, int) and each > 0), None)


def _price(pricing: object) -> Price | None:
    """Read dollars a token, written as decimal strings; `-1` means "it depends"."""
    if not isinstance(pricing, dict):
        return None
    prices = cast("JsonObject", pricing)
    try:
        prompt, completion, request = (
            float(str(prices.get(what, 0))) for what in ("prompt", "completion", "request")
        )
    except ValueError:
        return None
    if "prompt" not in prices or "completion" not in prices or min(prompt, completion, request) < 0:
        return None
    return Price(prompt, completion, request, _cached_price(prices, prompt))


def _cached_price(prices: JsonObject, prompt: float) -> float | None:
    """Read the price of a token that the provider has read before, which is never a dearer one.

    Source: https://openrouter.ai/docs/api-reference/list-available-models (`input_cache_read`)
    """
    try:
        cached = float(str(prices.get("input_cache_read")))
    except ValueError:
        return None
    return cached if 0 <= cached <= prompt else None
