"""Where members are asked: by today's configuration, never by what a run's row says.

A row comes from a file that anybody may have written: a backup, a copied database. It says which
members a run has; the configuration says where each of them is asked, and with which key.
"""

from collections.abc import Iterable

from council.calls import Call
from council.errors import Cause, Failure, ModelError
from council.profile import Member, Profile


class Directory:
    """Everybody who may be asked, by council, model and endpoint.

    Members that a changed configuration leaves out stay until the process ends, because the runs
    that began with them still need them.
    """

    def __init__(self, profiles: Iterable[Profile] = ()) -> None:
        self._seats: dict[tuple[str, str], dict[str | None, Member]] = {}
        self._extras: dict[tuple[str, str, str | None], str] = {}
        self.add(profiles)

    def add(self, profiles: Iterable[Profile]) -> None:
        """Add the councils of a configuration."""
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
            raise _refused("not_configured")
        seat = seats.get(member.endpoint_id)
        if seat is None:
            raise _refused("endpoint_changed")
        return member.model_copy(
            update={
                "endpoint": seat.endpoint,
                "api_key_env": seat.api_key_env,
                "dialect": seat.dialect,
                "extra": self._extras.get(_seat_key(call), seat.extra),
                "fallbacks": tuple(model for model in member.fallbacks if model in seat.fallbacks),
            }
        )


def _seat_key(call: Call) -> tuple[str, str, str | None]:
    member = call.member
    return call.profile, member.name or member.model, member.endpoint_id


def _refused(cause: Cause) -> ModelError:
    return ModelError(Failure(cause=cause, attempts=0))
