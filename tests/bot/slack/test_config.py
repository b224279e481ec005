"""A channel's settings on Slack, through the real client."""

from datetime import datetime, timedelta
from pathlib import Path

import structlog.testing

from bot.upkeep import look_after
from council.document.conversation import timestamp
from storage.database import Database
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import Place, at_work, restarted
from tests.slack_server import User


async def configured(place: Place, user: User, text: str = "") -> str:
    """Use the command; return what its user alone is shown."""
    before = len(place.told(user))
    assert (await place.slack.slash(place.general, user, "/council-config", text)).acked
    await place.slack.until(lambda: len(place.told(user)) > before)
    return blocks_text(place.slack.ephemerals(place.general, user)[-1].blocks)


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


async def age(database: Database) -> datetime:
    """Return the time of the newest conversation."""
    [row] = await database.read("SELECT max(updated_at) AS newest FROM conversations")
    return datetime.fromisoformat(row["newest"])


async def test_retention_survives_restarts_and_a_clock_that_jumps(tmp_path: Path) -> None:
    """A jump ahead deletes nothing for a day; once set back, it has no effect."""
    async with at_work(tmp_path) as place:
        place.ada.is_admin = True
        await place.ask()
        await configured(place, place.ada, "--retention 3")
        # The command is dated by the real clock, the answer by the scripted one: bring them together.
        now = await age(place.library.database)
        await place.library.database.write(("UPDATE overrides SET set_at = ?", (timestamp(now),)))

        async def kept(after: timedelta) -> int:
            await look_after(place.library, 30, now=lambda: now + after)
            return len(await place.library.index.find_as_operator(""))

        hours, days = timedelta(hours=1), timedelta(days=1)
        assert await kept(2 * hours) == 1
        with structlog.testing.capture_logs() as logs:
            assert await kept(3650 * days) == 1
        [line] = [line for line in logs if line["event"] == "retention_held"]
        assert line["clock_last_seen"] == timestamp(now + 2 * hours)
        assert line["until"] == timestamp(now + 3651 * days)
        assert await kept(3650 * days + 6 * hours) == 1
        async with restarted(place):
            assert await kept(6 * hours) == 1
            assert await kept(2 * days) == 1
            assert await kept(2 * days + 23 * hours) == 1
            assert await kept(3 * days + hours) == 0
        assert not any(b"Shard or scale" in content for content in contents(tmp_path))


async def test_a_long_stop_delays_deletion_by_a_day_at_most(tmp_path: Path) -> None:
    """After that day it deletes, and another long stop delays it again."""
    async with at_work(tmp_path) as place:
        await place.ask()
        now = await age(place.library.database)
        for days, hours, left in ((0, 1, 1), (60, 0, 1), (60, 23, 1), (61, 1, 0)):
            moment = now + timedelta(days=days, hours=hours)
            await look_after(place.library, 30, now=lambda moment=moment: moment)
            assert len(await place.library.index.find_as_operator("")) == left
