"""Full-text search: text on its way into it, what people type, and what both stores do.

Each conversation's texts are a row of the table `search`, whose `rowid` is the conversation's number;
`search_docsize` has the id of each row. Both stores find the same, each in an order of its own; only the
newest hits are ranked.

SQLite's tokenizer takes a run of CJK characters for one word, an emoji for none, and a vowel sign of
Thai, Lao, Burmese or Khmer for a word's end. Each of these characters gets a place of its own by
zero-width spaces around it, and a word of several is searched as a phrase: so words of any length are
found inside a sentence. Those that aren't CJK become private characters, which count as words. Undoing
both restores the text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Protocol

from council.text import set_apart
from storage.scope import Scope

TEXTS = ("title", "question", "answer")
WEIGHTS = (8.0, 3.0, 1.0)
"""A title says most, then the question."""
RANKED = 1_000
"""How many of a search's hits are ranked, the newest: ranking them all takes too long."""
TOKENIZE = "tokenize = 'porter unicode61 remove_diacritics 2'"

_GAP = "\u200b"
_PRIVATE = 0xF0000  # from a character to its private one
_SIGN = (  # scripts without spaces, then what is shown as emoji
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\xa9\xae\u203c\u2049\u2122\u2194-\u2199\u21a9\u21aa\u2300-\u23ff"
    "\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_SIGNS = re.compile(f"[{_SIGN}]")
_STAND_INS = re.compile(f"[{''.join(c if c == '-' else chr(ord(c) + _PRIVATE) for c in _SIGN)}]")
_PIECE = re.compile(r'"([^"]*)"?|([^\s"]+)')
_LONGEST_QUERY = 500  # characters: every phrase costs a look-up
_MOST_PHRASES = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """Phrases, one at least, all of them or `any` of which are to be there, or words that begin so."""

    phrases: Sequence[str]
    texts: Sequence[str] = TEXTS
    any: bool = False
    begins: bool = False

    @property
    def expression(self) -> str:
        """Write it as FTS5 reads it."""
        star = " *" if self.begins else ""
        each = (f'"{spaced(phrase)}"{star}' for phrase in self.phrases)
        return f"{{{' '.join(self.texts)}}} : ({(' OR ' if self.any else ' AND ').join(each)})"


class TextSearch(Protocol):
    """Full-text search over all conversations. Methods may raise `DatabaseError`.

    `columns` are those of the table `search`, beside `rowid`.
    """

    columns: ClassVar[Sequence[str]]

    def stored(self, scope: Scope, texts: Mapping[str, str]) -> dict[str, str]:
        """Return `TEXTS` of a scope by column, as they are stored to be searched."""
        ...

    async def ranked(
        self, scope: Scope, wanted: Wanted, limit: int, offset: int = 0
    ) -> tuple[list[int], int]:
        """Return the numbers of a scope's conversations that hold what is wanted, best first.

        The second value is how many there are, counted up to `RANKED`.
        """
        ...

    async def merge(self) -> None:
        """Make searches fast again after many rows were written."""
        ...


def spaced(text: str) -> str:
    text = set_apart(text, _GAP)
    return _SIGNS.sub(lambda sign: f"{_GAP}{chr(ord(sign[0]) + _PRIVATE)}{_GAP}", text)


def joined(text: str) -> str:
    """Return a text as it was before it was `spaced`."""
    return _STAND_INS.sub(lambda sign: chr(ord(sign[0]) - _PRIVATE), text.replace(_GAP, ""))


def phrases(words: str) -> list[str]:
    """Read a search as people type it: words, and phrases between double quotes.

    What has no letter, digit or emoji is left out; nothing in it is an operator.
    """
    tidy = words[:_LONGEST_QUERY].translate(_STRAIGHT)
    pieces = (quoted or word for quoted, word in _PIECE.findall(tidy))
    found = (piece for piece in pieces if any(map(str.isalnum, piece)) or _SIGNS.search(piece))
    return [*islice(found, _MOST_PHRASES)]


_STRAIGHT = str.maketrans("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02\0", '""""""" ')
