"""Corrections are told from rewordings by the refinement contract's rule."""

import random
from difflib import SequenceMatcher, unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Indel

from council.document.changes import (
    CHARACTERS_LIMIT,
    LITERAL_LIMIT,
    ORDERED_LIMIT,
    detect_significant_changes,
    dropped,
    share_changed,
    summarize_changes,
    words_changed,
)
from tests.pairs import rows

SENTENCE = "Redis keeps the data in memory and writes it to disk from time to time."
TEXT = (
    "Put the index on both columns, the one you filter by first. Without it the planner reads the "
    "whole table, which is fine for ten thousand rows and painful for ten million."
)


VOCABULARY = [f"term{number}" for number in range(4_000)]

# The seed's rule, in its own order of questions ------------------------------------------------


def rule(original: str, refined: str) -> str:
    """Return which of the rule's cases a pair falls in."""
    if not original or not refined:
        return "missing"
    before, after = original.strip().lower(), refined.strip().lower()
    if before == after:
        return "same"
    ratio = SequenceMatcher(None, before, after).ratio()
    if ratio > 0.95:
        return "alike"
    if ratio < 0.5:
        return "different"
    fresh = [word for word in set(after.split()) if word not in before.split()]
    return "news" if len(fresh) / max(1, len(set(after.split()))) > 0.1 else "no news"


CHANGED = {"different", "news"}


def replaced(share: float, text: str = "abcdefghij" * 20) -> tuple[str, str]:
    """Replace this many of a text's characters, from the end, by others."""
    kept = round(len(text) * (1 - share))
    return text, text[:kept] + "#" * (len(text) - kept)


def grown(new: int, old: int = 20) -> tuple[str, str]:
    """Return a text with this many new words at its end."""
    words = [f"word{number}" for number in range(old)]
    return " ".join(words), " ".join([*words, *(f"new{number}" for number in range(new))])


