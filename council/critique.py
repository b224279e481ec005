"""Handing peer critiques over: whole, and shortened only where a prompt has no room for them."""

import re
from collections.abc import Sequence

from council.usage import CHARACTERS_PER_TOKEN

SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s)|[\u3002\uff01\uff1f]|\n")


def shorten(texts: Sequence[str], max_tokens: int) -> list[str]:
    """Fit texts into `max_tokens` together, cutting the longest first.

    Every cut lies at a sentence end where there is one and leaves a visible marker. Texts that
    fit are returned as they are.
    """
    room = max_tokens * CHARACTERS_PER_TOKEN
    if sum(map(len, texts)) <= room:
        return [*texts]
    limit = _common_limit(sorted(map(len, texts)), room)
    return [text if len(text) <= limit else _cut(text, limit) for text in texts]


def _common_limit(lengths: Sequence[int], room: int) -> int:
    """Find the length above which texts are cut, so that all together fit; shortest first."""
    for count, length in zip(range(len(lengths), 0, -1), lengths, strict=True):
        if length * count > room:
            return room // count
        room -= length
    return room


def _cut(text: str, limit: int) -> str:
    ends = [match.end() for match in SENTENCE_END.finditer(text, 0, limit + 1) if match.end() <= limit]
    kept = text[: ends[-1] if ends else limit].rstrip()
    return f"{kept}\n[shortened: {len(kept):,} of {len(text):,} characters]"
