"""How far a correction moved from the answer before it (seed 002's rule)."""

from bisect import bisect_left
from collections import Counter, defaultdict
from difflib import SequenceMatcher

from rapidfuzz.distance import LCSseq

from council.scripts import set_apart

UNCHANGED_ABOVE = 0.95
CHANGED_BELOW = 0.5
NEW_WORDS_ABOVE = 0.1

LITERAL_LIMIT = 2_000
"""Characters up to which texts are compared by difflib, as in the seed."""

CHARACTERS_LIMIT = 10_000
"""Characters up to which every CJK character is a word; above it is what stands between spaces."""

RARE = 2_000
"""Among how many pairs of two texts' words at most one is equal where words are rare."""

JUNK_LIMIT = 200
"""Lines from which difflib stops counting faithfully: it leaves frequent ones out as junk."""


def detect_significant_changes(original: str, refined: str) -> bool:
    """Say whether a correction changed the answer in more than form.

    Texts over 95 % alike are unchanged, texts under 50 % alike are changed, and in between it
    takes over 10 % new words. Up to 2,000 characters likeness is difflib's ratio over characters,
    as in seed 002. Above, where that ratio takes quadratic time and ignores frequent characters,
    it is the indel similarity over words, with the same thresholds.
    """
    before, after = original.lower().strip(), refined.lower().strip()
    if not original or not refined or before == after:
        return False
    words = set(after.split())
    new_words = words - set(before.split())
    has_news = len(new_words) / max(len(words), 1) > NEW_WORDS_ABOVE
    # News or none, only one of the two thresholds is left to ask, and a known one is cheaper.
    threshold = UNCHANGED_ABOVE if has_news else CHANGED_BELOW
    if max(len(original), len(refined)) <= LITERAL_LIMIT:
        likeness = SequenceMatcher(None, before, after).ratio()
    else:
        likeness = 1 - _distance(before, after, threshold)
    return likeness <= threshold if has_news else likeness < threshold


def share_changed(original: str, refined: str) -> float:
    """Say how much of the words two texts have together isn't common to both, from 0 to 1."""
    return _distance(original.lower(), refined.lower())


def _distance(before: str, after: str, likeness: float = 0.0) -> float:
    """Give the share of words outside the longest common subsequence, or 1 below a likeness."""
    old, new = _words(before), _words(after)
    total = len(old) + len(new)
    in_common = _in_common(old, new, at_least=int(likeness * total / 2))
    return (total - 2 * in_common) / max(total, 1)


def _words(text: str) -> list[str]:
    return (set_apart(text, " ") if len(text) <= CHARACTERS_LIMIT else text).split()


def _in_common(before: list[str], after: list[str], *, at_least: int) -> int:
    """Give the length of the longest common subsequence, or 0 if that is below the least asked for."""
    times = Counter(after)
    pairs = {word: n * times[word] for word, n in Counter(before).items() if word in times}
    if sum(pairs.values()) * RARE <= len(before) * len(after):
        return _longest_rise(before, after, at_least=at_least)
    # rapidfuzz compares numbers faster than words, and fastest the first 256: the frequent words'.
    by_frequency = sorted(pairs, key=pairs.__getitem__, reverse=True)
    number = {word: place for place, word in enumerate(by_frequency)}
    old, new = ([number[word] for word in words if word in number] for words in (before, after))
    return LCSseq.similarity(old, new, score_cutoff=at_least)


def _longest_rise(before: list[str], after: list[str], *, at_least: int) -> int:
    """Do the same in the time of the pairs of equal words.

    The longest common subsequence is the longest rising series of places in the one text that the
    other's words name in turn. Source: Hunt and Szymanski, "A fast algorithm for computing longest
    common subsequences", 1977.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place in reversed(range(len(before))):
        places[before[place]].append(place)
    lowest_ends: list[int] = []
    for left, word in zip(range(len(after), 0, -1), after, strict=True):
        if len(lowest_ends) + left < at_least:
            return 0
        # The last place first, so that no word continues a series that it has just joined.
        for place in places.get(word, ()):
            at = bisect_left(lowest_ends, place)
            lowest_ends[at : at + 1] = [place]
    return len(lowest_ends)


def summarize_changes(original: str, refined: str) -> str:
    """Say in a few words how a text's lines changed, in the wording of seed 002.

    The changes of a restructured text are its new lines in difflib's comparison, and from 200
    lines on in the shortest one.
    """
    before, after = original.split("\n"), refined.split("\n")
    # Whatever the comparison, lines added less lines removed is the difference in length.
    grown = len(after) - len(before)
    if grown > 0:
        return f"Added content (+{grown} lines)"
    if grown < 0:
        return f"Condensed content (-{-grown} lines)"
    return f"Restructured content ({len(after) - _kept(before, after)} changes)"


def _kept(before: list[str], after: list[str]) -> int:
    if len(after) < JUNK_LIMIT:
        return sum(block.size for block in SequenceMatcher(None, before, after).get_matching_blocks())
    return LCSseq.similarity(before, after)
