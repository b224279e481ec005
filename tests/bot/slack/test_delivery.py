"""The answer reaches its asker whatever Slack does: errors, limits, deleted cards, lost channels."""

from collections import Counter
from pathlib import Path

import pytest

from bot.slack.client import HALF_DONE
from storage.journal.rows import RunRow
from tests.bot.shown import FINISHED, blocks_text
from tests.bot.slack.test_bot import Place, at_work, labels
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.pairs import pairs
from tests.slack_server import Message
from tests.slack_server.faults import ALWAYS
from tests.slack_server.rules import TIERS

CHAIRMAN = "stage3.1:chair/man:chairman"
ANSWER = "The council's answer, written by chair/man."
TRANSIENT = (
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
    "ratelimited",
    "an_error_that_nobody_knows",
)
METHODS = ("chat.update", "chat.postMessage", "chat.getPermalink")


async def run_of(place: Place) -> RunRow:
    """Return the only run that there is."""
    [row] = await place.library.database.read("SELECT id FROM runs")
    found = await place.library.journal.get(row["id"])
    assert found is not None
    return found


def told(place: Place) -> Message:
    """Return the one message that mentions the asker."""
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


class TestErrors:
    """Temporary errors."""

    @pytest.mark.parametrize(("code", "method"), pairs(TRANSIENT, METHODS))
    async def test_a_transient_error_loses_nothing(self, tmp_path: Path, method: str, code: str) -> None:
        """Neither the question, nor the answer, nor the mention, nor a part of the thread.

        After some of them, a post may be there: it is repeated only once.
        """
        async with at_work(tmp_path) as place:
            place.slack.fail(method, code, times=1 if code in HALF_DONE else 3)
            card = await place.ask()
            assert ANSWER in blocks_text(card.blocks)
            assert told(place).thread_ts == card.ts
            assert len(place.slack.thread(place.general, card.ts)) == 1 + len(FOUR)
            assert (await place.run(card)).delivery == "shown"

    @pytest.mark.parametrize("may_look", [True, False])
    @pytest.mark.parametrize("applied", [True, False])
    @pytest.mark.parametrize(
        "breaks", [{"error": "internal_error"}, {"status": 502}, {"breaks": "reset"}, {"html": True}]
    )
    async def test_a_card_that_may_be_there_is_looked_for_and_repeated_at_once(
        self, tmp_path: Path, breaks: dict[str, object], *, applied: bool, may_look: bool
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
            assert [ANSWER in blocks_text(card.blocks) for card in cards] == [False] * (
                len(cards) - 1
            ) + [True]
            assert told(place).thread_ts == cards[-1].ts

    @pytest.mark.parametrize("refusal", [None, "missing_scope", "not_in_channel", "ratelimited"])
    async def test_a_card_in_a_thread_is_looked_for_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: str | None
    ) -> None:
        """And repeated where Slack doesn't let the bot look."""
        if refusal == "ratelimited":
            monkeypatch.setattr("bot.service.requests.discussion.READ_SECONDS", 0.01)
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

    @pytest.mark.parametrize("method", ["chat.update", "chat.postMessage"])
    async def test_pages_of_a_proxy_for_a_minute_lose_nothing(self, tmp_path: Path, method: str) -> None:
        """A server error with an HTML page is treated like any other."""
        async with at_work(tmp_path, ScriptedCouncil(held={CHAIRMAN})) as place:
            card = await begun(place)
            fault = place.slack.fail(method, status=503, html=True, seconds=60)
            await ended(place)
            assert fault.hits > 1
            assert ANSWER in blocks_text(card.blocks)
            assert told(place).thread_ts == card.ts
            assert (await place.run(card)).delivery == "shown"

    async def test_an_edit_that_fails_for_long_repeats_no_part(self, tmp_path: Path) -> None:
        """The thread is posted independently."""
        async with at_work(tmp_path) as place:
            place.slack.fail("chat.update", status=500, seconds=300)
            place.slack.fail("chat.postMessage", delay=0.02, times=ALWAYS)
            card = await place.ask()
            parts = Counter(
                f"{each.text}{each.blocks}" for each in place.slack.thread(place.general, card.ts)
            )
            assert set(parts.values()) == {1}
            assert len(parts) == 1 + len(FOUR)
            assert (await place.run(card)).delivery == "shown"

    async def test_a_rate_limit_is_waited_out_by_all(self, tmp_path: Path) -> None:
        """The whole lane waits, without spending attempts."""
        async with at_work(tmp_path) as place:
            place.slack.fail("chat.postMessage", retry_after=30, times=20)
            began = place.slack.clock()
            card = await place.ask()
            assert place.slack.clock() - began >= 20 * 30
            assert told(place).thread_ts == card.ts


