"""One app in several workspaces: each is served alone, by the real clients, against a Slack on 127.0.0.1."""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from bot.service.admission.budgets import Budgets
from bot.service.admission.channels import Operator
from bot.slack.bot import SlackBot
from bot.slack.oauth import installations, workspaces
from bot.slack.oauth.installations import NAME
from bot.slack.workspace import AT_ONCE
from bot.upkeep import forget_removed
from bot.view.wording.commands import NOT_HERE
from storage.scope import Scope
from tests.bot.adapters.test_budget_warnings import ONE_QUESTION
from tests.bot.service.test_dispatcher import WHOLE_THREAD
from tests.bot.shown import FINISHED
from tests.bot.slack.oauth.scene import Home, Scene, scene_in
from tests.bot.slack.test_bot import Sleeper, dispatcher_of, labels
from tests.council.scripted import FOUR, ScriptedCouncil, profile
from tests.slack_server import Delivery, payloads
from tests.slack_server.faults import ALWAYS

FIRST_REVIEW = f"stage2.1:{FOUR[0]}"
LAST = "stage3.1:chair/man:chairman"


async def told(scene: Scene, home: Home, command: str, text: str = "") -> str:
    """Type a command; return what only its author is shown."""
    before = len(scene.slack.ephemerals(home.general, home.ada))
    await scene.slack.slash(home.general, home.ada, command, text)
    shown = await scene.slack.until(lambda: scene.slack.ephemerals(home.general, home.ada)[before:])
    return "\n".join([shown[0].text, *map(str, shown[0].blocks)])


async def forget(scene: Scene) -> None:
    """Do what upkeep does every few hours."""
    await forget_removed(scene.library, "slack", scene.workspaces.due, scene.dispatcher.tasks.halt)


async def days(scene: Scene, number: float) -> None:
    """Let days pass, and look at least once in each."""
    while number > 0:
        scene.clock.advance(timedelta(days=min(number, 1)).total_seconds())
        await forget(scene)
        number -= 1


async def kept(scene: Scene, home: Home) -> int:
    """Count the conversations of a workspace that are in the index."""
    scope = Scope("slack", home.team.id, home.general.id)
    return len((await scene.library.forgetting.select.channel(scope)).conversations)


async def asked(scene: Scene, home: Home, held: str, council: ScriptedCouncil) -> None:
    """Ask, and wait until a step is held."""
    delivery = await scene.slack.slash(home.general, home.ada, "/council", "Shard?")
    assert delivery.acked
    await council.until_called(held)
    await scene.slack.until(lambda: scene.cards(home))


def callers(scene: Scene, since: int = 0) -> set[str | None]:
    """Return the workspaces whose tokens were used."""
    return {call.team for call in scene.slack.requests[since:]}


def refused(scene: Scene, method: str) -> int:
    """Return how many calls of a method Slack has refused."""
    return sum(call.method == method and call.error is not None for call in scene.slack.requests)


