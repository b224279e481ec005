"""A process's limits: runs at once, waiting questions, and the times for runs."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt

from bot.errors import OverLimit
from bot.view.wording import commands
from council.document.conversation import Source
from storage.errors import QueueFull
from storage.journal.rows import RunRow
from storage.processes.coordination import Bounds, QueueEntry


class Limits(BaseModel):
    """How many runs there may be at once, and how many questions may wait for their turn."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    runs: PositiveInt = 32
    """runs at once"""
    runs_per_channel: PositiveInt = 4
    """of them, in one channel"""
    runs_per_user: PositiveInt = 2
    """of them, of one person"""
    waiting_per_channel: PositiveInt = 100
    """questions that may wait in one channel; one more is refused"""
    waiting_per_user: PositiveInt = 10
    """questions of one person that may wait"""
    cooldown: NonNegativeFloat = 0.0
    """least seconds between two questions of one person"""


class Durability(BaseModel):
    """Time limits of runs, in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    resume_within: NonNegativeFloat = 3600.0
    """seconds for which an interrupted run continues at the next start"""
    drain_seconds: NonNegativeFloat = 25.0
    """seconds that runs get to end when the process is stopped"""
    stalled_seconds: float = Field(default=90.0, ge=1)
    """seconds of silence after which other processes take over its runs"""


def entry_of(run: RunRow) -> QueueEntry:
    """Return what a run counts against in the queue that several processes share."""
    where = run.origin
    return QueueEntry(
        run=run.id,
        channel=channel_of(where),
        user=user_of(where),
        conversation=run.conversation_id,
    )


def over_limit(error: QueueFull, limits: Bounds) -> OverLimit:
    """Return what an asker is told whose question finds no room in that queue."""
    if error.bound == "user":
        return OverLimit(commands.too_many_of_person(limits.waiting_per_user))
    if error.bound == "channel":
        return OverLimit(commands.too_many_of_channel(limits.waiting_per_channel))
    return OverLimit(commands.too_soon(error.left))


def user_of(source: Source) -> str:
    """Name whoever asked, distinct from people with the same id elsewhere; a program by its token."""
    if source.program is not None:
        return f"program/{source.program}"
    return f"{source.platform}/{source.workspace}/{source.user}"


def channel_of(source: Source) -> str:
    """Name the channel of a question, distinct from channels with the same id elsewhere."""
    return f"{source.platform}/{source.workspace}/{source.channel}"


class Backlog:
    """Counts the questions that are accepted and have no turn yet, each by its entry key.

    Nothing here awaits, so no number of questions at once gets past a limit. When each person last
    asked is remembered while the process runs.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._asked: OrderedDict[str, float] = OrderedDict()  # whoever must wait, by time
        self._sources: dict[str, Source] = {}
        self._users: Counter[str] = Counter()
        self._channels: Counter[str] = Counter()

    @contextmanager
    def admitted(self, key: str, source: Source) -> Generator[bool]:
        """Count a question while it is recorded, and from then on unless that fails.

        Yields whether it is new, not counted already. Raises `OverLimit`.
        """
        is_new = key not in self._sources
        if is_new:
            self._check(source)
            self.count(key, source)
            self._asked[user_of(source)] = self._clock()
        try:
            yield is_new
        except BaseException:
            if is_new:
                self.release(key)
                self._asked.pop(user_of(source), None)
            raise

    def count(self, key: str, source: Source) -> None:
        """Count a question that is accepted already, whatever the limits say."""
        if key not in self._sources:
            self._sources[key] = source
            self._users[user_of(source)] += 1
            self._channels[channel_of(source)] += 1

    def release(self, key: str) -> None:
        """Stop counting a question: it has its turn, or will never need one."""
        if source := self._sources.pop(key, None):
            for counts, name in ((self._users, user_of(source)), (self._channels, channel_of(source))):
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]

    def _check(self, source: Source) -> None:
        if self._users[user_of(source)] >= self._limits.waiting_per_user:
            raise OverLimit(commands.too_many_of_person(self._limits.waiting_per_user))
        if self._channels[channel_of(source)] >= self._limits.waiting_per_channel:
            raise OverLimit(commands.too_many_of_channel(self._limits.waiting_per_channel))
        while self._asked and self._left(next(iter(self._asked))) <= 0:
            self._asked.popitem(last=False)
        if user_of(source) in self._asked:
            raise OverLimit(commands.too_soon(self._left(user_of(source))))

    def _left(self, user: str) -> float:
        """Return the seconds until somebody who has asked may ask again."""
        return self._asked[user] + self._limits.cooldown - self._clock()
