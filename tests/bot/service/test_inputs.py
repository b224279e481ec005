"""What comes with a question beside its words: who is shown it, how long it is kept, what is said of it."""

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import Unreachable
from bot.service.accept import Question
from bot.service.inputs import SHARE
from bot.service.runs import Runs, Sources
from bot.transcript.markdown import to_markdown
from council.brief import Discussion, SentFile, ThreadMessage
from council.calls import Call
from council.document.conversation import FileRecord, UserMessage
from council.events import FilesRead, RunFailed
from council.models.costs import UNKNOWN_WINDOW
from council.profile import Profile
from storage.journal.rows import RunRow
from storage.scope import Scope
from tests.bot.inputs.pdfs import box, lines, pdf
from tests.bot.inputs.pictures import plain
from tests.bot.inputs.test_fetcher import online
from tests.bot.service.test_runs import TEAM, opened, question
from tests.council.scripted import FOUR, ScriptedCouncil, profile

PLAN = pdf([lines("Load: 3 TB"), lines("Shards: 2"), box()])
FILES = {"plan": PLAN, "shot": plain(), "locked": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "notes": b"3 TB"}


async def fetch(file: SentFile) -> bytes:
    """Hand over a file by its address."""
    try:
        return FILES[file.address]
    except KeyError:
        raise Unreachable("gone") from None


def seeing(*places: int, chairman: bool = False) -> Profile:
    """Return four members, of whom these see pictures."""
    seats = profile()
    members = [
        member.model_copy(update={"vision": place in places})
        for place, member in enumerate(seats.members)
    ]
    chair = seats.chairman.model_copy(update={"vision": chairman})
    return profile(members=tuple(members), chairman=chair)


def asking(*names: str, key: str = "event-1", **asked: object) -> Question:
    given, _ = question(key)
    sent = tuple(SentFile(name=f"{name}.x", address=name, size=9) for name in names)
    values = {"sent": sent, **asked}
    return Question(
        **{name: getattr(given, name) for name in ("text", "source", "entry_key", "standing")} | values  # pyright: ignore[reportArgumentType]
    )


async def carried_out(runs: Runs, council: ScriptedCouncil, asked: Question, seats: Profile) -> RunRow:
    run = (await runs.recorder.record(asked, seats)).run
    await runs.carry_out(run, council.events.append, None, Sources(fetch=fetch))
    return run


def shown(calls: list[Call]) -> dict[str, int]:
    """Count the pictures that each call hands over."""
    return {call.step: len(call.images) for call in calls if call.images}


async def test_pictures_go_to_those_who_see(tmp_path: Path) -> None:
    """In every stage but the title; the others read what it is, and the document says who saw it."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):
        run = await carried_out(runs, council, asking("plan", "shot"), seeing(0))
        first = FOUR[0]
        assert shown(council.calls) == {
            f"{stage}.1:{first}": 2 for stage in ("stage1", "stage2", "stage2_5")
        }
        assert "(picture 2 of those above, 1200 \u00d7 800)" in council.prompt(f"stage1.1:{first}")
        assert "(a picture, 1200 \u00d7 800, that you can't see)" in council.prompt(
            f"stage1.1:{FOUR[1]}"
        )
        assert "[p. 3] (picture 1 of those above, 1212 \u00d7 1568)" in council.prompt(
            f"stage1.1:{first}"
        )
        [call] = [call for call in council.calls if call.step == f"stage1.1:{first}"]
        assert base64.b64decode(call.images[1])[:4] == b"\x89PNG"
        conversation = await library.store.load(run.conversation_id)
        asked = conversation.messages[0]
        assert isinstance(asked, UserMessage)
        assert [(each.name, each.kind, each.pages, each.seen_by) for each in asked.files] == [
            ("plan.x", "pdf", 3, [first]),
            ("shot.x", "picture", None, [first]),
        ]
        [read] = [event for event in council.events if isinstance(event, FilesRead)]
        assert read.files == tuple(asked.files)
        assert "Read plan.x, 3 pages (page 3 holds only a picture, seen by" in to_markdown(conversation)


async def test_a_chairman_that_sees_is_shown_them_too(tmp_path: Path) -> None:
    """Beside the answers."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, _):
        await carried_out(runs, council, asking("shot"), seeing(chairman=True))
    assert [step.partition(".")[0] for step in shown(council.calls)] == ["stage3"]


