"""Deletes what is older than the retention of its channel."""

from datetime import datetime, timedelta

import structlog

from bot.app import Library
from bot.service.admission.channels import ChannelSettings
from council.document.conversation import timestamp
from storage.retention_clock import look_at_clock

log = structlog.get_logger()

GRACE = timedelta(hours=1)
"""How long a channel's new retention waits before it deletes anything."""


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
