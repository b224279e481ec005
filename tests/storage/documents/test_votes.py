"""Votes: in the document, in the index derived from it, and deleted from both when forgotten."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import orjson
import pytest

from bot.app import Library, open_library
from council.document.conversation import AssistantMessage, Source, Vote
from council.document.results import Stage3Result
from council.text.json_objects import JsonObject
from storage.errors import ConversationNotFound
from storage.importing import import_from
from storage.index.statistics import VoteCount
from storage.scope import Scope
from tests.storage.examples import NOW, answer, legacy, new_id
from tests.stores import Home, quick_on_sqlite

HERE = Source(platform="slack", workspace="T1", channel="C1", user="U1")
AT = "2026-01-20T10:32:00.000Z"
WORD = "zanzibarquux"


def vote(voter: str = "U2", *, helpful: bool = False, reason: str | None = None) -> Vote:
    return Vote(voter=voter, platform="slack", helpful=helpful, at=AT, reason=reason)


@dataclass
class Place:
    """Real storage with answers in it."""

    library: Library

    async def answered(
        self, run_id: str = "r1", conversation_id: str | None = None, **more: object
    ) -> str:
        conversation_id = conversation_id or new_id()
        settings = {"name": "fast"}
        told = answer().model_copy(
            update={"run_id": run_id, "asked_by": "U1", "settings": settings, **more}
        )
        stored = await self.library.store.add_exchange(
            conversation_id, "Capital of France?", told, title="Capital", source=HERE, now=NOW
        )
        await self.library.index.upsert(stored)
        return conversation_id

    async def cast(self, conversation_id: str, told: Vote, run_id: str = "r1") -> None:
        await self.library.index.upsert(await self.library.store.vote(conversation_id, run_id, told))

    async def votes(self, conversation_id: str, place: int = 1) -> list[Vote]:
        message = (await self.library.store.load(conversation_id)).messages[place]
        assert isinstance(message, AssistantMessage)
        return message.votes

    async def counts(self) -> tuple[VoteCount, ...]:
        found = await self.library.past_answers.statistics(Scope.of(HERE))
        return found.by_profile

    async def forget(self, user: str) -> None:
        """Forget somebody, to the last byte."""
        selection = await self.library.forgetting.select.user("slack", user, workspace="T1")
        await self.library.forgetting.forget(selection, by="slack:BOSS")
        await self.library.forgetting.scrub()


@asynccontextmanager
async def place(home: Home) -> AsyncGenerator[Place]:
    async with open_library(home.folder, home.address) as library:
        yield Place(library)


async def test_a_person_has_one_vote_on_an_answer_and_may_change_it(home: Home) -> None:
    """A reason belongs to its vote and is replaced with it."""
    async with place(home) as here:
        one = await here.answered()
        await here.cast(one, vote("U2", helpful=True))
        await here.cast(one, vote("U3", helpful=True))
        await here.cast(one, vote("U2", reason="Too vague"))
        assert await here.votes(one) == [vote("U3", helpful=True), vote("U2", reason="Too vague")]
        await here.cast(one, vote("U2"))
        assert (await here.votes(one))[1].reason == "Too vague"
        await here.cast(one, vote("U2", reason=""))
        assert (await here.votes(one))[1].reason is None
        await here.cast(one, vote("U2", reason="Wrong"))
        await here.cast(one, vote("U2", helpful=True))
        assert (await here.votes(one))[1] == vote("U2", helpful=True)


@quick_on_sqlite
async def test_a_vote_changes_nothing_else_in_the_document(home: Home) -> None:
    """Fields of other programs survive, at every level."""
    async with place(home) as here:
        one = new_id()
        document = legacy(one, theirs={"kept": True})
        theirs = cast("list[JsonObject]", document["messages"])
        theirs[1] |= {"run_id": "r1", "also_theirs": 7}
        await here.library.store.adopt(orjson.dumps(document))
        await here.cast(one, vote(helpful=True))
        stored = orjson.loads(await here.library.store.content(one))
        [counted] = stored["messages"][1].pop("votes")
        assert counted == {"voter": "U2", "platform": "slack", "helpful": True, "at": AT}
        assert stored == document


@quick_on_sqlite
async def test_a_vote_on_no_answer_is_refused(home: Home) -> None:
    """Neither a deleted conversation nor an unknown run takes votes."""
    async with place(home) as here:
        one = await here.answered()
        with pytest.raises(ConversationNotFound):
            await here.library.store.vote(one, "another", vote())
        with pytest.raises(ConversationNotFound):
            await here.library.store.vote(new_id(), "r1", vote())
        assert await here.votes(one) == []


@quick_on_sqlite
async def test_votes_are_counted_by_profile(home: Home) -> None:
    """Each as the answer's settings name it."""
    verbatim = Stage3Result(model="a/one", response="Paris.", source="verbatim")
    async with place(home) as here:
        one = await here.answered("r1")
        await here.answered("r2", one, stage3=verbatim, settings={"max_rounds": 2})
        await here.answered("r3", settings=None)
        for voter, helpful in (("U2", True), ("U3", True), ("U4", False)):
            await here.cast(one, vote(voter, helpful=helpful))
        await here.cast(one, vote("U2"), "r2")
        assert await here.counts() == (
            VoteCount(name="fast", helpful=2, unhelpful=1),
            VoteCount(name="default", helpful=0, unhelpful=1),
        )


