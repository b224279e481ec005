"""A PostgreSQL of Debian's packages on 127.0.0.1, for as long as one process tests with it.

It syncs nothing and keeps its files in memory, where there is room. Each test has a schema of its own.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest

from tests.conftest import MEMORY

PASSWORD = "quuxzanzibar"  # noqa: S105 - of a server that trusts everybody here
MISSING = "PostgreSQL isn't installed (apt-get install postgresql)"
QUIET = (
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "autovacuum=off",
    "max_connections=60",
)
EMPTY = """
DO $$
DECLARE one text;
BEGIN
    SET session_replication_role = replica;
    FOR one IN SELECT tablename FROM pg_tables
        WHERE schemaname = 'council' AND tablename NOT IN ('migrations', 'spending_key')
    LOOP
        EXECUTE format('DELETE FROM council.%I', one);
    END LOOP;
END
$$
"""
STARTS = 30.0  # seconds, on a busy machine


def binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL's programs, if one is installed."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(found, key=lambda path: int(path.parts[-3]), default=None)
    return newest.parent if newest else None


@dataclass
class PostgresServer:
    """A running server; `process` is its main process."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    _numbers: "count[int]" = field(default_factory=count)

    def address(self, schema: str | None = None) -> str:
        """Return the address of the database, or of one schema in it."""
        options = f"?options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://council:{PASSWORD}@127.0.0.1:{self.port}/postgres{options}"

    @contextmanager
    def emptied(self) -> Generator[str]:
        """Yield the address of a schema whose tables, if there are any yet, are empty.

        Making them takes longer than most tests.
        """
        with psycopg.connect(self.address("council"), autocommit=True) as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS council")
            connection.execute(EMPTY)
        yield self.address("council")

    @contextmanager
    def schema(self) -> Generator[str]:
        """Make an empty schema; yield its address and drop it afterwards."""
        name = f"council_{next(self._numbers)}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
            try:
                yield self.address(name)
            finally:
                connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


@contextmanager
def serve() -> Generator[PostgresServer]:
    """Start a server in a folder of its own; stop it and delete the folder afterwards."""
    programs = binaries()
    if programs is None:
        pytest.skip(MISSING)
    folder = Path(tempfile.mkdtemp(prefix="council-postgres-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        # It refuses to run as root; and it ends with this process, whatever ends that.
        command = ["setpriv", "--pdeathsig", "INT"]
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(folder, user.pw_uid, user.pw_gid)
            command += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        data = folder / "data"
        made = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "council",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        subprocess.run([*command, *made], check=True, capture_output=True, cwd=folder)  # noqa: S603 - ours
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        settings = [part for one in QUIET for part in ("-c", one)]
        started = [programs / "postgres", "-D", data, "-p", str(port), "-k", folder, "-h", "127.0.0.1"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - ours
                [*command, *started, *settings], stdout=log, stderr=log, cwd=folder
            )
        server = PostgresServer(folder, port, process)
        try:
            _wait(server)
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # SIGTERM would wait for every client
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: PostgresServer) -> None:
    until = time.monotonic() + STARTS
    while True:
        try:
            psycopg.connect(server.address()).close()
        except psycopg.OperationalError:
            if server.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((server.folder / "log").read_text()) from None
            time.sleep(0.02)
        else:
            return
