"""What only an operator can mend is told to the listed admins on Discord, and their asker hears of that."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from council.errors import Failure
from tests.bot.discord.office import Office, office
from tests.bot.discord.test_budget_warnings import told
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.discord_server import DiscordServer, User

EMPTY = Failure(cause="credit", detail="buy some", attempts=1)
LOG = "Asking again won't help yet. Whoever runs the council finds the cause in its log."
KNOWN = "Asking again won't help yet. An admin of the council was told."
FIX = "Add credit to the account of OPENROUTER_API_KEY."


@asynccontextmanager
async def team_of(
    server: DiscordServer, folder: Path, council: ScriptedCouncil
) -> AsyncGenerator[tuple[Office, User]]:
    """A team with a listed admin."""
    grace = server.user("grace")
    async with office(server, folder, council, frozenset({f"discord:{grace.id}"})) as place:
        assert place.general.guild is not None
        server.join(place.general.guild, grace)
        async with place.bot():
            yield place, grace


async def settled(place: Office) -> None:
    """Wait until every admin has been told, or can't be."""
    assert place.dispatcher.warnings
    await place.dispatcher.warnings.operators.settled()


async def test_an_admin_is_told_once_a_day_and_every_asker_hears_of_it(
    server: DiscordServer, tmp_path: Path
) -> None:
    """With what to do, which the channel doesn't read."""
    async with team_of(server, tmp_path, ScriptedCouncil(script={"stage1": EMPTY})) as (place, grace):
        place.library.warned.now = lambda: datetime(2026, 1, 20, tzinfo=UTC)
        cards = [await place.asked(), await place.asked("And now?")]
        [heard] = told(server, grace)
        assert heard == (
            f"Council, 2026-01-20: {FIX} {FOUR[0]} gave no answer: the account has no credit left "
            "(\u201cbuy some\u201d). You read this once a day."
        )
        for card in cards:
            assert f"No member of the council answered. {KNOWN}" in card.text
            assert "OPENROUTER" not in card.text


async def test_without_an_admin_the_asker_reads_where_the_cause_is(
    server: DiscordServer, tmp_path: Path
) -> None:
    """So too where no admin takes direct messages."""
    council = ScriptedCouncil(script={"stage1": EMPTY})
    async with office(server, tmp_path / "nobody", council) as place, place.bot():
        assert LOG in (await place.asked()).text
    async with team_of(server, tmp_path / "closed", council) as (place, grace):
        grace.takes_dms = False
        assert LOG in (await place.asked()).text
        assert told(server, grace) == []


async def test_an_admin_is_told_of_an_account_that_only_some_members_need(
    server: DiscordServer, tmp_path: Path
) -> None:
    """The others have answered."""
    council = ScriptedCouncil(script={f"stage1.1:{FOUR[0]}": EMPTY})
    async with team_of(server, tmp_path, council) as (place, grace):
        card = await place.asked()
        await settled(place)
        assert "3 of 4 members" in card.text
        assert FIX in told(server, grace)[0]
