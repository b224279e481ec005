"""A PostgreSQL of Debian's packages on 127.0.0.1, for as long as one process tests with it.

Unless told otherwise, it syncs nothing and keeps its files in memory, where there is room. Each test has
a schema of its own.
"""

import os
import pwd
import shutil
import signal
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
from tests.ports import free_port

PASSWORD = "quuxzanzibar"  # noqa: S105 - of a server that trusts everybody here
MISSING = "PostgreSQL isn't installed (apt-get install postgresql)"
QUIET = (
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "autovacuum=off",
    "jit=off",
    "shared_buffers=16MB",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_connections=120",
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
    """A server; `process` is its main process while it runs."""

    folder: Path
    port: int
    command: list[str | Path]
    process: subprocess.Popen[bytes] | None = None
    _numbers: "count[int]" = field(default_factory=count)
    _emptying: psycopg.Connection | None = None

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.folder)  # noqa: S603 - ours
        self.process = process
        until = time.monotonic() + STARTS
        while True:
            try:
                psycopg.connect(self.address()).close()
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    def stop(self, seconds: float = 10.0) -> None:
        """Stop it, whatever its clients do; after some seconds, by force."""
        if self._emptying is not None:
            self._emptying.close()
            self._emptying = None
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)  # SIGTERM would wait for every client
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.process.kill()
        self.process.wait()
        self.process = None

    def address(self, schema: str | None = None) -> str:
        """Return the address of the database, or of one schema in it."""
        options = f"?options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://council:{PASSWORD}@127.0.0.1:{self.port}/postgres{options}"

    @contextmanager
    def emptied(self) -> Generator[str]:
        """Yield the address of a schema whose tables, if there are any yet, are empty.

        Making them takes longer than most tests; so does a new session, which knows no table yet.
        """
        if self._emptying is None:
            self._emptying = psycopg.connect(self.address("council"), autocommit=True)
            self._emptying.execute("CREATE SCHEMA IF NOT EXISTS council")
        self._emptying.execute(EMPTY)
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
def serve(*more: str, within: Path | None = MEMORY) -> Generator[PostgresServer]:
    """Start a server in a folder of its own, `within` another; stop it and delete the folder afterwards.

    `more` are settings, such as `fsync=on`.
    """
    programs = binaries()
    if programs is None:
        pytest.skip(MISSING)
    place = within if within and within.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="council-postgres-", dir=place))
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
        port = free_port()
        settings = [part for one in (*QUIET, *more) for part in ("-c", one)]
        started = [programs / "postgres", "-D", data, "-p", str(port), "-k", folder, "-h", "127.0.0.1"]
        server = PostgresServer(folder, port, [*command, *started, *settings])
        try:
            server.start()
            yield server
        finally:
            server.stop(1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
