"""Reads the human thread in which a question was asked on Slack.

Source: https://docs.slack.dev/reference/methods/conversations.replies
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

from collections.abc import Awaitable, Callable

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import NotAllowed, NotTaken
from bot.service.delivery.outbox import Lane, Outbox, Urgency
from bot.service.requests import discussion
from bot.service.requests.discussion import Written
from bot.slack.client import Json, granted
from bot.slack.incoming import Reader, file_name, file_size, plain
from bot.slack.manifest import THREADS
from bot.slack.workspace import AT_ONCE, BURST, TIER_3
from bot.view.wording.platforms import slack as wording
from council.brief import Attachment, Brief, Discussion
from council.document.conversation import Source

PAGE = 1000
MOST_PAGES = 5
"""Replies come oldest first, so all pages have to be read to see the last."""
SAID = (None, "bot_message", "file_share", "me_message", "thread_broadcast")
"""Subtypes of messages that somebody wrote; others tell of joins, renamings, and the like."""


class DiscussionReader:
    """Reads threads with the bot's own token; `me` is what `auth.test` says about the bot."""

    def __init__(self, client: AsyncWebClient, outbox: Outbox, reader: Reader, me: Json) -> None:
        self._client = client
        self._outbox = outbox
        self._reader = reader
        self._me = me

    async def read(self, run: str, where: Source, brief: Brief, room: int) -> Discussion:
        """Read the thread in which a question was asked, as much as fits into `room` tokens."""
        context = brief.context or Discussion(until="")
        lane = Lane(f"{where.workspace}/conversations.replies", TIER_3, BURST, AT_ONCE)

        async def page(cursor: str | None) -> Json:
            async def request() -> Json:
                return await granted(
                    self._client.conversations_replies(
                        channel=str(where.channel),
                        ts=str(where.thread),
                        latest=context.until,
                        limit=PAGE,
                        cursor=cursor,
                    )
                )

            return await self._outbox.send(
                lane, request, run=run, urgency=lambda: Urgency.PROGRESS, believes_at_once=True
            )

        thread = _SlackThread(page, self._reader, self._me, context)
        return await discussion.read(thread, brief, context, room)


class _SlackThread:
    """One thread, which `page` returns by cursor; a `bot.service.requests.discussion.Thread`."""

    platform = "Slack"

    def __init__(
        self,
        page: Callable[[str | None], Awaitable[Json]],
        reader: Reader,
        me: Json,
        context: Discussion,
    ) -> None:
        self._page = page
        self._reader = reader
        self._me = me
        self._context = context

    async def messages(self) -> tuple[list[Written[Json]], bool]:
        """Return what was written in the thread before the question, oldest first."""
        if not self._reader.scopes & THREADS:
            raise NotAllowed(wording.lacks_scopes(sorted(THREADS)))
        written: list[Written[Json]] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._page(cursor)
            messages: list[Json] = page.get("messages") or []
            written += map(self._written, filter(self._is_theirs, messages))
            metadata: Json = page.get("response_metadata") or {}
            cursor = metadata.get("next_cursor")
            if not cursor:
                return [each for each in written if each.text or each.files], False
        raise NotAllowed(wording.TOO_LONG)

    def _is_theirs(self, message: Json) -> bool:
        mine = message.get("user") == self._me.get("user_id") or (
            message.get("bot_id") or ""
        ) == self._me.get("bot_id")
        # The range is Slack's to keep; a message that holds the question is never its own context.
        before = message.get("ts", "") < self._context.until
        is_question = message.get("ts") == self._context.question
        return before and not mine and not is_question and message.get("subtype") in SAID

    def _written(self, message: Json) -> Written[Json]:
        shown = message.get("text") or "\n".join(
            each.get("text") or each.get("fallback") or "" for each in message.get("attachments") or ()
        )
        bot: Json = message.get("bot_profile") or {}
        return Written(
            author=str(message.get("user") or message.get("bot_id") or ""),
            text=plain(shown, str(self._me.get("user_id"))),
            files=message.get("files") or (),
            name=message.get("username") or bot.get("name"),
        )

    async def name(self, author: str) -> str:
        """Return somebody's name; nothing if the bot may not ask."""
        return (await self._reader.person(author)).name

    def file_name(self, file: Json) -> str:
        """Return a file's name."""
        return file_name(file)

    def file_size(self, file: Json) -> int:
        """Return a file's size in bytes."""
        return file_size(file)

    async def file(self, file: Json) -> Attachment | NotTaken:
        """Fetch a text file."""
        if "files:read" not in self._reader.scopes:
            return NotTaken(file_name(file), "", wording.NO_FILES_SCOPE)
        return await self._reader.file(file)
