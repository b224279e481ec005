"""The dispatcher and the presenter: a run from request to mention, and every refusal."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.app import Library
from bot.errors import Malformed, NotAllowed, Refusal, Unreachable, UsageError, VenueError
from bot.render.markdown import render
from bot.service import presenter
from bot.service.accept import Question
from bot.service.access import AT_TERMINAL, Admins
from bot.service.channels import Operator
from bot.service.commands import RunOptions
from bot.service.costs import Prices, unknown
from bot.service.delivery.chat import Button, Card, File, Part
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import Mention, Sent
from bot.service.dispatcher import Dispatcher
from bot.service.limits import Durability, Limits
from bot.service.run_tasks import RunTasks
from bot.service.runs import Runs
from bot.service.waits import Acknowledgements
from council.brief import Brief, Discussion
from council.document.conversation import Conversation, Source
from council.models.costs import Catalog
from storage.errors import DocumentError
from storage.journal.journal import Journal
from storage.journal.rows import RunRow
from storage.scope import Scope
from tests.bot.dispatching import runs_of
from tests.bot.pressing import Click, press
from tests.bot.service.recording_venue import RecordingVenue
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile
from tests.council.worth.test_depth import AGREED
from tests.library import open_library

TEAM = Source(platform="slack", workspace="T1", channel="C1", user="U1")


@dataclass
class Office:
    """A dispatcher over real storage, its models played by a script."""

    dispatcher: Dispatcher
    council: ScriptedCouncil
    library: Library
    runs: Runs

    async def ask(
        self, key: str = "1", text: str = "Shard or scale up?", source: Source = TEAM, **more: object
    ) -> RunRow | None:
        question = Question(
            standing=AT_TERMINAL,
            text=text,
            source=source,
            entry_key=key,
            asker="Ada",
            **more,  # pyright: ignore[reportArgumentType] - named per test
        )
        return await self.dispatcher.accept(question)

    async def begin(self, venue: Any, key: str = "1", **more: Any) -> RunRow:
        """Ask a question and begin to show its run."""
        run = await self.ask(key, **more)
        assert run is not None
        self.dispatcher.tasks.begin(run, venue)
        return run

    async def see(self, venue: Any, key: str = "1", **more: Any) -> RunRow:
        """Ask a question and show its run to the end."""
        run = await self.begin(venue, key, **more)
        await self.dispatcher.tasks.settled()
        return run

    async def show(self, run: RunRow) -> None:
        """Show a run to the end, to nobody in particular."""
        self.dispatcher.tasks.begin(run, RecordingVenue())
        await self.dispatcher.tasks.settled()

    async def resume(self, venue: RecordingVenue) -> list[RunRow]:
        runs = await self.dispatcher.tasks.undelivered("slack")
        await self.dispatcher.tasks.resume(runs, lambda _: venue)
        await self.dispatcher.tasks.settled()
        return [*runs]

    async def retry(self, run: RunRow, venue: RecordingVenue) -> None:
        await press(self.dispatcher, "retry", click(run), lambda _: venue)
        await self.dispatcher.tasks.settled()

    async def row(self, run: RunRow) -> RunRow:
        found = await self.library.journal.get(run.id)
        assert found is not None
        return found

    @asynccontextmanager
    async def showing_later(self, venue: RecordingVenue) -> AsyncGenerator[None]:
        """Show what couldn't be shown as soon as it is due."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bot.service.work.LOOK_SECONDS", 0.001)
            tasks = self.dispatcher.tasks
            delivering = tasks.delivering(partial(tasks.show_again, lambda _: venue))
            self.dispatcher.work.open({"deliver": delivering}, "slack")
            yield
            await self.dispatcher.work.close("slack")


WHOLE_THREAD = 5
"""Messages of a thread of four members: the ranking, and one each."""


