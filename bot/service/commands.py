"""The commands people type: one registry for every platform's listeners, help and manifest."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from rapidfuzz import process

from bot.errors import NoProfile, UsageError
from bot.view.wording import commands as wording
from bot.view.wording.commands import NO_QUESTION, NOTHING_CHANGED
from council.profile import Override, Profile
from council.text import clip

OVERRIDES: Mapping[str, Override] = {
    name: mark
    for name, field in Profile.model_fields.items()
    for mark in field.metadata
    if isinstance(mark, Override)
}
"""What a channel can set, too, by key."""
IN_FULL: Mapping[str, str] = {"depth": "full"}
"""What is set for a question that is asked again in full."""


def choices(key: str) -> tuple[str, ...]:
    """Return the words that an override takes; a yes or no is `on` or `off`."""
    kind = Profile.model_fields[key].annotation
    taken = get_args(kind)
    return ("on", "off") if bool in (kind, *taken) else taken


def optional(keys: Iterable[str]) -> dict[str, Any]:
    """Return a field for each of these overrides, as `create_model` takes it: a word or `None`."""
    taken: dict[str, Any] = {key: Literal[choices(key)] for key in keys}
    return {key: (words | None, None) for key, words in taken.items()}


def chosen(key: str, word: str) -> object:
    return word == "on" if "on" in choices(key) else word


def word_for(key: str, value: object) -> object:
    return ("on" if value else "off") if "on" in choices(key) else value


OptionKind = Literal["text", "number", "choice", "profile", "conversation", "file", "flag"]
ACTION = wording.ASK_ABOUT
"""The message action: the message's text is the question."""
LONGEST_WORDS = 75
"""How long a search may be: a button for its next page holds its words."""
AT_ONCE, MOST_AT_ONCE = 5, 10
DAYS, MOST_DAYS = 30, 3650
MOST_RETENTION = 36_500
"""Days: a hundred years."""
MOVED = ("rounds", "strategy", "criteria", "mode")
"""Options of `/council`, and settings of channels, that profiles have now."""
OVERRIDABLE = tuple(key for key, override in OVERRIDES.items() if override.question)
"""Keys of a profile that a question can set."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command.

    A `number` is whole and between `least` and `most`; a `choice` is one of `choices`; a `profile`
    is the name of one and a `conversation` the beginning of an id or title, known only at run time; a
    `flag` is on or off. A `text` may have at most `most` characters, where that isn't 0. `missing` is
    the reply where it is required and left out. `label` is what a channel's setting is called
    beside its value.
    """

    name: str
    description: str
    kind: OptionKind
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    missing: str = ""
    label: str = ""

    @property
    def allowed(self) -> str:
        """What its value has to be, in words."""
        match self.kind:
            case "number":
                return wording.number(self.least, self.most)
            case "choice":
                return wording.choice(self.choices)
            case "profile":
                return wording.PROFILE_NAME
            case "conversation":
                return wording.WHICH_ANSWER
            case _:
                return wording.TEXT


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name without the slash, what it does, what it takes."""

    name: str
    description: str
    options: tuple[Option, ...] = ()


ASK = Command(
    "council",
    wording.ASK,
    (
        Option("question", wording.QUESTION, "text", required=True),
        Option("profile", wording.PROFILE, "profile"),
        *(Option(key, OVERRIDES[key].question, "choice", choices=choices(key)) for key in OVERRIDABLE),
        Option("attachment", wording.ATTACHMENT, "file"),
        Option("private", wording.PRIVATE, "flag"),
    ),
)
HELP = Command("council-help", wording.HELP)
HISTORY = Command(
    "council-history",
    wording.HISTORY,
    (Option("count", wording.COUNT, "number", least=1, most=MOST_AT_ONCE),),
)
SEARCH = Command(
    "council-search",
    wording.SEARCH,
    (
        Option(
            "words",
            wording.WORDS,
            "text",
            required=True,
            most=LONGEST_WORDS,
            missing=wording.WORDS_ARE_MISSING,
        ),
    ),
)
SHOW = Command(
    "council-show",
    wording.SHOW,
    (
        Option(
            "answer", wording.ANSWER, "conversation", required=True, missing=wording.ANSWER_IS_MISSING
        ),
    ),
)
STATS = Command(
    "council-stats",
    wording.STATS,
    (Option("days", wording.days(DAYS), "number", least=1, most=MOST_DAYS),),
)
PAST = (HISTORY, SEARCH, SHOW, STATS)
"""The commands that show past answers; each takes at most one option."""
FORGET = Command(
    "council-forget",
    wording.FORGET,
    (Option("what", wording.WHAT, "conversation", required=True, missing=wording.WHAT_IS_MISSING),),
)
CONFIG = Command(
    "council-config",
    wording.CONFIG,
    (
        Option("profile", wording.CHANNEL_PROFILE, "profile", label="Council that answers"),
        Option("profiles", wording.CHANNEL_PROFILES, "text", label="Councils that may be asked"),
        *(
            Option(key, override.channel, "choice", choices=choices(key), label=override.label)
            for key, override in OVERRIDES.items()
        ),
        Option("who", wording.WHO, "text", label="Who may ask"),
        Option("budget_day", wording.BUDGET_DAY, "text", label="Budget for a day"),
        Option("budget_month", wording.BUDGET_MONTH, "text", label="Budget for a month"),
        Option(
            "retention",
            wording.RETENTION,
            "number",
            least=1,
            most=MOST_RETENTION,
            label="Old answers",
        ),
        Option("reset", wording.RESET, "text"),
    ),
)
COMMANDS = (ASK, *PAST, FORGET, CONFIG, HELP)

Given = Mapping[str, object]
"""What somebody filled in, by option; `None` where they left it out."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A question with the values of the flags that were typed before it."""

    question: str
    given: Given

    @property
    def is_private(self) -> bool:
        return "private" in self.given


