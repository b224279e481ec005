"""Examples as runs: what `council demo` plays, and what `council chat` shows where no model is set up.

Their texts were written by hand (`bot/demo/texts`). They need no key, no model and no network, and are
never in the data folder: theirs is deleted afterwards.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rich.console import Console

from bot.app import Council, Library, open_library, operator_of
from bot.config.configuration import Configuration
from bot.demo import scenario
from bot.demo.player import SECONDS, Player
from bot.service.accept import Question
from bot.service.access import AT_TERMINAL
from bot.service.channels import Channels
from bot.service.costs import Costs
from bot.service.runs import Runs
from bot.terminal.ask import Surface, lasting_output, person, read_line, say
from bot.terminal.venue import TerminalChannel, drawn
from bot.view.message import Block, Line, Message, Pairs
from bot.view.run import RunView
from bot.view.thread import opened, thread
from bot.view.wording import figures
from bot.view.wording import terminal as wording
from council.accounts import Directory
from council.calls import Call, Reply
from council.document.conversation import AssistantMessage
from council.errors import Failure, ModelError
from council.events import Emit
from council.models.costs import Catalog
from council.profile import Profile
from council.text.json_objects import JsonObject
from storage.index.statistics import Typical
from storage.journal.rows import RunRow

_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it


def choose() -> scenario.Example | None:
    """Let a person choose an example; without a terminal, it is the first. `None` if they leave."""
    examples = [scenario.example(name) for name in scenario.NAMES]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return examples[0]
    offered = tuple((str(number), each.cast.offer) for number, each in enumerate(examples, 1))
    console = Console()
    which = Line("Four examples, written by hand. Which one do you want to watch?")
    console.print(drawn((which, Pairs(offered)), console))
    while True:
        say(wording.choice(len(examples)))
        typed = read_line()
        if typed is None:
            return None
        number = typed.strip() or "1"
        if number in dict(offered):
            return examples[int(number) - 1]


async def demo(player: Player, surface: Surface | None = None) -> bool:
    """Play an example for a person or, on a surface of `council ask`, for a program.

    Return whether it was played to its end and written.
    """
    with TemporaryDirectory(prefix="council-demo-") as name:
        async with open_library(Path(name)) as library:
            stage = _Stage(Path(name), library, *await record(player, library))
            with lasting_output(stage.leave) as output:
                is_shown = await (stage.play(surface) if surface else _show(player, stage))
            # A reader who left has read enough.
            return not output.is_missed if stage.is_left else is_shown


async def _show(player: Player, stage: "_Stage") -> bool:
    is_watched = sys.stdin.isatty() and sys.stdout.isatty()
    console = Console()
    takes = figures.duration(SECONDS / player.speed)
    _tell(
        console,
        f"Watch a council work, in about {takes}: {len(player.example.members)} members answer a "
        "question, review each other without knowing who wrote what, and correct themselves. Then a "
        "chairman writes the answer. Ctrl-C leaves.",
    )
    shown: list[TerminalChannel] = []

    @contextmanager
    def surface(question: str, profile: Profile, typical: Typical | None = None) -> Generator[Emit]:
        if not console.is_terminal:
            _tell(console, question)
        view = RunView(question, profile, started=monotonic(), typical=typical)
        below = "none" if is_watched else "digest"
        with TerminalChannel(console, view, below=below, saved=None) as channel:
            shown.append(channel)
            yield channel.hear

    is_answered = await stage.play(surface)
    if is_answered and is_watched:
        await _try_out(shown[0], player.example.cast.mistaken, stage.transcript)
    if is_answered:
        _tell(console, wording.GOODBYE)
    return is_answered


@dataclass(slots=True)
class _Stage:
    """The example's run in a folder of its own."""

    folder: Path
    library: Library
    runs: Runs
    run: RunRow
    playing: "asyncio.Task[AssistantMessage | None] | None" = None
    is_left: bool = False

    async def play(self, surface: Surface) -> bool:
        with surface(self.run.brief.question, self.run.brief.profile, None) as emit:
            self.playing = asyncio.create_task(self.runs.carry_out(self.run, emit))
            if self.is_left:
                self.playing.cancel()
            try:
                return await self.playing is not None
            except asyncio.CancelledError:
                if not self.is_left:
                    raise
                return False

    def leave(self, error: OSError) -> None:
        del error
        self.is_left = True
        if self.playing:
            self.playing.cancel()

    async def transcript(self) -> Path:
        from bot.transcript.html import to_html

        conversation = await self.library.store.load(self.run.conversation_id)
        page = self.folder / "transcript.html"
        page.write_text(to_html(conversation), encoding="utf-8")
        return page


