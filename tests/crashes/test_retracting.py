"""The program killed while it deletes its messages about what was forgotten: the next start goes on."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.crashes.scene import Scene, scene
from tests.crashes.test_moments import over
from tests.crashes.trap import Moment


def listed(played: Scene) -> int:
    """Count the messages that are still to be deleted."""
    with closing(sqlite3.connect(f"file:{played.data}/council.db?mode=ro", uri=True)) as database:
        [(messages,)] = database.execute("SELECT count(*) FROM work WHERE kind = 'retract'")
    return messages


def deleted(played: Scene) -> Counter[str]:
    """Count the requests that deleted a message, by message."""
    route = "DELETE /channels/{channel_id}/messages/{message_id}"
    discord = [each.path.rpartition("/")[2] for each in played.discord.requests(route)]
    return Counter(
        [*discord, *(str(call.arguments["ts"]) for call in played.slack.calls("chat.delete"))]
    )


async def test_messages_about_what_was_forgotten_are_deleted_whatever_dies(tmp_path: Path) -> None:
    """Killed between a deletion and its record on one platform, then on the other: each goes on there."""
    async with scene(tmp_path) as played:
        await played.start()
        asked = played.people.ask()
        await played.until(lambda: over(played, asked))
        done = 0
        on = {each.platform: each for each in asked}
        for platform, moment in (("discord", "discord delete"), ("slack", "slack chat.delete")):
            before = len(on[platform].thread())
            assert before == 4
            played.trap.arm(Moment(f"{moment} accepted", 3))
            await on[platform].forget()
            await played.died()
            assert 0 < listed(played) <= before + 2
            await played.start()
            await played.until(lambda: listed(played) == 0)
            assert on[platform].cards() == []
            assert len(deleted(played)) - done > before
            done = len(deleted(played))
        repeated = [message for message, times in deleted(played).items() if times > 1]
        assert len(repeated) == 2
