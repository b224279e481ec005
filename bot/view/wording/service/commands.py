"""The commands as platforms list them, and the replies to one typed wrongly."""

from collections.abc import Iterable, Sequence

ASK_ABOUT = "Ask the council"
"""The message action."""
TAKE_MESSAGE = "Use this message as the question"

ASK = "Ask the council a question"
QUESTION = "Your question"
EXAMPLE = "Should we shard the database now, or buy a bigger machine first?"
"""What Slack shows beside /council while it is typed."""
PROFILE = "Which council answers"
ROUNDS = "Review rounds, 1 to 5; each costs as much again"
STRATEGY = "How the chairman combines the answers"
CRITERIA = "What matters, with weights; ! = must-have. Cost:3, Security:2!"
MODE = "council: free text; consultants: pros, cons, confidence"
ATTACHMENT = "A text file to read with the question"
PRIVATE = "Answer me in a direct message"
HELP = "How it works, who sees your question, cost"
HISTORY = "The last answers in this channel"
COUNT = "Answers per page"
SEARCH = "Find answers in this channel by their words"
WORDS = 'Words to find; "quotes" for an exact phrase'
SHOW = "Show a past answer of this channel"
ANSWER = "Start of its title or id"
STATS = "Usage, cost and how each model did"
FORGET = "Delete one answer, one person's questions, or this channel's history"
WHAT = "Start of an answer's title or id; me; @person (for admins); or channel"
WHAT_IS_MISSING = (
    "Say what to delete: the start of an answer's title or id, "
    "`me` (all you asked), `@person` (all they asked, for admins), or `channel`."
)

CONFIG = "This channel's settings: see them, or change them as an admin"
CHANNEL_PROFILE = "Which council answers here unless a question names one"
CHANNEL_PROFILES = "Which councils may be asked here, separated by commas"
CHANNEL_ROUNDS = "Review rounds here, 1 to 5; each costs as much again"
CONTEXT = "thread: read the thread around a question; message: only the question"
THREAD = "digest: how each corrected response begins; full: all of it in the thread"
WHO = "Who may ask here: everyone, nobody, or @people, @roles, @groups"
BUDGET_DAY = "The most that this channel may cost in a day (UTC), in dollars"
BUDGET_MONTH = "The most that this channel may cost in a month (UTC), in dollars"
RETENTION = "Days after its last answer until a conversation is deleted"
RESET = "Settings to reset, separated by commas, or all"

ATTACHING = (
    "Attach files to a message that mentions the bot, to a direct message to it, or to a message on "
    f"which you use \u201c{ASK_ABOUT}\u201d. On Discord there is also the option attachment; "
    "at the terminal, council ask --attachment."
)
NOT_PRIVATE = "--private works only with /council."
PROFILE_NAME = "the name of a profile"
CONVERSATION_START = "the start of its title or id"
TEXT = "text"


def days(default: int) -> str:
    """Describe the option of how many days to count."""
    return f"Days to count (default {default})"


def number(least: int, most: int) -> str:
    """Say what a number may be."""
    return f"a whole number from {least} to {most}"


def choice(choices: Iterable[str]) -> str:
    """Say what there is to choose from."""
    return f"one of {', '.join(choices)}"


def described(description: str, allowed: str = "") -> str:
    """Say what an option is for, and what it takes."""
    return f"{description}; {allowed}." if allowed else f"{description}."


def missing(command: str, option: str, description: str) -> str:
    """Say which option of a command is missing."""
    return f"/{command} needs a value for {option}: {description[0].lower()}{description[1:]}."


def wrong(option: str, value: str, allowed: str) -> str:
    """Say that an option's value is wrong, and what the option takes."""
    return f"The option {option} can't be \u201c{value}\u201d. It takes {allowed}."


def not_asked(option: str, value: str, why: str) -> str:
    """Say why an option's value can't be used, and that nothing was asked."""
    reason = why.rstrip(".")
    shown = f"{reason[0].upper()}{reason[1:]}"
    return f"The option {option} can't be \u201c{value}\u201d. {shown}. Nothing was asked."


def takes(allowed: str) -> str:
    """Say what an option takes."""
    return f"It takes {allowed}"


def no_value(option: str, allowed: str) -> str:
    """Say that a flag has no value."""
    return f"The option --{option} needs a value. It takes {allowed}."


def twice(option: str) -> str:
    """Say that a flag was given twice."""
    return f"The option --{option} appears twice. Use it once."


def not_closed(option: str) -> str:
    """Say that a quotation mark is missing."""
    return f"The quotation mark after --{option} is never closed."


def unknown(name: str, guess: str | None, known: Sequence[str], *, before_question: bool) -> str:
    """Say that a flag is unknown, and suggest one or list all."""
    listed = ", ".join(f"--{each}" for each in known)
    hint = f"Did you mean --{guess}?" if guess else f"Available: {listed}."
    where = " Options come before the question." if before_question else ""
    return f"Unknown option --{name}. {hint}{where}"


def not_by_flag(name: str) -> str:
    """Say how files are attached instead."""
    return f"Unknown option --{name}. {ATTACHING}"


def no_profile(name: str, known: Iterable[str]) -> str:
    """Say that there is no such profile, and which there are."""
    return (
        f"There is no profile \u201c{name}\u201d. Available: {', '.join(sorted(known))}. "
        "Nothing was asked."
    )
