"""Casts votes on answers, one per person.

The conversation's document has them; the index that is derived from it counts them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from bot.errors import Refusal
from bot.view.message import printable
from bot.view.wording import commands as wording
from bot.view.wording.failures import explain
from council.document.conversation import Source, Vote, timestamp
from storage.documents.conversations import Conversations
from storage.errors import ConversationNotFound, StorageError
from storage.index.index import Index
from storage.journal.rows import RunRow

log = structlog.get_logger()

LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class ReasonForm:
    """What asks somebody why a run's answer didn't help."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Votes:
    """Casts votes; knows no platform."""

    store: Conversations
    index: Index
    now: Callable[[], datetime]

    async def cast(self, run: RunRow, who: Source, *, helpful: bool, reason: str | None = None) -> str:
        """Store somebody's vote on a run's answer, in place of an earlier one; return what is counted.

        `None` keeps the reason of an earlier vote that said the same. Raises `Refusal`.
        """
        vote = Vote(
            voter=str(who.user),
            platform=who.platform,
            helpful=helpful,
            at=timestamp(self.now()),
            reason=None if reason is None else " ".join(printable(reason).split())[:LONGEST_REASON],
        )
        try:
            stored = await self.store.vote(run.conversation_id, run.id, vote)
        except ConversationNotFound as error:
            raise Refusal(wording.NOTHING_TO_VOTE_ON) from error
        except StorageError as error:
            raise Refusal(explain(error, run.id)) from error
        try:
            await self.index.upsert(stored)
            # What was forgotten meanwhile must not come back with its vote.
            if not await self.store.present([run.conversation_id]):
                await self.index.remove(run.conversation_id)
        except StorageError:  # the vote is safe in the document; the index is repaired from it
            log.exception("vote_not_indexed", conversation=run.conversation_id)
        if helpful:
            return wording.COUNTED_HELPFUL
        return wording.REASON_KEPT if vote.reason else wording.COUNTED_UNHELPFUL
