"""Questions on Slack: by command, mention, shortcut or form; each becomes a run."""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import Refusal
from bot.service.acknowledgements import LOOKUP_SECONDS
from bot.service.admission.access import Standing
from bot.service.commands import Typed, parse, parse_message
from bot.service.dispatcher import Dispatcher
from bot.service.options import RunOptions
from bot.service.requests.question import Question
from bot.slack import modals
from bot.slack.client import Json, granted
from bot.slack.incoming import Reader
from bot.slack.notices import Tell, ephemerally, line
from bot.slack.typed import plain
from bot.slack.venue import SlackVenue
from bot.slack.workspace import Workspace
from bot.view.wording.platforms import slack as wording
from bot.view.wording.service.follow_ups import ALREADY_ASKED, ASKED_BELOW
from council.brief import Discussion
from council.document.conversation import Source
from storage.journal.journal import RunRow


class Asking:
    """Turns what people send in one workspace into runs; `me` is the bot's user there.

    A question that can't be accepted raises `Refusal`.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        client: AsyncWebClient,
        workspace: Workspace,
        reader: Reader,
        me: str,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._dispatcher = dispatcher
        self._client = client
        self._workspace = workspace
        self._reader = reader
        self._me = me
        self._now = now

    async def ask(self, command: Json, tell: Tell) -> None:
        """Ask what follows `/council`: here or, if it is to be private, in direct messages."""
        channel, user = command["channel_id"], command["user_id"]
        here = self.source(channel, user)
        is_private = parse(plain(command["text"])).is_private
        text, standing, direct = await asyncio.gather(
            self._reader.typed(command["text"]),
            self.standing_of(here),
            self.direct(user) if is_private else _unchanged(channel),
        )
        typed = parse(text)
        options = RunOptions.read(typed.given)
        where = here.model_copy(update={"channel": direct})
        question = Question(
            text=typed.question,
            source=where,
            entry_key=command["trigger_id"],
            standing=standing,
            asker=command["user_name"],
            options=options,
            asked_in=here if is_private else None,
        )
        if await self._take(question, tell) and question.source.channel != channel:
            self._dispatcher.tasks.spawn(tell(line(wording.IN_PRIVATE)))

    async def ask_about(
        self,
        message: Json,
        here: Source,
        entry_key: str,
        asker: str | None,
        nothing: str,
        tell: Tell,
        context: Discussion,
    ) -> None:
        """Take a message as the question, with its text files; answer `nothing` to an empty one.

        Options count in what somebody writes to the bot, not in a message that a shortcut picks.
        """

        async def name() -> str:
            return (await self._reader.person(str(here.user))).name if asker is None else asker

        (attachments, left_out), text, called, standing = await asyncio.gather(
            self._reader.files(message),
            self._reader.typed(message.get("text", ""), self._me),
            name(),
            self.standing_of(here),
        )
        typed = parse_message(text) if asker is None else Typed(text, {})
        if not typed.question and not attachments:
            raise Refusal(" ".join(filter(None, (nothing, left_out))))
        question = Question(
            text=typed.question,
            source=here,
            entry_key=entry_key,
            standing=standing,
            asker=called,
            attachments=attachments,
            context=None if here.thread is None or is_direct(here) else context,
            options=RunOptions.read(typed.given),
        )
        if await self._take(question, tell) and left_out:
            self._dispatcher.tasks.spawn(tell(line(left_out)))

    async def follow_up(self, run: RunRow, here: Source, asker: str, view: Json) -> None:
        """Ask a form's question in the conversation's thread."""
        below = here.model_copy(update={"thread": run.origin.thread or run.origin.message})
        text, profile = modals.question(view)
        question = self._dispatcher.follow_ups.question(
            run,
            below,
            text,
            profile=profile,
            entry_key=f"form {view['id']}",  # one form asks one question, however often it is sent
            asker=asker,
            standing=await self.standing_of(below),
            context=None if is_direct(below) else Discussion(until=f"{self._now():.6f}"),
        )
        is_new = await self._take(question, ephemerally(self._client, below))
        said = ASKED_BELOW if is_new else ALREADY_ASKED
        if not is_new or here.thread != below.thread:  # whoever is in the thread sees the card
            self._dispatcher.tasks.spawn(ephemerally(self._client, here)(line(said)))

    async def ask_again(self, run: RunRow, here: Source, entry_key: str, asker: str, tell: Tell) -> None:
        """Ask a run's question again, with its options; the same part of a thread is read again."""
        context = run.brief.context if here.thread else None
        question = Question(
            text=run.brief.question,
            source=here,
            entry_key=entry_key,
            standing=await self.standing_of(here),
            asker=asker,
            attachments=run.brief.attachments,
            context=context.without_messages if context else None,
            options=RunOptions.of(run.brief.profile),
        )
        await self._take(question, tell)

    def venue_of(self, run: RunRow) -> SlackVenue | None:
        """Return where a run is shown; `None` if it is another workspace's."""
        where = run.origin
        if where.workspace != self._workspace.team:
            return None
        return SlackVenue(self._workspace, run.id, ephemerally(self._client, where), where)

    async def standing_of(self, here: Source) -> Standing:
        """Return what decides whether somebody may ask here. Raises `Refusal` if Slack doesn't say."""
        groups = (await self._dispatcher.in_force(here)).groups
        return replace(
            standing(here), memberships=await self._reader.memberships(str(here.user), groups)
        )

    async def _take(self, question: Question, tell: Tell) -> bool:
        """Pass a question to the dispatcher; return whether it is new."""
        run = await self._dispatcher.accept(question)
        if run is not None:
            self._dispatcher.tasks.begin(run, SlackVenue(self._workspace, run.id, tell, question.source))
        return run is not None

    async def direct(self, user: str) -> str:
        """Return the channel of somebody's direct messages with the bot."""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                opened = await granted(self._client.conversations_open(users=user))
        except TimeoutError as error:
            raise Refusal(wording.TOO_SLOW) from error
        return opened["channel"]["id"]

    def source(self, channel: str, user: str, thread: str | None = None) -> Source:
        """Return where somebody is in this workspace."""
        return Source(
            platform="slack", workspace=self._workspace.team, channel=channel, thread=thread, user=user
        )


async def _unchanged(channel: str) -> str:
    return channel


def is_direct(here: Source) -> bool:
    """Return whether this is somebody's direct messages with the bot."""
    return str(here.channel).startswith("D")


def standing(here: Source) -> Standing:
    """Return what an event says about where somebody is."""
    return Standing(
        workspace=here.workspace,
        places=frozenset({str(here.channel)}),
        is_direct=is_direct(here),
    )
