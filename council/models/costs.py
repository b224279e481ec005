"""What models cost and what calls cost: a provider's list of models, and how its servers count replies.

Format of a list: https://openrouter.ai/docs/api-reference/list-available-models; Vercel names prices its
own way (https://vercel.com/docs/ai-gateway/sdks-and-apis/rest-api). Servers that list models without
these fields leave prices unknown and ballots in plain text.

Servers put a reply's count in `usage`, Groq in `x_groq.usage`, Moonshot in `choices[0].usage`, and some
into every chunk: the last one counts. The cost is a number (OpenRouter), an object with `total_cost`
(Perplexity), `cost_in_usd_ticks` (xAI: ten thousand million to the dollar), or LiteLLM's header
`x-litellm-response-cost`. What no call can cost isn't believed: the call counts as what it was taken to
cost.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import structlog

from council.calls import Call
from council.demonstration import WINDOW
from council.errors import ModelError
from council.profile import Member, Profile
from council.text.json_objects import JsonObject, as_object
from council.usage import CHARACTERS_PER_TOKEN, Price, Usage, estimate_tokens, tokens

HOUR = 3600.0
MINUTE = 60.0
UNKNOWN_WINDOW = 16_000
"""Tokens that a model is taken to read where nothing says how many."""
COST_HEADER = "x-litellm-response-cost"
TICKS_PER_DOLLAR = 10**10
MOST_TOKENS = 10**12
"""What no call can use."""
BELIEVED = 1.0
"""US dollars that any call may cost."""
TIMES_BELIEVED = 100
"""How many times its list price a call may cost."""
REPLY_TOKENS = 2_000
"""How long a reply is taken to be where nothing limits it."""
WEB_SEARCH = 0.02
"""US dollars for one call's web search: five results at $4 per 1,000.

Source: https://openrouter.ai/docs/guides/features/plugins/web-search
"""
UNPRICED_CALL = 0.10
"""US dollars that a call without a known price is taken to cost, unless `[budgets]` says otherwise."""

PriceOf = Callable[[Member], Price | None]
"""Returns what a member's calls cost, as far as that is known."""

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


