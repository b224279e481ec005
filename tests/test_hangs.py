"""Each test has a limit of time: one that hangs ends with its name, and the others run."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.test_documents import ROOT

CONFIGURATION = ROOT / "pyproject.toml"
PLANTED = """
import asyncio
import threading
import time

async def test_waits_for_nothing():
    await asyncio.Event().wait()

def test_sleeps():
    threading.Event().wait()

def test_computes():
    while time.monotonic():
        pass

def test_ends():
    pass
"""


@pytest.mark.soak
def test_a_hang_ends_with_its_name(tmp_path: Path) -> None:
    """Whether it waits in a loop, in a thread, or computes."""
    planted = tmp_path / "test_planted.py"
    planted.write_text(PLANTED)
    words = ("-m", "pytest", "-c", str(CONFIGURATION), "--rootdir", str(tmp_path), str(planted))
    plugins = [f"-ppytest_{name}" for name in ("asyncio.plugin", "socket", "timeout")]  # few, in no time
    ended = subprocess.run(  # noqa: S603 - our own words
        (sys.executable, *words, "--timeout", "0.3", "-pno:cacheprovider", *plugins),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert ended.returncode == 1
    failed = re.findall(r"^FAILED test_planted\.py::(\w+) - Failed: Timeout", ended.stdout, re.MULTILINE)
    assert failed == ["test_waits_for_nothing", "test_sleeps", "test_computes"]
    assert "3 failed, 1 passed" in ended.stdout


def test_every_test_has_a_limit(request: pytest.FixtureRequest) -> None:
    """Far above what it takes on a busy machine, far below what a job may take."""
    options = tomllib.loads(CONFIGURATION.read_text())["tool"]["pytest"]["ini_options"]
    assert 60 <= options["timeout"] <= 600
    assert float(request.config.getini("timeout")) == options["timeout"]
