"""Reads the human thread in which a question was asked on Slack.

Source: https://docs.slack.dev/reference/methods/conversations.replies
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import NotAllowed
from bot.service.delivery.outbox import Lane, Outbox, Urgency
from bot.service.requests import discussion
from bot.service.requests.discussion import Written
from bot.slack.client import Json, granted
from bot.slack.incoming import Reader, attached
from bot.slack.manifest import THREADS
from bot.slack.typed import plain, unnamed, words
from bot.slack.workspace import AT_ONCE, BURST, TIER_3
from bot.view.wording.figures import listing
from council.brief import Brief, Discussion, SentFile
from council.document.conversation import Source
from council.prompts.opening import MOST_MESSAGES

PAGE = 1000
MOST_PAGES = 5
"""Replies come oldest first, so all pages have to be read to see the last."""
SAID = (None, "bot_message", "file_share", "me_message", "message_share", "thread_broadcast")
"""Subtypes of messages that somebody wrote; others tell of joins, renamings, and the like."""


@dataclass(frozen=True, slots=True)
class DiscussionReader:
    """Reads threads with the bot's own token; `me` is what `auth.test` says about the bot."""

    client: AsyncWebClient
    outbox: Outbox
    reader: Reader
    me: Json

    async def read(self, run: str, where: Source, brief: Brief, room: int) -> Discussion:
        """Read the thread in which a question was asked, as much as fits into `room` tokens."""
        context = brief.context or Discussion(until="")
        lane = Lane(f"{where.workspace}/conversations.replies", TIER_3, BURST, AT_ONCE)

        async def page(cursor: str | None) -> Json:
            async def request() -> Json:
                return await granted(
                    self.client.conversations_replies(
                        channel=str(where.channel),
                        ts=str(where.thread),
                        latest=context.until,
                        limit=PAGE,
                        cursor=cursor,
                    )
                )

            return await self.outbox.send(
                lane, request, run=run, urgency=Urgency.PROGRESS, believes_at_once=True
            )

        thread = _SlackThread(page, self.reader, self.me, context)
        return await discussion.read(thread, brief, context, room)


@dataclass(frozen=True, slots=True)
class _SlackThread:
    """One thread, which `page` returns by cursor; a `bot.service.requests.discussion.HumanThread`."""

    page: Callable[[str | None], Awaitable[Json]]
    reader: Reader
    me: Json
    context: Discussion
    platform = "Slack"

    async def messages(self) -> tuple[list[Written[Json]], bool]:
        """Return what was written in the thread before the question, oldest first."""
        if not self.reader.scopes & THREADS:
            raise NotAllowed(f"the scopes {listing(sorted(THREADS))} are missing")
        theirs: list[Json] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self.page(cursor)
            messages: list[Json] = page.get("messages") or []
            theirs += filter(self._is_theirs, messages)
            metadata: Json = page.get("response_metadata") or {}
            cursor = metadata.get("next_cursor")
            if not cursor:
                return await self._written(theirs), False
        raise NotAllowed("it is too long")

    def _is_theirs(self, message: Json) -> bool:
        mine = message.get("user") == self.me.get("user_id") or (
            message.get("bot_id") or ""
        ) == self.me.get("bot_id")
        # The range is Slack's to keep; a message that holds the question is never its own context.
        before = message.get("ts", "") < self.context.until
        is_question = message.get("ts") == self.context.question
        return before and not mine and not is_question and message.get("subtype") in SAID

    async def _written(self, messages: list[Json]) -> list[Written[Json]]:
        """Return what was written; names and files are looked up where it may be read, newest first."""
        me = str(self.me.get("user_id"))
        newest = messages[-MOST_MESSAGES:]
        mentioned = (one for each in reversed(newest) for one in unnamed(_said(each), me))
        names, files = await asyncio.gather(
            self.reader.names(mentioned),
            self.reader.known([file for each in newest for file in attached(each)]),
        )
        known = {str(file.get("id")): file for file in files}
        written: list[Written[Json]] = []
        for message in messages:
            bot: Json = message.get("bot_profile") or {}
            written.append(
                Written(
                    author=str(message.get("user") or message.get("bot_id") or ""),
                    text=plain(_said(message), me, names),
                    files=[known.get(str(file.get("id")), file) for file in attached(message)],
                    name=message.get("username") or bot.get("name"),
                )
            )
        return [each for each in written if each.text or each.files]

    async def name(self, author: str) -> str:
        """Return somebody's name; nothing if the bot may not ask."""
        return (await self.reader.person(author)).name

    def sent(self, file: Json) -> SentFile:
        """Return a file as the run fetches it."""
        return self.reader.sent(file)


def _said(message: Json) -> str:
    return "\n".join(words(message))
