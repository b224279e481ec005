"""What every journal does: nothing recorded is asked again, nothing posted is posted again."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import pytest

from council.brief import Brief, History, Turn
from council.calls import Call, Outcome, Reply
from council.document.conversation import Source
from council.errors import Failure
from council.profile import Member, Persona, Profile
from council.usage import Usage
from storage.errors import DatabaseError
from storage.journal.journal import Journal
from storage.journal.rows import EndReason, MentionState, RunRow
from tests.storage.examples import Clock
from tests.stores import Home

BRIEF = Brief(
    question="Kännst du 北京?",
    profile=Profile(
        members=(
            Member(model="a/one", persona=Persona(name="The Architect", prompt="Think in structures.")),
            Member(model="a/one", persona=Persona(name="The Pragmatist", prompt="Think of Monday.")),
        ),
        chairman=Member(model="c/chair", fallbacks=("d/spare",)),
    ),
    seed=42,
    boundary="b0undary",
    history=History(turns=(Turn(question="Before?", answer="Yes."),)),
)
RUN = RunRow(
    id="run-1",
    entry_key="discord:interaction:1",
    conversation_id="conversation-1",
    origin=Source(platform="discord", workspace="W", channel="C", thread="T", message="M", user="U"),
    brief=BRIEF,
)
WHY = EndReason(message="no member answered", failures={"a/one": Failure(cause="deadline")})
REPLY = Reply(text="Paris", usage=Usage(prompt_tokens=3, cost=0.5), latency_ms=70, truncated=True)
FAILURE = Failure(cause="rate_limited", detail="slow down", status=429, attempts=3)


Opened = Callable[[], AbstractAsyncContextManager[Journal]]
"""Opens the same journal each time, as one process after the other does."""


def call(step: str, text: str = "What is best?") -> Call:
    member = BRIEF.profile.members[0]
    return Call(
        step=step, member=member, prompt=lambda: ({"role": "user", "content": text},), deadline=1.0
    )


@pytest.fixture
def opened(home: Home) -> Opened:
    """Return a new journal's opener, for each store."""

    @asynccontextmanager
    async def journal() -> AsyncGenerator[Journal]:
        async with home.open() as stores:
            yield Journal(stores.database, Clock())

    return journal


async def test_a_run_is_kept_as_it_began(opened: Opened) -> None:
    """The row has every field of origin and brief, whatever the configuration says later."""
    async with opened() as journal:
        begun = await journal.begin(RUN)
        assert begun.created
        assert begun.run == RunRow(
            id=RUN.id,
            entry_key=RUN.entry_key,
            conversation_id=RUN.conversation_id,
            origin=RUN.origin,
            brief=BRIEF,
            status="running",
            error=None,
            created_at="2026-01-20T10:30:01.000Z",
            finished_at=None,
            delivery=None,
            stops=0,
            retries=0,
            retried_at=None,
        )
    async with opened() as journal:
        assert await journal.get("run-1") == begun.run
        assert await journal.get("run-2") is None


async def test_a_redelivery_finds_the_run(opened: Opened) -> None:
    """The same entry key begins no second run, even if both arrive at the same time."""
    async with opened() as journal:
        first, second = await asyncio.gather(journal.begin(RUN), journal.begin(replace(RUN, id="run-2")))
    assert (first.created, second.created) == (True, False)
    assert first.run == second.run


async def test_a_redelivery_is_found_while_writing_is_impossible(opened: Opened) -> None:
    """So its asker isn't told that it wasn't saved."""
    async with opened() as journal:
        first = await journal.begin(RUN)
        late = asyncio.get_running_loop().time() - 1
        second = await journal.begin(replace(RUN, id="run-2"), by=late)
    assert second.run == first.run
    assert not second.created


async def test_a_run_that_does_not_begin_in_time_is_not_there(opened: Opened) -> None:
    """Neither in this process nor in the next: its asker has been told."""
    async with opened() as journal:
        with pytest.raises(TimeoutError):
            await journal.begin(RUN, by=asyncio.get_running_loop().time() - 1)
        assert await journal.get(RUN.id) is None
    async with opened() as journal:
        assert await journal.undelivered("discord") == []
        assert (await journal.begin(RUN, by=asyncio.get_running_loop().time() + 60)).created


async def test_a_used_id_is_no_redelivery(opened: Opened) -> None:
    """Two questions with one id would share steps, so the second is refused."""
    async with opened() as journal:
        await journal.begin(RUN)
        with pytest.raises(DatabaseError, match=r"failed: runs\.id|break runs_pkey"):
            await journal.begin(replace(RUN, entry_key="discord:interaction:2"))


