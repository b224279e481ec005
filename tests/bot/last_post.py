"""The end of a process between a post and its record, or right after it: nothing is recorded from there on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from bot.service.dispatcher import Dispatcher
from storage.journal.journal import Journal
from storage.journal.progress import Posts
from storage.journal.rows import RunRow


@dataclass
class LastPost:
    """The `number`th post of a run is its last one; it may be `recorded` or not."""

    number: int
    recorded: bool
    died: asyncio.Event = field(default_factory=asyncio.Event)
    lost: list[str] = field(default_factory=list[str])
    """The posts that weren't recorded."""

    async def reached_or_settled(self, dispatcher: Dispatcher) -> bool:
        """Wait until it is posted; return `False` where all is over before."""
        settled = asyncio.create_task(dispatcher.tasks.settled())
        died = asyncio.create_task(self.died.wait())
        await asyncio.wait({settled, died}, return_when=asyncio.FIRST_COMPLETED)
        for each in (settled, died):
            each.cancel()
        return self.died.is_set()


@dataclass
class _Witnessed:
    """What a run has posted, up to the last post."""

    posts: Posts
    last: LastPost
    count: int = 0

    @property
    def messages(self) -> frozenset[str]:
        return self.posts.messages

    def has(self, key: str, text: str) -> bool:
        return self.posts.has(key, text)

    async def record(self, key: str, text: str, message: str) -> None:
        self.count += 1
        if self.count < self.last.number or (self.count == self.last.number and self.last.recorded):
            await self.posts.record(key, text, message)
        else:
            self.last.lost.append(key)
        if self.count >= self.last.number:
            self.last.died.set()
            raise asyncio.CancelledError  # whoever waits for it ends with it


@asynccontextmanager
async def dying_at(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, last: LastPost
) -> AsyncGenerator[LastPost]:
    """Let a run that is begun here record nothing after its last post."""
    posts = journal.posts

    async def witnessed(run: RunRow, *, is_new: bool = False) -> Posts:
        return cast("Posts", _Witnessed(await posts(run, is_new=is_new), last))

    with monkeypatch.context() as patched:
        patched.setattr(journal, "posts", witnessed)
        yield last
