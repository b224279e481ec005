"""Emphasis as people mean it: `**Status:**OK` and `これは**「重要」**です` are bold.

CommonMark lets no run of marks close between a punctuation mark and a letter, nor open between a letter
and a punctuation mark, so that readers see asterisks. Here a run after punctuation closes as well, if
an opener is waiting, and a run before punctuation opens as well, if nothing was open. What could be
code (`2**(n+1)`, `snake_case`, `*args`) is left to CommonMark, and Python's own names (`__init__`) are
text.

Sources: https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis,
https://github.com/commonmark/commonmark-spec/issues/650.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from unicodedata import category

from markdown_it import MarkdownIt
from markdown_it.common.utils import isPunctChar
from markdown_it.rules_inline import StateInline, emphasis, strikethrough
from markdown_it.rules_inline.state_inline import Delimiter

Rule = Callable[[StateInline, bool], bool]

_EITHER = "\"'`*_~"  # each opens after a space and closes after a letter
_LEADING = f"{_EITHER}#@&\u00bf\u00a1"  # of the marks that neither open nor close by category
_LATIN_LEADING = "\"'`["
_DUNDER = re.compile(
    r"(?<!\w)__(?:main|name|file|doc|dict|all|init|new|del|call|class|module|slots|version|future"
    r"|annotations|str|repr|eq|ne|lt|le|gt|ge|hash|bool|len|iter|next|contains|getitem|setitem|delitem"
    r"|getattr|getattribute|setattr|delattr|get|set|enter|exit|aenter|aexit|aiter|anext|await|add|sub|mul"
    r"|post_init|init_subclass|class_getitem|pycache|tests|mocks|proto)__(?!\w)"
)
_NAME_ENDS = ":!?%\"'\u201d\u2019"  # what no name with underscores contains


def read_as_meant(parser: MarkdownIt) -> MarkdownIt:
    """Make a parser read emphasis and strikethrough as people mean them."""
    parser.inline.ruler.at("emphasis", _as_meant(emphasis.tokenize))
    parser.inline.ruler.at("strikethrough", _as_meant(strikethrough.tokenize))
    return parser


def _as_meant(tokenize: Rule) -> Rule:
    def rule(state: StateInline, silent: bool) -> bool:
        if name := _DUNDER.match(state.src, state.pos, state.posMax):
            state.pending += "" if silent else name[0]
            state.pos = name.end()
            return True
        start, known = state.pos, len(state.delimiters)
        found = tokenize(state, silent)
        delimiters = state.delimiters[known:]
        if not delimiters:
            return found
        run = _Run.of(state, start)
        marker = delimiters[0].marker
        closes, opens = run.ends and _waits(marker, state.delimiters[:known]), run.begins
        for each in delimiters:
            each.close, each.open = each.close or closes, each.open or opens
        return found

    return rule


def _waits(marker: int, delimiters: Sequence[Delimiter]) -> bool:
    return any(each.open and each.marker == marker for each in reversed(delimiters))


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of marks with the characters around it; beyond the text there are spaces."""

    marks: str
    two_before: str
    before: str
    after: str

    @classmethod
    def of(cls, state: StateInline, start: int) -> "_Run":
        """Return the run that was read from `start`."""
        text = f"  {state.src[max(start - 2, 0) : start]}"
        after = state.src[state.pos : state.pos + 1]
        return cls(state.src[start : state.pos], text[-2], text[-1], after or " ")

    @property
    def ends(self) -> bool:
        """Whether it closes between punctuation and a letter."""
        if not (_is_punctuation(self.before) and _is_letter(self.after)):
            return False
        if category(self.before) in ("Ps", "Pi"):
            return False
        if self.before in _EITHER and self.two_before.isspace():
            return False
        if self.marks[0] == "_" and self.after.isascii():
            return len(self.marks) > 1 and self.before in _NAME_ENDS
        return True

    @property
    def begins(self) -> bool:
        """Whether it opens between a letter and punctuation."""
        if not (_is_letter(self.before) and _is_punctuation(self.after)):
            return False
        kind = category(self.after)
        if kind in ("Pe", "Pf") or (kind == "Po" and self.after not in _LEADING):
            return False
        if self.before.isascii():
            quoted = self.after in _LATIN_LEADING and not self.before.isdigit()
            return self.marks[0] != "_" and (quoted or not self.after.isascii())
        return True


def _is_punctuation(character: str) -> bool:
    return isPunctChar(character)


def _is_letter(character: str) -> bool:
    return not character.isspace() and not _is_punctuation(character)


def needs_a_letter(outside: str, inside: str) -> bool:
    """Return whether a mark between these two characters is read only if a letter is inside it.

    CommonMark accepts any punctuation outside, Slack only ASCII's.
    """
    if not _is_punctuation(inside) or outside.isspace():
        return False
    return not (outside.isascii() and _is_punctuation(outside))
