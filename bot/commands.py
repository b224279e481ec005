"""The commands people type, one registry for every platform's listeners, help and manifest."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import process

from council.errors import CouncilError

Kind = Literal["text", "file", "flag"]
ACTION = "Ask the council"
"""The message action: the message's text is the question."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command; `flag` is on or off."""

    name: str
    description: str
    kind: Kind
    required: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name without the slash, what it does, what it takes."""

    name: str
    description: str
    options: tuple[Option, ...] = ()


ASK = Command(
    "council",
    "Ask the council a question",
    (
        Option("question", "What the team wants to know", "text", required=True),
        Option("attachment", "A text file that belongs to the question", "file"),
        Option("private", "Answer me in a direct message", "flag"),
    ),
)
HELP = Command("council-help", "What the council is, what it sees, what it costs")
COMMANDS = (ASK, HELP)


class UsageError(CouncilError):
    """A command was typed wrongly; the message says how it goes."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A question with the flags that were typed before it."""

    question: str
    private: bool = False


def parse(text: str) -> Typed:
    """Read the text after `/council`, for platforms without typed options.

    Flags are read before the question's first word only; what phones make of hyphens and quotes
    is understood. Raises `UsageError`.
    """
    rest = text.strip()
    flags: set[str] = set()
    while rest.startswith(("--", "\u2014")):
        word, _, rest = rest.partition(" ")
        rest = rest.lstrip()
        name = word.lstrip("-\u2014").lower()
        if not name:  # `-- question`: the end of the flags
            break
        known = [option.name for option in ASK.options if option.kind == "flag"]
        if name not in known:
            raise UsageError(_unknown(word, name, known))
        flags.add(name)
    if not rest:
        raise UsageError("There is no question. Write one: /council Should we shard now?")
    return Typed(rest, private="private" in flags)


def _unknown(word: str, name: str, known: Iterable[str]) -> str:
    flags = ", ".join(f"--{each}" for each in known)
    guess = process.extractOne(name, [*known], score_cutoff=60)
    hint = f"Did you mean --{guess[0]}?" if guess else f"There is: {flags}."
    return f"There is no flag {word}. {hint} Flags stand before the question."
