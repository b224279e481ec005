"""How people are answered on Slack: by a response URL, below a card, or alone in a thread.

A reply is sent in the background: Bolt acknowledges an event once its listener has ended.
"""

# pyright: reportUnknownMemberType=false
# slack-bolt and slack-sdk annotate their dictionaries and keyword arguments without types.

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from slack_bolt.async_app import AsyncRespond

from bot.errors import Refusal, VenueError
from bot.past.pages import Sheet
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.receipts import Sent, unrecorded
from bot.service.delivery.venue import File
from bot.service.requests.follow_ups import Form
from bot.service.requests.votes import ReasonForm
from bot.slack import modals
from bot.slack import past as slack_past
from bot.slack.client import granted
from bot.slack.locations import Locations, direct
from bot.slack.notices import Tell, ephemerally, line
from bot.slack.posting import Posting
from bot.slack.venue import SlackVenue
from bot.view.wording.commands import ALREADY_ASKED, ASKED_BELOW, TRANSCRIPT
from bot.view.wording.failures import UNEXPECTED
from council.document.conversation import Source
from storage.journal.rows import RunRow

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackReply:
    """Answers somebody `here`, whom `tell` reaches; a `bot.actions.Responder`.

    What comes from a command or a button can `respond` by its URL, and open a form by its `trigger`.
    `name` is what the person is called. `message` is the one whose button was pressed; `is_ephemeral`
    says that only they see it.
    """

    locations: Locations
    here: Source
    tell: Tell
    respond: AsyncRespond | None = None
    trigger: str = ""
    name: str = ""
    message: str | None = None
    is_ephemeral: bool = False

    async def say(self, text: str) -> None:
        self.locations.tasks.spawn(self.tell(line(text)))

    async def show(self, sheet: Sheet, *, turned: bool = False) -> None:
        if self.respond is None or self.here.thread:
            # What a response URL shows to one person alone appears below the channel, not in a thread.
            shown = ephemerally(self.locations.client, self.here, otherwise=self.tell)(sheet.message)
        else:
            shown = slack_past.show(self.respond, sheet, turned=turned and self.is_ephemeral)
        self.locations.tasks.spawn(shown)

    async def share(self, sheet: Sheet, sent: Sent) -> None:
        """Show the whole channel what one person saw.

        It is posted with the bot's token: a response URL doesn't say which message it made.
        """

        async def share() -> None:
            posting = Posting(self.locations.workspace, str(self.here.user))
            for number, part in enumerate(await slack_past.parts(sheet, self.name)):
                receipt = unrecorded(f"shared.{number}", sent)
                await posting.post(part, receipt, Urgency.THREAD, str(self.here.channel))

        await self.later(share)

    async def form(self, form: Form | ReasonForm) -> None:
        """Open a form within the 3 s for which a click counts. Raises `VenueError`."""
        opened = modals.OpenedModal(form.run_id, str(self.here.channel), self.here.thread)
        view = modals.drawn(form, opened)
        await granted(self.locations.client.views_open(trigger_id=self.trigger, view=view))

    async def files(self, files: tuple[File, ...], sent: Sent) -> None:
        """Hand over a transcript: below the message, or else directly.

        A message that only one person sees can't have a file.
        """
        if self.message:
            below = self.here.model_copy(update={"thread": self.here.thread or self.message})
            await self._attach(below, TRANSCRIPT, "transcript", sent, *files)
            return
        channel = await direct(self.locations.client, str(self.here.user))
        alone = self.here.model_copy(update={"channel": channel})
        await self._attach(alone, TRANSCRIPT, "transcript", None, *files)
        await self.tell(line("The transcript is in your direct messages with the council."))

    async def later(self, work: Callable[[], Awaitable[None]]) -> None:
        self.locations.tasks.spawn(self.attempt(work()))

    async def attempt(self, work: Awaitable[object]) -> None:
        if said := await why_not(work):
            await self.say(said)

    def venue(self, run: RunRow) -> SlackVenue:
        return SlackVenue(self.locations.workspace, run.id, self.tell, run.origin)

    def venue_of(self, run: RunRow) -> SlackVenue | None:
        return self.locations.venue_of(run)

    async def below(self, run: RunRow) -> Source:
        return self.here.model_copy(update={"thread": run.origin.thread or run.origin.message})

    async def asked(self, below: Source, *, is_new: bool) -> None:
        """Tell that a follow-up was asked; whoever is in the thread sees the card."""
        if not is_new or self.here.thread != below.thread:
            await self.say(ASKED_BELOW if is_new else ALREADY_ASKED)

    async def _attach(self, where: Source, note: str, key: str, sent: Sent | None, *files: File) -> None:
        venue = SlackVenue(self.locations.workspace, str(self.here.user), self.tell, where)
        await venue.attach(note, unrecorded(key, sent), *files)


async def why_not(work: Awaitable[object]) -> str | None:
    """Do what somebody asked for; return what to say if it can't be done."""
    try:
        await work
    except Refusal as error:
        return str(error)
    except VenueError as error:
        return f"That isn't possible: {error}."
    except Exception:
        number = uuid.uuid4().hex[:8]
        log.exception("slack_listener_failed", id=number)
        return UNEXPECTED.format(number)
    return None
