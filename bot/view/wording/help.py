"""What `/council-help` says, in the words of the platform where it is typed."""

from collections.abc import Iterable, Mapping

from bot.view.wording.commands import ASK_ABOUT
from bot.view.wording.figures import NO_COST, count, expected, runs
from council.estimate import Estimate
from storage.index.statistics import Spent, Typical

COUNCIL = "The council"
WHAT_IT_DOES = (
    "Several models answer, review each other without names, and correct themselves; a chairman writes "
    "the answer."
)
ASK, FOLLOW_UP, FIND, DELETE = "Ask", "Follow up", "Find", "Delete"
WHO_SEES, WHAT_THEY_SEE, COST = "Who sees it", "They see", "Cost"
HELP, OPTIONS, MODELS = "Help", "Options", "Models and limits"
"""The labels of the buttons below each page."""

_TERMINAL = "terminal"
_HOW_TO_ASK: Mapping[str, str] = {
    "discord": "/council and your question; or mention or message me.",
    "slack": "/council and your question; in a thread, mention me; or message me.",
    _TERMINAL: "/council and your question.",
}
FOUND = "/council-history, /council-search, /council-show."
DELETED = "/council-forget, with a title, or me for all you asked."
_SEEN = "your question, its files, the conversation before it"
ABOUT_MODELS = (
    "These models see your question, its files, and the earlier questions and answers of the same "
    "conversation, including other people's. A model after \u201cor\u201d sees them only if the one "
    "before it can't answer."
)
ONLY_QUESTION = "It doesn't read the thread it is asked in."
WEB = "Members search the web, so their search terms go to the provider's search engine."
LIMITS = "Limits"
SETTINGS = "/council-config shows this channel's settings; its admins change them there."
ABOUT_OPTIONS = "Options of /council"
_EXAMPLE = "--depth quick Should we shard?"
_BEFORE = f"Type them before the question: {_EXAMPLE}"
_ATTACHED = (
    "Attach files to a message that mentions me, to a direct message, or to a message on which you use "
    f"\u201c{ASK_ABOUT}\u201d."
)
_GIVEN: Mapping[str, tuple[str, ...]] = {
    "discord": (
        "Choose them beside the question.",
        f"In a message to me, type them before the question: {_EXAMPLE}",
        _ATTACHED,
    ),
    "slack": (_BEFORE, _ATTACHED),
    _TERMINAL: (_BEFORE, 'With a file: council ask --attachment FILE "your question".'),
}


def how_to_ask(platform: str) -> str:
    return _HOW_TO_ASK.get(platform, _HOW_TO_ASK[_TERMINAL])


def how_to_follow_up(platform: str) -> str:
    in_thread = "press Follow up, or mention me in the thread."
    return "@council and your question." if platform == _TERMINAL else in_thread


def seen(messages: int | None) -> str:
    """Return what models see with a question, and how many `messages` of people's threads."""
    return f"{_SEEN}; in people's threads, up to {messages} messages." if messages else f"{_SEEN}."


def how_options_are_given(platform: str) -> tuple[str, ...]:
    return _GIVEN.get(platform, _GIVEN[_TERMINAL])


def thread(messages: int) -> str:
    return (
        f"In a thread that people started, they also see up to its last {messages} messages with their "
        "files, if an admin has allowed it. The card says how much was read."
    )


def limits(at_once: tuple[int, int], waiting: tuple[int, int]) -> str:
    return (
        f"At once: {count(at_once[0], 'question')} per person, "
        f"{count(at_once[1], 'question')} per channel; the rest wait, up to "
        f"{waiting[0]:,} per person and {waiting[1]:,} per channel."
    )


def so_far(spent: Spent) -> str:
    said = runs(spent)
    return f"Here so far: {said}." if said else ""


def cost(lately: Typical | None, estimate: Estimate) -> str:
    said = expected(lately, estimate.cost)
    return f"{said[:1].upper()}{said[1:]} for a short question." if said else f"{NO_COST}."


def council(profile: str) -> str:
    return COUNCIL if profile == "default" else f"Council \u201c{profile}\u201d"


def seats(
    members: Iterable[str], chair: Iterable[str], title: str | None, judge: str | None = None
) -> str:
    """Name the models of a council; the chairman's are asked one after the other."""
    titled = f"; title {'and judge ' if title == judge else ''}{title}" if title else ""
    judged = f"; judge {judge}" if judge and judge != title else ""
    return f"{', '.join(members)}; chairman {' or '.join(chair)}{titled}{judged}."


def seat(models: Iterable[str], persona: str | None) -> str:
    named = " or ".join(models)
    return f"{named} as {persona}" if persona else named


def rounds(number: int, strategy: str) -> str:
    return f"{'Up to ' if number > 1 else ''}{count(number, 'review round')}, strategy {strategy}."


def criteria(names: object) -> str:
    return f"Criteria: {names}."
