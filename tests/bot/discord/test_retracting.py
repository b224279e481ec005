"""The bot's messages about what was forgotten, on Discord: the real client deletes them, and only them."""

from bot.view.wording.discord import DELETED_THREAD
from storage.scope import Scope
from tests.bot.discord.office import HELD, Office
from tests.bot.discord.test_past import pressed, told
from tests.discord_server import Channel, Message, Permission


def thread_of(card: Message) -> Channel:
    """Return the thread below a card."""
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


async def test_card_thread_and_copies_are_deleted_and_peoples_words_stay(team: Office) -> None:
    """The thread stays for them, without the name that was the answer's title."""
    card = await team.asked()
    below = thread_of(card)
    listed = await told(team, "history")
    shown = await pressed(team, listed, "1")
    await pressed(team, shown, "Share here")
    await pressed(team, listed, "Share here")
    assert len(left(team, team.general)) == 3
    said = team.server.say(below, team.ada, "I disagree.")
    heard = await forgotten(team, "shard")
    assert heard == "Deleted \u201cShard or scale up?\u201d and the council's messages about it."
    assert left(team, team.general, below) == []
    assert team.server.messages(below) == [said]
    assert (below.name, below.archived) == (DELETED_THREAD, False)
    assert await team.library.database.read("SELECT * FROM retractions") == []
    assert await team.library.database.read("SELECT * FROM copies") == []


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


async def test_a_run_under_way_is_stopped_and_nothing_of_it_stays(team: Office) -> None:
    """Whatever it posts until it is over is deleted, too."""
    team.council.held = {HELD["Final answer"]}
    card = await team.ask()
    await team.server.until(lambda: card.thread is not None)
    await forgotten(team, "me")
    await team.dispatcher.tasks.settled()
    scope = Scope("discord", str(team.general.guild and team.general.guild.id), str(team.general.id))
    assert (await team.library.forgetting.select.channel(scope)).is_empty
    await team.dispatcher.retracted("discord", "")
    assert left(team, team.general, thread_of(card)) == []


async def test_messages_in_an_archived_thread_are_deleted_and_it_is_archived_again(team: Office) -> None:
    """Discord may want it open for that."""
    below = thread_of(await team.asked())
    below.archived = True
    await forgotten(team, "shard")
    assert left(team, team.general, below) == []
    assert (below.name, below.archived) == (DELETED_THREAD, True)


async def test_a_missing_permission_is_told_and_the_messages_stay_listed(team: Office) -> None:
    """As ids, without a word of what was deleted."""
    await team.asked()
    asked = await told(team, "forget", what="shard")
    team.server.overwrite(team.general, team.server.bot, deny=Permission.VIEW_CHANNEL)
    gone = await pressed(team, asked, "Delete")
    await team.server.until(lambda: gone.content.startswith("Deleted"))
    assert gone.content.startswith(
        "Deleted \u201cShard or scale up?\u201d. 9 messages couldn't be deleted: "
        "the bot has no access to this channel. The council tries again every hour for seven days"
    )
    rows = await team.library.database.read("SELECT * FROM retractions")
    assert len(rows) == 9
    assert "hard" not in "".join(str(dict(row)) for row in rows)


async def test_cancel_deletes_nothing(team: Office) -> None:
    """It takes the place of the question."""
    card = await team.asked()
    asked = await told(team, "forget", what="shard")
    assert [part["label"] for part in asked.buttons] == ["Delete", "Cancel"]
    assert await pressed(team, asked, "Cancel") is asked
    assert asked.text == "Nothing was deleted."
    assert not card.deleted


async def test_each_message_is_deleted_by_one_request(team: Office) -> None:
    """The mention and the transcript, too."""
    card = await team.asked()
    ids = {str(message.id) for message in team.server.messages(thread_of(card), by_bot=True)}
    await forgotten(team, "shard")
    route = "DELETE /channels/{channel_id}/messages/{message_id}"
    deletes = [call.path for call in team.server.requests(route)]
    assert {path.rpartition("/")[2] for path in deletes} >= {*ids, str(card.id)}
    assert len(deletes) == len({*deletes})
