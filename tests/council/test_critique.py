"""Critiques are handed over whole, and shortened only where there is no room."""

from hypothesis import given
from hypothesis import strategies as st

from council.critique import shorten


def test_texts_that_fit_stay_as_they_are() -> None:
    """Nothing is touched below the limit."""
    assert shorten(["One.", "Two."], 2) == ["One.", "Two."]


def test_the_longest_is_cut_first_at_a_sentence_end() -> None:
    """The short one stays whole; the cut is visible and says how much is missing."""
    long = "First sentence. Second sentence. Third sentence that is longer."
    short = "Brief."
    cut, kept = shorten([long, short], 10)
    assert kept == short
    assert cut == "First sentence. Second sentence.\n[shortened: 32 of 63 characters]"


def test_a_text_without_sentences_is_cut_hard() -> None:
    """There is no better place."""
    [cut] = shorten(["x" * 100], 10)
    assert cut == "x" * 40 + "\n[shortened: 40 of 100 characters]"


@given(st.lists(st.text(max_size=300), max_size=6), st.integers(min_value=1, max_value=200))
def test_what_is_kept_fits_and_is_a_beginning(texts: list[str], max_tokens: int) -> None:
    """Each text comes back whole or as its own beginning, and together they fit."""
    short = shorten(texts, max_tokens)
    kept = [
        text.rpartition("\n[shortened:")[0] if text != whole else text
        for text, whole in zip(short, texts, strict=True)
    ]
    assert sum(map(len, kept)) <= max(4 * max_tokens, sum(map(len, texts)) if short == texts else 0)
    assert all(whole.startswith(text) for text, whole in zip(kept, texts, strict=True))
