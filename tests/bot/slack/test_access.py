"""Who may ask on Slack, through the real client."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bot.service.access import Access
from tests.bot.slack.test_bot import Place, at_work

GROUP = "S0000001"
UNKNOWN = "Slack doesn't say who is in the user groups that may ask, so your question wasn't asked."


def admit(place: Place, **access: object) -> None:
    """Put these lists in force."""
    place.dispatcher.channels.operator = replace(
        place.dispatcher.channels.operator, access=Access.model_validate(access)
    )


@pytest.mark.parametrize(
    ("slow", "beside"),
    [("usergroups.users.list", "conversations.open"), ("users.info", "usergroups.users.list")],
)
async def test_groups_are_looked_up_beside_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str, beside: str
) -> None:
    """For a private command and for a mention: one after the other may take longer than Slack waits."""
    monkeypatch.setattr("bot.slack.incoming.LOOKUP_SECONDS", 60.0)
    async with at_work(tmp_path) as place:
        place.slack.team.groups[GROUP] = {place.ada.id}
        admit(place, allow={"groups": [GROUP]})
        fault = place.slack.fail(slow, breaks="hang")
        if beside == "conversations.open":
            command = place.slack.slash(place.general, place.ada, "/council", "--private Shard?")
        else:
            command = place.slack.mention(place.general, place.ada, "Shard?")
        asking = asyncio.ensure_future(command)
        await place.slack.until(lambda: fault.hits)
        await place.slack.until(lambda: place.slack.calls(beside))
        fault.release()
        await asking
        await place.dispatcher.tasks.settled()


async def test_without_the_scope_nobody_is_admitted(tmp_path: Path) -> None:
    """The scope's name is in the message; the log says so, too."""
    async with at_work(tmp_path, without=frozenset({"usergroups:read"})) as place:
        place.slack.team.groups[GROUP] = {place.ada.id}
        admit(place, deny={"groups": [GROUP]})
        await place.slack.slash(place.general, place.bob, "/council", "Shard?")
        said = await place.until_told(place.bob)
        assert said.startswith(UNKNOWN)
        assert "usergroups:read" in said
        assert not place.cards(place.general)
