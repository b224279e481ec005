"""Runs that one process begins and another finishes: nothing is asked or posted twice."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.errors import Refusal, Unreachable
from bot.service.accept import utc_now
from bot.service.delivery.chat import Part
from bot.service.delivery.posts import Mention, Sent
from council import session
from council.calls import Steps
from council.document.conversation import AssistantMessage, Source
from storage.errors import DamageError, DatabaseError
from storage.journal.rows import RunRow
from tests.bot.pressing import press
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import TEAM, Office, click, office
from tests.council.scripted import FOUR, ScriptedCouncil, failure

CHAIR = "stage3.1:chair/man:chairman"


async def interrupted(
    folder: Path, council: ScriptedCouncil, venue: RecordingVenue, *held: str
) -> RunRow:
    """Ask, and let the process end while these calls are in flight."""
    council.held |= {*held}
    async with office(folder, council) as place:
        run = await place.begin(venue)
        await council.until_called(*held)
    return run


async def resumed(place: Office, venue: RecordingVenue) -> RunRow:
    """Start again, and let the interrupted run end."""
    [run] = await place.resume(venue)
    return await place.row(run)


def calls(*councils: ScriptedCouncil) -> Sequence[str]:
    """Name the steps that were called, in every process."""
    return sorted(call.step for council in councils for call in council.calls)


async def test_calls_go_first_and_then_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs that are resumed together, no card is edited before each has made its next call."""
    first, second = ScriptedCouncil(), ScriptedCouncil()
    first.held.add(CHAIR)
    picked_up: list[frozenset[str]] = []
    slow = asyncio.Event()

    class Watched(RecordingVenue):
        async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
            picked_up.append(posted)
            return await super().pick_up(posted, found)

    async with office(tmp_path, first) as place:
        for key in ("1", "2"):
            await place.begin(RecordingVenue(), key)
        while calls(first).count(CHAIR) < 2:
            await asyncio.sleep(0.001)
    async with office(tmp_path, second) as place:
        steps = place.library.journal.steps

        async def slowly(run: RunRow) -> Steps:
            if run.id == runs[1].id:
                await slow.wait()
            return await steps(run)

        monkeypatch.setattr(place.library.journal, "steps", slowly)
        runs = await place.dispatcher.tasks.undelivered("slack")
        await place.dispatcher.tasks.resume(runs, lambda _: Watched())
        await second.until_called(CHAIR)
        for _ in range(50):
            await asyncio.sleep(0)
        assert picked_up == []
        slow.set()
        await place.dispatcher.tasks.settled()
    assert len(picked_up) == 2
    assert calls(second) == [CHAIR, CHAIR]


async def test_a_failed_member_is_not_asked_again(tmp_path: Path) -> None:
    """A restart doesn't change that its failure was final."""
    first = ScriptedCouncil(script={f"stage1.1:{FOUR[3]}": failure("filtered")})
    second, venue = ScriptedCouncil(), RecordingVenue()
    await interrupted(tmp_path, first, venue, f"stage2.1:{FOUR[0]}")
    async with office(tmp_path, second) as place:
        await resumed(place, venue)
    assert f"stage1.1:{FOUR[3]}" not in calls(second)
    assert "filter" in venue.texts[-1]


async def test_a_second_press_ends_the_run_after_a_restart_too(tmp_path: Path) -> None:
    """No call is made any more; the card says that it was stopped."""
    first, second, venue = ScriptedCouncil(), ScriptedCouncil(), RecordingVenue()
    run = await interrupted(tmp_path, first, venue, f"stage1.1:{FOUR[0]}")
    async with office(tmp_path, second) as place:
        for _ in range(2):
            await place.library.journal.press_stop(run.id)
        ended = await resumed(place, venue)
    assert calls(second) == []
    assert ended.status == "stopped"


async def test_a_failure_that_was_not_shown_is_shown_without_a_call(tmp_path: Path) -> None:
    """The journal keeps why, with each member's cause."""
    council = ScriptedCouncil(script={"stage1": failure("rate_limited")})
    stuck = RecordingVenue(refuse={"edit_card": Unreachable("Slack can't be reached")})
    async with office(tmp_path, council) as place:
        run = await place.begin(stuck)
        while not (row := await place.library.journal.get(run.id)) or not row.is_over:
            await asyncio.sleep(0)
    second, venue = ScriptedCouncil(), RecordingVenue(cards=stuck.cards)
    async with office(tmp_path, second) as place:
        ended = await resumed(place, venue)
    assert (ended.status, ended.delivery) == ("failed", "shown")
    assert calls(second) == []
    assert "No member of the council answered." in venue.texts[-1]
    assert "too busy" in venue.texts[-1]


