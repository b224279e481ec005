"""The council reads the human thread in which it is asked on Discord, where it may."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.bot.discord.office import Office, office
from tests.bot.prompts import read_by
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import Channel, DiscordServer, Permission, User
from tests.discord_server.state import Intent

NAMES = ("Ada", "Bob", "Cleo", "Dan")


@pytest_asyncio.fixture
async def open_server() -> AsyncIterator[DiscordServer]:
    """A Discord that allows the bot the message content intent."""
    async with DiscordServer(privileged=Intent.MESSAGE_CONTENT) as running:
        running.world.patience = 60
        yield running


@pytest_asyncio.fixture
async def reading(
    open_server: DiscordServer, tmp_path: Path, council: ScriptedCouncil
) -> AsyncIterator[Office]:
    """A team whose bot may read threads."""
    async with office(open_server, tmp_path, council) as place, place.bot(reads_messages=True):
        yield place


def discuss(
    team: Office, number: int, *, private: bool = False, on_message: bool = True
) -> tuple[Channel, list[User]]:
    """Let four people write this many messages in a thread; return it with the people."""
    server, guild = team.server, team.general.guild
    assert guild is not None
    people = [team.ada, *(server.member(guild, name.lower()) for name in NAMES[1:])]
    first = server.say(team.general, people[0], "Message 1.") if on_message else None
    thread = server.thread(team.general, "An idea", people[0], private=private, on=first)
    for person in people:
        thread.joined.setdefault(person.id, "2026-01-20T10:30:00+00:00")
    for each in range(2 if on_message else 1, number + 1):
        server.say(thread, people[(each - 1) % 4], f"Message {each}.")
    return thread, people


async def asked(team: Office, thread: Channel, question: str, user: User | None = None) -> str:
    """Mention the bot in a thread; return the text of its card, once all is over."""
    before = len(team.server.messages(thread, by_bot=True))
    team.server.mention(thread, user or team.ada, question)
    await team.server.until(lambda: len(team.server.messages(thread, by_bot=True)) > before)
    await team.dispatcher.tasks.settled()
    return team.server.messages(thread, by_bot=True)[before].text


async def test_more_than_two_pages_are_not_counted(reading: Office) -> None:
    """Discord returns the newest first, so the last are always found."""
    thread, _ = discuss(reading, 230)
    card = await asked(reading, thread, "What now?")
    assert [text for _, text in read_by(reading.council)] == [
        f"Message {number}." for number in range(181, 231)
    ]
    assert "Read the last 50 messages of this thread; 150 or more older ones were left out." in card


async def test_a_thread_on_no_message_is_read(reading: Office) -> None:
    """Nothing is above it."""
    thread, _ = discuss(reading, 2, on_message=False)
    card = await asked(reading, thread, "What now?")
    assert "Read 2 messages of this thread." in card


async def test_without_the_permission_only_the_mention_is_read(reading: Office) -> None:
    """Discord would return an empty list."""
    reading.server.overwrite(reading.general, reading.server.bot, deny=Permission.READ_MESSAGE_HISTORY)
    thread, _ = discuss(reading, 5)
    card = await asked(reading, thread, "What now?")
    assert "not this thread: the bot lacks Read Message History." in card
    assert read_by(reading.council) == []
