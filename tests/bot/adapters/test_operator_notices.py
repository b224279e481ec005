"""What only an operator can mend is told to the listed admins, and their asker hears of that."""

from datetime import UTC, datetime

import pytest
import structlog.testing

from bot.service.delivery.posts import AHEAD_SECONDS
from council.errors import Failure
from tests.bot.adapters.teams import AnyTeam
from tests.council.scripted import FOUR

EMPTY = Failure(cause="credit", detail="buy some", attempts=1)
LOG = "Asking again won't help yet. Whoever runs the council finds the cause in its log."
KNOWN = "Asking again won't help yet. An admin of the council was told."
FIX = "Add credit to the account of OPENROUTER_API_KEY."


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies waits for no request."""
    monkeypatch.setattr("bot.service.delivery.outbox.FINISH_SECONDS", 0.01)


async def settled(team: AnyTeam) -> None:
    """Wait until every admin has been told, or can't be."""
    assert team.dispatcher.operators
    await team.dispatcher.operators.settled()


async def test_an_admin_is_told_once_a_day_and_every_asker_hears_of_it(team: AnyTeam) -> None:
    """With what to do, which the channel doesn't read."""
    team.council.script = {"stage1": EMPTY}
    await team.restart(admins=[team.bob])
    assert team.dispatcher.operators
    team.dispatcher.operators.now = lambda: datetime(2031, 1, 20, tzinfo=UTC)
    cards = [await team.ask(), await team.ask("And now?")]
    [heard] = team.told_directly(team.bob)
    assert heard == (
        f"Council, 2031-01-20: {FIX} {FOUR[0]} gave no answer: the account has no credit left "
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


@pytest.mark.parametrize("applied", [False, True])
async def test_a_lost_response_tells_an_admin_again_only_where_it_must(
    team: AnyTeam, *, applied: bool
) -> None:
    """At least once, at most twice."""
    team.council.script = {"stage1": EMPTY}
    await team.restart(admins=[team.bob])
    team.lose_direct(team.bob, "reset", applied=applied)
    await team.ask()
    await settled(team)
    team.advance(AHEAD_SECONDS)
    assert len(team.told_directly(team.bob)) == 1 + (applied and team.repeats_lost)


@pytest.mark.parametrize(("applied", "late"), [(False, 0), (True, 0), (True, 600)])
async def test_a_notice_that_a_dying_process_has_sent_is_sent_again_only_where_it_must(
    team: AnyTeam, monkeypatch: pytest.MonkeyPatch, *, applied: bool, late: int
) -> None:
    """When the cause is met again; Discord recognises it, also when its nonce is forgotten."""
    monkeypatch.setattr("bot.service.operator_notices.WAIT_SECONDS", 0.01)
    team.council.script = {"stage1": EMPTY}
    await team.restart(admins=[team.bob])
    lost = team.lose_direct(team.bob, "hang", applied=applied)
    await team.begin()
    await team.until(lambda: lost.hits)
    assert len(team.told_directly(team.bob)) == applied
    await team.kill()
    lost.release()
    team.advance(late)
    for _ in range(2):
        await team.start(admins=[team.bob])
        await team.ask("And now?")
        await settled(team)
        team.advance(AHEAD_SECONDS)
        assert len(team.told_directly(team.bob)) == 1 + (applied and team.repeats_lost)
        await team.kill()
    assert FIX in team.told_directly(team.bob)[0]


async def test_an_admin_who_takes_no_direct_messages_is_named_in_the_log(team: AnyTeam) -> None:
    """Once a day."""
    team.council.script = {"stage1": EMPTY}
    await team.restart(admins=[team.bob])
    team.close_direct(team.bob)
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            await team.ask()
            await settled(team)
    [line] = [line for line in logs if line["event"] == "admin_not_told"]
    assert line["admin"] == f"{team.platform}:{team.bob}"
    assert team.told_directly(team.bob) == []
