"""The bot's messages about what was forgotten, on Slack: the real client deletes them, and only them."""

from pathlib import Path

from bot.view.wording.commands import TRANSCRIPT
from tests.bot.slack.test_bot import Place, at_work
from tests.bot.slack.test_past import pressed, told
from tests.slack_server import Message


def left(place: Place) -> list[Message]:
    """Return the bot's messages in the channel, those in threads as well."""
    messages = place.general.messages.values()
    return [message for message in messages if message.bot_id and message.deleted_at is None]


async def test_without_files_read_only_the_line_above_the_transcript_stays(tmp_path: Path) -> None:
    """It says nothing of the answer."""
    async with at_work(tmp_path, without=frozenset({"files:read"})) as place:
        await place.slack.click(await place.ask(), "council_transcript", place.ada)
        await place.dispatcher.tasks.settled()
        await pressed(place, await told(place, "forget shard"), "Delete")
        [line] = left(place)
        assert line.text == TRANSCRIPT
        assert line.files == []
