"""What processes that share a database agree on: whose turn it is, what was seen, what may be sent.

Each entry is a run that waits or is carried out. It is accepted with its question, waits once its card
is shown, is admitted when the bounds allow it, and is claimed by the worker that carries it out.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["accepted", "waiting", "admitted", "claimed", "halted"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A run in the queue; `channel` and `user` are names that nobody else has."""

    run: str
    channel: str
    user: str
    conversation: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many runs there may be at once, and how many questions may wait for their turn.

    `cooldown` is the least time in seconds between two questions of one person.
    """

    runs_per_channel: int
    runs_per_user: int
    waiting_per_channel: int
    waiting_per_user: int
    cooldown: float


@dataclass(frozen=True, slots=True)
class Watched:
    """What may have changed about a run elsewhere; `state` is `None` where it has no entry."""

    epoch: int
    stops: int
    state: State | None


class Coordination(Protocol):
    """The shared queue, clicks and rate limits. Every method may raise `DatabaseError`."""

    async def ready(self, run: str) -> bool:
        """Queue an accepted run; return whether it was accepted and no more."""
        ...

    async def enter(self, entry: Entry) -> bool:
        """Queue a recorded run, whatever the bounds are; return whether it had no entry before.

        A run that is forgotten gets none, and the answer is false.
        """
        ...

    async def let_in(self, runs_per_channel: int, runs_per_user: int) -> list[str]:
        """Admit every waiting run that may start, by arrival; return those that this call admitted.

        Of a conversation, one starts at a time. If the caller ends before it passes them on, they are
        found by `started`.
        """
        ...

    async def hurry(self, run: str) -> bool:
        """Admit a run that hasn't been admitted, whatever the bounds say; return whether it did."""
        ...

    async def leave(self, run: str, worker: str) -> None:
        """Delete a run's entry, unless another worker has claimed it."""
        ...

    async def halt(self, runs: Collection[str]) -> None:
        """Mark runs as halted: they still count as started, whoever claims them."""
        ...

    async def present(self, runs: Collection[str]) -> set[str]:
        """Return which of these runs have an entry."""
        ...

    async def watch(self, runs: Collection[str]) -> dict[str, Watched]:
        """Return what may have changed about these runs; those that are forgotten are missing."""
        ...

    async def positions(self, runs: Collection[str]) -> dict[str, int]:
        """Return the places of these runs among all that nobody has claimed yet; 1 is the next."""
        ...

    async def due(self, since: str) -> list[str]:
        """Return the platforms' unfinished runs that nobody has made ready, the oldest first.

        They have no entry, or have been accepted for more than 30 seconds. Those that are over
        are left out where they were accepted or retried before `since`.
        """
        ...

    async def started(self, seconds: float = 30.0) -> list[str]:
        """Return the runs that were admitted, claimed or halted so many seconds ago, by arrival.

        Each should have a job: whoever admitted it may have ended before there was one.
        """
        ...

    async def first(self, key: str) -> bool:
        """Return whether nobody has called this with the key within a day."""
        ...

    async def take(self, lane: str, interval: float, burst: int, urgency: int, process: str) -> float:
        """Count one request against a lane's rate limit, or return the seconds to wait.

        One request every `interval` seconds, `burst` at once at first, by the server's clock. A process
        that waits keeps less urgent requests (larger numbers) of other processes waiting, until it has
        its turn or hasn't asked again for a second longer than it was told to wait.
        """
        ...

    async def block(self, lane: str, seconds: float) -> None:
        """Block a lane for some time."""
        ...

    async def tidy(self) -> None:
        """Delete what has expired: idle lanes, and keys older than a day. To be called now and then."""
        ...
