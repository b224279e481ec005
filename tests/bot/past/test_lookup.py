"""Past answers from real storage: what a scope holds is found there, and from nowhere else."""

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.app import Library, open_lookup
from bot.errors import Refusal
from bot.past.lookup import Lookup
from bot.past.pages import Answer, Choice, Detail, Figures, HistoryPage, Look, Search, Sheet
from bot.render.markdown import render
from bot.service.commands import HISTORY, PAST, SEARCH, SHOW, STATS, Given
from bot.view.wording.past import NO_SUCH
from council.brief import Brief
from council.document.conversation import Source, timestamp
from storage.index.past_answers import Cursor
from storage.index.rows import IndexRow
from storage.journal.rows import RunRow
from tests.bot.sample_run import PROFILE
from tests.library import open_library
from tests.storage.examples import NOW, answer, new_id

HERE = Source(platform="discord", workspace="1", channel="10", user="100")
TERMINAL = Source(platform="terminal")
ELSEWHERE = {
    "another channel": HERE.model_copy(update={"channel": "11"}),
    "another workspace": HERE.model_copy(update={"workspace": "2"}),
    "direct messages": HERE.model_copy(update={"workspace": None}),
    "another platform": HERE.model_copy(update={"platform": "slack"}),
    "the terminal": TERMINAL,
}


def nowhere(row: IndexRow) -> None:
    del row


@dataclass
class Room:
    """The lookup, and a way to leave answers."""

    lookup: Lookup
    library: Library

    async def leave(
        self,
        title: str = "Shard or scale",
        source: Source = HERE,
        at: datetime = NOW,
        conversation_id: str | None = None,
    ) -> str:
        """Leave an answered question of Ada's; return its id."""
        said = answer("Shard by tenant.").model_copy(update={"finished_at": timestamp(at)})
        stored = await self.library.store.add_exchange(
            conversation_id or new_id(), "Should we shard?", said, title=title, source=source, now=at
        )
        await self.library.index.upsert(stored)
        await self.run(stored.conversation.id, source)
        return stored.conversation.id

    async def run(self, conversation_id: str, source: Source = HERE) -> RunRow:
        asked = Brief(
            question="Should we shard?", profile=PROFILE, seed=1, boundary="b0undary", asker="Ada"
        )
        run = RunRow(
            id=new_id(), entry_key=new_id(), conversation_id=conversation_id, origin=source, brief=asked
        )
        await self.library.journal.begin(run)
        return run

    async def look(self, look: Look, here: Source = HERE) -> Sheet:
        return await self.lookup.open(look, here, nowhere)

    async def show(self, wanted: str, here: Source = HERE) -> Sheet:
        return await self.lookup.answer(SHOW, {"answer": wanted}, here, nowhere)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_library(tmp_path) as library:
        yield Room(open_lookup(library), library)


def text(sheet: Sheet) -> str:
    return render(sheet.message)


def choice(sheet: Sheet, label: str) -> Choice:
    return next(each for each in sheet.choices if each.label == label)


async def test_pages_turn_both_ways(room: Room) -> None:
    """By what their buttons say; the first page has nothing newer, the last nothing older."""
    for number in range(5):
        await room.leave(f"Answer {number}", at=NOW + timedelta(minutes=number))
    first = await room.lookup.answer(HISTORY, {"count": 2}, HERE, nowhere)
    assert [word in text(first) for word in ("Answer 4", "Answer 3", "Answer 2")] == [True, True, False]
    second = await room.lookup.press(choice(first, "Older").about, HERE, nowhere)
    third = await room.lookup.press(choice(second, "Older").about, HERE, nowhere)
    assert "Answer 0" in text(third)
    assert [each.label for each in third.choices] == ["Open 1", "Newer", "Share here"]
    back = await room.lookup.press(choice(third, "Newer").about, HERE, nowhere)
    assert text(back) == text(second)
    front = await room.lookup.press(choice(back, "Newer").about, HERE, nowhere)
    assert front.message == first.message


