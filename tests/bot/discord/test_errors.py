"""What Discord's errors mean: every documented code of the endpoints used, and every status."""

from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import discord

from bot.discord.client import BAD_TOKEN_CODES, CODES, classify, code_of, retry_after, settled, why_final
from bot.errors import Gone, Malformed, NotAllowed, RateLimited, Unreachable, VenueError
from bot.view.wording.discord import CODES as WORDS
from tests.faults.documented import DISCORD
from tests.pairs import rows

KINDS = (Unreachable, Gone, NotAllowed, Malformed)


def refusal(
    status: int, code: int | None = None, headers: dict[str, str] | None = None
) -> discord.HTTPException:
    """Return what discord.py raises; without a code, the body is a page of HTML."""
    response = SimpleNamespace(status=status, reason="refused", headers=headers or {})
    body: Any = "<html>" if code is None else {"code": code, "message": "refused"}
    return discord.HTTPException(cast("aiohttp.ClientResponse", response), body)


def meaning(error: Exception) -> VenueError:
    """Classify an error with words for what it is about."""
    found = classify(error, permission="Send Messages", place="channel")
    found.__cause__ = error
    return found


def test_every_code_of_the_table_has_one_meaning_and_words() -> None:
    """The words are a phrase: no placeholder, no full stop, nothing for programmers."""
    for code, kind in CODES.items():
        found = meaning(refusal(403, code))
        assert type(found) is kind, code
        assert kind in KINDS, code
        assert code_of(found) == code
        assert not set("{}_") & set(str(found)), code
        assert not str(found).endswith("."), code
        if isinstance(found, Unreachable):
            assert found.is_known, code


def test_every_documented_code_of_the_endpoints_used_is_in_the_table() -> None:
    """All but the general error, and those of a bad token: these pass, or the connection ends."""
    for code in DISCORD.codes:
        assert code in CODES or code in BAD_TOKEN_CODES or code == 0
        found = meaning(refusal(401, code))
        if code in BAD_TOKEN_CODES or code == 0:
            assert isinstance(found, Unreachable), code
            assert (found.is_known, str(found)) == (False, "Discord refuses the bot's token"), code


@rows(
    ("status", "code"), [(403, None), (404, None), (400, 0), (403, 0), (404, 0), (418, 0), (403, 99_999)]
)
def test_what_discord_does_not_document_may_pass(status: int, code: int | None) -> None:
    """It is tried again, but not for ever."""
    found = meaning(refusal(status, code))
    assert isinstance(found, Unreachable)
    assert (found.is_known, str(found)) == (False, "Discord refused it without saying why")


@rows(
    ("status", "code", "kind"),
    [
        (400, 0, Malformed),
        (400, 99_999, Malformed),
        (403, 99_999, NotAllowed),
        (404, 99_999, Gone),
        (403, None, Unreachable),
        (404, None, Unreachable),
        (401, 0, Unreachable),
    ],
)
def test_what_does_not_pass_is_judged_by_its_status(
    status: int, code: int | None, kind: type[VenueError]
) -> None:
    """A page of HTML and a 401 aren't about the request, however often they come."""
    found = meaning(refusal(status, code))
    assert isinstance(found, Unreachable)
    assert type(settled(found, "channel")) is kind


@rows("status", [500, 502, 503, 504, 520, 524])
def test_a_server_error_may_have_carried_the_request_out(status: int) -> None:
    """With JSON or without."""
    for code in (None, 0):
        found = meaning(refusal(status, code))
        assert isinstance(found, Unreachable)
        assert (found.is_lost, found.is_known) == (True, True)


def test_a_rate_limit_says_when_it_ends() -> None:
    """By Discord's header, by the proxy's, or not at all."""
    headers = {"Via": "1.1 google", "X-RateLimit-Reset-After": "1.25", "Retry-After": "2"}
    found = meaning(refusal(429, 0, headers))
    assert isinstance(found, RateLimited)
    assert found.after == 1.25
    assert retry_after(refusal(429, None, {"Retry-After": "30"})) == 30
    assert retry_after(refusal(429)) == 5


def test_a_connection_that_breaks_may_have_carried_the_request_out() -> None:
    """One that never came about has not."""
    key = cast("Any", SimpleNamespace(host="127.0.0.1", port=1, ssl=False))
    errors = (
        (ConnectionResetError(104, "reset"), True),
        (aiohttp.ServerDisconnectedError(), True),
        (TimeoutError(), True),
        (aiohttp.ClientConnectorError(key, OSError(111, "refused")), False),
    )
    for error, is_lost in errors:
        found = meaning(error)
        assert isinstance(found, Unreachable)
        assert (found.is_lost, found.is_known) == (is_lost, True)


@rows("code", [4004, 4010, 4011, 4012, 4013, 4014])
def test_a_connection_that_may_not_be_made_again_says_why(code: int) -> None:
    """In a sentence that says what to do."""
    socket = cast("aiohttp.ClientWebSocketResponse", SimpleNamespace(close_code=code))
    why = why_final(discord.ConnectionClosed(socket, shard_id=0))
    assert why
    assert why.endswith(".")


def test_any_other_end_of_the_connection_may_pass() -> None:
    """4000 and 1006 among them."""
    for code in (1000, 1006, 4000, 4009):
        socket = cast("aiohttp.ClientWebSocketResponse", SimpleNamespace(close_code=code))
        assert why_final(discord.ConnectionClosed(socket, shard_id=0)) is None
    assert why_final(KeyError("url")) is None


def test_every_code_has_its_words() -> None:
    """And no other."""
    assert CODES.keys() == WORDS.keys()
