"""What `deploy/` says agrees with the program, and passes the tools that check such files."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import psycopg
import pytest

from bot.cli import app
from bot.cli.execution import LOST, MISUSED
from bot.config.settings import Settings
from bot.service.limits import Durability
from storage.postgres import database, jobs
from storage.postgres.opening import is_superuser, open_server
from tests.launcher import start
from tests.postgres_server import binaries, serve

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
SETTINGS = {name.upper() for name in Settings.model_fields}
SECRET_FILES = {f"{name}_FILE" for name in SETTINGS}
OTHERS = {"PATH", "PYTHONDONTWRITEBYTECODE"}
"""Variables of the files that are no settings of ours."""
UNITS = ("council.service", "council-worker@.service")
COMPOSED = ("compose.yaml", "compose.postgres.yaml")
SERVERS_OWN = {"POSTGRES_USER", "POSTGRES_PASSWORD_FILE", "POSTGRES_INITDB_ARGS"}
"""Variables of PostgreSQL's image."""
MOST_EXPOSED = 15  # tenths of systemd's points
HADOLINT = Path(sysconfig.get_path("scripts")) / "hadolint"
OF_WORKER, OF_RECEIVER, ADMINISTRATORS = 16, 11, 3
"""Connections to PostgreSQL."""
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd isn't installed (apt-get install systemd)"
)


def text(name: str) -> str:
    """Read one of the files, lines that end in a backslash joined."""
    return (DEPLOY / name).read_text().replace("\\\n", " ")


