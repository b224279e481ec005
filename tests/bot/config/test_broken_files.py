"""Broken `council.toml`s: all that is wrong is said at once, by key, with what to do."""

import os
import tomllib
from pathlib import Path

import pytest

from bot.config.configuration import load
from bot.errors import ConfigurationError

ROWS = tomllib.loads(Path(__file__).with_name("broken.toml").read_text(encoding="utf-8"))


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where, what and what to do, in a person's words."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("COUNCIL_", "OPENROUTER_", "DISCORD_", "SLACK_", "DATABASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENROUTER_BASE_URL", "http://127.0.0.1:1/v1")
    for name, row in ROWS["files"].items():
        (tmp_path / "council.toml").write_text(row["file"], encoding="utf-8")
        with pytest.raises(ConfigurationError) as caught:
            load()
        said = [str(problem) for problem in caught.value.problems]
        assert said == [ROWS["nobody"] if each == "nobody" else each for each in row["said"]], name
        assert not any("nput should" in each or "pydantic" in each for each in said), name
