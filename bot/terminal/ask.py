"""Questions at the terminal: how a run is shown, what Ctrl-C does, and how interrupted runs resume.

All that the command line writes passes through `say` and `show`, except the card that rich draws.
"""

import asyncio
import getpass
import io
import os
import signal
import sys
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    redirect_stdout,
    suppress,
)
from dataclasses import asdict, dataclass, replace
from shutil import get_terminal_size
from textwrap import fill
from time import monotonic
from typing import TYPE_CHECKING

import orjson
import structlog

from bot.app import Library
from bot.errors import Refusal
from bot.inputs.files import NO_FILES, FilesAsRead
from bot.service.accept import Question
from bot.service.access import AT_TERMINAL
from bot.service.inputs import files_read, fit, nothing_readable
from bot.service.runs import Runs
from bot.view.message import Line, Message, escaped, printable
from bot.view.wording import budgets, failures, inputs
from bot.view.wording import terminal as wording
from council.brief import Attachment
from council.document.conversation import Source
from council.events import Emit, Event, RunCompleted, RunFailed, to_json
from council.profile import Profile
from council.tasks import Stop
from council.text import clip
from storage.errors import StorageError
from storage.index.statistics import Typical
from storage.journal.rows import RunRow
from storage.processes.locks import LOOK_SECONDS, SHARED
from storage.scope import TERMINAL

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

log = structlog.get_logger()


