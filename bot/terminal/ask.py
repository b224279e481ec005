"""Questions at the terminal: how a run is shown, what Ctrl-C does, what became of interrupted ones."""

import asyncio
import getpass
import os
import signal
import sys
import uuid
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from time import monotonic

import orjson
import structlog

from bot.app import Library
from bot.service.runs import Question, Runs
from bot.terminal.output import lasting_output
from bot.view.words import clip
from council.brief import Attachment
from council.cancel import Stop
from council.document.conversation import Source
from council.errors import CouncilError
from council.events import Emit, Event, RunCompleted, RunFailed, to_json
from council.profile import Profile
from storage.errors import StorageError
from storage.journal import RunRow
from storage.scope import TERMINAL

log = structlog.get_logger()

Surface = Callable[[str, Profile], AbstractContextManager[Emit]]
"""Shows one run, from the question and the council it was put to; hears the run's events."""

HERE = Source(platform=TERMINAL)
GOING_ON = (
    "Going on with this question's interrupted run, as it was asked then: what was answered isn't paid "
    "for again. --new asks anew."
)
TOO_OLD = "A run was interrupted too long ago to go on by itself: {}\n  council retry {}"
NOT_HERE = "No run that was asked for at this terminal has the id {}."
LEFT = "Left before its end. The same question goes on with it, and so does:\n  council retry {}"
LOST = (
    "The output can't be written any more ({}). The run goes on, and its answer will be kept:\n"
    "  council export {}"
)
NOTHING_TO_RETRY = "This run has its answer, or is on its way; there is nothing to retry."


class NotRetried(CouncilError):
    """There is nothing to go on with; the message says why."""


@dataclass(frozen=True, slots=True)
class Asking:
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
        attachments: tuple[Attachment, ...] = (),
        anew: bool = False,
    ) -> str | None:
        """Ask and show; gives the conversation's id, or `None` where there is no answer.

        `after` names a conversation to go on with. The same question's interrupted run goes on,
        unless it is asked `anew`.
        """
        question = Question(
            text=text,
            source=person(),
            entry_key=f"{HERE.platform}:{uuid.uuid4()}",
            profile=profile,
            conversation_id=after,
            attachments=attachments,
        )
        async with self._run(question, anew) as run:
            return await self._show(run, surface)

    async def retry(self, run_id: str, surface: Surface) -> str | None:
        """Let a run without an answer run again; gives what `ask` gives. Raises `NotRetried`."""
        run = await self.library.journal.get(run_id)
        if run is None or run.origin.platform != HERE.platform:
            raise NotRetried(NOT_HERE.format(run_id))
        async with self.library.holds.hold(run_id) as held:
            reopened = await self.library.journal.reopen(run_id) if held else None
            if reopened is None:
                raise NotRetried(NOTHING_TO_RETRY)
            return await self._show(reopened, surface)

    async def _show(self, run: RunRow, surface: Surface) -> str | None:
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
            _say(LOST.format(error.strerror, run.conversation_id[:8]))

        loop = asyncio.get_running_loop()
        with lasting_output(lose) as output, surface(run.brief.question, run.brief.profile) as emit:
            carrying = asyncio.create_task(self.runs.carry_out(run, emit, stop))
            loop.add_signal_handler(signal.SIGINT, press)
            try:
                message = await carrying
            except asyncio.CancelledError:
                if not left:
                    raise
                _say(LEFT.format(run.id))
                return None
            finally:
                loop.remove_signal_handler(signal.SIGINT)
                await asyncio.gather(*presses)
        if output.is_missed:
            return None
        await self.library.journal.deliver(run.id, "shown")
        return run.conversation_id if message else None

    async def _record_stop(self, run_id: str) -> None:
        try:
            await self.library.journal.press_stop(run_id)
        except StorageError as error:  # it is stopped all the same
            log.warning("stop_not_recorded", run=run_id, reason=error)

    @asynccontextmanager
    async def _run(self, question: Question, anew: bool) -> AsyncGenerator[RunRow]:
        """Hold the interrupted run of this question, or a new one."""
        for run in await self.library.journal.undelivered(HERE.platform):
            if run.origin.user != question.source.user:
                continue
            async with self.library.holds.hold(run.id) as held:
                # Another process may have brought it to its end meanwhile.
                current = await self.library.journal.get(run.id) if held else None
                if current is None or current.delivery is not None:
                    continue
                if self.runs.age(current) > self.resume_within and not current.is_over:
                    await self._close(current)
                elif not anew and _asks(current, question):
                    _say(GOING_ON)
                    yield current
                    return
        run_id = str(self.runs.new_id())
        # Held before it is there to be found: another process would go on with it at once.
        async with self.library.holds.hold(run_id):
            yield (await self.runs.accept(question, run_id)).run

    async def _close(self, run: RunRow) -> None:
        await self.runs.give_up(run)
        await self.library.journal.deliver(run.id, "shown")
        _say(TOO_OLD.format(clip(" ".join(run.brief.question.split()), 80), run.id))


def _asks(run: RunRow, question: Question) -> bool:
    asked = run.brief
    return (
        (asked.question, asked.attachments) == (question.text, question.attachments)
        and asked.profile.name == question.profile.name
        and _addresses(asked.profile) <= _addresses(question.profile)
        and question.conversation_id in (None, run.conversation_id)
    )


def _addresses(profile: Profile) -> set[str | None]:
    """Say where a council's models are asked: the built-in ones can't be, once there are others."""
    return {seat.endpoint_id for seat in profile.seats}


def person() -> Source:
    """Say who asks here; in a container it may be somebody who has only a number."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return HERE.model_copy(update={"user": name})


def _say(text: str) -> None:
    with suppress(OSError):  # nobody may be reading
        print(text, file=sys.stderr)  # noqa: T201 - standard output is the answer's


@contextmanager
def people(question: str, profile: Profile) -> Generator[Emit]:
    """Show the card, then the thread, then the answer."""
    from rich.console import Console

    from bot.terminal.venue import TerminalChannel
    from bot.view.state import opening

    with TerminalChannel(Console(), opening(question, profile, now=monotonic())) as channel:
        yield channel.hear


@contextmanager
def events(question: str, profile: Profile) -> Generator[Emit]:
    """Print every event as one JSON line."""
    del question, profile

    def hear(event: Event) -> None:
        _print(orjson.dumps(to_json(event)))

    yield hear


@contextmanager
def document(question: str, profile: Profile) -> Generator[Emit]:
    """Print the answer's message as the document has it, with the conversation's id, alone."""
    del question, profile

    def hear(event: Event) -> None:
        match event:
            case RunCompleted():
                message = {**event.message.dump(), "conversation_id": event.conversation_id}
                _print(orjson.dumps(message, option=orjson.OPT_INDENT_2))
            case RunFailed():
                print(event.message, file=sys.stderr)  # noqa: T201 - this is the command's output
            case _:
                pass

    yield hear


def _print(line: bytes) -> None:
    sys.stdout.write(line.decode() + "\n")
    sys.stdout.flush()
