"""The bot's messages about what was forgotten, on Discord: the real client deletes them, and only them."""

import pytest

from tests.bot.discord.office import Office
from tests.bot.discord.test_past import pressed, told
from tests.discord_server import Channel, Message


def thread_of(card: Message) -> Channel:
    assert card.thread is not None
    return card.thread


def left(team: Office, *channels: Channel) -> list[str]:
    """Return what the bot's messages in these channels say, without those that one person sees."""
    posted = (each for channel in channels for each in team.server.messages(channel, by_bot=True))
    return [message.text for message in posted if not message.ephemeral]


async def forgotten(team: Office, what: str, until: str = "Deleted") -> str:
    """Have something deleted; return what whoever pressed the button reads."""
    asked = await told(team, "forget", what=what)
    gone = await pressed(team, asked, "Delete")
    await team.server.until(lambda: gone.content.startswith(until))
    await team.dispatcher.tasks.settled()
    return gone.content


async def test_another_askers_card_in_the_same_thread_stays(team: Office) -> None:
    """So do its messages there."""
    below = thread_of(await team.asked())
    bob = team.server.member(team.general.guild, "bob")  # pyright: ignore[reportArgumentType] - it is in a guild
    before = len(left(team, below))
    team.server.mention(below, bob, "And then?")
    await team.server.until(lambda: len(left(team, below)) > before)
    await team.dispatcher.tasks.settled()
    theirs = left(team, below)[before:]
    await forgotten(team, "me")
    assert left(team, team.general, below) == theirs


@pytest.mark.parametrize("is_archived", [False, True])
async def test_a_thread_loses_its_messages_and_its_name_and_is_archived_as_before(
    team: Office, *, is_archived: bool
) -> None:
    """The name was the answer's title; Discord may want an archived thread open for that."""
    below = thread_of(await team.asked())
    below.archived = is_archived
    await forgotten(team, "shard")
    assert left(team, team.general, below) == []
    assert (below.name, below.archived) == ("Deleted", is_archived)


async def test_each_message_is_deleted_by_one_request(team: Office) -> None:
    """The mention, too."""
    card = await team.asked()
    ids = {str(message.id) for message in team.server.messages(thread_of(card), by_bot=True)}
    await forgotten(team, "shard")
    route = "DELETE /channels/{channel_id}/messages/{message_id}"
    deletes = [call.path for call in team.server.requests(route)]
    assert {path.rpartition("/")[2] for path in deletes} >= {*ids, str(card.id)}
    assert len(deletes) == len({*deletes})
