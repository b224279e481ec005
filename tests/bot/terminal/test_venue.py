"""The terminal: live for people, plain lines for pipes, and immune to escape sequences."""

import io
import re
from collections.abc import Sequence

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from bot.render.markdown import render
from bot.terminal.ask import people
from bot.terminal.venue import TerminalChannel, drawn
from bot.view.card import card
from bot.view.message import Block, Entry, Line, Prose, Table
from bot.view.run import RunView
from bot.view.thread import record, thread
from council.events import AnswerStreamed, Event, MemberFailed, RunCompleted, RunFailed, StageCompleted
from storage.index.statistics import Typical
from tests.bot.sample_run import (
    CHAIRMAN,
    COMPLETED,
    CONVERSATION_ID,
    FINAL,
    GPT,
    LATE,
    PROFILE,
    QUESTION,
    RUN_ID,
    TIMED_EVENTS,
    events,
    seen,
)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def played(
    timed: Sequence[tuple[float, Event]], *, live: bool, width: int = 80, height: int = 24
) -> tuple[str, RunView]:
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, force_terminal=live, width=width, height=height, color_system=None)
    view = RunView(QUESTION, PROFILE, asker="Ada", started=0.0)
    with TerminalChannel(console, view, clock=clock) as channel:
        for clock.now, event in timed:
            channel.hear(event)
    return out.getvalue(), channel.view


def printed(blocks: Sequence[Block], width: int = 80) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, color_system=None)
    console.print(drawn(blocks, console))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_a_pipe_gets_plain_lines_then_markdown(snapshot: SnapshotAssertion) -> None:
    """A line for each step, the thread, the answer; no control codes. The view is that of the events."""
    shown, view = played(events(), live=False)
    messages = (*(each.message for each in thread(view)), card(view, 44.3))
    markdown = "".join(f"\n{render(message)}" for message in messages)
    lines, rest = shown.split("\n\n", 1)
    assert lines == snapshot
    assert f"\n{rest}" == f"{markdown}\nSaved as conversation {CONVERSATION_ID}.\n"
    assert "\x1b" not in shown
    assert view == seen()


@pytest.mark.parametrize("watched", [False, True])
def test_a_demonstration_says_so_once_before_anything_else(
    watched: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the card nor the answer repeats it."""
    out = io.StringIO()
    profile = PROFILE.model_copy(update={"demonstration": True})
    console = Console(file=out, force_terminal=watched, width=72, height=60, _environ={"TERM": "xterm"})
    monkeypatch.setattr("rich.console.Console", lambda: console)
    with people(QUESTION, profile) as hear:
        for _, event in events():
            hear(event)
    shown = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue()).split())
    assert shown.startswith(
        "A tiny model that comes with the program answers: it shows how a council works, and no more. "
        "Don't believe what it says. To ask real models: make init"
    )
    assert "Demonstration" not in shown
    assert shown.count("tiny") == 1
    assert capsys.readouterr().out == "\n"


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cursor can't move, nothing is redrawn."""
    monkeypatch.setenv("TERM", "dumb")
    shown, _ = played(events(3.5), live=True)
    assert shown.endswith("gpt-5 answered in 3 s.\n")


def test_a_person_sees_card_thread_and_answer() -> None:
    """The card's last state remains, then the thread, and the answer last."""
    shown, _ = played(events(), live=True)
    marks = [
        "Final answer  done in 12 s",
        "Ranking",
        "Average vote",
        "Ranked 3rd of 3",
        "Changed from",
        "Corrected response",
        "Ada asked",
        "Cron or Temporal for nightly jobs",
        "2 Move one multi-step job",
        "3 of 4 members",
    ]
    found = [shown.rfind(mark) for mark in marks]
    assert -1 not in found
    assert found == sorted(found)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nothing_is_wider_than_the_window(width: int) -> None:
    """Long lines wrap and wide tables become lists."""
    view = seen()
    messages = [*(each.message for each in thread(view)), *record(view)]
    for message in (*messages, card(view, 44.3), card(seen(34), 34.0)):
        for line in printed(message.blocks, width).splitlines():
            assert len(line) <= width


def test_a_table_too_wide_becomes_a_list_and_prose_is_indented() -> None:
    """Each row is a line, each cell under its name; Rich would drop HTML, here it is shown."""
    table = Table(("Rank", "Member"), (("1st", "gpt-5"), ("2nd", "a-rather-long-name")))
    assert printed([table], 20) == ("Rank 1st, Member\ngpt-5\nRank 2nd, Member\na-rather-long-name")
    assert printed([table], 40).splitlines()[0] == "Rank   Member"
    prose = Prose("see <a href>this</a>, <b>bold</b>")
    assert printed([Line("Ours."), prose]) == "Ours.\n\n  see <a href>this</a>, bold"
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system="standard")
    entry = Entry(
        "1. Queues", "3 members", excerpt=(("cron or ", False), ("Temporal", True), ("?", False))
    )
    console.print(drawn([entry], console))
    assert out.getvalue() == "\x1b[1m1. Queues\x1b[0m\n3 members\ncron or \x1b[1mTemporal\x1b[0m?\n"


