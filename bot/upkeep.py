"""Upkeep every few hours: keeps the index in step with the documents, and deletes what is due."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from bot.app import Library
from bot.service.channels import ChannelSettings
from council.document.conversation import timestamp
from storage.retention_clock import look_at_clock

log = structlog.get_logger()

EVERY = timedelta(hours=6)
GRACE = timedelta(hours=1)
"""How long a channel's new retention waits before it deletes anything."""


async def maintain(
    library: Library, retention_days: int | None, *, messages: bool = False, every: timedelta = EVERY
) -> None:
    """Look after the data folder until cancelled: at once, and then every few hours.

    Of processes that share a database, one at a time does.
    """
    while True:
        try:
            async with library.locks.acquire("upkeep") as is_ours:
                if is_ours:
                    await look_after(library, retention_days, messages=messages)
        except Exception:  # the bot still answers, and the next round tries again
            log.exception("upkeep_failed")
        await asyncio.sleep(every.total_seconds())


async def look_after(
    library: Library,
    retention_days: int | None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    *,
    messages: bool = False,
) -> None:
    """Repair the index, forget what is too old, scrub what was forgotten.

    `retention_days` is for all channels; what is set in a channel may only be stricter. The bot's
    `messages` about what is too old are deleted, too, or they stay.
    """
    await repair_index(library)
    await forget_old(library, retention_days, now(), messages=messages)
    await library.forgetting.scrub(large=True)


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


async def forget_old(
    library: Library, retention_days: int | None, now: datetime, *, messages: bool = False
) -> None:
    """Forget what is older than the retention of its channel, unless the clock may be wrong.

    The bot's `messages` about it are deleted, too, or they stay.
    """
    held = await look_at_clock(library.database, now)
    own = await library.overrides.everywhere("retention")
    if retention_days is None and not own:
        return
    if held:
        log.warning("retention_held", clock_last_seen=held.since, until=held.until)
        return
    for scope, place in (await library.forgetting.select.scopes()).items():
        value, set_at = own.get(place, (None, ""))
        # A typo can be taken back for an hour.
        in_effect = value if set_at <= timestamp(now - GRACE) else None
        limits = retention_days, ChannelSettings.model_validate({"retention": in_effect}).retention
        if days := [limit for limit in limits if limit is not None]:
            moment = now - timedelta(days=min(days))
            selection = await library.forgetting.select.older_than(scope, moment)
            if not selection.is_empty:
                old = selection.model_copy(update={"stay": not messages})
                await library.forgetting.forget(old, by="retention")
                log.info(
                    "old_conversations_forgotten",
                    conversations=len(selection.conversations),
                    runs=len(selection.runs),
                )
