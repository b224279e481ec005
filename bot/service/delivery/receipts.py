"""What may have been posted although its response was lost: nothing is posted more than twice.

A platform that recognises a repeated post, as Discord does by its nonce, needs none of this.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.errors import Unreachable, VenueError
from storage.journal.rows import NOT_MENTIONED, MentionState

MOST_POSTS = 2
"""How often the same may be posted: once more after a response that was lost."""

Sent = Callable[[str], Awaitable[None]]
"""Keeps the id of a message as part of sending it: a message that is there is on record."""


def may_be_done(error: VenueError) -> bool:
    """Return whether a request that failed like this may have been carried out."""
    return isinstance(error, Unreachable) and error.may_be_done


@dataclass(slots=True)
class Ledger:
    """What is known of one run's posts and of its mention; `note` keeps it whenever it changes."""

    telling: MentionState
    note: Callable[[MentionState], Awaitable[None]]

    async def record(self, **changed: object) -> None:
        """Keep what is known by now; `changed` are fields of a `MentionState`."""
        self.telling = self.telling.model_copy(update=changed)
        await self.note(self.telling)

    def is_spent(self, key: str) -> bool:
        """Return whether this is posted, or may be there so often that it isn't posted again."""
        return self.times(key) >= MOST_POSTS

    def times(self, key: str) -> int:
        """Return how often this may have been posted without a response."""
        return self.telling.posts.get(key, 0)

    async def count(self, key: str, times: int) -> None:
        """Keep how often this may have been posted."""
        others = {name: count for name, count in self.telling.posts.items() if name != key}
        await self.record(posts={**others, key: times} if times else others)

    async def settle(self, key: str) -> None:
        """Keep that this isn't posted again."""
        await self.count(key, MOST_POSTS)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of one post: how often it may be there and, as soon as that is known, its id.

    `key` names it within its run. Without `keep`, only that it is there is remembered.
    """

    key: str
    ledger: Ledger
    keep: Sent | None = None

    async def __call__(self, message: str) -> None:
        """Keep a message's id, empty if nobody knows it; after that, it isn't posted again."""
        await (self.keep(message) if self.keep else self.ledger.settle(self.key))

    @property
    def times(self) -> int:
        """How often it may be there."""
        return self.ledger.times(self.key)

    @property
    def is_spent(self) -> bool:
        """Whether it isn't posted again."""
        return self.ledger.is_spent(self.key)

    @asynccontextmanager
    async def begun(self) -> AsyncGenerator[None]:
        """Count a post before it is sent, for a process that dies; undo that if it surely failed."""
        before = self.times
        await self.ledger.count(self.key, before + 1)
        try:
            yield
        except VenueError as error:
            if not may_be_done(error):
                await self.ledger.count(self.key, before)
            raise


def unrecorded(key: str, sent: Sent | None = None) -> Receipt:
    """Return the receipt of what answers a click: nobody but this process posts it.

    `sent` keeps the id of what a whole channel sees.
    """

    async def nowhere(_: MentionState) -> None:
        """Keep nothing."""

    return Receipt(key, Ledger(NOT_MENTIONED, nowhere), sent)
