"""Text on its way into the full-text search, and what people type to find it there.

SQLite's tokenizer takes a run of CJK characters for one word. Each gets a place of its own by
zero-width spaces around it, and a word of several is searched as a phrase: so words of any length
are found inside a sentence, and removing the spaces restores the text.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from council.text.characters import set_apart

_GAP = "\u200b"
_PIECE = re.compile(r'"([^"]*)"?|([^\s"]+)')
_LONGEST_QUERY = 500  # characters: every phrase costs a look-up
_MOST_PHRASES = 20


def spaced(text: str) -> str:
    """Set CJK characters apart."""
    return set_apart(text, _GAP)


def joined(text: str) -> str:
    """Take the zero-width spaces out again."""
    return text.replace(_GAP, "")


def phrases(words: str) -> list[str]:
    """Read a search as people type it: words, and phrases between double quotes.

    What has no letter and no digit is left out; nothing in it is an operator.
    """
    tidy = words[:_LONGEST_QUERY].translate(_STRAIGHT)
    pieces = (quoted or word for quoted, word in _PIECE.findall(tidy))
    return [piece for piece in pieces if any(map(_is_searchable, piece))][:_MOST_PHRASES]


def match(found: Sequence[str], wants: Literal["AND", "OR"]) -> str:
    """Write phrases, one at least, as a full-text expression that wants all or any of them."""
    return f" {wants} ".join(f'"{spaced(phrase)}"' for phrase in found)


_STRAIGHT = str.maketrans("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02\0", '""""""" ')


def _is_searchable(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"
