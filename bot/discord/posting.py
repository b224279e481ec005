"""Posts a run's messages on Discord, each once, whatever becomes of the responses or of the process.

Every message carries a nonce drawn from what it says, so that one which is sent again soon appears
once; later, the channel is read first.

Source: https://discord.com/developers/docs/resources/message#create-message
"""

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, get_args

import discord
import structlog

from bot.discord.errors import classify
from bot.discord.location import Location
from bot.discord.notices import LOOKED_THROUGH, NONCE_SECONDS
from bot.discord.transport import DiscordTransport
from bot.errors import Unreachable
from bot.service.delivery.outbox import UrgencyNow
from bot.service.delivery.receipts import Sent
from bot.service.delivery.venue import CardAction
from bot.view.wording import discord as wording
from storage.journal.rows import RunRow

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Post:
    """A message to be posted once; `key` and its content distinguish it from the run's others."""

    key: str
    text: str
    write: Callable[[], Awaitable[dict[str, Any]]]
    urgency: UrgencyNow
    sent: Sent | None = None
    permission: str = ""
    believes_at_once: bool = False
    embedded: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def is_said_by(self, message: discord.Message, run_id: str) -> bool:
        """Return whether an existing message says this; a card is recognised by its buttons."""
        if not self.text and not self.embedded:
            return _has_button_of(message, run_id)
        # In a thread of several runs, all say the same about their files, which are named by run.
        if self.files != tuple(file.filename for file in message.attachments):
            return False
        there = [(embed.description or "").strip() for embed in message.embeds]
        is_embedded = there == [text.strip() for text in self.embedded] if self.embedded else True
        return is_embedded and message.content.strip() == self.text.strip()


class Posting:
    """Posts one run's messages, and knows which of them are there."""

    def __init__(
        self,
        client: discord.Client,
        transport: DiscordTransport,
        run: RunRow,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._transport = transport
        self._run = run
        self._location = Location.of_run(run)
        self._clock = clock
        self._is_picked_up = False
        self._known: set[str] = set()
        self._strays: dict[int, list[discord.Message]] = {}

    def pick_up(self, posted: frozenset[str]) -> None:
        """Expect messages of an earlier process that aren't among those on record."""
        self._is_picked_up = True
        self._known |= posted
        self._strays.clear()

    def note(self, message: int) -> None:
        """Note a message that is there: it is never taken for another one."""
        self._known.add(str(message))

    async def post(
        self, post: Post, channel: int, find: Callable[[], Awaitable[int]] | None = None
    ) -> int:
        """Post a message unless it exists; return its id.

        It may exist from a process that died, or from an attempt whose response was lost. `find`
        looks for it in another way than by its content.
        """
        nonce = self.nonce(post.key, post.text, *post.embedded, channel)
        tried: float | None = None

        async def attempt() -> int:
            nonlocal tried
            is_old = tried is not None and self._clock() - tried > NONCE_SECONDS
            if find and (found := await find()):
                message = found
            elif stray := await self._stray(post, channel, look_again=is_old):
                message = stray
            else:
                tried = self._clock() if tried is None else tried
                content = await post.write()
                message = (await self.channel(channel).send(nonce=nonce, **content)).id
            self.note(message)
            if post.sent:
                await post.sent(str(message))
            return message

        inside = self._location.parent or channel != self._location.channel
        return await self._transport.send(
            f"post {channel}",
            attempt,
            run=self._run.id,
            urgency=post.urgency,
            permission=post.permission or self.permission(channel),
            place=wording.THREAD if inside else wording.CHANNEL,
            believes_at_once=post.believes_at_once,
        )

    async def find_card(self) -> int:
        """Return the id of the run's card, recognised by its buttons, else 0."""
        mine = await self._mine(self._location.channel)
        return next((one.id for one in mine if _has_button_of(one, self._run.id)), 0)

    def channel(self, number: int) -> discord.PartialMessageable:
        """Return a channel or thread by its id."""
        return self._client.get_partial_messageable(number, guild_id=self._location.guild)

    def permission(self, channel: int) -> str:
        """Name the permission that sending there takes."""
        inside = self._location.parent or channel != self._location.channel
        return wording.PERMISSIONS["send_messages_in_threads" if inside else "send_messages"]

    def nonce(self, *about: object) -> str:
        """Return the nonce of a message of this run; the same for the same arguments."""
        said = "/".join(map(str, (self._run.id, *about)))
        return hashlib.sha256(said.encode()).hexdigest()[:25]

    async def _stray(self, post: Post, channel: int, *, look_again: bool) -> int:
        """Return the id of an unrecorded message that says this, else 0."""
        if look_again or (self._is_picked_up and channel not in self._strays):
            mine = await self._mine(channel)
            self._strays[channel] = [one for one in mine if str(one.id) not in self._known]
        strays = self._strays.get(channel, [])
        for stray in strays:
            if post.is_said_by(stray, self._run.id):
                strays.remove(stray)
                return stray.id
        return 0

    async def _mine(self, channel: int) -> list[discord.Message]:
        """Return what the bot has posted in a channel since the run began, if it may read there."""
        # Clocks differ a little; whatever is older than the run can't be mistaken for the run's.
        since = datetime.fromisoformat(self._run.created_at) - timedelta(minutes=1)
        me = self._client.user
        history = self.channel(channel).history(limit=LOOKED_THROUGH, after=since, oldest_first=True)
        try:
            return [message async for message in history if message.author == me]
        except discord.HTTPException as error:
            if isinstance(classify(error), Unreachable) or error.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise
            log.warning("history_not_read", channel=channel, reason=error)
            return []


def _has_button_of(message: discord.Message, run_id: str) -> bool:
    own = {f"council:{action}:{run_id}" for action in get_args(CardAction)}
    return any(
        isinstance(child, discord.Button) and child.custom_id in own
        for row in message.components
        for child in getattr(row, "children", ())
    )
