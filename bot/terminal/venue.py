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

from markdown_it.token import Token
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.measure import Measurement
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from bot.render.changes import ChangeKind, CodeDiff, changed_lines
from bot.render.markdown import render
from bot.render.parsing import parse_blocks, parse_inline
from bot.view import message as m
from bot.view.card import asked, card, correction, expected, origin, progress, stage_line
from bot.view.run import RunView, fold
from bot.view.thread import record, thread
from bot.view.wording import card as wording
from bot.view.wording import failures, figures, terminal
from council import events
from council.text import clip

COLUMN = 30  # cells: what a column of text needs
INDENT = 2
_STYLES: Mapping[ChangeKind, str] = {"same": "", "removed": "strike dim", "added": "bold"}


class TerminalChannel:
    """Shows one run: `hear` its events inside `with`.

    At the end it writes what is wanted `below` the card (`none`, `digest` as in a chat, or `full` with
    everything the members said) and then the answer, or the error, when the run is over by then. `saved`
    says where the conversation is.
    """

    def __init__(
        self,
        console: Console,
        view: RunView,
        *,
        below: str = "digest",
        saved: Callable[[str], str] | None = terminal.saved,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.view = view
        self._console = console
        self._below = below
        self._saved = saved
        self._clock = clock
        # rich's own thread redraws, so the time moves on even while the event loop is busy.
        self._live = (
            Live(console=console, get_renderable=self._frame, refresh_per_second=4)
            if is_watched(console)
            else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
            return self
        source = () if self.view.profile.demonstration else origin(self.view)  # that was said before
        for line in (asked(self.view), *source, *expected(self.view)):
            self._write(line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        if self._live:
            self._live.stop()
        if not self.view.is_over:
            return
        below = record(self.view) if self._below == "full" else ()
        if self._below == "digest":
            below = (part.message for part in thread(self.view))
        for message in (*below, card(self.view, self._clock())):
            self.show(replace(message, blocks=tuple(_news(message.blocks))))
        if self._saved and self.view.conversation_id:
            self._write(f"\n{self._saved(self.view.conversation_id)}")

    def hear(self, event: events.Event) -> None:
        self.view = fold(self.view, event, self._clock())
        if self._live is None:
            for line in plain_lines(self.view, event, self._clock()):
                self._write(line)

    def show(self, message: m.Message) -> None:
        self._write("")
        write(message, self._console)

    def _write(self, text: str) -> None:
        self._console.out(m.printable(text), highlight=False)

    def _frame(self) -> RenderableType:
        frame: list[m.Block] = []
        for block in _news(progress(self.view, self._clock()).blocks):
            match block:
                case m.Quote(markdown):
                    length = 3 * (self._console.width - INDENT)
                    frame.append(m.Quote(clip(" ".join(markdown.split()), length)))
                case m.Prose() | m.Heading() if self.view.is_over:
                    pass  # the whole answer is below the thread
                case _:
                    frame.append(block)
        # The card is as high as the window, with the end of the answer's text so far.
        console = self._console
        fixed = [block for block in frame if not isinstance(block, m.Prose)]
        room = max(console.height - len(console.render_lines(drawn(fixed, console))) - 3, 3)
        parts: list[RenderableType] = []
        for block in frame:
            if isinstance(block, m.Prose):
                width = console.width - INDENT
                end = Text(block.markdown[-room * width :]).wrap(console, width)[-room:]
                part = _indented(Text("\n").join(end))
            else:
                part = _draw(block, 3, console)
            parts += [Text(), part] if parts else [part]
        return Group(*parts)


def _news(blocks: Iterable[m.Block]) -> Iterator[m.Block]:
    """Return blocks without what was said before a demonstration."""
    for block in blocks:
        if isinstance(block, m.Line) and wording.DEMONSTRATION in block.text:
            if rest := " ".join(block.text.replace(wording.DEMONSTRATION, "").split()):
                yield m.Line(rest, block.strong)
        else:
            yield block


def is_watched(console: Console) -> bool:
    return console.is_terminal and not console.is_dumb_terminal


def write(message: m.Message, console: Console) -> None:
    if is_watched(console):
        console.print(drawn(message.blocks, console))
    else:
        console.out(m.printable(render(message)), highlight=False, end="")


def plain_lines(view: RunView, event: events.Event, now: float) -> Iterator[str]:
    short = view.names
    match event:
        case events.MemberStarted("stage3", member):
            yield f"{short[member]} is writing the final answer."
        case events.MemberAnswered():
            seat, took = view.seat(event.member), figures.duration(event.latency_ms / 1000)
            said = terminal.GAVE[event.stage].format(took=took)
            if event.stage == "stage2_5" and seat:
                said = correction(seat)
            yield f"{short[event.member]} {said}."
        case events.MemberRetried():
            why = failures.cause(event.failure)
            yield f"{short[event.member]} is asked again in {figures.duration(event.wait)}: {why}."
        case events.MemberFailed():
            lacked, seat = terminal.LACKED[event.stage], view.seat(event.member)
            if event.stage == "stage2_5" and seat:
                lacked = f"kept its {wording.kept_answer(view.number)}"
            why = failures.failure(event.failure)
            yield f"{short[event.member]} {lacked}: {why}."
        case events.StageCompleted() if event.stage != "stage3":
            name, said = stage_line(view, view.stage(event.stage), now)
            yield f"{name}: {said}."
        case _:
            pass


def drawn(blocks: Iterable[m.Block], console: Console) -> RenderableType:
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
            return head if level > 2 else Group(Rule(), head)
        case m.Line(text, strong):
            return Text(text, style="bold" if strong else "")
        case m.Footer(text):
            return Text(text, style="dim")
        case m.Pairs(rows):
            grid = RichTable.grid(padding=(0, 2))
            grid.add_column(style="" if block.listed else "bold")
            grid.add_column()
            for name, said in rows:
                grid.add_row(Text(name), Text(said))
            return _indented(grid) if block.listed else grid
        case m.Entry(text, said, at):
            facts = (at.astimezone().strftime("%Y-%m-%d %H:%M %Z") if at else "", said)
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
            lines = (
                Text(line.text)
                if isinstance(line, CodeDiff)
                else Text.assemble(*((piece.text, _STYLES[piece.kind]) for piece in line))
                for line in changed_lines(before, after)
            )
            return _indented(Text("\n\n").join(lines))


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, INDENT))


def _columns(columns: tuple[tuple[str, tuple[str, ...]], ...], console: Console) -> RenderableType:
    lists: list[RenderableType] = []
    for title, items in columns:
        entries = RichTable.grid(padding=(0, 1))
        for item in items:
            entries.add_row(Text("\u2022"), Text(item))
        lists.append(Group(Text(title, style="bold"), _indented(entries)))
    if len(lists) * COLUMN > console.width:
        return Group(*lists)
    grid = RichTable.grid(padding=(0, 2), expand=True)
    for _ in lists:
        grid.add_column(ratio=1)
    grid.add_row(*lists)
    return grid


def _table(block: m.Table, console: Console) -> RenderableType:
    table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in block.header:
        table.add_column(Text(name), no_wrap=True)
    for row in block.rows:
        table.add_row(*map(Text, row))
    unbounded = console.options.update(width=1_000)
    if Measurement.get(console, unbounded, table).maximum <= console.width:
        return table
    return Group(
        *(
            Text(", ".join(f"{name} {cell}" for name, cell in zip(block.header, row, strict=True)))
            for row in block.rows
        )
    )


def prose(markdown: str, level: int) -> Markdown:
    """Return Markdown for a terminal, its headings below `level`; links show their targets."""
    drawn = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    # rich has a parser of its own, without formulas and with asterisks where bold is meant.
    drawn.markup, drawn.parsed = markdown, [*_tokens(markdown, level)]
    return drawn


def _tokens(markdown: str, level: int) -> Iterator[Token]:
    tokens, env = parse_blocks(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + level, 6)}"
        elif token.type == "inline":
            token.children = [*_drawn(parse_inline(token.content, env))]
        yield token


def _drawn(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield tokens of the kinds that rich knows."""
    for token in tokens:
        match token.type:
            case "formula" | "bare_url" | "text_special":
                yield Token("text", "", 0, content=token.content)
            case _:
                yield token
