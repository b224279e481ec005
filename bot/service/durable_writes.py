"""Writes that aren't given up: a run waits for its storage rather than losing what was paid for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, retry_if_exception, wait_exponential

from bot.view.wording.service.failures import HELD
from council.calls import Call, Outcome, Steps
from council.events import Emit, RunHeld
from storage.errors import (
    ConstraintError,
    DamageError,
    DatabaseError,
    FolderError,
    StorageError,
    WriterError,
)

log = structlog.get_logger()

LONGEST_WAIT = 15.0
T = TypeVar("T")


async def until_written(write: Callable[[], Awaitable[T]], emit: Emit) -> T:
    """Write until the storage accepts it; tell the observers when the run pauses and continues.

    Waits for full, read-only and locked disks. Raises what the storage itself refuses.
    """
    try:
        return await write()
    except StorageError as error:
        if not _passes(error):
            raise
        _hold(error, emit)

    async def again() -> T:
        return await write()

    # Created only for a failing write: it costs more than most writes.
    retrying = AsyncRetrying(
        retry=retry_if_exception(_passes),
        wait=wait_exponential(multiplier=0.5, max=LONGEST_WAIT),
        before_sleep=lambda state: state.outcome and _hold(state.outcome.exception(), emit),
    )
    written: T = await retrying(again)
    emit(RunHeld(None))
    return written


def _hold(error: BaseException | None, emit: Emit) -> None:
    log.warning("run_held", reason=error)
    emit(RunHeld(HELD))


async def keep(write: Callable[[], Awaitable[None]], emit: Emit) -> None:
    """Insist on a write to the journal, but continue without a damaged one.

    The answer goes into a document, which needs no journal; only another crash would cost calls.
    """
    try:
        await until_written(write, emit)
    except DamageError:
        log.exception("journal_damaged")


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
