"""The asker is told once, in the first place that is available, however long that takes."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.errors import Gone, Malformed, NotAllowed, Revoked, Unreachable, VenueError
from bot.render.markdown import render
from bot.service.delivery.chat import Card, Part
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import Mention, Sent
from bot.service.turns import Queue
from storage.journal.rows import MentionState
from tests.bot.pressing import press
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import WHOLE_THREAD, click, office
from tests.council.scripted import FOUR, Clock, ScriptedCouncil

DONE = "The council has answered."
GONE, FORBIDDEN = Gone("the message is gone"), NotAllowed("it may not post here")
REVOKED = Revoked("the token was revoked")
CHAIR = "stage3.1:chair/man:chairman"


async def told(folder: Path, venue: RecordingVenue, **options: object) -> str | None:
    """Ask, show, and return how the run was delivered."""
    async with office(folder, ScriptedCouncil(), **options) as place:  # pyright: ignore[reportArgumentType] - named per test
        run = await place.see(venue)
        found = await place.row(run)
        return found.delivery


async def test_a_card_that_moved_is_on_record_until_there_is_another(tmp_path: Path) -> None:
    """A new card in the channel takes the place of both."""
    venue = RecordingVenue(moves=True)
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.see(venue)
        found = await place.row(run)
        assert (found.origin.message, found.origin.card) == ("card-1", "card-3")

    class Lost(RecordingVenue):
        async def edit_card(
            self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
        ) -> bool:
            if urgency() is Urgency.ANSWER:
                raise GONE
            return await super().edit_card(newest, urgency, moved)

    lost = Lost(moves=True, refuse={"open_thread": GONE})
    async with office(tmp_path / "other", ScriptedCouncil()) as place:
        run = await place.see(lost)
        found = await place.row(run)
        assert (found.origin.message, found.origin.card) == ("card-2", None)


async def test_a_card_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    """Only its mention is refused, in the thread and beside the card: the asker is told directly."""
    venue = RecordingVenue(refuse={"mention": FORBIDDEN})
    assert await told(tmp_path, venue) == "shown"
    assert venue.reposts == []
    assert [said for said, _ in venue.directs] == [DONE]
    assert [message.key for message in venue.posted if message.key == "answer"] == []


async def test_a_card_is_replaced_once(tmp_path: Path) -> None:
    """Whoever deletes the new one, too, doesn't want it there; no later attempt posts another."""

    class Deleted(RecordingVenue):
        async def repost(self, card: Card, mention: Mention, placed: Sent) -> bool:
            self.reposts.append((mention.text, card))
            await placed("card-2")
            raise FORBIDDEN  # it is there, and the mention below it is refused

    venue = Deleted(refuse={"edit_card": GONE, "open_thread": GONE, "direct": FORBIDDEN})
    assert await told(tmp_path, venue) == "untold"
    async with office(tmp_path, ScriptedCouncil()) as place:
        await place.resume(venue)
    assert len(venue.reposts) == 1


async def test_a_card_of_a_bot_without_access_is_not_replaced(tmp_path: Path) -> None:
    """It is still there, and is edited once access is back."""
    venue = RecordingVenue(refuse={"edit_card": REVOKED, "open_thread": REVOKED})
    assert await told(tmp_path, venue) == "untold"
    assert (venue.reposts, venue.directs, venue.mentions) == ([], [], [])


EVERYWHERE = ("edit_card", "open_thread", "repost", "direct")


@pytest.mark.parametrize("refusal", [GONE, FORBIDDEN, REVOKED, Unreachable("Slack can't be reached")])
async def test_an_answer_refused_everywhere_is_untold(tmp_path: Path, refusal: VenueError) -> None:
    """It is kept, and recorded as untold."""
    venue = RecordingVenue(refuse=dict.fromkeys(EVERYWHERE, refusal))
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.see(venue)
        found = await place.row(run)
        assert (found.status, found.delivery) == ("answered", "untold")
        assert (await place.library.store.load(run.conversation_id)).messages


