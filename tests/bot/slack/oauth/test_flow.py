"""Installing the app: the pages, and each way in which it can fail."""

import asyncio
import html
import re
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bot.slack.manifest import OPTIONAL, REQUIRED, THREADS
from bot.slack.oauth import flow, installations
from bot.slack.oauth.installations import NAME
from bot.view.wording import slack_install as wording
from tests.bot.slack.oauth import scene as scenes
from tests.bot.slack.oauth.scene import Home, Page, Scene, scene_in
from tests.pairs import pairs


def asked_scopes(address: str) -> set[str]:
    """Return the scopes that an address of Slack's page asks for."""
    return {*parse_qs(urlsplit(address).query)["scope"][0].split(",")}


def said(page: Page) -> str:
    """Return a page's text without its markup."""
    plain = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page.text, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", plain))


async def nothing_installed(scene: Scene) -> bool:
    """Return whether no workspace is stored or served."""
    return not await scene.installations.all() and not scene.workspaces.open_workspaces


class TestOffer:
    """The page that leads to Slack."""

    async def test_it_asks_for_the_scopes_of_the_manifest_alone(self, tmp_path: Path) -> None:
        """The second link adds those that let it read threads."""
        async with scene_in(tmp_path) as scene:
            page = await scene.browser.open("/slack/install")
            assert page.status == 200
            address = page.leads_to()
            assert address.startswith("https://slack.com/oauth/v2/authorize?")
            assert asked_scopes(address) == REQUIRED | OPTIONAL
            assert asked_scopes(page.leads_to(scenes.THREADS)) == REQUIRED | OPTIONAL | THREADS
            assert parse_qs(urlsplit(address).query).get("user_scope") is None

    async def test_no_page_has_a_secret_or_can_be_kept_or_framed(self, tmp_path: Path) -> None:
        """Neither the offer, nor a success, nor a failure."""
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("Acme Two")
            pages = [await scene.browser.open("/slack/install"), await scene.install(acme)]
            pages.append(await scene.browser.open("/slack/oauth_redirect?code=1&state=2"))
            secrets = {scene.slack.oauth.client_secret, scene.slack.signing_secret, scenes.KEY}
            for page in pages:
                everything = page.text + str(page.headers)
                assert not [one for one in secrets | scene.tokens() if one in everything]
                assert page.headers["Content-Type"] == "text/html; charset=utf-8"
                assert page.headers["Cache-Control"] == "no-store"
                assert page.headers["Referrer-Policy"] == "no-referrer"
                assert page.headers["X-Content-Type-Options"] == "nosniff"
                assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
                assert "<script" not in page.text
            assert pages[0].headers["Set-Cookie"].endswith("Secure")

    async def test_of_a_crafted_address_only_a_workspace_gets_into_it(self, tmp_path: Path) -> None:
        """It could lead back to somebody else's server."""
        async with scene_in(tmp_path) as scene:
            crafted = "T1%26redirect_uri%3Dhttps%3A%2F%2Fevil.example"
            page = await scene.browser.open(f"/slack/install?team={crafted}")
            assert "evil" not in page.text
            page = await scene.browser.open("/slack/install?team=T0123ABC")
            assert parse_qs(urlsplit(page.leads_to()).query)["team"] == ["T0123ABC"]

    async def test_a_stranger_takes_no_room_from_whoever_installs_it(self, tmp_path: Path) -> None:
        """However often the page was opened before, or meanwhile; and nothing of that is stored."""
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("Acme Two")
            begun = await scene.browser.open("/slack/install")
            back = scene.slack.oauth.allow(begun.leads_to(), acme.ada)
            before = (tmp_path / NAME).read_bytes()
            pages = [await scene.browser.open("/slack/install") for _ in range(50)]
            assert {page.status for page in pages} == {200}
            assert (tmp_path / NAME).read_bytes() == before
            assert (await scene.browser.open(back, begun.cookie)).status == 200


