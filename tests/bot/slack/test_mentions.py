"""Slack loses responses: the asker is told at least once and at most twice, whatever was carried out."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.errors import NotAllowed, Unreachable
from bot.service.delivery.chat import Part, Spot
from bot.service.delivery.posts import AHEAD_SECONDS, Ledger, Mention, MentionSender
from storage.journal.rows import MentionState
from tests.bot.shown import blocks_text
from tests.bot.slack.test_bot import Place, at_work
from tests.bot.slack.test_delivery import ANSWER, CHAIRMAN, begun, ended, run_of
from tests.breaking import ALWAYS
from tests.council.scripted import ScriptedCouncil
from tests.slack_server import Message

DONE = "The council has answered."
POST, SCHEDULE, LIST = "chat.postMessage", "chat.scheduleMessage", "chat.scheduledMessages.list"


@asynccontextmanager
async def answering(folder: Path) -> AsyncGenerator[tuple[Place, Message]]:
    """A run whose chairman hasn't answered yet, and its card."""
    async with at_work(folder, ScriptedCouncil(held={CHAIRMAN})) as place:
        yield place, await begun(place)


async def told(place: Place) -> list[Message]:
    """Let the chairman answer; return what mentions the asker once Slack has posted everything."""
    await ended(place)
    place.clock.advance(AHEAD_SECONDS)
    return place.slack.told(place.ada)


@pytest.mark.parametrize(("breaks", "applied"), [({"breaks": "reset"}, True), ({"status": 502}, False)])
async def test_a_mention_that_may_be_there_is_posted_by_slack_itself(
    tmp_path: Path, breaks: dict[str, object], *, applied: bool
) -> None:
    """Once more, three minutes later, in the thread and with the link."""
    async with answering(tmp_path) as (place, card):
        place.slack.fail(POST, says=DONE, applied=applied, **breaks)  # pyright: ignore[reportArgumentType] - named per test
        mentions = await told(place)
        assert len(mentions) == 1 + applied
        assert {each.thread_ts for each in mentions} == {card.ts}
        assert {each.text for each in mentions} == {mentions[-1].text}
        assert "|See the card>" in mentions[-1].text
        assert mentions[-1].posted_at - card.history[-1].at >= AHEAD_SECONDS - 1
        assert (await place.run(card)).delivery == "shown"


async def test_what_slack_has_accepted_is_not_requested_again(tmp_path: Path) -> None:
    """The response is lost, but the message is listed."""
    async with answering(tmp_path) as (place, _):
        place.slack.fail(POST, breaks="reset", says=DONE)
        place.slack.fail(SCHEDULE, breaks="reset", applied=True)
        assert len(await told(place)) == 1
        assert len(place.slack.calls(SCHEDULE)) == 1
        assert len(place.slack.calls(LIST)) == 1


async def test_a_mention_that_nobody_can_look_up_counts_as_sent(tmp_path: Path) -> None:
    """Slack's list can't be read until it is too late: one more mention might be the third."""
    async with answering(tmp_path) as (place, card):
        place.slack.fail(POST, breaks="reset", applied=True, says=DONE)
        place.slack.fail(SCHEDULE, breaks="reset", applied=True)
        place.slack.fail(LIST, "missing_scope", times=ALWAYS)
        assert len(await told(place)) == 2
        assert len(place.slack.calls(SCHEDULE)) == 1
        assert (await place.run(card)).delivery == "shown"


async def test_a_refusal_to_schedule_falls_back_to_the_next_place(tmp_path: Path) -> None:
    """The thread takes no replies any more, so the mention is posted beside the card."""
    async with answering(tmp_path) as (place, card):
        lost = place.slack.fail(POST, breaks="reset", applied=True, says=DONE)
        place.slack.fail(SCHEDULE, "restricted_action_thread_locked", in_thread=True, times=ALWAYS)
        place.council.release(CHAIRMAN)
        await place.slack.until(lambda: lost.hits)
        place.slack.fail(POST, "restricted_action_thread_locked", in_thread=True, times=ALWAYS)
        first, second = await told(place)
        assert (first.thread_ts, second.thread_ts) == (card.ts, None)


async def test_a_new_card_comes_without_a_second_mention_above(tmp_path: Path) -> None:
    """The scheduled mention follows below it."""
    async with answering(tmp_path) as (place, card):
        place.slack.delete_thread(card)
        place.slack.fail(POST, breaks="reset", applied=True, says=DONE)
        first, second = await told(place)
        with_mention, without = place.cards(place.general)
        assert (first, second.thread_ts) == (with_mention, without.ts)
        assert ANSWER in blocks_text(without.blocks)
        assert (await place.run(without)).origin.message == without.ts


async def test_a_direct_message_is_repeated_like_that_as_well(tmp_path: Path) -> None:
    """Its pages have no mention; the scheduled one follows below them."""
    async with answering(tmp_path) as (place, _):
        direct = place.slack.world.open_im(place.slack.team, place.ada.id)
        for method in ("chat.update", POST):
            place.slack.fail(method, "channel_not_found", channel=place.general.id, times=ALWAYS)
        place.slack.fail(POST, breaks="reset", applied=True, channel=direct.id, says=DONE)
        first, second = await told(place)
        with_mention, without = place.cards(direct)
        assert (first, second.thread_ts) == (with_mention, without.ts)
        assert ANSWER in blocks_text(without.blocks)
        assert (await run_of(place)).delivery == "shown"


