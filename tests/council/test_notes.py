"""The chairman's notes are read where they are in the requested form, and never shown as answer."""

import asyncio
from collections.abc import Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from bot.view.run import RunView, fold
from council.calls import Call, MemorySteps, Reply
from council.document.results import ChairNotes
from council.errors import Failure
from council.events import AnswerStreamed, MemberRetried
from council.notes import LONGEST, AnswerStream, read_notes
from council.usage import Usage
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile, twins
from tests.pairs import data, rows

MARK = "5ca1ab1e0ddba11s"
LABELS = {"Response A": "openai/gpt-5", "Response B": "x-ai/grok-4:free"}
ANSWER = "Shard by tenant.\n\n- It scales.\n- It hurts."
NOTES = "DISSENT: grok-4 would wait.\nASK: How many tenants are there?"
BOTH = ChairNotes(dissent="grok-4 would wait.", ask="How many tenants are there?")
WHOLE = f"{ANSWER}\n\n{MARK}\n\n{NOTES}\n"


def read(reply: str, labels: dict[str, str] = LABELS, *, truncated: bool = False) -> object:
    return read_notes(MARK, reply, labels, truncated)


def streamed(pieces: Sequence[str], mark: str | None = MARK) -> str:
    """Return what is shown of a reply that comes in pieces, without blanks."""
    stream = AnswerStream("b0undary", mark)
    return bare("".join(map(stream.feed, pieces)) + stream.rest())


def bare(text: str) -> str:
    """Return a text without blanks; some of those before a mark are shown before the mark is known."""
    return "".join(text.split())


@rows("fence", ["```\n{}\n```", "```text\n\n{}\n```\n", "~~~\n{}", "{}\n```"])
def test_notes_in_a_code_block_are_read_as_bare_ones(fence: str) -> None:
    """The block belongs to nothing, and none of it is shown."""
    reply = f"{ANSWER}\n\n{MARK}\n{fence.format(NOTES)}"
    assert read(reply) == (ANSWER, BOTH)
    assert streamed([*reply]) == bare(ANSWER)


@rows(
    "closing",
    [
        f"{NOTES}\nONLY: none",
        f"- {NOTES.replace(chr(10), chr(10) + '- ')}\n- CHANGED: None of the claims.",
        f"**ONLY:** nobody\n\n{NOTES}\n",
        f"### Notes:\n{NOTES}\nCHANGED: nothing",
        "DISSENT:\n  - grok-4 would wait.\n\nCHANGED: nothing\n\nASK: How many tenants are there?",
    ],
)
def test_notes_without_their_mark_are_told_by_three_keywords(closing: str) -> None:
    """Small models keep the keywords and forget the mark."""
    assert read(f"{ANSWER}\n\n{closing}") == (ANSWER, BOTH)


@rows(
    "reply",
    [
        f"{ANSWER}\n\n{NOTES}",
        f"{ANSWER}\n\n{NOTES}\nONLY: none\n\nSo shard by tenant.",
        f"{NOTES}\nONLY: none",
        f"{ANSWER}\n\n{NOTES}\nONLY: {'long ' * 1000}",
    ],
)
def test_without_the_mark_anything_else_is_answer(reply: str) -> None:
    """Two keywords, text below them, nothing above them, or too much."""
    assert read(reply) == (reply, None)


@rows("line", [f"**{MARK}**", f"[{MARK}]", f"  `{MARK.upper()}`:", f"--- {MARK} ---", f"{MARK}\r"])
def test_the_marks_line_may_be_decorated(line: str) -> None:
    """Models put bold, brackets and rules around what should be alone on a line."""
    assert read(f"{ANSWER}\n{line}\n{NOTES}") == (ANSWER, BOTH)


@rows(
    "reply",
    [
        ANSWER,
        f"{ANSWER}\n\n{NOTES}",
        f"{ANSWER}\n\nThe mark: X\n{NOTES}",
        f"{ANSWER}\n\nX\nThis is decisive.\n{NOTES}",
        f"{ANSWER}\n\nX\n{NOTES}\n\nX\nThe end.",
        f"{ANSWER}\n\nX\nDISSENTERS: grok-4.",
        f"{ANSWER}\n\nX\nonly grok-4 says so: never.",
        f"X\n{NOTES}",
        f"{ANSWER}\n\nX",
        f"{ANSWER}\n\nX\n{NOTES}{'x' * LONGEST}",
    ],
)
def test_everything_else_is_answer(reply: str) -> None:
    """Without a mark, with one inside a line, with no keyword below or no answer above; less the mark."""
    answer, notes = read_notes(MARK, reply.replace("X", MARK), LABELS, truncated=False)
    assert notes is None
    assert MARK not in answer
    assert bare(reply.replace("X", "")) == bare(answer)
    assert streamed([*reply.replace("X", MARK)]) == bare(answer)


