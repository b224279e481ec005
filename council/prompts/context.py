"""How much of what came before a question its prompts repeat: of its conversation, and of its thread."""

from collections.abc import Iterable, Sequence

from council.brief import History, Turn
from council.document.conversation import Conversation, exchanges
from council.reviews.critiques import shorten
from council.text.characters import clip
from council.usage import BYTES_PER_TOKEN, tokens

TITLE_LENGTH = 80
LEAST_ROOM = 500
"""Tokens for a conversation beside a question that fills the context window by itself."""
LEAST_ANSWER = 200
"""Tokens that are left of an answer at least; below, its question alone is repeated."""
TITLES_SHARE = 8
"""One part in so many of the room is kept for titles."""
MOST_MESSAGES = 50
MOST_CHARACTERS = 20_000
"""Of a thread's messages, their files not counted."""
NOTE = 20
"""Tokens for the note at a cut."""


def room_beside(window: int, texts: Iterable[str]) -> int:
    """Return the tokens that what came before may take in a context window, beside these texts.

    That is half of what the texts leave free: reviews and corrections repeat other members'
    answers, and the reply needs room, too.
    """
    return max((window - sum(map(tokens, texts))) // 2, LEAST_ROOM)


def newest(texts: Sequence[str], room: int) -> list[str]:
    """Return the last of a thread's messages, oldest first: as many as fit into `room` tokens.

    At most `MOST_MESSAGES` of `MOST_CHARACTERS` together; the last one in any case. If that one alone
    is longer, it is cut at a sentence's end, visibly.
    """
    kept: list[str] = []
    characters = MOST_CHARACTERS
    for text in reversed(texts[-MOST_MESSAGES:]):
        characters -= len(text)
        room -= tokens(text)
        if characters < 0 or room < 0:
            break
        kept.insert(0, text)
    if texts and not kept:
        kept = [
            _cut(texts[-1], min(room + tokens(texts[-1]), MOST_CHARACTERS // BYTES_PER_TOKEN) - NOTE)
        ]
    return kept


def turns(conversation: Conversation) -> list[Turn]:
    """Return a conversation's questions with their final answers, oldest first."""
    return [
        Turn(question=each.question, answer=each.answer.stage3.response or None)
        for each in exchanges(conversation)
        if each.answer and each.question
    ]


def recent(turns: Sequence[Turn], room: int) -> History:
    """Return as much of a conversation as fits into `room` tokens, the end of it first."""
    sizes = [tokens(turn.question) + tokens(turn.answer or "") for turn in turns]
    if sum(sizes) <= room:
        return History(turns=tuple(turns))
    left = room - room // TITLES_SHARE
    whole: list[Turn] = []
    for turn, size in zip(reversed(turns), reversed(sizes), strict=True):
        if size > left:
            break
        whole.insert(0, turn)
        left -= size
    cut = not whole and tokens(turns[-1].question) + LEAST_ANSWER <= left
    if cut:
        asked = turns[-1].question
        whole = [Turn(question=asked, answer=_cut(turns[-1].answer or "", left - tokens(asked)))]
        left = 0
    older = [
        Turn(question=clip(" ".join(turn.question.split()), TITLE_LENGTH), answer=None)
        for turn in turns[: len(turns) - len(whole)]
    ]
    room_for_titles = left + room // TITLES_SHARE
    titled: list[Turn] = []
    for turn in reversed(older):
        room_for_titles -= tokens(turn.question)
        if room_for_titles < 0:
            break
        titled.insert(0, turn)
    return History(turns=(*titled, *whole), left_out=len(older) - len(titled), cut=cut)


def _cut(text: str, room: int) -> str:
    """Cut a text at a sentence's end so that it fits into `room` tokens."""
    # `shorten` counts four characters a token, and this text may need more bytes for each.
    [kept] = shorten([text], room * len(text) // len(text.encode(errors="replace")))
    return kept