def _tell(console: Console, text: str) -> None:
    """Write a paragraph; where somebody watches, broken between words."""
    if console.is_terminal:
        console.print(drawn((Line(text),), console))
        console.print()
    else:
        say(f"{text}\n")


async def _try_out(
    channel: TerminalChannel, mistaken: str | None, transcript: Callable[[], Awaitable[Path]]
) -> None:
    """Open what the typed number names, until there is an empty line."""
    choices, offer = _choices(channel.view, mistaken)
    channel.show(offer)
    while typed := (read_line() or "").strip():
        chosen = choices.get(typed)
        if not chosen and typed != "?":
            channel.show(Message("unknown", (Line(wording.unknown(typed)),)))
        opened = chosen() if chosen else offer
        page = await transcript() if opened.key == "transcript" else None
        channel.show(opened)
        if page:
            say(page.as_uri())  # in one piece, however narrow the window
        if chosen:
            again = Line("Type another number, ? to list them, or press Enter to leave.")
            channel.show(Message("again", (again,)))


def _choices(view: RunView, mistaken: str | None) -> tuple[Mapping[str, Callable[[], Message]], Message]:
    opens: list[Callable[[], Message]] = []

    digest, *members = thread(view)
    transcript = Message("transcript", (Line(wording.TRANSCRIPT_OPENED),))
    opens += (lambda: digest.message, lambda: transcript)
    names, hints = ["Ranking", "Transcript, a page for your browser"], list[Block]()
    for part in members:
        seat = view.seats[part.seat]
        opens.append(partial(opened, view, part.seat))
        names.append(seat.short)
        if seat.name == mistaken:
            wrong = f"{seat.short}'s first answer was wrong, and its peers noticed"
            hints.append(Line(f"{wrong}: {len(opens)} shows what it changed."))
    rows = tuple((str(number), name) for number, name in enumerate(names, 1))
    blocks = (Line(wording.LEAD), Pairs(rows), *hints)
    return {str(number): each for number, each in enumerate(opens, 1)}, Message("example", blocks)


def folder() -> "TemporaryDirectory[str]":
    """Return a folder that is deleted afterwards; in memory, where the system has such a place."""
    in_memory = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    return TemporaryDirectory(prefix="council-examples-", dir=_MEMORY if in_memory else None)


@asynccontextmanager
async def open_examples() -> AsyncGenerator[Library]:
    """Open a library that holds all examples, marked as such by their titles."""
    with folder() as name:
        async with open_library(Path(name)) as library:
            for each in scenario.NAMES:
                example = scenario.example(each)
                title = f"Example: {example.cast.title}"
                marked = replace(example, cast=example.cast.model_copy(update={"title": title}))
                runs, run = await record(Player(marked, sleep=lambda _: asyncio.sleep(0)), library)
                await runs.carry_out(run, lambda event: None)  # noqa: ARG005 - nobody watches
                await library.journal.deliver(run.id, "shown")
            yield library


async def record(player: Player, library: Library) -> tuple[Runs, RunRow]:
    costs = Costs(catalog=Catalog(_no_models), journal=library.journal, store=library.store)
    runs = Runs(player.ask, costs, library.index)
    asked = Question(
        standing=AT_TERMINAL,
        text=player.example.question,
        source=person(),
        entry_key=f"example {player.example.name}",
    )
    return runs, (await runs.recorder.record(asked, player.profile)).run


def nobody(configuration: Configuration, library: Library) -> Council:
    async def ask(call: Call) -> Reply:
        raise ModelError(Failure(cause="no_server", detail=call.member.model))

    costs = Costs(
        catalog=Catalog(_no_models),
        journal=library.journal,
        store=library.store,
        channels=Channels(operator_of(configuration, {}), library.overrides),
    )
    return Council({}, Runs(ask, costs, library.index), Directory(()))


async def _no_models() -> list[JsonObject]:
    return []
