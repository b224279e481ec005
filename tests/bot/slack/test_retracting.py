"""The bot's messages about what was forgotten, on Slack: the real client deletes them, and only them."""

from pathlib import Path

from bot.view.wording.commands import RECORD
from tests.bot.slack.test_bot import Place, at_work
from tests.bot.slack.test_past import labels, pressed, told
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.slack_server import Message
from tests.slack_server.faults import ALWAYS


def left(place: Place) -> list[Message]:
    """Return the bot's messages in the channel, those in threads as well."""
    messages = place.general.messages.values()
    return [message for message in messages if message.bot_id and message.deleted_at is None]


async def test_card_thread_files_and_copies_are_deleted_and_peoples_words_stay(tmp_path: Path) -> None:
    """The transcript is deleted as a file, and so is the line above it."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        listed = await told(place, "history")
        await pressed(place, listed, "1")
        shown = place.slack.ephemerals(place.general, place.ada)[-1]
        await pressed(place, shown, "Share here")
        await place.slack.click(card, _action(card, "Transcript"), place.bob)
        await place.dispatcher.tasks.settled()
        reply = place.slack.post(place.general, place.bob, "I disagree.", thread_ts=card.ts)
        assert len(place.slack.world.files) == 3
        asked = await told(place, "forget shard")
        await pressed(place, asked, "Delete")
        said = "Deleted \u201cShard or scale up?\u201d and the council's messages about it."
        assert place.told(place.ada)[-1] == said
        assert left(place) == []
        assert reply.deleted_at is None
        assert place.slack.world.files == {}
        # Two files are in one message.
        assert {call.error for call in place.slack.requests} <= {None, "message_not_found"}
        assert await place.library.database.read("SELECT * FROM retractions") == []
        assert await place.library.database.read("SELECT * FROM copies") == []


def _action(message: Message, label: str) -> str:
    return next(e["action_id"] for e, _ in message.elements() if e["text"]["text"] == label)


async def test_without_files_read_only_the_line_above_the_transcript_stays(tmp_path: Path) -> None:
    """It says nothing of the answer."""
    async with at_work(tmp_path, without=frozenset({"files:read"})) as place:
        await place.ask()
        await pressed(place, await told(place, "forget shard"), "Delete")
        [line] = left(place)
        assert line.text == RECORD
        assert line.files == []


async def test_a_run_under_way_is_stopped_and_nothing_of_it_stays(tmp_path: Path) -> None:
    """Whatever it posts until it is over is deleted, too."""
    council = ScriptedCouncil(held={"stage3.1:chair/man:chairman"})
    async with at_work(tmp_path, council) as place:
        await place.slack.slash(place.general, place.ada, "/council", "Shard or scale up?")
        await place.slack.until(lambda: len(left(place)) > len(FOUR))
        await pressed(place, await told(place, "forget me"), "Delete")
        await place.dispatcher.tasks.settled()
        await place.dispatcher.retracted("slack", "")
        assert left(place) == []


async def test_a_refusal_is_told_and_the_messages_stay_listed(tmp_path: Path) -> None:
    """As ids, without a word of what was deleted."""
    async with at_work(tmp_path) as place:
        await place.ask()
        asked = await told(place, "forget shard")
        there = len(left(place))
        place.slack.fail("chat.delete", error="compliance_exports_prevent_deletion", times=ALWAYS)
        await pressed(place, asked, "Delete")
        heard = place.told(place.ada)[-1]
        assert "couldn't be deleted: the workspace's compliance exports forbid deleting." in heard
        assert len(left(place)) == there
        rows = await place.library.database.read("SELECT * FROM retractions")
        assert "hard" not in "".join(str(dict(row)) for row in rows)


async def test_cancel_deletes_nothing(tmp_path: Path) -> None:
    """It takes the place of the question."""
    async with at_work(tmp_path) as place:
        await place.ask()
        asked = await told(place, "forget shard")
        assert labels(asked) == ["Delete", "Cancel"]
        await pressed(place, asked, "Cancel")
        assert asked.text == "Nothing was deleted."
        assert len(asked.history) == 2
        assert "There is no answer here yet." not in (await told(place, "history")).text
