"""The terminal as a channel: the card live, the thread below it, then the answer.

Where nobody watches (a pipe, a file, a dumb terminal) it writes plain lines and Markdown instead.
All text reaches the terminal through `bot.view.message`, which holds no control character, and as
rich's `Text` or `Markdown`, never as its markup.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.measure import Measurement
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from bot.render.changes import CodeDiff, changed_lines
from bot.render.diff import ChangeKind
from bot.render.markdown import render
from bot.terminal.prose import prose
from bot.view import message as m
from bot.view.card import asked, card, correction, expected, origin, progress, stage_line
from bot.view.fold import fold
from bot.view.member import names
from bot.view.record import record
from bot.view.state import RunView
from bot.view.thread import thread
from bot.view.wording import card as wording
from bot.view.wording import failures, figures, terminal
from council.events import (
    Event,
    MemberAnswered,
    MemberFailed,
    MemberRetried,
    MemberStarted,
    StageCompleted,
)
from council.text.characters import clip

FRAMES_PER_SECOND = 4
COLUMN = 30  # cells: what a column of text needs
INDENT = 2
MESSAGE_LEVEL = 2  # a heading down to here begins a message
UNBOUNDED = 1_000
QUESTION_LINES = 3
_STYLES: Mapping[ChangeKind, str] = {"same": "", "removed": "strike dim", "added": "bold"}
TEXT_LINES = 3  # of the streaming answer, in however low a window


Messages = Callable[[RunView], Iterable[m.Message]]


def digest(view: RunView) -> Iterable[m.Message]:
    """Return the thread as it is in a chat."""
    return (part.message for part in thread(view))


def everything(view: RunView) -> Iterable[m.Message]:
    """Return a thread with everything the members said."""
    return (part.message for part in record(view))


def nothing(view: RunView) -> Iterable[m.Message]:
    """Return no thread."""
    del view
    return ()


THREADS: Mapping[str, Messages] = {"none": nothing, "digest": digest, "full": everything}
"""What can be shown below a card, by what it is called."""


class TerminalChannel:
    """Shows one run: `hear` its events between `start` and `stop`, or inside `with`.

    `stop` writes the messages of the `thread` and then the answer, or the error, when the run is over by
    then. `saved` says where the conversation is.
    """

    def __init__(
        self,
        console: Console,
        view: RunView,
        *,
        thread: Messages = digest,
        saved: Callable[[str], str] | None = terminal.saved,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.view = view
        self._console = console
        self._thread = thread
        self._saved = saved
        self._clock = clock
        # rich's own thread redraws, so the time moves on even while the event loop is busy.
        self._live = (
            Live(console=console, get_renderable=self._frame, refresh_per_second=FRAMES_PER_SECOND)
            if is_watched(console)
            else None
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Show the card."""
        if self._live:
            self._live.start()
            return
        source = () if self.view.demonstration else origin(self.view)  # that was said before
        for line in (asked(self.view), *source, *expected(self.view)):
            self._write(line)

    def hear(self, event: Event) -> None:
        """Take in an event; the card shows it with its next frame."""
        self.view = fold(self.view, event, self._clock())
        if self._live is None:
            for line in told(self.view, event, self._clock()):
                self._write(line)

    def stop(self) -> None:
        """Leave the card as it is and write the run's result."""
        if self._live:
            self._live.stop()
        if not self.view.is_over:
            return
        for message in (*self._thread(self.view), card(self.view, self._clock())):
            self.show(replace(message, blocks=tuple(_news(message.blocks))))
        if self._saved and self.view.conversation_id:
            self._write(f"\n{self._saved(self.view.conversation_id)}")

    def show(self, message: m.Message) -> None:
        """Write a message below what is there."""
        self._write("")
        write(message, self._console)

    def _write(self, text: str, end: str = "\n") -> None:
        self._console.out(m.printable(text), highlight=False, end=end)

    def _frame(self) -> RenderableType:
        frame: list[m.Block] = []
        for block in _news(progress(self.view, self._clock()).blocks):
            match block:
                case m.Quote(markdown):
                    length = QUESTION_LINES * (self._console.width - INDENT)
                    frame.append(m.Quote(clip(" ".join(markdown.split()), length)))
                case m.Prose() | m.Heading() if self.view.is_over:
                    pass  # the whole answer is below the thread
                case _:
                    frame.append(block)
        return _fitted(frame, self._console)


def _news(blocks: Iterable[m.Block]) -> Iterator[m.Block]:
    """Return blocks without what was said before a demonstration."""
    for block in blocks:
        if isinstance(block, m.Line) and wording.DEMONSTRATION in block.text:
            if rest := " ".join(block.text.replace(wording.DEMONSTRATION, "").split()):
                yield m.Line(rest, block.strong)
        else:
            yield block


def is_watched(console: Console) -> bool:
    """Return whether what is written is drawn for a person."""
    return console.is_terminal and not console.is_dumb_terminal


def write(message: m.Message, console: Console) -> None:
    """Write a message: drawn where somebody watches, else as Markdown."""
    if is_watched(console):
        console.print(drawn(message.blocks, console))
    else:
        console.out(m.printable(render(message)), highlight=False, end="")


