"""Connections to PostgreSQL as this program uses them: its statements there, and what errors mean.

Sentences about errors quote nothing that is stored.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper
from psycopg_pool import PoolTimeout

from storage.database import Parameters, SqlValue
from storage.errors import ConstraintError, DamageError, DatabaseError, QueueFull, ReservationRefused

Connection = AsyncConnection[DictRow]

_SESSION = """
SET lock_timeout = '250ms';
SET idle_in_transaction_session_timeout = '10s';
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 3;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET timezone = 'UTC';
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local');
"""
"""Only a table that is being rewritten is locked for longer; whoever waits for it lets others have the
connection meanwhile. A machine that vanishes loses its locks after 25 seconds; by the system's default,
after two hours.

Searches look costly, so that the index is used. To compile them, or to start processes for them, would
take longer than they do.
"""
_KEEPALIVE = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


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
_PARAMETER = re.compile(r"'(?:[^']|'')*'|\?|(?<!:):([a-z]\w*)")


class _Text(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", " "))  # which no text of PostgreSQL's can hold


class _Number(Loader):
    """Sums of whole numbers come as decimals."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text or "N" in text else int(text)


def server(address: str) -> str:
    """Return what errors call a database, from its address: without name and password."""
    try:
        parts = urlsplit(address)
        host = f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "the database in DATABASE_URL"
    return f"postgresql://{host}{parts.path}"


async def connect(address: str) -> Connection:
    """Return a connection of one's own. Raises `psycopg.Error`."""
    kind = cast("type[Connection]", AsyncConnection)
    connection = await kind.connect(address, row_factory=dict_row, **settings(address))
    await configure(connection)
    return connection


def settings(address: str) -> dict[str, Any]:
    """Return what a connection to an address is opened with. Raises `psycopg.ProgrammingError`."""
    given = conninfo_to_dict(address)
    chosen = {key: value for key, value in _KEEPALIVE.items() if key not in given}
    return {
        **chosen,
        "autocommit": True,
        # In a pipeline that fails, a statement would be taken for prepared that isn't.
        "prepare_threshold": None,
        "cursor_factory": AsyncRawCursor,
        "application_name": given.get("application_name") or "council",
    }


async def configure(connection: Connection) -> None:
    connection.adapters.register_dumper(str, _Text)
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_loader("numeric", _Number)
    await connection.execute(_SESSION.encode())


async def value(connection: Connection, query: bytes, *given: SqlValue) -> Any:  # noqa: ANN401 - what a column holds
    """Return what a query finds that has one row of one column. Raises `psycopg.Error`."""
    [row] = await (await connection.execute(query, given or None)).fetchall()
    return next(iter(row.values()))


def statement(sql: str, parameters: Parameters) -> tuple[bytes, Sequence[SqlValue]]:
    """Return SQL in PostgreSQL's words: with numbered parameters, and their values in that order."""
    query, names = _numbered(sql)
    if isinstance(parameters, Mapping):
        return query, [parameters[name] for name in names]
    return query, parameters


@lru_cache(maxsize=1_000)
def _numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if found[0] == "?":
            names.append("?")
            return f"${len(names)}"
        if name is None:  # a text between quotes
            return found[0]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PARAMETER.sub(number, sql).encode(), tuple(names)


@contextmanager
def explained(address: str) -> Generator[None]:
    """Turn errors of a server, or of its address, into `DatabaseError`."""
    try:
        yield
    except (psycopg.Error, OSError) as error:
        name = server(address)
        if (
            isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None
        ):  # it quotes the address
            raise DatabaseError(f"{name} isn't an address that PostgreSQL has") from None
        raise explain_postgres(name, error) from None


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