class TestInstalled:
    """The page after a success."""

    async def test_it_says_where_and_what_to_type(self, tmp_path: Path) -> None:
        """A workspace's name is only text."""
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("A <b>& Co")
            page = await scene.install(acme)
            assert page.status == 200
            assert "It can be asked in A &lt;b&gt;&amp; Co." in page.text
            assert wording.INVITE in said(page)
            assert wording.WORKS_WITHOUT not in said(page)

    async def test_it_names_what_it_may_not_do(self, tmp_path: Path) -> None:
        """Some permissions can be left unticked."""
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("Acme Two")
            page = said(await scene.install(acme, REQUIRED | OPTIONAL - {"users:read", "im:write"}))
            assert wording.WORKS_WITHOUT in page
            assert "tell who is an admin, and call people by their names (users:read)" in page
            assert "(im:write)" in page
            assert wording.NEEDS not in page
            assert wording.INVITE in page

    async def test_it_says_that_it_cannot_work(self, tmp_path: Path) -> None:
        """Where a permission is missing that it needs."""
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("Acme Two")
            page = said(await scene.install(acme, (REQUIRED | OPTIONAL) - {"files:write"}))
            assert f"{wording.NEEDS} post transcripts (files:write)" in page
            assert wording.ALLOW_ALL in page
            assert wording.INVITE not in page


class TestState:
    """Only the browser that began an installation can finish it, once."""

    async def begun(self, scene: Scene) -> tuple[Home, str, str]:
        """Begin an installation; return where Slack leads back to, and the cookie."""
        acme = scene.workspace("Acme Two")
        offer = await scene.browser.open("/slack/install")
        return acme, scene.slack.oauth.allow(offer.leads_to(), acme.ada), offer.cookie

    async def refused(self, scene: Scene, address: str, cookie: str, status: int) -> None:
        """Open an address, which is refused without asking Slack."""
        asked = len(scene.slack.calls("oauth.v2.access"))
        page = await scene.browser.open(address, cookie)
        assert page.status == status
        assert wording.STATE_REFUSED in said(page)
        assert wording.AGAIN in said(page)
        assert len(scene.slack.calls("oauth.v2.access")) == asked

    async def test_a_replay_is_refused(self, tmp_path: Path) -> None:
        """What is installed stays."""
        async with scene_in(tmp_path) as scene:
            acme, back, cookie = await self.begun(scene)
            assert (await scene.browser.open(back, cookie)).status == 200
            await self.refused(scene, back, cookie, 401)
            assert scene.workspaces.open_workspaces == [acme.team.id]

    async def test_of_two_at_once_one_is_refused(self, tmp_path: Path) -> None:
        """A code is exchanged once."""
        async with scene_in(tmp_path) as scene:
            _, back, cookie = await self.begun(scene)
            pages = await asyncio.gather(*(scene.browser.open(back, cookie) for _ in range(4)))
            assert sorted(page.status for page in pages) == [200, 401, 401, 401]
            assert len(scene.slack.calls("oauth.v2.access")) == 1

    async def test_another_browser_is_refused(self, tmp_path: Path) -> None:
        """Without the cookie, or with another's; the right one can still finish."""
        async with scene_in(tmp_path) as scene:
            _, back, cookie = await self.begun(scene)
            other = (await scene.browser.open("/slack/install")).cookie
            await self.refused(scene, back, "", 400)
            await self.refused(scene, back, other, 400)
            assert (await scene.browser.open(back, cookie)).status == 200

    async def test_a_forged_state_is_refused(self, tmp_path: Path) -> None:
        """Also with a cookie to go with it."""
        async with scene_in(tmp_path) as scene:
            _, back, _ = await self.begun(scene)
            forged = re.sub("state=[^&]*", "state=made-up", back)
            await self.refused(scene, forged, "slack-app-oauth-state=made-up", 401)
            assert await nothing_installed(scene)

    async def test_after_ten_minutes_it_is_refused(self, tmp_path: Path) -> None:
        """It was opened long ago."""
        async with scene_in(tmp_path) as scene:
            _, back, cookie = await self.begun(scene)
            scene.clock.advance(601)
            await self.refused(scene, back, cookie, 401)


FAULTS: list[tuple[dict[str, Any], str, int]] = [
    ({"error": "bad_client_secret"}, wording.MISCONFIGURED, 400),
    ({"error": "bad_redirect_uri"}, wording.MISCONFIGURED, 400),
    ({"error": "invalid_client_id"}, wording.MISCONFIGURED, 400),
    ({"error": "invalid_code"}, wording.CODE_REFUSED, 400),
    ({"error": "code_already_used"}, wording.CODE_REFUSED, 400),
    ({"error": "cannot_install_an_org_installed_app"}, wording.ORGANIZATION, 400),
    ({"error": "access_denied"}, wording.UNKNOWN, 400),
    ({"error": "internal_error"}, wording.NO_ANSWER, 502),
    ({"error": "something_new"}, wording.NO_ANSWER, 502),
    ({"status": 503, "html": True}, wording.NO_ANSWER, 502),
    ({"retry_after": 30}, wording.NO_ANSWER, 502),
    ({"breaks": "reset"}, wording.NO_ANSWER, 502),
    ({"breaks": "hang"}, wording.NO_ANSWER, 502),
    ({"breaks": "reset", "applied": True}, wording.NO_ANSWER, 502),
]