async def test_pictures_that_nobody_sees_are_named(tmp_path: Path) -> None:
    """The card says so; where they are the whole question, nobody is asked."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, _):
        await carried_out(runs, council, asking("shot"), seeing())
        [read] = [event for event in council.events if isinstance(event, FilesRead)]
        assert (read.files[0].seen_by, read.files[0].omitted) == (
            [],
            "no member of this council sees pictures",
        )
        council.calls.clear()
        await carried_out(runs, council, asking("shot", key="2", needs_files=True), seeing())
        assert council.calls == []
        failed = council.events[-1]
        assert isinstance(failed, RunFailed)
        assert failed.message == (
            "Nothing that came with the question can be read, so nobody was asked and nothing paid. "
            "shot.x: no member of this council sees pictures."
        )


async def test_a_run_that_was_killed_while_it_read_reads_again(tmp_path: Path) -> None:
    """Nobody was asked before, so nothing was paid for."""
    council, fetching = ScriptedCouncil(), asyncio.Event()

    async def hanging(file: SentFile) -> bytes:
        del file  # it never arrives
        fetching.set()
        return await asyncio.Future[bytes]()

    async with opened(tmp_path, council) as (runs, _):
        run = (await runs.recorder.record(asking("plan"), profile())).run
        going = asyncio.create_task(
            runs.carry_out(run, council.events.append, None, Sources(fetch=hanging))
        )
        await fetching.wait()
        going.cancel()
        await asyncio.wait({going})
    assert council.calls == []
    again = ScriptedCouncil()
    async with opened(tmp_path, again) as (runs, library):
        left = await library.journal.get(run.id)
        assert left is not None
        assert [file.address for file in left.brief.sent] == ["plan"]
        await runs.carry_out(left, again.events.append, None, Sources(fetch=fetch))
    assert "[p. 1]\nLoad: 3 TB" in again.prompt(f"stage1.1:{FOUR[0]}")


async def test_a_run_that_was_killed_goes_on_with_what_it_read(tmp_path: Path) -> None:
    """Nothing is fetched or read again, and its pictures are there."""
    council = ScriptedCouncil(held={f"stage2.1:{FOUR[0]}"})
    async with opened(tmp_path, council) as (runs, library):
        run = (await runs.recorder.record(asking("plan", "shot"), seeing(0, 1))).run
        going = asyncio.create_task(
            runs.carry_out(run, council.events.append, None, Sources(fetch=fetch))
        )
        await council.until_called(f"stage2.1:{FOUR[0]}")
        going.cancel()
        await asyncio.wait({going})
        before = await library.journal.get(run.id)

    async def nothing(file: SentFile) -> bytes:
        raise AssertionError(file)

    again = ScriptedCouncil()
    async with opened(tmp_path, again) as (runs, library):
        left = await library.journal.get(run.id)
        assert left is not None
        assert before == left
        assert left.brief.sent == ()
        await runs.carry_out(left, again.events.append, None, Sources(fetch=nothing))
    assert shown(again.calls)[f"stage2.1:{FOUR[0]}"] == 2
    assert f"stage1.1:{FOUR[0]}" not in shown(again.calls)


async def test_a_follow_up_has_the_files_of_the_conversation(tmp_path: Path) -> None:
    """Text and pictures; the card says which are read again."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, _):
        run = await carried_out(runs, council, asking("plan", "shot"), seeing(0))
        council.calls.clear()
        council.events.clear()
        asked = asking(key="2", conversation_id=run.conversation_id)
        await carried_out(runs, council, asked, seeing(0))
    assert "Earlier attachment plan.x:\n\n[p. 1]\nLoad: 3 TB" in council.prompt(f"stage1.1:{FOUR[1]}")
    assert shown(council.calls)[f"stage1.1:{FOUR[0]}"] == 2
    [read] = [event for event in council.events if isinstance(event, FilesRead)]
    assert (read.files, read.earlier) == ((), ("plan.x", "shot.x"))


