"""`council doctor` on PostgreSQL: whose role may do everything on the server."""

import psycopg

from bot.checks.check import carry_out
from bot.checks.database import ServerChecks
from tests.postgres_server import serve


async def test_a_superuser_is_warned_of() -> None:
    """And an ordinary role isn't; either may use the database."""
    with serve() as server:
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute("CREATE ROLE ordinary LOGIN")
            connection.execute("CREATE DATABASE own OWNER ordinary ENCODING UTF8 TEMPLATE template0")
        ordinary = server.address().replace("council:", "ordinary:").replace("/postgres", "/own")
        told = {
            address: next(
                checked
                for checked in await carry_out(ServerChecks(address).checks())
                if checked.name == "Database role"
            ).lines()
            for address in (server.address(), ordinary)
        }
    mark, what, fix = told[server.address()]
    assert mark == "! Database role"
    assert what == (
        "    DATABASE_URL: its role is a superuser: whoever gets at the address can read and change "
        "everything on that server."
    )
    assert fix == (
        "    Fix: Make an ordinary role that owns the council's database, as deploy/postgres-role.sh does, "
        "and name it in the address."
    )
    assert told[ordinary] == ["✓ Database role       no superuser"]
