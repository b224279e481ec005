"""Tells operators what to do about failed calls: in the log, or at the terminal."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from bot.view.wording import failures as wording
from bot.view.wording.failures import OperatorCause, Target
from council.calls import Call
from council.errors import Failure, ModelError
from council.events import Emit, Event, MemberFailed
from council.profile import Member, Profile

log = structlog.get_logger()

Failed = Iterable[tuple[str, Failure]]
"""Members' names and why they failed."""
Tell = Callable[[OperatorCause], None]


def _as_recorded(call: Call) -> Member:
    return call.member


@dataclass(frozen=True, slots=True)
class Remedies:
    """Knows which settings a failed call depends on.

    `find` says where today's configuration asks a call's member (`council.accounts`), `has_key`
    whether the council's own key is set.
    """

    find: Callable[[Call], Member] = _as_recorded
    has_key: bool = True

    def advice(self, profile: Profile, failed: Failed) -> list[str]:
        """Return what to do, each thing once, without full stops."""
        found = (wording.remedy(why, self._target(profile, name)) for name, why in failed)
        return [*dict.fromkeys(fix for fix in found if fix)]

    def told(self, profile: Profile, failed: Failed) -> list[str]:
        """Return sentences that say what failed, why, and what to do; the same remedy only once."""
        said: dict[str, str] = {}
        for name, why in failed:
            where = self._target(profile, name)
            if (fix := wording.remedy(why, where)) and (sentence := wording.told(why, where)):
                said.setdefault(fix, sentence)
        return [*said.values()]

    def operators(self, profile: Profile, failed: Failed) -> list[OperatorCause]:
        """Return what only an operator can mend, each thing once."""
        said: dict[str, OperatorCause] = {}
        for name, why in failed:
            if cause := wording.operator_cause(why, self._target(profile, name)):
                said.setdefault(cause.remedy, cause)
        return [*said.values()]

    def logged(self, profile: Profile, emit: Emit, tell: Tell | None = None) -> Emit:
        """Return an `emit` that logs each remedy once; never what a provider said, which may quote.

        `tell` hears of accounts that only an operator can mend.
        """
        known: set[str] = set()

        def hear(event: Event) -> None:
            if isinstance(event, MemberFailed):
                why, where = event.failure, self._target(profile, event.member)
                fix = wording.remedy(why, where)
                if fix and fix not in known:
                    known.add(fix)
                    log.warning(
                        "member_failed",
                        model=where.model,
                        account=where.account,
                        cause=why.cause,
                        status=why.status,
                        remedy=f"{fix}.",
                    )
                    if tell and why.is_account and (cause := wording.operator_cause(why, where)):
                        tell(cause)
            emit(event)

        return hear

    def _target(self, profile: Profile, name: str) -> Target:
        member = next(seat for seat in profile.seats if seat.name == name)
        call = Call(step="", member=member, prompt=tuple, deadline=0.0, profile=profile.name)
        with suppress(ModelError):  # it may no longer be configured
            member = self.find(call)
        return wording.target(member, has_key=self.has_key)
