"""The Slack adapter: the real Bolt app against a Slack on 127.0.0.1, its models played by a script."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from bot.app import Library, open_lookup
from bot.errors import VenueError
from bot.past.lookup import Lookup
from bot.service.channels import Operator
from bot.service.dispatcher import Dispatcher
from bot.service.limits import Limits
from bot.slack.bot import SlackAccess, SlackBot, Timing
from bot.slack.client import SHORTCUT
from bot.view.wording.commands import NOT_HERE
from storage.journal.rows import RunRow
from tests.bot import dispatching
from tests.breaking import ALWAYS
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.library import open_library
from tests.ports import free_port
from tests.slack_server import (
    Channel,
    Delivery,
    Ephemeral,
    HandClock,
    Message,
    SlackServer,
    User,
    payloads,
)

Json = dict[str, Any]

dispatcher_of = partial(dispatching.dispatcher_of, limits=Limits(runs_per_user=32, runs_per_channel=32))


class Sleeper:
    """Sleeps on its own clock: when nothing else happens, it jumps to the next wake-up."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self._ends: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has advanced by this much."""
        end = self.clock() + seconds
        self._ends.append(end)
        try:
            while self.clock() < end:
                await asyncio.sleep(0.001)
                if end == min(self._ends):
                    self.clock.time = max(self.clock.time, end)
        finally:
            self._ends.remove(end)


def labels(message: Message | Ephemeral) -> list[str]:
    return [element["text"]["text"] for element, _ in message.elements()]


@dataclass
class Place:
    """A Slack with the bot in it, and the bot's parts."""

    slack: SlackServer
    council: ScriptedCouncil
    dispatcher: Dispatcher
    library: Library
    bot: SlackBot
    clock: HandClock
    ada: User
    bob: User
    general: Channel

    async def deliver(self, kind: str, message: Message, event: Json, **envelope: object) -> Delivery:
        """Send a message event with some fields replaced."""
        channel = self.slack.world.channels[message.channel]
        told = payloads.message_event(kind, self.slack.team, channel, message) | event
        payload = payloads.event_callback(
            self.slack.world.app_id, self.slack.team, told, self.slack.clock()
        )
        return await self.slack.courier.send("events_api", payload | envelope)

    async def card(self, channel: Channel | None = None) -> Message:
        place = channel or self.general
        return (await self.slack.until(lambda: self.cards(place)))[0]

    def cards(self, channel: Channel) -> list[Message]:
        """Return what the bot has posted in a channel, outside of threads."""
        return [message for message in self.slack.messages(channel) if message.bot_id]

    def pings(self, channel: Channel | None = None) -> list[frozenset[str]]:
        """Return whom the bot's messages notified, one entry per message."""
        messages = (channel or self.general).messages.values()
        return [message.pinged for message in messages if message.bot_id and message.pinged]

    def told(self, user: User, channel: Channel | None = None) -> list[str]:
        return [shown.text for shown in self.slack.ephemerals(channel or self.general, user)]

    async def until_told(self, user: User, channel: Channel | None = None) -> str:
        """Wait for something only this person is shown."""
        return (await self.slack.until(lambda: self.told(user, channel)))[-1]

    async def ask(self, text: str = "Shard or scale up?", user: User | None = None) -> Message:
        """Ask by command and see the run through."""
        delivery = await self.slack.slash(self.general, user or self.ada, "/council", text)
        assert delivery.acked
        await self.dispatcher.tasks.settled()
        return self.cards(self.general)[-1]

    async def run(self, card: Message) -> RunRow:
        [element, *_] = [element for element, _ in card.elements()]
        found = await self.library.journal.get(element["value"])
        assert found is not None
        return found


def cards_in(place: Place, head: Message) -> list[Message]:
    """Return the finished cards in a thread, oldest first."""
    replies = place.slack.thread(place.general, head.ts)
    return [reply for reply in replies if "Ask again" in labels(reply)]