async def test_an_untold_answer_is_told_while_the_program_runs(tmp_path: Path) -> None:
    """It waits longer and longer; when the platform takes it, the asker is told once."""
    venue = RecordingVenue(refuse=dict.fromkeys(EVERYWHERE, GONE))
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 6:
            venue.refuse.clear()

    async with office(tmp_path, ScriptedCouncil(), sleep=sleep) as place, place.showing_later(venue):
        await place.see(venue)
        while await place.library.journal.work.keys("deliver", platform="slack"):
            await asyncio.sleep(0.001)
    assert waits == [60, 60, 120, 240, 480, 900]
    assert venue.mentions == [DONE]


async def test_an_answer_untold_for_seven_days_is_given_up(tmp_path: Path) -> None:
    """The channel's history keeps it; nothing is left to do."""
    venue, now = RecordingVenue(refuse=dict.fromkeys(EVERYWHERE, GONE)), Clock()
    council = ScriptedCouncil()

    async def sleep(_: float) -> None:
        now.moment += timedelta(days=3)

    async with office(tmp_path, council, sleep=sleep, calendar=now) as place, place.showing_later(venue):
        await place.see(venue)
        while await place.library.journal.work.keys("deliver", platform="slack"):
            await asyncio.sleep(0.001)
        assert place.dispatcher.tasks.run_counts().undelivered == 0
    assert (now.moment - Clock().moment).days == 9


async def test_a_forgotten_answer_is_no_longer_untold(tmp_path: Path) -> None:
    """Nobody is told of it, and nobody has to be: the count goes down."""
    venue = RecordingVenue(refuse=dict.fromkeys(EVERYWHERE, GONE))
    due = asyncio.Event()

    async def sleep(seconds: float) -> None:
        del seconds
        await due.wait()

    async with office(tmp_path, ScriptedCouncil(), sleep=sleep) as place, place.showing_later(venue):
        run = await place.see(venue)
        assert place.dispatcher.tasks.run_counts().undelivered == 1
        forgetting = place.library.forgetting
        own = await forgetting.select.user(run.origin.platform, str(run.origin.user))
        await forgetting.forget(own, by="ada")
        due.set()
        async with asyncio.timeout(5):
            while place.dispatcher.tasks.run_counts().undelivered:
                await asyncio.sleep(0.001)


async def test_an_untold_answer_is_told_at_the_next_start(tmp_path: Path) -> None:
    """However old the run is by then, up to seven days; no model is asked again."""
    venue = RecordingVenue(refuse=dict.fromkeys(EVERYWHERE, GONE))
    await told(tmp_path, venue)
    venue.refuse.clear()
    council = ScriptedCouncil()
    async with office(tmp_path, council, resume_within=0) as place:
        await place.resume(venue)
        assert await place.dispatcher.tasks.undelivered("slack") == []
    assert venue.mentions == [DONE]
    assert council.calls == []


async def test_an_asker_who_was_told_stays_told(tmp_path: Path) -> None:
    """Whatever is refused when the rest of the run is shown again."""
    venue = RecordingVenue(refuse={"attach": REVOKED, "post": FORBIDDEN})
    assert await told(tmp_path, venue) is None
    venue.refuse = dict.fromkeys((*EVERYWHERE, "attach", "post"), REVOKED)
    async with office(tmp_path, ScriptedCouncil()) as place:
        [run] = await place.resume(venue)
        found = await place.row(run)
    assert found.delivery is None
    assert venue.mentions == [DONE]


async def test_what_may_have_arrived_is_on_record_at_the_next_start(tmp_path: Path) -> None:
    """A platform that can't recognize a repeated mention continues from that record."""

    class Lossy(RecordingVenue):
        async def mention(
            self, mention: Mention, digest: Part | None = None, *, link: bool = True
        ) -> None:
            del digest, link
            await mention.record(MentionState(lost=1))
            raise Unreachable("Slack can't be reached", is_lost=True)

    lossy = Lossy()
    assert await told(tmp_path, lossy) == "untold"
    venue = RecordingVenue(cards=lossy.cards)
    async with office(tmp_path, ScriptedCouncil()) as place:
        await place.resume(venue)
    assert [telling.lost for telling in venue.tellings] == [1]