def told(view: RunView, event: Event, now: float) -> Iterator[str]:
    """Return an event in plain lines, if it is worth reporting."""
    short = names(view)
    match event:
        case MemberStarted("stage3", member):
            yield terminal.writing(short[member])
        case MemberAnswered():
            yield terminal.did(short[event.member], _gave(view, event))
        case MemberRetried():
            why = failures.cause(event.failure)
            yield terminal.again(short[event.member], event.wait, why)
        case MemberFailed():
            why = failures.failure(event.failure)
            yield terminal.failed(short[event.member], _lacked(view, event), why)
        case StageCompleted() if event.stage != "stage3":
            name, said = stage_line(view, view.stage(event.stage), now)
            yield terminal.stage(name, said)
        case _:
            pass


def _gave(view: RunView, event: MemberAnswered) -> str:
    took = event.latency_ms / 1000
    match event.stage:
        case "stage1":
            return terminal.answered(took)
        case "stage2":
            return terminal.reviewed(took)
        case "stage2_5":
            seat = view.seat(event.member)
            return correction(seat) if seat else "corrected"
        case "stage3":
            return terminal.wrote(took)


def _lacked(view: RunView, event: MemberFailed) -> str:
    match event.stage:
        case "stage1":
            return terminal.NO_ANSWER
        case "stage2":
            return terminal.NO_REVIEW
        case "stage2_5":
            seat = view.seat(event.member)
            return terminal.kept(wording.kept_answer(seat.number)) if seat else terminal.NO_CORRECTION
        case "stage3":
            return terminal.NO_FINAL_ANSWER


def drawn(blocks: Iterable[m.Block], console: Console) -> RenderableType:
    """Return blocks for a terminal of this width, an empty line between each two."""
    parts: list[RenderableType] = []
    level = 1
    for block in blocks:
        if isinstance(block, m.Title | m.Heading):
            level = block.level if isinstance(block, m.Heading) else 1
        parts += [Text(), _draw(block, level, console)] if parts else [_draw(block, level, console)]
    return Group(*parts)


def _draw(block: m.Block, level: int, console: Console) -> RenderableType:
    match block:
        case m.Title(text):
            return Group(Rule(), Text(text, style="bold"))
        case m.Heading(text):
            head = Text(text, style="bold")
            return head if level > MESSAGE_LEVEL else Group(Rule(), head)
        case m.Line(text, strong):
            return Text(text, style="bold" if strong else "")
        case m.Footer(text):
            return Text(text, style="dim")
        case m.Pairs(rows):
            return _indented(_pairs(rows, style="")) if block.listed else _pairs(rows)
        case m.Entry(text, said, at):
            facts = (figures.here(at) if at else "", said)
            found = Text.assemble(*((part, "bold" if marked else "") for part, marked in block.excerpt))
            lines = (Text(text, style="bold"), *map(Text, facts), found)
            return Text("\n").join(line for line in lines if line)
        case m.Table():
            return _table(block, console)
        case m.Columns(columns):
            return _columns(columns, console)
        case m.Prose(markdown):
            return _indented(prose(markdown, level))  # what is other people's is indented
        case m.Quote(markdown):
            return _indented(Text(markdown, style="italic"))
        case m.Diff(before, after):
            return _indented(_changes(before, after))


def _changes(before: str, after: str) -> Text:
    return Text("\n\n").join(
        Text(line.text)
        if isinstance(line, CodeDiff)
        else Text.assemble(*((piece.text, _STYLES[piece.kind]) for piece in line))
        for line in changed_lines(before, after)
    )


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, INDENT))


def _pairs(rows: Iterable[tuple[str, str]], style: str = "bold") -> RichTable:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style=style)
    grid.add_column()
    for name, said in rows:
        grid.add_row(Text(name), Text(said))
    return grid


def _columns(columns: tuple[tuple[str, tuple[str, ...]], ...], console: Console) -> RenderableType:
    """Draw lists side by side or, if a column would be too narrow, one below the other."""
    lists = [_list(title, items) for title, items in columns]
    if len(lists) * COLUMN > console.width:
        return Group(*lists)
    grid = RichTable.grid(padding=(0, 2), expand=True)
    for _ in lists:
        grid.add_column(ratio=1)
    grid.add_row(*lists)
    return grid


def _list(title: str, items: tuple[str, ...]) -> RenderableType:
    grid = RichTable.grid(padding=(0, 1))
    for item in items:
        grid.add_row(Text("\u2022"), Text(item))
    return Group(Text(title, style="bold"), _indented(grid))


def _table(block: m.Table, console: Console) -> RenderableType:
    """Draw a table or, if the window is too narrow for it, a line per row."""
    table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in block.header:
        table.add_column(Text(name), no_wrap=True)
    for row in block.rows:
        table.add_row(*map(Text, row))
    unbounded = console.options.update(width=UNBOUNDED)
    if Measurement.get(console, unbounded, table).maximum <= console.width:
        return table
    return Group(
        *(
            Text(", ".join(f"{name} {cell}" for name, cell in zip(block.header, row, strict=True)))
            for row in block.rows
        )
    )


def _fitted(blocks: list[m.Block], console: Console) -> RenderableType:
    """Draw the card as high as the window, with the end of the answer's text so far."""
    fixed = [block for block in blocks if not isinstance(block, m.Prose)]
    room = console.height - len(console.render_lines(drawn(fixed, console))) - 3
    parts: list[RenderableType] = []
    for block in blocks:
        if isinstance(block, m.Prose):
            part = _end(block.markdown, max(room, TEXT_LINES), console)
        else:
            part = _draw(block, 3, console)
        parts += [Text(), part] if parts else [part]
    return Group(*parts)


def _end(text: str, room: int, console: Console) -> RenderableType:
    width = console.width - INDENT
    return _indented(Text("\n").join(Text(text[-room * width :]).wrap(console, width)[-room:]))