@pytest.mark.parametrize(
    "outcome", [REPLY, FAILURE, Failure(cause="empty", usage=Usage(prompt_tokens=9))]
)
async def test_a_recorded_outcome_comes_back_in_the_next_process(
    opened: Opened, outcome: Outcome
) -> None:
    """Replies and failures are recalled with every field."""
    async with opened() as journal:
        run = (await journal.begin(RUN)).run
        steps = await journal.steps(run)
        assert steps.recall(call("stage1.1:a/one")) is None
        assert not steps.has_begun("stage1.1")
        await steps.record(call("stage1.1:a/one"), outcome)
        assert steps.recall(call("stage1.1:a/one")) == outcome
    async with opened() as journal:
        steps = await journal.steps(run)
        assert steps.recall(call("stage1.1:a/one", "In other words?")) == outcome
        assert steps.recall(call("stage1.1:b/two")) is None
        assert steps.has_begun("stage1.1")
        assert not steps.has_begun("stage1")


async def test_the_first_record_of_a_step_is_kept(opened: Opened) -> None:
    """A late second outcome changes neither memory nor journal."""
    async with opened() as journal:
        run = (await journal.begin(RUN)).run
        steps = await journal.steps(run)
        await asyncio.gather(steps.record(call("title"), REPLY), steps.record(call("title"), FAILURE))
        assert steps.recall(call("title")) == REPLY
        assert (await journal.steps(run)).recall(call("title")) == REPLY


async def test_a_run_ends_once(opened: Opened) -> None:
    """The first end is kept, with its time and reason."""
    async with opened() as journal:
        await journal.begin(RUN)
        await journal.finish("run-1", "failed", WHY)
        await journal.finish("run-1", "answered")
        run = await journal.get("run-1")
    assert run is not None
    assert run.is_over
    assert (run.status, run.error, run.finished_at) == ("failed", WHY, "2026-01-20T10:30:02.000Z")


async def test_runs_that_were_not_fully_shown_are_undelivered(opened: Opened) -> None:
    """Answered or not; one platform's, the oldest first.

    Untold runs are left out when they are too old.
    """
    async with opened() as journal:
        for number in (3, 1, 2):
            await journal.begin(replace(RUN, id=f"run-{number}", entry_key=f"key-{number}"))
        slack = RUN.origin.model_copy(update={"platform": "slack"})
        await journal.begin(replace(RUN, id="run-4", entry_key="key-4", origin=slack))
        await journal.finish("run-1", "answered")
        await journal.finish("run-2", "answered")
        await journal.deliver("run-2", "shown")
    async with opened() as journal:
        assert [run.id for run in await journal.undelivered("discord")] == ["run-3", "run-1"]
        await journal.deliver("run-3", "untold")
        assert [run.id for run in await journal.undelivered("discord")] == ["run-3", "run-1"]
        later = await journal.undelivered("discord", since="2026-02-01T00:00:00.000Z")
        assert [run.id for run in later] == ["run-1"]
        assert [run.id for run in await journal.undelivered("slack")] == ["run-4"]


async def test_a_post_is_remembered_by_its_key(opened: Opened) -> None:
    """With the id of its message, even if its content would be another now."""
    async with opened() as journal:
        run = (await journal.begin(RUN)).run
        posts = await journal.posts(run)
        assert not posts.has("ranking.0", "A table")
        await posts.record("ranking.0", "A table", "message-1")
        assert posts.has("ranking.0", "A table")
    async with opened() as journal:
        posts = await journal.posts(run)
        assert posts.has("ranking.0", "Another table")
        assert not posts.has("ranking.1", "A table")
        assert posts.messages == {"message-1"}


async def reopened(journal: Journal) -> RunRow:
    """Fail and retry a run that had a reply, a failure, two posts and a press of Stop."""
    run = (await journal.begin(RUN)).run
    steps = await journal.steps(run)
    await steps.record(call("stage1.1:a/one"), REPLY)
    await steps.record(call("stage1.1:b/two"), FAILURE)
    posts = await journal.posts(run)
    await posts.record("ranking.0", "A table", "message-1")
    await posts.record("mention", "No answer.", "message-2")
    await journal.press_stop("run-1")
    await journal.finish("run-1", "failed", WHY)
    await journal.record_mention("run-1", MentionState(lost=1))
    await journal.deliver("run-1", "shown")
    again = await journal.reopen("run-1")
    assert again is not None
    return again


