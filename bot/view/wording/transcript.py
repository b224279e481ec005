"""What a transcript says besides the card's and the thread's words; `page.html` has the page's own."""

from collections.abc import Iterable

from bot.view.wording.figures import count, position

_PLATFORMS = {"discord": "on Discord", "slack": "on Slack", "terminal": "in the terminal"}
NO_ANSWER = "It has no answer."
ASKED, BEGUN, MEMBERS, RANKING = "Asked", "Started", "Members", "Ranking"
COST, TOKENS, CONVERSATION = "Cost", "Tokens", "Conversation"
REMOVED, ADDED = "removed", "added"
ABOVE, HERE = "above", "here"


def place(platform: str, user: str | None) -> str:
    return f"{_PLATFORMS.get(platform, f'on {platform}')}{f' by {user}' if user else ''}"


def question(number: int, *, of_several: bool) -> str:
    return f"Question {number}" if of_several else "Question"


def before(number: int) -> str:
    return "Original response" if number == 1 else f"Response of round {number - 1}"


def words(number: int) -> str:
    return count(number, "word")


def votes(number: int | None) -> str:
    which = "" if number is None else f", round {number}"
    return f"Where each reviewer put each answer{which}"


def moves(*, several: bool) -> str:
    whose = "member\u2019s corrections" if several else "correction"
    return f"How much each {whose} changed"


def votes_of(name: str, votes: Iterable[tuple[str, int]], mean: float | None) -> str:
    said = ", ".join(f"{place} by {letter}" for letter, place in votes) or "no vote"
    return f"{name}: {said}, mean {position(mean)}"


def move_of(name: str, removed: int, added: int) -> str:
    return f"{name}: {words(removed)} removed, {added:,} added"


def sure_of(name: str, before: int | None, after: int | None) -> str:
    first, last = ("no score" if score is None else str(score) for score in (before, after))
    return f"{name}: {first} before, {last} after"
