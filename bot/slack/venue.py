"""A run's place in Slack: its card, the thread below it, and the pace at which it may be edited.

Source: https://docs.slack.dev/apis/web-api/rate-limits
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
import itertools
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.service.venue import Button, Card, File, Gone, NotAllowed, Part, VenueError
from bot.slack import text as slack_text
from bot.slack.client import Json, NoThread, granted
from bot.view.message import BELOW, IN_THREAD, Line, Message
from council.document.conversation import Source

Tell = Callable[[Message], Coroutine[Any, Any, None]]
"""Shows a message to one person alone."""

EDITS_PER_MINUTE = 45
BURST = 5
INTERVAL = 60 / (EDITS_PER_MINUTE - BURST)
CARD_SECONDS = 3.0


class Pace:
    """When a card of a workspace may be edited: the least recently edited one goes first.

    `chat.update` has 50 calls a minute for all of them; a few may go at once, then one at a time.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.clock = clock
        self._sleep = sleep
        self._arrivals = itertools.count()
        self._waiting: list[tuple[float, int]] = []
        self._filled = -math.inf  # when the last edit allowed so far falls due at an even pace

    async def turn(self, edited: float) -> None:
        """Wait for the turn of a card that was last edited at `edited`, by this pace's clock."""
        place = (edited, next(self._arrivals))
        self._waiting.append(place)
        try:
            while (wait := self._wait(place)) > 0:
                await self._sleep(wait)
        finally:
            self._waiting.remove(place)
        self._filled = max(self._filled, self.clock()) + INTERVAL

    def _wait(self, place: tuple[float, int]) -> float:
        now = self.clock()
        ahead = sum(other < place for other in self._waiting)
        slot = max(self._filled, now) + ahead * INTERVAL - (BURST - 1) * INTERVAL
        return max(slot, place[0] + CARD_SECONDS) - now


class SlackVenue:
    """One run's card and thread, in the channel it was asked in; in its thread, if it was in one."""

    def __init__(self, client: AsyncWebClient, pace: Pace, tell: Tell, where: Source) -> None:
        self._client = client
        self._pace = pace
        self._tell = tell
        self._channel = str(where.channel)
        self._user = str(where.user)
        self._thread = where.thread
        self._card = where.message or ""
        self._edited = -math.inf

    async def pick_up(self, posted: frozenset[str]) -> str | None:
        """Give the card that the run's row names: Slack lets the bot read no channel's messages."""
        del posted
        self._thread = self._thread or self._card or None
        return self._card or None

    async def post_card(self, card: Card) -> str:
        """Post the card; where the bot may not, the asker alone is told why."""
        # A long answer takes longer to parse than the event loop may wait.
        shown = await asyncio.to_thread(slack_text.card, card.message)
        try:
            self._card = await self._say(shown.text, [*shown.blocks, *_actions(card.buttons)])
        except VenueError as error:
            await self._tell(line(f"The council can't answer here: {error}."))
            raise
        self._thread = self._thread or self._card
        return self._card

    async def turn(self) -> None:
        """Wait until this card's turn among the workspace's."""
        await self._pace.turn(self._edited)

    async def edit_card(self, card: Card) -> bool:
        """Show the card's new state; tells whether all of its text found room."""
        continues = IN_THREAD if self._thread else BELOW
        shown = await asyncio.to_thread(slack_text.card, card.message, continues)
        await granted(
            self._client.chat_update(
                channel=self._channel,
                ts=self._card,
                text=shown.text,
                blocks=[*shown.blocks, *_actions(card.buttons)],
                parse="none",
            )
        )
        self._edited = self._pace.clock()
        return not shown.cut

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        """Give the thread the run was asked in, or the card's: its first reply opens it."""
        del title  # Slack's threads have none
        return self._thread, None

    async def parts(self, message: Message) -> Sequence[Part]:
        """Cut a message into blocks of Slack's size."""
        text = slack_text.fallback(message)
        cut = await asyncio.to_thread(slack_text.parts, message)
        return [Part(text, tuple(blocks)) for blocks in cut]

    async def post(self, part: Part, key: str) -> str:
        """Post a part into the thread, in place where the channel has no threads."""
        del key  # Slack has nothing that tells it a message is the same
        return await self._reply(part.text, [*part.blocks])

    async def attach(self, note: str, *files: File) -> str:
        """Post text files into the thread; where it is lost, into the channel."""

        async def upload() -> str:
            uploaded = await granted(
                self._client.files_upload_v2(
                    file_uploads=[
                        {"filename": file.name, "title": file.name, "content": file.data}
                        for file in files
                    ],
                    channel=self._channel,
                    thread_ts=self._thread,
                    initial_comment=_plain(note),
                )
            )
            return str(uploaded["files"][0]["id"])

        return await self._conclude(upload)

    async def mention(self, text: str) -> str:
        """Tell the asker, by the one message that notifies anybody, with a link to the card."""
        link = await granted(
            self._client.chat_getPermalink(channel=self._channel, message_ts=self._card)
        )
        said = f"<@{self._user}> {_plain(text)} <{link['permalink']}|See the card>"
        return await self._conclude(lambda: self._reply(said, None))

    async def _conclude(self, post: Callable[[], Awaitable[str]]) -> str:
        """Post something into the thread; where it is lost, into the channel."""
        try:
            return await post()
        except (Gone, NotAllowed):
            if self._thread is None:
                raise
        self._thread = None
        return await post()

    async def _reply(self, text: str, blocks: list[Json] | None) -> str:
        try:
            return await self._say(text, blocks)
        except NoThread as error:
            self._thread = None
            await self._say(_plain(f"No thread here: {error}."), None)
            return await self._say(text, blocks)

    async def _say(self, text: str, blocks: list[Json] | None) -> str:
        posted = await granted(
            self._client.chat_postMessage(
                channel=self._channel,
                thread_ts=self._thread,
                text=text,
                blocks=blocks,
                unfurl_links=False,
                unfurl_media=False,
            )
        )
        return str(posted["ts"])


def line(text: str) -> Message:
    """Make a message of one sentence."""
    return Message("line", (Line(text),))


def _plain(text: str) -> str:
    return slack_text.fallback(line(text))


def _actions(buttons: tuple[Button, ...]) -> list[Json]:
    if not buttons:
        return []
    elements = [
        {
            "type": "button",
            "action_id": action_id(button.action),
            "value": button.run_id,
            "text": {"type": "plain_text", "text": button.label, "emoji": False},
        }
        for button in buttons
    ]
    return [{"type": "actions", "elements": elements}]


def action_id(action: str) -> str:
    """Give the id under which a button's clicks arrive."""
    return f"council_{action}"
