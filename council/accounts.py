"""Accounts at model providers: where members are asked, with which key, and whose calls end together."""

from collections import defaultdict
from collections.abc import Iterable

from council.calls import Call
from council.errors import Failure, ModelError
from council.profile import Member, Profile
from council.tasks import Cancellation


class Directory:
    """Everybody who may be asked, by council, model and endpoint.

    A run's row comes from a file that anybody may have written: a backup, a copied database. It says
    which members a run has; the configuration says where each of them is asked, and with which key.
    Members that a changed configuration leaves out stay until the process ends, because the runs
    that began with them still need them.
    """

    def __init__(self, profiles: Iterable[Profile] = ()) -> None:
        self._seats: dict[tuple[str, str], dict[str | None, Member]] = {}
        self._extras: dict[tuple[str, str, str | None], str] = {}
        self.add(profiles)

    def add(self, profiles: Iterable[Profile]) -> None:
        for profile in profiles:
            for seat in profile.seats:
                seats = self._seats.setdefault((profile.name, seat.model), {})
                # A model may sit on the council and in the chair: fallbacks of either are configured.
                known = seats.get(seat.endpoint_id, seat).fallbacks
                fallbacks = tuple(dict.fromkeys((*known, *seat.fallbacks)))
                seats[seat.endpoint_id] = seat.model_copy(update={"fallbacks": fallbacks})
                self._extras[profile.name, seat.name or seat.model, seat.endpoint_id] = seat.extra

    def find(self, call: Call) -> Member:
        """Return the call's member with the endpoint and the key's variable that it has today.

        Only fallbacks that are still configured remain. Raises `ModelError` where the member is no
        longer configured or has another endpoint.
        """
        member = call.member
        seats = self._seats.get((call.profile, member.model))
        if seats is None:
            raise ModelError(Failure(cause="not_configured", attempts=0))
        seat = seats.get(member.endpoint_id)
        if seat is None:
            raise ModelError(Failure(cause="endpoint_changed", attempts=0))
        return member.model_copy(
            update={
                "endpoint": seat.endpoint,
                "api_key_env": seat.api_key_env,
                "dialect": seat.dialect,
                "extra": self._extras.get(
                    (call.profile, member.name or member.model, member.endpoint_id), seat.extra
                ),
                "fallbacks": tuple(model for model in member.fallbacks if model in seat.fallbacks),
            }
        )


class Accounts:
    """The accounts of a run's members: an address and a key make one.

    A provider may refuse a single request as too dear and still take a cheaper one. When it refuses two
    models of an account so, the account is taken to be empty.
    """

    def __init__(self) -> None:
        self._calls: defaultdict[str | None, Cancellation] = defaultdict(Cancellation)
        self._too_dear: defaultdict[str | None, set[str]] = defaultdict(set)

    def calls(self, member: Member) -> Cancellation:
        """Return what ends the calls of a member's account; its cause says why they have ended."""
        return self._calls[_account(member)]

    def note(self, member: Member, why: Failure) -> None:
        """Take in why a member's call failed, and end its account's calls if none can succeed."""
        if why.is_account:
            self.calls(member).cancel(why.cause)
        elif why.cause == "too_dear":
            models = self._too_dear[_account(member)]
            models.add(member.model)
            if len(models) > 1:
                self.calls(member).cancel("credit")

    def seen_whole(self, member: Member, why: Failure) -> Failure:
        """Return a failure as it looks once more of its account is known: too dear, or nothing left."""
        if why.cause == "too_dear" and self.calls(member).cause == "credit":
            return why.model_copy(update={"cause": "credit"})
        return why


def _account(member: Member) -> str | None:
    return member.account_id or member.endpoint_id  # a run of an earlier version has only the latter
