"""The example in the pictures (`bot.demo.scenario`), as a model provider on 127.0.0.1 plays it.

Everything around its texts is a real run. Which part a model plays is read from the prompt it was sent.
"""

from typing import cast

from bot.demo import scenario
from bot.demo.scenario import TextKind
from tests.model_server import Json

MIGRATION = scenario.example("migration")
MEMBERS = MIGRATION.members
CHAIRMAN = MIGRATION.cast.chairman
TITLE_MODEL = scenario.TITLE_MODEL
_MARKS: tuple[tuple[str, TextKind], ...] = (
    ("Then rank them.", "review"),
    ("whole corrected answer", "correction"),
    ("Give this conversation a title", "title"),
    ("Now answer the question itself", "final"),
)


def part(request: Json) -> TextKind:
    """Return which part of a council a request asks for."""
    last = _messages(request)[-1]
    for mark, name in _MARKS:
        if mark in last:
            return name
    return "answer"


def play(request: Json) -> str:
    """Return what the asked model says in the part it is asked for."""
    return MIGRATION.says(part(request), str(request["model"]), _messages(request)[-1])


def _messages(request: Json) -> list[str]:
    return [str(message["content"]) for message in cast("list[Json]", request["messages"])]