async def test_a_run_that_is_retried_before_it_is_resumed_is_shown_once(tmp_path: Path) -> None:
    """Somebody presses Retry between the program's start and the resuming of what it found."""
    council = ScriptedCouncil(script={"stage1": failure("rate_limited")})
    venue = RecordingVenue(refuse={"mention": Unreachable("Slack can't be reached")})
    async with office(tmp_path, council) as place:
        await place.see(venue)
    venue.refuse.clear()
    second = ScriptedCouncil(held={CHAIR})
    async with office(tmp_path, second) as place:
        [run] = await place.dispatcher.tasks.undelivered("slack")
        await press(place.dispatcher, "retry", click(run), lambda _: venue)
        await second.until_called(CHAIR)
        await place.dispatcher.tasks.resume([run], lambda _: venue)
        second.release(CHAIR)
        await place.dispatcher.tasks.settled()
        ended = await place.row(run)
    assert (ended.status, ended.delivery) == ("answered", "shown")
    assert len(calls(second)) == len(set(calls(second)))
    assert len(venue.mentions) == 1


async def test_a_run_of_another_workspace_is_left_alone(tmp_path: Path) -> None:
    """Another bot's token shows it."""
    first, second = ScriptedCouncil(), ScriptedCouncil()
    await interrupted(tmp_path, first, RecordingVenue(), CHAIR)
    async with office(tmp_path, second) as place:
        runs = await place.dispatcher.tasks.undelivered("slack")
        await place.dispatcher.tasks.resume(runs, lambda _: None)
        assert await place.dispatcher.tasks.undelivered("slack") == runs


async def test_too_old_a_run_whose_answer_was_written_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between its document and the record of its end, it is shown, not closed."""
    council, venue = ScriptedCouncil(), RecordingVenue()

    async def lose(*_: object) -> None:
        """The process is killed first."""

    async with office(tmp_path, council) as place:
        for record in ("finish", "deliver"):
            monkeypatch.setattr(place.library.journal, record, lose)
        await place.begin(venue)
        await place.dispatcher.tasks.settled()
    paid, answered_buttons = len(calls(council)), [button.action for button in venue.cards[-1].buttons]
    async with office(tmp_path, council, resume_within=0, now=utc_now) as place:
        again = await resumed(place, venue)
    assert (again.status, again.delivery) == ("answered", "shown")
    assert "The council's answer" in venue.texts[-1]
    assert venue.mentions == ["The council has answered."]
    assert [button.action for button in venue.cards[-1].buttons] == answered_buttons
    assert len(calls(council)) == paid


async def test_a_locked_database_keeps_no_run_from_being_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run too old to resume is shown as closed, and recorded so as soon as that can be written."""
    first, second, venue = ScriptedCouncil(), ScriptedCouncil(), RecordingVenue()
    await interrupted(tmp_path, first, venue, CHAIR)
    async with office(tmp_path, second, resume_within=0, now=utc_now) as place:
        finish, refused = place.library.journal.finish, 0

        async def refuse(*given: Any) -> None:
            nonlocal refused
            refused += 1
            if refused == 1:
                raise DatabaseError("council.db is locked")
            await finish(*given)

        monkeypatch.setattr(place.library.journal, "finish", refuse)
        run = await resumed(place, venue)
    assert (run.status, run.delivery) == ("failed", "shown")
    assert "Press Continue" in venue.texts[-1]


async def test_a_retry_asks_only_who_failed_and_what_depends_on_it(tmp_path: Path) -> None:
    """After a review failed and Stop ended the rest, paid answers are used again."""
    council = ScriptedCouncil(
        script={f"stage2.1:{FOUR[0]}": failure()},
        held={*(f"stage2.1:{name}" for name in FOUR[1:]), "stage3.1:chair/man:chairman"},
    )
    venue = RecordingVenue()
    async with office(tmp_path, council) as place:
        run = await place.begin(venue)
        await council.until_called(*(f"stage2.1:{name}" for name in FOUR))
        for _ in range(2):
            await press(place.dispatcher, "stop", click(run))
        await place.dispatcher.tasks.settled()
        assert "Press Continue" in venue.texts[-1]
        council.held.clear()
        council.script.clear()
        council.calls.clear()
        await place.retry(run, venue)
        ended = await place.row(run)
    assert (ended.status, ended.delivery, ended.retries) == ("answered", "shown", 1)
    assert not any(call.step.startswith("stage1") for call in council.calls)
    assert f"stage2.1:{FOUR[0]}" in calls(council)
    assert "The council's answer" in venue.texts[-1]