def test_a_terminal_shows_what_a_question_takes_and_an_interrupted_runs_progress() -> None:
    """Without an end there is no thread and no answer; a low window shows the newest lines, and the elapsed time."""
    shown, _ = played(events(13), live=True)
    assert "\nReviews       running, 2 of 3 done" in shown
    assert "\n  gpt-5   " in shown  # the members are set in below the stages
    assert "Ranking" not in shown
    long = [(33.0, AnswerStreamed(CHAIRMAN, f"line {number}\n")) for number in range(200)]
    shown, _ = played([*events(32.5), *long], live=True, height=30)
    assert "line 199" in shown
    assert "line 10\n" not in shown
    assert "so far" in shown


def test_an_error_comes_last() -> None:
    """What failed and what to do, in a window and in a pipe."""
    end = (10.0, RunFailed(RUN_ID, "No member of the council answered. Ask again.", {GPT: LATE}))
    for live in (True, False):
        shown, view = played([*events(9), end], live=live)
        assert "No member of the council answered. Ask again." in shown
        assert shown.rstrip().endswith(RUN_ID[:8] if live else f"{RUN_ID[:8]}_")
        assert view.error


@pytest.mark.parametrize("live", [True, False])
def test_untrusted_text_cannot_steer_the_terminal(live: bool) -> None:
    """Escape sequences lose their escape, raw or as entities; rich's own markup shows as text."""
    evil = "a\x1b[2J\x9b5mb &#27;[1m &#x9b;c &#13; [red]x[/red] :smile: [l](http://e.vil)"
    message = COMPLETED.message.model_copy(
        update={"stage3": FINAL.model_copy(update={"response": evil})}
    )
    done = RunCompleted(RUN_ID, CONVERSATION_ID, message)
    plain, _ = played([*TIMED_EVENTS, (44.0, done)], live=live)
    harmless, _ = played(events(), live=live)
    for code in ("\x1b[2J", "\x1b[1m", "\x9b", "\x07"):
        assert plain.count(code) == harmless.count(code)
    assert "[red]x[/red] :smile:" in plain
    assert "http://e.vil" in plain


def test_a_verbatim_answer_needs_no_writer() -> None:
    """The failed chairman is named, and no writer."""
    failed = [(40.0, MemberFailed("stage3", CHAIRMAN, LATE)), (40.0, StageCompleted("stage3", (FINAL,)))]
    shown, _ = played([*events(34), *failed], live=False)
    assert shown.endswith("claude-opus-4.1 could not write the final answer: it took too long.\n")


@pytest.mark.parametrize("live", [True, False])
def test_it_says_what_a_question_takes(live: bool) -> None:
    """On the drawn card, and among a pipe's first lines."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=live, width=80, height=40, color_system=None)
    view = RunView(QUESTION, PROFILE, started=0.0, typical=Typical(3, 80.0, 0.12))
    with TerminalChannel(console, view, clock=Clock()):
        pass
    assert "Usually 1 min 20 s, $0.12." in out.getvalue()
