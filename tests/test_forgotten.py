"""A word that is asked, answered, reviewed, corrected and then forgotten: it is nowhere any more."""

import io
import logging
import subprocess
from collections.abc import Generator
from pathlib import Path

import orjson
import pytest
import structlog

from bot.app import open_lookup
from bot.config import logs
from bot.errors import Refusal
from bot.render.markdown import render
from bot.view.wording.past import NO_SUCH
from council.brief import Discussion, ThreadMessage
from council.calls import Call
from council.document.conversation import AssistantMessage, UserMessage
from storage.errors import ConversationNotFound
from storage.scope import Scope
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import TEAM, office
from tests.council.scripted import ScriptedCouncil, ballot
from tests.test_bad_disks import harm
from tests.test_program import asked

WORD = "zanzibarquux"
BOB = TEAM.model_copy(update={"user": "U2"})


def holding(folder: Path) -> set[str]:
    """Name the files under a folder that hold the word, in their name or in their bytes."""
    return {
        path.name
        for path in folder.rglob("*")
        if path.is_file() and WORD.encode() in path.name.encode() + path.read_bytes()
    }


def talkative() -> ScriptedCouncil:
    """Have every model say the word in every stage, where its question holds it."""

    def say(call: Call) -> str:
        prompt = "".join(message["content"] for message in call.messages)
        word = f" {WORD}" if WORD in prompt else ""
        stage = call.step.partition(".")[0]
        said = ballot(call) if stage == "stage2" else f"{stage} of {call.member.name}, at length"
        return f"As to{word}: {said}"

    return ScriptedCouncil(
        script=dict.fromkeys(("stage1", "stage2", "stage2_5", "stage3", "title"), say)
    )


@pytest.fixture
def log() -> Generator[io.StringIO]:
    """Log as `council run` does, into a string."""
    before = structlog.get_config()
    stream = io.StringIO()
    logs.configure(level=logging.INFO, secrets=[], stream=stream)
    yield stream
    structlog.configure(**before)


async def test_a_forgotten_answer_is_in_no_file_search_export_log_or_figure(
    tmp_path: Path, log: io.StringIO
) -> None:
    """From a question at the dispatcher to its deletion in chat; what others asked stays as it was."""
    async with office(tmp_path, talkative()) as place:
        lookup = open_lookup(place.library)
        kept = await place.see(RecordingVenue(), "1", text="Buy a bigger machine?", source=BOB)
        run = await place.see(RecordingVenue(), "2", text=f"Sell the {WORD} now?")
        document = await place.library.store.content(run.conversation_id)
        assert document.count(WORD.encode()) > 20
        aside = tmp_path / "conversations" / f"{run.conversation_id}.json.broken-20260101"
        aside.write_bytes(document)
        assert {f"{run.conversation_id}.json", aside.name} < holding(tmp_path)
        scope = Scope.of(TEAM)
        assert (await place.library.past_answers.search(scope, WORD)).found == 1

        what = {"what": f"sell the {WORD}"}
        button, _ = (await lookup.ask_to_forget(what, TEAM, lambda _: None, is_admin=False)).choices
        await lookup.forget(button.about, TEAM, place.dispatcher.tasks.halt, is_admin=False)
        await lookup.scrub()

        assert holding(tmp_path) == set()
        assert (await place.library.past_answers.search(scope, WORD)).found == 0
        with pytest.raises(ConversationNotFound):
            await place.library.store.load(run.conversation_id)
        with pytest.raises(Refusal, match=NO_SUCH):
            await lookup.transcript(run.conversation_id, TEAM)
        assert await place.library.journal.get(run.id) is None
        left = await place.library.past_answers.statistics(scope)
        assert (left.answered, {member.runs for member in left.members}) == (1, {1})
        assert (await place.library.forgetting.select.user("slack", "U1")).is_empty
        [row] = (await place.library.past_answers.history(scope)).rows
        assert (row.id, row.user) == (kept.conversation_id, "U2")
        assert (await place.library.index.check(place.library.store)).consistent
    assert WORD not in log.getvalue()
    [line] = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    audit = orjson.loads(line)
    assert audit.pop("at") > "2026"
    assert audit == {
        "forgot": "conversation",
        "by": "slack:U1",
        "conversations": 1,
        "shared_conversations": 0,
        "heard_conversations": 0,
        "voted_conversations": 0,
        "runs": 1,
    }


@pytest.mark.parametrize("stage", ["stage1.1:openai/gpt-5", "stage3.1:chair/man:chairman"])
async def test_a_run_that_is_forgotten_while_it_runs_leaves_nothing(
    tmp_path: Path, log: io.StringIO, stage: str
) -> None:
    """Its calls are given up, and no answer is written after it is gone."""
    council = talkative()
    council.held.add(stage)
    async with office(tmp_path, council) as place:
        lookup = open_lookup(place.library)
        run = await place.ask(text=f"Sell the {WORD} now?")
        assert run is not None
        place.dispatcher.tasks.begin(run, RecordingVenue())
        await council.until_called(stage)
        await lookup.forget("me", TEAM, place.dispatcher.tasks.halt, is_admin=False)
        await place.dispatcher.tasks.settled()
        await lookup.scrub()
        assert holding(tmp_path) == set()
        assert await place.library.journal.get(run.id) is None
        assert (await place.library.store.listing()).documents == {}
    assert WORD not in log.getvalue()


