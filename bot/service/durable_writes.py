"""What a run waits for rather than failing: its storage, and room for another connection."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, retry_if_exception, wait_exponential

from council.calls import Call, Outcome, Steps
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
    return await _until_done(write, _passes, partial(_hold, emit, paused), emit)


def when_connected(work: Callable[[], Awaitable[T]], emit: Emit) -> Awaitable[T]:
    """Wait until this process may open a connection for a call, however long that takes."""
    paused = (
        "Paused: the council has too many connections open. Nothing is lost; the run resumes by itself "
        "once some of them are closed. The log says why."
    )
    return _until_done(work, _lacks_descriptors, partial(_hold, emit, paused), emit)


async def _until_done(
    work: Callable[[], Awaitable[T]],
    passes: Callable[[BaseException], bool],
    hold: Callable[[BaseException | None], None],
    emit: Emit,
) -> T:
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


def _hold(emit: Emit, why: str, error: BaseException | None) -> None:
    log.warning("run_held", reason=error)
    emit(RunHeld(why))


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


@dataclass(frozen=True, slots=True)
class DurableSteps:
    """A run's steps, none of which is lost to a disk that can't be written; a `council.calls.Steps`."""

    steps: Steps
    emit: Emit

    def recall(self, call: Call) -> Outcome | None:
        """Return the recorded outcome of a call's step, or `None`."""
        return self.steps.recall(call)

    def has_begun(self, stage: str) -> bool:
        """Whether any step of a stage's round has ended."""
        return self.steps.has_begun(stage)

    async def record(self, call: Call, outcome: Outcome) -> None:
        """Keep the outcome of a call's step; returns when it is durable."""
        await keep(lambda: self.steps.record(call, outcome), self.emit)
