"""What `/council-help` says: what the council is, which models see a question, what it costs."""

from collections.abc import Iterable

from bot.view.wording.figures import count, paid, runs, took
from storage.index.statistics import Spent, Typical

COUNCIL = "The council"
WHAT_IT_DOES = (
    "Several language models answer your question, review each other anonymously, and "
    "correct themselves; a chairman writes the answer. The thread shows every step."
)
HOW_TO_ASK = (
    "Ask with /council and your question, or write it to the bot in a direct message. "
    "To ask a follow-up, press Follow up or mention the bot in the thread."
)
WHO_SEES = (
    "These models see your question, its files, and the earlier questions and answers of the same "
    "conversation, including other people's. A model after \u201cor\u201d sees them only if the one "
    "before it can't answer."
)
LIMITS = "Limits and cost"
OPTIONS = "Options of /council"
PAST = "Past answers of this channel"
CHANNEL_SETTINGS = "/council-config shows this channel's settings; its admins change them there."
FLAGS = (
    "On Slack, in the terminal and in messages to the bot, type them before the question: "
    "--rounds 2 --criteria \u201cCost:3, Security!\u201d Should we shard?"
)
ONLY_QUESTION = "It doesn't read the thread it is asked in."
WEB = "Members search the web, so their search terms go to the provider's search engine."


def thread(messages: int) -> str:
    """Say how much is read of the thread in which a question is asked."""
    return (
        f"In a thread that people started, they also see up to its last {messages} messages with their "
        "text files, if an admin has allowed it. The card says how much was read."
    )


def limits(at_once: tuple[int, int], waiting: tuple[int, int]) -> str:
    """Say how many questions may run and wait at once, per person and per channel."""
    return (
        f"At once: {count(at_once[0], 'question')} per person, "
        f"{count(at_once[1], 'question')} per channel; the rest wait, up to "
        f"{waiting[0]:,} per person and {waiting[1]:,} per channel."
    )


def so_far(spent: Spent) -> str:
    """Say how a channel's runs ended and what they cost."""
    return f"Here so far: {runs(spent)}, {paid(spent)}."


def typical(lately: Typical) -> str:
    """Say how long a question takes here, and what it costs."""
    median = f"median of the last {lately.answers} answers"
    return f"Recent questions typically took {took(lately)} ({median})."


def council(profile: str) -> str:
    """Head the section about one council."""
    return f"Council \u201c{profile}\u201d"


def seats(members: Iterable[str], chair: Iterable[str], title: str | None) -> str:
    """Name the models of a council; the chairman's are asked one after the other."""
    titled = f"; title {title}" if title else ""
    return f"{', '.join(members)}; chairman {' or '.join(chair)}{titled}."


def seat(models: Iterable[str], persona: str | None) -> str:
    """Name one seat's model and its fallbacks."""
    named = " or ".join(models)
    return f"{named} as {persona}" if persona else named


def rounds(number: int, strategy: str) -> str:
    """Say how a council deliberates."""
    return f"{'Up to ' if number > 1 else ''}{count(number, 'review round')}, strategy {strategy}."


def criteria(names: object) -> str:
    """Name the criteria for its answers."""
    return f"Criteria: {names}."


def command(name: str, usage: str) -> str:
    """Return a command as it is typed."""
    return f"/{name} {usage}"