async def test_a_rebuilt_index_and_an_imported_document_have_their_votes(
    home: Home, tmp_path: Path
) -> None:
    """Another program's document may have two by one person: the last one counts."""
    (tmp_path / "in").mkdir()
    async with place(home) as here:
        one = await here.answered()
        await here.cast(one, vote("U2", helpful=True))
        await here.cast(one, vote("U3"))
        before = await here.counts()
        await here.library.index.remove(one)
        assert await here.counts() == ()
        await here.library.index.rebuild(here.library.store)
        assert await here.counts() == before
        document = orjson.loads(await here.library.store.content(one))
    document["messages"][1]["votes"] *= 2
    (tmp_path / "in" / "any.json").write_bytes(orjson.dumps(document))
    async with place(Home(tmp_path / "two")) as here:
        await import_from([tmp_path / "in"], here.library.store, here.library.index)
        assert await here.counts() == before


@quick_on_sqlite
async def test_another_programs_invalid_votes_are_left_out(home: Home) -> None:
    """The document is still read."""
    async with place(home) as here:
        one = new_id()
        document = legacy(one)
        cast("list[JsonObject]", document["messages"])[1]["votes"] = 12
        stored = await here.library.store.adopt(orjson.dumps(document))
        assert stored is not None
        await here.library.index.upsert(stored)
        assert await here.votes(one) == []


@pytest.mark.parametrize("asked_too", [False, True])
async def test_a_persons_votes_are_forgotten_with_the_person(home: Home, asked_too: bool) -> None:
    """From others' answers, which are kept; no file contains the reason any more."""
    async with place(home) as here:
        one = await here.answered()
        other = await here.answered("r2")
        if asked_too:
            await here.answered("r3", one, asked_by="U2")
        await here.cast(one, vote("U2", reason=WORD))
        await here.cast(one, vote("U3", helpful=True))
        await here.cast(other, vote("U3", reason="Wrong"), "r2")
        selection = await here.library.forgetting.select.user("slack", "U2", workspace="T1")
        assert selection.votes == 1
        assert (selection.voted, selection.shared) == (((), (one,)) if asked_too else ((one,), ()))
        await here.forget("U2")
        assert await here.votes(one) == [vote("U3", helpful=True)]
        assert await here.votes(other) == [vote("U3", reason="Wrong")]
        assert (await here.library.forgetting.select.user("slack", "U2", workspace="T1")).is_empty
        assert (await here.library.index.check(here.library.store)).consistent
        [counted] = await here.counts()
        assert (counted.helpful, counted.unhelpful) == (1, 1)
    assert home.holding(WORD) == []
    assert not {name for name in home.holding("U2") if name.endswith(".json") or name == "documents"}


async def test_a_namesake_elsewhere_keeps_a_vote(home: Home) -> None:
    """On another platform or in another workspace, the same id is somebody else."""
    async with place(home) as here:
        one = await here.answered()
        await here.cast(one, vote("U2"))
        assert (await here.library.forgetting.select.user("discord", "U2")).is_empty
        assert (await here.library.forgetting.select.user("slack", "U2", workspace="T2")).is_empty