async def test_a_burst_stays_within_one_post_a_second_and_channel(tmp_path: Path) -> None:
    """Every answer is delivered and mentioned, once."""
    async with at_work(tmp_path) as place:
        place.slack.enforce_rate_limits()
        for number in range(12):
            await place.slack.slash(place.general, place.ada, "/council", f"Question {number}?")
        await place.dispatcher.tasks.settled()
        cards = place.cards(place.general)
        assert len(cards) == 12
        assert all(ANSWER in blocks_text(card.blocks) for card in cards)
        assert Counter(each.thread_ts for each in place.slack.told(place.ada)) == dict.fromkeys(
            (card.ts for card in cards), 1
        )
        assert place.slack.busiest_minute("chat.update") < TIERS[3]


class TestLadder:
    """Where the answer goes if its place is lost."""

    async def test_after_a_deleted_thread_the_card_is_posted_again(self, tmp_path: Path) -> None:
        """In the channel, with the mention above the answer and the rest below it."""
        async with at_work(tmp_path, ScriptedCouncil(held={CHAIRMAN})) as place:
            card = await begun(place)
            place.slack.delete_thread(card)
            await ended(place)
            [again] = place.cards(place.general)
            assert told(place) is again
            assert again.text.startswith(f"<@{place.ada.id}> The council has answered.\n")
            assert ANSWER in blocks_text(again.blocks)
            assert labels(again) == FINISHED
            run = await place.run(again)
            assert (run.origin.message, run.delivery) == (again.ts, "shown")

    @pytest.mark.parametrize("seconds", [1.5, 4.5])
    async def test_a_channel_that_is_lost_for_a_moment_is_not_gone(
        self, tmp_path: Path, seconds: float
    ) -> None:
        """Only the second refusal is believed."""
        async with at_work(tmp_path, ScriptedCouncil(held={CHAIRMAN})) as place:
            card = await begun(place)
            for method in ("chat.update", "chat.postMessage"):
                place.slack.fail(method, "channel_not_found", seconds=seconds)
            await ended(place)
            assert ANSWER in blocks_text(card.blocks)
            assert told(place).thread_ts == card.ts

    async def test_after_a_lost_channel_a_direct_message_is_sent(self, tmp_path: Path) -> None:
        """It has all of a long answer, since the asker is still in the channel."""
        paragraphs = [f"Paragraph {number}: {'word ' * 60}" for number in range(100)]
        council = ScriptedCouncil(script={"stage3": "\n\n".join(paragraphs)}, held={CHAIRMAN})
        async with at_work(tmp_path, council) as place:
            await begun(place)
            place.slack.kick_bot(place.general)
            place.slack.team.scopes -= {"chat:write.public"}
            for method in ("chat.update", "chat.postMessage"):
                place.slack.fail(method, "channel_not_found", channel=place.general.id, times=ALWAYS)
            await ended(place)
            direct = place.slack.world.open_im(place.slack.team, place.ada.id)
            [first] = place.cards(direct)
            assert told(place) is first
            shown = [first, *place.slack.thread(direct, first.ts)]
            said = "\n".join(blocks_text(each.blocks) for each in shown)
            assert all(f"Paragraph {number}:" in said for number in range(100))
            assert (await run_of(place)).delivery == "shown"

    @pytest.mark.parametrize("why", ["left", "unknown", "direct"])
    async def test_an_answer_goes_to_nobody_who_may_not_see_it(self, tmp_path: Path, why: str) -> None:
        """It stays untold if the asker has left, if the bot can't know, and if it was private."""
        without = frozenset({"channels:read"}) if why == "unknown" else frozenset[str]()
        async with at_work(tmp_path, ScriptedCouncil(held={CHAIRMAN}), without=without) as place:
            private = "--private " if why == "direct" else ""
            await place.slack.slash(place.general, place.ada, "/council", f"{private}Shard?")
            await place.council.until_called(CHAIRMAN)
            direct = place.slack.world.open_im(place.slack.team, place.ada.id)
            where = direct if private else place.general
            before = len(await place.slack.until(lambda: place.cards(where)))
            for method in ("chat.update", "chat.postMessage"):
                place.slack.fail(method, "channel_not_found", channel=where.id, times=ALWAYS)
            if why == "left":
                place.general.members.discard(place.ada.id)
            await ended(place)
            assert place.slack.told(place.ada) == []
            assert len(place.cards(where)) == before
            assert place.cards(place.general if private else direct) == []
            assert (await run_of(place)).delivery == "untold"

    async def test_a_card_that_slack_cannot_take_is_posted_again(self, tmp_path: Path) -> None:
        """In the channel, with the mention."""
        async with at_work(tmp_path, ScriptedCouncil(held={CHAIRMAN})) as place:
            await begun(place)
            place.slack.fail("chat.update", "invalid_blocks", times=ALWAYS)
            await ended(place)
            assert ANSWER in blocks_text(told(place).blocks)


class TestEdits:
    """How cards are kept up to date."""

    async def test_a_hanging_edit_stops_nobody_else(self, tmp_path: Path) -> None:
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
