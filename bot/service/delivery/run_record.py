"""What is kept of one run beside its posts, and the transcript that people are handed."""

from dataclasses import dataclass

import structlog

from bot.service.delivery.chat import File
from bot.service.metrics import Metrics
from bot.service.waits import Acknowledgements
from bot.transcript.html import to_html
from bot.transcript.markdown import to_markdown
from council.document.conversation import Conversation, Source
from council.tasks import offload_slowly
from storage.documents.conversations import Conversations
from storage.errors import StorageError
from storage.journal.journal import Journal
from storage.journal.rows import MentionState, RunRow

log = structlog.get_logger()


@dataclass(slots=True)
class RunRecord:
    """What is kept of one run, which is now shown at `where`, and whom its showing waits for."""

    run: RunRow
    journal: Journal
    store: Conversations
    acknowledgements: Acknowledgements
    metrics: Metrics
    where: Source

    async def place(self, **where: str | None) -> None:
        """Keep new values of a `Source`'s `message`, `card` or `thread`, as soon as they are known."""
        self.where = self.where.model_copy(update=where)
        try:
            await self.journal.place(self.run.id, self.where)
        except StorageError:  # only a restart now would have to look for the card
            log.exception("place_not_recorded", run=self.run.id)
        for message in {where.get("message"), where.get("card")} - {None}:
            await self.retract_if_forgotten(str(message))

    async def retract_if_forgotten(self, message: str) -> bool:
        """Have a message deleted if the run was forgotten while it was posted; return whether it was."""
        if await self.run_exists():
            return False
        try:
            await self.journal.work.retract(self.where, message)
        except StorageError:  # nothing else names it
            log.exception("message_not_listed", run=self.run.id, message=message)
        return True

    async def note(self, telling: MentionState) -> None:
        """Keep what may have arrived of the run's posts and its mention."""
        try:
            await self.journal.record_mention(self.run.id, telling)
        except StorageError:  # only a restart now could mention the asker once more
            log.exception("telling_not_recorded", run=self.run.id)

    async def run_exists(self) -> bool:
        """Return whether the run is still on record."""
        try:
            return await self.journal.origin(self.run) is not None
        except StorageError:  # if the journal can't be read, nothing counts as forgotten
            log.exception("run_not_read", run=self.run.id)
            return True

    async def is_follow_up(self) -> bool:
        """Return whether an earlier run has answered in the same conversation."""
        try:
            answers = (await self.store.load(self.run.conversation_id)).answers
        except StorageError:  # this run's answer isn't stored either
            return False
        return any(each.run_id != self.run.id for each in answers[:1])

    async def render_page(self) -> File:
        """Return the run's stored conversation as an HTML file."""
        return await offload_slowly(page_of, await self.store.load(self.run.conversation_id))

    def edited(self, changes: int) -> None:
        """Count an edit of the card that shows this many changes."""
        self.metrics.edited(self.run.origin.platform, changes)


def page_of(conversation: Conversation) -> File:
    """Return a conversation's transcript as an HTML page; too slow for an event loop."""
    return File(f"council-{conversation.id[:8]}.html", to_html(conversation))


def files_of(conversation: Conversation) -> tuple[File, ...]:
    """Return a conversation's transcript, as a page and as Markdown; too slow for an event loop."""
    markdown = File(f"council-{conversation.id[:8]}.md", to_markdown(conversation))
    return page_of(conversation), markdown
