"""Upkeep every few hours: keeps the index in step with the documents, and deletes what is due."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from bot.app import Library
from bot.retention import forget_old
from bot.service.admission.channels import ChannelSettings
from storage.errors import StorageError

log = structlog.get_logger()

EVERY = timedelta(hours=6)

Job = Callable[[], Awaitable[None]]
"""Something that is looked after, too."""
Removed = Callable[[], Awaitable[Sequence[str]]]
"""Returns the workspaces of a platform whose conversations are to be deleted."""
Halt = Callable[[Sequence[str]], Awaitable[None]]
"""Ends these runs."""


async def maintain(
    library: Library,
    retention_days: int | None,
    *,
    messages: bool = False,
    also: Sequence[Job] = (),
    every: timedelta = EVERY,
) -> None:
    """Look after the data folder until cancelled: at once, and then every few hours.

    Of processes that share a database, one at a time does.
    """
    own = partial(look_after, library, retention_days, messages=messages)
    while True:
        try:
            async with library.locks.acquire("upkeep") as is_ours:
                for job in (*also, own) if is_ours else ():
                    await _try(job)
        except (OSError, StorageError):  # whoever has it can't be known; the next round tries again
            log.exception("upkeep_failed")
        await asyncio.sleep(every.total_seconds())


async def _try(job: Job) -> None:
    try:
        await job()
    except Exception:  # the bot still answers, and the next round tries again
        log.exception("upkeep_failed")


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


async def forget_removed(library: Library, platform: str, removed: Removed, halt: Halt) -> None:
    """Forget everything of workspaces that removed the bot: conversations, runs, channels' settings."""
    if not await removed():
        return
    own = [
        scope
        for key in ChannelSettings.model_fields
        for scope in await library.overrides.everywhere(key)
    ]
    for scope in {*await library.forgetting.select.scopes(), *own}:
        # Asked each time: a workspace may have installed it again meanwhile.
        if scope.platform != platform or scope.workspace not in await removed():
            continue
        selection = await library.forgetting.select.channel(scope)
        if not selection.is_empty:
            await halt(selection.running)
            # The bot can delete nothing there any more.
            await library.forgetting.forget(selection.model_copy(update={"stay": True}), by="removal")
            log.info(
                "removed_workspace_forgotten",
                workspace=scope.workspace,
                conversations=len(selection.conversations),
                runs=len(selection.runs),
            )
        if settings := await library.overrides.of(scope):
            await library.overrides.change(scope, dict.fromkeys(settings), by="removal")


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