async def test_what_is_known_of_a_mention_is_kept(opened: Opened) -> None:
    """A post without an id is recorded, but isn't a message."""
    telling = MentionState(begun=1, lost=1, post_at=1_768_905_000)
    async with opened() as journal:
        run = (await journal.begin(RUN)).run
        assert run.telling == MentionState()
        await journal.record_mention("run-1", telling)
        posts = await journal.posts(run)
        await posts.record("mention", "Done.", "")
    async with opened() as journal:
        found = await journal.get("run-1")
        assert found is not None
        assert found.telling == telling
        posts = await journal.posts(found)
        assert posts.has("mention", "Done.")
        assert posts.messages == frozenset()


async def test_a_retried_run_keeps_replies_and_forgets_failures(opened: Opened) -> None:
    """It is running and undelivered again, and its age starts at zero."""
    async with opened() as journal:
        again = await reopened(journal)
        assert not again.is_over
        assert (again.error, again.finished_at, again.delivery) == (None, None, None)
        assert (again.stops, again.retries, again.telling) == (0, 1, MentionState())
        assert again.retried_at is not None
        assert again.retried_at > again.created_at
    async with opened() as journal:
        assert await journal.undelivered("discord") == [again]
        await journal.deliver(again.id, "untold")
        assert len(await journal.undelivered("discord", since=again.retried_at)) == 1
        steps = await journal.steps(again)
        assert steps.recall(call("stage1.1:a/one")) == REPLY
        assert steps.recall(call("stage1.1:b/two")) is None


async def test_a_retried_run_asks_again_what_has_changed(opened: Opened) -> None:
    """A reply to another prompt isn't used; the new one replaces it."""
    later = REPLY.model_copy(update={"text": "Lyon"})
    async with opened() as journal:
        again = await reopened(journal)
        steps = await journal.steps(again)
        changed = call("stage1.1:a/one", "And with b/two's answer?")
        assert steps.recall(changed) is None
        await steps.record(changed, later)
        assert steps.recall(changed) == later
        assert (await journal.steps(again)).recall(changed) == later


async def test_a_retried_run_posts_again_what_has_changed(opened: Opened) -> None:
    """It also mentions its asker again; unchanged posts are kept."""
    async with opened() as journal:
        posts = await journal.posts(await reopened(journal))
        assert posts.has("ranking.0", "A table")
        assert not posts.has("ranking.0", "Another table")
        assert not posts.has("mention", "No answer.")
        assert posts.messages == {"message-1"}


async def test_only_a_run_without_answer_can_be_retried(opened: Opened) -> None:
    """An answered run keeps its steps and its end."""
    async with opened() as journal:
        run = (await journal.begin(RUN)).run
        await (await journal.steps(run)).record(call("stage1.1:b/two"), FAILURE)
        await journal.finish("run-1", "answered")
        assert await journal.reopen("run-1") is None
        assert await journal.reopen("run-2") is None
        assert (await journal.steps(run)).recall(call("stage1.1:b/two")) == FAILURE
        found = await journal.get("run-1")
    assert found is not None
    assert (found.status, found.retries) == ("answered", 0)


async def test_conversations_are_known_by_who_began_them(opened: Opened) -> None:
    """Not by later askers; without a recorded name there is none."""
    async with opened() as journal:
        for number, asker in enumerate(("Ada", "Bob")):
            brief = BRIEF.model_copy(update={"asker": asker})
            await journal.begin(replace(RUN, id=f"r{number}", entry_key=f"e{number}", brief=brief))
        await journal.begin(replace(RUN, id="r9", entry_key="e9", conversation_id="nameless"))
        asked = await journal.askers(["conversation-1", "nameless", "unknown"])
    assert asked == {"conversation-1": "Ada"}


async def test_a_thread_identifies_its_conversation(opened: Opened) -> None:
    """By the thread's id or the card's, in its own channel, workspace and platform only."""
    async with opened() as journal:
        await journal.begin(RUN)
        await journal.place("run-1", RUN.origin.model_copy(update={"message": "M2", "thread": "T2"}))
        here = Source(platform="discord", workspace="W", channel="C", thread="T2")
        assert await journal.conversation_in(here) == "conversation-1"
        by_card = here.model_copy(update={"thread": "M2"})
        assert await journal.conversation_in(by_card) == "conversation-1"
        for elsewhere in ({"platform": "slack"}, {"workspace": "V"}, {"channel": "D"}, {"thread": None}):
            assert await journal.conversation_in(here.model_copy(update=elsewhere)) is None
