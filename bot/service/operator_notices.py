"""What only an operator can mend, as an empty account or a refused key, and how listed admins are told.

The same is told once a day: a notice is a row of the work list until that day is over, by a key of
digests. What a platform may have delivered is on record before it is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog
from pydantic import BaseModel

from bot.errors import VenueError
from bot.service.access import Admins
from bot.service.delivery.posts import Ledger, Mention
from bot.view.wording import failures as wording
from bot.view.wording.failures import Remedy, Target
from council.calls import Call
from council.document.conversation import Source
from council.errors import Failure, ModelError
from council.events import Emit, Event, MemberFailed
from council.profile import Member, Profile
from storage.database import Statement
from storage.errors import StorageError
from storage.journal.journal import Journal
from storage.journal.rows import NOT_MENTIONED, MentionState
from storage.work import LATEST, Work

log = structlog.get_logger()

Tell = Callable[[Remedy], None]


@dataclass(frozen=True, slots=True)
class Remedies:
    """Knows which settings a failed call depends on.

    `find` says where today's configuration asks a call's member (`council.accounts`), `has_key`
    whether the council's own key is set.
    """

    find: Callable[[Call], Member] = lambda call: call.member
    has_key: bool = True

    def of(self, profile: Profile, failed: Iterable[tuple[str, Failure]]) -> list[Remedy]:
        """Return what to do about members' failures, by their names: each thing once."""
        found: dict[str, Remedy] = {}
        for name, why in failed:
            where = self._target(profile, name)
            if fix := wording.remedy(why, where):
                is_operators = why.reason.fault == "operator"
                said = Remedy(where.model, wording.reason(why, where), fix, is_operators)
                found.setdefault(fix, said)
        return [*found.values()]

    def logged(self, profile: Profile, emit: Emit, tell: Tell | None = None) -> Emit:
        """Return an `emit` that logs each remedy once; never what a provider said, which may quote.

        `tell` hears of accounts that only an operator can mend.
        """
        known: set[str] = set()

        def hear(event: Event) -> None:
            if isinstance(event, MemberFailed):
                why = event.failure
                for found in self.of(profile, [(event.member, why)]):
                    if found.remedy in known:
                        continue
                    known.add(found.remedy)
                    log.warning(
                        "member_failed",
                        model=found.model,
                        account=self._target(profile, event.member).account,
                        cause=why.cause,
                        status=why.status,
                        remedy=f"{found.remedy}.",
                    )
                    if tell and why.is_account:
                        tell(found)
            emit(event)

        return hear

    def _target(self, profile: Profile, name: str) -> Target:
        member = next(seat for seat in profile.seats if seat.name == name)
        call = Call(step="", member=member, prompt=tuple, deadline=0.0, profile=profile.name)
        with suppress(ModelError):  # it may no longer be configured
            member = self.find(call)
        return wording.target(member, has_key=self.has_key)


WAIT_SECONDS = 10.0
"""How long a run that has failed waits to tell its asker that an admin knows."""


Send = Callable[[str, str, str, Mention], Awaitable[None]]
"""Sends an admin a message: their id, a key that no other has, how its text begins at every attempt.

It goes out at low urgency. Raises `VenueError`.
"""


class Notice(BaseModel):
    """What is listed of a notice until it is sent; then its row says `told` or `failed`."""

    platform: str
    admin: str
    subject: str
    telling: MentionState = NOT_MENTIONED


class OperatorNotices:
    """Tells the admins of a run's platform or, where it has none, those of the others.

    `sends` is how messages go out on each open platform; its adapter adds and removes it.
    """

    def __init__(self, journal: Journal, admins: Admins) -> None:
        self._work, self._spending = journal.work, journal.spending
        self._admins = admins
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.sends: dict[str, Send] = {}
        self._begun: set[asyncio.Task[bool]] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def tell(self, where: Source, causes: Sequence[Remedy]) -> bool:
        """Notify who doesn't know yet; return whether an admin has been told of every cause today.

        It returns after some seconds in any case, and continues in the background.
        """
        try:
            day = await self._spending.day(self.now())
            abouts = {f"{day} {await self._spending.digest(one.remedy, day)} ": one for one in causes}
            tasks = [task for each in abouts.items() for task in await self._start(where, day, *each)]
            if tasks:
                await asyncio.wait(tasks, timeout=WAIT_SECONDS)
            known = ["told" in await self._work.items("tell", about) for about in abouts]
        except StorageError:
            log.exception("operators_not_told")
            return False
        return bool(known) and all(known)

    def begin(self, where: Source, cause: Remedy) -> None:
        task = asyncio.create_task(self.tell(where, [cause]))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def settled(self) -> None:
        while tasks := {*self._begun, *self._tasks.values()}:
            await asyncio.wait(tasks)

    async def cancel(self) -> None:
        tasks: list[asyncio.Task[Any]] = [*self._begun, *self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(
        self, where: Source, day: str, about: str, cause: Remedy
    ) -> list[asyncio.Task[None]]:
        found = [(name, admin) for name in self.sends for admin in self._admins.on(name)]
        keys: list[str] = []
        for name, admin in [one for one in found if one[0] == where.platform] or found:
            key = about + await self._spending.digest(f"{name}:{admin}", day)
            notice = Notice(platform=name, admin=admin, subject=cause.subject(day))
            await self._work.add_once("tell", notice.model_dump_json(), key)
            if key not in self._tasks:
                self._tasks[key] = asyncio.create_task(self._keep_at(key, cause.message(day)))
            keys.append(key)
        return [self._tasks[key] for key in keys if key in self._tasks]

    async def _keep_at(self, key: str, text: str) -> None:
        try:
            await self._work.carry_out("tell", partial(self.send, text=text), key, by=LATEST)
        except StorageError:
            log.exception("operators_not_told")
        finally:
            self._tasks.pop(key, None)

    async def send(self, one: Work, text: str = "") -> Sequence[Statement] | None:
        """Send a notice whose day isn't over; `text` is what the list hasn't, since it may quote."""
        day = one.key.partition(" ")[0]
        if day < await self._spending.day(self.now()):
            return ()
        if one.item in ("told", "failed"):
            return None
        notice = Notice.model_validate_json(one.item)
        if not (send := self.sends.get(notice.platform)):
            return None

        async def note(telling: MentionState) -> None:
            noted = notice.model_copy(update={"telling": telling})
            await self._work.change(one, noted.model_dump_json())

        async def sent(_: str) -> None:
            await self._work.change(one, "told", f"{day}~")

        try:
            mention = Mention(text or notice.subject, sent, Ledger(notice.telling, note))
            await send(notice.admin, one.key, notice.subject, mention)
        except VenueError as error:
            log.warning("admin_not_told", admin=f"{notice.platform}:{notice.admin}", reason=error)
            await self._work.change(one, "failed", f"{day}~")
        return None
