"""What only an operator can mend is told to the listed admins, and their asker hears of that."""

from datetime import UTC, datetime

from council.errors import Failure
from tests.bot.adapters.teams import AnyTeam
from tests.council.scripted import FOUR

EMPTY = Failure(cause="credit", detail="buy some", attempts=1)
LOG = "Asking again won't help yet. Whoever runs the council finds the cause in its log."
KNOWN = "Asking again won't help yet. An admin of the council was told."
FIX = "Add credit to the account of OPENROUTER_API_KEY."


async def settled(team: AnyTeam) -> None:
    """Wait until every admin has been told, or can't be."""
    assert team.dispatcher.warnings
    await team.dispatcher.warnings.operators.settled()


async def test_an_admin_is_told_once_a_day_and_every_asker_hears_of_it(team: AnyTeam) -> None:
    """With what to do, which the channel doesn't read."""
    team.council.script = {"stage1": EMPTY}
    await team.restart(admins=[team.bob])
    team.library.warned.now = lambda: datetime(2026, 1, 20, tzinfo=UTC)
    cards = [await team.ask(), await team.ask("And now?")]
    [heard] = team.told_directly(team.bob)
    assert heard == (
        f"Council, 2026-01-20: {FIX} {FOUR[0]} gave no answer: the account has no credit left "
        "(\u201cbuy some\u201d). You read this once a day."
    )
    for card in cards:
        assert f"No member of the council answered. {KNOWN}" in team.read(card)
        assert "OPENROUTER" not in team.read(card)


async def test_without_an_admin_the_asker_reads_where_the_cause_is(team: AnyTeam) -> None:
    """So too where no admin takes direct messages."""
    team.council.script = {"stage1": EMPTY}
    assert LOG in team.read(await team.ask())
    await team.restart(admins=[team.bob])
    team.close_direct(team.bob)
    assert LOG in team.read(await team.ask())
    assert team.told_directly(team.bob) == []


async def test_an_admin_is_told_of_an_account_that_only_some_members_need(team: AnyTeam) -> None:
    """The others have answered."""
    team.council.script = {f"stage1.1:{FOUR[0]}": EMPTY}
    await team.restart(admins=[team.bob])
    card = await team.ask()
    await settled(team)
    assert "3 of 4 members" in team.read(card)
    assert FIX in team.told_directly(team.bob)[0]
