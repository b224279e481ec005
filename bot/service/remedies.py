"""Tells operators what to do about failed calls: in the log, or at the terminal."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from bot.view.wording import failures as wording
from bot.view.wording.failures import Remedy, Target
from council.calls import Call
from council.errors import Failure, ModelError
from council.events import Emit, Event, MemberFailed
from council.profile import Member, Profile

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
