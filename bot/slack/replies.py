"""How people are answered on Slack: by a response URL, below a card, or alone in a thread.

A reply is sent in the background: Bolt acknowledges an event once its listener has ended.
Source: https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
"""

# pyright: reportUnknownMemberType=false
# slack-bolt and slack-sdk annotate their dictionaries and keyword arguments without types.

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, cast

import aiohttp
import structlog
from slack_bolt.async_app import AsyncRespond
from slack_sdk.web.async_client import AsyncWebClient

from bot.actions import Actor
from bot.errors import Refusal, VenueError
from bot.past.pages import Choice, Link, Sheet, Verb, shared
from bot.service.access import Requester
from bot.service.delivery.chat import File, Part, Response, Spot
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import Post, Poster, Sent, unrecorded
from bot.service.delivery.venue import Venue
from bot.service.dispatcher import Dispatcher, Form, ReasonForm
from bot.service.run_tasks import RunTasks
from bot.service.waits import LOOKUP_SECONDS
from bot.slack import text as slack_text
from bot.slack.chat import SlackChat, Tell, ephemerally, is_direct, line
from bot.slack.client import Json, granted
from bot.slack.incoming import Reader
from bot.slack.text import OpenedModal, actions, modal
from bot.view.message import Message
from bot.view.wording.commands import ALREADY_ASKED, ASKED_BELOW, TRANSCRIPT
from bot.view.wording.failures import UNEXPECTED
from bot.view.wording.past import CUT
from council.document.conversation import Source
from storage.index.rows import IndexRow
from storage.journal.rows import RunRow

log = structlog.get_logger()

USES = 5
"""How many messages a response URL takes, within half an hour."""
PRESSED = re.compile(r"past_(?:turn|see|share|transcript|ask|forget|cancel|help)_\d+")
"""The ids under which clicks arrive; no two in a message are the same."""


def verb(action_id: str) -> Verb:
    return cast("Verb", action_id.split("_")[1])


async def show_sheet(respond: AsyncRespond, sheet: Sheet, *, turned: bool = False) -> None:
    """Show a sheet to whoever asked, in place of the page they `turned`."""
    pages = await asyncio.to_thread(_pages, sheet)
    for blocks in pages:
        in_place = turned and len(pages) == 1
        text = slack_text.fallback(sheet.message)
        await say(respond, text, blocks, response_type="ephemeral", replace_original=in_place)


async def parts(sheet: Sheet, by: str) -> list[Part]:
    """Return what the whole channel sees of a sheet, message by message."""
    public = shared(sheet, by)
    text = slack_text.fallback(public.message)
    return [Part(text, (*blocks,)) for blocks in await asyncio.to_thread(_pages, public)]


def _pages(sheet: Sheet) -> list[list[Json]]:
    *before, last = slack_text.pages(sheet.message, USES, CUT)
    return [*before, [*last, *_buttons(sheet.choices)]]


def _buttons(choices: tuple[Choice, ...]) -> list[Json]:
    return actions(
        (f"past_{choice.verb}_{number}", choice.about, choice.label)
        for number, choice in enumerate(choices)
    )


def linked(chat: SlackChat) -> Link:

    def link(row: IndexRow) -> str | None:
        if row.message is None:
            return None
        return chat.link(Spot(str(row.channel), row.thread), row.message)

    return link


@dataclass(frozen=True, slots=True)
class SlackPlaces:
    """Finds where people and runs are; `client` is for look-ups and replies."""

    dispatcher: Dispatcher
    client: AsyncWebClient
    chat: SlackChat
    reader: Reader

    @property
    def tasks(self) -> RunTasks:
        return self.dispatcher.tasks

    def source(self, channel: str, user: str, thread: str | None = None) -> Source:
        return Source(
            platform="slack", workspace=self.chat.team, channel=channel, thread=thread, user=user
        )

    def venue_of(self, run: RunRow) -> Venue | None:
        """Return where a run is shown; `None` if it is another workspace's."""
        if run.origin.workspace != self.chat.team:
            return None
        return Venue.of(self.chat, run)

    async def standing_of(self, here: Source) -> Requester:
        """Return what decides whether somebody may ask here. Raises `Refusal` if Slack doesn't say."""
        groups = (await self.dispatcher.in_force(here)).groups
        return replace(standing(here), memberships=await self.reader.memberships(str(here.user), groups))

    def actor(self, here: Source, name: str) -> Actor:

        async def is_admin() -> bool:
            return (await self.reader.person(str(here.user))).is_admin

        return Actor(name=name, here=standing(here), standing=self.standing_of, is_admin=is_admin)