def unit(file: str = UNITS[0]) -> dict[str, list[str]]:
    """Return a unit's directives, each with its values."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", text(file), re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def ran(*words: str) -> tuple[int, str]:
    ended = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return ended.returncode, ended.stdout + ended.stderr


def make_role(environment: dict[str, str]) -> tuple[int, str]:
    """Run what PostgreSQL's image runs when it makes its data folder."""
    ended = subprocess.run(  # noqa: S603 - our own words
        [DEPLOY / "postgres-role.sh"], env=environment, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


@needs_systemd
@pytest.mark.parametrize("file", UNITS)
def test_systemd_accepts_it(file: str, tmp_path: Path) -> None:
    """With the program where it is here."""
    here = tmp_path / file
    here.write_text(text(file).replace("/srv/council/.venv/bin/council", sys.executable))
    assert ran("systemd-analyze", "verify", str(here)) == (0, "")


@needs_systemd
@pytest.mark.parametrize("file", UNITS)
def test_it_exposes_little(file: str) -> None:
    """By systemd's own count."""
    words = ("security", "--offline=true", f"--threshold={MOST_EXPOSED}")
    code, said = ran("systemd-analyze", *words, str(DEPLOY / file))
    assert code == 0, said


def test_a_workers_unit_differs_in_what_it_runs() -> None:
    """And in its port, which names the instance; everything else is the same."""
    council, worker = map(unit, UNITS)
    assert worker.pop("ExecStart") == ["/srv/council/.venv/bin/council worker"]
    assert worker.pop("Environment") == [f"{council.pop('Environment')[0]} COUNCIL_STATUS_PORT=%i"]
    for name in ("ExecStart", "Description", "Documentation"):
        council.pop(name, None)
        worker.pop(name, None)
    assert worker == council


def test_what_cannot_pass_by_itself_is_not_started_again() -> None:
    """A configuration that can't be used, and a platform that refuses the bot for good."""
    assert unit()["RestartPreventExitStatus"] == [f"{MISUSED} {LOST}"]
    assert unit()["Restart"] == ["on-failure"]


def test_runs_have_time_to_end() -> None:
    """Before they are killed; in a container, too."""
    assert int(unit()["TimeoutStopSec"][0]) > Durability().drain_seconds
    for file in COMPOSED:
        for grace in re.findall(r"stop_grace_period: (\d+)s", text(file)):
            assert int(grace) > Durability().drain_seconds


def test_the_process_that_reads_a_file_may_be_shut_off_and_may_die() -> None:
    """The kernel's killer ends it alone, and it needs Landlock, which systemd's own groups leave out."""
    assert unit()["OOMPolicy"] == ["continue"]
    assert unit()["SystemCallFilter"][-1].split() == [
        "landlock_create_ruleset",
        "landlock_add_rule",
        "landlock_restrict_self",
    ]


def test_hadolint_finds_no_fault() -> None:
    """At any level."""
    assert ran(str(HADOLINT), "--failure-threshold=style", str(DEPLOY / "Dockerfile")) == (0, "")


def test_it_runs_as_nobody_in_particular_on_a_read_only_root() -> None:
    """With no capability, and its only volume for the data."""
    dockerfile, compose = text("Dockerfile"), text("compose.yaml")
    users = re.findall(r"^USER (\S+)$", dockerfile, re.MULTILINE)
    assert users == re.findall(r"^    user: (\S+)$", compose, re.MULTILINE) == ["10001:10001"]
    assert "\n    read_only: true\n" in compose
    assert re.search(r"cap_drop:\n +- ALL\n", compose)
    assert re.findall(r"^VOLUME (\S+)$", dockerfile, re.MULTILINE) == ["/data"]
    assert "COUNCIL_DATA_DIR=/data" in dockerfile
    assert "- data:/data\n" in compose


def test_with_postgresql_it_is_as_closed_as_alone() -> None:
    """Every line that restricts the one container restricts receiver and workers."""
    alone, shared = text("compose.yaml"), text("compose.postgres.yaml")
    common = shared.partition("x-council:")[2].partition("\nservices:")[0]
    for line in ("user: 10001:10001", "read_only: true", "cap_drop:", "- no-new-privileges:true"):
        assert line in alone
        assert line in common
    assert shared.count("<<: *council\n") == 2


def test_the_database_is_as_closed_as_the_others() -> None:
    """It needs no capability either, since it isn't started as root."""
    shared = text("compose.postgres.yaml").partition("\n  database:\n")[2].partition("\n  council:\n")[0]
    for line in ("user: 999:999", "read_only: true", "- ALL", "- no-new-privileges:true"):
        assert f" {line}\n" in shared
    assert re.search(r"^    mem_limit: \S+$", shared, re.MULTILINE)
    assert re.search(r"^    pids_limit: \d+$", shared, re.MULTILINE)


@pytest.mark.parametrize("file", COMPOSED)
def test_no_secret_is_a_variable(file: str) -> None:
    """Each is a file of its own, for the containers that name it."""
    compose = text(file)
    files = {*re.findall(r"^ +\w+_FILE: /run/secrets/(\w+)$", compose, re.MULTILINE)}
    top = compose.partition("\nsecrets:\n")[2].partition("\nvolumes:\n")[0]
    assert {*re.findall(r"^  (\w+):$", top, re.MULTILINE)} == files
    assert {*re.findall(r"^    file: \.\./secrets/(\w+)$", top, re.MULTILINE)} == files
    assert {*re.findall(r"^ +- (\w+)$", compose, re.MULTILINE)} - {"ALL"} == files
    secrets = {name for name in SETTINGS if f"{name}_FILE" in compose}
    assert not [name for name in secrets if re.search(rf"\b{name}:", compose)]


async def test_the_councils_role_is_no_superuser(tmp_path: Path) -> None:
    """The image's script makes it; with the address's password it opens its own database, and serves."""
    address = tmp_path / "database_url"
    with serve() as server:
        address.write_text("postgresql://council:Zq7xKw@database/council\n")
        given = {
            "DATABASE_URL_FILE": str(address),
            "POSTGRES_USER": "council_admin",
            "PGHOST": "127.0.0.1",
            "PGPORT": str(server.port),
            "PATH": f"{binaries()}:{os.environ['PATH']}",
        }
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute("CREATE ROLE council_admin SUPERUSER LOGIN")
        with psycopg.connect(
            server.address().replace("council:", "council_admin:"), autocommit=True
        ) as connection:
            connection.execute("ALTER ROLE council RENAME TO first")
        assert make_role(given) == (0, "")
        own = f"postgresql://council:Zq7xKw@127.0.0.1:{server.port}/council"
        assert not await is_superuser(own)
        assert await is_superuser(server.address().replace("council:", "first:"))
        async with open_server(own) as stores:
            assert await stores.database.read("SELECT count(*) AS runs FROM runs")


def test_a_password_that_would_be_read_as_sql_is_refused(tmp_path: Path) -> None:
    """Before anything is made; it isn't repeated."""
    address = tmp_path / "database_url"
    address.write_text("postgresql://council:x'; DROP@database/council")
    given = {"DATABASE_URL_FILE": str(address), "POSTGRES_USER": "postgres", "PATH": os.environ["PATH"]}
    code, said = make_role(given)
    assert code == 1
    assert "PASSWORD of letters and digits" in said
    assert "DROP" not in said


def test_two_workers_leave_connections_free() -> None:
    """All processes together stay below what the server admits but to its administrator."""
    shared = text("compose.postgres.yaml")
    [most] = re.findall(r"max_connections=(\d+)", shared)
    [workers] = re.findall(r"replicas: (\d+)", shared)
    assert int(workers) == 2
    assert int(workers) * OF_WORKER + OF_RECEIVER < int(most) - ADMINISTRATORS


def test_the_guide_counts_connections_as_the_program_does() -> None:
    """Of the pools, of locks, and of what listens for jobs."""
    assert database.CONNECTIONS + 1 + 2 * jobs.CONNECTIONS + 2 == OF_WORKER
    page = (ROOT / "docs/run.md").read_text()
    assert f"a worker {OF_WORKER}" in page
    assert f"a receiver {OF_RECEIVER}" in page


async def test_the_command_of_each_container_is_there() -> None:
    """With its option."""
    shared = text("compose.postgres.yaml")
    words = [re.findall(r'"([^"]+)"', line) for line in re.findall(r"    command: (.*)", shared)]
    assert words[1:] == [["run", "--receive-only"], ["worker"]]
    for command in words[1:]:
        process = await start(*command, "--help", cwd=ROOT, env={})
        await process.communicate()
        assert process.returncode == 0


def test_what_is_copied_is_there_and_nothing_else_is_sent() -> None:
    """Neither `.env` nor data: everything is left out but what is named."""
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text("Dockerfile"), re.MULTILINE)
        for word in line.split()
    }
    ignored = text("Dockerfile.dockerignore").splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied
    assert ignored[1] == "*"
    assert all((ROOT / name).exists() for name in copied)


