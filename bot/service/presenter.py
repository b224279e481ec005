"""Keeps one run's card and thread in step with it.

The card shows the newest state: changes are coalesced, one edit is under way at a time, and the
last state is never lost. The thread gets each message once, in order, also when one process begins
and another ends. Where the platform says that card or thread is gone, that part gives up, and the
run goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from itertools import islice

import structlog

from bot.render.markdown import render
from bot.service.venue import Button, Card, File, Part, Unreachable, Venue, VenueError
from bot.transcript.html import to_html
from bot.transcript.markdown import to_markdown
from bot.view.card import answer, card, title
from bot.view.fold import fold
from bot.view.message import Line, Message, Title
from bot.view.state import RunView
from bot.view.thread import thread, unposted
from council.document.conversation import Conversation
from council.events import Event, MemberStarted, RunCompleted, RunFailed
from storage.errors import StorageError
from storage.journal import Delivery, Posts

log = structlog.get_logger()

THREAD_TITLE = 90
DONE = "The council has answered."
UNDONE = "The council could not answer; the card says why."


class Presenter:
    """Shows one run in its venue: `hear` its events, and `show` until it is over.

    `posts` remembers what the run has posted below its card.
    """

    def __init__(
        self, run_id: str, view: RunView, venue: Venue, posts: Posts, *, clock: Callable[[], float]
    ) -> None:
        self._view = view
        self._heard: list[tuple[Event, float]] = []
        self._run_id = run_id
        self._venue = venue
        self._posts = posts
        self._clock = clock
        self._changed = asyncio.Event()
        self._placed = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._posted: set[str] = set()
        self._refused: VenueError | None = None

    @property
    def posted(self) -> frozenset[str]:
        """The ids of the messages below the card that are known to be posted."""
        return self._posts.messages

    @property
    def view(self) -> RunView:
        """Give the run as far as it has been heard."""
        # Folded when it is looked at: a run that is replayed is heard in no time, and looked at once.
        for event, now in self._heard:
            self._view = fold(self._view, event, now)
        self._heard.clear()
        return self._view

    def hear(self, event: Event) -> None:
        """Take in an event; what it changes is shown in its own time."""
        self._heard.append((event, self._clock()))
        self._changed.set()
        if isinstance(event, MemberStarted | RunCompleted | RunFailed):
            self._caught_up.set()

    def show_view(self, view: RunView) -> None:
        """Show this state from now on."""
        self._view = view
        self._placed.set()
        self._changed.set()
        if view.position is not None:
            self._caught_up.set()

    async def placed(self) -> None:
        """Wait until the run has its turn, or its position in the queue."""
        await self._placed.wait()

    async def caught_up(self) -> None:
        """Wait until the run asks something new, stands in the queue or is over."""
        await self._caught_up.wait()

    def card(self) -> Card:
        """Give the card as it stands."""
        if not self.view.is_over:
            buttons = (Button("stop", self._run_id),)
        elif self.view.error is None:
            buttons = (Button("transcript", self._run_id), Button("again", self._run_id))
        else:
            buttons = (Button("retry", self._run_id), Button("again", self._run_id))
        return Card(card(self.view, self._clock()), buttons)

    async def show(self, opened: Callable[[str], object]) -> Delivery | None:
        """Keep card and thread in step until the run is over and all of it is shown.

        `opened` hears the id of the thread, when there is one. `None`: the platform can't be reached.
        """
        self._changed.set()
        try:
            fits = await self._follow(opened)
            await self._conclude(fits)
        except Unreachable as error:
            log.warning("not_shown", reason=error)
            return None
        except VenueError as error:
            log.info("card_given_up", reason=error)
            return "undeliverable"
        return "shown"

    async def _follow(self, opened: Callable[[str], object]) -> bool:
        """Edit and post as the run goes on; tells whether the card has room for the whole answer."""
        threading: asyncio.Task[None] | None = None
        try:
            while True:
                await self._changed.wait()
                await self._venue.turn()
                self._changed.clear()
                is_over = self.view.is_over
                if threading and threading.done():
                    await threading
                    threading = None
                if threading is None and self._unposted():
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

    async def _conclude(self, fits: bool) -> None:
        """Post what belongs below the thread's messages: the rest of the answer, and the mention."""
        whole: Message | None = None
        if not fits and self.view.final is not None:
            blocks = answer(self.view, self.view.final, self._clock())
            whole = Message("answer", (Title(title(self.view)), *blocks))
            if not self._refused:
                with self._taking_refusals():
                    await self._post(whole)
        if why := self._refused:
            with self._taking_refusals():
                await self._hand_over(whole, why)
        said = UNDONE if self.view.error else DONE
        await self._once("mention", said, lambda: self._venue.mention(said))

    async def _hand_over(self, whole: Message | None, why: VenueError) -> None:
        """Give the thread as a file, with the `whole` answer where the card has no room for it."""
        messages = [*thread(self.view), *([whole] if whole else [])]
        file = File("council-thread.md", "\n\n".join(map(render, messages)))
        also = " and the whole answer" if whole else ""
        note = f"The thread's messages{also} are in this file, because {why}."
        await self._once("file", note, lambda: self._venue.attach(note, file))
        if whole:  # the card says where the answer goes on
            await self._venue.turn()
            await self._venue.edit_card(self.card())

    def _unposted(self) -> list[Message]:
        if self._refused:
            return []
        return [*islice(unposted(self.view, self._posted), 1)]

    async def _post_thread(self, opened: Callable[[str], object]) -> None:
        """Post what is ready."""
        with self._taking_refusals():
            if not self._posted and self._unposted():
                thread_id, why = await self._venue.open_thread(title(self.view)[:THREAD_TITLE])
                if thread_id:
                    opened(thread_id)
                if why:
                    await self._post(Message("why", (Line(f"No thread here: {why}."),)))
            while ready := self._unposted():
                await self._post(ready[0])

    @contextmanager
    def _taking_refusals(self) -> Generator[None]:
        """Note that the thread can't be written to: in the end it becomes a file."""
        try:
            yield
        except Unreachable:
            raise
        except VenueError as error:
            log.info("thread_given_up", reason=error)
            self._refused = error

    async def _post(self, message: Message) -> None:
        for number, part in enumerate(await self._venue.parts(message)):
            key = f"{message.key}.{number}"

            def post(key: str = key, part: Part = part) -> Awaitable[str]:
                return self._venue.post(part, key)

            await self._once(key, part.content, post)
        self._posted.add(message.key)

    async def _once(self, key: str, content: str, post: Callable[[], Awaitable[str]]) -> None:
        if self._posts.has(key, content):
            return
        message = await post()
        try:
            await self._posts.record(key, content, message)
        except StorageError:  # it is posted; only a restart at this moment could post it again
            log.exception("post_not_recorded", key=key)


def files_of(conversation: Conversation) -> tuple[File, ...]:
    """Give a conversation's transcript, as a page and as Markdown; not for an event loop."""
    name = f"council-{conversation.id[:8]}"
    return File(f"{name}.html", to_html(conversation)), File(f"{name}.md", to_markdown(conversation))
