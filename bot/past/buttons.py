"""The views of past answers, and how a button encodes one in a few characters.

A button carries an id or a cursor, never a place: its target is looked up where it is pressed.
"""

from dataclasses import dataclass
from typing import Literal

from bot.service.commands import LONGEST_WORDS, MOST_AT_ONCE
from bot.view.message import printable
from storage.index.past_answers import Cursor

Verb = Literal["turn", "see", "share", "transcript", "ask", "forget", "cancel", "help"]
"""What a button does: turn a page, show another, show all, give the file, ask, delete or not, help."""


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of the channel's conversations: the newest, or those next to a cursor."""

    count: int
    before: Cursor | None = None
    after: Cursor | None = None

    def __str__(self) -> str:
        """Write it for a button."""
        where = f"<{self.before}" if self.before else f">{self.after}" if self.after else ""
        return f"history:{self.count}:{where}"


@dataclass(frozen=True, slots=True)
class Search:
    """A page of a search's hits, from `offset` on."""

    words: str
    offset: int = 0

    def __str__(self) -> str:
        """Write it for a button."""
        return f"search:{self.offset}:{self.words}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a conversation: the last one, or that of exchange `turn`, counted from 0."""

    conversation_id: str
    turn: int | None = None

    def __str__(self) -> str:
        """Write it for a button."""
        return f"answer:{self.conversation_id}:{'' if self.turn is None else self.turn}"


@dataclass(frozen=True, slots=True)
class Detail:
    """All of one member of an answer; `rank` counts from 0."""

    conversation_id: str
    turn: int
    rank: int = 0

    def __str__(self) -> str:
        """Write it for a button."""
        return f"member:{self.conversation_id}:{self.turn}:{self.rank}"


@dataclass(frozen=True, slots=True)
class Figures:
    """The channel's statistics for the last days."""

    days: int

    def __str__(self) -> str:
        """Write it for a button."""
        return f"figures:{self.days}"


Look = HistoryPage | Search | Answer | Detail | Figures


def read(text: str) -> Look:
    """Read what a button says. Raises `ValueError` if it isn't one of our buttons."""
    kind, _, rest = printable(text).partition(":")
    match kind:
        case "history":
            count, _, where = rest.partition(":")
            cursor = Cursor.parse(where[1:]) if where else None
            before, after = (cursor, None) if where.startswith("<") else (None, cursor)
            return HistoryPage(min(_number(count, 1), MOST_AT_ONCE), before, after)
        case "search":
            offset, _, words = rest.partition(":")
            return Search(words[:LONGEST_WORDS], _number(offset))
        case "answer":
            conversation_id, turn = rest.split(":")
            return Answer(conversation_id, _number(turn) if turn else None)
        case "member" | "corrected" | "changes" | "reviews":
            conversation_id, *place = rest.split(":")
            turn, rank = map(_number, place)
            return Detail(conversation_id, turn, rank)
        case "figures":
            return Figures(_number(rest, 1))
        case _:
            raise ValueError(f"no such look: {kind}")


def _number(text: str, least: int = 0) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4) or int(text) < least:
        raise ValueError(f"no number from {least} to 9999: {text}")
    return int(text)


@dataclass(frozen=True, slots=True)
class Choice:
    """A button below past answers: its label, what it does, and with what."""

    label: str
    verb: Verb
    about: str
