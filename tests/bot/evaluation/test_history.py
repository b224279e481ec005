"""`--from-history`: past questions of the terminal that people voted on."""

from pathlib import Path

from council.brief import Brief
from council.calls import Call, Reply
from council.document.conversation import AssistantMessage, Source, Vote
from council.document.results import Stage3Result
from council.profile import Member
from council.usage import Usage
from storage.forgetting import Selections
from storage.journal.rows import RunRow
from storage.scope import Scope
from tests.council.scripted import profile
from tests.library import open_library
from tests.storage.examples import NOW, answer, new_id

HERE = Source(platform="terminal", user="ada")
THERE = Source(platform="slack", workspace="T1", channel="C1", user="U1")


def said(text: str, *votes: bool, reason: str | None = None, example: bool = False) -> AssistantMessage:
    given = [
        Vote(
            voter=f"v{number}",
            platform="terminal",
            helpful=helpful,
            at="2026-11-25T00:00:00Z",
            reason=reason,
        )
        for number, helpful in enumerate(votes)
    ]
    final = Stage3Result(model="chair/man", response=text)
    settings = {"example": True} if example else None
    update = {"stage3": final, "votes": given, "settings": settings, "run_id": new_id()}
    return answer().model_copy(update=update)


async def test_questions_that_people_voted_on_are_taken(tmp_path: Path) -> None:
    """The terminal's own; no examples, no follow-ups, nothing that people are divided over."""
    kept = {
        "Shard now?": said("Not yet.", True, True),
        "Which queue?": said("None.", False, reason="it ignores our load"),
    }
    left = {
        "No votes?": (said("?"), HERE),
        "Divided?": (said("?", True, False), HERE),
        "An example?": (said("?", True, example=True), HERE),
        "Elsewhere?": (said("?", True), THERE),
    }
    async with open_library(tmp_path) as library:
        for question, (message, source) in {
            **{each: (kept[each], HERE) for each in kept},
            **left,
        }.items():
            stored = await library.store.add_exchange(
                new_id(), question, message, title=question, source=source, now=NOW
            )
            followed = await library.store.add_exchange(
                stored.conversation.id, "And then?", said("?", True), title="?", source=source, now=NOW
            )
            await library.index.upsert(followed)
        from bot.evaluation.command import voted_questions

        found = {each.asked: each async for each in voted_questions(library)}
    assert set(found) == set(kept)
    assert found["Shard now?"].targets == ("Not yet.",)
    assert found["Which queue?"].targets[0].splitlines() == [
        "It is more helpful than this answer, which people voted against: None.",
        "It doesn't have this fault that somebody named: it ignores our load",
    ]
    assert all(each.is_judged for each in found.values())


async def test_a_deleted_question_is_deleted_from_evaluations_too(tmp_path: Path) -> None:
    """What models replied to it goes; other questions' replies stay."""
    source = Source(platform="evaluation")
    async with open_library(tmp_path) as library:
        stored = await library.store.add_exchange(
            new_id(), "Shard now?", said("Not yet.", True), title="?", source=HERE, now=NOW
        )
        await library.index.upsert(stored)
        asked, other = stored.conversation.id, new_id()
        brief = Brief(question="?", profile=profile(), seed=1, boundary="0" * 16)
        new = RunRow(id=new_id(), entry_key="e", conversation_id=new_id(), origin=source, brief=brief)
        begun = await library.journal.begin(new)
        steps = await library.journal.steps(begun.run)
        for item in (asked, f"pilot/{asked}", other):
            call = Call(step=f"{item}/ab/stage1.1:m", member=Member(model="m"), prompt=tuple, deadline=1)
            await steps.record(call, Reply(text="Not yet.", usage=Usage(), latency_ms=1))
        chosen = await Selections(library.database, library.store).conversation(Scope.of(HERE), asked)
        await library.forgetting.forget(chosen, by="ada")
        left = await library.database.read("SELECT key FROM steps", ())
    assert [row["key"] for row in left] == [f"{other}/ab/stage1.1:m"]
