"""Tokens and money, measured if the provider reports them, otherwise estimated."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

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


class Usage(BaseModel, frozen=True):
    """What one call, one stage or one run used.

    `cost` is in US dollars, the sum over the calls whose price is known; `unpriced` counts the
    others, so that a partial sum is never mistaken for the whole. `cached_tokens` are those of the
    prompts that providers read from their caches, as far as they say so; `None` if none does.
    `unsure` is the part of `cost` that calls may not be billed that were cut off; `None` if none was.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    source: Literal["measured", "estimated"] = "measured"
    cached_tokens: int | None = None
    unsure: float | None = None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def total(parts: Iterable[Usage]) -> Usage:
    """Add up; one estimated part makes the sum an estimate."""
    every = tuple(parts)
    cached = [part.cached_tokens for part in every if part.cached_tokens is not None]
    unsure = [part.unsure for part in every if part.unsure is not None]
    return Usage(
        prompt_tokens=sum(part.prompt_tokens for part in every),
        completion_tokens=sum(part.completion_tokens for part in every),
        cost=sum(part.cost for part in every),
        unpriced=sum(part.unpriced for part in every),
        source="estimated" if any(part.source == "estimated" for part in every) else "measured",
        cached_tokens=sum(cached) if cached else None,
        unsure=sum(unsure) if unsure else None,
    )


def estimate_tokens(text: str) -> int:
    """Four characters a token, rounded up: the rule of thumb of the refinement contract."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def tokens(text: str) -> int:
    """Return about how many tokens a text may have before it is sent: also one in another script."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)