def test_the_health_check_asks_the_port_that_is_set() -> None:
    """It is the one that is published on this machine alone, and that Prometheus reads."""
    [port] = re.findall(r"COUNCIL_STATUS_PORT=(\d+)", text("Dockerfile"))
    assert f"http://127.0.0.1:{port}/livez" in text("Dockerfile")
    assert f'COUNCIL_STATUS_PORT: "{port}"' in text("compose.yaml")
    published = re.findall(r'^ +- "(.*)" #', text("compose.yaml"), re.MULTILINE)
    assert published == [f"127.0.0.1:{port}:{port}"]
    assert f"127.0.0.1:{port}" in text("prometheus.yml")


def test_every_variable_is_a_setting() -> None:
    """But a few of the system's."""
    given = {
        *(
            word.partition("=")[0]
            for file in UNITS
            for line in unit(file)["Environment"]
            for word in line.split()
        ),
        *(word for file in COMPOSED for word in re.findall(r"^ +([A-Z_]+):", text(file), re.MULTILINE)),
    }
    final = text("Dockerfile").rpartition("\nFROM ")[2]
    given |= {
        word.partition("=")[0]
        for line in re.findall(r"^ENV (.*)$", final, re.MULTILINE)
        for word in line.split()
    }
    assert given - OTHERS - SERVERS_OWN - {"EXTRAS"} <= SETTINGS | SECRET_FILES
    page = (ROOT / "docs/run.md").read_text()
    named = re.findall(r"\b(?:COUNCIL|DISCORD|SLACK|OPENROUTER)_[A-Z_]+\b", page)
    assert {*named} <= SETTINGS | SECRET_FILES


def test_every_file_and_command_of_the_page_is_there() -> None:
    """Those who follow it word by word find them."""
    page = (ROOT / "docs/run.md").read_text()
    for name in re.findall(r"\bdeploy/[\w.@-]+\w", page):
        assert (ROOT / name).is_file(), name
    for name in re.findall(r"\]\((\w+\.md)", page):
        assert (ROOT / "docs" / name).is_file(), name
    commands = {
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback
    }
    commands |= {group.name for group in app.registered_groups if group.name}
    used = {
        *re.findall(r"`council (\w+)", page),
        *re.findall(r"(?:bin/council|run --rm council|exec council council) (\w+)", page),
    }
    assert used
    assert used <= {name.rstrip("_") for name in commands}


def test_it_leaves_development_and_the_demonstration_out() -> None:
    """As the image does."""
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.partition("\ninstall:")[2].partition("\n\n")[0]
    assert "sync --frozen --no-dev" in recipe
    assert "local" not in recipe
    assert "uv sync --frozen --no-dev" in text("Dockerfile")


def test_uv_is_taken_by_version_and_hash() -> None:
    """In both; and pip refuses what has another hash."""
    wanted = (ROOT / ".uv.txt").read_text()
    assert len(re.findall(r"^uv==\d+\.\d+\.\d+ \\$", wanted, re.MULTILINE)) == 1
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", wanted)) > 10
    for recipe in ((ROOT / "Makefile").read_text(), text("Dockerfile")):
        assert re.search(r"pip install [^&]*--require-hashes [^&]*\.uv\.txt", recipe.replace("\\\n", ""))
        assert not re.search(r"pip install [^\n]*\buv\b(?!\.)", recipe)
