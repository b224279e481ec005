"""The council reads the human thread in which it is asked on Slack, where it may."""

from pathlib import Path

from bot.slack.client import THREADS
from bot.slack.incoming import MOST_PAGES, PAGE
from tests.bot.prompts import read_by
from tests.bot.slack.test_bot import Place, at_work
from tests.slack_server import Channel, Message, User

PEOPLE = ("ada", "bob", "cleo", "dan")


def discuss(place: Place, number: int, channel: Channel | None = None) -> tuple[Message, list[User]]:
    """Have four people write this many messages in a thread; return the first one, and the people."""
    where = channel or place.general
    people = [place.ada, place.bob, *(place.slack.add_user(name) for name in PEOPLE[2:])]
    first = place.slack.post(where, people[0], "Message 1: should we shard?")
    for each in range(2, number + 1):
        place.slack.post(where, people[(each - 1) % 4], f"Message {each}.", thread_ts=first.ts)
    return first, people


async def card_in(place: Place, channel: Channel, thread: str) -> Message:
    """Return the newest card in a thread, once all is over."""
    await place.dispatcher.tasks.settled()
    shown = reversed(place.slack.thread(channel, thread))
    return next(m for m in shown if "council_again" in {e["action_id"] for e, _ in m.elements()})


async def test_without_the_scope_a_private_channel_is_not_read(tmp_path: Path) -> None:
    """The card says so in a line, and Slack isn't asked for anything."""
    async with at_work(tmp_path) as place:
        channel = place.slack.add_channel("quiet", place.ada, place.bob, kind="private")
        first, people = discuss(place, 5, channel)
        await place.slack.mention(channel, people[0], "What now?", thread_ts=first.ts)
        card = (await card_in(place, channel, first.ts)).text
        why = "the scopes channels:history and groups:history are missing"
        assert f"Read only the question, not this thread: {why}." in card
        assert read_by(place.council) == []
        assert place.slack.calls("conversations.replies") == []


async def test_a_private_channel_needs_its_own_scope(tmp_path: Path) -> None:
    """Slack names it."""
    async with at_work(tmp_path, scopes=frozenset({"channels:history"})) as place:
        channel = place.slack.add_channel("quiet", place.ada, place.bob, kind="private")
        first, people = discuss(place, 5, channel)
        await place.slack.mention(channel, people[0], "What now?", thread_ts=first.ts)
        card = (await card_in(place, channel, first.ts)).text
        assert "not this thread: the scope groups:history is missing." in card


async def test_a_thread_of_thousands_is_not_read(tmp_path: Path) -> None:
    """Slack begins with the oldest, and the last would take too many calls."""
    async with at_work(tmp_path, scopes=frozenset(THREADS)) as place:
        first = place.slack.post(place.general, place.ada, "A long story.")
        for number in range(PAGE * MOST_PAGES):
            place.slack.post(place.general, place.ada, f"{number}", thread_ts=first.ts)
        await place.slack.mention(place.general, place.ada, "What now?", thread_ts=first.ts)
        card = (await card_in(place, place.general, first.ts)).text
        assert "not this thread: it is too long." in card
        assert len(place.slack.calls("conversations.replies")) == MOST_PAGES
