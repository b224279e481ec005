"""Where people and runs are in one workspace: a run's venue, somebody's standing, direct messages."""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
from dataclasses import dataclass, replace

from slack_sdk.web.async_client import AsyncWebClient

from bot.actions import Actor
from bot.errors import Refusal
from bot.service.acknowledgements import LOOKUP_SECONDS
from bot.service.admission.access import Requester
from bot.service.dispatcher import Dispatcher
from bot.service.run_tasks import RunTasks
from bot.slack.client import granted
from bot.slack.incoming import Reader
from bot.slack.notices import ephemerally
from bot.slack.venue import SlackVenue, is_direct
from bot.slack.workspace import Workspace
from council.document.conversation import Source
from storage.journal.rows import RunRow


@dataclass(frozen=True, slots=True)
class Locations:
    """Finds where people and runs are; `client` is for look-ups and replies."""

    dispatcher: Dispatcher
    client: AsyncWebClient
    workspace: Workspace
    reader: Reader

    @property
    def tasks(self) -> RunTasks:
        """What keeps background work."""
        return self.dispatcher.tasks

    def source(self, channel: str, user: str, thread: str | None = None) -> Source:
        """Return where somebody is in this workspace."""
        return Source(
            platform="slack", workspace=self.workspace.team, channel=channel, thread=thread, user=user
        )

    def venue_of(self, run: RunRow) -> SlackVenue | None:
        """Return where a run is shown; `None` if it is another workspace's."""
        where = run.origin
        if where.workspace != self.workspace.team:
            return None
        return SlackVenue(self.workspace, run.id, ephemerally(self.client, where), where)

    async def standing_of(self, here: Source) -> Requester:
        """Return what decides whether somebody may ask here. Raises `Refusal` if Slack doesn't say."""
        groups = (await self.dispatcher.in_force(here)).groups
        return replace(standing(here), memberships=await self.reader.memberships(str(here.user), groups))

    def actor(self, here: Source, name: str) -> Actor:
        """Return whoever acts."""

        async def is_admin() -> bool:
            return (await self.reader.person(str(here.user))).is_admin

        return Actor(name=name, here=standing(here), standing=self.standing_of, is_admin=is_admin)


async def direct(client: AsyncWebClient, user: str) -> str:
    """Return the channel of somebody's direct messages with the bot."""
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
