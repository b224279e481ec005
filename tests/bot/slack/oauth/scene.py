"""The app in several workspaces of a Slack on 127.0.0.1, and a browser that installs it."""

import html
import re
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from bot.app import Library, open_lookup
from bot.service.admission.access import Access
from bot.service.admission.channels import Operator
from bot.service.dispatcher import Dispatcher
from bot.slack.oauth.flow import SlackApp
from bot.slack.oauth.installations import Installations, open_installations
from bot.slack.oauth.workspaces import SlackWorkspaces
from tests.bot.slack.test_bot import Sleeper, dispatcher_of
from tests.council.scripted import ScriptedCouncil, profile
from tests.library import open_library
from tests.ports import free_port
from tests.slack_server import Channel, Endpoint, HandClock, Message, SlackServer, Team, User

KEY = "Q291bmNpbENvdW5jaWxDb3VuY2lsQ291bmNpbCEhISE="
OTHER_KEY = "T3RoZXJPdGhlck90aGVyT3RoZXJPdGhlck90aGVyISE="
BUTTON = re.compile(r'<a class="button" href="([^"]*)"')
THREADS = re.compile(r'<p><a href="([^"]*)">Add it, and')


@dataclass(frozen=True, slots=True)
class Page:
    """What a browser shows."""

    status: int
    text: str
    headers: dict[str, str]
    cookie: str = ""

    def leads_to(self, link: re.Pattern[str] = BUTTON) -> str:
        """Return where its button leads."""
        found = link.search(self.text)
        assert found, self.text
        return html.unescape(found[1])


@dataclass(frozen=True, slots=True)
class Browser:
    """Opens the pages of an installation, as somebody on the internet would."""

    base: str
    session: aiohttp.ClientSession

    async def open(self, address: str, cookie: str = "") -> Page:
        """Open a page of the council, wherever the address says that it is."""
        parts = urlsplit(address)
        url = f"{self.base}{parts.path}?{parts.query}"
        headers = {"Cookie": cookie} if cookie else {}
        async with self.session.get(url, headers=headers) as response:
            given = response.headers.get("Set-Cookie", "").partition(";")[0]
            return Page(response.status, await response.text(), dict(response.headers), given)


class Punctual(Endpoint):
    """Signs by the real time, by which the program checks it, however far the test's clock is."""

    def headers(self, body: str, now: float) -> dict[str, str]:
        """Return Slack's signature."""
        del now  # part of the interface
        return super().headers(body, time.time())


@dataclass
class Home:
    """A workspace of the test: its people and a channel."""

    team: Team
    ada: User
    general: Channel


@dataclass
class Scene:
    """A Slack of several workspaces, and the council that they may install."""

    slack: SlackServer
    folder: Path
    council: ScriptedCouncil
    library: Library
    dispatcher: Dispatcher
    clock: HandClock
    port: int
    browser: Browser
    keys: Sequence[str] = (KEY,)
    removal_days: int = 30
    installations: Installations = field(init=False)
    workspaces: SlackWorkspaces = field(init=False)
    _running: AsyncExitStack = field(default_factory=AsyncExitStack)

    def now(self) -> datetime:
        """The time of Slack's and the council's clock."""
        return datetime.fromtimestamp(self.clock(), UTC)

    async def start(self) -> None:
        """Start the council."""
        stack = AsyncExitStack()
        app = SlackApp(
            self.slack.oauth.client_id, self.slack.oauth.client_secret, self.slack.signing_secret
        )
        self.installations = await stack.enter_async_context(
            open_installations(self.folder, app.client_id, self.keys, self.now)
        )
        self.workspaces = SlackWorkspaces(
            self.dispatcher,
            open_lookup(self.library),
            self.installations,
            app=app,
            removal_days=self.removal_days,
            http_port=self.port,
            api_url=self.slack.api_url.rstrip("/"),
            clock=self.clock,
            now=self.clock,
            sleep=Sleeper(self.clock).sleep,
        )
        await stack.enter_async_context(self.workspaces)
        stack.push_async_callback(self.dispatcher.tasks.drain, 0)
        self._running = stack

    async def stop(self) -> None:
        """End the council."""
        await self._running.aclose()

    async def restart(self) -> None:
        """End it, and start another over the same folder."""
        await self.stop()
        self.dispatcher = dispatcher_of(self.library, self.council)
        await self.start()

    def restrict(self, **lists: object) -> None:
        """Let `[access]` name workspaces."""
        access = Access.model_validate(lists)
        self.dispatcher.reconfigure(Operator(profiles={"default": profile()}, access=access))

    def workspace(self, name: str, **options: Any) -> Home:
        """Open a workspace without the app."""
        team = self.slack.add_team(name, installed=False, **options)
        ada = self.slack.add_user("ada", admin=True, team=team)
        return Home(team, ada, self.slack.add_channel("general", ada, team=team))

    async def install(self, place: Home, scopes: Iterable[str] | None = None) -> Page:
        """Install the app in a workspace, as its admin does; return the last page."""
        offer = await self.browser.open("/slack/install")
        back = self.slack.oauth.allow(offer.leads_to(), place.ada, scopes)
        return await self.browser.open(back, offer.cookie)

    async def installed(self, *names: str) -> list[Home]:
        """Return workspaces with the app."""
        places = [self.workspace(name) for name in names]
        for place in places:
            page = await self.install(place)
            assert page.status == 200, page.text
        return places

    async def ask(self, place: Home, text: str = "Shard or scale up?") -> Message:
        """Ask by command and see the run through; return its card."""
        delivery = await self.slack.slash(place.general, place.ada, "/council", text)
        assert delivery.acked, delivery.attempts
        await self.dispatcher.tasks.settled()
        return self.cards(place)[-1]

    def cards(self, place: Home) -> list[Message]:
        """Return what the bot has posted in a workspace's channel, outside of threads."""
        return [message for message in self.slack.messages(place.general) if message.bot_id]

    def tokens(self) -> set[str]:
        """Return every token that Slack accepts."""
        return {team.token for team in self.slack.world.teams.values() if team.revoked is None}


@asynccontextmanager
async def scene_in(
    folder: Path, council: ScriptedCouncil | None = None, *, start: bool = True, **options: Any
) -> AsyncGenerator[Scene]:
    """Start a Slack and a council that nobody has installed yet."""
    clock, models, port = HandClock(), council or ScriptedCouncil(), free_port()
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(SlackServer(clock))
        slack.patience.retry_delays = ()
        slack.patience.ack_seconds = 30  # a busy machine fails no test
        slack.courier.endpoint = Punctual(f"http://127.0.0.1:{port}/slack/events", slack.signing_secret)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        library = await stack.enter_async_context(open_library(folder))
        scene = Scene(
            slack,
            folder,
            models,
            library,
            dispatcher_of(library, models),
            clock,
            port,
            Browser(f"http://127.0.0.1:{port}", session),
            **options,
        )
        if start:
            await scene.start()
        try:
            yield scene
        finally:
            await scene.stop()
