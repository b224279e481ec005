"""Past answers on Discord: the real client, and people who press what they see and what they forge."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.bot.discord.office import Office, office
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import Channel, DiscordServer, Message, Permission, User

QUESTION = "Shard or scale up?"
ANSWER = "The council's answer, written by chair/man."


@pytest_asyncio.fixture
async def team(tmp_path: Path) -> AsyncIterator[Office]:
    """A team with its bot, and one answer in its channel."""
    council = ScriptedCouncil(held={"stage3.1:chair/man:chairman"})
    async with DiscordServer() as server, office(server, tmp_path, council) as place, place.bot():
        await place.ask(QUESTION)
        # Real models take longer than a thread does: the answer is saved with its address.
        while not await place.library.database.read("SELECT 1 FROM runs WHERE origin ->> 'thread'"):
            await asyncio.sleep(0.01)
        council.release("stage3.1:chair/man:chairman")
        await place.dispatcher.tasks.settled()
        yield place


async def told(team: Office, command: str, channel: Channel | None = None, **options: object) -> Message:
    """Return a command, and what its user alone is shown."""
    asked = team.server.slash(channel or team.general, team.ada, f"council-{command}", **options)
    note = (await asked.acknowledged()).message
    assert note is not None
    assert note.visible_to is team.ada
    return note


async def pressed(team: Office, note: Message, label: str, user: User | None = None) -> Message:
    """Press a button; return what that shows."""
    [custom_id] = [part["custom_id"] for part in note.buttons if part["label"] == label]
    shown = (await team.server.click(note, custom_id, user or team.ada).acknowledged()).message
    assert shown is not None
    return shown


async def forged(team: Office, channel: Channel, custom_id: str) -> Message:
    """Press a button that somebody put below a message that all see; return what that shows."""
    posted = team.server.say(channel, team.server.bot, "look")
    button = {"type": 2, "style": 2, "label": "x", "custom_id": custom_id}
    posted.now.components.append({"type": 1, "components": [button]})
    shown = (await team.server.click(posted, custom_id, team.ada).acknowledged()).message
    assert shown is not None
    assert shown is not posted
    await team.server.until(lambda: shown.text)
    return shown


async def test_a_thread_belongs_to_its_channel_a_private_one_to_itself(team: Office) -> None:
    """As the questions asked there do."""
    open_thread = team.server.thread(team.general, "Talk", team.ada)
    private = team.server.thread(team.general, "Secret", team.ada, private=True)
    assert QUESTION in (await told(team, "history", open_thread)).text
    assert QUESTION not in (await told(team, "history", private)).text


async def test_whoever_may_not_write_may_not_share(team: Office) -> None:
    """They are told so; a page is turned in place only where they alone see it."""
    listed = await told(team, "history")
    team.server.overwrite(team.general, team.ada, deny=Permission.SEND_MESSAGES)
    said = (await pressed(team, listed, "Share here")).content
    assert said == "You can't write in this channel, so you can't share here."
    card = await forged(team, team.general, "past:turn:history:5:")
    assert card.visible_to is team.ada


async def test_answers_are_listed_while_typing_where_they_were_asked(team: Office) -> None:
    """By any word of the title, with what tells it from its likes."""

    async def listed(channel: Channel, typed: str) -> list[dict[str, str]]:
        asked = team.server.autocomplete(channel, team.ada, "council-show", "answer", typed)
        return (await asked.acknowledged()).choices

    [choice] = await listed(team.general, "scal")
    assert choice["name"] == f"{QUESTION} \u00b7 2026-01-20 10:30 UTC \u00b7 id {choice['value'][:8]}"
    assert ANSWER in (await told(team, "show", answer=choice["value"])).text
    elsewhere = team.server.channel(team.general.guild, "elsewhere")  # pyright: ignore[reportArgumentType] - it is in a guild
    other = team.server.guild("Another team")
    team.server.join(other, team.ada)
    for channel in (elsewhere, team.server.channel(other, "general"), team.server.dm(team.ada)):
        assert await listed(channel, "") == []