async def test_another_conversation_keeps_its_own_picture(tmp_path: Path) -> None:
    """Forgetting one with the same file takes nothing of the other's."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):
        one = await carried_out(runs, council, asking("shot"), seeing(0))
        other = await carried_out(runs, council, asking("shot", key="2"), seeing(0))
        await library.forgetting.forget(
            await library.forgetting.select.conversation(Scope.of(TEAM), one.conversation_id), "U1"
        )
        await library.forgetting.scrub(large=True)
        kept = await library.database.read("SELECT run_id, sha256 FROM pictures")
        assert [row["run_id"] for row in kept] == [other.id]


async def test_files_that_do_not_fit_the_smallest_window_are_cut(tmp_path: Path) -> None:
    """What is left out is named; the rest of the window is for answers."""
    FILES["long"] = b"word " * 30_000
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, _):
        await carried_out(runs, council, asking("long", "notes"), profile())
    [read] = [event for event in council.events if isinstance(event, FilesRead)]
    room = int(UNKNOWN_WINDOW * SHARE) * 4
    assert read.files[0].characters is not None
    assert room - 100 < read.files[0].characters <= room
    assert read.files[0].omitted == f"only the first {read.files[0].characters:,} characters"
    assert read.files[1] == FileRecord(
        name="notes.x",
        kind="text",
        sha256=read.files[1].sha256,
        omitted="no room left beside the other files",
    )


async def test_files_of_a_thread_are_read_with_it(tmp_path: Path) -> None:
    """Each with its message; those that can't be read are counted."""
    council = ScriptedCouncil()
    sent = tuple(SentFile(name=f"{name}.x", address=name, size=9) for name in ("plan", "locked"))
    message = ThreadMessage(author="U2", name="Bob", text="See here.", sent=sent)
    context = Discussion(until="9", messages=(message,))

    async def read(brief: object, room: int) -> Discussion:
        del brief, room
        return context

    async with opened(tmp_path, council) as (runs, library):
        run = (await runs.recorder.record(asking(context=Discussion(until="9")), seeing(0))).run
        await runs.carry_out(run, council.events.append, None, Sources(read, fetch))
        stored = await library.journal.get(run.id)
    assert stored is not None
    assert stored.brief.context is not None
    assert stored.brief.context.files_left_out == 1
    prompt = council.prompt(f"stage1.1:{FOUR[1]}")
    assert "File plan.x, sent with the message above:\n\n[p. 1]\nLoad: 3 TB" in prompt
    assert shown(council.calls)[f"stage1.1:{FOUR[0]}"] == 1


async def test_a_picture_that_is_gone_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgotten with the question that it came with: the call goes on without it."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):

        async def forgotten(run: RunRow, wanted: object) -> dict[str, str]:
            del run, wanted
            return {}

        monkeypatch.setattr(library.journal, "pictures", forgotten)
        await carried_out(runs, council, asking("shot"), seeing(0))
    [call] = [call for call in council.calls if call.step == f"stage1.1:{FOUR[0]}"]
    assert (len(call.pictures), call.images) == (1, ())


LINKED = "Is https://example.org/post right about https://example.org/gone?"


async def linked(folder: Path, text: str, seats: Profile, **asked: object) -> ScriptedCouncil:
    """Ask with links, the internet being one local server."""
    council = ScriptedCouncil()
    async with opened(folder, council) as (runs, _), online() as (_, fetcher):
        given = replace(asking(), text=text, **asked)  # pyright: ignore[reportArgumentType]
        await carried_out(replace(runs, fetcher=fetcher), council, given, seats)
    return council


def links_read(council: ScriptedCouncil) -> list[tuple[str, int | None, str | None]]:
    return [
        (link.url, link.words, link.omitted)
        for event in council.events
        if isinstance(event, FilesRead)
        for link in event.links
    ]


async def test_links_are_read_where_they_are_allowed(tmp_path: Path) -> None:
    """What isn't read is named, to people and to the members."""
    council = await linked(tmp_path, LINKED, profile(links=True))
    assert links_read(council) == [
        ("https://example.org/post", 17, None),
        ("https://example.org/gone", None, "the site answers with status 404"),
    ]
    prompt = council.prompt(f"stage1.1:{FOUR[0]}")
    assert "Page https://example.org/post:\n\n" in prompt
    assert "Two shards hold three terabytes" in prompt
    assert "(not read: the site answers with status 404)" in prompt


async def test_links_are_off_until_somebody_allows_them(tmp_path: Path) -> None:
    """Nothing is asked; at the terminal, naming a page is consent to that one."""
    off = "links aren't read here; an admin can allow them"
    council = await linked(tmp_path / "off", LINKED, profile())
    assert [why for *_, why in links_read(council)] == [off, off]
    given = ("https://example.org/plain",)
    council = await linked(tmp_path / "named", LINKED, profile(), links=given)
    assert links_read(council)[0] == (*given, 2, None)
    assert [why for *_, why in links_read(council)[1:]] == [off, off]


async def test_of_a_thread_only_links_that_the_question_names_are_read(tmp_path: Path) -> None:
    """By their site; and three at most."""
    messages = (
        ThreadMessage(author="U2", name="Bob", text="https://example.org/post https://other.example/x"),
    )
    context = Discussion(until="9", messages=messages)
    council = ScriptedCouncil()

    async def read(brief: object, room: int) -> Discussion:
        del brief, room
        return context

    async with opened(tmp_path, council) as (runs, _), online() as (_, fetcher):
        given = replace(asking(context=Discussion(until="9")), text="Is the example.org post right?")
        run = (await runs.recorder.record(given, profile(links=True))).run
        await replace(runs, fetcher=fetcher).carry_out(
            run, council.events.append, None, Sources(read, fetch)
        )
    assert [url for url, *_ in links_read(council)] == ["https://example.org/post"]