@asynccontextmanager
async def at_work(
    folder: Path,
    council: ScriptedCouncil | None = None,
    *,
    without: frozenset[str] = frozenset(),
    scopes: frozenset[str] = frozenset(),
    by_http: bool = False,
    admins: frozenset[str] = frozenset(),
) -> AsyncGenerator[Place]:
    """Start a Slack, a dispatcher over real storage, and the bot between them."""
    clock = HandClock()
    models = council or ScriptedCouncil()
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(SlackServer(clock))
        slack.patience.retry_delays = (0, 0, 0)
        slack.patience.ack_seconds = 30  # a busy machine fails no test
        slack.team.scopes = slack.team.scopes - without | scopes
        ada, bob = slack.add_user("ada"), slack.add_user("bob")
        general = slack.add_channel("general", ada, bob)
        library = await stack.enter_async_context(open_library(folder))
        dispatcher = dispatcher_of(library, models, admins)
        port = free_port()
        if by_http:
            slack.use_http(f"http://127.0.0.1:{port}/slack/events")
        bot = bot_of(slack, dispatcher, library, clock, port if by_http else None)
        await stack.enter_async_context(bot)
        stack.push_async_callback(dispatcher.tasks.drain, 0)
        if not by_http:
            await slack.connected()
        yield Place(slack, models, dispatcher, library, bot, clock, ada, bob, general)


def bot_of(
    slack: SlackServer, dispatcher: Dispatcher, library: Library, clock: HandClock, port: int | None
) -> SlackBot:
    """Return a bot that listens by a socket, or on a port."""
    return SlackBot(
        dispatcher,
        open_lookup(library),
        SlackAccess(
            bot_token=slack.token,
            app_token=None if port else slack.app_token,
            signing_secret=slack.signing_secret if port else None,
            http_port=port,
            api_url=slack.api_url.rstrip("/"),
        ),
        timing=Timing(clock=clock, now=clock, sleep=Sleeper(clock).sleep),
    )


@asynccontextmanager
async def restarted(
    place: Place, admins: frozenset[str] = frozenset(), operator: Operator | None = None
) -> AsyncGenerator[Dispatcher]:
    """End the bot, and start a new one over the same storage."""
    await place.bot.__aexit__(None, None, None)
    dispatcher = dispatcher_of(place.library, place.council, admins)
    if operator:
        dispatcher.reconfigure(operator)
    async with bot_of(place.slack, dispatcher, place.library, place.clock, None):
        await place.slack.connected()
        yield dispatcher
        await dispatcher.tasks.drain(0)


async def test_every_message_has_text_and_unfurls_nothing(tmp_path: Path) -> None:
    """Notifications and screen readers get words; a link in an answer draws no preview."""
    async with at_work(tmp_path) as place:
        await place.ask()
        posts = place.slack.calls("chat.postMessage")
        assert len(posts) == 1 + 1 + len(FOUR)
        assert all(post.arguments["text"] for post in posts)
        flags = {(post.arguments["unfurl_links"], post.arguments["unfurl_media"]) for post in posts}
        assert flags <= {("0", "0"), ("false", "false"), (False, False)}
        assert all(call.arguments["text"] for call in place.slack.calls("chat.update"))


async def test_a_mention_without_a_question_gets_a_hint(tmp_path: Path) -> None:
    """Shown to that person alone, in the thread, where no command can be given."""
    async with at_work(tmp_path) as place:
        talk = place.slack.post(place.general, place.bob, "What do we do?")
        await place.slack.mention(place.general, place.ada, "", thread_ts=talk.ts)
        assert await place.until_told(place.ada) == (
            "There is no question. Write it after the mention: @council Should we shard now?"
        )
        [shown] = place.slack.ephemerals(place.general, place.ada)
        assert shown.thread_ts == talk.ts


async def test_a_file_behind_slacks_sign_in_page_is_left_out(tmp_path: Path) -> None:
    """The page is no attachment."""
    async with at_work(tmp_path) as place:
        place.slack.team.scopes -= {"files:read"}
        plan = place.slack.add_file("plan.md", b"3 TB", place.ada)
        message = place.slack.post(place.general, place.ada, "Well?", files=[plan])
        await place.slack.shortcut(SHORTCUT, message, place.ada)
        await place.dispatcher.tasks.settled()
        [card] = place.cards(place.general)
        assert "Not read: plan.md (it can't be fetched)." in card.text
        assert len(place.council.asked("stage1")) == 4


async def test_what_bots_write_is_no_question(tmp_path: Path) -> None:
    """Neither the council's own messages nor another bot's."""
    async with at_work(tmp_path) as place:
        robot = place.slack.add_user("robot")
        direct = place.slack.world.open_im(place.slack.team, robot.id)
        for author, sign in ((place.slack.team.bot, place.slack.team.bot_id), (robot, "B999")):
            message = place.slack.post(direct, author, f"<@{place.slack.team.bot.id}> Shard?")
            for kind in ("message", "app_mention"):
                await place.deliver(kind, message, {"bot_id": sign})
        edited = place.slack.post(direct, place.ada, "Shard?")
        await place.deliver("message", edited, {"subtype": "message_changed"})
        await place.deliver("message", edited, {"channel": place.general.id, "channel_type": "public"})
        await place.dispatcher.tasks.settled()
        assert place.council.calls == []
        assert place.told(robot, direct) == []