async def test_a_retried_member_of_stage_1_is_reviewed(tmp_path: Path) -> None:
    """Reviews of fewer answers are requested again."""
    stage1 = {f"stage1.1:{name}": failure("unavailable") for name in FOUR}
    council, venue = ScriptedCouncil(script={**stage1}), RecordingVenue()
    async with office(tmp_path, council) as place:
        run = await place.see(venue)
        council.script.clear()
        council.calls.clear()
        await place.retry(run, venue)
    whole = ScriptedCouncil()
    await whole.run()
    assert calls(council) == calls(whole)


async def test_two_presses_of_retry_run_once(tmp_path: Path) -> None:
    """The second is told that the run is in progress."""
    council, venue = ScriptedCouncil(script={"stage1": failure("unavailable")}), RecordingVenue()
    async with office(tmp_path, council) as place:
        run = await place.see(venue)
        council.script.clear()
        council.calls.clear()
        said = await asyncio.gather(
            *(press(place.dispatcher, "retry", click(run), lambda _: venue) for _ in range(2)),
            return_exceptions=True,
        )
        await place.dispatcher.tasks.settled()
    assert sorted(type(one).__name__ for one in said) == ["Refusal", "str"]
    assert len(calls(council)) == len(set(calls(council)))


async def test_an_untold_run_is_not_told_again_while_it_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reopened under a card that shows how it failed, it would count as shown and never run."""
    due = asyncio.Event()

    async def sleep(seconds: float) -> None:
        del seconds
        await due.wait()

    council = ScriptedCouncil(script={"stage1": failure("rate_limited")})
    venue = RecordingVenue(refuse={"mention": Unreachable("Slack can't be reached")})
    async with office(tmp_path, council, sleep=sleep) as place, place.showing_later(venue):
        run = await place.see(venue)
        reopen = place.library.journal.reopen
        venue.refuse.clear()
        council.script.clear()

        async def late(*given: Any, **named: Any) -> RunRow | None:
            venue.gate.clear()
            due.set()  # it would be shown again just now
            await asyncio.sleep(0.05)
            reopened = await reopen(*given, **named)
            venue.gate.set()
            return reopened

        monkeypatch.setattr(place.library.journal, "reopen", late)
        said = await press(place.dispatcher, "retry", click(run), lambda _: venue)
        await place.dispatcher.tasks.settled()
        ended = await place.library.journal.get(run.id)
    assert "Resuming" in said
    assert ended is not None
    assert (ended.status, ended.delivery) == ("answered", "shown")


async def test_retry_before_all_is_shown_changes_nothing(tmp_path: Path) -> None:
    """Reopened there, the run would be marked as shown to its end, and no start would continue it."""
    mentioning = asyncio.Event()

    class SlowMention(RecordingVenue):
        async def mention(
            self, mention: Mention, digest: Part | None = None, *, link: bool = True
        ) -> None:
            await mentioning.wait()
            await super().mention(mention, digest, link=link)

    council, venue = ScriptedCouncil(script={"stage1": failure("unavailable")}), SlowMention()
    async with office(tmp_path, council) as place:
        run = await place.begin(venue)
        while not any(button.action == "retry" for card in venue.cards for button in card.buttons):
            await asyncio.sleep(0.001)
        with pytest.raises(Refusal, match="already in progress"):
            await press(place.dispatcher, "retry", click(run), lambda _: venue)
        mentioning.set()
        await place.dispatcher.tasks.settled()
        ended = await place.row(run)
    assert (ended.status, ended.delivery) == ("failed", "shown")


@pytest.mark.parametrize("answers", [True, False])
async def test_a_run_is_closed_before_it_counts_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    """Even if its end can't be written at first: its asker is told meanwhile."""
    council = ScriptedCouncil(script={} if answers else {"stage1": failure("rate_limited")})
    venue = RecordingVenue()
    async with office(tmp_path, council) as place:
        database = place.library.database
        write = database.write
        refused: list[str] = []

        async def refuse(*statements: tuple[str, object], by: float | None = None) -> None:
            if "finished_at" in statements[0][0] and len(refused) < 2:
                refused.append(venue.texts[-1])
                raise DatabaseError("council.db is locked")
            await write(*statements, by=by)  # pyright: ignore[reportArgumentType] - passed on as they are

        monkeypatch.setattr(database, "write", refuse)
        run = await place.see(venue)
        ended = await place.row(run)
    assert (ended.status, ended.delivery) == ("answered" if answers else "failed", "shown")
    assert (ended.error is None) is answers
    assert refused[0] != refused[1] == venue.texts[-1]
    assert len(venue.mentions) == 1