async def test_an_answer_is_found_by_its_id_and_by_any_words(room: Room) -> None:
    """Several that fit equally well are listed, to choose from; those that fit less aren't."""
    one, other = await room.leave("Shard or scale"), await room.leave("Costs of sharding")
    await room.leave("Shardless databases")
    assert "3 results" in text(await room.lookup.answer(SEARCH, {"words": "tenant"}, HERE, nowhere))
    for wanted in (one, one.upper(), one[:13], "scale", "or SHARD", "scale please", "sca"):
        assert text(await room.show(wanted)).startswith("# Shard or scale\n\n**Asked by Ada.**")
    listed = await room.show("costs scale")
    assert [each.label for each in listed.choices] == ["Open 1", "Open 2"]
    assert text(listed).startswith("## 2 answers fit. Pick one, or type more words.\n\n**1. ")
    assert text(listed).count("Shard by tenant.") == 2
    shown = {(await room.lookup.press(each.about, HERE, nowhere)).message for each in listed.choices}
    assert shown == {(await room.show(each)).message for each in (one, other)}


async def test_answers_are_proposed_by_any_word(room: Room) -> None:
    """The best first, then what fits less; the newest where nothing is typed."""
    scale = await room.leave("Shard or scale")
    costs = await room.leave("Costs of sharding", at=NOW + timedelta(minutes=1))
    for typed, best in {
        "": [costs, scale],
        "sharding": [costs],
        "cost": [costs],
        "sca": [scale],
        "shardin": [costs],  # longer than its stem
        "scale of shardi": [costs],
    }.items():
        assert [row.id for row in await room.lookup.proposals(typed, HERE)][: len(best)] == best


async def test_which_of_several_to_delete_is_asked(room: Room) -> None:
    """Each has a button that asks once more; nothing is deleted before."""
    ids = {await room.leave("Shard"), await room.leave("Shard")}
    asked = await room.lookup.ask_to_forget({"what": "shard"}, HERE, nowhere, is_admin=False)
    assert [(each.label, each.verb) for each in asked.choices] == [
        ("Delete 1", "ask"),
        ("Delete 2", "ask"),
    ]
    assert {each.about for each in asked.choices} == ids
    given: Given = {"what": asked.choices[0].about}
    once_more = await room.lookup.ask_to_forget(given, HERE, nowhere, is_admin=False)
    assert [(each.label, each.verb) for each in once_more.choices] == [
        ("Delete", "forget"),
        ("Cancel", "cancel"),
    ]
    assert len((await room.library.store.listing()).documents) == 2


async def test_the_statistics_are_the_channels(room: Room) -> None:
    """Over 30 days where nothing else is said."""
    await room.leave(at=datetime.now(NOW.tzinfo) - timedelta(days=20))
    assert "last 30 days\n\n1 answer, " in text(await room.lookup.answer(STATS, {}, HERE, nowhere))
    ten = await room.lookup.answer(STATS, {"days": 10}, HERE, nowhere)
    assert "Nothing was asked here in this period." in text(ten)


@pytest.mark.parametrize("words", [" ", "\ud800", "x" * 76, "\U0001f600" * 38])
async def test_words_too_long_for_a_button_are_refused(room: Room, words: str) -> None:
    """Before anything is searched."""
    with pytest.raises(Refusal, match=r"no words|more than 75 characters"):
        await room.lookup.answer(SEARCH, {"words": words}, HERE, nowhere)


def looks(conversation_id: str, at: str) -> Iterator[Look]:
    """Yield every look that a button or command can ask for."""
    yield HistoryPage(10)
    yield HistoryPage(10, before=Cursor("~", "~"))
    yield HistoryPage(10, before=Cursor(at, f"{conversation_id}~"))
    yield HistoryPage(10, after=Cursor("", ""))
    yield Search("shard")
    yield Search(f"scope {conversation_id} OR shard")
    yield Answer(conversation_id)
    yield Answer(conversation_id, 0)
    yield Detail(conversation_id, 0, 1)
    yield Figures(3650)


async def said(answering: Awaitable[Sheet]) -> str:
    """Return all that somebody is told: text and buttons, or why not."""
    try:
        sheet = await answering
    except Refusal as refusal:
        return str(refusal)
    return f"{text(sheet)}{[(each.label, each.about) for each in sheet.choices]}"