def named(logs: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return what has been logged, by name."""
    return [each["event"] for each in logs]


class TestServed:
    """What a workspace that has installed the app gets."""

    async def test_each_is_answered_with_its_own_token(self, tmp_path: Path) -> None:
        """Installed one after the other, while it runs."""
        async with scene_in(tmp_path) as scene:
            for home in await scene.installed("Acme Two", "Globex"):
                since = len(scene.slack.requests)
                card = await scene.ask(home)
                assert labels(card) == FINISHED
                assert card.user == home.team.bot.id
                assert callers(scene, since) == {home.team.id}
            assert not [call for call in scene.slack.requests if call.error]

    async def test_mention_action_and_click_reach_their_workspace(self, tmp_path: Path) -> None:
        """Each with what Slack puts in for routing."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            for home in (globex, acme):
                since = len(scene.slack.requests)
                assert (await scene.slack.mention(home.general, home.ada, "Shard?")).acked
                await scene.dispatcher.tasks.settled()
                [card] = [one for one in scene.cards(home) if "Ask again" in labels(one)]
                assert (await scene.slack.click(card, "council_helpful", home.ada)).acked
                assert (await scene.slack.click(card, "council_follow", home.ada)).acked
                form = scene.slack.form(home.ada)
                sent = await scene.slack.submit(form, text="And later?")
                assert sent.acked
                await scene.dispatcher.tasks.settled()
                assert callers(scene, since) == {home.team.id}

    async def test_they_are_served_after_a_restart(self, tmp_path: Path) -> None:
        """Without anybody installing anything again."""
        async with scene_in(tmp_path) as scene:
            homes = await scene.installed("Acme Two", "Globex")
            await scene.restart()
            assert scene.workspaces.open_workspaces == sorted(home.team.id for home in homes)
            for home in homes:
                assert labels(await scene.ask(home)) == FINISHED

    async def test_interrupted_runs_continue_with_their_own_tokens(self, tmp_path: Path) -> None:
        """Two runs, in two workspaces, at the same step."""
        council = ScriptedCouncil(held={LAST})
        async with scene_in(tmp_path, council) as scene:
            homes = await scene.installed("Acme Two", "Globex")
            for home in homes:
                await asked(scene, home, LAST, council)
            cards = [scene.cards(home)[0] for home in homes]
            since = len(scene.slack.requests)
            council.held.clear()
            await scene.restart()
            await scene.dispatcher.tasks.settled()
            for home, card in zip(homes, cards, strict=True):
                assert labels(card) == FINISHED
                assert len(scene.cards(home)) == 1
                posts = [call for call in scene.slack.requests[since:] if call.method == "chat.update"]
                channels = {call.arguments["channel"]: call.team for call in posts}
                assert channels[home.general.id] == home.team.id
            answers = [call for call in council.calls if call.step.startswith("stage1.")]
            assert len(answers) == 2 * len(FOUR)

    async def test_a_full_lane_in_one_delays_no_other(self, tmp_path: Path) -> None:
        """Slack's rate limits are each workspace's own."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            hangs = scene.slack.fail(
                "chat.postMessage", breaks="hang", channel=acme.general.id, times=ALWAYS
            )
            for _ in range(AT_ONCE + 1):
                assert (await scene.slack.slash(acme.general, acme.ada, "/council", "Shard?")).acked
            await scene.slack.until(lambda: hangs.hits == AT_ONCE)
            await scene.slack.slash(globex.general, globex.ada, "/council", "Shard?")
            await scene.slack.until(lambda: scene.slack.told(globex.ada))
            assert scene.cards(acme) == []
            hangs.release()
            await scene.dispatcher.tasks.settled()
            assert len(scene.cards(acme)) == AT_ONCE + 1


class TestApart:
    """Nothing of one workspace reaches another."""

    async def test_past_answers(self, tmp_path: Path) -> None:
        """Not by list, search, title, id or button."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            card = await scene.ask(acme, "Where is the treasure buried?")
            run = next(element["value"] for element, _ in card.elements())
            row = await scene.library.journal.get(run)
            assert row is not None
            assert "treasure" in await told(scene, acme, "/council-history")
            for command, text in (
                ("/council-history", ""),
                ("/council-search", "treasure"),
                ("/council-show", row.conversation_id),
                ("/council-show", "Where is"),
                ("/council-stats", ""),
                ("/council-help", ""),
            ):
                assert "buried" not in await told(scene, globex, command, text)
            forgotten = await told(scene, globex, "/council-forget", row.conversation_id)
            assert "buried" not in forgotten
            assert await kept(scene, acme) == 1

    @pytest.mark.parametrize("action", ["council_transcript", "council_again", "council_stop"])
    async def test_buttons(self, tmp_path: Path, action: str) -> None:
        """A value copied from elsewhere opens nothing."""
        council = ScriptedCouncil()
        async with scene_in(tmp_path, council) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            theirs = await scene.ask(acme, "Where is the treasure buried?")
            value = next(element["value"] for element, _ in theirs.elements())
            own = await scene.ask(globex)
            asked_before = len(council.calls)
            block = {"type": "button", "action_id": action, "value": value, "text": {"text": "x"}}
            own.blocks.append({"type": "actions", "block_id": "forged", "elements": [block]})
            await scene.slack.click(own, action, globex.ada, value=value)
            shown = await scene.slack.until(lambda: scene.slack.ephemerals(globex.general, globex.ada))
            await scene.dispatcher.tasks.settled()
            assert shown[-1].text == NOT_HERE
            assert len(council.calls) == asked_before

    async def test_settings_of_channels(self, tmp_path: Path) -> None:
        """Even of two channels with the same id, which Slack never gives out."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            assert "rounds" in await told(scene, acme, "/council-config", "--rounds 3")
            own = await scene.library.overrides.of(Scope("slack", acme.team.id, acme.general.id))
            assert own == {"rounds": 3}
            forged = Scope("slack", globex.team.id, acme.general.id)
            assert await scene.library.overrides.of(forged) == {}
            assert "channel" not in await scene.library.overrides.of(
                Scope("slack", globex.team.id, globex.general.id)
            )

    async def test_budgets(self, tmp_path: Path) -> None:
        """One workspace spends its day's budget; the other still has its own."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            budgets = Budgets(workspace_day=100.0)
            scene.dispatcher.reconfigure(Operator(profiles={"default": profile()}, budgets=budgets))
            spent = {}
            await scene.ask(acme)
            for home in (acme, globex):
                spent[home.team.name] = await told(scene, home, "/council-help")
            assert spent["Acme Two"] != spent["Globex"]

    async def test_who_may_ask(self, tmp_path: Path) -> None:
        """A list with one workspace lets the other install nothing and ask nothing."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            scene.restrict(allow={"workspaces": [acme.team.id]})
            assert labels(await scene.ask(acme)) == FINISHED
            await scene.slack.slash(globex.general, globex.ada, "/council", "Shard?")
            await scene.slack.until(lambda: scene.slack.ephemerals(globex.general, globex.ada))
            assert scene.cards(globex) == []


class TestWarned:
    """An admin whom the operator has listed."""

    @pytest.mark.parametrize("is_theirs", [True, False], ids=["their own", "another"])
    async def test_is_told_of_budgets_of_their_own_workspace(
        self, tmp_path: Path, is_theirs: bool
    ) -> None:
        """By that workspace's bot; of another's, no bot can tell them, and none of theirs does."""
        council = ScriptedCouncil(held={LAST})
        async with scene_in(tmp_path, council, start=False) as scene:
            acme, globex = scene.workspace("Acme Two"), scene.workspace("Globex")
            listed = frozenset({f"slack:{globex.ada.id}"})
            scene.dispatcher = dispatcher_of(scene.library, council, listed)
            budgets = Budgets(workspace_month=ONE_QUESTION * 1.1)
            scene.dispatcher.reconfigure(Operator(profiles={"default": profile()}, budgets=budgets))
            await scene.start()
            for home in (acme, globex):
                assert (await scene.install(home)).status == 200
            since = len(scene.slack.requests)
            await asked(scene, globex if is_theirs else acme, LAST, council)
            assert scene.dispatcher.warnings
            await scene.dispatcher.warnings.settled()
            direct = scene.slack.world.open_im(globex.team, globex.ada.id)
            told_of = [message.text for message in scene.slack.messages(direct)]
            assert len(told_of) == is_theirs
            assert callers(scene, since) == {globex.team.id if is_theirs else acme.team.id}


class TestEnvironment:
    """What Bolt would read by itself."""

    async def test_bolt_finds_no_settings_of_its_own(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Variables that both know; else it would keep installations in a folder of its own."""
        (tmp_path / "home").mkdir()
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        async with scene_in(tmp_path / "data", start=False) as scene:
            monkeypatch.setenv("SLACK_CLIENT_ID", scene.slack.oauth.client_id)
            monkeypatch.setenv("SLACK_CLIENT_SECRET", scene.slack.oauth.client_secret)
            monkeypatch.setenv("SLACK_SIGNING_SECRET", "another")
            monkeypatch.setenv("SLACK_SCOPES", "admin")
            monkeypatch.setenv("SLACK_USER_SCOPES", "admin")
            await scene.start()
            [acme] = await scene.installed("Acme Two")
            assert labels(await scene.ask(acme)) == FINISHED
        assert [*(tmp_path / "home").iterdir()] == []


class TestRouted:
    """Whose an event is."""

    async def send(self, scene: Scene, home: Home, **envelope: Any) -> Delivery:
        """Mention the bot of a workspace, in an envelope of one's own."""
        message = scene.slack.post(home.general, home.ada, f"<@{home.team.bot.id}> Shard?")
        event = payloads.message_event("app_mention", home.team, home.general, message)
        payload = payloads.event_callback(scene.slack.world.app_id, home.team, event, scene.clock())
        sent = await scene.slack.courier.send("events_api", payload | envelope)
        await scene.dispatcher.tasks.settled()
        return sent

    async def test_in_a_shared_channel_the_authorization_counts(self, tmp_path: Path) -> None:
        """The event names the workspace of its author, or none (Slack Connect)."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            mine: dict[str, Any] = {"team_id": acme.team.id, "user_id": acme.team.bot.id}
            for team in (globex.team.id, "T0STRANGER", None):
                await self.send(scene, acme, team_id=team, authorizations=[mine])
            assert [labels(card) for card in scene.cards(acme)] == [FINISHED] * 3
            assert scene.cards(globex) == []

    async def test_with_the_app_on_both_sides_the_mentioned_bot_answers(self, tmp_path: Path) -> None:
        """In whichever order Slack lists them."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            both = [{"team_id": home.team.id, "user_id": home.team.bot.id} for home in (globex, acme)]
            await self.send(scene, acme, authorizations=both)
            await self.send(scene, acme, authorizations=both[::-1])
            assert len(scene.cards(acme)) == 2
            assert scene.cards(globex) == []

    async def test_a_workspace_of_an_organization_is_served(self, tmp_path: Path) -> None:
        """Its events name the organization, too."""
        async with scene_in(tmp_path) as scene:
            scene.slack.oauth.extra = {"enterprise": {"id": "E1", "name": "Grid"}}
            [acme] = await scene.installed("Acme Two")
            mine = {"enterprise_id": "E1", "team_id": acme.team.id, "user_id": acme.team.bot.id}
            await self.send(scene, acme, enterprise_id="E1", authorizations=[mine])
            assert labels(scene.cards(acme)[0]) == FINISHED
            await scene.restart()
            assert labels(await scene.ask(acme)) == FINISHED
            scene.slack.uninstall(acme.team)
            await scene.slack.until(lambda: not scene.workspaces.open_workspaces)
            assert await scene.installations.all() == []

    async def test_strangers_are_acknowledged_and_nothing_else(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """One line in the log for each."""
        async with scene_in(tmp_path) as scene:
            await scene.installed("Acme Two")
            stranger = scene.workspace("Stranger")
            since = len(scene.slack.requests)
            for _ in range(2):
                assert (await scene.slack.slash(stranger.general, stranger.ada, "/council", "x")).acked
                assert (await scene.slack.mention(stranger.general, stranger.ada, "x")).acked
            assert scene.slack.requests[since:] == []
            assert capsys.readouterr().out.count("slack_installation_unknown") == 1

    async def test_unsigned_requests_are_refused(self, tmp_path: Path) -> None:
        """For those who installed it, for strangers, and for what nobody can route."""
        async with scene_in(tmp_path) as scene:
            [acme] = await scene.installed("Acme Two")
            url = f"{scene.browser.base}/slack/events"
            bodies: list[dict[str, object]] = [
                {
                    "team_id": acme.team.id,
                    "type": "event_callback",
                    "event": {"type": "app_uninstalled"},
                },
                {"team_id": "T0STRANGER", "type": "event_callback", "event": {}},
                {},
            ]
            async with aiohttp.ClientSession() as session:
                for body in bodies:
                    async with session.post(url, json=body) as answer:
                        assert answer.status == 401
                for odd in ("[]", "{", '{"authorizations": 5}', '{"team": 5}', "payload=5", '"x"'):
                    headers = {"Content-Type": "application/json"}
                    async with session.post(url, data=odd, headers=headers) as answer:
                        assert answer.status in (400, 401), odd
            assert scene.workspaces.open_workspaces == [acme.team.id]

    async def test_slacks_check_of_the_address_is_answered(self, tmp_path: Path) -> None:
        """Also before anybody has installed the app."""
        async with scene_in(tmp_path) as scene:
            challenge = {"type": "url_verification", "challenge": "3eZbrw1a", "token": "x"}
            sent = await scene.slack.courier.send("events_api", challenge)
            assert sent.attempts[0].answer == {"challenge": "3eZbrw1a"}


class TestRemoved:
    """A workspace removes the app."""

    async def test_its_tokens_are_deleted_at_once_and_others_are_served(self, tmp_path: Path) -> None:
        """When Slack's event is acknowledged, they are gone."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            await scene.ask(acme)
            for event in scene.slack.uninstall(acme.team):
                assert (await event).acked
            assert [each.team for each in await scene.installations.all()] == [globex.team.id]
            assert scene.workspaces.open_workspaces == [globex.team.id]
            since = len(scene.slack.requests)
            await scene.slack.slash(acme.general, acme.ada, "/council", "Shard?")
            assert labels(await scene.ask(globex)) == FINISHED
            assert callers(scene, since) == {globex.team.id}
            await scene.restart()
            assert scene.workspaces.open_workspaces == [globex.team.id]

    async def test_its_conversations_are_deleted_in_time(self, tmp_path: Path) -> None:
        """With the settings of its channels; not a day earlier, and nobody else's."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            for home in (acme, globex):
                await scene.ask(home)
                await told(scene, home, "/council-config", "--rounds 3")
            for event in scene.slack.uninstall(acme.team):
                await event
            await days(scene, 15)
            await scene.restart()
            await days(scene, 14.5)
            assert await kept(scene, acme) == 1
            await days(scene, 0.75)
            assert (await kept(scene, acme), await kept(scene, globex)) == (0, 1)
            assert len([*(tmp_path / "conversations").glob("*.json")]) == 1
            own = await scene.library.overrides.everywhere("rounds")
            assert [scope.workspace for scope in own] == [globex.team.id]
            audit = (tmp_path / "audit.jsonl").read_text()
            assert '"by":"removal"' in audit.replace(" ", "")

    async def test_installed_again_in_time_it_keeps_everything(self, tmp_path: Path) -> None:
        """And the next removal waits for all its days."""
        async with scene_in(tmp_path) as scene:
            [acme] = await scene.installed("Acme Two")
            await scene.ask(acme)
            for _ in range(2):
                for event in scene.slack.uninstall(acme.team):
                    await event
                await days(scene, 29)
                assert (await scene.install(acme)).status == 200
            await days(scene, 40)
            assert "Shard or scale up?" in await told(scene, acme, "/council-history")
            assert labels(await scene.ask(acme)) == FINISHED

    async def test_a_run_in_progress_stays_untold_until_it_is_installed_again(
        self, tmp_path: Path
    ) -> None:
        """No call is made with the token that was taken away; then the asker is told once."""
        council = ScriptedCouncil(held={LAST})
        async with scene_in(tmp_path, council) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            await asked(scene, acme, LAST, council)
            for event in scene.slack.uninstall(acme.team):
                await event
            since = len(scene.slack.requests)
            council.release(LAST)
            await scene.dispatcher.tasks.settled()
            [run] = await scene.library.journal.undelivered("slack")
            assert (run.status, run.delivery) == ("answered", "untold")
            assert labels(await scene.ask(globex)) == FINISHED
            assert callers(scene, since) == {globex.team.id}
            assert (await scene.install(acme)).status == 200
            await scene.slack.until(lambda: scene.slack.told(acme.ada))
            await scene.dispatcher.tasks.settled()
            assert await scene.library.journal.undelivered("slack") == []
            assert len(scene.slack.told(acme.ada)) == 1
            assert labels(scene.cards(acme)[0]) == FINISHED

    async def test_it_is_told_after_a_restart_too(self, tmp_path: Path) -> None:
        """Installed again days later, within those in which an answer is tried."""
        council = ScriptedCouncil(held={LAST})
        async with scene_in(tmp_path, council) as scene:
            [acme] = await scene.installed("Acme Two")
            await asked(scene, acme, LAST, council)
            for event in scene.slack.uninstall(acme.team):
                await event
            council.release(LAST)
            await scene.dispatcher.tasks.settled()
            await scene.restart()
            assert len(await scene.library.journal.undelivered("slack")) == 1
            assert (await scene.install(acme)).status == 200
            await scene.slack.until(lambda: scene.slack.told(acme.ada))
            await scene.dispatcher.tasks.settled()
            assert await scene.library.journal.undelivered("slack") == []

    async def test_it_is_noticed_at_the_next_start(self, tmp_path: Path) -> None:
        """If the event came while nothing ran."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            await scene.stop()
            scene.slack.revoke_token("account_inactive", acme.team)
            await scene.restart()
            assert scene.workspaces.open_workspaces == [globex.team.id]
            await scene.slack.until(lambda: not scene.workspaces.waiting)
            assert [each.team for each in await scene.installations.all()] == [globex.team.id]

    async def test_it_is_noticed_by_a_refused_call(self, tmp_path: Path) -> None:
        """If the event never comes; one refusal alone proves nothing."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            scene.slack.fail("chat.update", "token_revoked", channel=acme.general.id)
            assert labels(await scene.ask(acme)) == FINISHED
            scene.slack.revoke_token("token_revoked", acme.team)
            await scene.slack.slash(acme.general, acme.ada, "/council", "Shard?")
            await scene.slack.until(lambda: len(scene.workspaces.open_workspaces) == 1)
            await scene.slack.until(lambda: not scene.workspaces.waiting)
            assert [each.team for each in await scene.installations.all()] == [globex.team.id]

    async def test_old_news_of_it_deletes_nothing(self, tmp_path: Path) -> None:
        """Slack repeats an event for minutes; the app may be installed again by then."""
        async with scene_in(tmp_path) as scene:
            [acme] = await scene.installed("Acme Two")
            events = scene.slack.uninstall(acme.team)
            for event in events:
                await event
            assert (await scene.install(acme)).status == 200
            for event in events:
                assert (await scene.slack.redeliver(event)).status == 200
            assert scene.workspaces.open_workspaces == [acme.team.id]
            assert labels(await scene.ask(acme)) == FINISHED

    async def test_it_is_removed_right_after_it_was_installed(self, tmp_path: Path) -> None:
        """Then Slack says whether the token still counts."""
        async with scene_in(tmp_path) as scene:
            [acme] = await scene.installed("Acme Two")
            for event in scene.slack.uninstall(acme.team):
                assert (await event).acked
            assert await scene.installations.all() == []

    async def test_tokens_that_cannot_be_deleted_yet_are_deleted_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """None of them is used any more; it is tried again until it is done."""
        monkeypatch.setattr(installations, "BUSY_SECONDS", 0.05)
        async with scene_in(tmp_path) as scene:
            [acme] = await scene.installed("Acme Two")
            other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            await scene.slack.uninstall(acme.team)[0]
            assert scene.workspaces.open_workspaces == []
            other.execute("ROLLBACK")
            other.close()
            await scene.slack.until(lambda: not scene.workspaces.waiting)
            assert await scene.installations.all() == []

    async def test_somebodys_own_token_is_no_removal(self, tmp_path: Path) -> None:
        """The event names whose tokens were revoked."""
        async with scene_in(tmp_path) as scene:
            [acme] = await scene.installed("Acme Two")
            tokens = {"oauth": [acme.ada.id], "bot": []}
            sent = await scene.slack.tell(acme.team, {"type": "tokens_revoked", "tokens": tokens})
            assert sent.acked
            assert labels(await scene.ask(acme)) == FINISHED


class TestFaults:
    """One workspace's trouble is its own."""

    async def test_a_new_token_is_used_by_runs_in_progress(self, tmp_path: Path) -> None:
        """The old one is refused from then on."""
        council = ScriptedCouncil(held={LAST})
        async with scene_in(tmp_path, council) as scene:
            [acme] = await scene.installed("Acme Two")
            await asked(scene, acme, LAST, council)
            scene.slack.oauth.renews = True
            assert (await scene.install(acme)).status == 200
            council.release(LAST)
            await scene.dispatcher.tasks.settled()
            [card] = scene.cards(acme)
            assert labels(card) == FINISHED
            assert len(scene.slack.told(acme.ada)) == 1

    async def test_a_card_outlasts_a_token_that_is_refused_for_a_while(self, tmp_path: Path) -> None:
        """What can't be edited now isn't lost: the channel sees one card, with its thread."""
        council = ScriptedCouncil(held={FIRST_REVIEW, LAST})
        async with scene_in(tmp_path, council) as scene:
            [acme] = await scene.installed("Acme Two")
            await asked(scene, acme, FIRST_REVIEW, council)
            scene.slack.fail("chat.update", "invalid_auth", times=2)
            council.release(FIRST_REVIEW)
            await council.until_called(LAST)
            await scene.slack.until(lambda: refused(scene, "chat.update") == 2)
            council.release(LAST)
            await scene.dispatcher.tasks.settled()
            [card] = scene.cards(acme)
            assert labels(card) == FINISHED
            assert len(scene.slack.thread(acme.general, card.ts)) == WHOLE_THREAD + 1
            assert len(scene.slack.told(acme.ada)) == 1

    async def test_refusals_of_a_closed_workspace_are_forgotten_when_it_opens(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Runs in progress are refused while it waits; that doesn't close it once more."""
        sleep, refused_for = Sleeper.sleep, list[SlackBot]()

        async def refused_meanwhile(sleeper: Sleeper, seconds: float) -> None:
            for bot in refused_for if seconds == workspaces.FIRST_SECONDS else ():
                bot.lose("invalid_auth")
            await sleep(sleeper, seconds)

        monkeypatch.setattr(Sleeper, "sleep", refused_meanwhile)
        async with scene_in(tmp_path) as scene:
            [acme] = await scene.installed("Acme Two")
            bot = scene.workspaces._places[acme.team.id].bot  # pyright: ignore[reportPrivateUsage] - its calls are refused
            refused_for.append(bot)
            with capture_logs() as logs:
                bot.lose("invalid_auth")
                await scene.slack.until(lambda: "slack_workspace_opened" in named(logs))
                assert labels(await scene.ask(acme)) == FINISHED
            assert named(logs).count("slack_access_lost") == 1

    async def test_installed_twice_at_once_it_is_served_once(self, tmp_path: Path) -> None:
        """By two admins, or by one who is impatient."""
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("Acme Two")
            pages = await asyncio.gather(*(scene.install(acme) for _ in range(5)))
            assert [page.status for page in pages] == [200] * 5
            [installed] = await scene.installations.all()
            assert installed.token == acme.team.token
            card = await scene.ask(acme)
            assert labels(card) == FINISHED
            assert len(scene.cards(acme)) == 1

    async def test_many_workspaces_install_it_at_once(self, tmp_path: Path) -> None:
        """Each gets its own."""
        async with scene_in(tmp_path) as scene:
            homes = [scene.workspace(f"Team {number}") for number in range(12)]
            pages = await asyncio.gather(*map(scene.install, homes))
            assert {page.status for page in pages} == {200}
            assert scene.workspaces.open_workspaces == sorted(home.team.id for home in homes)
            tokens = {each.team: each.token for each in await scene.installations.all()}
            assert tokens == {home.team.id: home.team.token for home in homes}

    @pytest.mark.parametrize(
        "fault",
        [{"error": "invalid_auth"}, {"status": 503, "html": True}, {"breaks": "reset"}],
        ids=["refused", "down", "reset"],
    )
    async def test_one_that_cannot_be_opened_is_tried_again(
        self, tmp_path: Path, fault: dict[str, Any]
    ) -> None:
        """Others are served meanwhile; Slack is told to repeat what comes for it, and no token is lost."""
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            await scene.stop()
            trouble = scene.slack.fail("auth.test", team=acme.team.id, times=10**6, **fault)
            await scene.restart()
            assert scene.workspaces.open_workspaces == [globex.team.id]
            assert await scene.workspaces.is_connected()
            assert labels(await scene.ask(globex)) == FINISHED
            sent = await scene.slack.mention(acme.general, acme.ada, "Shard?")
            assert sent.attempts[0].status == 503
            assert len(await scene.installations.all()) == 2
            trouble.release()
            await scene.slack.until(lambda: len(scene.workspaces.open_workspaces) == 2)
            assert (await scene.slack.redeliver(sent)).status == 200
            await scene.dispatcher.tasks.settled()
            assert labels(scene.cards(acme)[0]) == FINISHED

    async def test_one_that_never_answers_does_not_keep_the_others_waiting(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At the start."""
        monkeypatch.setattr(workspaces, "START_SECONDS", 0.5)
        async with scene_in(tmp_path) as scene:
            acme, globex = await scene.installed("Acme Two", "Globex")
            await scene.stop()
            scene.slack.fail("auth.test", team=acme.team.id, times=10**6, breaks="hang")
            await scene.restart()
            assert scene.workspaces.open_workspaces == [globex.team.id]
            assert labels(await scene.ask(globex)) == FINISHED
