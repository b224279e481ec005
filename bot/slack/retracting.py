"""Deletes the bot's messages and files in a workspace.

Sources: https://docs.slack.dev/reference/methods/chat.delete (a bot's own messages alone),
https://docs.slack.dev/reference/methods/files.delete,
https://docs.slack.dev/reference/methods/files.info (where a file was shared; needs `files:read`)
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

from collections.abc import Awaitable, Callable
from functools import partial

import structlog
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import VenueError
from bot.service.delivery.outbox import Urgency
from bot.slack.client import Json, granted
from bot.slack.errors import code_of
from bot.slack.workspace import TIER_3, TIER_4, Workspace
from storage.work import Work

log = structlog.get_logger()

NO_LONGER_THERE = frozenset({"file_deleted", "file_not_found", "message_not_found"})
"""Codes for what is deleted already; any other says that it is out of the bot's reach."""

Call = Callable[[], Awaitable[AsyncSlackResponse]]


class Retractor:
    """Deletes what is listed with the bot's token, through the outbox."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._client = workspace.client

    async def retract(self, one: Work) -> None:
        """Delete a message, or a file with the message that shows it. Raises `VenueError`."""
        if not one.item.startswith("F"):
            await self._delete(one.channel, one.item)
            return
        for message in await self._shows(one.channel, one.item):
            await self._delete(one.channel, message)
        await self._call("files.delete", TIER_3, partial(self._client.files_delete, file=one.item))

    async def _delete(self, channel: str, message: str) -> None:
        call = partial(self._client.chat_delete, channel=channel, ts=message)
        await self._call("chat.delete", TIER_3, call)

    async def _shows(self, channel: str, file: str) -> list[str]:
        """Return the messages that show a file there; none where the bot may not ask."""
        try:
            found = await self._call("files.info", TIER_4, partial(self._client.files_info, file=file))
        except VenueError as error:  # the file is deleted in any case, and its message is one line
            log.info("file_not_found_in_messages", reason=error)
            return []
        about: Json = found.get("file") or {}
        shares: dict[str, dict[str, list[Json]]] = about.get("shares") or {}
        here = (kind.get(channel, []) for kind in shares.values())
        return [str(share["ts"]) for shown in here for share in shown]

    async def _call(self, method: str, interval: float, call: Call) -> Json:
        async def request() -> Json:
            try:
                return await granted(call())
            except VenueError as error:
                cause = error.__cause__
                if isinstance(cause, Exception) and code_of(cause) in NO_LONGER_THERE:
                    return {}
                raise

        return await self._workspace.outbox.send(
            self._workspace.lane(method, interval),
            request,
            run="retracting",
            urgency=Urgency.THREAD,
            believes_at_once=True,
        )