_DOUBLE, _SINGLE = '"\u201c\u201d\u201e', "'\u2018\u2019\u201a"
# Phones curl quotes depending on the words beside them, so any such mark closes.
_CLOSING = dict.fromkeys(_DOUBLE, _DOUBLE) | dict.fromkeys(_SINGLE, _SINGLE) | {"\u00ab": "\u00bb"}
# Both platforms write a mention like this; Slack adds the name.
_PERSON = re.compile(r"<@!?(\w+)(?:\|[^<>]*)?>", re.ASCII)
# Slack adds a name to each mention, which may contain spaces.
_LABEL = re.compile(r"(<[@!#][^<>|]+)\|[^<>]*>")
_FLAGS = re.compile(r"(?:^|\s)(?:--|\u2014|\u2013)(?=\w)")
_HELP = re.compile(r"(?:--|\u2014|\u2013)?help|[?\uff1f]", re.IGNORECASE)
_FLAG = re.compile(r"(?:--|\u2014|\u2013)(?P<name>[^\s=]*)=?\s*")


def parse(text: str) -> Typed:
    """Read the text after `/council`, for platforms without typed options.

    Flags are read only before the question's first word; hyphens and quotes as phones write them
    are understood. Raises `UsageError`.
    """
    typed = _typed(text)
    if not typed.question:
        raise UsageError(NO_QUESTION)
    return typed


def parse_message(text: str) -> Typed:
    """Read a message to the bot like `parse`; its files may hold the question. Raises `UsageError`."""
    typed = _typed(text)
    if typed.is_private:
        raise UsageError(wording.NOT_PRIVATE)
    return typed


def is_help(text: str) -> bool:
    """Return whether a question only asks for the help: it is shown, and no model is asked."""
    return _HELP.fullmatch(text.strip()) is not None


def _typed(text: str) -> Typed:
    rest = text.strip()
    if is_help(rest):
        return Typed(rest, {})
    options = {option.name: option for option in ASK.options if not option.required}
    given: dict[str, str | bool] = {}
    while flag := _FLAG.match(rest):
        name = flag["name"].lower()
        rest = rest[flag.end() :]
        if not name:  # `-- question`: the end of the flags
            break
        if name in MOVED:  # refused where the profiles are known; what would be its value doesn't count
            return Typed(rest, {**given, name: True})
        option = options.get(name)
        if option is None:
            raise UsageError(_unknown(flag["name"], ASK))
        if option.kind == "file":
            raise UsageError(f"Unknown option --{name}. {wording.ATTACHING}")
        if name in given:
            raise UsageError(wording.twice(name))
        if option.kind == "flag":
            given[name] = True
        else:
            given[name], rest = _value(option, rest)
    return Typed(rest, given)


def parse_options(command: Command, text: str) -> Given:
    """Read the text after a command that takes only options; a value ends where the next option begins.

    Raises `UsageError`.
    """
    before, *flags = _FLAGS.split(_LABEL.sub(r"\1>", text))
    if before.strip():
        raise UsageError(
            f"\u201c{' '.join(before.split())[:60]}\u201d isn't an option. Write options with two "
            f"hyphens and a value, such as --depth quick. {NOTHING_CHANGED}"
        )
    options = {option.name: option for option in command.options}
    given: dict[str, str] = {}
    for flag in flags:
        typed, value = re.split(r"[\s=]+|$", flag.strip(), maxsplit=1)
        option = options.get(name := typed.lower().replace("-", "_"))
        if option is None and name not in MOVED:
            raise UsageError(_unknown(typed, command))
        if name in given:
            raise UsageError(wording.twice(name))
        given[name] = value.strip(f"{_DOUBLE}{_SINGLE} ")
        if option and not given[name]:
            raise UsageError(wording.no_value(name, option.allowed))
    return given