@asynccontextmanager
async def office(
    folder: Path,
    council: ScriptedCouncil,
    *,
    catalog: Catalog | None = None,
    resume_within: float = 3600,
    now: Callable[[], datetime] | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    prices: Prices = unknown,
    calendar: Callable[[], datetime] | None = None,
    **limits: int,
) -> AsyncGenerator[Office]:
    async with open_library(folder) as library:
        if calendar:
            library.journal = Journal(library.database, calendar)
        # No platform acknowledges what these tests ask; a delay that none waits for is waited out.
        waits, told = Acknowledgements(longest_delay=0.0), calendar or now
        runs = runs_of(
            library, council.ask, catalog=catalog, prices=prices, now=told, acknowledgements=waits
        )
        durability = Durability(resume_within=resume_within)
        tasks = RunTasks(runs, Limits.model_validate(limits), durability, sleep=sleep)
        dispatcher = Dispatcher(tasks, Admins(frozenset({"slack:BOSS"})))
        yield Office(dispatcher, council, library, runs)
        await dispatcher.tasks.drain(0)


async def test_waiting_edits_show_only_the_newest_state(tmp_path: Path) -> None:
    """The last state is never lost."""
    venue = RecordingVenue()
    venue.gate.clear()
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.begin(venue)
        while not (row := await place.library.journal.get(run.id)) or row.status == "running":
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.002)
        venue.gate.set()
        await place.dispatcher.tasks.settled()
    assert len(venue.cards) <= 3
    assert "The council's answer" in venue.texts[-1]


@pytest.mark.parametrize(
    ("place_has", "depth", "thread", "posted"),
    [
        (True, "full", "digest", WHOLE_THREAD),
        (False, "full", "digest", 1),
        (False, "full", "full", WHOLE_THREAD),
        (True, "quick", "digest", 0),
        (False, "quick", "digest", 0),
        (True, "quick", "full", len(FOUR)),
    ],
)
async def test_how_much_is_posted_below_a_card(
    tmp_path: Path, place_has: bool, depth: str, thread: str, posted: int
) -> None:
    """Members' messages below a first question's card alone; without reviews, nothing but the mention."""
    venue, again = RecordingVenue(has_own=place_has), RecordingVenue(has_own=place_has)
    async with office(tmp_path, ScriptedCouncil()) as place:
        options = RunOptions.read({"depth": depth})
        await place.library.overrides.change(Scope("slack", "T1", "C1"), {"thread": thread}, "slack:U1")
        run = await place.see(venue, options=options)
        await place.see(again, "2", options=options, conversation_id=run.conversation_id)
    assert len(venue.posted) == posted
    assert len(again.posted) == (posted if thread == "full" else depth == "full")  # a follow-up
    assert venue.mentions == ["The council has answered."]
    if posted == 1:  # members open from the digest
        labels = {each.label for each in venue.buttons[0]}
        assert labels == {f"Open {name.partition('/')[2]}" for name in FOUR}


async def test_a_thread_that_takes_long_keeps_no_mention_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a message of its own then, and the digest follows."""
    monkeypatch.setattr(presenter, "DIGEST_SECONDS", 0.0)
    opening = asyncio.Event()

    class Slow(RecordingVenue):
        async def open_thread(self, title: str) -> tuple[str | None, str | None]:
            await opening.wait()
            return await super().open_thread(title)

        async def mention(
            self, mention: Mention, digest: Part | None = None, *, link: bool = True
        ) -> None:
            await super().mention(mention, digest, link=link)
            opening.set()

    venue = Slow()
    async with office(tmp_path, ScriptedCouncil()) as place:
        await place.see(venue)
    assert (venue.posted_at_mention, len(venue.posted)) == (0, WHOLE_THREAD)
    assert venue.mentions == ["The council has answered."]


async def test_of_a_hundred_questions_at_once_no_more_wait_than_may(tmp_path: Path) -> None:
    """The rest isn't written down; what was delivered before is no new question."""
    council = ScriptedCouncil(held={f"stage1.1:{FOUR[0]}"})
    async with office(tmp_path, council, runs=1, waiting_per_user=10) as place:
        runs = await asyncio.gather(*(place.ask(str(key)) for key in range(100)), return_exceptions=True)
        accepted = [run for run in runs if isinstance(run, RunRow)]
        [refused] = {str(run) for run in runs if isinstance(run, UsageError)}
        assert (len(accepted), len(runs)) == (10, 100)
        assert refused == (
            "You already have 10 questions waiting, which is the limit, so this one wasn't asked. Ask "
            "again when one of them has started, or stop one that you no longer need."
        )
        assert len(await place.dispatcher.tasks.undelivered("slack")) == 10
        for run in accepted:
            place.dispatcher.tasks.begin(run, RecordingVenue())
        await council.until_called(f"stage1.1:{FOUR[0]}")  # the first has its turn: there is room again
        assert await place.ask("more") is not None
        with pytest.raises(UsageError, match="10 questions waiting"):
            await place.ask("too many")
        assert await place.ask("more") is None
        assert await place.ask(accepted[0].entry_key.removeprefix("slack:")) is None
        assert await place.ask("other", source=TEAM.model_copy(update={"user": "U2"})) is not None
        council.release(f"stage1.1:{FOUR[0]}")
        await place.dispatcher.tasks.settled()
        assert await place.ask("later") is not None


