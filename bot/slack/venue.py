"""A run's place in Slack: its card, the thread below it, and the asker.

Sources: https://docs.slack.dev/apis/web-api/rate-limits,
https://docs.slack.dev/messaging/working-with-files#upload
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import TypeVar

import aiohttp
import structlog

from bot.errors import Gone, NotAllowed, NoThread, Unreachable, VenueError
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.receipts import Ledger, Receipt, Sent
from bot.service.delivery.venue import CARD_AGAIN, Card, File, Mention, Part
from bot.slack import text as slack_text
from bot.slack.card import Drawn, blocks_with_buttons, draw
from bot.slack.client import Json, granted
from bot.slack.errors import by_status, classified
from bot.slack.mentions import MentionSender, Unsure
from bot.slack.notices import Tell, line
from bot.slack.posting import Posting, repeat
from bot.slack.visibility import require_sight
from bot.slack.workspace import TIER_3, TIER_4, Workspace
from bot.view.message import Message
from bot.view.wording.card import BELOW, IN_THREAD
from bot.view.wording.commands import SEE_THE_CARD, no_thread
from bot.view.wording.slack import NO_ANSWER
from council.brief import Brief, Discussion, SentFile
from council.document.conversation import Source

log = structlog.get_logger()

T = TypeVar("T")

CARD_SECONDS = 3.0


def is_direct(here: Source) -> bool:
    """Return whether this is somebody's direct messages with the bot."""
    return str(here.channel).startswith("D")


