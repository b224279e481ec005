"""Tells listed admins directly what only an operator can mend: an empty account, a refused key.

The same is told once a day. What a platform may have delivered is on record before it is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from bot.errors import VenueError
from bot.service.admission.permissions import Admins
from bot.view.wording.failures import Remedy
from council.document.conversation import Source
from storage.errors import StorageError
from storage.journal.operator_notices import NoticeRecord, Subject
from storage.journal.rows import MentionState

log = structlog.get_logger()

WAIT_SECONDS = 10.0
"""How long a run that has failed waits to tell its asker that an admin knows."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A direct message to one admin, which is sent once.

    It is about something of `workspace`. `key` tells it from all others, and `subject` is how its text
    begins at every attempt. `telling` is what an earlier attempt has recorded, `note` records what may
    have arrived, `sent` that it has.
    """

    to: str
    workspace: str | None
    key: str
    subject: str
    text: str
    telling: MentionState
    note: Callable[[MentionState], Awaitable[None]]
    sent: Callable[[str], Awaitable[None]]


Send = Callable[[Notice], Awaitable[None]]
"""Sends a notice, at low urgency. Raises `VenueError`."""


@dataclass(frozen=True, slots=True)
class _Recipient:
    platform: str
    admin: str


class OperatorNotices:
    """Tells the admins of a run's platform or, where it has none, those of the others.

    `sends` is how messages go out on each open platform; its adapter adds and removes it.
    """

    def __init__(self, record: NoticeRecord, admins: Admins) -> None:
        self._record = record
        self._admins = admins
        self.sends: dict[str, Send] = {}
        self._begun: set[asyncio.Task[None]] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def tell(self, where: Source, causes: Sequence[Remedy]) -> bool:
        """Tell whoever doesn't know yet; return whether an admin has been told of every cause today.

        It returns after some seconds in any case, and continues in the background.
        """
        try:
            tasks = [task for cause in causes for task in await self._start(where, cause)]
            if tasks:
                await asyncio.wait(tasks, timeout=WAIT_SECONDS)
            known = [await self._record.reached(await self._about(cause)) for cause in causes]
        except StorageError:
            log.exception("operators_not_told")
            return False
        return bool(known) and all(known)

    def begin(self, where: Source, cause: Remedy) -> None:
        """Tell whoever doesn't know yet, in the background."""
        task = asyncio.create_task(self._tell(where, cause))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def _tell(self, where: Source, cause: Remedy) -> None:
        await self.tell(where, [cause])

    async def settled(self) -> None:
        while tasks := {*self._begun, *self._tasks.values()}:
            await asyncio.wait(tasks)

    async def cancel(self) -> None:
        tasks = [*self._begun, *self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _about(self, cause: Remedy) -> Subject:
        return await self._record.about(cause.remedy, self._record.now())

    async def _start(self, where: Source, cause: Remedy) -> list[asyncio.Task[None]]:
        """Begin to tell the admins who are still to be told of a cause."""
        moment, about = self._record.now(), await self._about(cause)
        people = {
            await self._record.person(f"{one.platform}:{one.admin}", moment): one
            for one in self._recipients(where)
        }
        await self._record.open(about, people)
        begun: list[asyncio.Task[None]] = []
        for person, telling in (await self._record.owed(about)).items():
            if person in people:
                key = "/".join((*about.key, person))
                if key not in self._tasks:
                    work = self._send(key, people[person], where, cause, about, person, telling)
                    self._tasks[key] = asyncio.create_task(work)
                begun.append(self._tasks[key])
        return begun

    def _recipients(self, where: Source) -> list[_Recipient]:
        found = [
            _Recipient(platform, admin) for platform in self.sends for admin in self._admins.on(platform)
        ]
        here = [one for one in found if one.platform == where.platform]
        return here or found

    async def _send(
        self,
        key: str,
        to: _Recipient,
        where: Source,
        cause: Remedy,
        about: Subject,
        person: str,
        telling: MentionState,
    ) -> None:
        async def sent(message: str) -> None:
            del message
            await self._record.keep(about, person, "told")

        try:
            if send := self.sends.get(to.platform):
                await send(
                    Notice(
                        to=to.admin,
                        workspace=where.workspace if to.platform == where.platform else None,
                        key=key,
                        subject=cause.subject(about.day),
                        text=cause.message(about.day),
                        telling=telling,
                        note=partial(self._record.keep, about, person, "owed"),
                        sent=sent,
                    )
                )
        except VenueError as error:
            log.warning("admin_not_told", admin=f"{to.platform}:{to.admin}", reason=error)
            await self._record.keep(about, person, "failed")
        except StorageError:
            log.exception("operators_not_told")
        finally:
            self._tasks.pop(key, None)
