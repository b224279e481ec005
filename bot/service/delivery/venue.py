"""Where a run is shown: its card, the thread below it, and its asker, on whatever chat it was asked.

What a chat can't do, or refuses, leads to the next place: a lost thread to beside the card, a channel
without threads to the channel itself, a lost card to a new one or to direct messages.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Self, TypeVar

import structlog
from typing_extensions import override

from bot.errors import Gone, Malformed, NotAllowed, NoThread, Unreachable, VenueError
from bot.service.delivery.chat import Card, Chat, Drawing, File, Part, Response, Spot
from bot.service.delivery.outbox import Urgency, UrgencyNow
from bot.service.delivery.posts import (
    CARD_AGAIN,
    Ledger,
    Mention,
    MentionSender,
    Post,
    Poster,
    Receipt,
    Sent,
    Unsure,
    unrecorded,
)
from bot.view.message import Message
from bot.view.wording import commands as wording
from bot.view.wording.card import BELOW, IN_THREAD
from council.brief import Brief, Discussion, SentFile
from council.document.conversation import Source
from storage.journal.rows import RunRow

log = structlog.get_logger()

T = TypeVar("T")


class Venue:
    """One run's place on a chat; the card is the message that `where` names, or its first post.

    Every method may raise a `VenueError`, once waiting and trying again have not helped (the outbox does
    both). Nothing that is posted or edited mentions anybody, except `mention`, `repost` and `direct`,
    which mention the asker. `key` names a post within its run. A message's id is kept even if the caller
    is cancelled meanwhile. Nothing is posted more than twice: what may be there twice counts as posted,
    with an empty id.

    `response` answers the asker's command, while that waits for the card.
    """

    def __init__(
        self,
        chat: Chat,
        run: str,
        where: Source,
        *,
        since: str = "",
        response: Response | None = None,
    ) -> None:
        self._chat = chat
        self._run = run
        self._where = where
        self._asker = str(where.user)
        self._response = response
        own = where.thread if where.thread == where.message else None
        self._home = Spot(str(where.channel), None if own else where.thread)
        self._card = where.card or where.message or ""
        self._first = where.message or ""  # where the thread is
        self._has_threads = chat.threads_below
        self._below = self._home
        if own or (self._first and chat.threads_below and not self._home.thread):
            self._below = Spot(self._home.channel, self._first)
        self._poster = Poster(chat, run, since)
        if self._card:
            self._poster.note(self._card)
        self._mentions = MentionSender(chat, run)
        self._cards = 0
        self._edited = -math.inf
        self._drawn: tuple[Card, str, Drawing] | None = None

    @classmethod
    def of(cls, chat: Chat, run: RunRow, response: Response | None = None) -> Self:
        return cls(chat, run.id, run.origin, since=run.created_at, response=response)

    # ── the card ─────────────────────────────────────────────────────────────────────────────

    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        """Find the card that an earlier process posted; return whether it is there.

        `found` keeps the id of one that isn't on record. Of the messages below the card, the ids in
        `posted` are known. Where the chat knows nonces, one that isn't known is taken for the post that
        says the same.
        """
        self._response = None
        self._poster.pick_up(posted)
        if not self._card and self._chat.knows_nonces:
            look = partial(self._poster.find_card, self._home)
            there = await self._chat.send(
                "history", self._home, look, run=self._run, urgency=Urgency.FIRST_CARD
            )
            if there:
                self._is_at(there)
                self._edited = -math.inf
                await found(there)
        return bool(self._card)

    async def post_card(self, newest: Callable[[], Card], sent: Receipt) -> str:
        """Post the first card; `newest` is asked for it when its turn has come.

        A refusal is believed at once, since hardly anything is paid for yet; if the bot may not
        post, only the asker is told why.
        """
        response, self._response = self._response, None
        if self._card:
            await self.edit_card(newest, lambda: Urgency.FIRST_CARD, sent)
            return self._card
        shown = None
        if response and response.show:
            shown = await response.show((await self._draw(newest())).part)
        if shown:
            self._is_at(shown)
            await sent(shown)
            return shown
        if not self._chat.knows_nonces and sent.is_spent:
            raise Unreachable(wording.NO_RESPONSE, is_lost=True)
        post = partial(
            self._post_card, newest, sent, Urgency.FIRST_CARD, is_first=True, may_be_there=shown == ""
        )
        try:
            try:
                return await post()
            except Gone:
                if self._home == self._beside:
                    raise
                self._home = self._below = self._beside  # the channel may still be there
                return await post()
        except Unreachable:
            raise
        except VenueError as error:
            said = f"The council can't post here: {error}. Your question was cancelled."
            if not (response and await response.say(said)):
                await self._chat.respond(self._where, said, self._poster.nonce("refused"))
            raise

    async def _post_card(
        self,
        newest: Callable[[], Card],
        sent: Receipt,
        urgency: UrgencyNow,
        *,
        is_first: bool = False,
        may_be_there: bool = False,
    ) -> str:
        self._cards += 1

        async def draw() -> Part:
            if self._drawn and sent.times and not self._chat.knows_nonces:
                return self._drawn[2].part  # one that may be there is repeated as it is
            return (await self._draw(newest())).part

        post = Post(key=f"card/{self._cards}", part=Part(""), draw=draw, urgency=urgency)
        self._is_at(
            await self._poster.post(
                post, self._home, sent, may_be_there=may_be_there, believes_at_once=is_first
            )
        )
        return self._card

    def _is_at(self, card: str) -> None:
        self._card = card
        self._first = self._first or card
        self._poster.note(card)
        if self._chat.rests_from_sending:
            self._edited = self._chat.clock()
        if self._has_threads and not self._below.thread:
            self._below = Spot(self._home.channel, self._first)

    async def edit_card(
        self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
    ) -> bool:
        """Show the card's newest state when its turn has come; return whether all its text has room.

        `moved` keeps the new id of a card that can't be edited any more and was posted again.
        """
        if not self._card:
            raise Gone(wording.NO_CARD)
        wait = self._edited + self._chat.edit_seconds - self._chat.clock()
        if wait > 0:
            await self._chat.sleep(wait)
        is_whole = True

        async def edit() -> bool:
            nonlocal is_whole
            drawn = await self._draw(newest())
            is_whole = drawn.is_whole
            if self._chat.rests_from_sending:
                self._edited = self._chat.clock()
            is_edited = await self._chat.edit(self._home, self._card, drawn.part)
            if not self._chat.rests_from_sending:
                self._edited = self._chat.clock()
            return is_edited

        if not await self._chat.send("edit", self._home, edit, run=self._run, urgency=urgency):
            # Sending also reopens an archived thread.
            await self._post_card(newest, unrecorded("card", moved), urgency)
        return is_whole

    async def _draw(self, card: Card, continues: str = "") -> Drawing:
        """Draw a card, once for as long as it stays the same; it `continues` where its run is shown."""
        if not continues:
            continues = IN_THREAD if self._below.thread or self._has_threads else BELOW
        if self._drawn is None or self._drawn[:2] != (card, continues):
            self._drawn = card, continues, await self._chat.draw(card, continues)
        return self._drawn[2]

    # ── what comes with the question ─────────────────────────────────────────────────────────

    async def read_discussion(self, brief: Brief, room: int) -> Discussion:
        return await self._chat.read(self._run, self._where, brief, room)

    async def fetch(self, file: SentFile) -> bytes:
        return await self._chat.fetch(file)

    # ── the thread ───────────────────────────────────────────────────────────────────────────

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        """Open a thread on the card, once; return its id, and why the parts go elsewhere if they do.

        There is no id of one that isn't the card's own: inside a thread, that thread serves, in direct
        messages the place itself; where there can be none, parts are posted in place.
        """
        if self._home.thread:
            return None, None
        why = self._chat.why_no_thread(self._where)
        if self._chat.threads_below:
            return (None if why else self._below.thread), None
        if self._below.thread:
            return self._below.thread, None
        if why:
            return None, why
        try:
            await self._chat.send(
                "thread",
                self._home,
                lambda: self._chat.open_thread(self._home, self._first, title),
                run=self._run,
                urgency=Urgency.THREAD,
            )
        except (NotAllowed, Malformed, Unreachable) as error:  # the channel may still be written into
            if isinstance(error, Unreachable) and error.is_known:
                raise
            return None, str(error)
        self._below = Spot(self._home.channel, self._first)
        return self._first, None

    async def parts(self, message: Message) -> Sequence[Part]:
        return await self._chat.parts(message)

    async def post(self, part: Part, key: str, sent: Receipt, urgency: Urgency = Urgency.THREAD) -> str:
        """Post a part into the thread, or in place; raise `NoThread` where only now there is none."""
        if await self._poster.is_over(sent):
            return ""
        said = Post(key=key, part=part, urgency=urgency, silent=True)

        async def say(spot: Spot) -> str:
            return await self._poster.post(said, spot, sent)

        return await self._reply(say, self._below, sent.ledger)

    async def attach(self, note: str, sent: Receipt, *files: File) -> str:
        """Post files with a line about them into the thread or, where it is lost, beside the card."""
        if await self._poster.is_over(sent):
            return ""
        said = Post(
            key="file",
            part=self._chat.line(note),
            urgency=Urgency.THREAD,
            silent=True,
            files=files,
            uploaded=[await self._chat.upload(self._run, file) for file in files],
        )

        async def post(spot: Spot) -> str:
            posted = await self._poster.post(said, spot, sent)
            self._is_below(spot)
            return posted

        return await self._conclude(post)

    # ── the asker ────────────────────────────────────────────────────────────────────────────

    async def mention(self, mention: Mention, digest: Part | None = None, *, link: bool = True) -> None:
        """Mention the asker in the thread or, if it is lost, beside the card, with a `link` to it.

        A `digest` is part of the same message.
        """
        if await self._mentions.is_over(mention):
            return
        address = self._chat.link(self._home, self._card, self._where.workspace) if link else ""
        whole = self._chat.line(mention.text, self._asker, link=address, part=digest)
        # Nothing is known to be there after a card was lost and no response to the answer came.
        is_there = link or not mention.ledger.is_spent(CARD_AGAIN)

        async def say(spot: Spot) -> None:
            if self._chat.knows_nonces:
                post = Post(key="mention", part=whole, urgency=Urgency.ANSWER, to=self._asker)
                await self._poster.post(post, spot, Receipt("mention", mention.ledger, mention.sent))
            else:
                await self._mentions.send(whole, spot, mention, is_there=is_there)

        async def post(spot: Spot) -> None:
            await self._reply(say, spot, mention.ledger)

        await (self._conclude(post, in_place=digest is None) if link else post(self._below))

    async def repost(self, card: Card, mention: Mention, placed: Sent) -> bool:
        """Post the card as a new message in the channel, and mention the asker there.

        `placed` keeps its id. Threads and parts belong to this message from now on. Returns whether all
        its text has room.
        """
        spot, self._has_threads = self._beside, self._chat.threads_below
        drawn = await self._draw(card, IN_THREAD if self._has_threads else BELOW)

        async def moved(message: str) -> None:
            self._home = self._below = spot
            self._first = ""
            self._is_at(message)
            await placed(message)

        receipt = Receipt(CARD_AGAIN, mention.ledger, moved)
        if not await self._post_below_mention("repost", drawn.part, spot, mention, receipt):
            post = Post(key="card again", part=drawn.part, urgency=Urgency.ANSWER)
            await self._poster.post(post, spot, receipt)
            await self.mention(mention)
        return drawn.is_whole

    async def direct(self, card: Card, mention: Mention) -> None:
        """Send the card only to the asker, who must still be able to see the channel.

        Raises `NotAllowed` if that can't be known.
        """
        await self._chat.require_sight(self._run, self._where)
        channel = await self._chat.send(
            "direct",
            self._home,
            lambda: self._chat.open_direct(self._asker),
            run=self._run,
            urgency=Urgency.ANSWER,
        )
        first = ""

        async def began(message: str) -> None:
            nonlocal first
            first = message
            await mention.ledger.settle(CARD_AGAIN)

        def spot() -> Spot:
            return Spot(channel, first if first and self._chat.threads_below else None)

        drawn = await self._chat.draw(card, BELOW)
        page, *others = [drawn.part] if drawn.is_whole else await self._chat.parts(card.message)
        pages = [(page, Receipt(CARD_AGAIN, mention.ledger, began))]
        pages += [
            (other, Receipt(f"direct.{number}", mention.ledger)) for number, other in enumerate(others)
        ]
        is_over = await self._post_below_mention("direct", page, spot(), mention, pages[0][1])
        if is_over and not first:
            return
        for part, receipt in pages:
            if not receipt.is_spent:
                post = Post(key=receipt.key, part=part, urgency=Urgency.ANSWER)
                await self._poster.post(post, spot(), receipt)
        if not is_over:
            said = self._chat.line(mention.text, self._asker)
            await self._mentions.send(said, spot(), mention)

    async def _post_below_mention(
        self, key: str, part: Part, spot: Spot, mention: Mention, receipt: Receipt
    ) -> bool:
        """Post something with the mention above it; return whether nothing else has to tell the asker.

        Once a mention may have arrived, one that shows something beside is no longer posted: what it
        shows and what tells the asker come apart.
        """
        whole = self._chat.line(mention.text, self._asker, part=part, above=True)

        async def sent(message: str) -> None:
            await receipt(message)
            await mention.sent(message)

        async def draw() -> Part:
            return whole

        if self._chat.knows_nonces:
            beside = Part(whole.text)
            post = Post(key=key, part=beside, draw=draw, urgency=Urgency.ANSWER, to=self._asker)
            await self._poster.post(post, spot, Receipt(key, mention.ledger, sent))
            return True
        if await self._mentions.is_over(mention):
            return True
        if mention.telling.lost or receipt.is_spent:
            return False
        try:
            async with receipt.begun():
                await self._mentions.post(whole, spot, mention, sent)
        except Unsure:
            return await self._mentions.is_over(mention)
        return True

    # ── lost and missing threads ─────────────────────────────────────────────────────────────

    @property
    def _beside(self) -> Spot:
        return Spot(self._home.channel) if self._chat.shares_threads else self._home

    def _is_below(self, spot: Spot) -> None:
        self._below = spot
        self._has_threads = self._has_threads and spot.thread is not None

    async def _conclude(self, post: Callable[[Spot], Awaitable[T]], *, in_place: bool = True) -> T:
        """Post below the card, or beside it if the thread is lost."""
        if self._below != self._beside:
            try:
                return await post(self._below)
            except (Gone, NotAllowed) as error:
                if isinstance(error, NoThread) and not in_place:
                    raise
                log.info("thread_lost", reason=error)
        return await post(self._beside)

    async def _reply(self, post: Callable[[Spot], Awaitable[T]], spot: Spot, ledger: Ledger) -> T:
        """Post into a thread; where the channel has none, raise `NoThread` after a line that says so."""
        try:
            return await post(spot)
        except NoThread as error:
            if spot.thread is None:
                raise
            is_news = self._below.thread is not None  # two posts may find it out at once
            self._is_below(Spot(spot.channel))
            receipt = Receipt("no thread", ledger)
            if is_news and not receipt.is_spent:  # it is said once
                why = self._chat.line(wording.no_thread(str(error)))
                post_why = Post(key=receipt.key, part=why, urgency=Urgency.THREAD)
                await self._poster.post(post_why, self._below, receipt)
            raise


class ProgramVenue(Venue):
    """The place of a program's run, where nothing is posted; `changed` hears of anything new."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed

    @override
    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        return True

    @override
    async def post_card(self, newest: Callable[[], Card], sent: Receipt) -> str:
        return ""

    @override
    async def edit_card(
        self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
    ) -> bool:
        self._changed()
        return True
