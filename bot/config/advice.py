"""What is wrong with a value that pydantic refuses, and what to write instead."""

from collections.abc import Iterable

from pydantic_core import ErrorDetails
from rapidfuzz import process

from bot.view.wording import cli as wording


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown name: write the one that is meant, or remove it."""
    return near(name, known) or "Remove it; `council config` lists what there is"


def near(name: str, known: Iterable[str]) -> str | None:
    """Return a question for the name that is meant, if one of those known is like it."""
    guess = process.extractOne(name, [*known], score_cutoff=75)
    return f"Did you mean {guess[0]}?" if guess else None


def reason(detail: ErrorDetails) -> str:
    """Return what is wrong with a value."""
    return wording.wrong(detail["type"], detail.get("ctx", {}), str(detail["msg"]))


def remedy(detail: ErrorDetails) -> str:
    """Return what to write instead of a value."""
    context, given = detail.get("ctx", {}), detail["input"]
    return near(str(given), wording.choices(context)) or wording.remedy(detail["type"], context)
