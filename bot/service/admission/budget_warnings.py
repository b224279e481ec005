"""Tells admins once that a budget is nearly used up: listed ones directly, others at their next command.

What a platform may have delivered is on record before it is sent, so that a restart neither forgets
an admin nor tells them again and again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import structlog

from bot.errors import VenueError
from bot.service.admission.budgets import NANO, Budgets, nanos, payer
from bot.service.admission.channels import Channels, place_of
from bot.service.admission.permissions import Admins
from bot.view.message import Line, Message
from bot.view.wording.service.budgets import NearlyUsed
from council.document.conversation import Source
from storage.errors import StorageError, Used
from storage.journal.budget_warnings import Budget, BudgetRecord
from storage.journal.journal import Journal, Telling

log = structlog.get_logger()

WARNING_SHARE = 0.8
"""How much of a budget is used when admins are warned."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A direct message to one admin, which is sent once.

    It is about a budget of `workspace`. `key` tells it from all others, and `subject` is how its text
    begins at every attempt. `telling` is what an earlier attempt has recorded, `note` records what may
    have arrived, `sent` that it has.
    """

    to: str
    workspace: str | None
    key: str
    subject: str
    text: str
    telling: Telling
    note: Callable[[Telling], Awaitable[None]]
    sent: Callable[[str], Awaitable[None]]


Send = Callable[[Notice], Awaitable[None]]
"""Sends a notice, at low urgency. Raises `VenueError`."""


class BudgetWarnings:
    """Who is to be told of which budget; it works in the background, so no question waits for it."""

    def __init__(
        self, record: BudgetRecord, journal: Journal, channels: Channels, admins: Admins
    ) -> None:
        self._record = record
        self._journal = journal
        self._channels = channels
        self._admins = admins
        self._sends: dict[str, Send] = {}
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
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def look(self, source: Source, budgets: Budgets) -> None:
        """See whether what was just asked or reserved there has nearly used up a budget."""
        if budgets.are_set:
            self._spawn(partial(self._look, source))

    async def at_command(
        self,
        message: Message,
        who: Source,
        is_admin: Callable[[], Awaitable[bool]],
        show: Callable[[Message], Awaitable[bool]],
    ) -> None:
        """Show somebody's private reply, with what an admin hasn't been told yet above it.

        `show` returns whether it was shown: then it counts as told.
        """
        moment = self._record.now()
        due: list[tuple[Budget, str, str]] = []
        news: list[tuple[Budget, str, str]] = []
        try:
            try:
                due = await self._due(who, moment, is_admin)
                news = await self._still_untold(who, moment, due)
            except StorageError:  # the reply doesn't depend on it
                log.exception("budget_warnings_not_read")
            lines = [Line(line) for _, _, line in news]
            if await show(replace(message, blocks=(*lines, *message.blocks))):
                for budget, person, _ in news:
                    await self._record.keep(budget, person, "told")
        except StorageError:  # it is shown once more at the next command
            log.exception("budget_warning_not_recorded")
        finally:
            self._busy -= {(budget, person) for budget, person, _ in due}

    async def _due(
        self, who: Source, moment: datetime, is_admin: Callable[[], Awaitable[bool]]
    ) -> list[tuple[Budget, str, str]]:
        """Return the budgets of somebody's workspace to tell them of, and mark them as under way."""
        if not who.workspace:
            return []
        person = await self._record.person(f"{who.platform}:{who.user}", moment)
        found = await self._record.untold(payer(who).workspace, person, moment)
        if not found or not await is_admin():
            return []
        lines: dict[Budget, str] = {}
        named: set[Budget] = set()
        # Where somebody asks from needs no run to be known, if those of the budget were forgotten.
        places = [(budget, origin) for budget, origin in found if origin] + [
            (budget, who) for budget, _ in found
        ]
        for budget, origin in places:
            of_origin = await self._record.budget(payer(origin), budget.budgeted, moment)
            if budget in lines or of_origin != budget:
                continue
            named.add(budget)
            for used in await self._nearly_used(origin):
                if (used.scope, used.period) == budget.budgeted:
                    lines[budget] = (await self._worded(origin, used, moment, who)).line
        for budget in {budget for budget, _ in found} - named:
            if worded := await self._of_nobody(budget, moment, who.platform):
                lines[budget] = worded.line
        # Another command of the same person may have come this far meanwhile.
        due = [(budget, person, line) for budget, line in lines.items()]
        due = [each for each in due if each[:2] not in self._busy]
        self._busy |= {(budget, person) for budget, person, _ in due}
        return due

    async def _still_untold(
        self, who: Source, moment: datetime, due: list[tuple[Budget, str, str]]
    ) -> list[tuple[Budget, str, str]]:
        """Leave out what another message told them of before it was marked as under way here."""
        if not due:
            return []
        [person] = {person for _, person, _ in due}
        found = await self._record.untold(payer(who).workspace, person, moment)
        untold = {budget for budget, _ in found}
        return [each for each in due if each[0] in untold]

    async def _of_nobody(self, budget: Budget, moment: datetime, platform: str) -> NearlyUsed | None:
        """Word a budget whose runs were all forgotten, if it is the operator's and still nearly used."""
        scope, period = budget.budgeted
        limit: float | None = getattr(self._channels.operator.budgets, f"{scope}_{period}")
        amount = await self._record.amount(budget)
        if limit is None or amount < WARNING_SHARE * nanos(limit):
            return None
        return NearlyUsed(
            platform=platform,
            user=None,
            channel=None,
            workspace=None,
            scope=scope,
            period=period,
            day=moment.date(),
            used=amount / NANO,
            limit=limit,
        )

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
        return [used for used in found if used.amount >= WARNING_SHARE * used.limit]

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
        worded = await self._worded(source, used, moment)
        for person, telling in (await self._record.owed(budget)).items():
            if person in admins and (budget, person) not in self._busy:
                self._busy.add((budget, person))
                telling_them = partial(
                    self._tell, source.platform, admins[person], budget, person, worded, telling
                )
                self._spawn(telling_them)

    async def _worded(
        self, source: Source, used: Used, moment: datetime, reader: Source | None = None
    ) -> NearlyUsed:
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
            is_here=reader is not None and place_of(reader) == place_of(source),
        )

    async def _tell(
        self,
        platform: str,
        admin: str,
        budget: Budget,
        person: str,
        worded: NearlyUsed,
        telling: Telling,
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
