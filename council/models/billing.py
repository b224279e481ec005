"""What a reply used and cost: as its server counted it, or estimated.

Servers put the count in `usage`, Groq in `x_groq.usage`, Moonshot in `choices[0].usage`, and some into
every chunk: the last one counts. The cost is a number (OpenRouter), an object with `total_cost`
(Perplexity), `cost_in_usd_ticks` (xAI: ten thousand million to the dollar), or LiteLLM's header
`x-litellm-response-cost`. What no call can cost isn't believed: the call counts
as what it was taken to cost.
"""

import math
from collections.abc import Callable, Mapping

import structlog

from council.calls import Call
from council.profile import Member
from council.text.json_objects import JsonObject, as_object
from council.usage import CHARACTERS_PER_TOKEN, Price, Usage, estimate_tokens, tokens

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


def unpriced(member: Member) -> None:
    """Return no price."""
    del member


def call_cost(call: Call, price: Price | None, unpriced_call: float) -> float:
    """Return the dollars that one call may cost, just before it is made."""
    if price is None:
        cost = unpriced_call
    else:
        prompt = sum(tokens(message["content"]) for message in call.messages)
        cost = price.cost(prompt, call.max_tokens or REPLY_TOKENS)
    return cost + search_cost(call.member, web=call.web)


def search_cost(member: Member, *, web: bool) -> float:
    """Return the dollars that a call's web search costs; a server of one's own makes none."""
    return WEB_SEARCH if web and member.endpoint_id is None else 0.0


def stated_usage(chunk: JsonObject, choice: JsonObject) -> JsonObject | None:
    """Return the usage that a chunk or a body states, wherever it is."""
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
    prompt, completion = _counts(usage)
    reserved = call_cost(call, price, unpriced_call)
    guess = _estimated(call, arrived, price, reserved)
    cached = cached_tokens(usage)
    counted = _priced(prompt, completion, price, search_cost(call.member, web=call.web), cached)
    if prompt + completion == 0:
        counted = guess
    elif counted.cost > max(BELIEVED, TIMES_BELIEVED * reserved):  # so many tokens can't be
        return _not_believed(call, counted.cost, guess, price, reserved)
    listed = counted.cost if price else None
    cost = stated_cost(usage, headers, listed)
    if cost is not None and (cost or prompt + completion):
        if cost > max(BELIEVED, TIMES_BELIEVED * (unpriced_call if listed is None else listed)):
            return _not_believed(call, cost, guess, price, reserved)
        return counted.model_copy(update={"cost": cost, "unpriced": 0})
    if counted is not guess and is_whole and (completion or not arrived):
        return counted
    return max(counted, guess, key=lambda each: (each.cost, each.tokens))


def stated_cost(
    usage: JsonObject, headers: Mapping[str, str], listed: float | None = None
) -> float | None:
    """Return the dollars that a server says a reply cost, `None` where it doesn't say.

    With one's own key for the model's provider, OpenRouter's `cost` is its fee alone. What the provider
    charges is beside it, and if it isn't, the list price counts. OpenRouter states that charge for other
    calls, too, where it isn't added: https://openrouter.ai/docs/use-cases/usage-accounting
    """
    said = usage.get("cost")
    cost = _amount(as_object(said).get("total_cost", said))
    if cost is not None:
        is_own_key = usage.get("is_byok", cost == 0)
        if is_own_key is not True:
            return cost
        upstream = _amount(as_object(usage.get("cost_details")).get("upstream_inference_cost"))
        if upstream is None:
            upstream = listed
        if upstream is not None:
            return cost + upstream
        return None if usage.get("is_byok") else cost
    if (ticks := _amount(usage.get("cost_in_usd_ticks"))) is not None:
        return ticks / TICKS_PER_DOLLAR
    try:  # LiteLLM writes 0.0 and None where it doesn't know a price, and before a stream has ended
        return _amount(float(headers.get(COST_HEADER, ""))) or None
    except ValueError:
        return None


def cached_tokens(usage: JsonObject) -> int | None:
    """Return the tokens of the prompt that came from the provider's cache; `None` where it doesn't say.

    OpenAI and most others put them in `prompt_tokens_details`, DeepSeek and Moonshot beside the sums.
    """
    details = as_object(usage.get("prompt_tokens_details"))
    named = (
        details.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cached_tokens"),
    )
    said = next((value for value in named if _amount(value) is not None), None)
    return None if said is None else min(_count(said), _count(usage.get("prompt_tokens")))


def _counts(usage: JsonObject) -> tuple[int, int]:
    """Return the tokens of prompt and reply that a server counted.

    The completion tokens of xAI leave the thoughts out; its total has them.
    """
    prompt, completion = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    details = as_object(usage.get("completion_tokens_details"))
    thoughts = _count(details.get("reasoning_tokens")) or _count(usage.get("reasoning_tokens"))
    if thoughts and _count(usage.get("total_tokens")) == prompt + completion + thoughts:
        completion += thoughts
    return prompt, completion


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
    """Return the usage of so many tokens at a list's price; without one, it counts as unpriced."""
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
    """Return a number of tokens or dollars, `None` where it can't be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 and math.isfinite(value) else None
