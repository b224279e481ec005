"""Posts what one run says below its card: each message, file and mention once.

Whatever was posted is on record, so a process that continues the run doesn't post it again.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from bot.errors import Malformed
from bot.service.delivery.chat import Button, File, Part
from bot.service.delivery.mentions import Mention
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.receipts import Ledger, Receipt, Sent
from bot.service.delivery.run_record import RunRecord
from bot.service.delivery.venue import Venue
from bot.view.message import Message
from bot.view.wording import commands as wording
from storage.errors import StorageError
from storage.journal.progress import Posts

log = structlog.get_logger()

WITH_DIGEST = "digest"  # the key of a mention that is part of it


class RunPosts:
    """The posts of one run in its venue; `posts` are those on record, by key and content.

    `record` says whether the run still is, and `ledger` what may have arrived without a response.
    """

    def __init__(self, venue: Venue, posts: Posts, record: RunRecord, ledger: Ledger) -> None:
        self._venue = venue
        self._posts = posts
        self._on_record = record
        self._ledger = ledger
        self._whole: set[str] = set()
        self._is_forgotten = False

    def has_posted(self, message: Message) -> bool:
        """Return whether this process has posted all parts of a message."""
        return message.key in self._whole

    async def post(
        self,
        message: Message,
        urgency: Urgency,
        buttons: tuple[Button, ...] = (),
        mention: Mention | None = None,
    ) -> None:
        """Post a message in as many parts as it takes; below the last one its buttons and a mention.

        Raises `VenueError`. A part that the platform can't take is replaced by a line that says so.
        """
        await self._on_record.acknowledgements.acknowledged()
        parts = [*await self._venue.parts(message)]
        parts[-1:] = [replace(part, buttons=buttons) for part in parts[-1:]]
        for number, part in enumerate(parts):
            key = f"{message.key}.{number}"
            ends = mention if number == len(parts) - 1 else None
            sent = self._unless_posted(key, part.content)
            if not sent or (ends and self._posts.has(WITH_DIGEST, ends.text)):
                continue
            try:
                if ends and not self.has_mentioned(ends):
                    said = replace(ends, sent=self._recording(WITH_DIGEST, ends.text))
                    await self._venue.mention(said, part)
                else:
                    await self._venue.post(part, key, sent, urgency)
            except Malformed:
                log.exception("part_malformed", key=key)
                await self._venue.post(Part(wording.NOT_IN_THREAD), key, sent, urgency)
        self._whole.add(message.key)

    async def attach(self, note: str, file: Callable[[], Awaitable[File]]) -> None:
        """Post the transcript with a line about it; `file` makes it if it isn't posted yet.

        Raises `VenueError`, and what `file` raises.
        """
        if sent := self._unless_posted("transcript", note):
            await self._venue.attach(note, sent, await file())

    def mention(self, text: str) -> Mention:
        """Return the mention of the run's asker, which is recorded as soon as it is sent."""
        return Mention(text, self._recording("mention", text), self._ledger)

    def has_mentioned(self, mention: Mention) -> bool:
        """Return whether the asker has been mentioned with this text."""
        return any(self._posts.has(key, mention.text) for key in ("mention", WITH_DIGEST))

    def _unless_posted(self, key: str, content: str) -> Receipt | None:
        """Return the receipt of a post, or nothing if it is on record, or the run no longer is."""
        if self._is_forgotten or self._posts.has(key, content):
            return None
        return Receipt(key, self._ledger, self._recording(key, content))

    def _recording(self, key: str, content: str) -> Sent:
        async def record(message: str) -> None:
            try:
                await self._posts.record(key, content, message)
            except StorageError:  # it is posted; only a restart at this moment could post it again
                if await self._on_record.retract_if_forgotten(message):
                    self._is_forgotten = True
                else:
                    log.exception("post_not_recorded", key=key)

        return record