async def test_what_is_forgotten_in_the_terminals_channel_is_gone_from_the_folder(
    tmp_path: Path,
) -> None:
    """The process as people start it; even a damaged database that was set aside goes."""
    async with asked(tmp_path) as (council, _):
        assert (await council("ask", f"Sell the {WORD} now?")).code == 0
        conversation = council.document().id
        harm(tmp_path / "data" / "council.db")
        process = await council.start("chat", stdin=subprocess.PIPE)
        typed = f"/council-search {WORD}\n/council-forget {conversation[:8]}\nDelete\n"
        out, err = await process.communicate(f"{typed}/council-search {WORD}\n".encode())
    assert process.returncode == 0
    assert b"database_was_damaged" in err
    assert WORD.encode() not in err
    text = out.decode()
    places = [text.index(said) for said in ("1 result", "This can't be undone.", "Deleted \u201c")]
    assert places == sorted(places)
    assert text.rstrip().endswith("No answer in this channel has all these words.")
    assert holding(tmp_path / "data") == set()
    [line] = (tmp_path / "data" / "audit.jsonl").read_bytes().splitlines()
    assert orjson.loads(line)["forgot"] == "conversation"


async def test_what_somebody_said_of_an_answer_is_forgotten_with_the_rest(
    tmp_path: Path, log: io.StringIO
) -> None:
    """From an answer that somebody else asked for; the answer and others' votes stay."""
    async with office(tmp_path, ScriptedCouncil()) as place:
        lookup = open_lookup(place.library)
        run = await place.see(RecordingVenue(), text="What now?", source=BOB)
        vote = place.dispatcher.vote
        await vote(run, TEAM, helpful=False, reason=f"It says nothing of {WORD}.")
        await vote(run, BOB, helpful=True)
        assert holding(tmp_path) == {f"{run.conversation_id}.json"}

        sheet = await lookup.ask_to_forget({"what": "me"}, TEAM, lambda _: None, is_admin=False)
        assert "1 vote on other people's answers will be deleted." in render(sheet.message)
        button, _ = sheet.choices
        await lookup.forget(button.about, TEAM, place.dispatcher.tasks.halt, is_admin=False)
        await lookup.scrub()

        assert holding(tmp_path) == set()
        _, answer = (await place.library.store.load(run.conversation_id)).messages
        assert isinstance(answer, AssistantMessage)
        assert [(vote.voter, vote.helpful) for vote in answer.votes] == [("U2", True)]
        [count] = (await place.library.past_answers.statistics(Scope.of(BOB))).by_profile
        assert (count.helpful, count.unhelpful) == (1, 0)
    assert WORD not in log.getvalue()


async def test_what_somebody_wrote_in_a_thread_is_forgotten_with_the_rest(
    tmp_path: Path, log: io.StringIO
) -> None:
    """From an answer that somebody else asked for; the answer itself stays."""
    said = ThreadMessage(author="U1", name="Ada", text=f"The {WORD} is for sale.")
    other = ThreadMessage(author="U3", name="Cleo", text="I know.")
    venue = RecordingVenue(thread=Discussion(until="9", messages=(said, other)))
    async with office(tmp_path, ScriptedCouncil()) as place:
        lookup = open_lookup(place.library)
        asked = Discussion(until="9")
        source = BOB.model_copy(update={"thread": "1.0"})
        run = await place.see(venue, text="What now?", source=source, context=asked)
        assert all(WORD in place.council.prompt(call.step) for call in place.council.calls)
        assert {f"{run.conversation_id}.json", "council.db-wal"} <= holding(tmp_path)
        assert all(WORD not in text for text in venue.texts)

        sheet = await lookup.ask_to_forget({"what": "me"}, TEAM, lambda _: None, is_admin=False)
        shown = render(sheet.message)
        assert "Thread messages that were read for 1 question asked by others will be deleted." in shown
        assert "conversation" not in shown
        button, _ = sheet.choices
        await lookup.forget(button.about, TEAM, place.dispatcher.tasks.halt, is_admin=False)
        await lookup.scrub()

        assert holding(tmp_path) == set()
        question, answer = (await place.library.store.load(run.conversation_id)).messages
        assert isinstance(question, UserMessage)
        assert question.context == Discussion(until="9", messages=(other,))
        assert answer.role == "assistant"
        row = await place.library.journal.get(run.id)
        assert row is not None
        assert row.brief.context == question.context
    assert WORD not in log.getvalue()
