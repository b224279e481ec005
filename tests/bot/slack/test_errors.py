"""What Slack's errors mean: every documented code, and every way a response can be missing."""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its keyword arguments without types.

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import (
    Gone,
    Malformed,
    NotAllowed,
    NoThread,
    RateLimited,
    Revoked,
    Unreachable,
    VenueError,
)
from bot.slack.client import Installation, by_code, granted, sending_client
from tests.slack_server import SlackServer
from tests.slack_server.faults import Breaks

COMMON = """
    access_denied accesslimited account_inactive deprecated_endpoint ekm_access_denied
    enterprise_is_restricted fatal_error internal_error invalid_arg_name invalid_arguments
    invalid_array_arg invalid_auth invalid_charset invalid_form_data invalid_post_type method_deprecated
    missing_post_type missing_scope no_permission not_allowed_token_type not_authed org_login_required
    ratelimited request_timeout service_unavailable team_access_not_granted team_added_to_org
    token_expired token_revoked two_factor_setup_required
"""
DOCUMENTED = {
    "chat.postMessage": """
        as_user_not_supported attachment_payload_limit_exceeded cannot_reply_to_message
        channel_not_found duplicate_channel_not_found duplicate_message_not_found invalid_blocks
        invalid_blocks_format invalid_metadata_format invalid_metadata_schema is_archived
        markdown_text_conflict message_limit_exceeded messages_tab_disabled
        metadata_must_be_sent_from_app metadata_too_large missing_file_data msg_blocks_too_long
        msg_too_long no_text not_in_channel rate_limited restricted_action
        restricted_action_non_threadable_channel restricted_action_read_only_channel
        restricted_action_thread_locked restricted_action_thread_only_channel
        send_on_behalf_not_allowed slack_connect_canvas_sharing_blocked
        slack_connect_file_link_sharing_blocked slack_connect_lists_sharing_blocked team_not_found
        too_many_attachments too_many_contact_cards
    """,
    "chat.update": """
        as_user_not_supported block_mismatch cant_broadcast_message cant_update_message
        channel_not_found edit_window_closed external_channel_migrating invalid_attachments
        invalid_blocks invalid_blocks_format invalid_metadata_format invalid_metadata_schema is_inactive
        markdown_text_conflict message_not_found metadata_must_be_sent_from_app metadata_too_large
        msg_too_long no_dual_broadcast_content_update no_text slack_connect_file_link_sharing_blocked
        streaming_state_conflict team_not_found too_many_attachments update_failed
    """,
    "chat.postEphemeral": """
        cannot_reply_to_message channel_not_found invalid_attachments invalid_blocks
        invalid_blocks_format is_archived is_bot markdown_text_conflict message_limit_exceeded
        messages_tab_disabled msg_too_long no_text not_in_channel restricted_action too_many_attachments
        unknown_method user_not_in_channel
    """,
    "conversations.members": """
        channel_not_found fetch_members_failed invalid_cursor invalid_limit
        method_not_supported_for_channel_type
    """,
    "conversations.open": """
        channel_not_found invalid_user_combination method_not_supported_for_channel_type
        not_enough_users too_many_users user_disabled user_not_found user_not_visible
        users_list_not_supplied
    """,
    "files.getUploadURLExternal": """
        alt_txt_too_large file_upload_size_restricted file_uploads_disabled missing_argument
        snippet_too_large storage_limit_reached unknown_snippet_type unknown_subtype
    """,
    "files.completeUploadExternal": """
        channel_not_found file_not_found file_update_failed invalid_channel not_in_channel
        posting_to_channel_denied
    """,
    "usergroups.users.list": "invalid_cursor no_such_subteam plan_upgrade_required",
    "users.info": "user_not_found user_not_visible",
    "auth.test": "",
    "apps.connections.open": "forbidden_team insecure_request is_bot missing_args",
}


@pytest.mark.parametrize("method", DOCUMENTED)
def test_every_documented_code_is_known(method: str) -> None:
    """None of them counts as temporary merely because it is unknown."""
    for code in f"{COMMON} {DOCUMENTED[method]}".split():
        if code not in {"ratelimited", "rate_limited"}:
            error = by_code(code)
            assert not isinstance(error, Unreachable) or error.is_known, code


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("internal_error", Unreachable, "Slack is having problems"),
        ("team_added_to_org", Unreachable, "the workspace is being moved to an organization"),
        ("message_not_found", Gone, "the card was deleted"),
        ("token_revoked", Revoked, "the token was revoked"),
        ("not_in_channel", NotAllowed, "the bot isn't in this channel; invite it with /invite"),
        ("cannot_reply_to_message", NoThread, "threads are switched off in this channel"),
        ("missing_scope", NotAllowed, "a scope is missing"),
        ("invalid_blocks", Malformed, "Slack doesn't accept it (invalid_blocks)"),
        ("a_new_one", Unreachable, "Slack refused (a_new_one)"),
    ],
)
def test_a_code_is_put_into_words(code: str, kind: type[VenueError], said: str) -> None:
    """Short ones, to be used within a sentence."""
    error = by_code(code)
    assert type(error) is kind
    assert str(error) == said
    if isinstance(error, Unreachable):
        assert error.is_known == (code != "a_new_one")