async def test_a_bots_mention_gets_a_reason_once_an_hour(tmp_path: Path) -> None:
    """Below it; a workflow's event names no user. Bots that answer each other soon stop."""
    async with at_work(tmp_path) as place:
        hour = -place.clock() % 3600
        for seconds, is_said in ((hour, True), (60, False), (60, False), (3600, True)):
            place.clock.advance(seconds)
            said = f"<@{place.slack.team.bot.id}> Shard?"
            mention = place.slack.post(place.general, place.bob, said)
            event = {"user": None, "bot_id": "B999", "subtype": "bot_message", "username": "Flow"}
            await place.deliver("app_mention", mention, event)
            await place.dispatcher.tasks.settled()
            said = [reply.text for reply in place.slack.thread(place.general, mention.ts)]
            assert [each[:30] for each in said] == ["Bots and workflows can't ask. "] * is_said
        assert place.council.calls == []
        assert place.pings() == []


@pytest.mark.parametrize("subtype", ["thread_broadcast", "me_message", "message_share"])
async def test_a_message_of_another_kind_is_a_question(tmp_path: Path, subtype: str) -> None:
    """A forward without a word of one's own, too."""
    async with at_work(tmp_path) as place:
        direct = place.slack.world.open_im(place.slack.team, place.ada.id)
        forward = place.slack.post(direct, place.ada, "")
        forward.attachments = [{"is_share": True, "text": "Should RED-7 go?", "author_name": "bob"}]
        await place.deliver("message", forward, {"subtype": subtype})
        await place.dispatcher.tasks.settled()
        [card] = place.cards(direct)
        assert (await place.run(card)).brief.question == "bob\nShould RED-7 go?"


class TestClicks:
    """The buttons below a card."""

    @asynccontextmanager
    async def held(
        self, folder: Path, without: frozenset[str] = frozenset(), admins: frozenset[str] = frozenset()
    ) -> AsyncGenerator[tuple[Place, Message]]:
        """Yield a run of Ada's that waits for one member's answer."""
        council = ScriptedCouncil(held={f"stage1.1:{FOUR[0]}"})
        async with at_work(folder, council, without=without, admins=admins) as place:
            await place.slack.slash(place.general, place.ada, "/council", "Shard?")
            await council.until_called(f"stage1.1:{FOUR[0]}")
            card = await place.card()
            await place.slack.until(lambda: "3 of 4" in card.text)
            yield place, card

    async def test_without_the_scope_nobody_counts_as_an_admin(self, tmp_path: Path) -> None:
        """Only the asker stops a run."""
        async with self.held(tmp_path, without=frozenset({"users:read"})) as (place, card):
            place.bob.is_admin = True
            assert (await place.slack.click(card, "council_stop", place.bob)).acked
            said = await place.until_told(place.bob)
            assert said == "Only the person who asked, or an admin, can stop this run."
            place.council.release(f"stage1.1:{FOUR[0]}")
            await place.dispatcher.tasks.settled()
            assert "Stopped early" not in card.text


SAID = "\nOriginal response\nThe first answer of "


def digest(place: Place, card: Message) -> Message:
    """Return the first message of a thread that has *Open* below it."""
    replies = place.slack.thread(place.general, card.ts)
    return next(reply for reply in replies if "Open" in labels(reply))


async def test_a_run_of_another_channel_is_not_shown(tmp_path: Path) -> None:
    """Nor does a made-up value or an unknown member show anything."""
    async with at_work(tmp_path) as place:
        secret = place.slack.add_channel("secret", place.ada)
        await place.slack.slash(secret, place.ada, "/council", "Who goes?")
        await place.dispatcher.tasks.settled()
        hidden = (await place.run(place.cards(secret)[0])).id
        card = await place.ask()
        message, own = digest(place, card), (await place.run(card)).id
        for value in (hidden, f"{hidden}:1", "../../etc/passwd", f"{own}:1000", f"{own}:-1"):
            assert (await place.slack.click(message, "council_open", place.bob, value=value)).acked
        await place.dispatcher.tasks.settled()
        assert place.told(place.bob) == [NOT_HERE] * 5
        await place.slack.click(message, "council_open", place.bob, value=f"{own}:99")
        await place.dispatcher.tasks.settled()
        missing = "This member's answer is not on record."
        assert place.told(place.bob)[-1] == missing


