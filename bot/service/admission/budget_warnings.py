"""Tells listed admins once, directly, that a budget is nearly used up; the log and a metric say so, too.

What a platform may have delivered is on record before it is sent, so that a restart neither forgets
an admin nor tells them again and again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

import structlog

from bot.errors import VenueError
from bot.service.admission.budgets import NANO, Budgets, nanos, payer
from bot.service.admission.channels import Channels, place_of
from bot.service.admission.notices import Notice, Send
from bot.service.admission.operator_notices import OperatorNotices
from bot.service.admission.permissions import Admins
from bot.service.metrics import Metrics
from bot.view.wording.budgets import NearlyUsed
from council.document.conversation import Source
from storage.errors import StorageError, Used
from storage.journal.budget_warnings import Budget, BudgetRecord
from storage.journal.journal import Journal
from storage.journal.rows import MentionState

log = structlog.get_logger()

WARNING_SHARE = 0.8
"""How much of a budget is used when admins are warned."""


class BudgetWarnings:
    """Who is to be told of which budget; it works in the background, so no question waits for it.

    `operators` tells the same admins what else is theirs to mend.
    """

    def __init__(
        self,
        record: BudgetRecord,
        journal: Journal,
        channels: Channels,
        admins: Admins,
        metrics: Metrics,
    ) -> None:
        self._record = record
        self._journal = journal
        self._channels = channels
        self._admins = admins
        self._metrics = metrics
        self._sends: dict[str, Send] = {}
        self.operators = OperatorNotices(record, admins, self._sends)
        self._seen: set[Budget] = set()
        self._busy: set[tuple[Budget, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, platform: str, send: Send) -> None:
        """Send direct messages this way, those first that an earlier process still owed."""
        self._sends[platform] = send
        self._spawn(partial(self._resume, platform))

    def close(self, platform: str) -> None:
        """Send nothing more there."""
        self._sends.pop(platform, None)

    async def settled(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self) -> None:
        """End what is under way; the next start continues it."""
        await self.operators.cancel()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def look(self, source: Source, budgets: Budgets) -> None:
        """See whether what was just asked or reserved there has nearly used up a budget."""
        if budgets.are_set:
            self._spawn(partial(self._look, source))

    async def _resume(self, platform: str) -> None:
        self._seen.clear()
        for source in await self._record.places(platform):
            await self._look(source)

    async def _look(self, source: Source) -> None:
        moment = self._record.now()
        for used in await self._nearly_used(source):
            budget = await self._record.budget(payer(source), (used.scope, used.period), moment)
            if budget not in self._seen:
                this_month = {one for one in self._seen if one.month == budget.month}
                self._seen = {*this_month, budget}
                try:
                    await self._warn(source, used, budget, moment)
                except BaseException:  # the next question tries again
                    self._seen.discard(budget)
                    raise

    async def _nearly_used(self, source: Source) -> list[Used]:
        budgets = (await self._channels.in_force(source)).budgets
        found = await budgets.used(source, self._journal)
        nearly = [used for used in found if used.amount >= WARNING_SHARE * used.limit]
        # A program's own day is its token's affair, and it is nobody who could be named.
        return [used for used in nearly if source.program is None or used.scope != "user"]

    async def _warn(self, source: Source, used: Used, budget: Budget, moment: datetime) -> None:
        """Log that a budget is nearly used up, and tell the listed admins who don't know."""
        admins = {
            await self._record.person(f"{source.platform}:{admin}", moment): admin
            for admin in self._admins.on(source.platform)
        }
        if await self._record.open(budget, admins):
            log.warning(
                "budget_nearly_used",
                budget=f"{used.scope}_{used.period}",
                dollars=round(used.amount / NANO, 2),
                of_dollars=used.limit / NANO,
            )
            self._metrics.budgets_nearly_used[used.scope, used.period] += 1
        worded = await self._worded(source, used, moment)
        for person, telling in (await self._record.owed(budget)).items():
            if person in admins and (budget, person) not in self._busy:
                self._busy.add((budget, person))
                telling_them = partial(
                    self._tell, source.platform, admins[person], budget, person, worded, telling
                )
                self._spawn(telling_them)

    async def _worded(self, source: Source, used: Used, moment: datetime) -> NearlyUsed:
        operator = (await self._channels.in_force(source)).operator.budgets
        theirs: float | None = getattr(operator, f"{used.scope}_{used.period}")
        return NearlyUsed(
            platform=source.platform,
            user=str(source.user),
            channel=str(place_of(source).channel),
            workspace=source.workspace,
            scope=used.scope,
            period=used.period,
            day=moment.date(),
            used=used.amount / NANO,
            limit=used.limit / NANO,
            is_own=theirs is None or nanos(theirs) != used.limit,
        )

    async def _tell(
        self,
        platform: str,
        admin: str,
        budget: Budget,
        person: str,
        worded: NearlyUsed,
        telling: MentionState,
    ) -> None:
        async def sent(message: str) -> None:
            del message
            await self._record.keep(budget, person, "told")

        try:
            send = self._sends.get(platform)
            if send is None:
                self._seen.discard(budget)
                return
            await send(
                Notice(
                    to=admin,
                    workspace=worded.workspace,
                    key="/".join((*budget.key, person)),
                    subject=worded.subject,
                    text=worded.message,
                    telling=telling,
                    note=partial(self._record.keep, budget, person, "owed"),
                    sent=sent,
                )
            )
        except VenueError as error:
            log.warning("admin_not_told", admin=f"{platform}:{admin}", reason=error)
            await self._record.keep(budget, person, "failed")
        except BaseException:
            self._seen.discard(budget)
            raise
        finally:
            self._busy.discard((budget, person))

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        async def watched() -> None:
            try:
                await work()
            except StorageError:
                log.exception("budget_warning_failed")

        task = asyncio.create_task(watched())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
