"""The fake Slack, tested with the real Bolt app: Socket Mode, HTTP, limits, rates, mentions."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# slack-bolt and slack-sdk annotate their dictionaries without parameters.

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any, Literal, cast

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltRequest, AsyncRespond
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError, SlackRequestError
from slack_sdk.http_retry import builtin_async_handlers
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from tests.slack_server import Channel, HandClock, Message, SlackServer, User
from tests.slack_server.blocks import pinged
from tests.slack_server.rules import Rules, busiest_minute

Json = dict[str, Any]


@pytest.fixture
def clock() -> HandClock:
    """A clock the test moves."""
    return HandClock()


@pytest_asyncio.fixture
async def slack(clock: HandClock) -> AsyncIterator[SlackServer]:
    """A Slack that retries at once."""
    async with SlackServer(clock) as server:
        server.patience.retry_delays = (0, 0, 0)
        server.patience.ack_seconds = 30  # a busy machine fails no test
        yield server


@pytest.fixture
def ada(slack: SlackServer) -> User:
    """An admin."""
    return slack.add_user("ada", admin=True)


@pytest.fixture
def general(slack: SlackServer, ada: User) -> Channel:
    """A public channel with Ada and the bot."""
    return slack.add_channel("general", ada)


@pytest_asyncio.fixture
async def client(slack: SlackServer) -> AsyncIterator[AsyncWebClient]:
    """The SDK's client with the bot's token."""
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(slack.token, base_url=slack.api_url, session=session)


def bolt(slack: SlackServer) -> AsyncApp:
    """A Bolt app of the first workspace."""
    client = AsyncWebClient(slack.token, base_url=slack.api_url)
    return AsyncApp(client=client, signing_secret=slack.signing_secret)


def acknowledging(slack: SlackServer) -> AsyncApp:
    """A Bolt app that acknowledges everything and does nothing."""
    app = bolt(slack)

    @app.middleware
    async def acknowledge() -> BoltResponse:
        return BoltResponse(status=200)

    return app


@asynccontextmanager
async def in_socket_mode(slack: SlackServer, app: AsyncApp, sockets: int = 1) -> AsyncGenerator[None]:
    """Run the app over this many sockets."""
    handlers = [AsyncSocketModeHandler(app, slack.app_token, ping_interval=1) for _ in range(sockets)]
    await asyncio.gather(*(handler.connect_async() for handler in handlers))
    await slack.connected(sockets)
    try:
        yield
    finally:
        for handler in handlers:
            await handler.close_async()
            tasks = (
                handler.client.message_processor,
                handler.client.current_session_monitor,
                handler.client.message_receiver,
            )
            await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)


@asynccontextmanager
async def over_http(slack: SlackServer, app: AsyncApp) -> AsyncGenerator[None]:
    """Run the app in Bolt's own aiohttp application."""
    runner = web.AppRunner(app.web_app(path="/slack/events"), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    slack.use_http(f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events")
    try:
        yield
    finally:
        await runner.cleanup()


def plain(text: str) -> Json:
    """A plain text object."""
    return {"type": "plain_text", "text": text}


def section(text: str, kind: str = "mrkdwn") -> Json:
    """A section block."""
    return {"type": "section", "text": {"type": kind, "text": text}}


def header(text: str, kind: str = "plain_text") -> Json:
    """A header block."""
    return {"type": "header", "text": {"type": kind, "text": text}}


def table(cell: str = "x", rows: int = 1, columns: int = 1) -> Json:
    """A table block."""
    return {"type": "table", "rows": [[{"type": "raw_text", "text": cell}] * columns] * rows}


def rich_text(element: Json) -> Json:
    """A rich text block of one element."""
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [element]}]}


def markdown(text: str) -> Json:
    """A markdown block."""
    return {"type": "markdown", "text": text}


def button(**changes: Any) -> Json:
    """An actions block with one button, *Stop*."""
    stop: Json = {"type": "button", "action_id": "stop", "value": "run-1", "text": plain("Stop")}
    return {"type": "actions", "elements": [{**stop, **changes}]}


async def answered(call: Awaitable[AsyncSlackResponse]) -> Json:
    """Return Slack's reply to an accepted call."""
    return dict(cast("Json", (await call).data))


async def refusal(call: Awaitable[Any]) -> Json:
    """Return Slack's reply to a refused call."""
    with pytest.raises(SlackApiError) as caught:
        await call
    response = caught.value.response
    assert not isinstance(response, str)
    return dict(response.data)


