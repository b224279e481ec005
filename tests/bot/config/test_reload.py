"""Changes of `council.toml` while the bot runs."""

import asyncio
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.config.configuration import Configuration, load
from bot.serve import compare, reload, watch
from storage.errors import DatabaseError
from tests.pairs import rows

FILE = Path("council.toml")
ONE = '[profiles.default]\nmembers = [{ model = "a", endpoint = "http://127.0.0.1:1/v1" }]\n'
TWO = ONE + ONE.replace("default", "fast")


@pytest.fixture(autouse=True)
def _clean_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start from an empty working folder and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("COUNCIL_", "OPENROUTER_")):
            monkeypatch.delenv(name)


def toml(text: str) -> None:
    FILE.write_text(text, encoding="utf-8")


def dotenv(text: str) -> None:
    Path(".env").write_text(text, encoding="utf-8")


class Swapped:
    """Takes over profiles, and signals when."""

    def __init__(self) -> None:
        self.names: list[list[str]] = []
        self.happened = asyncio.Event()

    def __call__(self, changed: Configuration) -> None:
        self.names.append(sorted(changed.profiles))
        self.happened.set()


@rows(
    ("text", "said"),
    [
        (ONE + "rounds = 2\n", "there is no such key"),
        (ONE + "max_rounds = 9\n", "profiles.default.max_rounds"),
        ("[profiles", "it can't be read as TOML"),
        ("", "there is no profile left"),
    ],
)
async def test_a_broken_file_changes_nothing(text: str, said: str) -> None:
    """The log says why."""
    toml(ONE)
    began = load()
    toml(text)
    swapped = Swapped()
    with capture_logs() as logs:
        await reload(began, swapped)
    assert swapped.names == []
    [entry] = logs
    assert entry["event"] == "configuration_unchanged"
    assert said in str(entry["problems"])


async def test_variables_are_those_of_the_start() -> None:
    """A changed `.env`, even a broken one, has no effect before the next start."""
    dotenv("OPENROUTER_API_KEY=sk-or-1\nCOUNCIL_MEMBERS=a/one")
    toml(TWO)
    began = load()
    dotenv("COUNCIL_MEMBERS=b/two\nCOUNCIL_MEMBER=c\nNEW_KEY=sk-new")
    given: list[Configuration] = []
    with capture_logs() as logs:
        await reload(began, given.append)
        toml(ONE.replace(" }", ', api_key_env = "NEW_KEY" }').replace("default", "fast"))
        await reload(began, given.append)
    assert [[seat.model for seat in each.profiles["default"].members] for each in given] == [["a/one"]]
    assert logs[0]["event"] == "configuration_changed"
    assert logs[1]["problems"] == ["NEW_KEY: profile fast needs it, but it isn't set. Set it in .env"]


async def test_a_changed_file_is_noticed_and_so_is_a_request() -> None:
    """SIGHUP is such a request; only it rereads an unchanged file."""
    toml(ONE)
    swapped, asked = Swapped(), asyncio.Event()
    asked.set()
    watching = asyncio.create_task(watch(load(), asked, swapped, every=0.001))
    try:
        await swapped.happened.wait()
        swapped.happened.clear()
        toml(TWO)
        await swapped.happened.wait()
    finally:
        watching.cancel()
    assert swapped.names[0] == ["default"]
    assert swapped.names[-1] == ["default", "fast"]


def test_only_another_content_has_another_fingerprint() -> None:
    """Whatever the order, the comments and the variables."""
    seen: list[str] = []
    for text in (
        "[limits]\nruns = 3\n" + ONE,
        "# The same\n" + ONE + "[limits]\nruns = 3\n",
        ONE + "[limits]\nruns = 4\n",
        ONE.replace('"a"', '"b"') + "[limits]\nruns = 3\n",
    ):
        toml(text)
        seen.append(load().fingerprint)
    assert len({*seen}) == 3
    assert seen[0] == seen[1]


class Others:
    """Other processes, whose files' fingerprints are looked at one time after the other."""

    def __init__(self, *looks: list[str] | Exception) -> None:
        self.looks = [*looks]
        self.told: list[str] = []
        self.over = asyncio.Event()

    async def publish(self, fingerprint: str) -> list[str]:
        """Note what is told; return the next fingerprints."""
        self.told.append(fingerprint)
        if not self.looks:
            self.over.set()
            return []
        look = self.looks.pop(0)
        if isinstance(look, Exception):
            raise look
        return look


@rows(
    ("looks", "said"),
    [
        ([["a"], ["a", "a"]], []),
        ([["a", "b"], ["a", "a"], ["b"]], []),
        ([["a", "b", "c"], ["b", "c"], ["b"], [], ["b"]], [2]),
        ([["b"], DatabaseError("away"), ["b"], ["b"]], [1]),
        ([["b"], ["b"], ["a"], ["b"], ["b"]], [1, 1]),
    ],
)
async def test_other_files_of_other_processes_are_logged_once(
    looks: list[list[str] | Exception], said: list[int]
) -> None:
    """If they differ at two looks in a row: a file is changed on one machine after the other."""
    others = Others(*looks)
    with capture_logs() as logs:
        comparing = asyncio.create_task(compare(lambda: "a", others.publish, every=0))
        await others.over.wait()
        comparing.cancel()
        await asyncio.gather(comparing, return_exceptions=True)
    assert [(entry["event"], entry["processes"]) for entry in logs] == [
        ("configuration_differs", number) for number in said
    ]
    assert {*others.told} == {"a"}
