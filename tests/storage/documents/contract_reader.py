"""A reader that knows the storage contract alone: what another program sees in our documents.

Written from the contract's own words, without anything of this project: fields that it doesn't name
don't exist for it, and everything that it names has to be there and of its type.
"""

import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

ISO_8601 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})")


class ContractBroken(Exception):
    """A document isn't what the contract says."""


def read(path: Path) -> list[str]:
    """Return what such a program would show of a document, line by line."""
    document = json.loads(path.read_bytes())
    _require(str(UUID(document["id"])) == path.stem, "id")
    _require(ISO_8601.fullmatch(document["created_at"]) is not None, "created_at")
    shown = [_text(document, "title")]
    for message in document["messages"]:
        if message["role"] == "user":
            shown.append(_text(message, "content"))
        elif message["role"] == "assistant":
            shown += shown_of(message)
    return shown


def shown_of(message: dict[str, Any]) -> list[str]:
    """Return what such a program would show of an answer, line by line."""
    shown = [f"{_text(one, 'model')}: {_text(one, 'response')}" for one in message["stage1"]]
    first = {one["model"]: one["response"] for one in message["stage1"]}
    _require(len(first) == len(message["stage1"]) > 0, "stage1")
    reviews = message["stage2"]
    for one in reviews:
        shown.append(f"{_text(one, 'model')}: {_text(one, 'ranking')}")
        _require(all(isinstance(label, str) for label in one["parsed_ranking"]), "parsed_ranking")
    if "stage2_5" in message:  # optional: an old reader's page has no such section
        shown += [_correction(one, first) for one in message["stage2_5"]]
    final = message["stage3"]
    return [*shown, f"{_text(final, 'model')}: {_text(final, 'response')}"]


def _correction(one: dict[str, Any], first: dict[str, str]) -> str:
    _require(one["model"] in first, "model consistency")
    _require(one["original_response"] == first[one["model"]], "response match")
    _require(bool(one["corrected_response"]), "non-empty")
    _require(isinstance(one["peer_critiques"], str), "peer_critiques")
    return f"{one['model']}: {one['corrected_response']}"


def _text(holder: dict[str, Any], name: str) -> str:
    _require(isinstance(holder.get(name), str), name)
    return str(holder[name])


def _require(is_so: bool, rule: str) -> None:
    if not is_so:
        raise ContractBroken(rule)
