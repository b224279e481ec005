"""Configuration of all tests."""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests import clock  # noqa: F401 # pyright: ignore[reportUnusedImport] - before what names it
from tests.launcher import PLACE

if TYPE_CHECKING:
    from tests.postgres_server import PostgresServer
    from tests.stores import Home

# The same examples every time, and few; `make fuzz` looks for new ones. A busy machine isn't a slow program.
settings.register_profile("tests", max_examples=25, deadline=None, derandomize=True, database=None)
settings.load_profile("tests")

FAKES_TESTS = (
    "test_deploy_guide.py",
    "test_discord_server.py",
    "test_doctor.py",
    "test_doctor_command.py",
    "test_guides.py",
    "test_secrets.py",
    "test_slack_server.py",
)
"""These call whatever their servers have; `council doctor` calls what isn't on any answer's way."""

COUNCIL = Path(__file__).parent / "council"
FIRST_PART = 0.7
"""Of the run: where the files that start processes are."""

SOAK_SECONDS = 3600
"""How long a slow proof may take."""

MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a private folder in it
ROOM = 2_000_000_000  # bytes


def pytest_configure(config: pytest.Config) -> None:
    """Keep files in memory where there is room, log plainly, and share the process to fork from.

    What pytest and Python make of a source file is kept, whatever the environment says: to rewrite the
    assertions of all tests takes each worker five seconds, and every process that is started would
    compile what has changed since `make setup`.

    Tests sync thousands of files, and on a busy disk wait for that longer than for anything else.
    Drawing an exception with all its variables takes half a second. All workers start processes from
    the same one, which they find in a folder of this run.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        os.environ.pop(name, None)  # SDKs send everything through it
    if not hasattr(config, "workerinput"):
        place = tempfile.mkdtemp(prefix="council-tests-")
        config.add_cleanup(lambda: shutil.rmtree(place))
        os.environ[PLACE] = place
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    )


def pytest_collection(session: pytest.Session) -> None:
    """Look for garbage less often, since thousands of tests aren't garbage, and for no constants at all.

    Hypothesis reads those of all imported files, and so a test's examples would differ by worker.
    """
    gc.set_threshold(1_000_000, 20, 20)
    if session.config.getoption("hypothesis_profile") != "fuzz":
        providers._get_local_constants = Constants  # pyright: ignore[reportPrivateUsage]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Look for garbage only among what the tests make, not among the tests and what they import."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix the files that start processes, and mostly wait, with those that mostly compute.

    The former come evenly spread over the first part of the run: beside each, others keep the cores
    busy, and none is left when the rest is done. The council's come last: they are quick, so that no
    worker is left alone with a long one.
    """
    kinds: dict[bool, dict[Path, float]] = {True: {}, False: {}}
    for item in sorted(items, key=lambda item: item.path.is_relative_to(COUNCIL)):
        kinds[_starts_processes(item.path)].setdefault(item.path, 0.0)
    for starts, files in kinds.items():
        for number, file in enumerate(files):
            files[file] = number / len(files) * (FIRST_PART if starts else 1)
    for item in items:
        if item.get_closest_marker("soak") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SOAK_SECONDS))
    items.sort(key=lambda item: kinds[_starts_processes(item.path)][item.path])


def _starts_processes(file: Path) -> bool:
    return file.parent.name in ("crashes", "processes", "tests")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail where nothing may be skipped (`NO_SKIPS=1`, as `.ci/run` sets it) and something was."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("NO_SKIPS") and exitstatus == 0 and reporter and reporter.stats.get("skipped"):
        reporter.write_line(
            "Tests were skipped where everything they need should be installed.", red=True
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def documented_calls(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where the program calls what `tests/faults` doesn't list, so that no fault is left out of it."""
    asked = getattr(sys.modules.get("tests.discord_server.rest"), "ASKED", set[str]())
    called = getattr(sys.modules.get("tests.slack_server.web_api"), "CALLED", set[str]())
    asked.clear()
    called.clear()
    yield
    if (asked or called) and request.path.name not in FAKES_TESTS:
        from tests.faults.documented import DISCORD, SLACK

        assert asked <= DISCORD.endpoints.keys()
        assert called <= SLACK.methods.keys()


@pytest.fixture(scope="session")
def postgres_server() -> "Iterator[PostgresServer]":
    """A PostgreSQL server for all tests of this process; where there is none, its tests are skipped."""
    from tests.postgres_server import serve

    with serve() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: "PostgresServer") -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    with postgres_server.emptied() as address:
        yield address


@pytest.fixture(params=("sqlite", "postgres"))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> "Home":
    """Where everything is kept, for each store: empty."""
    from tests.stores import Home

    return Home(tmp_path, request.getfixturevalue("postgres") if request.param == "postgres" else None)