@pytest.mark.parametrize("place", ELSEWHERE)
async def test_nothing_of_a_channel_reaches_another(room: Room, place: str) -> None:
    """Every command, button, id, prefix and proposal says just what it says where nothing exists."""
    there = ELSEWHERE[place]
    secret, unknown = await room.leave("Secret plan"), new_id()
    at = timestamp(NOW)
    for mine, theirs in zip(looks(secret, at), looks(unknown, at), strict=True):
        heard = await said(room.lookup.press(str(mine), there, nowhere))
        assert "Secret" not in heard
        assert "tenant" not in heard
        other = await said(room.lookup.press(str(theirs), there, nowhere))
        assert heard == other.replace(unknown, secret)
    for wanted in (secret, secret[:8], "Secret plan", "plan", "pla", "should we", "tenant", "%", "*"):
        with pytest.raises(Refusal, match=NO_SUCH):
            await room.show(wanted, there)
        assert await room.lookup.proposals(wanted, there) == []
    assert await room.lookup.proposals("", there) == []
    with pytest.raises(Refusal, match=NO_SUCH):
        await room.lookup.transcript(secret, there)
    given: dict[str, Given] = {SEARCH.name: {"words": "secret"}, SHOW.name: {"answer": secret}}
    for command in PAST:
        options = given.get(command.name, {})
        heard = await said(room.lookup.answer(command, options, there, nowhere))
        assert not {"Secret", "tenant", secret[:8]} & {*heard.split()}


@pytest.mark.parametrize("about", ["", "x", "answer:x:0", "answer:../../x:", "reviews:x:0"])
async def test_a_forged_button_is_refused_in_the_same_words(room: Room, about: str) -> None:
    """Whatever it says."""
    await room.leave()
    assert await said(room.lookup.press(about, HERE, nowhere)) == NO_SUCH


async def test_a_strange_cursor_shows_the_channels_own_or_nothing(room: Room) -> None:
    """It can lead nowhere else."""
    await room.leave()
    assert "There is nothing here." in await said(room.lookup.press("history:5:<", HERE, nowhere))
    assert "Shard or scale" in await said(room.lookup.press("history:5:>", HERE, nowhere))


async def test_a_damaged_document_is_said_without_its_place(room: Room, tmp_path: Path) -> None:
    """And one that is gone is as if it had never been."""
    damaged, gone = await room.leave(), await room.leave()
    (tmp_path / "conversations" / f"{damaged}.json").write_text("{")
    (tmp_path / "conversations" / f"{gone}.json").unlink()
    with pytest.raises(Refusal, match="The conversation's file can't be used") as caught:
        await room.look(Answer(damaged))
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(Refusal, match=NO_SUCH):
        await room.look(Answer(gone))


async def nothing_runs(run_ids: Sequence[str]) -> None:
    """Halt no run."""
    del run_ids


async def test_the_asker_can_delete_an_answer_after_confirming(room: Room) -> None:
    """First it is said what goes, then it goes; a second press finds nothing."""
    mine, other = await room.leave("Mine"), await room.leave("Other")
    asked = await room.lookup.ask_to_forget({"what": mine[:9]}, HERE, nowhere, is_admin=False)
    assert text(asked).startswith("## Delete “Mine”?\n\n")
    assert "That is 1 conversation and 1 run: questions, answers, and everything" in text(asked)
    delete, _ = asked.choices
    assert (delete.verb, delete.about) == ("forget", mine)
    said = await room.lookup.forget(mine, HERE, nothing_runs, is_admin=False)
    assert said.what == "“Mine”"
    with pytest.raises(Refusal, match=NO_SUCH):
        await room.lookup.forget(mine, HERE, nothing_runs, is_admin=False)
    assert [row.id for row in await room.lookup.proposals("", HERE)] == [other]