async def test_what_waits_after_a_restart_counts(tmp_path: Path) -> None:
    """It is resumed whatever the limit says."""
    first, second = ScriptedCouncil(), ScriptedCouncil(held={f"stage1.1:{FOUR[0]}"})
    async with office(tmp_path, first) as place:
        for key in "1234":
            await place.ask(key)
    async with office(tmp_path, second, runs=1, waiting_per_user=2) as place:
        await place.dispatcher.tasks.resume(
            await place.dispatcher.tasks.undelivered("slack"), lambda _: RecordingVenue()
        )
        await second.until_called(f"stage1.1:{FOUR[0]}")
        with pytest.raises(UsageError, match="2 questions waiting"):
            await place.ask("5")
        second.release(f"stage1.1:{FOUR[0]}")
        await place.dispatcher.tasks.settled()
        assert await place.dispatcher.tasks.undelivered("slack") == []
        assert await place.ask("5") is not None


async def test_a_retry_counts_as_well(tmp_path: Path) -> None:
    """Else old runs would get past the limit."""
    council = ScriptedCouncil(script={"stage1": failure("empty")})
    async with office(tmp_path, council, waiting_per_user=1) as place:
        failed = await place.see(RecordingVenue())
        assert await place.ask("2") is not None
        with pytest.raises(UsageError, match="1 question waiting"):
            await press(place.dispatcher, "retry", click(failed), lambda _: RecordingVenue())
        row = await place.row(failed)
        assert row.status == "failed"


async def test_a_refused_retry_counts_no_longer(tmp_path: Path) -> None:
    """The run has its answer: nothing of it waits."""
    async with office(tmp_path, ScriptedCouncil(), waiting_per_user=1) as place:
        answered = await place.see(RecordingVenue())
        with pytest.raises(Refusal):
            await press(place.dispatcher, "retry", click(answered), lambda _: RecordingVenue())
        assert await place.ask("2") is not None


async def test_a_card_that_crashes_costs_the_card_alone(tmp_path: Path) -> None:
    """A bug in showing a run doesn't lose what is paid for."""
    venue = RecordingVenue(refuse={"post_card": RuntimeError("a bug")})
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.see(venue)
        assert (await place.library.store.load(run.conversation_id)).messages


async def test_a_card_that_is_refused_late_does_not_cost_what_is_paid_for(tmp_path: Path) -> None:
    """Members have answered by then: the run continues, and its asker is told elsewhere."""
    council = ScriptedCouncil(held={"stage2.1:openai/gpt-5"})

    class Refusing(RecordingVenue):
        async def post_card(self, newest: Callable[[], Card], sent: Sent) -> str:
            await council.until_called("stage2.1:openai/gpt-5")
            council.release("stage2.1:openai/gpt-5")
            return await super().post_card(newest, sent)

    venue = Refusing(refuse={"post_card": Malformed("doesn't take it")})
    async with office(tmp_path, council) as place:
        run = await place.see(venue)
        ended = await place.row(run)
    assert (ended.status, ended.delivery) == ("answered", "shown")
    assert [*venue.mentions, *venue.reposts, *venue.directs] != []


