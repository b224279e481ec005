"""What a process bounds: runs at once, questions that wait, and the times that runs are given."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveInt

from bot.service.commands import UsageError
from bot.view.words import count
from council.document.conversation import Source

OF_ONE_PERSON = (
    "You already have {} waiting, which is the limit, so this one wasn't asked. Ask again when one of "
    "them has started, or stop one that you no longer need."
)
OF_ONE_CHANNEL = (
    "This channel already has {} waiting, which is the limit, so yours wasn't asked. Try again in a few "
    "minutes."
)


class Limits(BaseModel):
    """How many runs there may be at once, and how many questions may wait for their turn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: PositiveInt = 32
    runs_per_channel: PositiveInt = 4
    runs_per_user: PositiveInt = 2
    waiting_per_channel: PositiveInt = 100
    waiting_per_user: PositiveInt = 10


class Durability(BaseModel):
    """The times that runs are given, in seconds.

    An interrupted run resumes at the next start unless it is older than `resume_within`. A process
    that ends gives its runs `drain_seconds`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    resume_within: NonNegativeFloat = 3600.0
    drain_seconds: NonNegativeFloat = 25.0


class TooManyWaiting(UsageError):
    """A question is over a limit; the message says the number and what to do."""


def user_of(source: Source) -> str:
    """Name whoever asked, apart from people with the same id elsewhere."""
    return f"{source.platform}/{source.workspace}/{source.user}"


def channel_of(source: Source) -> str:
    """Name the channel of a question, apart from channels with the same id elsewhere."""
    return f"{source.platform}/{source.workspace}/{source.channel}"


class Backlog:
    """Counts the questions that are accepted and have no turn yet, each by its entry key.

    Nothing here awaits, so no number of questions at once gets past a limit.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sources: dict[str, Source] = {}
        self._users: Counter[str] = Counter()
        self._channels: Counter[str] = Counter()

    @contextmanager
    def admitted(self, key: str, source: Source) -> Generator[bool]:
        """Count a question while it is written down, and from then on unless that fails.

        Yields whether it is new, that is not counted already. Raises `TooManyWaiting`.
        """
        is_new = key not in self._sources
        if is_new:
            self._check(source)
            self.count(key, source)
        try:
            yield is_new
        except BaseException:
            if is_new:
                self.release(key)
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
            raise TooManyWaiting(OF_ONE_PERSON.format(count(self._limits.waiting_per_user, "question")))
        if self._channels[channel_of(source)] >= self._limits.waiting_per_channel:
            raise TooManyWaiting(
                OF_ONE_CHANNEL.format(count(self._limits.waiting_per_channel, "question"))
            )
