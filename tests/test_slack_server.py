"""The fake Slack, tested with the real Bolt app: Socket Mode, HTTP, limits, rates, mentions."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# slack-bolt and slack-sdk annotate their dictionaries without parameters.

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import pytest
import pytest_asyncio
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from tests.pairs import rows
from tests.slack_server import Channel, HandClock, SlackServer, User
from tests.slack_server.blocks import pinged
from tests.slack_server.rules import Rules, busiest_minute

Json = dict[str, Any]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest_asyncio.fixture
async def slack(clock: HandClock) -> AsyncIterator[SlackServer]:
    async with SlackServer(clock) as server:
        server.patience.retry_delays = (0, 0, 0)
        server.patience.ack_seconds = 30  # a busy machine fails no test
        yield server


@pytest.fixture
def ada(slack: SlackServer) -> User:
    return slack.add_user("ada", admin=True)


@pytest.fixture
def general(slack: SlackServer, ada: User) -> Channel:
    return slack.add_channel("general", ada)


@pytest_asyncio.fixture
async def client(slack: SlackServer) -> AsyncIterator[AsyncWebClient]:
    """The SDK's client with the bot's token."""
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(slack.token, base_url=slack.api_url, session=session)


def bolt(slack: SlackServer) -> AsyncApp:
    client = AsyncWebClient(slack.token, base_url=slack.api_url)
    return AsyncApp(client=client, signing_secret=slack.signing_secret)


@asynccontextmanager
async def in_socket_mode(slack: SlackServer, app: AsyncApp) -> AsyncGenerator[None]:
    handler = AsyncSocketModeHandler(app, slack.app_token, ping_interval=1)
    await handler.connect_async()
    await slack.connected(1)
    try:
        yield
    finally:
        await handler.close_async()
        client = handler.client
        tasks = (client.message_processor, client.current_session_monitor, client.message_receiver)
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def section(text: str, kind: str = "mrkdwn") -> Json:
    return {"type": "section", "text": {"type": kind, "text": text}}


def header(text: str, kind: str = "plain_text") -> Json:
    return {"type": "header", "text": {"type": kind, "text": text}}


def table(cell: str = "x", rows: int = 1, columns: int = 1) -> Json:
    return {"type": "table", "rows": [[{"type": "raw_text", "text": cell}] * columns] * rows}


def rich_text(element: Json) -> Json:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [element]}]}


def markdown(text: str) -> Json:
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


async def test_updates_have_fifty_calls_a_minute_and_workspace(
    slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock
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


async def test_the_rate_limit_of_a_channel_can_be_enforced(
    slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock
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


def test_the_busiest_minute_is_a_window_of_sixty_seconds() -> None:
    """A call sixty seconds after another is not in its minute."""
    assert busiest_minute([0, 30, 59.9, 60, 89]) == 4
    assert busiest_minute([]) == 0


@rows(
    ("blocks", "phrase", "pointer"),
    [
        ([section("x" * 3001)], "must be less than 3001 characters", "/0/text/text"),
        ([section("")], "must be more than 0 characters", "/0/text/text"),
        ([{"type": "divider"}] * 51, "no more than 50 items allowed", ""),
        ([{"type": "marquee"}], "unsupported type: marquee", "/0/type"),
        ([header("x" * 151)], "must be less than 151 characters", "/0/text/text"),
        ([header("x", "mrkdwn")], "unsupported type: mrkdwn", "/0/text/type"),
        ([button(text=plain("x" * 76))], "must be less than 76 characters", "/0/elements/0/text/text"),
        ([button(value="x" * 2001)], "must be less than 2001 characters", "/0/elements/0/value"),
        ([button(action_id="x" * 256)], "must be less than 256 characters", "/0/elements/0/action_id"),
        ([{**section("x"), "block_id": "x" * 256}], "must be less than 256 characters", "/0/block_id"),
        ([markdown("x" * 12_001)], "must be less than 12001 characters", "/0/text"),
        ([markdown("# H\n\nx\n\n---\n\n" * 17)], "no more than 50 items allowed", ""),
        ([table(rows=101)], "no more than 100 items allowed", "/0/rows"),
        ([table(columns=21)], "no more than 20 items allowed", "/0/rows/0"),
        ([table("x" * 2500, columns=5)], "must be less than 10001 characters", "/0/rows"),
    ],
)
async def test_blocks_beyond_a_limit_are_refused_in_slacks_words(
    general: Channel, client: AsyncWebClient, blocks: list[Json], phrase: str, pointer: str
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


@rows(
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
    slack: SlackServer, general: Channel, client: AsyncWebClient, content: Json, error: str
) -> None:
    """Nothing of it appears."""
    body = {"channel": general.id, **content}
    assert (await refusal(client.api_call("chat.postMessage", json=body)))["error"] == error
    assert slack.messages(general) == []


async def test_an_update_accepts_4000_characters_of_text_and_keeps_or_drops_blocks(
    slack: SlackServer, general: Channel, client: AsyncWebClient
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


async def test_where_the_bot_may_write_and_which_messages_it_may_change(
    slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
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
    assert await error(client.chat_postMessage(channel=elsewhere.id, text="x")) == "channel_not_found"
    assert await error(client.chat_postMessage(channel=old.id, text="x")) == "is_archived"
    assert await error(client.chat_update(channel=here, ts="1.0", text="x")) == "message_not_found"
    assert await error(client.chat_update(channel=here, ts=theirs, text="x")) == "cant_update_message"
    assert await error(client.chat_delete(channel=here, ts=theirs)) == "cant_delete_message"
    lost = client.chat_postMessage(channel=here, thread_ts="1.0", text="x")
    assert await error(lost) == "thread_not_found"
    stranger = slack.add_user("eve")
    hidden = client.chat_postEphemeral(channel=here, user=stranger.id, text="x")
    assert await error(hidden) == "user_not_in_channel"
    client.token = "xoxb-wrong"  # noqa: S105 - no secret
    assert await error(client.auth_test()) == "invalid_auth"


async def test_a_missing_scope_is_named(
    slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
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
    assert (await refusal(client.conversations_info(channel=general.id)))["needed"] == "channels:read"
    private = slack.add_channel("private", ada, kind="private")
    history = client.conversations_history(channel=private.id)
    assert (await refusal(history))["needed"] == "groups:history"
    assert (await slack.mention(general, ada, "hi")).user_error == "missing_scope"


async def test_a_scheduled_message_is_listed_until_it_is_posted(
    slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient, clock: HandClock
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
    slack: SlackServer, general: Channel, client: AsyncWebClient, clock: HandClock
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


async def test_an_upload_appears_in_the_thread_and_is_downloaded_with_the_token_alone(
    slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
) -> None:
    """The SDK's three steps; a stranger gets the sign-in page with status 200."""
    parent = slack.post(general, ada, "parent")
    await client.files_upload_v2(
        channel=general.id, thread_ts=parent.ts, filename="t.md", content="# T", initial_comment="here"
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


async def test_it_answers_five_times_within_half_an_hour(
    slack: SlackServer, general: Channel, ada: User, clock: HandClock
) -> None:
    """Privately by default, in the channel when asked; then it is used up, or expired."""
    app, statuses = bolt(slack), list[tuple[int, str]]()

    @app.command("/council")
    async def council(ack: AsyncAck, respond: AsyncRespond) -> None:
        await ack()
        for number in range(6):
            answer = await respond(f"{number}", response_type="ephemeral" if number else "in_channel")
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


@rows(
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
        ({"blocks": [markdown("\\<@U1> &lt;!channel&gt; `<@U2>`\n\n```\n<!here>\n```")]}, set[str]()),
        ({"blocks": [rich_text({"type": "user", "user_id": "U1"})]}, {"U1"}),
        ({"blocks": [rich_text({"type": "broadcast", "range": "here"})]}, {"here"}),
        ({"blocks": [rich_text({"type": "usergroup", "usergroup_id": "S1"})]}, {"S1"}),
        ({"blocks": [rich_text({"type": "text", "text": "<@U7>"})]}, set[str]()),
        ({"attachments": [{"text": "<@U1>"}]}, {"U1"}),
    ],
)
def test_whom_a_message_pings(content: Json, expected: set[str]) -> None:
    """Slack's own syntax pings wherever it is parsed, a bare name only when the call asks for it."""
    assert pinged(content, {"ada": "U9"}, Rules()) == expected


def test_code_in_markdown_pings_under_the_stricter_rule() -> None:
    """A switch for those who don't trust it."""
    content = {"blocks": [markdown("`<@U2>`\n\n```\n<!here>\n```\n")]}
    assert pinged(content, {}, Rules(pings_from_markdown_code=True)) == {"U2", "here"}


async def test_an_update_pings_nobody(
    slack: SlackServer, general: Channel, ada: User, client: AsyncWebClient
) -> None:
    """`pinged` is what posting did."""
    posted = await answered(client.chat_postMessage(channel=general.id, text="quiet"))
    await client.chat_update(channel=general.id, ts=posted["ts"], text=f"<@{ada.id}> <!channel>")
    assert slack.message(general, posted["ts"]).pinged == frozenset()