async def test_a_run_that_a_start_has_taken_up_is_not_shown_beside_it(tmp_path: Path) -> None:
    """The list's loop may have read its row before the start did."""
    council, beside = ScriptedCouncil(held={f"stage1.1:{FOUR[0]}"}), RecordingVenue()
    async with office(tmp_path, council) as place:
        run = await place.ask()
        assert run is not None
        tasks = place.dispatcher.tasks
        tasks.begin(run, RecordingVenue())
        await council.until_called(f"stage1.1:{FOUR[0]}")
        again = asyncio.create_task(tasks.show_again(lambda _: beside, run.id))
        council.release(f"stage1.1:{FOUR[0]}")
        await again
        await tasks.settled()
        assert beside.cards == []


async def test_the_card_comes_before_the_first_call(tmp_path: Path) -> None:
    """Where many ask at once, runs that have begun don't delay the others' acknowledgements."""
    council = ScriptedCouncil()

    class SlowCard(RecordingVenue):
        async def post_card(self, newest: Callable[[], Card], sent: Sent) -> str:
            while not (found := await place.library.journal.get(run.id)) or not found.brief.started_at:
                await asyncio.sleep(0.001)
            for _ in range(100):  # the run is ready to ask, and could
                await asyncio.sleep(0)
            assert council.calls == []
            return await super().post_card(newest, sent)

    async with office(tmp_path, council) as place:
        place.runs.acknowledgements = Acknowledgements(longest_delay=None, due_seconds=600.0)
        asked = await place.ask()
        assert asked is not None
        run, venue = asked, SlowCard()
        place.dispatcher.tasks.begin(run, venue)
        await place.dispatcher.tasks.settled()
    assert council.calls
    assert len(venue.mentions) == 1


async def test_a_refused_question_holds_no_call_back(tmp_path: Path) -> None:
    """Nor does one that is delivered twice."""
    council = ScriptedCouncil()
    async with office(tmp_path, council, waiting_per_user=1) as place:
        place.runs.acknowledgements = Acknowledgements(longest_delay=None, due_seconds=600.0)
        run = await place.ask()
        assert run is not None
        assert await place.ask() is None
        with pytest.raises(Refusal):
            await place.ask("2")
        place.dispatcher.tasks.begin(run, RecordingVenue(refuse={"post_card": Unreachable("not now")}))
        await place.dispatcher.tasks.settled()
    assert council.calls


async def test_a_run_that_cannot_be_shown_is_not_paid_for(tmp_path: Path) -> None:
    """The bot may not post there: nobody would see the answer."""
    venue = RecordingVenue(refuse={"post_card": NotAllowed("it may not post here")})
    council = ScriptedCouncil(held={f"stage1.1:{name}" for name in FOUR})
    async with office(tmp_path, council) as place:
        run = await place.see(venue)
        row = await place.row(run)
    assert row.status == "stopped"
    assert council.finished == []


@pytest.mark.parametrize("locked", ["from the start", "before the answer"])
async def test_a_long_answer_without_its_thread_is_whole_in_the_file(
    tmp_path: Path, locked: str
) -> None:
    """Whenever the thread was lost; the card is shown again, because the answer continues elsewhere."""

    class Locked(RecordingVenue):
        async def post(self, part: Part, key: str, sent: Sent, urgency: Urgency = Urgency.THREAD) -> str:
            if locked == "from the start" or key.startswith("answer"):
                raise NotAllowed("the thread is locked")
            return await super().post(part, key, sent, urgency)

    venue = Locked(room=300)
    whole = "\n\n".join(f"Reason {number}." for number in range(200))
    async with office(tmp_path, ScriptedCouncil(script={"stage3": whole})) as place:
        await place.see(venue)
    file = venue.posted[-1]
    assert file.key.endswith(".html")
    text = render(file)
    assert (
        "The thread's messages and the whole answer are in this file, because the thread is locked."
    ) in text
    assert "Corrected response" in text
    assert all(f"Reason {number}." in text for number in range(200))
    assert venue.texts[-1] == venue.texts[-2]
    assert venue.mentions == ["The council has answered."]


