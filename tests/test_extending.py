"""`docs/dev/extending.md` shows changes that can be made as they are written there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_FILES = 5
CHANGES: dict[str, str] = dict(
    re.findall(
        r"^## (.+?)\n.*?^```diff\n(.+?\n)```$",
        (ROOT / "docs/dev/extending.md").read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
)
FILES = {name: re.findall(r"^\+\+\+ b/(.+)$", change, re.MULTILINE) for name, change in CHANGES.items()}
COMPLETE = (
    "tests/bot/test_actions.py::test_every_command_button_and_form_has_its_handler",
    "tests/bot/view/test_failure_surfaces.py::test_every_cause_has_its_row",
)


def test_each_change_is_shown_in_five_files_at_most() -> None:
    """No more, its test among them."""
    assert [*CHANGES] == ["A command", "A button", "A setting", "A cause", "A check"]
    assert all(len(files) <= MOST_FILES for files in FILES.values())
    assert len(FILES["A cause"]) == 3, "its row, where it happens, its test"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_change_applies(change: str) -> None:
    """To the program as it is."""
    command = ("git", "apply", "-C1", "--check", "-")
    subprocess.run(command, check=True, cwd=ROOT, input=change, text=True)  # noqa: S603 - git alone


@pytest.mark.soak
def test_the_changes_apply_and_pass_the_tests_that_they_bring(tmp_path: Path) -> None:
    """In a copy, by a process of its own: this one has the program as it is. What is compiled comes along."""
    unneeded = shutil.ignore_patterns("node_modules", "pictures", "aimock")
    for folder in ("bot", "council", "storage", "tests", "docs", "bench"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=unneeded)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    alone = os.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PYTHONPATH": str(tmp_path)}

    def run(*command: str, given: str = "") -> None:
        done = subprocess.run(  # noqa: S603 - git and pytest, by names of our own
            command, check=False, cwd=tmp_path, env=alone, input=given, text=True, capture_output=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    for change in CHANGES.values():
        run("git", "apply", "-C1", "-", given=change)
    run(sys.executable, "-m", "bench.settings", "--write")
    tests = [file for files in FILES.values() for file in files if Path(file).name.startswith("test_")]
    assert len(tests) == len(CHANGES)
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *COMPLETE)