@asynccontextmanager
async def calling() -> AsyncGenerator[tuple[SlackServer, AsyncWebClient]]:
    """Start a Slack, and the client for what goes through the outbox."""
    async with SlackServer() as slack, aiohttp.ClientSession() as session:
        client = sending_client(slack.token, slack.api_url, Installation())
        client.session = session
        yield slack, client


async def raised(client: AsyncWebClient) -> VenueError:
    """Return what a call that Slack doesn't carry out raises."""
    with pytest.raises(VenueError) as caught:
        await granted(client.auth_test())
    return caught.value


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("html", [True, False])
async def test_a_server_error_may_pass_whatever_its_body(status: int, html: bool) -> None:
    """A proxy's page as well as Slack's own JSON, whatever its code says."""
    async with calling() as (slack, client):
        slack.fail("auth.test", "account_inactive", status=status, html=html)
        error = await raised(client)
        assert type(error) is Unreachable
        assert (str(error), error.is_lost, error.is_known) == (
            "Slack is having problems",
            False,
            True,
        )
        assert len(slack.calls("auth.test")) == 1


@pytest.mark.parametrize("status", [200, 403, 404])
async def test_another_page_in_place_of_an_answer_may_pass(status: int) -> None:
    """It isn't Slack's, so its meaning is unknown."""
    async with calling() as (slack, client):
        slack.fail("auth.test", status=status, html=True)
        error = await raised(client)
        assert isinstance(error, Unreachable)
        assert not error.is_known
        assert error.is_lost == (status == 200)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"[]", "application/json"),
        (b"null", "application/json"),
        (b"{", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"", "application/json"),
        (b"busy", "text/plain"),
    ],
)
@pytest.mark.parametrize("status", [200, 502])
async def test_a_body_that_is_no_answer_is_a_typed_error(body: bytes, kind: str, status: int) -> None:
    """The SDK would raise any kind of error."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, aiohttp.ClientSession() as session:
        client = sending_client(
            "t", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", Installation()
        )
        client.session = session
        error = await raised(client)
        assert isinstance(error, Unreachable)
        is_readable = body != b"\xff\xfe"  # where it isn't, the SDK doesn't tell the status
        assert error.is_known == (status == 502 and is_readable)
        assert error.is_lost == (status == 200 or not is_readable)


@pytest.mark.parametrize(
    ("retry_after", "error", "waits"), [(0, None, 0), (30, None, 30), (None, "ratelimited", 10)]
)
async def test_a_rate_limit_says_when_to_come_back(
    retry_after: int | None, error: str | None, waits: float
) -> None:
    """The SDK doesn't sleep, so that other requests can be held back, too."""
    async with calling() as (slack, client):
        slack.fail("auth.test", error, retry_after=retry_after)
        limited = await raised(client)
        assert isinstance(limited, RateLimited)
        assert limited.after == waits
        assert len(slack.calls("auth.test")) == 1


@pytest.mark.parametrize("breaks", ["reset", "hang"])
async def test_an_answer_that_never_comes_may_have_been_carried_out(breaks: Breaks) -> None:
    """Whether the connection breaks or nothing happens."""
    async with calling() as (slack, client):
        assert client.session
        client.session._timeout = aiohttp.ClientTimeout(total=0.05 if breaks == "hang" else None)  # pyright: ignore[reportPrivateUsage]
        slack.fail("auth.test", breaks=breaks)
        error = await raised(client)
        assert isinstance(error, Unreachable)
        assert (str(error), error.is_lost) == ("Slack can't be reached", True)


async def test_a_connection_that_is_refused_carried_nothing_out() -> None:
    """Nothing was sent."""
    async with aiohttp.ClientSession() as session:
        client = sending_client("t", "http://127.0.0.1:9/api", Installation())
        client.session = session
        error = await raised(client)
        assert isinstance(error, Unreachable)
        assert (str(error), error.is_lost) == ("Slack can't be reached", False)


class TestAccess:
    """Whether a token's refusal is final."""

    def test_a_refusal_that_lasts_a_minute_is_final(self) -> None:
        """For either token."""
        now = [0.0]
        installation = Installation(lambda: now[0])
        installation.refused("bot", "invalid_auth")
        now[0] = 59.0
        installation.refused("bot", "invalid_auth")
        installation.refused("app", "token_revoked")
        assert not installation.code
        now[0] = 60.0
        installation.refused("bot", "account_inactive")
        assert installation.code == "account_inactive"

    def test_a_refusal_that_passes_is_forgotten(self) -> None:
        """An accepted call shows that the token is valid."""
        now = [0.0]
        installation = Installation(lambda: now[0])
        installation.refused("bot", "invalid_auth")
        installation.accepted("bot")
        now[0] = 60.0
        installation.refused("bot", "invalid_auth")
        assert not installation.code
