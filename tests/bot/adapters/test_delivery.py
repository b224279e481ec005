"""The answer reaches its asker, whatever the platform, a moderator or the network does meanwhile."""

from typing import Any

import pytest

from bot.slack.client import HALF_DONE
from tests.bot.adapters.teams import AnyTeam
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR
from tests.pairs import pairs

ANSWER = "The council's answer, written by chair/man."
DONE = "The council has answered."
CHAIR = "stage3.1:chair/man:chairman"
ALWAYS = 1 << 31
SOAK = pytest.mark.soak
THREAD = "POST /channels/{channel_id}/messages/{message_id}/threads"
DISCORD = [
    *({"status": 401}, {"status": 404, "code": 10008}, {"status": 502, "applied": True}),
    *({"status": 429, "retry_after": 0.001, "times": 20}, {"status": None, "breaks": "reset"}),
]
SOAKED = [
    *({"status": 400}, {"status": 404, "html": True}, {"status": 404, "code": 10003}),
    *({"status": 403, "html": True}, {"status": 403, "code": 50001}, {"status": 500, "times": 3}),
    {"status": 429, "retry_after": 0.001, "is_global": True},
]
TRANSIENT = ["internal_error", "fatal_error", "ratelimited", "an_error_that_nobody_knows"]
SLACK = [
    *(("edit", {"error": "channel_not_found", "seconds": seconds}) for seconds in (1.5, 4.5)),
    *((what, {"status": 503, "html": True, "seconds": 60}) for what in ("edit", "post")),
    *(("edit", {"status": 500, "seconds": 300}), ("post", {"retry_after": 30, "times": 20})),
]


@pytest.mark.parametrize(
    ("team", "what", "fault"),
    [
        *(pytest.param("Discord", "edit", fault, id=f"Discord-{fault}") for fault in DISCORD),
        *(pytest.param("Discord", "edit", fault, id=f"{fault}", marks=SOAK) for fault in SOAKED),
        *(("Discord", what, {"status": 503, "applied": True, "times": 2}) for what in ("post", THREAD)),
        *(("Slack", what, fault) for what, fault in SLACK),
        *(
            pytest.param(
                "Slack",
                one.values[1],
                {"error": one.values[0], "times": 1 if one.values[0] in HALF_DONE else 3},
                marks=one.marks,
            )
            for one in pairs(TRANSIENT, ("edit", "post"))
        ),
    ],
    indirect=["team"],
)
async def test_trouble_for_a_while_costs_nothing(
    team: AnyTeam, what: str, fault: dict[str, Any]
) -> None:
    """Neither the answer, nor the mention, nor a part of the thread; nothing is shown twice."""
    early = [team.fail(what, **fault)] if what != "edit" else []  # the card's edits are the last
    card = await team.held(CHAIR)
    [trouble] = early or [team.fail(what, **fault)]
    await team.finish(CHAIR)
    assert trouble.hits
    assert ANSWER in team.read(card)
    [told] = team.notified()
    assert team.tells_of(told, card)
    below = [team.read(each) for each in team.said_below(card)]
    assert len({*below}) == len(below) == 1 + len(FOUR)
    assert await team.deliveries() == ["shown"]


async def test_a_deleted_card_is_replaced_by_one_that_mentions_the_asker(team: AnyTeam) -> None:
    """It shows the answer and its buttons, and its thread opens below it."""
    team.remove(await team.held(CHAIR))
    await team.finish(CHAIR)
    [card] = team.public()
    assert team.notified() == [card]
    assert f" {DONE}\n" in team.text(card)
    assert ANSWER in team.read(card)
    assert team.labels(card) == FINISHED
    assert await team.deliveries() == ["shown"]


async def test_a_card_that_can_no_longer_be_edited_is_posted_again(team: AnyTeam) -> None:
    """The run's record names the newest one."""
    card = await team.held(CHAIR)
    team.freeze(card)
    await team.finish(CHAIR)
    first, *_, newest = team.public()
    assert first is card
    assert [ANSWER in team.read(each) for each in (card, newest)] == [False, True]
    [told] = team.notified()
    assert team.tells_of(told, newest)


async def test_without_the_channel_the_asker_is_told_directly(team: AnyTeam) -> None:
    """With all of a long answer: the bot has lost access for good, and the asker still sees the channel."""
    team.council.script["stage3"] = "\n\n".join(f"Reason {n}: {'why ' * 60}" for n in range(100))
    await team.held(CHAIR)
    team.hide()
    await team.finish(CHAIR)
    first, *more = team.directly()
    assert team.notified() == [first]
    assert (f" {DONE}" in team.text(first), team.labels(first)) == (True, [])
    said = "\n".join(map(team.read, (first, *more)))
    assert all(f"Reason {n}:" in said for n in range(100))
    assert await team.deliveries() == ["shown"]


async def test_an_asker_who_has_left_the_channel_is_not_told(team: AnyTeam) -> None:
    """The answer stays with the conversation."""
    await team.held(CHAIR)
    team.hide()
    team.leave(team.ada)
    await team.finish(CHAIR)
    assert (team.notified(), team.directly()) == ([], [])
    assert await team.deliveries() == ["untold"]
    [one] = await team.conversations()
    assert len(one.messages) == 2


async def test_a_private_answer_is_told_nowhere_else(team: AnyTeam) -> None:
    """Whatever has become of the direct messages."""
    team.council.held.add(CHAIR)
    await team.private()
    await team.council.until_called(CHAIR)
    before = len(team.directly())
    team.hide(direct=True)
    await team.finish(CHAIR)
    assert (team.notified(), team.public(), len(team.directly())) == ([], [], before)
    assert await team.deliveries() == ["untold"]


@pytest.mark.parametrize(
    ("team", "what", "fault", "why"),
    [
        *(
            pytest.param("Discord", THREAD, {"status": status, "code": code}, why, marks=marks)
            for status, code, why, marks in [
                (403, 50001, "the bot has no access to this channel", ()),
                (403, 0, "Discord refused it without saying why", ()),
                (400, 0, "Discord doesn't accept its content", ()),
                (403, 20026, "Discord has restricted the bot for sending too much", SOAK),
                (403, 50013, "the bot lacks Create Public Threads", ()),
                (400, 50024, "this kind of channel doesn't allow it", SOAK),
                (400, 160006, "this server has reached its limit of active threads", ()),
                (400, 160007, "this server has reached its limit of active announcement threads", SOAK),
                (400, 200001, "Discord's content filter blocked it", SOAK),
                (403, 60003, "the server requires two-factor authentication", SOAK),
            ]
        ),
        pytest.param(
            "Slack",
            "post",
            {"error": "restricted_action_non_threadable_channel", "in_thread": True},
            "threads are switched off in this channel",
        ),
    ],
    indirect=["team"],
)
async def test_whatever_refuses_a_thread_the_digest_comes_in_place(
    team: AnyTeam, what: str, fault: dict[str, Any], why: str
) -> None:
    """One line says why; members open from its buttons."""
    team.fail(what, **fault, times=ALWAYS)
    await team.ask()
    card, *posted = team.public()
    assert ANSWER in team.read(card)
    assert f"No thread here: {why}." in "\n".join(map(team.read, posted))
    assert {label for each in posted for label in team.labels(each)} == {
        f"Open {name.rpartition('/')[2]}" for name in FOUR
    }
    [told] = team.notified()
    assert told in posted
    assert team.in_thread(card) == 0