class Catalog:
    """The model list, fetched at most once an hour and by one caller at a time.

    `takes_schema` says whether a member's server takes a JSON schema, given what the list says of that.
    Without a list nothing fails, but prices are unknown.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Iterable[JsonObject]]],
        takes_schema: Callable[[Member, bool | None], Awaitable[bool]] | None = None,
        *,
        time_to_live: float = HOUR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._takes_schema = takes_schema
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
        listing = find_listing(self._listings, model)
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
        listed = self._listings
        unknown = [model for model in models if listed and not find_listing(listed, model)]
        return {model: most_like(model, listed) for model in unknown}

    def window(self, profile: Profile) -> int:
        """Return the smallest context window among a council's models, in tokens.

        A window that the list doesn't name counts as `UNKNOWN_WINDOW`. Nothing is fetched.
        """
        if profile.demonstration:
            return WINDOW
        models = ((seat, model) for seat in profile.seats for model in (seat.model, *seat.fallbacks))
        listings = (self._listing(seat, model) for seat, model in models)
        return min((listing and listing.window) or UNKNOWN_WINDOW for listing in listings)

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
        listing = self._listing(member, member.model)
        if member.vision is None and listing and listing.vision is not None:
            member = member.model_copy(update={"vision": listing.vision})
        if member.endpoint_id is not None and member.structured is not None:
            return member
        listed = listing.structured if listing else None
        takes = bool(member.endpoint_id or listed)
        if self._takes_schema is not None:
            takes = await self._takes_schema(member, listed)
        return member.model_copy(update={"structured": takes})

    def _listing(self, member: Member, model: str) -> ModelListing | None:
        # The list is about the provider's own models.
        return None if member.endpoint_id else find_listing(self._listings, model)


def read_listings(models: Iterable[JsonObject]) -> dict[str, ModelListing]:
    return {name: _listing(model) for model in models if isinstance(name := model.get("id"), str)}


def find_listing(listings: Mapping[str, ModelListing], model: str) -> ModelListing | None:
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


def _listing(model: JsonObject) -> ModelListing:
    takes, created = model.get("supported_parameters"), model.get("created")
    # Windows as OpenRouter, vLLM, Mistral, Groq or llama.cpp name them.
    names = ("context_length", "max_model_len", "max_context_length", "context_window")
    windows = (*map(model.get, names), as_object(model.get("meta")).get("n_ctx"))
    # Whether it reads pictures, as OpenRouter or Mistral say it.
    reads = as_object(model.get("architecture")).get("input_modalities")
    sees = (
        "image" in reads
        if isinstance(reads, list)
        else as_object(model.get("capabilities")).get("vision")
    )
    return ModelListing(
        price=_price(as_object(model.get("pricing"))),
        structured="structured_outputs" in takes if isinstance(takes, list) else None,
        window=next((each for each in windows if isinstance(each, int) and each > 0), None),
        created=created if isinstance(created, int) else 0,
        vision=sees if isinstance(sees, bool) else None,
    )


def _price(prices: JsonObject) -> Price | None:
    """Read dollars a token, written as decimal strings; `-1` means "it depends".

    A token that the provider has read before is never a dearer one.
    """

    def dollars(*names: str) -> float | None:
        said = next((prices[name] for name in names if name in prices), None)
        try:
            return amount if math.isfinite(amount := float(str(said))) and amount >= 0 else None
        except ValueError:
            return None

    prompt, completion = dollars("prompt", "input"), dollars("completion", "output")
    request = dollars("request") if "request" in prices else 0.0
    if prompt is None or completion is None or request is None:
        return None
    cached = dollars("input_cache_read")
    return Price(prompt, completion, request, None if cached is None or cached > prompt else cached)


def call_cost(call: Call, price: Price | None, unpriced_call: float) -> float:
    """Return the dollars that one call may cost, just before it is made."""
    if price is None:
        cost = unpriced_call
    else:
        prompt = sum(tokens(message["content"]) for message in call.messages)
        cost = price.cost(prompt, call.max_tokens or REPLY_TOKENS)
    return cost + search_cost(call.member, web=call.web)


def search_cost(member: Member, *, web: bool) -> float:
    return WEB_SEARCH if web and member.endpoint_id is None else 0.0


def stated_usage(chunk: JsonObject, choice: JsonObject) -> JsonObject | None:
    if "usage" not in chunk and "x_groq" not in chunk and "usage" not in choice:
        return None  # as in nearly every chunk
    for holder in (chunk, as_object(chunk.get("x_groq")), choice):
        if usage := as_object(holder.get("usage")):
            return usage
    return None


def used(
    call: Call,
    arrived: int,
    usage: JsonObject,
    headers: Mapping[str, str],
    price: Price | None,
    unpriced_call: float,
    *,
    is_whole: bool = True,
) -> Usage:
    """Return what a request used, as its server counted it, else estimated.

    `arrived` are a reply's characters, thoughts included. A count that came before it `is_whole` may
    have left out what came later. Costs that no call can have are logged, and what the call was taken to
    cost before it was made counts instead.
    """
    prompt, completion, cached = _counts(usage)
    reserved = call_cost(call, price, unpriced_call)
    guess = _estimated(call, arrived, price, reserved)
    counted = _priced(prompt, completion, price, search_cost(call.member, web=call.web), cached)
    if prompt + completion == 0:
        counted = guess
    elif counted.cost > max(BELIEVED, TIMES_BELIEVED * reserved):  # so many tokens can't be
        return _not_believed(call, counted.cost, guess, price, reserved)
    listed = counted.cost if price else None
    cost = _stated_cost(usage, headers, listed)
    if cost is not None and (cost or prompt + completion):
        if cost > max(BELIEVED, TIMES_BELIEVED * (unpriced_call if listed is None else listed)):
            return _not_believed(call, cost, guess, price, reserved)
        return counted.model_copy(update={"cost": cost, "unpriced": 0})
    if counted is not guess and is_whole and (completion or not arrived):
        return counted
    return max(counted, guess, key=lambda each: (each.cost, each.tokens))


def _stated_cost(usage: JsonObject, headers: Mapping[str, str], listed: float | None) -> float | None:
    """Return the dollars that a server says a reply cost, `None` where it doesn't say.

    With one's own key for the model's provider, OpenRouter's `cost` is its fee alone. What the provider
    charges is beside it, and if it isn't, the list price counts. OpenRouter states that charge for other
    calls, too, where it isn't added: https://openrouter.ai/docs/use-cases/usage-accounting
    """
    said = usage.get("cost")
    cost = _amount(as_object(said).get("total_cost", said))
    if cost is not None:
        if usage.get("is_byok", cost == 0) is not True:
            return cost
        charged = _amount(as_object(usage.get("cost_details")).get("upstream_inference_cost"))
        charged = listed if charged is None else charged
        if charged is None:
            return None if usage.get("is_byok") else cost
        return cost + charged
    if (ticks := _amount(usage.get("cost_in_usd_ticks"))) is not None:
        return ticks / TICKS_PER_DOLLAR
    try:  # LiteLLM writes 0.0 and None where it doesn't know a price, and before a stream has ended
        return _amount(float(headers.get(COST_HEADER, ""))) or None
    except ValueError:
        return None


def _counts(usage: JsonObject) -> tuple[int, int, int | None]:
    """Return the tokens of prompt and reply that a server counted, and those that its cache had.

    The completion tokens of xAI leave the thoughts out; its total has them. OpenAI and most others put
    the cached ones in `prompt_tokens_details`, DeepSeek and Moonshot beside the sums.
    """
    prompt, completion = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    details = as_object(usage.get("completion_tokens_details"))
    thoughts = _count(details.get("reasoning_tokens")) or _count(usage.get("reasoning_tokens"))
    if thoughts and _count(usage.get("total_tokens")) == prompt + completion + thoughts:
        completion += thoughts
    own = as_object(usage.get("prompt_tokens_details")).get("cached_tokens")
    named = (own, usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    cached = next((value for value in named if _amount(value) is not None), None)
    return prompt, completion, None if cached is None else min(_count(cached), prompt)


def _estimated(call: Call, arrived: int, price: Price | None, reserved: float) -> Usage:
    """Return an estimate by what was sent and what arrived, at least what the call was taken to cost.

    Models think where nobody sees it, and many servers write on, and bill, when a stream is cut. Where
    nothing limits a reply, what isn't seen of it comes on top of what arrived.
    Source: https://openrouter.ai/docs/api-reference/streaming#stream-cancellation
    """
    prompt = sum(estimate_tokens(message["content"]) for message in call.messages)
    completion = -(-arrived // CHARACTERS_PER_TOKEN)
    guess = _priced(prompt, completion, price, search_cost(call.member, web=call.web))
    if price is None:
        return guess.model_copy(update={"source": "estimated"})
    least = reserved + (0 if call.max_tokens else price.completion * completion)
    return guess.model_copy(update={"source": "estimated", "cost": max(guess.cost, least)})


def _priced(
    prompt: int, completion: int, price: Price | None, search: float, cached: int | None = None
) -> Usage:
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=search + (price.cost(prompt, completion, cached or 0) if price else 0.0),
        unpriced=0 if price else 1,
        cached_tokens=cached,
    )


def _not_believed(
    call: Call, stated: float, guess: Usage, price: Price | None, reserved: float
) -> Usage:
    log.warning("cost_not_believed", model=call.member.model, step=call.step, dollars=stated)
    return guess if price is None else guess.model_copy(update={"cost": reserved})


def _count(value: object) -> int:
    counted = int(_amount(value) or 0)
    return counted if counted <= MOST_TOKENS else 0


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 and math.isfinite(value) else None
