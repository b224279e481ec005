"""What PostgreSQL's errors mean, in sentences that quote nothing that is stored."""

from typing import Literal

import psycopg
from psycopg_pool import PoolTimeout

from storage.errors import ConstraintError, DamageError, DatabaseError, QueueFull, ReservationRefused

NO_ANSWER = (psycopg.OperationalError, PoolTimeout, OSError)

# By class or code (PostgreSQL's documentation, appendix A), the more special first.
_MEANINGS = {
    "28": "refuses the user or the password; correct DATABASE_URL",
    "3D": "doesn't exist; create it with createdb, or correct DATABASE_URL",
    "25006": "can't be written, because it is a standby or is set to read only; name the primary server",
    "42501": "doesn't let this user do that; let the user own the database, or its schema",
    "53100": "can't grow, because the server's disk is full; free some space and try again",
    "53300": "has no connection left; raise max_connections, or run fewer processes",
    "55P03": "is locked by another process; wait for it to end, or stop it, and try again",
    "57014": "took too long",
    "57P": "is being shut down or started; try again when it runs",
}
_DAMAGE = ("XX001", "XX002", "22P02", "22032")
"""Damaged pages, and texts that should be JSON."""
_BOUNDS: dict[str, Literal["user", "channel", "cooldown"]] = {
    "waiting_per_user": "user",
    "waiting_per_channel": "channel",
    "cooldown": "cooldown",
}
"""What `accept_turn` calls a bound that is reached."""


def explain_postgres(name: str, error: Exception) -> DatabaseError:
    """Return the error that says what an error of PostgreSQL's means for the database called `name`."""
    state = (error.sqlstate if isinstance(error, psycopg.Error) else None) or ""
    if state.startswith("23") and isinstance(error, psycopg.Error):
        if bound := _BOUNDS.get(error.diag.constraint_name or ""):
            return QueueFull(name, bound, float(error.diag.message_detail or 0))
        broken = error.diag.constraint_name or error.diag.column_name or "a rule"
        refused = ReservationRefused if broken == "spending_room_check" else ConstraintError
        return refused(f"{name}: a row would break {broken}")
    if state in _DAMAGE:
        return damaged(name)
    for code, meaning in _MEANINGS.items():
        if state.startswith(code):
            return DatabaseError(f"{name} {meaning} ({state})")
    if not state and isinstance(error, NO_ANSWER):
        reason = _unanswered(error)
        return DatabaseError(
            f"{name} can't be reached{reason}; check that the server runs, and DATABASE_URL"
        )
    return DatabaseError(f"{name}: {type(error).__name__} {state}".rstrip())


def damaged(name: str) -> DamageError:
    """Return the error that says that a database doesn't contain what was written."""
    return DamageError(f"{name} is damaged, or was changed by hand; restore a backup")


def _unanswered(error: Exception) -> str:
    """Return why nobody answers, as far as the library tells that in words without the address."""
    said = str(error)
    for sign, reason in (
        ("password authentication failed", ": it refuses the user or the password"),
        ("no password supplied", ": it wants a password"),
        ("does not exist", ": the database or the user doesn't exist"),
        ("Connection refused", ": the connection is refused"),
        ("No such file or directory", ": there is no such socket"),
        ("resolve", ": its name is unknown"),
        ("Name or service not known", ": its name is unknown"),
        ("SSL", ": it wants other encryption (sslmode)"),
        ("starting up", ": it is starting"),
        ("shutting down", ": it is being shut down"),
        ("too many", ": it has no connection left"),
    ):
        if sign in said:
            return reason
    return ""