async def test_stop_throws_no_reply_away_that_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads that the run is paused and presses Stop gets an answer from what was paid for."""
    monkeypatch.setattr(session, "WRITE_SECONDS", 0.01)
    council, venue = ScriptedCouncil(), RecordingVenue()
    async with office(tmp_path, council) as place:
        database = place.library.database
        write = database.write
        full = True

        async def refuse(*statements: tuple[str, object], by: float | None = None) -> None:
            if full and "INTO steps" in statements[0][0]:
                raise DatabaseError("council.db: the disk is full")
            await write(*statements, by=by)  # pyright: ignore[reportArgumentType] - passed on as they are

        monkeypatch.setattr(database, "write", refuse)
        run = await place.begin(venue)
        while not any("Paused: the council's data" in text for text in venue.texts):
            await asyncio.sleep(0.001)
        await press(place.dispatcher, "stop", click(run))
        await asyncio.sleep(0.02)
        full = False
        await place.dispatcher.tasks.settled()
        document = await place.library.store.load(run.conversation_id)
    assert isinstance(answer := document.messages[1], AssistantMessage)
    assert len(answer.stage1) == len(FOUR)
    assert answer.stage3.stopped_early
    assert calls(council) == sorted([*(f"stage1.1:{name}" for name in FOUR), CHAIR])


async def test_runs_of_one_conversation_continue_in_order(tmp_path: Path) -> None:
    """A follow-up that waited has the first question's answer as its history."""
    first, second, venue = ScriptedCouncil(), ScriptedCouncil(), RecordingVenue()
    thread = Source(platform="slack", workspace="T1", channel="C1", thread="card-1", user="U1")
    first.held |= {f"stage1.1:{name}" for name in FOUR}
    async with office(tmp_path, first) as place:
        run = await place.begin(venue)
        await first.until_called(*first.held)
        follow_up = await place.ask("2", "And in two years?", thread)
        assert follow_up is not None
        assert follow_up.conversation_id == run.conversation_id
        place.dispatcher.tasks.begin(follow_up, RecordingVenue())
    async with office(tmp_path, second) as place:
        runs = await place.dispatcher.tasks.undelivered("slack")
        assert [each.id for each in runs] == [run.id, follow_up.id]
        await place.dispatcher.tasks.resume(runs, lambda _: RecordingVenue())
        await place.dispatcher.tasks.settled()
        document = await place.library.store.load(run.conversation_id)
        later = await place.library.journal.get(follow_up.id)
    assert [message.role for message in document.messages] == ["user", "assistant"] * 2
    assert later is not None
    assert [turn.question for turn in later.brief.history.turns] == [run.brief.question]


async def test_the_clock_may_be_set_back(tmp_path: Path) -> None:
    """A run from the future is not too old, and its time isn't negative."""
    first, second, venue = ScriptedCouncil(), ScriptedCouncil(), RecordingVenue()
    await interrupted(tmp_path, first, venue, CHAIR)
    async with office(tmp_path, second) as place:
        [run] = await place.dispatcher.tasks.undelivered("slack")
        brief = run.brief.model_copy(update={"started_at": "2999-01-01T00:00:00.000Z"})
        future = replace(run, created_at="2999-01-01T00:00:00.000Z", brief=brief)
        await place.dispatcher.tasks.resume([future], lambda _: venue)
        await place.dispatcher.tasks.settled()
    assert "The council's answer" in venue.texts[-1]
    assert TEAM.user == run.origin.user


async def test_a_run_continues_without_a_damaged_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was paid for becomes an answer in any case: its document needs no journal."""
    council, venue = ScriptedCouncil(), RecordingVenue()
    async with office(tmp_path, council) as place:
        run = await place.ask()
        assert run is not None

        async def refuse(*_: object) -> None:
            raise DamageError("council.db is damaged")

        monkeypatch.setattr(place.library.database, "write", refuse)
        place.dispatcher.tasks.begin(run, venue)
        await place.dispatcher.tasks.settled()
        document = await place.library.store.load(run.conversation_id)
    assert "The council's answer" in venue.texts[-1]
    assert len(document.messages) == 2
    assert len(calls(council)) == len(set(calls(council)))
