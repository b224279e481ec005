"""What only an operator can mend is told to the listed admins on Slack, and their asker hears of that."""

from pathlib import Path

from tests.bot.discord.test_operator_notices import EMPTY, FIX, KNOWN, LOG
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import at_work, restarted
from tests.bot.slack.test_budget_warnings import told
from tests.council.scripted import ScriptedCouncil


async def test_an_admin_is_told_and_the_asker_hears_of_it(tmp_path: Path) -> None:
    """Without `COUNCIL_ADMINS`, the asker reads where the cause is."""
    async with at_work(tmp_path, ScriptedCouncil(script={"stage1": EMPTY})) as place:
        assert LOG in blocks_text((await place.ask()).blocks)
        async with restarted(place, frozenset({f"slack:{place.bob.id}"})) as dispatcher:
            await place.slack.slash(place.general, place.ada, "/council", "And now?")
            await dispatcher.tasks.settled()
            assert KNOWN in blocks_text(place.cards(place.general)[-1].blocks)
            [heard] = told(place, place.bob)
            assert FIX in heard
