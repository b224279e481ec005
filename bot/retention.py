"""Deletes what is older than the retention of its channel."""

from datetime import datetime, timedelta

import structlog

from bot.app import Library
from bot.service.admission.channels import ChannelSettings, Operator, resolve
from council.document.conversation import timestamp
from storage.retention_clock import look_at_clock

log = structlog.get_logger()

GRACE = timedelta(hours=1)
"""How long a channel's new retention waits before it deletes anything."""


async def forget_old(library: Library, retention_days: int | None, now: datetime) -> None:
    """Forget what is older than the retention of its channel, unless the clock may be wrong."""
    held = await look_at_clock(library.database, now)
    own = await library.overrides.everywhere("retention")
    if retention_days is None and not own:
        return
    if held:
        log.warning("retention_held", clock_last_seen=held.since, until=held.until)
        return
    operator = Operator(retention=retention_days)
    for scope, place in (await library.forgetting.scopes()).items():
        value, set_at = own.get(place, (None, ""))
        # A typo can be taken back for an hour.
        in_effect = value if set_at <= timestamp(now - GRACE) else None
        days = resolve(operator, ChannelSettings.model_validate({"retention": in_effect}))[
            "retention"
        ].value
        if isinstance(days, int):
            selection = await library.forgetting.older_than(scope, now - timedelta(days=days))
            if not selection.is_empty:
                await library.forgetting.forget(selection, by="retention")
                log.info(
                    "old_conversations_forgotten",
                    conversations=len(selection.conversations),
                    runs=len(selection.runs),
                )
