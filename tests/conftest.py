"""What holds for every test."""

import os

import pytest
import structlog


def pytest_configure() -> None:
    """Log plainly: drawing an exception with all its variables takes half a second."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail where nothing may be skipped (`NO_SKIPS=1`, as `.ci/run` sets it) and something was."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("NO_SKIPS") and exitstatus == 0 and reporter and reporter.stats.get("skipped"):
        reporter.write_line(
            "Tests were skipped where everything they need should be installed.", red=True
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
