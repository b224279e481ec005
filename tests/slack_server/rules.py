"""What Slack enforces, as numbers and switches a test may change."""

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Clock = Callable[[], float]

TIERS = {1: 1, 2: 20, 3: 50, 4: 100}
"""Calls a minute by tier, per method and workspace (docs.slack.dev/apis/web-api/rate-limits)."""


class Refused(Exception):
    """A refusal by Slack: `error` is Slack's own word, `extra` the rest of its reply."""

    def __init__(self, error: str, **extra: Any) -> None:
        super().__init__(error)
        self.error = error
        self.extra = extra


class HandClock:
    """A clock that only a test moves; it starts at the real time, so that signatures are valid."""

    def __init__(self, start: float | None = None) -> None:
        self.time = time.time() if start is None else start

    def __call__(self) -> float:
        """Return the time, in seconds since the epoch."""
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


@dataclass(slots=True)
class Rules:
    """Limits whose exact form is uncertain; the defaults are the stricter reading, except for code."""

    measure: Callable[[str], int] = len
    """How characters are counted."""
    markdown_total: int = 12_000
    """Characters of all `markdown` blocks of a message together, as documented."""
    message_total: int = 13_200
    """Characters of all blocks of a message, as measured (slackapi/bolt-js#2509)."""
    tables_in_markdown: bool = True
    """Whether a table inside a `markdown` block is the message's one table."""
    pings_from_markdown_code: bool = False
    """Whether `<@U…>` inside code of a `markdown` block pings; code in rich text knows no mentions."""
    response_url_uses: int = 5
    response_url_seconds: float = 30 * 60


@dataclass(slots=True)
class Patience:
    """How long Slack waits, in real seconds."""

    ack_seconds: float = 3.0
    retry_delays: tuple[float, ...] = (0.0, 60.0, 300.0)
    """Pauses before an unacknowledged event is sent again; slash commands and clicks never are."""


@dataclass(slots=True)
class Call:
    """One request to the Web API, as logged, without its token.

    A `status` of 499 means that the answer was withheld or lost.
    """

    method: str
    arguments: Json
    team: str | None
    at: float
    status: int = 200
    error: str | None = None
    retry_after: int | None = None


@dataclass(slots=True)
class Rates:
    """Sliding minutes per method and workspace, and optionally one post a second per channel."""

    clock: Clock
    enforced: bool = True
    per_minute: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """Overrides of a method's tier; None lifts its limit."""
    channel_post_seconds: float | None = None
    """Time between two `chat.postMessage` in a channel; None (the default) allows bursts."""
    channel_post_burst: int = 1
    """How many posts a channel takes at once; «short bursts» are allowed, and not measured."""
    _calls: dict[tuple[str, str], deque[float]] = field(
        default_factory=lambda: defaultdict[tuple[str, str], deque[float]](deque)
    )
    _posts: dict[str, float] = field(default_factory=dict[str, float])

    def wait(self, team: str, method: str, tier: int | None) -> int | None:
        """Return the seconds to wait before this call is allowed, or count it and return None."""
        limit = self.per_minute.get(method, TIERS.get(tier or 0))
        if not self.enforced or limit is None:
            return None
        now, calls = self.clock(), self._calls[team, method]
        while calls and calls[0] <= now - 60:
            calls.popleft()
        if len(calls) >= limit:
            return max(1, math.ceil(calls[0] + 60 - now))
        calls.append(now)
        return None

    def wait_to_post(self, channel: str) -> int | None:
        """Return the seconds to wait before this channel takes another post, or count it and return None."""
        if self.channel_post_seconds is None:
            return None
        now, seconds = self.clock(), self.channel_post_seconds
        due = max(now, self._posts.get(channel, now))
        early = due - now - (self.channel_post_burst - 1) * seconds
        if early > 0:
            return max(1, math.ceil(early))
        self._posts[channel] = due + seconds
        return None


def busiest_minute(times: list[float]) -> int:
    """Return the most of `times` within any sixty seconds."""
    window: deque[float] = deque()
    most = 0
    for at in sorted(times):
        window.append(at)
        while window[0] <= at - 60:
            window.popleft()
        most = max(most, len(window))
    return most


class Changes:
    """Wakes those who wait for something to happen."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[asyncio.Future[None]] = []

    def happened(self) -> None:
        """Wake everyone who waits."""
        self.count += 1
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def next(self) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future
