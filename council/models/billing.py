"""What a reply used and cost: as its server counted it, or estimated.

Servers put the count in `usage`, Groq in `x_groq.usage`, Moonshot in `choices[0].usage`, and some into
every chunk: the last one counts. The cost is a number (OpenRouter), an object with `total_cost`
(Perplexity), `cost_in_usd_ticks` (xAI: ten thousand million to the dollar), or LiteLLM's header
`x-litellm-response-cost`.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from council.calls import ChatMessage, JsonObject
from council.usage import CHARACTERS_PER_TOKEN, Price, Usage, estimate_tokens

COST_HEADER = "x-litellm-response-cost"
TICKS_PER_DOLLAR = 10**10
MOST = 10**12
"""What no call can use, of tokens or of dollars."""


def stated_usage(chunk: JsonObject, choice: JsonObject) -> JsonObject | None:
    """Return the usage that a chunk or a body states, wherever it is."""
    for holder in (chunk, as_object(chunk.get("x_groq")), choice):
        if usage := as_object(holder.get("usage")):
            return usage
    return None


def measured(
    usage: JsonObject,
    headers: Mapping[str, str],
    price: Price | None,
) -> Usage | None:
    """Return what a server counted, `None` where it counted nothing.

    The completion tokens of xAI leave the thoughts out; its total has them.
    """
    prompt, completion = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    thoughts = reasoning_tokens(usage)
    if thoughts and _count(usage.get("total_tokens")) == prompt + completion + thoughts:
        completion += thoughts
    if prompt + completion == 0:
        return None
    cost = stated_cost(usage, headers)
    if cost is None:
        return priced(prompt, completion, price)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cost=cost)


def estimated(messages: Sequence[ChatMessage], characters: int, price: Price | None) -> Usage:
    """Return an estimate of what a call used whose reply has so many characters, thoughts included."""
    prompt = sum(estimate_tokens(message["content"]) for message in messages)
    completion = -(-characters // CHARACTERS_PER_TOKEN)
    return priced(prompt, completion, price).model_copy(update={"source": "estimated"})


def priced(prompt: int, completion: int, price: Price | None) -> Usage:
    """Return the usage of so many tokens at a list's price; without one, it counts as unpriced."""
    if price is None:
        return Usage(prompt_tokens=prompt, completion_tokens=completion, unpriced=1)
    cost = price.cost(prompt, completion)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cost=cost)


def stated_cost(usage: JsonObject, headers: Mapping[str, str]) -> float | None:
    """Return the dollars that a server says a reply cost, `None` where it doesn't say.

    With one's own key for the model's provider, OpenRouter's `cost` is its fee alone; what the
    provider charges is beside it. It states that for other calls, too, where it isn't added:
    https://openrouter.ai/docs/use-cases/usage-accounting
    """
    said = usage.get("cost")
    cost = _amount(as_object(said).get("total_cost", said))
    if cost is not None:
        upstream = _amount(as_object(usage.get("cost_details")).get("upstream_inference_cost")) or 0.0
        is_own_key = usage.get("is_byok", cost == 0)
        return cost + upstream if is_own_key is True else cost
    if (ticks := _amount(usage.get("cost_in_usd_ticks"), MOST * TICKS_PER_DOLLAR)) is not None:
        return ticks / TICKS_PER_DOLLAR
    return _header_cost(headers.get(COST_HEADER, ""))


def reasoning_tokens(usage: JsonObject) -> int:
    """Return the tokens of thoughts, as far as a server tells them apart."""
    details = as_object(usage.get("completion_tokens_details"))
    return _count(details.get("reasoning_tokens")) or _count(usage.get("reasoning_tokens"))


def as_object(value: object) -> JsonObject:
    """Return a JSON object; anything else counts as an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _header_cost(said: str) -> float | None:
    # LiteLLM writes 0.0 and None where it doesn't know a price, and before a stream has ended.
    try:
        return _amount(float(said)) or None
    except ValueError:
        return None


def _count(value: object) -> int:
    return int(_amount(value) or 0)


def _amount(value: object, most: float = MOST) -> float | None:
    """Return a number of tokens or dollars, `None` where it can't be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= most else None
