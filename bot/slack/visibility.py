"""Checks whether the asker can still see the channel, before an answer goes to them directly.

Source: https://docs.slack.dev/reference/methods/conversations.members
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

from bot.errors import Gone, NotAllowed
from bot.service.delivery.outbox import Urgency
from bot.slack.client import Json, granted
from bot.slack.workspace import TIER_4, Workspace

MEMBERS_A_PAGE = 1000


async def require_sight(workspace: Workspace, run: str, channel: str, asker: str) -> None:
    """Raise `NotAllowed` unless the asker certainly sees the place of the run."""
    if channel.startswith("D"):
        raise NotAllowed("it was asked in direct messages")
    lane = workspace.lane("conversations.members", TIER_4)
    cursor = ""
    while True:

        async def request(cursor: str = cursor) -> Json:
            return await granted(
                workspace.client.conversations_members(
                    channel=channel, cursor=cursor, limit=MEMBERS_A_PAGE
                )
            )

        try:
            page = await workspace.outbox.send(lane, request, run=run, urgency=Urgency.THREAD)
        except Gone as error:
            raise NotAllowed(str(error)) from error
        if asker in page["members"]:
            return
        metadata: Json = page.get("response_metadata") or {}
        cursor = str(metadata.get("next_cursor") or "")
        if not cursor:
            raise NotAllowed("the asker is no longer in the channel")
