"""A question on its way to its run: what was asked, how many wait, and the row that begins it."""

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bot.service.access import Requester
from bot.service.commands import PROFILE_DEFAULTS, RunOptions
from bot.service.costs import Costs
from bot.service.limits import Budgets, entry_of, is_exempt, over_limit
from council.brief import Attachment, Brief, Ceilings, Discussion, History, SentFile
from council.document.conversation import Source, timestamp
from council.estimate import Estimate
from council.profile import Profile
from storage.errors import (
    BudgetExceeded,
    QueueFull,
)
from storage.journal.rows import Begun, RunRow
from storage.processes.coordination import Bounds

NO_HISTORY = History()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody asked, where, and how it is to be answered.

    `entry_key` is the same for every delivery of the same question. `asker` is the asker's name
    there, `standing` what the platform says about them. `conversation_id` names the conversation that it
    continues, where that is known; `history` is what came before where that isn't stored. `attachments`
    are files that are read already, with the contents of their `pictures` in Base64 by SHA-256; `sent`
    are read before the run's first call. `needs_files`: without them, it isn't asked. `links` are pages
    to read with it. `context` says which part of a thread comes before it. `asked_in` is where a private
    question was asked, if not at its `source`. `ceilings` and `request` are a program's. `run_id` is the
    run's, where the asker has to know it before.
    """

    text: str
    source: Source
    entry_key: str
    standing: Requester
    asker: str | None = None
    attachments: tuple[Attachment, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    sent: tuple[SentFile, ...] = ()
    needs_files: bool = False
    links: tuple[str, ...] = ()
    context: Discussion | None = None
    options: RunOptions = PROFILE_DEFAULTS
    conversation_id: str | None = None
    asked_in: Source | None = None
    history: History = NO_HISTORY
    ceilings: Ceilings | None = None
    request: str | None = None
    run_id: str | None = None

    @property
    def place(self) -> Source:
        """Where it was asked: whose settings apply."""
        return self.asked_in or self.source

    def brief(self, profile: Profile, entropy: random.Random) -> Brief:
        """Return what a run of this question knows before anything is looked up.

        `profile` is the council that answers, with the question's options.
        """
        return Brief(
            question=self.text,
            profile=profile,
            seed=entropy.getrandbits(53),
            boundary=f"{entropy.getrandbits(64):016x}",
            notes_mark=f"{entropy.getrandbits(64):016x}" if profile.chairman_notes else None,
            asker=self.asker,
            attachments=self.attachments,
            sent=self.sent,
            needs_files=self.needs_files,
            links=self.links,
            context=self.context,
            history=self.history,
            ceilings=self.ceilings,
            request=self.request,
        )


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Records questions as runs, and reopens runs without an answer; `costs` says what they may cost."""

    costs: Costs
    now: Callable[[], datetime] = utc_now
    new_id: Callable[[], uuid.UUID] = uuid.uuid4
    entropy: random.Random = field(default_factory=random.SystemRandom)

    async def record(
        self,
        question: Question,
        profile: Profile,
        *,
        by: float | None = None,
        budgets: Budgets | None = None,
        bounds: Bounds | None = None,
    ) -> Begun:
        """Record a run under a new id, or return the one that an earlier delivery of the question began.

        `profile` is the council that answers, with the question's options. This makes no call; from
        here on, the run doesn't depend on the configuration. Raises `TimeoutError` if writing hasn't
        begun by `by`, a time on the event loop's clock: then the run doesn't exist and never will.
        Raises `Refusal` if it may cost more than a budget has left: one of `budgets`, if they are known
        already, or else of those in force where it is asked. With `bounds`, it enters the queue that
        several processes share; raises `OverLimit` if too many wait there.
        """
        brief = question.brief(profile, self.entropy)
        run = RunRow(
            id=question.run_id or str(self.new_id()),
            entry_key=question.entry_key,
            conversation_id=question.conversation_id or str(self.new_id()),
            origin=question.source,
            brief=brief,
        )
        journal = self.costs.journal
        if is_exempt(question.source):
            return await journal.begin(run, by=by, pictures=question.pictures)
        if budgets is None:
            async with asyncio.timeout_at(by):
                budgets = await self.costs.budgets(question.source)
        budgets = budgets.within(question.ceilings)
        await self.costs.refresh_prices(profile, budgets)
        async with asyncio.timeout_at(by):
            cost = await self.costs.foresee(brief, question.conversation_id)
            worst = await self.costs.worst(budgets, profile, question.source)
        async with self._within(budgets, cost, question.source, bounds):
            return await journal.begin(
                run,
                by=by,
                reservation=budgets.reservation(cost, question.source, worst),
                entry=entry_of(run) if bounds else None,
                bounds=bounds,
                pictures=question.pictures,
            )

    async def reopen(self, run: RunRow, source: Source, bounds: Bounds | None = None) -> RunRow | None:
        """Reopen a run without an answer; who presses Continue pays for it, at `source`.

        Returns `None` if there is none. Raises `Refusal` if a budget hasn't enough left. With `bounds`,
        it enters the queue that several processes share.
        """
        cost = self.costs.estimate(run.brief)
        budgets = await self.costs.budgets(source)
        worst = await self.costs.worst(budgets, run.brief.profile, source)
        async with self._within(budgets, cost, source, bounds):
            return await self.costs.journal.reopen(
                run.id,
                budgets.reservation(cost, source, worst),
                entry=entry_of(run) if bounds else None,
                bounds=bounds,
            )

    @asynccontextmanager
    async def _within(
        self, budgets: Budgets, cost: Estimate, source: Source, bounds: Bounds | None
    ) -> AsyncGenerator[None]:
        """Refuse what a budget or the queue has no room for; have admins told what is nearly used up."""
        try:
            yield
        except BudgetExceeded as error:
            raise budgets.refusal(error, cost) from error
        except QueueFull as error:
            raise (over_limit(error, bounds) if bounds else error) from error
        finally:
            self.costs.warn(source, budgets)

    def age(self, run: RunRow) -> float:
        """Return the seconds since a run was accepted or retried, 0 if the clock was set back."""
        return self.since(run.retried_at or run.created_at)

    def since(self, moment: str) -> float:
        """Return the seconds since a time in ISO 8601, 0 if the clock was set back."""
        return max(0.0, (self.now() - datetime.fromisoformat(moment)).total_seconds())

    def ago(self, days: int) -> str:
        """Return the time this many days ago, in ISO 8601, UTC."""
        return timestamp(self.now() - timedelta(days=days))