Surface = Callable[[str, Profile, Typical | None], AbstractContextManager[Emit]]
"""Opens what shows a run of this question and council; yields what takes in its events.

The last argument is what an answer took here lately.
"""
HERE = Source(platform=TERMINAL)


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks from this terminal; `resume_within` is how many seconds an interrupted run may be old."""

    library: Library
    runs: Runs
    resume_within: float

    async def ask(
        self,
        profile: Profile,
        text: str,
        surface: Surface,
        *,
        after: str | None = None,
        files: FilesAsRead = NO_FILES,
        links: tuple[str, ...] = (),
        start_over: bool = False,
    ) -> str | None:
        """Ask and show; return the conversation's id, or `None` where there is no answer.

        `after` names a conversation to continue. The same question's interrupted run resumes, unless
        `start_over` is set.
        """
        needs_files = bool(files.attachments or links)
        question = replace(_question(text, files, after), links=links, needs_files=needs_files)
        if files.attachments and all(each.is_unread for each in files.attachments):
            raise Refusal(nothing_readable(files.attachments))
        async with self._data_stays(), self._run(question, profile, start_over) as run:
            return await self._show(run, surface, await self._typical())

    async def _typical(self) -> Typical | None:
        with suppress(StorageError):  # the card is as well without
            return await self.library.index.typical(HERE)
        return None

    async def estimate(self, profile: Profile, text: str, files: FilesAsRead, *, as_json: bool) -> str:
        """Print what a question may cost without asking it; return the printed text."""
        resolved = await self.runs.costs.catalog.resolve(profile)
        window = self.runs.costs.catalog.window(resolved)
        brief = fit(_question(text, files).brief(resolved, self.runs.recorder.entropy), window)
        if (read := files_read(brief)) and not as_json:
            for line in inputs.files_read(read.files, read.links):
                say(line)
        found = self.runs.costs.estimate(brief)
        typical = await self._typical()
        said = budgets.dry_run(found, typical)
        if as_json:
            names = ("calls", "tokens", "cost", "unpriced")
            sums = {name: getattr(found, name) for name in names} | asdict(found)
            sums["usual_cost"] = typical.cost if typical else None
            said = orjson.dumps(sums, option=orjson.OPT_INDENT_2).decode()
        say(said)
        return said

    async def retry(self, run_id: str, surface: Surface) -> str | None:
        """Repeat a run that has no answer; return what `ask` returns. Raises `Refusal`."""
        run = await self.library.journal.get(run_id)
        if run is None or run.origin.platform != HERE.platform:
            raise Refusal(f"No run from this terminal has the id {run_id}.")
        async with self._data_stays(), self.library.locks.acquire(run_id) as held:
            reopened = await self.library.journal.reopen(run_id) if held else None
            if reopened is None:
                raise Refusal(
                    "This run has its answer or is still running, so there is nothing to retry."
                )
            return await self._show(reopened, surface)

    async def _show(self, run: RunRow, surface: Surface, typical: Typical | None = None) -> str | None:
        stop = Stop()
        for _ in range(run.stops):
            stop.press()
        presses: list[asyncio.Task[None]] = []
        left = False

        def press() -> None:
            nonlocal left
            if stop.everything.cause:  # a third time: it may be waiting for a disk
                left = True
                carrying.cancel()
            stop.press()
            presses.append(asyncio.create_task(self._record_stop(run.id)))

        def lose(error: OSError) -> None:
            warn(
                f"The output can no longer be written ({error.strerror}). "
                "The run continues, and its answer will be kept:\n"
                f"  council export {run.conversation_id[:8]}"
            )

        loop = asyncio.get_running_loop()
        with (
            lasting_output(lose) as output,
            surface(run.brief.question, run.brief.profile, typical) as emit,
        ):
            carrying = asyncio.create_task(self.runs.carry_out(run, emit, stop))
            loop.add_signal_handler(signal.SIGINT, press)
            try:
                message = await carrying
            except asyncio.CancelledError:
                if not left:
                    raise
                warn(
                    "Stopped before the end. To resume, ask the same question again, or:\n"
                    f"  council retry {run.id}"
                )
                return None
            finally:
                loop.remove_signal_handler(signal.SIGINT)
                await asyncio.gather(*presses)
        if output.is_missed:
            return None
        await self.library.journal.deliver(run.id, "shown")
        if message is None:
            return None
        failed = ((each.member, each.failure) for each in message.failures)
        for remedy in self.runs.remedies.of(run.brief.profile, failed):
            warn(remedy.sentence)
        return run.conversation_id

    async def _record_stop(self, run_id: str) -> None:
        try:
            await self.library.journal.press_stop(run_id)
        except StorageError as error:  # it is stopped in any case
            log.warning("stop_not_recorded", run=run_id, reason=error)

    @asynccontextmanager
    async def _data_stays(self) -> AsyncGenerator[None]:
        """Keep the database from being copied or replaced, which would lose what is recorded now."""
        if self.library.coordination is None:
            yield
            return
        async with self.library.locks.acquire(SHARED, wait=LOOK_SECONDS, shared=True) as stays:
            if not stays:
                raise Refusal(
                    "What the database holds is being copied or replaced, so nothing was asked. Try "
                    "again when council migrate or council restore has ended."
                )
            yield

    @asynccontextmanager
    async def _run(
        self, question: Question, profile: Profile, start_over: bool
    ) -> AsyncGenerator[RunRow]:
        for run in await self.library.journal.undelivered(HERE.platform):
            if run.origin.user != question.source.user:
                continue
            async with self.library.locks.acquire(run.id) as held:
                # Another process may have brought it to its end meanwhile.
                current = await self.library.journal.get(run.id) if held else None
                if current is None or current.delivery is not None:
                    continue
                if self.runs.recorder.age(current) > self.resume_within and not current.is_over:
                    await self._close(current)
                elif not start_over and _asks(current, question, profile):
                    warn(
                        "Resuming this question's interrupted run with the settings it was asked with. "
                        "Answers it already has aren't paid for again. To start over, use --new."
                    )
                    yield current
                    return
        run_id = str(self.runs.recorder.new_id())
        # Held before it is there to be found: another process would resume it at once.
        async with self.library.locks.acquire(run_id):
            yield (await self.runs.recorder.record(replace(question, run_id=run_id), profile)).run

    async def _close(self, run: RunRow) -> None:
        ended = await self.runs.give_up(run)
        await self.library.journal.deliver(run.id, "shown")
        question = clip(" ".join(run.brief.question.split()), 80)
        if ended.status == "answered":
            warn(
                f"An interrupted run already had its answer: {question}\nTo read it:\n"
                f"  council export {run.conversation_id}"
            )
        else:
            warn(
                f"A run was interrupted too long ago to resume by itself: {question}\nTo resume it:\n"
                f"  council retry {run.id}"
            )


def _question(text: str, files: FilesAsRead, after: str | None = None) -> Question:
    return Question(
        standing=AT_TERMINAL,
        text=text,
        source=person(),
        entry_key=f"{HERE.platform}:{uuid.uuid4()}",
        attachments=files.attachments,
        pictures=files.pictures,
        needs_files=bool(files.attachments),
        conversation_id=after,
    )


def _asks(run: RunRow, question: Question, profile: Profile) -> bool:
    asked = run.brief
    return (
        (asked.question, _named(asked.attachments)) == (question.text, _named(question.attachments))
        and asked.links == question.links
        and asked.profile.name == profile.name
        and _addresses(asked.profile) <= _addresses(profile)
        and question.conversation_id in (None, run.conversation_id)
    )


def _named(files: Iterable[Attachment]) -> list[tuple[str, str]]:
    """Return what tells files apart, also those of which a run reads less."""
    return [(file.name, file.sha256) for file in files]


def _addresses(profile: Profile) -> set[str | None]:
    """Name the addresses of a council's models; the built-in ones have none once there are others."""
    return {seat.endpoint_id for seat in profile.seats}


def person() -> Source:
    """Return who asks here; in a container, it may be only a number."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return HERE.model_copy(update={"user": name})


def say(text: str) -> None:
    """Write lines, or JSON, to standard output; control characters are written as escapes."""
    _write(escaped(text))


def say_bytes(content: bytes) -> None:
    """Write a file's content to standard output as it is, or as `say` does where somebody watches."""
    if sys.stdout.isatty():
        say(content.decode(errors="replace").rstrip())
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.flush()