class TestNotInstalled:
    """Each way in which it fails has a page, and leaves nothing behind."""

    @pytest.mark.parametrize(("method", "failing"), pairs(["oauth.v2.access", "auth.test"], FAULTS))
    async def test_slack_fails(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        method: str,
        failing: tuple[dict[str, Any], str, int],
    ) -> None:
        """Or never answers; the next attempt succeeds."""
        fault, why, status = failing
        if fault.get("breaks") == "hang":  # a busy machine may take its time for any other answer
            monkeypatch.setattr(flow, "EXCHANGE_SECONDS", 0.3)
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("Acme Two")
            scene.slack.fail(method, **fault)
            page = await scene.install(acme)
            assert (page.status, why in said(page)) == (status, True), said(page)
            assert wording.NOTHING_CHANGED in said(page)
            assert await nothing_installed(scene)
            monkeypatch.undo()
            assert (await scene.install(acme)).status == 200

    async def test_somebody_cancels_on_slacks_page(self, tmp_path: Path) -> None:
        """They read that they did."""
        async with scene_in(tmp_path) as scene:
            offer = await scene.browser.open("/slack/install")
            page = await scene.browser.open(scene.slack.oauth.cancel(offer.leads_to()), offer.cookie)
            assert wording.CANCELLED in said(page)

    async def test_nothing_that_an_address_says_is_repeated(self, tmp_path: Path) -> None:
        """It would be somebody else's words on the council's page."""
        async with scene_in(tmp_path) as scene:
            page = await scene.browser.open("/slack/oauth_redirect?error=call+0900+now&code=qz7kx")
            assert wording.UNKNOWN in said(page)
            assert "0900" not in page.text
            assert "qz7kx" not in page.text

    @pytest.mark.parametrize(
        ("extra", "why"),
        [
            ({"is_enterprise_install": True, "team": None}, wording.ORGANIZATION),
            ({"refresh_token": "xoxe-1", "expires_in": 43200}, wording.ROTATING),
            ({"team": {"id": "../x"}}, wording.UNKNOWN),
            ({"team": {"id": "T0OTHER", "name": "Other"}}, wording.OTHER_WORKSPACE),
        ],
        ids=["organization", "rotating", "odd", "another workspace's"],
    )
    async def test_what_is_granted_cannot_be_used(
        self, tmp_path: Path, extra: dict[str, Any], why: str
    ) -> None:
        """The token is given back."""
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("Acme Two")
            scene.slack.oauth.extra = extra
            page = await scene.install(acme)
            assert page.status == 403
            assert why in said(page)
            assert acme.team.revoked == "token_revoked"
            assert await nothing_installed(scene)

    @pytest.mark.parametrize("listed", ["allow", "deny"])
    async def test_the_operator_does_not_serve_it(self, tmp_path: Path, listed: str) -> None:
        """By `[access]`, so that no stranger spends the operator's credit."""
        async with scene_in(tmp_path) as scene:
            acme, globex = scene.workspace("Acme Two"), scene.workspace("Globex")
            one = acme if listed == "allow" else globex
            scene.restrict(**{listed: {"workspaces": [one.team.id]}})
            page = await scene.install(globex)
            assert page.status == 403
            assert f"doesn't serve the workspace {globex.team.id}" in said(page)
            assert globex.team.revoked
            assert (await scene.install(acme)).status == 200
            assert scene.workspaces.open_workspaces == [acme.team.id]

    async def test_the_file_cannot_be_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The token isn't used, and the log names the file; once it can be written, it can be tried again."""
        monkeypatch.setattr(installations, "BUSY_SECONDS", 0.05)
        async with scene_in(tmp_path) as scene:
            acme = scene.workspace("Acme Two")
            offer = await scene.browser.open("/slack/install")
            back = scene.slack.oauth.allow(offer.leads_to(), acme.ada)
            other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            page = await scene.browser.open(back, offer.cookie)
            assert page.status == 503
            assert wording.NOT_SAVED in said(page)
            other.execute("ROLLBACK")
            other.close()
            assert (await scene.install(acme)).status == 200
