"""The answer reaches its asker whatever Slack does: errors, limits, deleted cards, lost channels."""

from pathlib import Path

import pytest

from storage.journal.rows import RunRow
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import Place, at_work
from tests.breaking import ALWAYS
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.slack_server import Message

CHAIRMAN = "stage3.1:chair/man:chairman"
ANSWER = "The council's answer, written by chair/man."


async def run_of(place: Place) -> RunRow:
    [row] = await place.library.database.read("SELECT id FROM runs")
    found = await place.library.journal.get(row["id"])
    assert found is not None
    return found


def told(place: Place) -> Message:
    [message] = [each for each in place.slack.told(place.ada) if each.deleted_at is None]
    return message


async def begun(place: Place) -> Message:
    """Ask, and return the card once all but the chairman have been heard."""
    assert (await place.slack.slash(place.general, place.ada, "/council", "Shard?")).acked
    await place.council.until_called(CHAIRMAN)
    return await place.card()


async def ended(place: Place) -> None:
    """Let the chairman answer, and see the run through."""
    place.council.release(CHAIRMAN)
    await place.dispatcher.tasks.settled()


@pytest.mark.parametrize(
    ("breaks", "applied", "may_look"),
    [
        ({"error": "internal_error"}, True, True),
        ({"status": 502}, True, False),
        ({"breaks": "reset"}, True, True),
        ({"html": True}, False, True),
    ],
)
async def test_a_card_that_may_be_there_is_looked_for_and_repeated_at_once(
    tmp_path: Path, breaks: dict[str, object], *, applied: bool, may_look: bool
) -> None:
    """Somebody waits for it. Without `channels:history` a second one may appear; one is gone on with."""
    scopes = frozenset({"channels:history"} if may_look else set[str]())
    async with at_work(tmp_path, scopes=scopes) as place:
        began = place.slack.clock()
        place.slack.fail("chat.postMessage", applied=applied, **breaks)  # pyright: ignore[reportArgumentType] - named per test
        await place.ask()
        cards = place.cards(place.general)
        assert len(cards) == (2 if applied and not may_look else 1)
        assert cards[-1].posted_at - began <= 5
        assert [ANSWER in blocks_text(card.blocks) for card in cards] == [False] * (len(cards) - 1) + [
            True
        ]
        assert told(place).thread_ts == cards[-1].ts


@pytest.mark.parametrize("refusal", [None, "missing_scope", "ratelimited"])
async def test_a_card_in_a_thread_is_looked_for_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: str | None
) -> None:
    """And repeated where Slack doesn't let the bot look."""
    if refusal == "ratelimited":
        monkeypatch.setattr("bot.service.inputs.READ_SECONDS", 0.01)
    async with at_work(tmp_path, scopes=frozenset({"channels:history"})) as place:
        head = place.slack.post(place.general, place.ada, "Look at this.")
        if refusal:
            place.slack.fail("conversations.replies", refusal, times=ALWAYS)
        place.slack.fail("chat.postMessage", "internal_error", applied=True)
        await place.slack.mention(place.general, place.ada, "Shard?", thread_ts=head.ts)
        await place.dispatcher.tasks.settled()
        posted = place.slack.thread(place.general, head.ts)
        cards = [each for each in posted if "Shard?" in each.text and each.bot_id]
        assert len(cards) == (2 if refusal else 1)
        assert ANSWER in blocks_text(cards[-1].blocks)


async def test_a_burst_stays_within_one_post_a_second_and_channel(tmp_path: Path) -> None:
    """Slack refuses none of its calls."""
    async with at_work(tmp_path) as place:
        place.slack.enforce_rate_limits(burst=4)
        for number in range(3):
            await place.slack.slash(place.general, place.ada, "/council", f"Question {number}?")
        await place.dispatcher.tasks.settled()
        assert len(place.slack.told(place.ada)) == 3
        assert [each.method for each in place.slack.requests if each.retry_after] == []


async def test_an_answer_goes_to_nobody_of_whom_it_is_unknown_who_sees_it(tmp_path: Path) -> None:
    """Without `channels:read`, the bot can't know who is in the channel."""
    council = ScriptedCouncil(held={CHAIRMAN})
    async with at_work(tmp_path, council, without=frozenset({"channels:read"})) as place:
        await begun(place)
        for method in ("chat.update", "chat.postMessage"):
            place.slack.fail(method, "channel_not_found", channel=place.general.id, times=ALWAYS)
        await ended(place)
        assert place.slack.told(place.ada) == []
        assert place.cards(place.slack.world.open_im(place.slack.team, place.ada.id)) == []
        assert (await run_of(place)).delivery == "untold"


async def test_a_hanging_edit_stops_nobody_else(tmp_path: Path) -> None:
    """Another card is edited meanwhile."""
    held = f"stage1.1:{FOUR[0]}"
    async with at_work(tmp_path, ScriptedCouncil(held={held})) as place:
        other = place.slack.add_channel("other", place.bob)
        fault = place.slack.fail("chat.update", breaks="hang", channel=place.general.id)
        await place.slack.slash(place.general, place.ada, "/council", "Shard?")
        await place.slack.until(lambda: fault.hits)
        await place.slack.slash(other, place.bob, "/council", "Scale?")
        card = await place.card(other)
        await place.slack.until(lambda: "3 of 4" in card.text)
        fault.release()
        place.council.release(held)
        await place.dispatcher.tasks.settled()