def warn(text: str) -> None:
    """Write lines to standard error, as `say` does; nobody may be reading."""
    with suppress(OSError):
        sys.stderr.write(f"{escaped(text)}\n")
        sys.stderr.flush()


def tell_unlisted(model: str, near: str | None) -> None:
    warn(f"The provider doesn't list {model}." + (f" Did you mean {near}?" if near else ""))


def show(document: str) -> None:
    """Write a document to standard output, without its control characters."""
    _write(printable(document))


def display(message: Message) -> None:
    """Write a message to standard output, drawn where somebody watches, and an empty line below it."""
    from rich.console import Console

    from bot.terminal.venue import write

    write(message, Console())
    say("")


def paragraph(text: str) -> None:
    """Write a paragraph to standard output; where somebody watches, it is broken between words."""
    if sys.stdout.isatty():
        text = fill(text, get_terminal_size().columns, break_on_hyphens=False)
    say(text)


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def read_line() -> str | None:
    """Wait for a line, blocking everything else; return `None` at the end of input or at Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        while True:
            if sys.stdin.isatty():
                sys.stdout.write("> ")
                sys.stdout.flush()
            try:
                return sys.stdin.buffer.readline().decode(sys.stdin.encoding) or None
            except UnicodeDecodeError:
                say("That isn't UTF-8 text; nothing was asked.")
    except KeyboardInterrupt:
        return None
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def people(
    question: str,
    profile: Profile,
    typical: Typical | None = None,
    *,
    below: str | None = None,
    is_kept: bool = True,
) -> Generator[Emit]:
    """Show the card, then what is wanted `below` it (`none`, `digest` or `full`), then the answer.

    Last comes where the conversation is, unless nothing `is_kept`.

    The built-in model's reviews aren't worth reading: of its runs, nothing is shown below unless it is
    wanted.
    """
    from rich.console import Console

    from bot.terminal.venue import TerminalChannel
    from bot.view.run import RunView

    if profile.demonstration:
        display(Message("demonstration", (Line(wording.TINY_MODEL),)))
    shown = below or ("none" if profile.demonstration else "digest")
    view = RunView(question, profile, started=monotonic(), typical=typical)
    saved = wording.saved if is_kept else None
    with TerminalChannel(Console(), view, below=shown, saved=saved) as channel:
        yield channel.hear


@contextmanager
def events(question: str, profile: Profile, typical: Typical | None = None) -> Generator[Emit]:
    del question, profile, typical

    def hear(event: Event) -> None:
        say(orjson.dumps(to_json(event)).decode())

    yield hear


@contextmanager
def document(question: str, profile: Profile, typical: Typical | None = None) -> Generator[Emit]:
    """Print the answer's message as the document has it, with the conversation's id, alone.

    Without an answer, print why: a sentence, and each member's failure.
    """
    del question, profile, typical

    def hear(event: Event) -> None:
        match event:
            case RunCompleted():
                message = {**event.message.dump(), "conversation_id": event.conversation_id}
                say(orjson.dumps(message, option=orjson.OPT_INDENT_2).decode())
            case RunFailed():
                failed = {
                    name: {"said": failures.failure(why), **why.model_dump(exclude_none=True)}
                    for name, why in event.failures.items()
                }
                said = {"error": event.message, "run_id": event.run_id, "failures": failed}
                say(orjson.dumps(said, option=orjson.OPT_INDENT_2).decode())
                warn(event.message)
            case _:
                pass

    yield hear


class Output(io.FileIO):
    """A file that accepts everything: after the first failed write, nothing more is written."""

    def __init__(self, number: int, lose: Callable[[OSError], None]) -> None:
        super().__init__(number, "w", closefd=False)
        self._lose = lose
        self._lost: OSError | None = None

    @property
    def is_missed(self) -> bool:
        """Whether it was lost while somebody still wanted it: a reader who left has read enough."""
        return self._lost is not None and not isinstance(self._lost, BrokenPipeError)

    def write(self, data: "ReadableBuffer", /) -> int:
        if self._lost is None:
            try:
                return super().write(data)
            except OSError as error:
                self._lost = error
                self._lose(error)
        return memoryview(data).nbytes


@contextmanager
def lasting_output(lose: Callable[[OSError], None]) -> Generator[Output]:
    """Tolerate a failing standard output: call `lose` once and drop the rest."""
    sys.stdout.flush()
    raw = Output(sys.stdout.fileno(), lose)
    out = io.TextIOWrapper(
        io.BufferedWriter(raw), sys.stdout.encoding, sys.stdout.errors, line_buffering=raw.isatty()
    )
    with redirect_stdout(out):
        try:
            yield raw
        finally:
            out.flush()
