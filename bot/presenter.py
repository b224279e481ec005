"""Keeps one run's card and thread in step with it.

The card shows the newest state: changes are coalesced, one edit is under way at a time, and the
last state is never lost. The thread gets each message once, in order. Where the platform says
that card or thread is gone, that part gives up, and the run goes on.
"""

import asyncio
from collections.abc import Callable
from itertools import islice

import structlog

from bot.card import answer, card, title
from bot.markdown import render
from bot.message import Line, Message, Title
from bot.thread import thread, unposted
from bot.transcript import to_markdown
from bot.venue import Button, Card, Venue, VenueError
from bot.view import RunView, fold
from council.conversation import Conversation
from council.events import Event

log = structlog.get_logger()

THREAD_TITLE = 90
DONE = "The council has answered."
UNDONE = "The council could not answer; the card says why."


class Presenter:
    """Shows one run in its venue: `hear` its events, and `show` until it is over."""

    def __init__(self, run_id: str, view: RunView, venue: Venue, *, clock: Callable[[], float]) -> None:
        self.view = view
        self._run_id = run_id
        self._venue = venue
        self._clock = clock
        self._changed = asyncio.Event()
        self._posted: set[str] = set()
        self._refused: VenueError | None = None

    def hear(self, event: Event) -> None:
        """Take in an event; what it changes is shown in its own time."""
        self.show_view(fold(self.view, event, self._clock()))

    def show_view(self, view: RunView) -> None:
        """Show this state from now on."""
        self.view = view
        self._changed.set()

    def card(self) -> Card:
        """Give the card as it stands."""
        if not self.view.is_over:
            buttons = (Button("stop", self._run_id),)
        elif self.view.error is None:
            buttons = (Button("transcript", self._run_id), Button("again", self._run_id))
        else:
            buttons = (Button("again", self._run_id),)
        return Card(card(self.view, self._clock()), buttons)

    async def show(self, opened: Callable[[str], object]) -> None:
        """Keep card and thread in step until the run is over and all of it is shown.

        `opened` hears the id of the thread, when there is one.
        """
        try:
            fits = await self._follow(opened)
        except VenueError as error:
            log.info("card_given_up", reason=str(error))
            return
        try:
            if self._refused:
                text = "\n\n".join(map(render, thread(self.view)))
                note = f"The thread's messages are in this file: {self._refused}."
                await self._venue.attach("council-thread.md", text, note)
            elif not fits and self.view.final is not None:
                blocks = answer(self.view, self.view.final, self._clock())
                await self._venue.post(Message("answer", (Title(title(self.view)), *blocks)))
            await self._venue.mention(UNDONE if self.view.error else DONE)
        except VenueError as error:
            log.info("mention_given_up", reason=str(error))

    async def _follow(self, opened: Callable[[str], object]) -> bool:
        """Edit and post as the run goes on; tells whether the card has room for the whole answer."""
        threading: asyncio.Task[None] | None = None
        try:
            while True:
                await self._changed.wait()
                await self._venue.turn()
                self._changed.clear()
                is_over = self.view.is_over
                if (threading is None or threading.done()) and self._unposted():
                    threading = asyncio.create_task(self._post_thread(opened))
                fits = await self._venue.edit_card(self.card())
                if is_over:
                    # The answer doesn't wait for the thread, however slowly that may be posted.
                    if threading:
                        await threading
                    await self._post_thread(opened)
                    return fits
        finally:
            if threading and not threading.done():
                threading.cancel()

    def _unposted(self) -> list[Message]:
        if self._refused:
            return []
        return [*islice(unposted(self.view, self._posted), 1)]

    async def _post_thread(self, opened: Callable[[str], object]) -> None:
        """Post what is ready; a thread that can't be written to becomes a file in the end."""
        try:
            if not self._posted and self._unposted():
                thread_id, why = await self._venue.open_thread(title(self.view)[:THREAD_TITLE])
                if thread_id:
                    opened(thread_id)
                if why:
                    await self._venue.post(Message("why", (Line(f"No thread here: {why}."),)))
            while ready := self._unposted():
                await self._venue.post(ready[0])
                self._posted.add(ready[0].key)
        except VenueError as error:
            log.info("thread_given_up", reason=str(error))
            self._refused = error


def file_of(conversation: Conversation) -> tuple[str, str]:
    """Give a conversation's transcript: a file name and its Markdown."""
    return f"council-{conversation.id[:8]}.md", to_markdown(conversation)
