"""When a failed call is made again: if that is worth it, how often, and how long to wait before it.

Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
`Retry-After`: RFC 9110, section 10.2.3; `retry-after-ms` is OpenAI's finer form of it.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from council.errors import Cause, Failure, ModelError
from council.models.refusals import RefusedCall, shorten

PASSING: frozenset[Cause] = frozenset(
    {
        "rate_limited",
        "unavailable",
        "no_server",
        "connection",
        "lost",
        "silence",
        "truncated",
        "malformed",
    }
)
"""Causes that may be gone a moment later; every other one would fail the same way again."""
LONGEST_WAIT = 300.0
"""Seconds: a provider that asks for a longer wait isn't asked again."""

Sleep = Callable[[float], Awaitable[None]]


def worth_retrying(error: ModelError) -> bool:
    """Whether the same call could succeed a moment later.

    An empty reply could, too; of those, one is enough.
    """
    if isinstance(error, RefusedCall):
        is_soon = error.retry_after is None or error.retry_after <= LONGEST_WAIT
        return error.failure.cause in PASSING and error.retryable and is_soon
    return error.failure.cause in PASSING | {"empty"}


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waits with full jitter, in seconds.

    The growth is steep, so that even with full jitter a second wait is rarely the shorter one.
    """

    first: float = 0.5
    growth: float = 4.0
    longest: float = 20.0

    def wait(self, attempt: int, retry_after: float | None, chance: random.Random) -> float:
        """Return the seconds to wait after an attempt; `attempt` counts from 1.

        A provider's `Retry-After` is the least; the jitter on top keeps a council's calls, all
        refused together, from coming back together.
        """
        if retry_after is not None:
            return retry_after + chance.uniform(0, self.first)
        return chance.uniform(0, min(self.longest, self.first * self.growth ** (attempt - 1)))


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a provider asks to wait: `retry-after-ms`, or `Retry-After` in either form."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is made again while that can help: it is made at most `max_attempts` times."""

    max_attempts: int = 4
    backoff: Backoff = field(default_factory=Backoff)
    chance: random.Random = field(default_factory=random.Random)
    sleep: Sleep = asyncio.sleep

    def wait(self, error: ModelError, earlier: Sequence[Failure], left: float) -> float | None:
        """Return the seconds to wait before a failed call is made again, `None` where it isn't.

        No wait is begun that would outlast the `left` seconds, and a second empty reply is the answer.
        """
        cause, attempt = error.failure.cause, len(earlier) + 1
        is_enough = cause == "empty" and any(each.cause == cause for each in earlier)
        if attempt >= self.max_attempts or is_enough or not worth_retrying(error):
            return None
        asked_for = error.retry_after if isinstance(error, RefusedCall) else None
        seconds = self.backoff.wait(attempt, asked_for, self.chance)
        return seconds if seconds < left else None


def last_word(failure: Failure, earlier: Sequence[Failure]) -> Failure:
    """Return a call's last failure, with the number of its attempts."""
    detail = failure.detail
    if failure.cause == "deadline" and earlier and earlier[-1].status:
        detail = shorten(f"{detail}; before that: {earlier[-1].detail}")
    attempts = len(earlier) + failure.attempts  # none, if nothing was sent
    return failure.model_copy(update={"attempts": attempts, "detail": detail})