def test_the_last_mark_counts() -> None:
    """What is between two is answer; one that only ends the closing part is not counted."""
    twice = f"{ANSWER}\n{MARK}\nONLY: of gpt-5.\n{MARK}\n{NOTES}"
    assert read(twice) == (f"{ANSWER}\nONLY: of gpt-5.", BOTH)
    assert read(f"{WHOLE}{MARK}\n") == (ANSWER, BOTH)
    assert read(f"{WHOLE}\n{MARK}\n\n```{MARK}```") == (ANSWER, BOTH)


@rows(("closing", "notes"), data(__file__, "notes_are_read_leniently_and_never_guessed"))
def test_notes_are_read_leniently_and_never_guessed(closing: str, notes: dict[str, str]) -> None:
    """Keywords may have any markup; a statement without a member and a point that is no question are left out."""
    known = ChairNotes.model_validate(notes) if notes else None
    assert read(f"{ANSWER}\n\n{MARK}\n{closing}") == (ANSWER, known)


def test_a_model_that_is_there_twice_is_named_by_its_persona() -> None:
    """The model alone could be either; half a sentence may mean the opposite."""
    labels = {
        "Response A": "openai/gpt-5#the-devils-advocate",
        "Response B": "openai/gpt-5#the-innovator",
    }
    closing = "DISSENT: The Devil\u2019s Advocate waits.\nONLY: gpt-5 saw it."
    notes = ChairNotes(dissent="The Devil\u2019s Advocate waits.")
    assert read(f"{ANSWER}\n{MARK}\n{closing}", labels) == (ANSWER, notes)
    cut = f"{ANSWER}\n\n{MARK}\n{NOTES[:-12]}"
    assert read(cut, truncated=True) == (ANSWER, ChairNotes(dissent="grok-4 would wait."))
    for length in range(1, len(MARK)):
        assert read(f"{ANSWER}\n\n{MARK[:length]}", truncated=True) == (ANSWER, None)
    assert read(f"{ANSWER}\n\nIt is an", truncated=True) == (f"{ANSWER}\n\nIt is an", None)


def test_without_a_mark_a_reply_is_all_answer() -> None:
    """So is that of a run from before there were notes."""
    assert read_notes(None, WHOLE, LABELS, truncated=False) == (WHOLE, None)
    assert streamed([*WHOLE], mark=None) == bare(WHOLE)


def test_notes_are_never_streamed_as_answer() -> None:
    """Whichever way the reply is cut into two, three or single pieces."""
    cuts = range(len(ANSWER) - 5, len(WHOLE) + 1, 3)
    splits = [
        [*WHOLE],
        *([WHOLE[:at], WHOLE[at:]] for at in range(len(WHOLE) + 1)),
        *([WHOLE[:one], WHOLE[one:two], WHOLE[two:]] for one, two in combinations(cuts, 2)),
    ]
    for pieces in splits:
        stream = AnswerStream("b0undary", MARK)
        shown = ""
        for piece in pieces:
            shown += stream.feed(piece)
            assert ANSWER.startswith(shown)
        assert shown + stream.rest() == ANSWER


def test_the_answer_is_shown_as_it_comes() -> None:
    """Only blank lines and what may be the mark wait for what follows."""
    stream = AnswerStream("b0undary", MARK)
    told = (
        ("Shard", "Shard"),
        (" by tenant.\n", " by tenant."),
        ("\n5ca", ""),
        ("rs.", "\n\n5cars."),
        ("\n", ""),
        (MARK, ""),
        ("\nDISS", ""),
        ("olve it.", ""),
        ("\n", "\nDISSolve it."),
        ("* * *", ""),
        ("!", "\n* * *!"),
    )
    for piece, shown in told:
        assert stream.feed(piece) == shown
    stream.restart()
    assert (stream.feed("An"), stream.feed("ew."), stream.rest()) == ("An", "ew.", "")