def _value(option: Option, text: str) -> tuple[str, str]:
    if not text or _FLAG.match(text):
        raise UsageError(wording.no_value(option.name, option.allowed))
    if closing := _CLOSING.get(text[0]):
        end = re.search(rf"[{closing}](?=\s|$)", text[1:])
        if end is None:
            raise UsageError(wording.NOT_CLOSED.format(option.name))
        return text[1 : end.start() + 1].strip(), text[end.end() + 1 :].lstrip()
    word, *rest = text.split(maxsplit=1)
    return word, "".join(rest)


def argument(command: Command, text: str) -> Given:
    """Read the text after a command with at most one option. Raises `UsageError`."""
    value = " ".join(text.split())
    for option in command.options:
        if value:
            return {option.name: _number(option, value) if option.kind == "number" else value}
        if option.required:
            raise UsageError(option.missing)
    return {}


def given(command: Command, text: str, plain: Callable[[str], str]) -> Given:
    """Read the text after any command but `/council`; `plain` names whom it mentions.

    Raises `UsageError`.
    """
    if command is CONFIG:
        return parse_options(command, text)
    # Whose answers are to be deleted is known by the mention itself.
    is_person = command is FORGET and person(text)
    return argument(command, text if is_person else plain(text))


def person(text: str) -> str | None:
    """Return the id of the person mentioned, if a text is a mention and nothing else."""
    found = _PERSON.fullmatch(text.strip())
    return found[1] if found else None


def _number(option: Option, value: str) -> int:
    digits = value.isascii() and value.isdecimal() and len(value) < 6
    if digits and option.least <= int(value) <= option.most:
        return int(value)
    raise UsageError(wording.wrong(option.name, value[:60], option.allowed))


def described(name: str) -> str:
    [option] = [option for option in ASK.options if option.name == name]
    return wording.described(option.description, option.allowed if option.choices else "")


def usage(command: Command) -> str:
    """Return what is typed after a command, for platforms without typed options."""
    if command is CONFIG:
        return "[--SETTING VALUE] [--reset SETTING]"
    if command is not ASK:
        return " ".join(one.name if one.required else f"[{one.name}]" for one in command.options)
    flags = (
        f"[--{option.name}]"
        if option.kind == "flag"
        else f"[--{option.name} {'|'.join(option.choices) or option.name.upper()}]"
        for option in command.options
        if not option.required and option.kind != "file"
    )
    return " ".join((*flags, *(option.name for option in command.options if option.required)))


def _unknown(name: str, command: Command) -> str:
    known = [option.name for option in command.options if not option.required and option.kind != "file"]
    guess = process.extractOne(name.lower(), known, score_cutoff=60)
    before = command is ASK
    return wording.unknown(name, guess[0] if guess else None, known, before_question=before)


DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of one run: its profile, and the words for what it overrides of that.

    `moved` names an option that profiles have now: with it, nothing is asked.
    """

    profile: str | None = None
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    moved: str | None = None

    @classmethod
    def read(cls, given: Given) -> Self:
        """Read them from a command's options, as texts or already of their type. Raises `UsageError`."""
        profile = given.get("profile")
        own = {key: str(given[key]).strip() for key in OVERRIDABLE if given.get(key) is not None}
        for key, word in own.items():
            if word.lower() not in choices(key):
                wrong = wording.wrong(key, clip(word, 60), wording.choice(choices(key)))
                raise UsageError(wording.not_asked(wrong))
        return cls(
            profile=None if profile is None else str(profile).strip(),
            own={key: word.lower() for key, word in own.items()},
            moved=next((name for name in MOVED if given.get(name) is not None), None),
        )

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Return the options that a run had, so that it can be asked again with them."""
        return cls(
            profile=profile.name,
            own={key: str(word_for(key, getattr(profile, key))) for key in OVERRIDABLE},
        )

    def applied(self, profiles: Mapping[str, Profile]) -> Profile:
        """Return the profile they name, changed by them. Raises `NoProfile` if there is none."""
        words = self.own.items()
        return self._named(profiles).model_copy(update={key: chosen(key, word) for key, word in words})

    def _named(self, profiles: Mapping[str, Profile]) -> Profile:
        name = DEFAULT if self.profile is None else self.profile
        alike = {each.casefold(): profile for each, profile in profiles.items()}
        if profile := profiles.get(name) or alike.get(name.casefold()):
            return profile
        if self.profile is None:
            return next(iter(profiles.values()))
        raise NoProfile(wording.no_profile(clip(name, 60), profiles))


PROFILE_DEFAULTS = RunOptions()
