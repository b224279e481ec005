"""The commands people type, one registry for every platform's listeners, help and manifest."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from rapidfuzz import process

from council.errors import CouncilError
from council.profile import MOST_ROUNDS, Strategy

Kind = Literal["text", "number", "choice", "profile", "conversation", "file", "flag"]
ACTION = "Ask the council"
"""The message action: the message's text is the question."""
LONGEST_WORDS = 75
"""How long a search may be: a button for its next page holds its words."""
AT_ONCE, MOST_AT_ONCE = 5, 10
DAYS, MOST_DAYS = 30, 3650


class UsageError(CouncilError):
    """A command was typed wrongly; the message says how it goes."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command.

    A `number` is whole and between `least` and `most`; a `choice` is one of `choices`; a `profile`
    is the name of one and a `conversation` the beginning of an id or title, known only at run time; a
    `flag` is on or off. A `text` may have at most `most` characters, where that isn't 0. `missing` is
    said where it is required and left out, if the description doesn't say it well enough.
    """

    name: str
    description: str
    kind: Kind
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    missing: str = ""

    @property
    def allowed(self) -> str:
        """What its value has to be, in words."""
        match self.kind:
            case "number":
                return f"a whole number from {self.least} to {self.most}"
            case "choice":
                return f"one of {', '.join(self.choices)}"
            case "profile":
                return "the name of a profile"
            case "conversation":
                return "how its title or its id begins"
            case _:
                return "a text"


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
        Option("question", "Your question", "text", required=True),
        Option("profile", "Which council answers", "profile"),
        Option(
            "rounds",
            "Review rounds, 1 to 5; each costs as much again",
            "number",
            least=1,
            most=MOST_ROUNDS,
        ),
        Option(
            "strategy", "How the chairman combines the answers", "choice", choices=get_args(Strategy)
        ),
        Option(
            "criteria",
            "What matters, with weights; ! = must-have. Cost:3, Security:2!",
            "text",
        ),
        Option(
            "mode",
            "council: free text; consultants: pros, cons, confidence",
            "choice",
            choices=("council", "consultants"),
        ),
        Option("attachment", "A text file that belongs to the question", "file"),
        Option("private", "Answer me in a direct message", "flag"),
    ),
)
HELP = Command("council-help", "How it works, who sees your question, cost")
HISTORY = Command(
    "council-history",
    "The last answers in this channel",
    (Option("count", "How many at once", "number", least=1, most=MOST_AT_ONCE),),
)
SEARCH = Command(
    "council-search",
    "Find answers in this channel by their words",
    (
        Option(
            "words",
            'Words to find; "quotes" for an exact phrase',
            "text",
            required=True,
            most=LONGEST_WORDS,
        ),
    ),
)
SHOW = Command(
    "council-show",
    "Show a past answer of this channel",
    (Option("answer", "Start of its title or ID", "conversation", required=True),),
)
STATS = Command(
    "council-stats",
    "Usage, cost and how each model did",
    (Option("days", f"Days to count (default {DAYS})", "number", least=1, most=MOST_DAYS),),
)
PAST = (HISTORY, SEARCH, SHOW, STATS)
"""The commands that show past answers; each takes at most one option."""
FORGET = Command(
    "council-forget",
    "Delete one answer, one person's questions, or this channel's history",
    (
        Option(
            "what",
            "Start of an answer's title or ID; me; @person (for admins); or channel",
            "conversation",
            required=True,
            missing="Say what to delete: the start of an answer's title or ID, "
            "`me` (all you asked), `@person` (all they asked, for admins), or `channel`.",
        ),
    ),
)
ATTACHING = (
    "Attach files to a message that mentions the bot, to a direct message to it, or to a message on "
    f"which you use \u201c{ACTION}\u201d. On Discord there is also the option attachment, "
    "at the terminal council ask --attachment."
)
COMMANDS = (ASK, *PAST, FORGET, HELP)

Given = Mapping[str, object]
"""What somebody filled in, by option; `None` where they left it out."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A question with the values of the flags that were typed before it."""

    question: str
    given: Given

    @property
    def is_private(self) -> bool:
        """Whether the asker wants the answer alone."""
        return "private" in self.given


_DOUBLE, _SINGLE = '"\u201c\u201d\u201e', "'\u2018\u2019\u201a"
# Phones curl quotes by the words beside them, so any mark of the kind closes.
_CLOSING = dict.fromkeys(_DOUBLE, _DOUBLE) | dict.fromkeys(_SINGLE, _SINGLE) | {"\u00ab": "\u00bb"}
# Both platforms write a mention of somebody so; Slack adds the name.
_PERSON = re.compile(r"<@!?(\w+)(?:\|[^<>]*)?>", re.ASCII)
_FLAG = re.compile(r"(?:--|\u2014|\u2013)(?P<name>[^\s=]*)=?\s*")