class SlackVenue:
    """One run's card and thread, in the channel it was asked in; in its thread, if it was in one.

    `run` names the run among those that wait for their turn.
    """

    def __init__(self, workspace: Workspace, run: str, tell: Tell, where: Source) -> None:
        self._workspace = workspace
        self._client = workspace.client
        self._outbox = workspace.outbox
        self._run = run
        self._tell = tell
        self._posting = Posting(workspace, run)
        self._mentions = MentionSender(workspace, run)
        self._where = where
        self._channel = str(where.channel)
        self._user = str(where.user)
        self._thread = where.thread
        self._card = where.message or ""
        self._continues = IN_THREAD
        self._edited = -math.inf
        self._drawn: tuple[Card, str, Drawn] | None = None

    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        """Use the card that the run's row names: the bot can't read a channel's messages on Slack."""
        del posted, found
        self._thread = self._thread or self._card or None
        return bool(self._card)

    async def post_card(self, newest: Callable[[], Card], sent: Receipt) -> str:
        """Post the first card; if the bot may not, tell only the asker why."""
        shown: Drawn | None = None

        async def drawn() -> Part:
            nonlocal shown
            if shown is None or not sent.times:  # one that may be there is repeated as it is
                shown = await self._draw(newest(), IN_THREAD)
            return shown.part

        async def post() -> str:
            where = self._channel, self._thread
            find = partial(self._workspace.find, *where, self._run)
            return await self._posting.post(drawn, sent, Urgency.FIRST_CARD, *where, find=find)

        if sent.is_spent:
            raise Unreachable(NO_ANSWER, is_lost=True)
        try:
            try:
                self._card = await post()
            except Gone:
                if self._thread is None:
                    raise
                self._thread = None  # it was deleted; the channel may still be there
                self._card = await post()
        except Unreachable:
            raise
        except VenueError as error:
            await self._tell(line(f"The council can't answer here: {error}."))
            raise
        self._thread = self._thread or self._card
        return self._card

    async def edit_card(
        self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
    ) -> bool:
        """Show the card's newest state; return whether all its text has room."""
        del moved  # a card that can't be edited is lost
        wait = self._edited + CARD_SECONDS - self._workspace.clock()
        if wait > 0:
            await self._workspace.sleep(wait)

        async def request() -> bool:
            shown = await self._draw(newest(), self._continues if self._thread else BELOW)
            await granted(
                self._client.chat_update(
                    channel=self._channel,
                    ts=self._card,
                    text=shown.part.text,
                    blocks=blocks_with_buttons(shown.part),
                    parse="none",
                )
            )
            self._edited = self._workspace.clock()
            return shown.is_whole

        lane = self._workspace.lane("chat.update", TIER_3)
        return await self._outbox.send(lane, request, run=self._run, urgency=urgency)

    async def read_discussion(self, brief: Brief, room: int) -> Discussion:
        """Read the human thread in which the question was asked."""
        return await self._workspace.read_discussion(self._run, self._where, brief, room)

    async def fetch(self, file: SentFile) -> bytes:
        """Fetch a file that came with the question."""
        return await self._workspace.fetch(file)

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        """Return the card's thread: its first reply opens it."""
        del title  # Slack's threads have none
        has_own = self._thread == self._card and not is_direct(self._where)
        return self._thread if has_own else None, None

    async def parts(self, message: Message) -> Sequence[Part]:
        """Cut a message into blocks of Slack's size."""
        text = slack_text.fallback(message)
        cut = await asyncio.to_thread(slack_text.pages, message)
        return [Part(text, tuple(blocks)) for blocks in cut]

    async def post(self, part: Part, key: str, sent: Receipt, urgency: Urgency = Urgency.THREAD) -> str:
        """Post a part into the thread, in place where the channel has no threads."""
        del key  # Slack has no way to recognise a repeated message

        async def post(thread: str | None) -> str:
            return await self._posting.post(part, sent, urgency, self._channel, thread)

        if await self._posting.is_over(sent):
            return ""
        return await self._reply(post, self._thread, sent.ledger)

    async def attach(self, note: str, sent: Receipt, *files: File) -> str:
        """Post text files into the thread; where it is lost, into the channel."""
        if await self._posting.is_over(sent):
            return ""
        uploaded: list[dict[str, str | None]] = [
            {"id": await self._upload(file), "title": file.name} for file in files
        ]

        async def complete(thread: str | None) -> str:
            async def request() -> str:
                async with sent.begun():
                    completed = await granted(
                        self._client.files_completeUploadExternal(
                            files=uploaded,
                            channel_id=self._channel,
                            thread_ts=thread,
                            initial_comment=_plain(note),
                        )
                    )
                attached = [str(file["id"]) for file in completed["files"]]
                for posted in attached:
                    await sent(posted)
                return attached[0]

            lane = self._workspace.lane("files.completeUploadExternal", TIER_4)
            self._continues = IN_THREAD if thread else BELOW
            return await self._outbox.send(
                lane, request, run=self._run, urgency=Urgency.THREAD, repeat=repeat(sent)
            )

        return await self._conclude(complete)

    async def mention(self, mention: Mention, digest: Part | None = None, *, link: bool = True) -> None:
        """Mention the asker, with a link to the card; beside the card where the thread is lost."""
        if await self._mentions.is_over(mention):
            return
        said, ends = self._to_asker(mention.text), [*self._asker_runs(mention.text)]
        if link:
            address = self._workspace.permalink(self._channel, self._card, self._thread)
            said += f" <{address}|{SEE_THE_CARD}>"
            linked = {"type": "link", "url": address, "text": SEE_THE_CARD}
            ends += [{"type": "text", "text": " "}, linked]
        whole = Part(said)
        if digest:
            whole = Part(f"{said}\n{digest.text}", (*digest.blocks, _rich(ends)), digest.buttons)

        # Nothing is known to be there after a card was lost and no response to the answer came.
        is_there = link or not mention.ledger.is_spent(CARD_AGAIN)

        async def say(thread: str | None) -> None:
            await self._mentions.send(whole, self._channel, thread, mention, is_there=is_there)

        async def post(thread: str | None) -> None:
            await self._reply(say, thread, mention.ledger)

        await (self._conclude(post, in_place=digest is None) if link else post(self._thread))

    async def repost(self, card: Card, mention: Mention, placed: Sent) -> bool:
        """Post the card as a new message with a mention above; return whether all its text has room."""
        shown = await self._draw(card, IN_THREAD)

        async def moved(message: str) -> None:
            self._card = self._thread = message
            self._continues = IN_THREAD
            await placed(message)

        receipt = Receipt(CARD_AGAIN, mention.ledger, moved)
        if not await self._tell_above(shown.part, self._channel, mention, receipt):
            await self._posting.post(shown.part, receipt, Urgency.ANSWER, self._channel)
            await self.mention(mention)
        return shown.is_whole

    async def direct(self, card: Card, mention: Mention) -> None:
        """Send the card only to the asker, who must still be able to see the channel."""
        await require_sight(self._workspace, self._run, self._channel, self._user)

        async def opened() -> str:
            return str(
                (await granted(self._client.conversations_open(users=self._user)))["channel"]["id"]
            )

        lane = self._workspace.lane("conversations.open", TIER_3)
        channel = await self._outbox.send(lane, opened, run=self._run, urgency=Urgency.THREAD)
        first = ""

        async def began(message: str) -> None:
            nonlocal first
            first = message
            await mention.ledger.settle(CARD_AGAIN)

        first_page, *others = await self.parts(card.message)
        pages = [(first_page, Receipt(CARD_AGAIN, mention.ledger, began))]
        pages += [
            (page, Receipt(f"direct.{number}", mention.ledger)) for number, page in enumerate(others)
        ]
        is_over = await self._tell_above(pages[0][0], channel, mention, pages[0][1])
        if is_over and not first:
            return
        for page, receipt in pages:
            if not receipt.is_spent:
                await self._posting.post(page, receipt, Urgency.ANSWER, channel, first or None)
        if not is_over:
            said = Part(self._to_asker(mention.text))
            await self._mentions.send(said, channel, first or None, mention)

    # ── what these are made of ───────────────────────────────────────────────────────────────

    async def _tell_above(self, part: Part, channel: str, mention: Mention, receipt: Receipt) -> bool:
        """Post something with the mention above it; return whether nothing else has to tell the asker.

        Once a mention may have arrived, one that shows something beside is no longer posted: what it
        shows and what tells the asker come apart.
        """
        if await self._mentions.is_over(mention):
            return True
        if mention.telling.lost or receipt.is_spent:
            return False

        async def sent(message: str) -> None:
            await receipt(message)
            await mention.sent(message)

        text = f"{self._to_asker(mention.text)}\n{part.text}"
        above = _rich([*self._asker_runs(mention.text)])
        whole = Part(text, (above, *part.blocks), part.buttons)
        try:
            async with receipt.begun():
                await self._mentions.post(whole, channel, None, mention, sent)
        except Unsure:
            return await self._mentions.is_over(mention)
        return True

    def _to_asker(self, text: str) -> str:
        return f"<@{self._user}> {_plain(text)}"

    def _asker_runs(self, text: str) -> tuple[Json, ...]:
        return {"type": "user", "user_id": self._user}, {"type": "text", "text": f" {text}"}

    async def _upload(self, file: File) -> str:
        """Send a file's content to Slack, where nobody sees it yet; return its id."""

        async def request() -> str:
            place = await granted(
                self._client.files_getUploadURLExternal(filename=file.name, length=len(file.data))
            )
            await self._fill(str(place["upload_url"]), file.data)
            return str(place["file_id"])

        lane = self._workspace.lane("files.getUploadURLExternal", TIER_4)
        return await self._outbox.send(lane, request, run=self._run, urgency=Urgency.THREAD)

    async def _fill(self, address: str, content: bytes) -> None:
        post = self._workspace.session.post(address, data=content, proxy=self._client.proxy)
        try:
            async with post as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise classified(error) from error
        if answer.status != HTTPStatus.OK:
            raise by_status(answer.status, None, answer.headers)

    async def _conclude(self, post: Callable[[str | None], Awaitable[T]], *, in_place: bool = True) -> T:
        """Post something into the thread; where it is lost, into the channel."""
        if thread := self._thread:
            try:
                return await post(thread)
            except (Gone, NotAllowed) as error:
                if isinstance(error, NoThread) and not in_place:
                    raise
                log.info("thread_lost", reason=error)
        return await post(None)

    async def _reply(
        self, post: Callable[[str | None], Awaitable[T]], thread: str | None, ledger: Ledger
    ) -> T:
        """Post into a thread; where the channel has none, raise `NoThread` after a line that says so."""
        try:
            return await post(thread)
        except NoThread as error:
            if thread is None:
                raise
            why = Part(_plain(no_thread(str(error))))
            is_news, self._thread = self._thread is not None, None  # two posts may find it out at once
            receipt = Receipt("no thread", ledger)
            if is_news and not receipt.is_spent:  # it is said once
                await self._posting.post(why, receipt, Urgency.THREAD, self._channel)
            raise

    async def _draw(self, card: Card, continues: str) -> Drawn:
        """Draw a card; the newest is drawn once, however often it is sent."""
        if self._drawn is None or self._drawn[:2] != (card, continues):
            self._drawn = card, continues, await draw(card, continues)
        return self._drawn[2]


def _plain(text: str) -> str:
    return slack_text.fallback(line(text))


def _rich(runs: list[Json]) -> Json:
    section = {"type": "rich_text_section", "elements": runs}
    return {"type": "rich_text", "elements": [section]}
