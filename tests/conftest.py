"""What holds for every test."""

import os

import pytest


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail where nothing may be skipped (`NO_SKIPS=1`, as `.ci/run` sets it) and something was."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("NO_SKIPS") and exitstatus == 0 and reporter and reporter.stats.get("skipped"):
        reporter.write_line(
            "Tests were skipped where everything they need should be installed.", red=True
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
