"""One question at the terminal: how the run is shown, and what Ctrl-C does."""

import asyncio
import getpass
import signal
import sys
import uuid
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic

import orjson

from bot.runs import Question, Runs
from council.brief import Attachment
from council.conversation import Source
from council.cutoff import Stop
from council.events import Emit, Event, RunCompleted, RunFailed, to_json
from council.profile import Profile

Surface = Callable[[str, Profile], AbstractContextManager[Emit]]
"""Shows one run, from the question and the council it was put to; hears the run's events."""

HERE = Source(platform="terminal")


async def ask(
    runs: Runs,
    profile: Profile,
    text: str,
    surface: Surface,
    *,
    after: str | None = None,
    attachments: tuple[Attachment, ...] = (),
) -> str | None:
    """Ask and show; gives the conversation's id, or `None` where there is no answer.

    `after` names a conversation to go on with.
    """
    stop = Stop()
    loop = asyncio.get_running_loop()
    with surface(text, profile) as emit:
        question = Question(
            text=text,
            source=HERE.model_copy(update={"user": getpass.getuser()}),
            entry_key=f"terminal:{uuid.uuid4()}",
            profile=profile,
            conversation_id=after,
            attachments=attachments,
        )
        begun = await runs.accept(question)
        loop.add_signal_handler(signal.SIGINT, stop.press)
        try:
            message = await runs.carry_out(begun.run, emit, stop)
            return begun.run.conversation_id if message else None
        finally:
            loop.remove_signal_handler(signal.SIGINT)


@contextmanager
def people(question: str, profile: Profile) -> Generator[Emit]:
    """Show the card, then the thread, then the answer."""
    from rich.console import Console

    from bot.terminal import TerminalChannel
    from bot.view import opening

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
