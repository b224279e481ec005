"""What a run waits for: its storage, room for another connection, and questions to be acknowledged.

A platform waits three seconds for an acknowledgement, and a process has one interpreter: where many
people ask at once, calls, cards and threads of the running councils would delay the questions behind.
Slack is acknowledged once a question is written down (`bot/slack/listeners.py`), Discord by the card
itself; what takes longer there is deferred (`bot/discord/replies.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, retry_if_exception, wait_exponential

from council.errors import CouncilError, ModelError
from council.events import Emit, RunHeld
from storage.errors import (
    ConstraintError,
    DamageError,
    DatabaseError,
    FolderError,
    WriterError,
)

log = structlog.get_logger()

FIRST_WAIT, LONGEST_WAIT = 0.5, 15.0
T = TypeVar("T")


async def until_written(write: Callable[[], Awaitable[T]], emit: Emit) -> T:
    """Write until the storage accepts it; tell the observers when the run pauses and continues.

    Waits for full, read-only and locked disks. Raises what the storage itself refuses.
    """
    paused = (
        "Paused: the council's data can't be written. Nothing is lost; the run resumes by itself once "
        "the data can be written again. The log says why."
    )
    return await _until_done(write, _passes, paused, emit)


def when_connected(work: Callable[[], Awaitable[T]], emit: Emit) -> Awaitable[T]:
    """Wait until this process may open a connection for a call, however long that takes."""
    paused = (
        "Paused: the council has too many connections open. Nothing is lost; the run resumes by itself "
        "once some of them are closed. The log says why."
    )
    return _until_done(work, _lacks_descriptors, paused, emit)


async def _until_done(
    work: Callable[[], Awaitable[T]],
    passes: Callable[[BaseException], bool],
    why: str,
    emit: Emit,
) -> T:
    def hold(error: BaseException | None) -> None:
        log.warning("run_held", reason=error)
        emit(RunHeld(why))

    try:
        return await work()
    except CouncilError as error:
        if not passes(error):
            raise
        hold(error)

    async def again() -> T:
        return await work()

    # Created only for what failed: it costs more than most writes.
    retrying = AsyncRetrying(
        retry=retry_if_exception(passes),
        wait=wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT),
        before_sleep=lambda state: state.outcome and hold(state.outcome.exception()),
    )
    done: T = await retrying(again)
    emit(RunHeld(None))
    return done


async def keep(write: Callable[[], Awaitable[None]], emit: Emit) -> None:
    """Insist on a write to the journal, but continue without a damaged one.

    The answer goes into a document, which needs no journal; only another crash would cost calls.
    """
    try:
        await until_written(write, emit)
    except DamageError:
        log.exception("journal_damaged")


def _lacks_descriptors(error: BaseException) -> bool:
    return isinstance(error, ModelError) and error.failure.cause == "descriptors"


def _passes(error: BaseException) -> bool:
    # A run that was forgotten while it ran no longer has a row to write to.
    lasts = isinstance(error, ConstraintError | DamageError | WriterError)
    return isinstance(error, DatabaseError | FolderError) and not lasts


LONGEST_DELAY = 1.0
"""How many seconds anything else waits at most, however many questions arrive."""
DUE_SECONDS = 3.0
"""How long an acknowledgement counts as due; later, no platform takes it."""
LOOKUP_SECONDS = 1.5
"""How long what Slack is asked for about a question may take: who asks, and the files, all at once."""
ACCEPT_SECONDS = 1.0
"""How long a question may then wait to be written down. A write that has begun by then is waited for."""


class Acknowledgements:
    """The questions that have arrived and aren't acknowledged yet, each by its entry key.

    Times are in seconds.
    """

    def __init__(
        self, longest_delay: float | None = LONGEST_DELAY, due_seconds: float = DUE_SECONDS
    ) -> None:
        self._longest_delay = longest_delay
        self._due_seconds = due_seconds
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._none_due = asyncio.Event()
        self._none_due.set()

    def expect(self, entry_key: str) -> None:
        """Hold everything else back until this question is acknowledged, or too old for it."""
        self.settle(entry_key)
        loop = asyncio.get_running_loop()
        self._due[entry_key] = loop.call_later(self._due_seconds, self.settle, entry_key)
        self._none_due.clear()

    def settle(self, entry_key: str) -> None:
        if timer := self._due.pop(entry_key, None):
            timer.cancel()
        if not self._due:
            self._none_due.set()

    async def acknowledged(self) -> None:
        """Wait until no acknowledgement is due, or for the longest delay."""
        if self._due:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._longest_delay):
                    await self._none_due.wait()
