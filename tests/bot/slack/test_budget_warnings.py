"""Admins on Slack are told once that a budget is nearly used up, through the real client."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import structlog.testing

from bot.service.admission.budgets import Budgets
from bot.service.admission.channels import Operator
from bot.service.dispatcher import Dispatcher
from bot.slack.mentions import AHEAD_SECONDS
from council.models.billing import UNPRICED_CALL
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import Place, at_work, restarted
from tests.council.scripted import ScriptedCouncil
from tests.slack_server import User
from tests.slack_server.faults import ALWAYS

CHAIRMAN = "stage3.1:chair/man:chairman"
NEARLY = "is nearly used up:"
ONE_QUESTION = 13 * UNPRICED_CALL
"""What the team's questions reserve, in US dollars: 13 calls without a known price."""


def operator_of(place: Place, **limits: float) -> Operator:
    """Return a configuration with these budgets."""
    return replace(place.dispatcher.channels.operator, budgets=Budgets.model_validate(limits))


@asynccontextmanager
async def team_of(
    folder: Path,
) -> AsyncGenerator[tuple[Place, Dispatcher, frozenset[str], Operator]]:
    """A team whose bob is a listed admin, and a budget for one question; answers take forever."""
    async with at_work(folder, ScriptedCouncil(held={CHAIRMAN})) as place:
        listed = frozenset({f"slack:{place.bob.id}"})
        operator = operator_of(place, workspace_month=ONE_QUESTION * 1.1)
        async with restarted(place, listed, operator) as dispatcher:
            yield place, dispatcher, listed, operator


def told(place: Place, admin: User) -> list[str]:
    """Return what an admin was told directly."""
    direct = place.slack.world.open_im(place.slack.team, admin.id)
    return [message.text for message in place.slack.messages(direct) if message.bot_id]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies waits for no request."""
    monkeypatch.setattr("bot.service.delivery.outbox.FINISH_SECONDS", 0.01)


async def settled(dispatcher: Dispatcher) -> None:
    """Wait until every admin has been told, or can't be."""
    assert dispatcher.warnings
    await dispatcher.warnings.settled()


async def ask(place: Place) -> None:
    """Ask, whether that is accepted or not."""
    assert (await place.slack.slash(place.general, place.ada, "/council", "Shard?")).acked


async def commanded(place: Place, user: User) -> str:
    """Use /council-help; return the private reply."""
    before = len(place.told(user))
    assert (await place.slack.slash(place.general, user, "/council-help")).acked
    await place.slack.until(lambda: len(place.told(user)) > before)
    return "\n".join(
        blocks_text(one.blocks) for one in place.slack.ephemerals(place.general, user)[before:]
    )


async def test_a_listed_admin_is_told_once_however_many_ask(tmp_path: Path) -> None:
    """Not again after a restart, nor at a command."""
    async with team_of(tmp_path) as (place, dispatcher, listed, operator):
        await asyncio.gather(*(ask(place) for _ in range(4)))
        await settled(dispatcher)
        [said] = told(place, place.bob)
        assert said.startswith("The budget of this workspace for ")
        assert f"(UTC) {NEARLY} ${ONE_QUESTION:.2f} of ${1.1 * ONE_QUESTION:.2f} is used" in said
        assert said.endswith("It is set by workspace_month under [budgets] in council.toml.")
        assert NEARLY not in await commanded(place, place.bob)
        await dispatcher.tasks.drain(0)
        async with restarted(place, listed, operator) as later:
            await ask(place)
            await settled(later)
        assert told(place, place.bob) == [said]


@pytest.mark.parametrize("applied", [False, True])
async def test_a_lost_response_tells_an_admin_once_or_twice(tmp_path: Path, *, applied: bool) -> None:
    """The house rule: at least once, at most twice."""
    async with team_of(tmp_path) as (place, dispatcher, _, _):
        place.slack.fail("chat.postMessage", breaks="reset", applied=applied, says=NEARLY)
        await ask(place)
        await settled(dispatcher)
        place.clock.advance(AHEAD_SECONDS)
        assert len(told(place, place.bob)) == 1 + applied


@pytest.mark.parametrize("applied", [False, True])
async def test_a_process_that_dies_while_it_tells_is_continued(tmp_path: Path, *, applied: bool) -> None:
    """The next start tells the admin: once more, at most."""
    async with team_of(tmp_path) as (place, dispatcher, listed, operator):
        lost = place.slack.fail("chat.postMessage", breaks="hang", applied=applied, says=NEARLY)
        await ask(place)
        await place.slack.until(lambda: lost.hits)
        await dispatcher.tasks.drain(0)
        lost.release()
        for _ in range(2):
            async with restarted(place, listed, operator) as later:
                await settled(later)
                place.clock.advance(AHEAD_SECONDS)
            assert len(told(place, place.bob)) == 1 + applied


async def test_an_admin_who_cannot_be_messaged_is_named_in_the_log(tmp_path: Path) -> None:
    """Once, as without the scope im:write; no reply to anybody says anything of it."""
    async with team_of(tmp_path) as (place, dispatcher, _, _):
        place.slack.fail("conversations.open", "missing_scope", times=ALWAYS)
        place.ada.is_admin = True
        with structlog.testing.capture_logs() as logs:
            await ask(place)
            await settled(dispatcher)
            await ask(place)
            await settled(dispatcher)
        [line] = [line for line in logs if line["event"] == "admin_not_told"]
        assert line["admin"] == f"slack:{place.bob.id}"
        for user in (place.bob, place.ada):
            assert NEARLY not in await commanded(place, user)
        assert await place.card()
