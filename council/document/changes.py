"""How far a correction moved from the answer before it (the refinement contract's rule)."""

from collections import Counter
from difflib import SequenceMatcher

from rapidfuzz.distance import LCSseq

from council.text import sentences, set_apart

LITERAL_LIMIT = 2_000
"""Characters up to which texts are compared by difflib, as in the seed."""
CHARACTERS_LIMIT = 10_000
"""Characters up to which every CJK character is a word; above it, a word is what is between spaces."""
ORDERED_LIMIT = 20_000
"""Words up to which their order counts; what two longer texts have in common is merely counted."""
MARKDOWN = "*_`~#>|"
"""Signs around a word that aren't part of it."""
PUNCTUATION = ".,;:!?"
"""Signs after a word that aren't part of it."""
JUNK_LIMIT = 200
"""Lines from which difflib stops counting faithfully: it leaves frequent ones out as junk."""


def detect_significant_changes(original: str, refined: str) -> bool:
    """Return whether a correction changed the answer in more than form.

    Texts over 95% alike are unchanged, texts under 50% alike are changed, and those in between are
    changed if over 10% of their words are new. Up to 2,000 characters, likeness is difflib's ratio
    over characters, as in the refinement contract. Above, where that ratio takes quadratic time and
    ignores frequent characters, it is the indel similarity over words, with the same thresholds.
    """
    before, after = original.lower().strip(), refined.lower().strip()
    if not original or not refined or before == after:
        return False
    words = set(after.split())
    new_words = words - set(before.split())
    has_news = len(new_words) / max(len(words), 1) > 0.1
    # News or none, only one of the two thresholds is left to ask, and a known one is cheaper.
    threshold = 0.95 if has_news else 0.5
    if max(len(original), len(refined)) <= LITERAL_LIMIT:
        likeness = SequenceMatcher(None, before, after).ratio()
    else:
        likeness = 1 - _distance(before, after, threshold)
    return likeness <= threshold if has_news else likeness < threshold


def share_changed(original: str, refined: str) -> float:
    """Return the share of two texts' words that isn't common to both, from 0 to 1."""
    return _distance(original.lower(), refined.lower())


def words_changed(original: str, refined: str) -> tuple[int, int]:
    """Count the words that a correction removed and added, as they are read: without Markdown."""
    if original == refined:
        return 0, 0
    old, new = map(_readable, _words(original, refined))
    in_common = _in_common(old, new, at_least=0)
    return len(old) - in_common, len(new) - in_common


def _words(before: str, after: str) -> tuple[list[str], list[str]]:
    if max(len(before), len(after)) <= CHARACTERS_LIMIT:
        before, after = set_apart(before, " "), set_apart(after, " ")
    return before.split(), after.split()


def _readable(words: list[str]) -> list[str]:
    bare = (word.strip(MARKDOWN).rstrip(PUNCTUATION + MARKDOWN) for word in words)
    # Most words are letters alone, and `isalnum` alone is fast.
    return [word for word in bare if word.isalnum() or any(map(str.isalnum, word))]


def _distance(before: str, after: str, likeness: float = 0.0) -> float:
    """Return the share of words outside the longest common subsequence, or 1 below a likeness."""
    old, new = _words(before, after)
    total = len(old) + len(new)
    in_common = _in_common(old, new, at_least=int(likeness * total / 2))
    return (total - 2 * in_common) / max(total, 1)


def _in_common(before: list[str], after: list[str], *, at_least: int) -> int:
    """Return the length of the longest common subsequence, or 0 if that is below the least asked for."""
    # rapidfuzz looks the numbers below 256 up in a table: the most frequent words get them.
    both = Counter(before) & Counter(after)
    if max(len(before), len(after)) > ORDERED_LIMIT:
        return both.total()
    shared = both.most_common()
    number = {word: place for place, (word, _) in enumerate(shared)}
    old, new = ([number[word] for word in words if word in number] for words in (before, after))
    # With all numbers in the table some words pass for equal, so there is never less in common.
    folded = (bytes(number % 256 for number in numbers) for numbers in (old, new))
    if at_least and LCSseq.similarity(*folded) < at_least:
        return 0
    return LCSseq.similarity(old, new, score_cutoff=at_least)


def summarize_changes(original: str, refined: str) -> str:
    """Return how a text's lines changed, in a few words and in the wording of the refinement contract.

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
    if len(after) < JUNK_LIMIT:
        kept = sum(block.size for block in SequenceMatcher(None, before, after).get_matching_blocks())
    else:
        kept = _in_common(before, after, at_least=0)
    return f"Restructured content ({len(after) - kept} changes)"


def dropped(original: str, refined: str) -> list[str]:
    """Return the sentences and lines of a text that another one doesn't contain, in their order."""
    kept = " ".join(refined.split())
    said = (" ".join(each.split()) for line in original.splitlines() for each in sentences(line))
    return [sentence for sentence in said if sentence not in kept]
