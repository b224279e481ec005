"""Every documented error is in the program's own table, so none counts as temporary by mistake."""

from typing import Any, cast

import discord
import pytest

from bot.discord.client import classify
from bot.errors import RateLimited, Unreachable, VenueError
from bot.slack.client import by_code, by_status
from tests.faults.documented import DISCORD, SLACK

UNAUTHORIZED = 401
"""Whatever its code, it is about the token: it is tried again, until the connection ends for good."""


class Response:
    """What discord.py's errors know of a response."""

    def __init__(self, status: int, **headers: str) -> None:
        self.status = status
        self.reason = ""
        self.headers = {"Via": "1.1 google", **headers}


def refused(status: int, body: dict[str, Any] | str) -> VenueError:
    """Classify a refusal by Discord."""
    response = cast("Any", Response(status, **{"Retry-After": "7"}))
    return classify(discord.HTTPException(response, body))


@pytest.mark.parametrize("method", SLACK.methods)
def test_every_documented_error_of_slack_is_in_the_table(method: str) -> None:
    """Also those that only some methods answer."""
    unknown = [error for error in SLACK.errors(method) if not is_known(by_status(200, error, {}))]
    assert unknown == []


@pytest.mark.parametrize("endpoint", DISCORD.endpoints)
def test_every_documented_code_of_discord_is_in_the_table(endpoint: str) -> None:
    """Also those that only some endpoints answer."""
    codes = [code for code in DISCORD.errors(endpoint) if DISCORD.status(code) != UNAUTHORIZED]
    answers = {code: refused(DISCORD.status(code), {"code": code, "message": ""}) for code in codes}
    assert [code for code, error in answers.items() if not is_known(error)] == []


def is_known(error: VenueError) -> bool:
    """Whether the table has an error."""
    return not isinstance(error, Unreachable) or error.is_known


def test_an_undocumented_error_may_pass() -> None:
    """The outbox knows that it doesn't know it, and tries a few times."""
    for code in ("a_new_error", "invalid_moon", "daily_limit_exceeded", "no_room"):
        assert not is_known(by_code(code))
    assert not is_known(refused(400, {"code": 99999, "message": ""}))


def test_a_rate_limit_says_how_long_it_lasts() -> None:
    """By the header, on both platforms."""
    limits = (by_status(429, None, {"Retry-After": "7"}), refused(429, {"retry_after": 7.0}))
    assert [error.after for error in limits if isinstance(error, RateLimited)] == [7, 7]