async def test_a_mention_is_recorded_before_it_is_sent(tmp_path: Path) -> None:
    """If the process dies now, the mention may have arrived."""
    async with answering(tmp_path) as (place, card):
        fault = place.slack.fail(POST, breaks="hang", says=DONE)
        place.council.release(CHAIRMAN)
        await place.slack.until(lambda: fault.hits)
        assert (await place.run(card)).telling.begun == 1
        fault.release()
        await place.dispatcher.tasks.settled()
        assert (await place.run(card)).telling.possibly_posted == 1


@pytest.mark.parametrize(
    ("known", "posted", "scheduled"),
    [
        (MentionState(), 1, 0),
        (MentionState(begun=1), 1, 0),
        (MentionState(lost=1), 0, 1),
        (MentionState(begun=2), 0, 0),
        (MentionState(begun=1, lost=1), 0, 0),
    ],
)
async def test_it_continues_from_there(
    tmp_path: Path, known: MentionState, posted: int, scheduled: int
) -> None:
    """One that may be there twice isn't sent a third time."""
    async with at_work(tmp_path) as place:
        await tell(place, known)
        assert (len(place.slack.calls(POST)), len(place.slack.calls(SCHEDULE))) == (posted, scheduled)


@pytest.mark.parametrize(
    ("is_there", "ahead", "asked", "told"),
    [(True, 100, 0, 1), (False, 100, 1, 1), (True, -10, 0, 1), (False, -10, 0, 0)],
)
async def test_a_scheduled_mention_is_looked_up(
    tmp_path: Path, ahead: int, asked: int, told: int, *, is_there: bool
) -> None:
    """It is scheduled again only if Slack certainly hasn't taken it."""
    async with at_work(tmp_path) as place:
        post_at = int(place.clock()) + ahead
        if is_there:
            content = {"text": f"<@{place.ada.id}> {DONE}", "blocks": None}
            place.clock.advance(-1000)
            place.slack.api.board.schedule(place.slack.team, place.general, content, post_at)
            place.clock.advance(1000)
        kept = await tell(place, MentionState(lost=1, post_at=post_at))
        place.clock.advance(AHEAD_SECONDS)
        assert len(place.slack.calls(SCHEDULE)) == asked
        assert len(place.slack.told(place.ada)) == told
        assert len(kept) == 1


async def test_a_third_lost_response_is_never_risked(tmp_path: Path) -> None:
    """An earlier process died at one, and this one's response is lost."""
    async with at_work(tmp_path) as place:
        place.slack.fail(POST, breaks="reset", applied=True, says=DONE)
        assert await tell(place, MentionState(begun=1)) == [""]
        assert len(place.slack.told(place.ada)) == 1
        assert place.slack.calls(SCHEDULE) == []


async def test_two_mentions_are_never_scheduled_for_the_same_second(tmp_path: Path) -> None:
    """The second identifies them."""
    async with at_work(tmp_path) as place:
        await asyncio.gather(*(tell(place, MentionState(lost=1), run=str(n)) for n in range(4)))
        times = [call.arguments["post_at"] for call in place.slack.calls(SCHEDULE)]
        assert len(set(times)) == len(times) == 4


async def test_a_refusal_leaves_nothing_on_record(tmp_path: Path) -> None:
    """The asker certainly wasn't told, so the next place is tried as if it were the first."""
    async with at_work(tmp_path) as place:
        place.slack.fail(POST, "restricted_action", times=2)
        noted: list[MentionState] = []
        with pytest.raises(NotAllowed):
            await tell(place, MentionState(), noted=noted)
        assert noted == [MentionState(begun=1), MentionState()] * 2


async def test_a_slack_that_takes_no_mention_for_long_leaves_it_untold(tmp_path: Path) -> None:
    """It is tried again later, since nothing was carried out."""
    async with at_work(tmp_path) as place:
        place.slack.fail(SCHEDULE, breaks="reset", times=ALWAYS)
        place.slack.fail(POST, "service_unavailable", times=ALWAYS)
        noted: list[MentionState] = []
        with pytest.raises(Unreachable):
            await tell(place, MentionState(lost=1), noted=noted)
        assert noted[-1] == MentionState(lost=1)


async def tell(
    place: Place, known: MentionState, *, run: str = "run-1", noted: list[MentionState] | None = None
) -> list[str]:
    """Send a mention of which something is on record; return the ids that were kept."""
    kept: list[str] = []

    async def sent(message: str) -> None:
        kept.append(message)

    async def note(telling: MentionState) -> None:
        if noted is not None:
            noted.append(telling)

    sender = MentionSender(place.bot._chat, run)  # pyright: ignore[reportPrivateUsage] - it is made with real parts
    mention = Mention(DONE, sent, Ledger(known, note))
    if not await sender.is_over(mention):
        await sender.send(Part(f"<@{place.ada.id}> {DONE}"), Spot(place.general.id), mention)
    return kept
