"""Tokens and money, measured if the provider reports them, otherwise estimated."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

CHARACTERS_PER_TOKEN = 4
BYTES_PER_TOKEN = 4
"""Of UTF-8: a token is about four letters of English, two of Russian, one of Chinese."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for one token of the prompt, one of the reply, and for the call itself.

    `cached` is the price of a prompt's token that the provider has read before, `None` where that costs
    the same or nobody says.
    """

    prompt: float
    completion: float
    request: float = 0.0
    cached: float | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost of one call, of whose prompt so many tokens came from the provider's cache."""
        cached = 0 if self.cached is None else min(cached_tokens, prompt_tokens)
        read = self.prompt * (prompt_tokens - cached) + (self.cached or 0.0) * cached
        return self.request + read + self.completion * completion_tokens


class Usage(BaseModel):
    """What one call, one stage or one run used.

    `cost` is in US dollars, the sum over the calls whose price is known; `unpriced` counts the
    others, so that a partial sum is never mistaken for the whole. `cached_tokens` are those of the
    prompts that providers read from their caches, as far as they say so; `None` if none does.
    """

    model_config = ConfigDict(frozen=True)

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    source: Literal["measured", "estimated"] = "measured"
    cached_tokens: int | None = None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def total(parts: Iterable[Usage]) -> Usage:
    """Add up; one estimated part makes the sum an estimate."""
    prompt = completion = unpriced = 0
    cost = 0.0
    cached: int | None = None
    source: Literal["measured", "estimated"] = "measured"
    for part in parts:
        prompt += part.prompt_tokens
        completion += part.completion_tokens
        cost += part.cost
        unpriced += part.unpriced
        if part.cached_tokens is not None:
            cached = (cached or 0) + part.cached_tokens
        if part.source == "estimated":
            source = "estimated"
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=cost,
        unpriced=unpriced,
        source=source,
        cached_tokens=cached,
    )


def estimate_tokens(text: str) -> int:
    """Four characters a token, rounded up: the rule of thumb of the refinement contract."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def tokens(text: str) -> int:
    """Return about how many tokens a text may have before it is sent: also one in another script."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)
