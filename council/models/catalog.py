"""What the provider's model list says: prices, context windows, who takes a JSON schema for a reply.

Format: https://openrouter.ai/docs/api-reference/list-available-models; servers that list models
without these fields leave prices unknown and ballots in plain text.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import cast

import structlog

from council.calls import JsonObject
from council.errors import ModelError
from council.models.builtin import WINDOW
from council.profile import Member, Profile

HOUR = 3600.0
MINUTE = 60.0
UNKNOWN_WINDOW = 16_000
"""Tokens that a model is taken to read where nothing says how many."""

log = structlog.stdlib.get_logger()


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for one token of the prompt, one of the reply, and for the call itself."""

    prompt: float
    completion: float
    request: float = 0.0

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of one call."""
        return self.request + self.prompt * prompt_tokens + self.completion * completion_tokens


@dataclass(frozen=True, slots=True)
class Listing:
    """One model of the list; `price` and `window` (in tokens) are `None` where none is named."""

    price: Price | None
    structured: bool
    window: int | None = None


class Catalog:
    """The model list, fetched at most once an hour and by one caller at a time.

    Without a list nothing fails: prices are unknown and ballots are asked for in plain text.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Iterable[JsonObject]]],
        *,
        time_to_live: float = HOUR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._time_to_live = time_to_live
        self._clock = clock
        self._listings: dict[str, Listing] = {}
        self._fresh_until = float("-inf")
        self._fetching = asyncio.Lock()
        self._missed = False

    async def resolve(self, profile: Profile) -> Profile:
        """Return the profile with `structured` set by the list; members with an endpoint keep theirs."""
        if all(seat.endpoint_id for seat in profile.seats):
            return profile
        await self.refresh()
        title_model = profile.title_model
        return profile.model_copy(
            update={
                "members": tuple(map(self._informed, profile.members)),
                "chairman": self._informed(profile.chairman),
                "chairman_fallbacks": tuple(map(self._informed, profile.chairman_fallbacks)),
                "title_model": title_model and self._informed(title_model),
            }
        )

    def price(self, model: str) -> Price | None:
        """Return a model's price as far as it is known; nothing is fetched."""
        listing = self._listing(model)
        return listing.price if listing else None

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
            self._listings = dict(_read(models))
            self._fresh_until = self._clock() + self._time_to_live
            self._missed = False

    def _informed(self, member: Member) -> Member:
        if member.endpoint_id is not None:
            return member
        listing = self._listing(member.model)
        return member.model_copy(update={"structured": bool(listing and listing.structured)})

    def _listing(self, model: str) -> Listing | None:
        # Variants that only route differently (`:nitro`, `:floor`) aren't listed separately.
        return self._listings.get(model) or self._listings.get(model.partition(":")[0])


def _read(models: Iterable[JsonObject]) -> Iterable[tuple[str, Listing]]:
    for model in models:
        if isinstance(name := model.get("id"), str):
            takes = model.get("supported_parameters")
            structured = isinstance(takes, list) and "structured_outputs" in takes
            window = model.get("context_length")
            known = window if isinstance(window, int) and window > 0 else None
            yield name, Listing(_price(model.get("pricing")), structured, known)


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
    return Price(prompt, completion, request)
