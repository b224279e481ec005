"""Long texts: how fast a correction is compared, and how long long reviews block a run's loop."""

import random
import time
from collections.abc import Mapping

from bench.load import PROFILE, QUESTION, silent
from bench.past_answers import lag_of_the_loop
from bot.serve import tune_interpreter
from bot.service.accept import utc_now
from council.brief import Brief
from council.calls import Call, MemorySteps, Reply
from council.document.changes import CHARACTERS_LIMIT, detect_significant_changes
from council.run import deliberate
from council.usage import Usage

WORDS = 12_500  # of eight characters each: 100 kB
VOCABULARY = [f"term{number:03}" for number in range(4_000)]
FREQUENCIES = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]
CHARACTERS = [chr(0x4E00 + number) for number in range(len(VOCABULARY))]
TRIES = 9
REVIEW_CHARACTERS = 30_000


def comparisons() -> Mapping[str, float]:
    """Return the CPU seconds of comparing a pair of texts, the best of some tries, by kind of pair."""
    before, rare = drawn(WORDS, 1), random.Random(1).choices(VOCABULARY, k=WORDS)  # noqa: S311 - a benchmark
    chinese = drawn(CHARACTERS_LIMIT, 1, CHARACTERS)
    pairs = {
        "100 kB edited in one place": (" ", before, [*before[:6_000], *drawn(500, 2), *before[6_500:]]),
        "100 kB in another order": (" ", before, shuffled(before)),
        "100 kB rewritten": (" ", before, drawn(WORDS, 4)),
        "100 kB with its halves swapped": (" ", before, swapped(before)),
        "100 kB in another order, no word frequent": (" ", rare, shuffled(rare)),
        "100 kB with its halves swapped, no word frequent": (" ", rare, swapped(rare)),
        "30 kB of Chinese in another order": ("", chinese, shuffled(chinese)),
    }
    return {
        kind: min(seconds(gap.join(one), gap.join(other)) for _ in range(TRIES))
        for kind, (gap, one, other) in pairs.items()
    }


def seconds(before: str, after: str) -> float:
    """Time one comparison, in seconds of CPU."""
    began = time.process_time()
    detect_significant_changes(before, after)
    return time.process_time() - began


async def lag_over_long_reviews() -> float:
    """Return the longest that the loop was late while points were read out of four reviews of 30 kB."""
    profile = PROFILE.model_copy(update={"critique_mode": "extracted"})
    lags: list[float] = []
    tune_interpreter()  # as the bot does
    async with lag_of_the_loop(lags):
        await deliberate(
            Brief(question=QUESTION, profile=profile, seed=7, boundary="b0undary"),
            ask=critical,
            steps=MemorySteps(),
            emit=silent,
            now=utc_now,
        )
    return max(lags)


async def critical(call: Call) -> Reply:
    """Review at length, point after point; answer and correct at length, too."""
    lines: list[str] = []
    draw = random.Random(call.step)  # noqa: S311 - a benchmark
    while sum(map(len, lines)) < REVIEW_CHARACTERS:
        label = f"Response {draw.choice('ABCD')}"
        lines.append(f"{label} lacks {' '.join(draw.choices(VOCABULARY, k=12))}, but is clear.")
    return Reply(text="\n".join(lines), usage=Usage(), latency_ms=0)


def drawn(words: int, seed: int, vocabulary: list[str] = VOCABULARY) -> list[str]:
    """Draw this many words, as unevenly as languages do: the second is half as frequent as the first."""
    return random.Random(seed).choices(vocabulary, FREQUENCIES, k=words)  # noqa: S311 - a benchmark


def shuffled(words: list[str]) -> list[str]:
    """Put words into another order."""
    return random.Random(3).sample(words, len(words))  # noqa: S311 - a benchmark


def swapped(words: list[str]) -> list[str]:
    """Put the second half first, as alike as a text can be and still be half another."""
    return words[len(words) // 2 :] + words[: len(words) // 2]