class TestSocketMode:
    """Envelopes over sockets."""

    async def test_a_command_is_acknowledged_and_becomes_a_card_an_update_and_a_reply(
        self, slack: SlackServer, general: Channel, ada: User, clock: HandClock
    ) -> None:
        """The way of a run: slash, ack, post, update, thread."""
        app = bolt(slack)

        @app.command("/council")
        async def council(ack: AsyncAck, command: Json, client: AsyncWebClient) -> None:
            await ack()
            card = await answered(
                client.chat_postMessage(channel=command["channel_id"], text=f"Q: {command['text']}")
            )
            clock.advance(3)
            await client.chat_update(
                channel=card["channel"], ts=card["ts"], text="done", blocks=[section("A")]
            )
            done = f"<@{command['user_id']}> done"
            await client.chat_postMessage(channel=card["channel"], thread_ts=card["ts"], text=done)

        async with in_socket_mode(slack, app):
            delivery = await slack.slash(general, ada, "/council", "Should we shard?")
            (card,) = slack.messages(general) or await slack.until(lambda: slack.messages(general))
            await slack.until(lambda: slack.thread(general, card.ts))

        assert delivery.acked
        assert delivery.latency is not None
        assert 0 < delivery.latency < 3
        assert [(version.text, version.at) for version in card.history] == [
            ("Q: Should we shard?", clock() - 3),
            ("done", clock()),
        ]
        (reply,) = slack.thread(general, card.ts)
        assert (reply.thread_ts, reply.pinged, card.pinged) == (card.ts, {ada.id}, frozenset())
        assert card.wire()["thread_ts"] == card.ts
        assert [call.method for call in slack.requests] == [
            "apps.connections.open",
            "auth.test",
            "chat.postMessage",
            "chat.update",
            "chat.postMessage",
        ]

    async def test_mention_direct_message_shortcut_and_click_reach_their_listeners(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """Everything Bolt routes arrives with the fields it needs."""
        app, heard = bolt(slack), list[tuple[str, Any]]()

        @app.event("app_mention")
        async def mention(event: Json) -> None:
            heard.append(("mention", (event["text"], event["thread_ts"])))

        @app.event("message")
        async def message(event: Json) -> None:
            heard.append(("message", (event["text"], event["channel_type"], event["files"][0]["name"])))

        @app.shortcut("ask_the_council")
        async def shortcut(ack: AsyncAck, shortcut: Json) -> None:
            await ack()
            heard.append(("shortcut", (shortcut["message"]["text"], shortcut["channel"]["id"])))

        @app.action("stop")
        async def click(ack: AsyncAck, body: Json, respond: AsyncRespond) -> None:
            await ack()
            heard.append(
                ("click", (body["actions"][0]["value"], body["message"]["ts"], body["user"]["id"]))
            )
            await respond("gone", replace_original=True)

        plan = slack.post(general, ada, "We could shard by tenant")
        notes = slack.add_file("notes.md", b"# Notes", ada)
        posted = await answered(
            client.chat_postMessage(channel=general.id, text="card", blocks=[button()])
        )
        card = slack.message(general, posted["ts"])
        async with in_socket_mode(slack, app):
            mentioned = await slack.mention(general, ada, "what now?", thread_ts=plan.ts)
            direct = await slack.direct_message(ada, "privately", files=[notes])
            used = await slack.shortcut("ask_the_council", plan, ada)
            clicked = await slack.click(card, "stop", ada)
            await slack.until(lambda: card.text == "gone")
            with pytest.raises(LookupError, match="stop"):
                slack.click(card, "stop", ada)

        assert all(delivery.acked for delivery in (mentioned, direct, used, clicked))
        assert heard == [
            ("mention", (f"<@{slack.team.bot.id}> what now?", plan.ts)),
            ("message", ("privately", "im", "notes.md")),
            ("shortcut", ("We could shard by tenant", general.id)),
            ("click", ("run-1", card.ts, ada.id)),
        ]
        assert card.blocks == []

    async def test_an_unacknowledged_event_comes_three_times_more_with_its_retry_number(
        self, slack: SlackServer, general: Channel, ada: User
    ) -> None:
        """Redeliveries keep the event's id; the bot must tell them apart itself."""
        app, seen = bolt(slack), list[tuple[str, str]]()
        slack.patience.ack_seconds = 0.005

        @app.middleware
        async def swallow(req: AsyncBoltRequest) -> None:
            seen.append((req.headers["x-slack-retry-num"][0], req.body["event_id"]))
            await asyncio.Event().wait()

        async with in_socket_mode(slack, app):
            delivery = await slack.mention(general, ada, "anyone?")
            await slack.until(lambda: len(seen) == 4)
            await cancel_listeners()

        assert not delivery.acked
        # Each delivery has a listener of its own, and so near to each other any may be heard first.
        assert sorted(number for number, _ in seen) == ["0", "1", "2", "3"]
        assert len({event for _, event in seen}) == 1
        assert [attempt.retry_reason for attempt in delivery.attempts] == [None, *["timeout"] * 3]

    async def test_a_command_that_is_not_acknowledged_shows_an_error_and_is_not_repeated(
        self, slack: SlackServer, general: Channel, ada: User
    ) -> None:
        """Slack tells the person; also when nobody listens at all."""
        nobody = await slack.slash(general, ada, "/council", "hello?")
        async with in_socket_mode(slack, bolt(slack)):
            slack.patience.ack_seconds = 0.005
            unknown = await slack.slash(general, ada, "/unknown")

        assert (nobody.user_error, len(nobody.attempts)) == ("dispatch_failed", 1)
        assert (unknown.user_error, len(unknown.attempts)) == ("operation_timeout", 1)

    async def test_the_same_command_can_be_delivered_again(
        self, slack: SlackServer, general: Channel, ada: User
    ) -> None:
        """`redeliver` repeats trigger and event ids."""
        app, triggers = bolt(slack), list[str]()

        @app.command("/council")
        async def council(ack: AsyncAck, command: Json) -> None:
            await ack("heard")
            triggers.append(command["trigger_id"])

        async with in_socket_mode(slack, app):
            delivery = await slack.slash(general, ada, "/council", "again?")
            again = await slack.redeliver(delivery)

        assert again.in_time
        assert len(triggers) == 2
        assert len(set(triggers)) == 1
        assert [shown.text for shown in slack.ephemerals(general, ada)] == ["heard", "heard"]

    async def test_sockets_share_the_load_and_are_replaced_on_refresh_and_loss(
        self, slack: SlackServer, general: Channel, ada: User
    ) -> None:
        """The client reconnects, and deliveries continue."""
        app = bolt(slack)

        @app.command("/council")
        async def council(ack: AsyncAck) -> None:
            await ack()

        async with in_socket_mode(slack, app, sockets=2):
            assert slack.courier.sockets == 2
            await slack.refresh_sockets()
            assert slack.courier.sockets == 0
            await slack.connected(2)
            assert (await slack.slash(general, ada, "/council")).acked
            await slack.drop_sockets()
            await slack.connected(2)
            assert (await slack.slash(general, ada, "/council")).acked

    async def test_a_burst_of_200_commands_beside_200_busy_cards_is_served(
        self, slack: SlackServer, general: Channel, ada: User
    ) -> None:
        """Nothing is lost; with the app in the same loop it takes a third of a second on two cores."""
        app, cards = bolt(slack), 200
        slack.rates.enforced = False

        @app.command("/council")
        async def council(ack: AsyncAck, command: Json, client: AsyncWebClient) -> None:
            await ack()
            await client.chat_postMessage(channel=command["channel_id"], text=command["text"])

        async with aiohttp.ClientSession() as session, in_socket_mode(slack, app):
            client = AsyncWebClient(slack.token, base_url=slack.api_url, session=session)
            busy = [
                slack.api.board.post(slack.team, general, {"text": "card", "blocks": []})
                for _ in range(cards)
            ]
            updates = (client.chat_update(channel=general.id, ts=m.ts, text="busy") for m in busy)
            working = asyncio.gather(*updates)
            deliveries = [slack.slash(general, ada, "/council", f"Q{n}") for n in range(200)]
            await asyncio.gather(*(delivery.settled.wait() for delivery in deliveries), working)
            await slack.until(lambda: len(slack.messages(general)) == cards + 200, timeout=30)

        assert all(delivery.acked for delivery in deliveries)
        assert all(len(card.history) == 2 for card in busy)

    async def test_a_ticket_opens_one_socket_and_ten_sockets_are_all(self, slack: SlackServer) -> None:
        """The eleventh is told why it must go."""
        async with aiohttp.ClientSession() as session, AsyncExitStack() as stack:
            client = AsyncWebClient(base_url=slack.api_url, session=session)
            urls = [
                (await answered(client.apps_connections_open(app_token=slack.app_token)))["url"]
                for _ in range(11)
            ]
            sockets = [await stack.enter_async_context(session.ws_connect(url)) for url in urls]
            greetings = [await socket.receive_json() for socket in sockets]
            async with session.get(urls[0]) as response:
                assert response.status == 404

        assert [greeting["type"] for greeting in greetings] == ["hello"] * 10 + ["disconnect"]
        assert greetings[9]["num_connections"] == 10
        assert greetings[10]["reason"] == "too_many_websockets"

    @pytest.mark.parametrize(
        ("token", "error"),
        [("xapp-wrong", "invalid_auth"), ("bot", "not_allowed_token_type")],
    )
    async def test_a_socket_needs_the_app_token(
        self, slack: SlackServer, client: AsyncWebClient, token: str, error: str
    ) -> None:
        """The usual mix-up of the two tokens has its own word."""
        given = slack.token if token == "bot" else token  # noqa: S105 - a placeholder for the bot token
        assert (await refusal(client.apps_connections_open(app_token=given)))["error"] == error


async def cancel_listeners() -> None:
    """End what a listener of the test left waiting."""
    current = asyncio.current_task()
    waiting = [
        t
        for t in asyncio.all_tasks()
        if t is not current and "run_message_listeners" in repr(t.get_coro())
    ]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


class TestHttp:
    """Signed requests to Bolt's own web application."""

    async def test_command_event_shortcut_and_click_come_signed(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """The same listeners serve both transports; a command's answer shows only to the asker."""
        app, heard = bolt(slack), list[str]()

        @app.command("/council")
        async def council(ack: AsyncAck, command: Json) -> None:
            heard.append(command["text"])
            await ack("Déjà vu & <b>")

        @app.event("app_mention")
        async def mention(event: Json) -> None:
            heard.append(event["type"])

        @app.shortcut("ask_the_council")
        async def shortcut(ack: AsyncAck) -> None:
            heard.append("shortcut")
            await ack()

        @app.action("stop")
        async def click(ack: AsyncAck) -> None:
            heard.append("click")
            await ack()

        posted = await answered(
            client.chat_postMessage(channel=general.id, text="card", blocks=[button()])
        )
        card = slack.message(general, posted["ts"])
        async with over_http(slack, app):
            deliveries = [
                await slack.slash(general, ada, "/council", "Ünïcode? a+b=c & d"),
                await slack.mention(general, ada, "hi"),
                await slack.shortcut("ask_the_council", card, ada),
                await slack.click(card, "stop", ada),
            ]
            await slack.until(lambda: len(heard) == 4)

        assert [delivery.attempts[0].status for delivery in deliveries] == [200] * 4
        assert heard == ["Ünïcode? a+b=c & d", "app_mention", "shortcut", "click"]
        (shown,) = slack.ephemerals(general, ada)
        assert (shown.text, shown.via) == ("Déjà vu & <b>", "ack")

    @pytest.mark.parametrize(("secret", "skew"), [("another-secret", 0), (None, -301)])
    async def test_bolt_refuses_a_wrong_signature_and_a_stale_timestamp(
        self, slack: SlackServer, general: Channel, ada: User, secret: str | None, skew: float
    ) -> None:
        """Both answer 401, which the person sees as a failed dispatch."""
        async with over_http(slack, bolt(slack)):
            assert slack.courier.endpoint
            slack.courier.endpoint.signing_secret = secret or slack.signing_secret
            slack.courier.endpoint.skew = skew
            delivery = await slack.slash(general, ada, "/council", "let me in")

        assert delivery.attempts[0].status == 401
        assert (delivery.acked, delivery.user_error) == (False, "dispatch_failed")

    async def test_a_failing_event_is_sent_again_with_number_and_reason(
        self, slack: SlackServer, general: Channel, ada: User
    ) -> None:
        """An error brings `http_error`, silence `http_timeout`; the third try succeeds here."""
        seen = list[tuple[str | None, str | None]]()
        release = asyncio.Event()

        async def events(request: web.Request) -> web.Response:
            seen.append(
                (request.headers.get("x-slack-retry-num"), request.headers.get("x-slack-retry-reason"))
            )
            # The second try, and only that, waits for an answer in vain.
            slack.patience.ack_seconds = 0.05 if len(seen) == 1 else 30
            if len(seen) == 2:
                await release.wait()
            return web.Response(status=500 if len(seen) == 1 else 200)

        app = web.Application()
        app.add_routes([web.post("/slack/events", events)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        slack.use_http(f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events")
        delivery = await slack.mention(general, ada, "hello")
        release.set()
        await runner.cleanup()

        assert seen == [(None, None), ("1", "http_error"), ("2", "http_timeout")]
        assert delivery.acked

    async def test_nobody_listening_is_a_failed_connection(
        self, slack: SlackServer, general: Channel, ada: User
    ) -> None:
        """Four attempts, then Slack gives up."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            slack.use_http(f"http://127.0.0.1:{unused.getsockname()[1]}/slack/events")
            delivery = await slack.mention(general, ada, "hello")

        assert [attempt.fault for attempt in delivery.attempts] == ["connection_failed"] * 4


class TestRates:
    """429s, tiers and faults."""

    async def test_the_retry_handler_obeys_a_429(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        """The SDK waits as long as Retry-After says and sends the call again."""
        slept = list[float]()

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            clock.advance(seconds)

        monkeypatch.setattr(builtin_async_handlers, "asyncio", SimpleNamespace(sleep=sleep))
        client.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=2))
        slack.fail("chat.postMessage", retry_after=7)
        await client.chat_postMessage(channel=general.id, text="patience")

        assert [(call.status, call.retry_after) for call in slack.calls("chat.postMessage")] == [
            (429, 7),
            (200, None),
        ]
        assert 7 <= slept[0] < 8
        assert len(slack.messages(general)) == 1

    async def test_updates_have_fifty_calls_a_minute_and_workspace(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock
    ) -> None:
        """Tier 3 slides: when the oldest call is a minute old, the next is allowed."""
        posted = await answered(client.chat_postMessage(channel=general.id, text="card"))
        card = slack.message(general, posted["ts"])
        for number in range(50):
            await client.chat_update(channel=general.id, ts=card.ts, text=f"{number}")
            clock.advance(1)
        refused = client.chat_update(channel=general.id, ts=card.ts, text="one too many")
        assert (await refusal(refused))["error"] == "ratelimited"
        assert slack.requests[-1].retry_after == 10
        clock.advance(10)
        await client.chat_update(channel=general.id, ts=card.ts, text="later")

        assert slack.busiest_minute("chat.update") == 51
        assert set(card.gaps()) == {1.0, 11.0}
        assert card.history[-1].text == "later"

    async def test_a_channel_accepts_one_post_a_second_when_told_so(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock
    ) -> None:
        """The switch is off by default, as Slack allows bursts."""
        for _ in range(5):
            await client.chat_postMessage(channel=general.id, text="burst")
        slack.rates.channel_post_seconds = 1.0
        await client.chat_postMessage(channel=general.id, text="first")
        refused = await refusal(client.chat_postMessage(channel=general.id, text="too soon"))
        assert refused["error"] == "ratelimited"
        clock.advance(1)
        await client.chat_postMessage(channel=general.id, text="in time")

    async def test_a_call_can_be_made_to_fail_or_wait(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient
    ) -> None:
        """Faults are used up one by one and may be bound to a channel."""
        slack.fail("chat.postMessage", "is_archived", channel="C0000009999")
        slack.fail("chat.postMessage", "fatal_error", times=2)
        slack.fail("users.info", status=503, delay=0.001)
        errors = [
            (await refusal(client.chat_postMessage(channel=general.id, text="x")))["error"]
            for _ in range(2)
        ]
        await client.chat_postMessage(channel=general.id, text="x")
        await refusal(client.users_info(user="U1"))

        assert errors == ["fatal_error", "fatal_error"]
        assert slack.requests[-1].status == 503

    async def test_a_fault_of_a_period_ends_with_it(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock
    ) -> None:
        """Its seconds begin with the first call that it meets."""
        fault = slack.fail("chat.postMessage", "fatal_error", seconds=60)
        clock.advance(1000)
        for _ in range(3):
            await refusal(client.chat_postMessage(channel=general.id, text="x"))
            clock.advance(20)
        await client.chat_postMessage(channel=general.id, text="x")
        assert fault.hits == 3

    async def test_a_fault_may_be_bound_to_a_thread_or_a_person(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, ada: User
    ) -> None:
        """Whatever else the bot does goes well meanwhile."""
        threads = slack.fail("chat.postMessage", "thread_locked", in_thread=True)
        person = slack.fail("conversations.open", "user_disabled", user=ada.id)
        card = await answered(client.chat_postMessage(channel=general.id, text="card"))
        below = client.chat_postMessage(channel=general.id, text="x", thread_ts=card["ts"])
        assert (await refusal(below))["error"] == "thread_locked"
        await client.conversations_open(users=slack.add_user("bob").id)
        assert (await refusal(client.conversations_open(users=ada.id)))["error"] == "user_disabled"
        assert [threads.hits, person.hits] == [1, 1]

    @pytest.mark.parametrize("breaks", ["reset", "hang"])
    @pytest.mark.parametrize("applied", [False, True])
    async def test_connections_break_before_or_after_a_call_is_carried_out(
        self,
        slack: SlackServer,
        general: Channel,
        client: AsyncWebClient,
        breaks: Literal["reset", "hang"],
        applied: bool,
    ) -> None:
        """The caller sees a reset, or nothing at all; the message is there or isn't."""
        client.retry_handlers.clear()
        slack.fail("chat.postMessage", breaks=breaks, applied=applied)
        with pytest.raises((aiohttp.ClientError, TimeoutError)):
            async with asyncio.timeout(0.1 if breaks == "hang" else 10):
                await client.chat_postMessage(channel=general.id, text="one")
        await client.chat_postMessage(channel=general.id, text="two")
        sent = [message.text for message in slack.messages(general)]
        assert sent == (["one", "two"] if applied else ["two"])

    async def test_a_proxy_answers_with_a_page(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient
    ) -> None:
        """The SDK finds no JSON in it."""
        slack.fail("chat.postMessage", status=502, html=True)
        with pytest.raises(SlackApiError, match="status: 502"):
            await client.chat_postMessage(channel=general.id, text="x")

    async def test_uploads_go_wrong_too(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient
    ) -> None:
        """The upload itself is no method, but it can fail, too."""
        fault = slack.fail("upload", status=500, html=True)
        with pytest.raises(SlackRequestError):
            await client.files_upload_v2(channel=general.id, content="x", filename="x.md")
        assert fault.hits == 1

    async def test_the_rate_limit_of_a_channel_can_be_enforced(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock
    ) -> None:
        """One post a second, after as long a burst as a test allows."""
        slack.enforce_rate_limits(burst=3)
        for _ in range(3):
            await client.chat_postMessage(channel=general.id, text="x")
        said = await refusal(client.chat_postMessage(channel=general.id, text="x"))
        assert said["error"] == "ratelimited"
        assert slack.requests[-1].retry_after == 1
        clock.advance(1)
        await client.chat_postMessage(channel=general.id, text="x")

    async def test_what_admins_take_away_is_gone(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, ada: User
    ) -> None:
        """A message, a thread, the bot's membership, a channel, the token: each with Slack's word."""
        slack.team.scopes.discard("chat:write.public")
        card = await answered(client.chat_postMessage(channel=general.id, text=f"<@{ada.id}>"))
        await client.chat_postMessage(channel=general.id, text="x", thread_ts=card["ts"])
        slack.delete_thread(slack.message(general, card["ts"]))
        edit = client.chat_update(channel=general.id, ts=card["ts"], text="x")
        assert (await refusal(edit))["error"] == "message_not_found"
        below = client.chat_postMessage(channel=general.id, text="x", thread_ts=card["ts"])
        assert (await refusal(below))["error"] == "thread_not_found"
        slack.kick_bot(general)
        post = client.chat_postMessage(channel=general.id, text="x")
        assert (await refusal(post))["error"] == "not_in_channel"
        slack.invite_bot(general)
        await client.chat_postMessage(channel=general.id, text="x")
        slack.delete_channel(general)
        post = client.chat_postMessage(channel=general.id, text="x")
        assert (await refusal(post))["error"] == "channel_not_found"
        slack.revoke_token()
        assert (await refusal(client.auth_test()))["error"] == "token_revoked"
        slack.revoke_app_token("account_inactive")
        opened = client.apps_connections_open(app_token=slack.app_token)
        assert (await refusal(opened))["error"] == "account_inactive"
        assert [message.ts for message in slack.told(ada)] == [card["ts"]]

    def test_the_busiest_minute_is_a_window_of_sixty_seconds(self) -> None:
        """A call sixty seconds after another is not in its minute."""
        assert busiest_minute([0, 30, 59.9, 60, 89]) == 4
        assert busiest_minute([]) == 0


class TestLimits:
    """What a message may contain."""

    @pytest.mark.parametrize(
        ("blocks", "phrase", "pointer"),
        [
            ([section("x" * 3001)], "must be less than 3001 characters", "/0/text/text"),
            ([section("")], "must be more than 0 characters", "/0/text/text"),
            ([{"type": "divider"}] * 51, "no more than 50 items allowed", ""),
            ([{"type": "marquee"}], "unsupported type: marquee", "/0/type"),
            ([header("x" * 151)], "must be less than 151 characters", "/0/text/text"),
            ([header("x", "mrkdwn")], "unsupported type: mrkdwn", "/0/text/type"),
            (
                [button(text=plain("x" * 76))],
                "must be less than 76 characters",
                "/0/elements/0/text/text",
            ),
            ([button(value="x" * 2001)], "must be less than 2001 characters", "/0/elements/0/value"),
            (
                [button(action_id="x" * 256)],
                "must be less than 256 characters",
                "/0/elements/0/action_id",
            ),
            (
                [{**section("x"), "block_id": "x" * 256}],
                "must be less than 256 characters",
                "/0/block_id",
            ),
            ([markdown("x" * 12_001)], "must be less than 12001 characters", "/0/text"),
            ([markdown("# H\n\nx\n\n---\n\n" * 17)], "no more than 50 items allowed", ""),
            ([table(rows=101)], "no more than 100 items allowed", "/0/rows"),
            ([table(columns=21)], "no more than 20 items allowed", "/0/rows/0"),
            ([table("x" * 2500, columns=5)], "must be less than 10001 characters", "/0/rows"),
        ],
    )
    async def test_blocks_beyond_a_limit_are_refused_in_slacks_words(
        self, general: Channel, client: AsyncWebClient, blocks: list[Json], phrase: str, pointer: str
    ) -> None:
        """`invalid_blocks`, with each fault in `errors` and, marked, in the metadata."""
        answer = await refusal(client.chat_postMessage(channel=general.id, text="t", blocks=blocks))
        fault = f"{phrase} [json-pointer:/blocks{pointer}]"
        assert answer == {
            "ok": False,
            "error": "invalid_blocks",
            "errors": [fault],
            "response_metadata": {"messages": [f"[ERROR] {fault}"]},
        }

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ({"text": "x" * 40_001}, "msg_too_long"),
            ({"text": " "}, "no_text"),
            ({"blocks": "nonsense"}, "invalid_blocks_format"),
            ({"blocks": [markdown("x" * 6001), markdown("y" * 6000)]}, "msg_blocks_too_long"),
            ({"blocks": [section("x" * 2700)] * 5}, "msg_blocks_too_long"),
            ({"blocks": [table(), table()]}, "invalid_attachments"),
            ({"blocks": [markdown("|a|\n|-|\n|b|\n\nand\n\n|c|\n|-|\n|d|")]}, "invalid_attachments"),
            ({"markdown_text": "x", "text": "y"}, "markdown_text_conflict"),
        ],
    )
    async def test_a_message_beyond_a_limit_is_refused_with_its_own_error(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, content: Json, error: str
    ) -> None:
        """Nothing of it appears."""
        body = {"channel": general.id, **content}
        assert (await refusal(client.api_call("chat.postMessage", json=body)))["error"] == error
        assert slack.messages(general) == []

    @pytest.mark.parametrize(
        "content",
        [
            {"text": "x" * 40_000},
            {"markdown_text": "x" * 12_000},
            {"blocks": [{"type": "divider"}] * 50},
            {"blocks": [section("x" * 3000), button(value="x" * 2000)]},
            {"blocks": [markdown("x" * 12_000), section("y" * 1200)]},
            {"blocks": [markdown("# H\n\nx\n\n---\n\n" * 16)]},
            {"blocks": [table(rows=100, columns=20)]},
        ],
    )
    async def test_a_message_at_the_limit_is_accepted(
        self, general: Channel, client: AsyncWebClient, content: Json
    ) -> None:
        """The limits are the last values allowed."""
        await client.api_call("chat.postMessage", json={"channel": general.id, **content})

    async def test_an_update_accepts_4000_characters_of_text_and_keeps_or_drops_blocks(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient
    ) -> None:
        """Blocks stay when an update brings no text and no blocks, and go when it brings text alone."""
        posted = await answered(
            client.chat_postMessage(channel=general.id, text="card", blocks=[section("x")])
        )
        where: Json = {"channel": general.id, "ts": posted["ts"]}
        too_long = client.chat_update(**where, text="x" * 4001)
        assert (await refusal(too_long))["error"] == "msg_too_long"
        await client.chat_update(**where, attachments=[{"text": "more", "fallback": "more"}])
        assert slack.message(general, posted["ts"]).blocks
        await client.chat_update(**where, text="x" * 4000)
        assert not slack.message(general, posted["ts"]).blocks


class TestPermissions:
    """Where the bot may read and write, and what it finds."""

    async def test_where_the_bot_may_write_and_which_messages_it_may_change(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """Membership, privacy, archives and authorship, each with its own word."""
        slack.team.scopes.discard("chat:write.public")
        outside = slack.add_channel("outside", ada, bot=False)
        secret = slack.add_channel("secret", ada, bot=False, kind="private")
        old = slack.add_channel("old", ada)
        old.archived = True
        elsewhere = slack.add_channel("elsewhere", team=slack.add_team("Other"))
        theirs = slack.post(general, ada, "mine").ts
        here = general.id

        async def error(call: Awaitable[Any]) -> str:
            return (await refusal(call))["error"]

        assert await error(client.chat_postMessage(channel=outside.id, text="x")) == "not_in_channel"
        assert await error(client.chat_postMessage(channel=secret.id, text="x")) == "channel_not_found"
        assert (
            await error(client.chat_postMessage(channel=elsewhere.id, text="x")) == "channel_not_found"
        )
        assert await error(client.chat_postMessage(channel=old.id, text="x")) == "is_archived"
        assert await error(client.chat_update(channel=here, ts="1.0", text="x")) == "message_not_found"
        assert (
            await error(client.chat_update(channel=here, ts=theirs, text="x")) == "cant_update_message"
        )
        assert await error(client.chat_delete(channel=here, ts=theirs)) == "cant_delete_message"
        lost = client.chat_postMessage(channel=here, thread_ts="1.0", text="x")
        assert await error(lost) == "thread_not_found"
        stranger = slack.add_user("eve")
        hidden = client.chat_postEphemeral(channel=here, user=stranger.id, text="x")
        assert await error(hidden) == "user_not_in_channel"
        client.token = "xoxb-wrong"  # noqa: S105 - no secret
        assert await error(client.auth_test()) == "invalid_auth"

    async def test_a_missing_scope_is_named(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """`needed` is what lacks, `provided` what the token has."""
        slack.team.scopes = {"chat:write"}
        answer = await refusal(client.users_info(user=ada.id))
        assert {**answer, "ok": False} == {
            "ok": False,
            "error": "missing_scope",
            "needed": "users:read",
            "provided": "chat:write",
        }
        assert (await refusal(client.conversations_info(channel=general.id)))[
            "needed"
        ] == "channels:read"
        private = slack.add_channel("private", ada, kind="private")
        history = client.conversations_history(channel=private.id)
        assert (await refusal(history))["needed"] == "groups:history"
        assert (await slack.mention(general, ada, "hi")).user_error == "missing_scope"

    async def test_reading_back_what_was_posted(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """Replies with their parent, history newest first, permalinks, people, direct conversations."""
        slack.team.scopes.add("channels:history")
        parent = slack.post(general, ada, "parent")
        reply = await answered(
            client.chat_postMessage(channel="#general", thread_ts=parent.ts, text="reply")
        )
        await client.chat_postMessage(channel=general.id, text="next")
        thread = await answered(client.conversations_replies(channel=general.id, ts=parent.ts))
        assert [message["text"] for message in thread["messages"]] == ["parent", "reply"]
        first = await answered(client.conversations_history(channel=general.id, limit=1))
        assert [message["text"] for message in first["messages"]] == ["next"]
        cursor = first["response_metadata"]["next_cursor"]
        rest = await answered(client.conversations_history(channel=general.id, limit=1, cursor=cursor))
        assert [message["text"] for message in rest["messages"]] == ["parent"]
        link = await answered(client.chat_getPermalink(channel=general.id, message_ts=reply["ts"]))
        assert link["permalink"].endswith(f"?thread_ts={parent.ts}&cid={general.id}")
        assert (await answered(client.users_info(user=ada.id)))["user"]["is_admin"] is True
        assert (await answered(client.conversations_info(channel=general.id)))["channel"][
            "is_member"
        ] is True
        im = (await answered(client.conversations_open(users=ada.id)))["channel"]["id"]
        assert (await answered(client.chat_postMessage(channel=ada.id, text="psst")))["channel"] == im
        await client.chat_delete(channel=general.id, ts=reply["ts"])
        assert slack.thread(general, parent.ts) == []


class TestScheduling:
    """Messages that Slack posts by itself."""

    async def test_a_scheduled_message_is_listed_until_it_is_posted(
        self,
        slack: SlackServer,
        general: Channel,
        ada: User,
        client: AsyncWebClient,
        clock: HandClock,
    ) -> None:
        """Then it is a message like any other, and notifies."""
        now = int(clock())
        card = await client.chat_postMessage(channel=general.id, text="card")
        taken = await client.chat_scheduleMessage(
            channel=general.id, post_at=now + 60, text=f"<@{ada.id}> done", thread_ts=card["ts"]
        )
        listed = await client.chat_scheduledMessages_list()
        assert listed["scheduled_messages"] == [
            {
                "id": taken["scheduled_message_id"],
                "channel_id": general.id,
                "post_at": now + 60,
                "date_created": now,
                "text": f"<@{ada.id}> done",
            }
        ]
        assert slack.told(ada) == []
        clock.advance(60)
        assert (await client.chat_scheduledMessages_list())["scheduled_messages"] == []
        [posted] = slack.told(ada)
        assert (posted.thread_ts, posted.posted_at) == (card["ts"], now + 60)

    async def test_what_cannot_be_posted_then_is_not(
        self, slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock
    ) -> None:
        """Nobody hears of it."""
        card = await client.chat_postMessage(channel=general.id, text="card")
        later = int(clock()) + 60
        for thread in (card["ts"], None):
            await client.chat_scheduleMessage(
                channel=general.id, post_at=later, text="done", thread_ts=thread
            )
        slack.delete_thread(slack.message(general, str(card["ts"])))
        general.archived = True
        clock.advance(60)
        assert slack.messages(general) == []

    async def test_times_and_numbers_are_limited(
        self, general: Channel, client: AsyncWebClient, clock: HandClock
    ) -> None:
        """As the documentation has it."""

        async def schedule(post_at: object) -> str:
            call = client.chat_scheduleMessage(
                channel=general.id, post_at=cast("int", post_at), text="x"
            )
            return (await refusal(call))["error"]

        now = int(clock())
        assert await schedule("soon") == "invalid_time"
        assert await schedule(now - 1) == "time_in_past"
        assert await schedule(now + 121 * 24 * 3600) == "time_too_far"
        for number in range(30):
            await client.chat_scheduleMessage(channel=general.id, post_at=now + 60 + number, text="x")
        assert await schedule(now + 100) == "restricted_too_many"
        page = await client.chat_scheduledMessages_list(channel=general.id, limit=20)
        rest = await client.chat_scheduledMessages_list(cursor="20")
        pages = [cast("Json", each.data) for each in (page, rest)]
        assert [len(each["scheduled_messages"]) for each in pages] == [20, 10]
        assert [each["response_metadata"]["next_cursor"] for each in pages] == ["20", ""]
        assert (await refusal(client.chat_scheduledMessages_list(channel="C1")))["error"] == (
            "invalid_channel"
        )


class TestFiles:
    """Uploads and downloads."""

    async def test_an_upload_appears_in_the_thread_and_is_downloaded_with_the_token_alone(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """The SDK's three steps; a stranger gets the sign-in page with status 200."""
        parent = slack.post(general, ada, "parent")
        await client.files_upload_v2(
            channel=general.id,
            thread_ts=parent.ts,
            filename="t.md",
            content="# T",
            initial_comment="here",
        )
        (reply,) = slack.thread(general, parent.ts)
        (file,) = reply.files
        assert (reply.text, file.name, file.content) == ("here", "t.md", b"# T")

        async with aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {slack.token}"}
            async with session.get(file.url_private, headers=headers) as response:
                assert await response.read() == b"# T"
            async with session.get(file.url_private) as response:
                assert (response.status, response.content_type) == (200, "text/html")

    async def test_an_upload_needs_its_scope(self, slack: SlackServer, client: AsyncWebClient) -> None:
        """Without `files:write` the first step is refused."""
        slack.team.scopes.discard("files:write")
        answer = await refusal(client.files_upload_v2(filename="t.md", content="x"))
        assert (answer["error"], answer["needed"]) == ("missing_scope", "files:write")


class TestResponseUrl:
    """Answers without a token."""

    async def test_it_answers_five_times_within_half_an_hour(
        self, slack: SlackServer, general: Channel, ada: User, clock: HandClock
    ) -> None:
        """Privately by default, in the channel when asked; then it is used up, or expired."""
        app, statuses = bolt(slack), list[tuple[int, str]]()

        @app.command("/council")
        async def council(ack: AsyncAck, respond: AsyncRespond) -> None:
            await ack()
            for number in range(6):
                answer = await respond(
                    f"{number}", response_type="ephemeral" if number else "in_channel"
                )
                statuses.append((answer.status_code, answer.body))

        @app.command("/later")
        async def later(ack: AsyncAck, respond: AsyncRespond) -> None:
            await ack()
            clock.advance(30 * 60 + 1)
            answer = await respond("too late")
            statuses.append((answer.status_code, answer.body))

        async with in_socket_mode(slack, app):
            await slack.slash(general, ada, "/council")
            await slack.until(lambda: len(statuses) == 6)
            await slack.slash(general, ada, "/later")
            await slack.until(lambda: len(statuses) == 7)

        assert statuses[:5] == [(200, "ok")] * 5
        assert [json.loads(body)["error"] for _, body in statuses[5:]] == ["used_url", "expired_url"]
        assert [message.text for message in slack.messages(general)] == ["0"]
        assert [shown.text for shown in slack.ephemerals(general, ada)] == ["1", "2", "3", "4"]

    async def test_a_click_on_a_private_message_replaces_and_removes_it(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """chat.update can't reach an ephemeral message; the click's response URL can."""
        app = bolt(slack)

        @app.action("stop")
        async def page(ack: AsyncAck, respond: AsyncRespond, body: Json) -> None:
            await ack()
            assert body["container"]["is_ephemeral"]
            if body["actions"][0]["value"] == "close":
                await respond(delete_original=True)
            else:
                await respond("page 2", blocks=[button(value="close")], replace_original=True)

        await client.chat_postEphemeral(
            channel=general.id, user=ada.id, text="page 1", blocks=[button()]
        )
        (shown,) = slack.ephemerals(general, ada)
        refused = client.chat_update(channel=general.id, ts=shown.ts, text="x")
        assert (await refusal(refused))["error"] == "message_not_found"
        async with in_socket_mode(slack, app):
            slack.click(shown, "stop", ada)
            await slack.until(lambda: shown.text == "page 2")
            slack.click(shown, "stop", ada)
            await slack.until(lambda: not slack.ephemerals(general, ada))


class TestPings:
    """Whom a message notifies."""

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ({"text": "<@U1>, <@W2|bo>"}, {"U1", "W2"}),
            ({"text": "<!channel> <!here|here> <!everyone>"}, {"channel", "here", "everyone"}),
            ({"text": "<!subteam^S3|@ops>"}, {"S3"}),
            ({"text": "&lt;@U1&gt; &lt;!channel&gt; <#C1> <!date^1^{date}|now>"}, set[str]()),
            ({"text": "@everyone @ada"}, set[str]()),
            ({"text": "@everyone @ada", "parse": "full"}, {"everyone", "U9"}),
            ({"text": "mail a@channel @ada", "link_names": "1"}, {"U9"}),
            ({"blocks": [section("<@U1>"), section("<@U2>", "plain_text")]}, {"U1"}),
            (
                {"blocks": [{"type": "context", "elements": [{"type": "mrkdwn", "text": "<!here>"}]}]},
                {"here"},
            ),
            (
                {"blocks": [markdown("# <@U1>\n\n- <!channel>\n\n|a|\n|-|\n|<@U2>|")]},
                {"U1", "channel", "U2"},
            ),
            (
                {"blocks": [markdown("\\<@U1> &lt;!channel&gt; `<@U2>`\n\n```\n<!here>\n```")]},
                set[str](),
            ),
            ({"blocks": [rich_text({"type": "user", "user_id": "U1"})]}, {"U1"}),
            ({"blocks": [rich_text({"type": "broadcast", "range": "here"})]}, {"here"}),
            ({"blocks": [rich_text({"type": "usergroup", "usergroup_id": "S1"})]}, {"S1"}),
            ({"blocks": [rich_text({"type": "text", "text": "<@U7>"})]}, set[str]()),
            ({"attachments": [{"text": "<@U1>"}]}, {"U1"}),
        ],
    )
    def test_whom_a_message_pings(self, content: Json, expected: set[str]) -> None:
        """Slack's own syntax pings wherever it is parsed, a bare name only when the call asks for it."""
        assert pinged(content, {"ada": "U9"}, Rules()) == expected

    def test_code_in_markdown_pings_under_the_stricter_rule(self) -> None:
        """A switch for those who don't trust it."""
        content = {"blocks": [markdown("`<@U2>`\n\n```\n<!here>\n```\n")]}
        assert pinged(content, {}, Rules(pings_from_markdown_code=True)) == {"U2", "here"}

    async def test_an_update_pings_nobody(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """`pinged` is what posting did."""
        posted = await answered(client.chat_postMessage(channel=general.id, text="quiet"))
        await client.chat_update(channel=general.id, ts=posted["ts"], text=f"<@{ada.id}> <!channel>")
        assert slack.message(general, posted["ts"]).pinged == frozenset()


class TestControl:
    """The driving API over HTTP."""

    async def test_another_process_drives_it_over_http(self, slack: SlackServer, ada: User) -> None:
        """The same verbs as JSON; unknown names are errors, not crashes."""
        app = bolt(slack)

        @app.command("/council")
        async def council(ack: AsyncAck, say: Callable[..., Awaitable[Any]]) -> None:
            await ack()
            await say(f"<@{ada.id}>", blocks=[button()])

        async with aiohttp.ClientSession(slack.world.origin) as session:

            async def control(verb: str, **arguments: Any) -> Json:
                async with session.post(f"/_control/{verb}", json=arguments) as response:
                    return await response.json()

            async with in_socket_mode(slack, app):
                who = (await control("add_user", name="bob"))["result"]["id"]
                where = (await control("add_channel", name="lab", members=[who]))["result"]["id"]
                before = slack.changes.count
                sent = await control("slash", channel=where, user=who, command="/council", text="x")
                while not (messages := (await control("messages", channel=where))["result"]):
                    await control("changes", since=before)
                    before = slack.changes.count
            assert sent["result"]["acked"]
            assert messages[0]["pinged"] == [ada.id]
            ts = messages[0]["ts"]
            late = await control("click", channel=where, ts=ts, action_id="stop", user=who)
            assert late["result"]["user_error"] == "dispatch_failed"
            assert (await control("configuration"))["result"]["api_url"] == slack.api_url
            calls = (await control("requests", method="chat.postMessage"))["result"]
            assert [call["status"] for call in calls] == [200]
            wrong = await control("click", channel=where, ts=ts, action_id="nothing", user=who)
            assert "nothing" in wrong["error"]
            assert (await control("explode"))["error"] == "unknown verb"

    async def test_every_way_to_the_bot_and_every_fault_has_a_verb(
        self, slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
    ) -> None:
        """What is sent without waiting can be looked up, and delivered again, by its id."""
        here: Json = {"channel": general.id, "user": ada.id}
        async with aiohttp.ClientSession(slack.world.origin) as session:

            async def control(verb: str, **arguments: Any) -> Any:
                async with session.post(f"/_control/{verb}", json=arguments) as response:
                    return (await response.json())["result"]

            async with in_socket_mode(slack, acknowledging(slack)):
                await control("refresh_sockets")
                await slack.connected()
                post = await control("post", **here, text="plan")
                mention = await control("mention", **here, text="hi", thread_ts=post["ts"], wait=False)
                direct = await control("direct_message", user=ada.id, text="hi")
                used = await control("shortcut", **here, callback_id="ask", ts=post["ts"])
                again = await control("redeliver", delivery=mention["id"])
                sent = await control("deliveries")
                await control("drop_sockets")
                await slack.connected()
            await control("fail", method="chat.postEphemeral", error="fatal_error")
            await refusal(client.chat_postEphemeral(**here, text="x"))
            await client.chat_postEphemeral(**here, text="shown")
            shown = await control("ephemerals", **here)
            thread = await control("thread", channel=general.id, ts=post["ts"])
            await control("use_http", url="http://127.0.0.1:1/slack/events")

        assert direct["acked"]
        assert used["acked"]
        assert (again["retry_num"], again["retry_reason"]) == (1, "http_timeout")
        assert [delivery["id"] for delivery in sent] == [mention["id"], direct["id"], used["id"]]
        assert [message["text"] for message in thread] == [f"<@{slack.team.bot.id}> hi"]
        assert [ephemeral["text"] for ephemeral in shown] == ["shown"]
        assert slack.courier.endpoint

    async def test_it_serves_in_a_process_of_its_own(self) -> None:
        """The first line it prints is all a bot needs."""
        command = (sys.executable, "-m", "tests.slack_server")
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            assert process.stdout
            configuration = json.loads(await process.stdout.readline())
            client = AsyncWebClient(configuration["token"], base_url=configuration["api_url"])
            assert (await client.auth_test())["user_id"] == configuration["bot_user"]
        finally:
            process.terminate()
            await process.wait()


def test_the_hand_clock_stays_still_until_moved() -> None:
    """It starts at the real time, so that signatures made by it hold."""
    clock = HandClock()
    assert abs(clock() - time.time()) < 5
    clock.advance(60)
    assert clock() == clock.time
    assert Message("C1", "1.0", "U1", "x", [], clock()).gaps() == []