PAIRS = [
    ("x", "X"),
    ("x", " x\n"),
    ("x", "y"),
    ("x", " "),
    (SENTENCE, SENTENCE.upper()),
    (SENTENCE, SENTENCE + " "),
    (SENTENCE, SENTENCE + " Really."),
    (SENTENCE, SENTENCE[: len(SENTENCE) // 2]),
    (SENTENCE, SENTENCE[: len(SENTENCE) // 3]),
    (SENTENCE, SENTENCE[::-1]),
    (SENTENCE, TEXT),
    (TEXT, TEXT.replace("ten", "10")),
    (TEXT, TEXT.replace("million", "billion")),
    (TEXT, " ".join(sorted(TEXT.split()))),
    (TEXT, TEXT + "\n" + TEXT),
    (TEXT + TEXT, TEXT),
    (TEXT * 5, TEXT * 5 + SENTENCE * 5),
    ((TEXT * 20)[:LITERAL_LIMIT], (TEXT * 20)[:LITERAL_LIMIT].replace("index", "key")),
    ("the\n\nsame", "the same"),
    ("a b", "a"),  # half alike, without news
    (f"{' '.join(VOCABULARY[:9])} {'gone' * 10}", f"{' '.join(VOCABULARY[:9])} new"),  # a tenth is news
    *(replaced(share / 100) for share in (1, 4, 4.5, 5, 5.5, 6, 10, 45, 49, 49.5, 50, 50.5, 51, 55, 99)),
    *(replaced(share / 100, "word " * 10) for share in (4, 5, 6, 49, 50, 51)),
    *(grown(new) for new in (1, 2, 3, 4, 15, 30, 60)),
    *(grown(new, old=9) for new in (1, 2)),
]


@rows(("original", "refined"), PAIRS)
def test_agrees_with_the_contract(original: str, refined: str) -> None:
    """Up to 2,000 characters the answer is the seed's, on either side of each threshold."""
    assert max(len(original), len(refined)) <= LITERAL_LIMIT
    assert detect_significant_changes(original, refined) == (rule(original, refined) in CHANGED)


@given(st.text("ab c\n", max_size=40), st.text("ab c\n", max_size=40))
def test_agrees_with_the_contract_on_any_text(original: str, refined: str) -> None:
    """Short texts of any kind are judged by the seed's rule."""
    assert detect_significant_changes(original, refined) == (rule(original, refined) in CHANGED)


# Long texts ------------------------------------------------------------------------------------


def long_text(words: int, seed: int = 1) -> list[str]:
    return random.Random(seed).choices(VOCABULARY, k=words)  # noqa: S311 - the same text each time


@rows(("share", "changed"), [(0.0, False), (0.04, False), (0.06, False), (0.2, True), (0.8, True)])
def test_judges_long_texts_by_words(share: float, changed: bool) -> None:
    """Above 2,000 characters words are compared, under the same thresholds."""
    before = long_text(2_000)
    new = int(len(before) * share)
    after = before[new:] + [f"new{number}" for number in range(new)]
    assert detect_significant_changes(" ".join(before), " ".join(after)) is changed


def test_order_and_form_of_a_long_text() -> None:
    """Words in their old order are common: at least half of a text, whatever part of it is moved."""
    before = long_text(2_000)
    for at in (800, 998, 1_002, 1_200):
        assert not detect_significant_changes(" ".join(before), " ".join(before[at:] + before[:at]))
    assert detect_significant_changes(" ".join(before), " ".join(sorted(before)))
    assert not detect_significant_changes(" ".join(before), "\n".join(before).upper())
    rare = VOCABULARY[:600]
    assert not detect_significant_changes(" ".join(rare), " ".join(rare[:200]))
    assert detect_significant_changes(" ".join(rare), " ".join(rare[:199]))
    assert detect_significant_changes(" ".join(["long" * 200] * 4), " ")


@rows(("kind", "changed"), [("edited", False), ("shuffled", True), ("other", True)])
def test_compares_100_kilobytes(kind: str, changed: bool) -> None:
    """A pair of 100 kB is compared too, where difflib takes minutes."""
    before = long_text(12_500)
    after = {
        "edited": [*before[:6_000], *long_text(500, 2), *before[6_500:]],
        "shuffled": random.Random(3).sample(before, len(before)),  # noqa: S311 - the same text each time
        "other": long_text(12_500, 4),
    }[kind]
    pair = " ".join(before), " ".join(after)
    assert min(map(len, pair)) > 95_000
    assert detect_significant_changes(*pair) is changed


# How much changed ------------------------------------------------------------------------------

WORD_LISTS = st.lists(st.sampled_from("abcdefgh"), max_size=30)


@given(WORD_LISTS, WORD_LISTS)
def test_tells_the_share_of_words_not_in_common(before: list[str], after: list[str]) -> None:
    """It is the indel distance over words."""
    expected = Indel.normalized_distance(before, after)
    assert share_changed(" ".join(before), " ".join(after)) == pytest.approx(expected)


def test_of_long_texts_shares_are_exact_and_of_very_long_ones_order_does_not_count() -> None:
    """A word of a text whose words are rare is a small share of it; longer texts than that nobody reads."""
    before = [f"term{number}" for number in range(3_000)]
    after = [*before[:1_500], "new", *before[1_501:]]
    assert share_changed(" ".join(before), " ".join(after)) == pytest.approx(1 / 3_000)
    assert share_changed(" ".join(before), " ".join(reversed(before))) == pytest.approx(1, abs=1e-3)
    before = [f"word{number}" for number in range(ORDERED_LIMIT + 1)]
    after = [*reversed(before[1:]), "new"]
    assert share_changed(" ".join(before), " ".join(after)) == pytest.approx(1 / len(before))
    words = [f"word{number}" for number in range(20_000)]
    turned = [*words[:-2], *reversed(words[-2:])]
    assert share_changed(" ".join(words), " ".join(turned)) == pytest.approx(1 / 20_000)
    assert share_changed(" ".join(["new", *words]), " ".join(["new", *turned])) == 0


def test_words_are_counted_as_they_are_read() -> None:
    """Neither Markdown signs nor punctuation make a different word; all of an empty text's successor is new."""
    assert words_changed("Move **all** jobs.", "- Move ten jobs now.\n") == (1, 2)
    assert words_changed("| a | b |\n|---|---|", "a, `b`!") == (0, 0)
    assert words_changed("Wait for 5 s.", "Wait for -5 s.") == (1, 1)
    assert share_changed("", " \n") == 0
    assert share_changed("", "something") == 1
    assert words_changed("The same.", "The same.") == (0, 0)
    assert words_changed("X ray MAX", "ray MA") == (2, 1)


CHINESE = "先加索引再考虑分片。"
"""First add an index, then think of sharding."""


def test_a_chinese_character_is_a_word_in_all_but_the_longest_texts() -> None:
    """One of a sentence without spaces is a small part of it; above 10,000 characters spaces count, also in Chinese."""
    assert share_changed(CHINESE, CHINESE.replace("先", "要")) == pytest.approx(1 / 10)
    before = "\n".join([CHINESE] * 300)
    after = "\n".join([CHINESE.replace("先", "要"), *[CHINESE] * 2] * 100)
    assert LITERAL_LIMIT < len(before) <= CHARACTERS_LIMIT
    assert not detect_significant_changes(before, after)
    before = "\n".join([CHINESE] * (CHARACTERS_LIMIT // len(CHINESE) - 100))
    after = "\n".join([before, *[CHINESE] * 50])
    assert len(before) <= CHARACTERS_LIMIT < len(after)
    assert share_changed(before, after) < 0.05
    text = CHINESE[0] * 9_999
    assert share_changed(text + CHINESE[1], text + CHINESE[2]) == pytest.approx(1 / 10_000)
    assert share_changed(text + CHINESE[:2], text + CHINESE[2:4]) == 1


def test_texts_are_long_from_2001_characters() -> None:
    """Below, difflib decides: it takes frequent characters for junk after another beginning."""
    for characters, changed in ((2_000, True), (2_001, False)):
        text = ("alpha beta gamma delta epsilon " * 70)[: characters - 1]
        assert detect_significant_changes("x" + text, "y" + text) is changed


# The summary -----------------------------------------------------------------------------------


@rows(
    ("original", "refined", "summary"),
    [
        ("a", "a\nb\nc", "Added content (+2 lines)"),
        ("a\nb", "c\nd\ne", "Added content (+1 lines)"),
        ("a\nb\nc", "a", "Condensed content (-2 lines)"),
        ("a\nb\nc", "a\nx\nc", "Restructured content (1 changes)"),
        ("a\nb\nc", "c\na\nb", "Restructured content (1 changes)"),
        ("a", "a", "Restructured content (0 changes)"),
        ("a\n---\nb", "a\nb", "Condensed content (-1 lines)"),
        ("a", "++ b\na", "Added content (+1 lines)"),
    ],
)
def test_summarizes(original: str, refined: str, summary: str) -> None:
    """Lines gained, lines lost, or lines replaced, in the seed's words."""
    assert summarize_changes(original, refined) == summary


LINES = st.lists(st.sampled_from(["", "a", "b", "c d", "# e"]), max_size=30).map("\n".join)


@given(LINES, LINES)
def test_counts_as_difflib_does(original: str, refined: str) -> None:
    """The counts are those of a unified diff, whose two header lines don't count."""
    diff = list(unified_diff(original.split("\n"), refined.split("\n"), lineterm=""))[2:]
    added = sum(line.startswith("+") for line in diff)
    removed = sum(line.startswith("-") for line in diff)
    expected = (
        f"Added content (+{added - removed} lines)"
        if added > removed
        else f"Condensed content (-{removed - added} lines)"
        if removed > added
        else f"Restructured content ({added} changes)"
    )
    assert summarize_changes(original, refined) == expected


def test_summarizes_long_texts_and_frequent_lines() -> None:
    """In a rewritten text of 100 kB the kept lines are counted as kept; difflib would take frequent ones for junk."""
    before = [f"{number} lines, and this is one" if number % 2 else "" for number in range(5_000)]
    after = [line if number % 10 else "changed" for number, line in enumerate(before)]
    pair = "\n".join(before), "\n".join(after)
    assert summarize_changes(*pair) == "Restructured content (500 changes)"
    lines = ["a", "b"] * 100
    changed = summarize_changes("\n".join(["x", *lines[1:]]), "\n".join(["y", *lines[1:]]))
    assert changed == "Restructured content (1 changes)"


# What was dropped ------------------------------------------------------------------------------


@rows(
    ("original", "refined", "sentences"),
    [
        ("It is fast. It is free! Is it?", "Is it? It is fast.", ["It is free!"]),
        ("One  line\nAnother line\n\n- A point", "Another\nline. One line.", ["- A point"]),
        ("Version 2.5 is out.", "Version 2 is out.", ["Version 2.5 is out."]),
        ("先加索引。再分片\uff01好吗\uff1f", "再分片\uff01", ["先加索引。", "好吗\uff1f"]),
        ("The same.", "The same.", []),
        ("", "All new.", []),
        ("All gone. Really.", "", ["All gone.", "Really."]),
    ],
)
def test_names_the_sentences_that_were_dropped(
    original: str, refined: str, sentences: list[str]
) -> None:
    """In their order, a line each; other spaces and another place don't matter."""
    assert dropped(original, refined) == sentences
