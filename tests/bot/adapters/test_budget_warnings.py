"""Admins are told once that a budget is nearly used up."""

import pytest
import pytest_asyncio
import structlog.testing

from bot.service.admission.budgets import Budgets
from bot.slack.mentions import AHEAD_SECONDS
from council.models.billing import UNPRICED_CALL
from tests.bot.adapters.teams import AnyTeam

CHAIRMAN = "stage3.1:chair/man:chairman"
NEARLY = "is nearly used up:"
ONE_QUESTION = 13 * UNPRICED_CALL
"""What the team's questions reserve, in US dollars: 13 calls without a known price."""


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies waits for no request."""
    monkeypatch.setattr("bot.service.delivery.outbox.FINISH_SECONDS", 0.01)


@pytest_asyncio.fixture
async def warned(team: AnyTeam) -> AnyTeam:
    """A team whose Bob is a listed admin; answers take forever."""
    team.council.held.add(CHAIRMAN)
    await team.restart(admins=[team.bob])
    return team


async def settled(team: AnyTeam) -> None:
    """Wait until every admin has been told, or can't be."""
    assert team.dispatcher.warnings
    await team.dispatcher.warnings.settled()


async def helped(team: AnyTeam, who: str) -> str:
    """Use /council-help; return the private reply."""
    return team.read(await team.use("help", who))


async def test_a_listed_admin_is_told_once_however_many_ask(warned: AnyTeam) -> None:
    """At 80 % of what is reserved and spent; not again after a restart, nor at a command."""
    team = warned
    team.configure(budgets=Budgets(channel_day=ONE_QUESTION * 2.2))
    await team.begin()
    await settled(team)
    assert team.told_directly(team.bob) == []
    assert await team.ask_together(4) == 1  # whichever is first
    await settled(team)
    [said] = team.told_directly(team.bob)
    assert NEARLY not in await helped(team, team.bob)
    assert said.startswith(f"The budget of {team.channel} for ")
    assert f"(UTC) {NEARLY} ${2 * ONE_QUESTION:.2f} of ${2.2 * ONE_QUESTION:.2f} is used" in said
    assert said.endswith("It is set by channel_day under [budgets] in council.toml.")
    await team.restart(admins=[team.bob])
    await team.refused()
    await settled(team)
    assert team.told_directly(team.bob) == [said]


@pytest.mark.parametrize("applied", [False, True])
async def test_a_lost_response_tells_an_admin_again_only_where_it_must(
    warned: AnyTeam, *, applied: bool
) -> None:
    """At least once, at most twice."""
    team = warned
    team.configure(budgets=Budgets(workspace_month=ONE_QUESTION * 1.1))
    team.lose_direct(team.bob, "reset", applied=applied)
    await team.begin()
    await settled(team)
    team.advance(AHEAD_SECONDS)
    assert len(team.told_directly(team.bob)) == 1 + (applied and team.repeats_lost)


@pytest.mark.parametrize(("applied", "late"), [(False, 0), (True, 0), (True, 600)])
async def test_a_warning_that_a_dying_process_has_sent_is_sent_again_only_where_it_must(
    warned: AnyTeam, *, applied: bool, late: int
) -> None:
    """At least once, at most twice; Discord recognises it, also when its nonce is forgotten."""
    team = warned
    team.configure(budgets=Budgets(workspace_month=ONE_QUESTION * 1.1))
    lost = team.lose_direct(team.bob, "hang", applied=applied)
    await team.begin()
    await team.until(lambda: lost.hits)
    assert len(team.told_directly(team.bob)) == applied
    await team.kill()
    lost.release()
    team.advance(late)
    for _ in range(2):
        await team.start(admins=[team.bob])
        await settled(team)
        team.advance(AHEAD_SECONDS)
        assert len(team.told_directly(team.bob)) == 1 + (applied and team.repeats_lost)
        await team.kill()
    said = team.told_directly(team.bob)[0]
    assert said.startswith(f"The budget of {team.here} for ")
    assert f"(UTC) {NEARLY} ${ONE_QUESTION:.2f} of ${1.1 * ONE_QUESTION:.2f} is used" in said
    assert said.endswith("It is set by workspace_month under [budgets] in council.toml.")


async def test_an_admin_who_takes_no_direct_messages_is_named_in_the_log(warned: AnyTeam) -> None:
    """Once; the question is asked all the same, and no reply to anybody says anything of it."""
    team = warned
    team.configure(budgets=Budgets(channel_day=ONE_QUESTION * 1.1))
    team.promote(boss := team.newcomers(1)[0])
    team.close_direct(team.bob)
    with structlog.testing.capture_logs() as logs:
        await team.begin()
        await settled(team)
        await team.refused()
        await settled(team)
    [line] = [line for line in logs if line["event"] == "admin_not_told"]
    assert line["admin"] == f"{team.platform}:{team.bob}"
    assert team.told_directly(team.bob) == []
    for who in (team.bob, boss, team.ada):
        assert NEARLY not in await helped(team, who)