async def test_where_slack_refuses_the_thread_the_click_is_still_answered(tmp_path: Path) -> None:
    """Through the click's response URL."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        place.slack.fail("chat.postEphemeral", "user_not_in_channel", times=ALWAYS)
        await place.slack.click(digest(place, card), "council_open", place.bob)
        await place.dispatcher.tasks.settled()
        [shown] = place.slack.ephemerals(place.general, place.bob)
        assert (shown.via, SAID in shown.text) == ("response_url", True)


async def test_where_the_bot_is_no_member_only_the_asker_is_told(tmp_path: Path) -> None:
    """With what to do about it."""
    async with at_work(tmp_path, without=frozenset({"chat:write.public"})) as place:
        closed = place.slack.add_channel("closed", place.ada, bot=False)
        assert (await place.slack.slash(closed, place.ada, "/council", "Shard?")).acked
        said = await place.until_told(place.ada, closed)
        assert "the bot isn't in this channel; invite it with /invite" in said
        assert place.slack.messages(closed) == []


@pytest.mark.parametrize(
    ("scope", "act", "said"),
    [
        ("im:write", "private", "That isn't possible: the scope im:write is missing."),
        ("files:write", "transcript", "That isn't possible: the scope files:write is missing."),
        (
            "chat:write",
            "ask",
            "The council can't post here: the scope chat:write is missing. Your question was cancelled.",
        ),
    ],
)
async def test_a_missing_scope_is_named_to_the_person_who_needs_it(
    tmp_path: Path, scope: str, act: str, said: str
) -> None:
    """Nothing else breaks."""
    async with at_work(tmp_path, without=frozenset({scope})) as place:
        match act:
            case "private" | "ask":
                text = "--private Shard?" if act == "private" else "Shard?"
                await place.slack.slash(place.general, place.ada, "/council", text)
            case _:
                await place.slack.click(await place.ask(), "council_transcript", place.ada)
        assert await place.until_told(place.ada) == said
        await place.dispatcher.tasks.settled()


async def test_slow_direct_messages_refuse_a_private_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise Slack's 3 s would pass."""
    monkeypatch.setattr("bot.slack.replies.LOOKUP_SECONDS", 0.02)
    async with at_work(tmp_path) as place:
        place.slack.fail("conversations.open", delay=0.1)
        assert (await place.slack.slash(place.general, place.ada, "/council", "--private So?")).acked
        assert (await place.until_told(place.ada)).startswith("Slack took too long to open your")
        assert place.council.calls == []


@pytest.mark.parametrize("wrong", ["bot_token", "app_token"])
async def test_a_wrong_token_ends_the_start(tmp_path: Path, wrong: str) -> None:
    """With a reason, without endless attempts."""
    async with at_work(tmp_path) as place:
        tokens: dict[str, Any] = {
            "bot_token": place.slack.token,
            "app_token": place.slack.app_token,
            wrong: "xoxb-no",
        }
        access = SlackAccess(**tokens, api_url=place.slack.api_url)
        bot = SlackBot(place.dispatcher, open_lookup(place.library), access)
        with pytest.raises(VenueError, match="Slack doesn't accept the token"):
            await bot.__aenter__()


def test_a_server_without_a_secret_is_refused() -> None:
    """It would accept anybody's requests."""
    access = SlackAccess(bot_token="xoxb-1", http_port=3000)  # noqa: S106 - no real token
    with pytest.raises(ValueError, match="signing_secret"):
        SlackBot(cast("Dispatcher", None), cast("Lookup", None), access)


async def test_a_form_that_slack_refuses_leaves_the_vote_counted(tmp_path: Path) -> None:
    """The trigger may be too old; the voter is told."""
    async with at_work(tmp_path) as place:
        card = await place.ask()
        place.slack.fail("views.open", "expired_trigger_id")
        assert (await place.slack.click(card, "council_unhelpful", place.ada)).acked
        await place.dispatcher.tasks.settled()
        stored = await place.library.store.load((await place.run(card)).conversation_id)
        [vote] = [vote for each in stored.messages if each.role == "assistant" for vote in each.votes]
        assert (vote.voter, vote.helpful) == (place.ada.id, False)
        assert place.told(place.ada) == ["Your vote: not helpful. Press the other button to change it."]
