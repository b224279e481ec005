"""When a failed call is worth another attempt, and how long to wait before it.

Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
`Retry-After`: RFC 9110, section 10.2.3; `retry-after-ms` is OpenAI's finer form of it.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from council.errors import Cause, Failure, ModelError

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


class Refused(ModelError):
    """The provider refused; `retry_after` is the seconds it asked to wait."""

    def __init__(self, failure: Failure, retry_after: float | None) -> None:
        super().__init__(failure)
        self.retry_after = retry_after


def worth_retrying(error: BaseException) -> bool:
    """Whether the same call could succeed a moment later."""
    return isinstance(error, ModelError) and error.failure.cause in PASSING


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