async def test_a_forgotten_run_is_told_nowhere(tmp_path: Path) -> None:
    """Its answer doesn't turn up in a new card or a direct message."""
    council = ScriptedCouncil(held={CHAIR})
    venue = RecordingVenue(refuse={"edit_card": GONE, "open_thread": GONE})
    async with office(tmp_path, council) as place:
        run = await place.begin(venue)
        await council.until_called(CHAIR)
        await place.library.database.write(("DELETE FROM runs WHERE id = ?", (run.id,)))
        council.release(CHAIR)
        await place.dispatcher.tasks.settled()
    assert (venue.reposts, venue.directs, venue.mentions) == ([], [], [])


async def test_forgetting_amid_a_thread_ends_it_without_an_error(tmp_path: Path) -> None:
    """What isn't posted yet stays unposted, and nothing is logged as if the database had failed."""

    class Forgetful(RecordingVenue):
        async def post(self, part: Part, key: str, sent: Sent, urgency: Urgency = Urgency.THREAD) -> str:
            if len(self.posted) == 1:
                forgetting = place.library.forgetting
                await forgetting.forget(await forgetting.select.user("slack", "U1"), by="U1")
            return await super().post(part, key, sent, urgency)

    venue = Forgetful()
    async with office(tmp_path, ScriptedCouncil()) as place:
        with capture_logs() as logs:
            await place.see(venue)
    assert [entry for entry in logs if entry["log_level"] in ("error", "critical")] == []
    assert len(venue.posted) == 2


async def test_a_malformed_card_becomes_a_plain_one(tmp_path: Path) -> None:
    """The platform can't take the answer as it is: the card says where to find it."""

    class Picky(RecordingVenue):
        async def edit_card(
            self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
        ) -> bool:
            if "The council's answer" in render(newest().message):
                raise Malformed("Slack can't show this")
            return await super().edit_card(newest, urgency, moved)

    venue = Picky()
    assert await told(tmp_path, venue) == "shown"
    assert "The transcript has it." in venue.texts[-1]
    assert venue.mentions == [DONE]


async def test_a_malformed_part_is_replaced_by_a_line(tmp_path: Path) -> None:
    """The rest of the thread is posted, and the asker mentioned, once."""

    class Picky(RecordingVenue):
        async def mention(
            self, mention: Mention, digest: Part | None = None, *, link: bool = True
        ) -> None:
            if digest:
                raise Malformed("Slack can't show this")
            await super().mention(mention, digest, link=link)

    venue = Picky()
    assert await told(tmp_path, venue) == "shown"
    assert "This part can't be shown here. The transcript has it." in render(venue.posted[0])
    assert len(venue.posted) == WHOLE_THREAD
    assert venue.mentions == [DONE]


async def test_a_thread_that_crashes_does_not_keep_the_asker_waiting(tmp_path: Path) -> None:
    """After a bug in the thread, the asker is mentioned, and the thread is tried again later."""
    venue = RecordingVenue(refuse={"post": RuntimeError("a bug")})
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.see(venue)
        found = await place.row(run)
        assert found.delivery is None
    assert venue.mentions == [DONE]


async def test_a_run_that_crashes_outside_its_stages_ends_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the queue or the run raises, the card gets an end."""
    venue = RecordingVenue()
    async with office(tmp_path, ScriptedCouncil()) as place:

        def broken(*_: object) -> object:
            raise RuntimeError("a bug")

        monkeypatch.setattr(Queue, "turn", broken)
        run = await place.see(venue)
        found = await place.row(run)
        assert (found.status, found.delivery) == ("failed", "shown")
    assert run.id in venue.texts[-1]
    assert venue.mentions == ["The council could not answer; the card says why."]


async def test_stop_reaches_a_run_that_is_not_picked_up_yet(tmp_path: Path) -> None:
    """Just after a restart, the button works before the run continues."""
    first, second, venue = ScriptedCouncil(), ScriptedCouncil(), RecordingVenue()
    first.held |= {f"stage1.1:{name}" for name in FOUR}
    async with office(tmp_path, first) as place:
        run = await place.begin(venue)
        await first.until_called(f"stage1.1:{FOUR[0]}")
    async with office(tmp_path, second) as place:
        runs = await place.dispatcher.tasks.undelivered("slack")
        said = await press(place.dispatcher, "stop", click(run))
        assert said.startswith("Stopping.")
        await place.dispatcher.tasks.resume(runs, lambda _: venue)
        await place.dispatcher.tasks.settled()
    assert second.calls == []
