"""Which events the bot accepts, where it listens, and how it learns that it was removed."""

import asyncio
import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from bot.slack.client import Installation, asking_client
from bot.slack.incoming import Person, Reader
from tests.bot.slack.test_bot import Json, Place, at_work
from tests.breaking import ALWAYS
from tests.slack_server import SlackServer, payloads

REMOVED = (
    "Slack no longer accepts the bot, because the app was removed from the workspace: install the app to "
    "the workspace again, set its tokens, and start the council."
)
REVOKED = REMOVED.replace("the app was removed from the workspace", "the token was revoked")


def installed(team: str) -> list[Json]:
    """Return an event's fields for the installation it is for."""
    return [{"enterprise_id": None, "team_id": team, "is_bot": True, "is_enterprise_install": False}]


async def mentioned(place: Place, event: Json, **envelope: object) -> None:
    """Deliver a mention of the bot with these changes."""
    message = place.slack.post(place.general, place.ada, f"<@{place.slack.team.bot.id}> Shard?")
    delivery = await place.deliver("app_mention", message, event, **envelope)
    assert delivery.acked
    assert len(delivery.attempts) == 1
    await place.dispatcher.tasks.settled()


async def test_an_event_of_another_installation_is_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is acknowledged, and logged once without its text."""
    async with at_work(tmp_path) as place:
        for _ in range(2):
            await mentioned(place, {}, team_id="T_OTHER", authorizations=installed("T_OTHER"))
        await mentioned(place, {}, team_id="T_OTHER", authorizations=None)
        assert place.council.calls == []
        assert place.cards(place.general) == []
    logged = capsys.readouterr().out
    assert logged.count("slack_installation_unknown") == 1
    assert "T_OTHER" in logged
    assert "Shard" not in logged


async def test_a_foreign_authorization_counts_before_our_own_workspace(tmp_path: Path) -> None:
    """Its `team_id` only says where the event happened."""
    async with at_work(tmp_path) as place:
        await mentioned(place, {}, authorizations=installed("T_OTHER"))
        assert place.council.calls == []


async def test_an_event_without_authorizations_is_routed_by_its_workspace(tmp_path: Path) -> None:
    """Slack sends some such events."""
    async with at_work(tmp_path) as place:
        await mentioned(place, {}, authorizations=None)
        assert len(place.cards(place.general)) == 1


async def test_somebody_from_another_organization_asks_in_a_shared_channel(tmp_path: Path) -> None:
    """Slack Connect: the event names their workspace, and our installation."""
    async with at_work(tmp_path) as place:
        other = place.slack.add_team("Other")
        eve = place.slack.add_user("eve", team=other)
        event: Json = {"user": eve.id, "user_team": other.id, "source_team": other.id}
        ours = installed(place.slack.team.id)
        await mentioned(place, event, team_id=other.id, authorizations=ours, is_ext_shared_channel=True)
        [card] = place.cards(place.general)
        run = await place.run(card)
        assert (run.origin.workspace, run.origin.user) == (place.slack.team.id, eve.id)
        assert place.pings() == [{eve.id}]

        team, url = place.slack.team, place.slack.api.response_urls.new
        [element, block] = next(
            each for each in card.elements() if each[0].get("action_id") == "council_transcript"
        )
        click = payloads.block_action(
            place.slack.world.app_id, team, place.general, eve, card, element, block,
            url(team, place.general.id, eve.id, card), "1.0",
        )  # fmt: skip
        click["team"] = {"id": other.id, "domain": other.domain}
        assert (await place.slack.courier.send("interactive", click)).acked
        await place.dispatcher.tasks.settled()
        assert place.slack.thread(place.general, card.ts)[-1].files


@pytest.mark.parametrize("kind", ["command", "click", "shortcut"])
async def test_commands_clicks_and_actions_of_another_installation_are_not_run(
    tmp_path: Path, kind: str
) -> None:
    """They are acknowledged without a reply."""
    async with at_work(tmp_path) as place:
        other = place.slack.add_team("Other")
        eve = place.slack.add_user("eve", team=other)
        room = place.slack.add_channel("room", eve, team=other)
        match kind:
            case "command":
                delivery = await place.slack.slash(room, eve, "/council", "Shard?")
            case "shortcut":
                message = place.slack.post(room, eve, "Shard?")
                delivery = await place.slack.shortcut("ask_the_council", message, eve)
            case _:
                card = await place.ask()
                place.council.calls.clear()
                copy = place.slack.post(room, eve, "Shard?")
                copy.blocks = card.blocks
                delivery = await place.slack.click(copy, "council_again", eve)
        assert delivery.acked
        await place.dispatcher.tasks.settled()
        assert place.council.calls == []
        assert place.slack.ephemerals(room, eve) == []


@pytest.mark.parametrize(("team", "is_admin"), [("ours", True), ("another", False)])
async def test_another_workspaces_admin_is_no_admin_here(team: str, is_admin: bool) -> None:
    """In a shared channel, Slack reports them as an admin."""
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        bob = slack.add_user("bob", admin=True)
        client = asking_client(slack.token, slack.api_url, Installation())
        client.session = session
        here = slack.team.id if team == "ours" else "T_ANOTHER"
        reader = Reader(client, session, frozenset({"users:read"}), here)
        assert await reader.person(bob.id) == Person("bob", is_admin)


async def test_a_token_refused_for_a_minute_is_lost(tmp_path: Path) -> None:
    """By any method, even if nothing is sent after the first refusal; and not before."""
    async with at_work(tmp_path) as place:
        waiting = asyncio.create_task(place.bot.until_lost())
        began = place.clock()
        place.slack.revoke_token("account_inactive")
        await place.slack.mention(place.general, place.ada, "Shard?")
        async with asyncio.timeout(10):
            assert (await waiting).startswith("Slack no longer accepts the bot, because ")
        assert place.clock() - began >= 60


async def test_a_token_that_is_soon_good_again_is_not_lost(tmp_path: Path) -> None:
    """Whoever revoked it in mid-run gave it back: the bot goes on, and nothing says otherwise."""
    async with at_work(tmp_path) as place:
        waiting = asyncio.create_task(place.bot.until_lost())
        fault = place.slack.fail("*", "token_revoked", seconds=50)
        await place.slack.mention(place.general, place.ada, "Shard?")
        await place.slack.until(lambda: fault.is_over(place.clock()))
        card = await place.ask()
        assert (await place.run(card)).delivery == "shown"
        assert not waiting.done()
        waiting.cancel()


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"type": "app_uninstalled"}, REMOVED),
        ({"type": "tokens_revoked", "tokens": {"bot": ["{me}"]}}, REVOKED),
        ({"type": "tokens_revoked", "tokens": {"oauth": ["{me}"], "bot": ["U_OTHER"]}}, None),
    ],
)
async def test_events_report_the_loss_at_once(tmp_path: Path, event: Json, said: str | None) -> None:
    """Other tokens and other installations don't matter."""
    async with at_work(tmp_path) as place:
        waiting = asyncio.create_task(place.bot.until_lost())
        slack, me = place.slack, place.slack.team.bot.id
        told: Json = json.loads(json.dumps(event).replace("{me}", me))
        payload = payloads.event_callback(slack.world.app_id, slack.team, told, slack.clock())
        foreign: Json = payload | {"team_id": "T_OTHER", "authorizations": []}
        assert (await slack.courier.send("events_api", foreign)).acked
        assert not waiting.done()
        assert (await slack.courier.send("events_api", payload | {"authorizations": []})).acked
        await asyncio.sleep(0)
        assert waiting.done() == (said is not None)
        if said:
            assert await waiting == said
        waiting.cancel()


async def test_it_listens_on_this_machine_alone(tmp_path: Path) -> None:
    """Its other addresses are free, unless the bot is told to listen everywhere."""
    async with at_work(tmp_path, by_http=True) as place:
        assert place.slack.courier.endpoint
        port = urlsplit(place.slack.courier.endpoint.url).port
        with socket.socket() as other:
            other.bind(("127.0.0.2", port))


async def test_a_socket_that_is_lost_is_not_connected(tmp_path: Path) -> None:
    """Until Slack gives another."""
    async with at_work(tmp_path) as place:
        assert await place.bot.is_connected()
        place.slack.fail("apps.connections.open", "internal_error", times=ALWAYS)
        await place.slack.drop_sockets()
        while await place.bot.is_connected():
            await asyncio.sleep(0.001)
