"""What people read about the bot's access on Slack, and what Slack's errors are called."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

NO_ANSWER = "Slack can't be reached"
UNREADABLE = "Slack's response can't be read"
_TABLES = tomllib.loads(Path(__file__).with_name("slack.toml").read_text("utf-8"))


def _codes(table: str) -> dict[str, str]:
    return {code: words for words, codes in _TABLES[table].items() for code in codes}


TRANSIENT, REVOKED, GONE, FORBIDDEN = map(_codes, ("transient", "revoked", "gone", "forbidden"))
IN_TROUBLE = TRANSIENT["internal_error"]
SCOPES: Mapping[str, str] = _TABLES["scopes"]
"""What each of the app's scopes is for."""


def lacks_scope(scope: str) -> str:
    return f"the scope {scope} is missing" if scope else "a scope is missing"
