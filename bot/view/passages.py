"""What is shown of a long text: the sentences that a correction changed, and how it begins.

Sentences are compared as people read them, without Markdown; code and tables are left out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from council.document.results import GRADES, ReviewPoint
from council.reviews.extraction import EMPTY_WORDS
from council.text import clip, sentence_ends, sentences

LONGEST = 20_000
"""Characters up to which texts are compared sentence by sentence: a hundredth of a second."""
MOST_SENTENCES = 400
CLOSE = 0.3
"""The share of two sentences' words from which one is the other, changed."""
ENOUGH_NAMED = 2
"""How many of a change's words an objection must share to be about it."""

BEGINNING = 200
"""How many characters of a corrected response a digest shows, about."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MARK = re.compile(r"\s*(?:(?:#{1,6}|>|[-*+]|\d{1,3}[.)])\s+)*")
_INLINE = re.compile(
    r"\*\*|__|~~|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|!?\[(?=[^\]\n]*\]\()|(?<=\S)\]\([^)\s]*\)"
)
_RULE = re.compile(r" {0,3}\|?[ :]*-+[ :]*\|[ :|-]*$")
_LEADS = re.compile(r" {0,3}#{1,6} |\s*(?:[-*+]|\d{1,3}[.)])\s*$|\s*\*\*[^*]+\*\*:?\s*$|.*:\s*$")
_WORD = re.compile(r"\w[\w'.-]*\w|\w")


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence before and after a correction; either may be empty."""

    before: str
    after: str

    @property
    def is_pair(self) -> bool:
        old, new = _words(self.before), _words(self.after)
        return bool(old and new) and len(old & new) >= CLOSE * max(len(old), len(new))

    @property
    def news(self) -> set[str]:
        return _words(self.before) ^ _words(self.after)


def passages(before: str, after: str) -> list[Passage]:
    """Return the sentences that differ, in their order; nothing for texts too long to be compared."""
    if before == after or max(len(before), len(after)) > LONGEST:
        return []
    old, new = [*_sentences(before)], [*_sentences(after)]
    if max(len(old), len(new)) > MOST_SENTENCES:
        return []
    kept = {*old} & {*new}  # a sentence that only moved is no change
    found: list[Passage] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            removed = [each for each in old[a:b] if each not in kept]
            added = [each for each in new[c:d] if each not in kept]
            found += _aligned(removed, added) if removed or added else ()
    return found


def _aligned(removed: list[str], added: list[str]) -> Iterator[Passage]:
    """Pair each removed sentence with the added one most like it; without any, all with all."""
    rest, found = [*removed], list[Passage]()
    for sentence in added:
        pairs = [each for old in rest if (each := Passage(old, sentence)).is_pair]
        best = min(pairs, key=lambda each: len(each.news), default=Passage("", sentence))
        if best.before:
            rest.remove(best.before)
        found.append(best)
    if not any(each.before for each in found):
        yield Passage(" ".join(removed), " ".join(added))
        return
    yield from found
    yield from (Passage(sentence, "") for sentence in rest)


def gravest(changed: Sequence[Passage], objections: Iterable[ReviewPoint]) -> Passage | None:
    """Return the change that the gravest objection is about; without one, the largest change."""
    by_weight = sorted(objections, key=weight)
    for point in by_weight:
        if (found := _named(changed, point)) is not None:
            return found
    return max(changed, key=lambda each: len(each.news), default=None)


def clearest(changed: Sequence[Passage], objections: Iterable[ReviewPoint]) -> Passage | None:
    """Return the one changed sentence that a serious objection names; `None` where that is unclear."""
    pairs = [each for each in changed if each.is_pair]
    serious = [point for point in objections if weight(point) == 0]
    return next((found for point in serious if (found := _named(pairs, point, alone=True))), None)


def _named(changed: Sequence[Passage], point: ReviewPoint, *, alone: bool = False) -> Passage | None:
    """Return the change that shares most words with an objection; `alone`: more than any other."""
    words = _words(point.text)
    scores = [len(words & each.news) + len(words & _words(each.before)) for each in changed]
    best = max(scores, default=0)
    if best < ENOUGH_NAMED or (alone and scores.count(best) > 1):
        return None
    found = changed[scores.index(best)]
    return found if words & found.news or not alone else None


def _sentences(markdown: str) -> Iterator[str]:
    fence = ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        elif not line.lstrip().startswith("|"):
            text = _INLINE.sub("", _MARK.sub("", line, 1))
            yield from (" ".join(each.split()) for each in sentences(text))


def _words(text: str) -> set[str]:
    return {
        word for word in map(str.lower, _WORD.findall(text)) if len(word) > 2 and word not in EMPTY_WORDS
    } | {word for word in _WORD.findall(text) if word.isdigit()}


def weight(point: ReviewPoint) -> int:
    """Return how grave an objection is, 0 the gravest; one without a grade is a medium one.

    Lighter than all others is one that quotes words that aren't there.
    """
    return len(GRADES) if point.found is False else GRADES.index(point.severity or "medium")


def beginning(markdown: str, length: int = BEGINNING) -> str:
    """Return how a text begins, up to the end of a sentence or line at about `length` characters.

    Code or a table that would be cut is left out unless the text begins with it.
    """
    if len(markdown) <= length + length // 4:
        return markdown
    lines: list[str] = []
    room, fence, opened = length, "", 0
    for line in markdown[: 2 * length].split("\n"):
        mark = _FENCE.match(line)
        if len(line) > room:
            if not fence and (kept := _sentences_of(line, room, is_first=not any(lines))):
                lines.append(kept)
            break
        if mark and not fence:
            fence, opened = mark[1], len(lines)
        elif mark and mark[1].startswith(fence):
            fence = ""
        lines.append(line)
        room -= len(line) + 1
    if fence:
        lines = lines[:opened] if any(lines[:opened]) else [*lines, fence]
    rows = len(lines)
    while rows and "|" in lines[rows - 1]:
        rows -= 1
    if rows and any(map(_RULE.match, markdown.split("\n")[rows : len(lines) + 2])):
        lines = lines[:rows]
    while lines and (not lines[-1].strip() or _LEADS.match(lines[-1])):
        lines.pop()  # a heading alone says nothing
    return "\n".join(lines) or clip(markdown, length)


def _sentences_of(line: str, room: int, *, is_first: bool) -> str:
    """Return the sentences of a line that fit whole; of the first line, its words."""
    ends = sentence_ends(line, room)
    whole = [end for end in ends if not (line.count("**", 0, end) % 2 or line.count("`", 0, end) % 2)]
    if whole:
        return line[: whole[-1]].rstrip()
    return clip(line, max(room, 2)) if is_first else ""
