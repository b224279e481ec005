"""Connections to PostgreSQL, as this program uses them."""

from typing import Any, cast
from urllib.parse import urlsplit

from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

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
