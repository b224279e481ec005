"""States: what ties an installation to the browser that began it."""

import asyncio
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.oauth import states as module
from bot.slack.oauth.states import STATE_SECONDS, States
from tests.slack_server.rules import HandClock


async def test_a_state_is_good_once() -> None:
    """Also if it comes several times in the same moment."""
    states = States(HandClock())
    state = await states.async_issue()
    used = await asyncio.gather(*(states.async_consume(state) for _ in range(5)))
    assert sorted(used) == [False] * 4 + [True]


async def test_others_use_up_nobodys_state() -> None:
    """However many of them there are."""
    states = States(HandClock())
    mine = await states.async_issue()
    for _ in range(2000):
        await states.async_issue()
    assert await states.async_consume(mine)


async def test_it_fits_into_an_address_and_a_cookie() -> None:
    """As it is, without quotes."""
    state = await States(HandClock()).async_issue()
    assert {*state} <= {*string.ascii_letters, *string.digits, "-", "_"}


async def test_written_in_another_way_it_is_the_same_state() -> None:
    """What isn't base64 is skipped when it is read."""
    states = States(HandClock())
    state = await states.async_issue()
    assert await states.async_consume(state)
    for other in (f"{state}=", f"{state}====", f"{state[:8]}.{state[8:]}", f" {state}", f"{state}\n"):
        assert not await states.async_consume(other)


async def test_it_expires() -> None:
    """After ten minutes, used or not."""
    clock = HandClock()
    states = States(clock)
    state = await states.async_issue()
    clock.advance(STATE_SECONDS + 1)
    assert not await states.async_consume(state)


async def test_another_process_does_not_take_it() -> None:
    """Nor this one after a restart: what was used before would be forgotten."""
    state = await States(HandClock()).async_issue()
    assert not await States(HandClock()).async_consume(state)


async def test_used_ones_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more within ten minutes, the oldest could be used again."""
    monkeypatch.setattr(module, "MOST_USED", 3)
    states = States(HandClock())
    issued = [await states.async_issue() for _ in range(4)]
    for state in issued:
        assert await states.async_consume(state)
    assert [await states.async_consume(state) for state in reversed(issued)] == [
        False,
        False,
        False,
        True,
    ]


@given(st.text() | st.text(string.ascii_letters + "-_=", min_size=80))
async def test_what_is_made_up_is_refused(made_up: str) -> None:
    """Whatever it is."""
    assert not await States(HandClock()).async_consume(made_up)
