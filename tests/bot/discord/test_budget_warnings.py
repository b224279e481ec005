"""Admins on Discord are told once that a budget is nearly used up, through the real client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import structlog.testing

from bot.service.admission.budgets import Budgets
from council.models.billing import UNPRICED_CALL
from tests.bot.discord.office import HELD, Office, office
from tests.council.scripted import ScriptedCouncil
from tests.discord_server import DiscordServer, User
from tests.discord_server.permissions import Permission

SEND = "POST /channels/{channel_id}/messages"
NEARLY = "is nearly used up:"
ONE_QUESTION = 13 * UNPRICED_CALL
"""What the team's questions reserve, in US dollars: 13 calls without a known price."""


def budgets(place: Office, **limits: float) -> None:
    """Put budgets in force."""
    operator = replace(place.dispatcher.channels.operator, budgets=Budgets.model_validate(limits))
    place.dispatcher.reconfigure(operator)


@asynccontextmanager
async def team_of(
    server: DiscordServer, folder: Path, *, questions: float = 1.0
) -> AsyncGenerator[tuple[Office, User, frozenset[str]]]:
    """A team with a listed admin, and a budget for so many questions; answers take forever."""
    grace = server.user("grace")
    listed = frozenset({f"discord:{grace.id}"})
    council = ScriptedCouncil(held={HELD["Final answer"]})
    async with office(server, folder, council, listed) as place:
        assert place.general.guild is not None
        server.join(place.general.guild, grace)
        budgets(place, channel_day=ONE_QUESTION * questions * 1.1)
        yield place, grace, listed


def told(server: DiscordServer, admin: User) -> list[str]:
    """Return what an admin was told directly."""
    return [message.text for message in server.messages(server.dm(admin), by_bot=True)]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies waits for no request."""
    monkeypatch.setattr("bot.service.delivery.outbox.FINISH_SECONDS", 0.01)


async def settled(place: Office) -> None:
    """Wait until every admin has been told, or can't be."""
    assert place.dispatcher.warnings
    await place.dispatcher.warnings.settled()


async def helped(place: Office, user: User) -> str:
    """Use /council-help; return the private reply."""
    return await place.refused(place.server.slash(place.general, user, "council-help"))


async def test_a_listed_admin_is_told_once_however_many_ask(
    server: DiscordServer, tmp_path: Path
) -> None:
    """At 80 % of what is reserved and spent; not again after a restart, nor at a command."""
    async with team_of(server, tmp_path, questions=2) as (place, grace, listed):
        async with place.bot():
            await place.ask()
            await settled(place)
            assert told(server, grace) == []
            asked = [
                place.server.slash(place.general, place.ada, "council", question="?") for _ in "1234"
            ]
            shown = [(await each.acknowledged()).message for each in asked]
            assert [bool(each and each.ephemeral) for each in shown].count(
                False
            ) == 1  # whichever is first
            await settled(place)
            [said] = told(server, grace)
            assert NEARLY not in await helped(place, grace)
        assert said.startswith(f"The budget of <#{place.general.id}> for ")
        assert f"(UTC) {NEARLY} ${2 * ONE_QUESTION:.2f} of ${2.2 * ONE_QUESTION:.2f} is used" in said
        assert said.endswith("It is set by channel_day under [budgets] in council.toml.")
        await place.die(listed)
        budgets(place, channel_day=ONE_QUESTION * 2.2)
        async with place.bot():
            await _refused(place)
            await settled(place)
            assert told(server, grace) == [said]


async def _refused(place: Office) -> str:
    asked = place.server.slash(place.general, place.ada, "council", question="And I?")
    return (await place.refused(asked)).partition(";")[0]


async def test_a_warning_that_a_dying_process_has_sent_is_not_sent_again(
    server: DiscordServer, tmp_path: Path
) -> None:
    """It is recognised, also when its nonce is forgotten; one that hadn't arrived is sent at the next start."""
    for number, (applied, late) in enumerate(((False, 0), (True, 0), (True, 600))):
        async with team_of(server, tmp_path / str(number)) as (place, grace, listed):
            lost = server.fail(SEND, breaks="hang", applied=applied, channel=server.dm(grace).id)
            async with place.bot():
                await place.ask()
                await server.until(lambda fault=lost: fault.hits)
                assert len(told(server, grace)) == applied
                await place.die(listed)
            lost.release()
            server.advance(late)
            budgets(place, channel_day=ONE_QUESTION * 1.1)
            async with place.bot():
                await settled(place)
            assert len(told(server, grace)) == 1
            await place.dispatcher.tasks.drain(0)


async def test_an_admin_who_takes_no_direct_messages_is_named_in_the_log(
    server: DiscordServer, tmp_path: Path
) -> None:
    """Once; the question is asked all the same, and no reply to anybody says anything of it."""
    async with team_of(server, tmp_path) as (place, grace, _), place.bot():
        assert place.general.guild is not None
        boss = server.member(place.general.guild, "boss", Permission.MANAGE_GUILD)
        grace.takes_dms = False
        with structlog.testing.capture_logs() as logs:
            await place.ask()
            await settled(place)
            await _refused(place)
            await settled(place)
        [line] = [line for line in logs if line["event"] == "admin_not_told"]
        assert line["admin"] == f"discord:{grace.id}"
        assert told(server, grace) == []
        for user in (grace, boss, place.ada):
            assert NEARLY not in await helped(place, user)