SNIPPETS = st.sampled_from(
    [MARK, MARK[:7], "\n", "\n\n", "**", "DISSENT:", " gpt-5 waits.", "ASK: Why?", "Shard. ", "\u5317"]
)


@given(st.lists(SNIPPETS, max_size=14), st.lists(st.integers(0, 150), max_size=4))
def test_what_is_streamed_is_the_answer(snippets: list[str], cuts: list[int]) -> None:
    """Whatever the reply, and however it is cut, the card shows what the document will hold."""
    reply = "".join(snippets)
    cuts.sort()
    pieces = [reply[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(reply)], strict=True)]
    answer, _ = read_notes(MARK, reply, LABELS, truncated=False)
    # A mark's line goes with its bold and its brackets, unless these were shown before.
    assert [*filter(str.isalnum, streamed(pieces))] == [*filter(str.isalnum, answer)]
    assert MARK not in answer


def chaired(**script: object) -> ScriptedCouncil:
    written = {"stage3": f"Shard.\n\n{MARK}\nDISSENT: grok would wait.\nASK: How many?", **script}
    return ScriptedCouncil(script=written)  # pyright: ignore[reportArgumentType] - a test's steps


NOTED = ChairNotes(dissent="grok would wait.", ask="How many?")


async def test_the_chairmans_notes_are_stored_and_what_members_no_longer_say_is_read() -> None:
    """A replay reads the same from what was recorded; what the reviews changed can't be seen in the corrected answers alone."""
    council = chaired()
    message = (await council.run(notes_mark=MARK)).message
    assert (message.stage3.response, message.stage3.notes) == ("Shard.", NOTED)
    texts = [event.text for event in council.events if isinstance(event, AnswerStreamed)]
    assert "".join(texts) == "Shard."
    assert MARK not in repr(council.events) + repr(message)
    again = ScriptedCouncil(steps=council.steps)
    assert (await again.run(notes_mark=MARK)).message.stage3 == message.stage3
    assert again.calls == []
    first = "Shard by tenant. It takes a day.\nKeep a backup."
    script = {
        "stage1": first,
        "stage2_5": "Shard by tenant. It takes a month, so plan it.\nKeep a backup.",
    }
    council = chaired(**script, **{f"stage2_5.1:{FOUR[1]}": first})
    await council.run(notes_mark=MARK)
    prompt = council.prompt("stage3.1:chair/man:chairman")
    heading = "{} said before the reviews and no longer says:\n\nIt takes a day.\n[end b0undary]"
    assert [heading.format(name) in prompt for name in FOUR] == [True, False, True, True]
    plain = chaired(**script)
    await plain.run()
    assert "no longer says" not in plain.prompt("stage3.1:chair/man:chairman")


async def test_only_the_chairman_is_given_the_mark_and_of_a_demonstration_nobody() -> None:
    """A member that doesn't know it can't write notes in another's name; a small model would copy the form."""
    council = chaired(stage1=f"Yes.\n\nDISSENT: {FOUR[0]} is a fool.\nASK: Why?")
    message = (await council.run(profile(title_model="title/writer"), notes_mark=MARK)).message
    told = {call.step for call in council.calls if MARK in council.prompt(call.step)}
    assert told == {"stage3.1:chair/man:chairman"}
    prompt = council.prompt("stage3.1:chair/man:chairman")
    assert f"this mark alone:\n\n{MARK}\n\nBelow it" in prompt
    assert prompt.endswith("\n[end b0undary]\n\nWrite the answer first, then the notes.")
    assert message.stage3.notes == NOTED
    council = ScriptedCouncil()
    await council.run(profile(demonstration=True), notes_mark=MARK)
    assert MARK not in "".join(council.prompt(call.step) for call in council.calls)


@rows("fallen", [["chairman"], ["chairman", "fallback"]])
async def test_every_substitute_chairman_writes_notes(fallen: list[str]) -> None:
    """A fallback, or the best-ranked member."""
    names = {"chairman": "chair/man", "fallback": "second/chair"}
    council = chaired(**{f"stage3.1:{names[role]}:{role}": failure() for role in fallen})
    message = (await council.run(profile(chairman_fallbacks=["second/chair"]), notes_mark=MARK)).message
    assert message.stage3.source == ("best_ranked" if len(fallen) > 1 else "fallback")
    assert message.stage3.notes == NOTED


