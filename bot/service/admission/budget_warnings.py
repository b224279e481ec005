"""Logs and counts that a budget is nearly used up."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from bot.service.admission.budgets import NANO, Budgets, payer
from bot.service.metrics import Metrics
from council.document.conversation import Source, timestamp
from storage.errors import StorageError
from storage.journal.journal import Journal

log = structlog.get_logger()

WARNING_SHARE = 0.8
"""How much of a budget is used or reserved when it counts as nearly used up."""


class BudgetWarnings:
    """Says so once for each budget and day or month; in the background, so no question waits."""

    def __init__(
        self,
        journal: Journal,
        metrics: Metrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._journal = journal
        self._now = now
        self._metrics = metrics
        self._seen: set[tuple[str, str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, source: Source, budgets: Budgets) -> None:
        """See whether what was just asked or reserved there has nearly used up one of its budgets."""
        if budgets.are_set:
            task = asyncio.create_task(self._look(source, budgets))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self, source: Source, budgets: Budgets) -> None:
        day = timestamp(self._now())[:10]
        try:
            found = await budgets.used(source, self._journal)
        except StorageError:  # the next question looks again
            log.exception("budgets_not_read")
            return
        for used in found:
            period = day if used.period == "day" else day[:7]
            key = (used.scope, str(getattr(payer(source), used.scope)), period)
            # A program's own day is its token's affair.
            is_its_own = source.program is not None and used.scope == "user"
            if is_its_own or used.amount < WARNING_SHARE * used.limit or key in self._seen:
                continue
            self._seen = {one for one in self._seen if one[2].startswith(day[:7])} | {key}
            log.warning(
                "budget_nearly_used",
                budget=f"{used.scope}_{used.period}",
                dollars=round(used.amount / NANO, 2),
                of_dollars=used.limit / NANO,
            )
            self._metrics.budgets_nearly_used[used.scope, used.period] += 1