@pytest.mark.parametrize(
    ("error", "delivery"),
    [
        (NotAllowed("the bot lacks Attach Files"), "shown"),
        (Malformed("the file is too large"), "shown"),
        (DocumentError("the document is damaged"), "shown"),
        (Unreachable("Slack can't be reached"), None),
        (RuntimeError("a bug"), None),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_transcript_that_cannot_be_posted_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, delivery: str | None
) -> None:
    """In place of the thread; the mention is there, and what may pass is tried again later."""

    def broken(_: Conversation) -> File:
        raise error

    is_refused = isinstance(error, VenueError)
    locked: dict[str, Exception] = {"post": NotAllowed("the thread is locked")}
    venue = RecordingVenue(refuse={**locked, "attach": error} if is_refused else locked)
    if not is_refused:
        monkeypatch.setattr("bot.service.presenter.page_of", broken)
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.see(venue)
        row = await place.row(run)
        assert row.delivery == delivery
    assert [message.key for message in venue.posted] == ["ranking"]
    assert venue.posted_at_mention == 1
    assert venue.mentions == ["The council has answered."]


@pytest.mark.parametrize(
    ("text", "said"), [("  ", "There is no question."), ("x" * 20_001, "longer than 20,000 characters")]
)
async def test_a_bad_question_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    """Only to the asker, before anything is written."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        with pytest.raises(Refusal, match=said):
            await place.ask(text=text)


def click(run: RunRow, user: str = "U1", where: Mapping[str, str] | None = None) -> Click:
    source = TEAM.model_copy(update={"user": user, **(where or {})})
    return Click(run_id=run.id, source=source, is_admin=False)


async def test_stop_ends_a_run_that_waits_its_turn_at_once(tmp_path: Path) -> None:
    """Nothing is asked for it, and the queue moves on without it."""
    council = ScriptedCouncil(held={f"stage1.1:{FOUR[0]}"})
    first, second = RecordingVenue(), RecordingVenue()
    async with office(tmp_path, council, runs=1) as place:
        runs = [await place.ask("1"), await place.ask("2")]
        for run, venue in zip(runs, (first, second), strict=True):
            assert run is not None
            place.dispatcher.tasks.begin(run, venue)
        waiting = runs[1]
        assert waiting is not None
        while not any("1st in the queue" in text for text in second.texts):
            await asyncio.sleep(0.001)
        await council.until_called(*(f"stage1.1:{name}" for name in FOUR))
        calls = len(council.calls)
        await press(place.dispatcher, "stop", click(waiting))
        while not second.mentions:
            await asyncio.sleep(0.001)
        assert len(council.calls) == calls
        assert first.mentions == []
        council.release(f"stage1.1:{FOUR[0]}")
        await place.dispatcher.tasks.settled()
    assert "The run was stopped" in second.texts[-1]
    assert first.mentions == ["The council has answered."]


@pytest.mark.parametrize("where", [{"channel": "C2"}, {"workspace": "T2"}, {"platform": "discord"}])
async def test_a_button_works_only_where_its_run_is(tmp_path: Path, where: dict[str, str]) -> None:
    """From anywhere else there is no such run."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.see(RecordingVenue())
        assert (await place.dispatcher.run(run.id, click(run).source)).id == run.id
        with pytest.raises(Refusal, match="This run isn't on record here"):
            await place.dispatcher.run(run.id, click(run, where=where).source)


async def test_the_buttons_of_a_message_lead_to_its_own_member(tmp_path: Path) -> None:
    """In whatever order the members are ranked."""

    class Buttons(RecordingVenue):
        async def post(self, part: Part, key: str, sent: Sent, urgency: Urgency = Urgency.THREAD) -> str:
            pressed[key] = part.buttons
            return await super().post(part, key, sent, urgency)

    pressed: dict[str, tuple[Button, ...]] = {}
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.see(Buttons())
        assert len(pressed) == len(FOUR)
        for key, buttons in pressed.items():
            assert [button.label for button in buttons] == ["Open"]
            for button in buttons:
                assert Button.read(button.action, button.value) == button
                assert button.run_id == run.id
                assert key == f"member:{FOUR[button.seat]}.0"


async def test_a_run_that_is_not_kept_has_no_details(tmp_path: Path) -> None:
    """It says so, whether the conversation has other answers or none."""
    async with office(tmp_path, ScriptedCouncil(script={"stage1": failure()})) as place:
        failed = await place.see(RecordingVenue())
        place.council.script.clear()
        answered = await place.see(RecordingVenue(), key="2")
        follow_up = replace(failed, conversation_id=answered.conversation_id)
        for run in (failed, follow_up):
            with pytest.raises(Refusal, match="This run gave no answer, so its details were not kept"):
                await place.dispatcher.opened(run, 0)


async def test_halted_runs_are_over_before_anything_is_deleted(tmp_path: Path) -> None:
    """Members and chairman alike; what is over already takes no time."""
    held = f"stage1.1:{FOUR[0]}"
    council = ScriptedCouncil(held={held})
    async with office(tmp_path, council) as place:
        run = await place.begin(RecordingVenue())
        await council.until_called(held)
        await place.dispatcher.tasks.halt([run.id, "unknown"])
        ended = await place.row(run)
        assert ended.status == "stopped"
        await place.dispatcher.tasks.halt([run.id])


async def test_stop_ends_the_reading_of_a_thread(tmp_path: Path) -> None:
    """No model is asked, and a Retry reads it again."""

    class Slow(RecordingVenue):
        async def read_discussion(self, brief: Brief, room: int) -> Discussion:
            await super().read_discussion(brief, room)
            if self.readings == 1:
                await asyncio.Event().wait()
            return self.thread

    venue = Slow()
    async with office(tmp_path, ScriptedCouncil()) as place:
        run = await place.begin(venue, context=Discussion(until="9"))
        while not venue.readings:
            await asyncio.sleep(0)
        stop = place.dispatcher.tasks.stops.get(run.id)
        assert stop is not None
        stop.press()
        async with asyncio.timeout(10):
            await place.dispatcher.tasks.settled()
        ended = await place.row(run)
        assert (ended.status, place.council.calls) == ("stopped", [])
        await place.dispatcher.tasks.retry(ended, lambda _: venue, TEAM)
        await place.dispatcher.tasks.settled()
        again = await place.row(run)
        assert (again.status, venue.readings) == ("answered", 2)


@pytest.mark.parametrize("title_model", [None, "openai/gpt-5"])
async def test_auto_without_a_judge_is_refused_with_the_setting(
    tmp_path: Path, title_model: str | None
) -> None:
    """However it is chosen; a title model that is a member's judges nobody by accident."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        place.dispatcher.reconfigure(Operator(profiles={"default": profile(title_model=title_model)}))
        with pytest.raises(UsageError) as refused:
            await place.ask(options=RunOptions(own={"depth": "auto"}))
        assert (
            str(refused.value)
            == "Depth auto needs a judge that compares the answers: set judge_model (COUNCIL_JUDGE_MODEL), or "
            "a title_model that isn't a member's model."
        )
        await place.dispatcher.channels.change(TEAM, {"depth": "auto"})
        with pytest.raises(UsageError):
            await place.ask("2")
        assert await place.ask(
            "3", options=RunOptions(own={"depth": "quick"})
        )  # the question's own option comes first


async def test_a_judge_that_is_a_member_is_named(tmp_path: Path) -> None:
    """Beside what it said."""
    venue, seats = RecordingVenue(), profile(depth="auto", depth_audit=0.0)
    seats = seats.model_copy(update={"judge_model": seats.members[0]})
    async with office(tmp_path, ScriptedCouncil(script={"judge": AGREED})) as place:
        place.dispatcher.reconfigure(Operator(profiles={"default": seats}))
        await place.see(venue)
    assert "The answers agree (the judge is one of the members); reviews skipped" in venue.texts[-1]