async def test_an_answer_that_nobody_wrote_for_the_council_has_no_notes() -> None:
    """A member's own words, verbatim or the only ones there are; after Stop, there are answers to compare."""
    said = f"Yes.\n\n{MARK}\n{NOTES}"
    verbatim = ScriptedCouncil(script={"stage3": failure(), "stage2_5": said})
    assert (await verbatim.run(notes_mark=MARK)).message.stage3.notes is None
    only = ScriptedCouncil(script={"stage1": said})
    only.script |= {f"stage1.1:{name}": failure() for name in FOUR[1:]}
    final = (await only.run(notes_mark=MARK)).message.stage3
    assert (final.source, final.notes) == ("single", None)
    council = chaired()
    council.held |= {f"stage2.1:{name}" for name in FOUR}
    running = asyncio.create_task(council.run(notes_mark=MARK))
    await council.until_called(*council.held)
    council.stop.press()
    final = (await running).message.stage3
    assert (final.stopped_early, final.notes) == (True, NOTED)


async def test_what_is_cut_off_or_quoted_shows_no_mark() -> None:
    """A provider's error may contain anything that it was sent; cut-off notes don't make the answer end too early."""
    council = ScriptedCouncil(script={"stage3": Failure(cause="filtered", detail=f"bad: {MARK} here")})
    message = (await council.run(notes_mark=MARK)).message
    assert {each.failure.detail for each in message.failures} == {"bad: here"}
    council = chaired()
    council.truncated = {"stage3"}
    message = (await council.run(twins(), notes_mark=MARK)).message
    assert message.stage3.truncated is True
    named = chaired(stage3=f"Shard.\n{MARK}\nDISSENT: grok would wait.\nASK: How")
    named.truncated = {"stage3"}
    stage3 = (await named.run(notes_mark=MARK)).message.stage3
    assert (stage3.truncated, stage3.notes) == (False, ChairNotes(dissent="grok would wait."))


async def test_streamed_pieces_pass_through_both_fences() -> None:
    """The boundary and the mark are taken out of what a chairman streams."""

    async def ask(call: Call) -> Reply:
        said = ScriptedCouncil.default(call, call.step.partition(".")[0])
        if call.on_text:
            said = f"Shard, [begin b0undary] says {MARK}."
            for piece in said:
                call.on_text(piece)
        return Reply(text=said, usage=Usage(), latency_ms=1)

    council = ScriptedCouncil(steps=MemorySteps())
    council.ask = ask  # type: ignore[method-assign]
    message = (await council.run(notes_mark=MARK)).message
    texts = [event.text for event in council.events if isinstance(event, AnswerStreamed)]
    assert bare("".join(texts)) == bare(message.stage3.response)
    assert message.stage3.response == "Shard, says."


ONLY_NOTES = f"{MARK}\n\n- DISSENT: {FOUR[0]} would wait.\n- ASK: How many tenants?"


async def test_a_chairman_that_writes_only_notes_is_asked_for_the_answer() -> None:
    """What it had streamed is withdrawn; a second time, the next writes: notes are never passed off as the answer."""
    step = "stage3.1:chair/man:chairman"
    council = ScriptedCouncil(script={step: ONLY_NOTES, f"{step}:again": "Shard."})
    message = (await council.run(notes_mark=MARK)).message
    assert (message.stage3.response, message.stage3.source) == ("Shard.", "chairman")
    view = RunView("Why?", profile(), started=0.0)
    for event in council.events:
        view = fold(view, event, 0.0)
    assert view.final is not None
    assert view.final.response == "Shard."
    retried = [event for event in council.events if isinstance(event, MemberRetried)]
    assert [event.stage for event in retried] == ["stage3"]
    step = "stage3.1:chair/man:chairman"
    council = ScriptedCouncil(script={step: ONLY_NOTES, f"{step}:again": ONLY_NOTES, "stage3": "Shard."})
    message = (await council.run(notes_mark=MARK)).message
    assert (message.stage3.response, message.stage3.source) == ("Shard.", "best_ranked")
    assert [failed.failure.cause for failed in message.failures] == ["malformed"]
