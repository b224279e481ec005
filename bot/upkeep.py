"""Upkeep of the data folder: the index kept in step, and old answers deleted in time."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from bot.app import Library

log = structlog.get_logger()

EVERY = timedelta(hours=6)


async def maintain(library: Library, retention_days: int | None, *, every: timedelta = EVERY) -> None:
    """Look after the data folder until cancelled: at once, and then every few hours."""
    while True:
        try:
            await look_after(library, retention_days)
        except Exception:  # the bot still answers, and the next round tries again
            log.exception("upkeep_failed")
        await asyncio.sleep(every.total_seconds())


async def look_after(
    library: Library,
    retention_days: int | None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Repair the index, forget what is older than `retention_days`, scrub what was forgotten."""
    await repair_index(library)
    if retention_days is not None:
        before = now() - timedelta(days=retention_days)
        for scope in await library.forgetting.scopes():
            selection = await library.forgetting.older_than(scope, before)
            if not selection.is_empty:
                await library.forgetting.forget(selection, by="retention")
                log.info(
                    "old_conversations_forgotten",
                    conversations=len(selection.conversations),
                    runs=len(selection.runs),
                )
    await library.forgetting.scrub()


async def repair_index(library: Library) -> None:
    """Bring the index into step with the documents, and log what wasn't."""
    report = await library.index.repair(library.store)
    if not report.consistent:
        log.warning(
            "index_mended",
            missing=len(report.missing),
            stale=len(report.stale),
            orphaned=len(report.orphaned),
        )
    if report.unreadable:
        log.warning("documents_unreadable", names=[problem.name for problem in report.unreadable])