def parse(text: str) -> Typed:
    """Read the text after `/council`, for platforms without typed options.

    Flags are read before the question's first word only; what phones make of hyphens and quotes
    is understood. Raises `UsageError`.
    """
    typed = _typed(text)
    if not typed.question:
        raise UsageError("There is no question. Write one: /council Should we shard now?")
    return typed


def parse_message(text: str) -> Typed:
    """Read a message to the bot like `parse`; its files may hold the question. Raises `UsageError`."""
    typed = _typed(text)
    if typed.is_private:
        raise UsageError("--private works only with /council.")
    return typed


def _typed(text: str) -> Typed:
    rest = text.strip()
    options = {option.name: option for option in ASK.options if not option.required}
    given: dict[str, str | bool] = {}
    while flag := _FLAG.match(rest):
        name = flag["name"].lower()
        rest = rest[flag.end() :]
        if not name:  # `-- question`: the end of the flags
            break
        option = options.get(name)
        if option is None:
            raise UsageError(_unknown(flag["name"]))
        if option.kind == "file":
            raise UsageError(f"Unknown option --{name}. {ATTACHING}")
        if name in given:
            raise UsageError(f"The option --{name} appears twice. Use it once.")
        if option.kind == "flag":
            given[name] = True
        else:
            given[name], rest = _value(option, rest)
    return Typed(rest, given)


def _value(option: Option, text: str) -> tuple[str, str]:
    """Split a flag's value from what follows it."""
    if not text or _FLAG.match(text):
        raise UsageError(f"The option --{option.name} has no value. It takes {option.allowed}.")
    if closing := _CLOSING.get(text[0]):
        end = re.search(rf"[{closing}](?=\s|$)", text[1:])
        if end is None:
            raise UsageError(f"The quotation mark after --{option.name} is never closed.")
        return text[1 : end.start() + 1].strip(), text[end.end() + 1 :].lstrip()
    word = re.match(r"(?:\S*[,;\u3001\uff0c]\s+)*\S+", text)  # a list continues after its comma
    end_of_word = word.end() if word else len(text)
    return text[:end_of_word], text[end_of_word:].lstrip()


def argument(command: Command, text: str) -> Given:
    """Read the text after a command that takes one option at most. Raises `UsageError`."""
    value = " ".join(text.split())
    for option in command.options:
        if value:
            return {option.name: _number(option, value) if option.kind == "number" else value}
        if option.required:
            described = option.description[0].lower() + option.description[1:]
            said = f"/{command.name} takes {option.name}: {described}."
            raise UsageError(option.missing or said)
    return {}


def person(text: str) -> str | None:
    """Return the id of whom a text mentions, if it is a mention and nothing else."""
    found = _PERSON.fullmatch(text.strip())
    return found[1] if found else None


def _number(option: Option, value: str) -> int:
    digits = value.isascii() and value.isdecimal() and len(value) < 6
    if digits and option.least <= int(value) <= option.most:
        return int(value)
    raise UsageError(
        f"The option {option.name} can't be \u201c{value[:60]}\u201d. It takes {option.allowed}."
    )


def described(name: str) -> str:
    """Say what an option of `/council` is for, and what it takes where that isn't any text."""
    [option] = [option for option in ASK.options if option.name == name]
    allowed = f"; {option.allowed}" if option.kind in ("number", "choice") else ""
    return f"{option.description}{allowed}."


def usage(command: Command) -> str:
    """Say what is typed after a command, for platforms without typed options."""
    if command is not ASK:
        return " ".join(one.name if one.required else f"[{one.name}]" for one in command.options)
    flags = (
        f"[--{option.name}]" if option.kind == "flag" else f"[--{option.name} {_hint(option)}]"
        for option in command.options
        if not option.required and option.kind != "file"
    )
    return " ".join((*flags, *(option.name for option in command.options if option.required)))


def _hint(option: Option) -> str:
    match option.kind:
        case "number":
            return f"{option.least}-{option.most}"
        case "choice":
            return "|".join(option.choices)
        case _:
            return option.name.upper()


def _unknown(name: str) -> str:
    known = [option.name for option in ASK.options if not option.required and option.kind != "file"]
    listed = ", ".join(f"--{each}" for each in known)
    guess = process.extractOne(name.lower(), known, score_cutoff=60)
    hint = f"Did you mean --{guess[0]}?" if guess else f"Available: {listed}."
    return f"Unknown option --{name}. {hint} Options come before the question."