async def test_nobody_deletes_what_isnt_theirs(room: Room) -> None:
    """Neither asking nor pressing; an admin may; elsewhere it doesn't exist."""
    mine = await room.leave("Mine")
    bob = HERE.model_copy(update={"user": "200"})
    for what in (mine, "channel"):
        with pytest.raises(Refusal, match="Only"):
            await room.lookup.ask_to_forget({"what": what}, bob, nowhere, is_admin=False)
        with pytest.raises(Refusal, match="Only"):
            await room.lookup.forget(what, bob, nothing_runs, is_admin=False)
    with pytest.raises(Refusal, match="nothing to delete"):
        await room.lookup.ask_to_forget({"what": "me"}, bob, nowhere, is_admin=True)
    for there in ELSEWHERE.values():
        with pytest.raises(Refusal, match=NO_SUCH):
            await room.lookup.forget(mine, there, nothing_runs, is_admin=True)
        with pytest.raises(Refusal, match=NO_SUCH):
            await room.lookup.ask_to_forget({"what": "Mine"}, there, nowhere, is_admin=True)
        with pytest.raises(Refusal, match="nothing to delete"):
            await room.lookup.forget("channel", there, nothing_runs, is_admin=True)
    forgotten = await room.lookup.forget("channel", bob, nothing_runs, is_admin=True)
    assert forgotten.what == "this channel's whole history"
    assert await room.lookup.proposals("", HERE) == []


async def test_a_person_can_have_all_deleted_that_they_asked(room: Room) -> None:
    """On Discord in every server."""
    await room.leave(source=HERE)
    await room.leave(source=ELSEWHERE["another workspace"])
    asked = await room.lookup.ask_to_forget({"what": "me"}, HERE, nowhere, is_admin=False)
    assert "2 conversations and 2 runs" in text(asked)
    await room.lookup.forget("me", HERE, nothing_runs, is_admin=False)
    assert await room.lookup.proposals("", HERE) == []


async def test_an_admin_can_have_all_deleted_that_somebody_asked(room: Room) -> None:
    """Where the admin is one, and nowhere else."""
    admin = HERE.model_copy(update={"user": "200", "channel": "11"})
    await room.leave("Here")
    there = await room.leave("There", source=ELSEWHERE["another workspace"])
    asked = await room.lookup.ask_to_forget({"what": "<@100>"}, admin, nowhere, is_admin=True)
    assert text(asked).startswith(
        "## Delete everything Ada asked on this server?\n\nThat is 1 conversation and 1 run:"
    )
    delete, _ = asked.choices
    said = await room.lookup.forget(delete.about, admin, nothing_runs, is_admin=True)
    assert said.what == "everything Ada asked on this server"
    assert await room.lookup.proposals("", HERE) == []
    left = await room.lookup.proposals("", ELSEWHERE["another workspace"])
    assert [row.id for row in left] == [there]
    with pytest.raises(Refusal, match="nothing to delete"):
        await room.lookup.forget(delete.about, admin, nothing_runs, is_admin=True)


async def test_only_an_admin_has_deleted_what_somebody_else_asked(room: Room) -> None:
    """Whoever names themselves means themselves."""
    await room.leave("Mine")
    bob = HERE.model_copy(update={"user": "200"})
    refusal = "Only an admin can delete everything somebody else asked."
    with pytest.raises(Refusal, match=refusal):
        await room.lookup.ask_to_forget({"what": "<@!100>"}, bob, nowhere, is_admin=False)
    with pytest.raises(Refusal, match=refusal):
        await room.lookup.forget("user:100", bob, nothing_runs, is_admin=False)
    own = await room.lookup.ask_to_forget({"what": "<@100|ada>"}, HERE, nowhere, is_admin=False)
    assert "Delete everything you asked?" in text(own)


async def test_an_answer_given_while_its_run_is_stopped_goes_too(room: Room) -> None:
    """What is deleted is looked up again when everything is over."""
    run = await room.run(new_id())

    async def too_late(run_ids: Sequence[str]) -> None:
        assert run_ids == (run.id,)
        await room.leave("Just in time", conversation_id=run.conversation_id)

    await room.lookup.forget("me", HERE, too_late, is_admin=False)
    assert await room.lookup.proposals("", HERE) == []
    assert (await room.library.store.listing()).documents == {}
