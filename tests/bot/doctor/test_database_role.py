"""`council doctor` on PostgreSQL: whose role may do everything on the server, and who has another file."""

import psycopg
from syrupy.assertion import SnapshotAssertion

from bot.checks.check import carry_out
from bot.checks.machine import ServerChecks
from storage.postgres.opening import open_server
from tests.postgres_server import serve


async def test_a_superuser_is_warned_of(snapshot: SnapshotAssertion) -> None:
    """And an ordinary role isn't; either may use the database."""
    with serve() as server:
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute("CREATE ROLE ordinary LOGIN")
            connection.execute("CREATE DATABASE own OWNER ordinary ENCODING UTF8 TEMPLATE template0")
        ordinary = server.address().replace("council:", "ordinary:").replace("/postgres", "/own")
        for address in (server.address(), ordinary):
            checked = await carry_out(ServerChecks(address, "").checks())
            assert next(each for each in checked if each.name == "Database role").lines() == snapshot


async def agreement(address: str) -> list[str]:
    """Return what doctor says about other processes, with a file of the fingerprint `aaaa`."""
    checked = await carry_out(ServerChecks(address, "aaaa").checks())
    return next(one for one in checked if one.name == "Other processes").lines()


async def test_another_file_of_another_process_is_warned_of(postgres: str) -> None:
    """It says how many have another, of all that run."""
    async with open_server(postgres) as one, open_server(postgres) as other:
        assert await agreement(postgres) == ["✓ Other processes     none is running"]
        await one.locks.publish("aaaa")
        assert await agreement(postgres) == ["✓ Other processes     1 has the same council.toml"]
        await other.locks.publish("bbbb")
        assert await agreement(postgres) == [
            "! Other processes",
            "    COUNCIL_CONFIG: 1 of 2 running processes have another council.toml than this one.",
            "    Fix: Give every machine the same file; what needs a restart is in docs/configuration.md.",
        ]