async def direct(client: AsyncWebClient, user: str) -> str:
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            opened = await granted(client.conversations_open(users=user))
    except TimeoutError as error:
        raise Refusal(
            "Slack took too long to open your direct messages. Nothing was done. Try again."
        ) from error
    return opened["channel"]["id"]


def standing(here: Source) -> Requester:
    """Return what an event says about where somebody is."""
    return Requester(
        workspace=here.workspace,
        places=frozenset({str(here.channel)}),
        is_direct=is_direct(here),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackReply:
    """Answers somebody `here`, whom `tell` reaches; a `bot.actions.Responder`.

    What comes from a command or a button can `respond` by its URL, and open a form by its `trigger`.
    `name` is what the person is called. `message` is the one whose button was pressed; `is_ephemeral`
    says that only they see it.
    """

    locations: SlackPlaces
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
            shown = show_sheet(self.respond, sheet, turned=turned and self.is_ephemeral)
        self.locations.tasks.spawn(shown)

    async def share(self, sheet: Sheet, sent: Sent) -> None:
        """Show the whole channel what one person saw.

        It is posted with the bot's token: a response URL doesn't say which message it made.
        """

        async def share() -> None:
            poster = Poster(self.locations.chat, str(self.here.user))
            for number, part in enumerate(await parts(sheet, self.name)):
                post = Post(key=f"shared.{number}", part=part, urgency=Urgency.THREAD)
                receipt = unrecorded(post.key, sent)
                await poster.post(post, Spot(str(self.here.channel)), receipt)

        await self.later(share)

    async def form(self, form: Form | ReasonForm) -> None:
        """Open a form within the 3 s for which a click counts. Raises `VenueError`."""
        opened = OpenedModal(form.run_id, str(self.here.channel), self.here.thread)
        view = modal(form, opened)
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

    def venue(self, run: RunRow) -> Venue:
        async def answer(text: str) -> bool:
            await self.tell(line(text))
            return True

        return Venue.of(self.locations.chat, run, Response(answer))

    def venue_of(self, run: RunRow) -> Venue | None:
        return self.locations.venue_of(run)

    async def below(self, run: RunRow) -> Source:
        return self.here.model_copy(update={"thread": run.origin.thread or run.origin.message})

    async def asked(self, below: Source, *, is_new: bool) -> None:
        """Tell that a follow-up was asked; whoever is in the thread sees the card."""
        if not is_new or self.here.thread != below.thread:
            await self.say(ASKED_BELOW if is_new else ALREADY_ASKED)

    async def _attach(self, where: Source, note: str, key: str, sent: Sent | None, *files: File) -> None:
        venue = Venue(self.locations.chat, str(self.here.user), where)
        await venue.attach(note, unrecorded(key, sent), *files)


def privately(respond: AsyncRespond) -> Tell:

    async def tell(message: Message) -> None:
        text = slack_text.fallback(message)
        for blocks in await asyncio.to_thread(slack_text.pages, message, USES, CUT):
            await say(respond, text, blocks, response_type="ephemeral", replace_original=False)

    return tell


async def say(respond: AsyncRespond, text: str, blocks: list[Json], **how: Any) -> None:  # noqa: ANN401 - Bolt's own arguments
    """Send a message to a response URL. A failure is only logged."""
    try:
        answer = await respond(text, blocks, unfurl_links=False, unfurl_media=False, **how)
    except (aiohttp.ClientError, TimeoutError) as error:
        log.info("person_not_told", reason=error)
        return
    if answer.status_code != HTTPStatus.OK:
        log.info("person_not_told", status=answer.status_code)


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
